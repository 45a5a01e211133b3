"""Whether a bundle says of several tables what error was shared by as plans and Python say it.

The words stand in the report: they may name tables of the release and numbers, and accuracies that
a plan asked for are those of its cells.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from congenial.errors import PlanError
from congenial.kinds.tables import axes_of
from congenial.report.accuracy import Want
from congenial.tables.intervals import half_width

Tables = Sequence[tuple[str, ...]]

NEAR = 0.01  # by which an accuracy may be missed: designs are found in steps
_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
_PLAIN = re.compile(
    rf"keep|even|largest|Keep\(factor={_NUMBER}\)|Even\(\)|Largest\(\)"
    rf"|Weighted\(weights=\((?:{_NUMBER},? ?)+\), absolute=(?:True|False)\)"
)
_WEIGHT = re.compile(rf"(.+?) = {_NUMBER}(?:, |$)")


def aim_holds(aim: str, tables: Tables, worst: Sequence[float]) -> bool:
    """Whether an aim is one, about these tables; `worst`: of each, its largest standard deviation.

    >>> tables = [("county", "sex"), ("sex",)]
    >>> [aim_holds(one, tables, [3.0, 1.0]) for one in ("keep", "weights: county, sex = 2", "0")]
    [True, True, False]
    >>> [aim_holds(f"accuracy: margin('sex') within {n} at 90%", tables, [3, 1]) for n in (1, 2)]
    [False, True]
    """
    kind, _, told = aim.partition(": ")
    if kind == "accuracy":
        return all(_met(one, tables, worst) for one in told.split("; "))
    if kind == "weights":
        known, found = {frozenset(names) for names in tables}, _WEIGHT.findall(told)
        return not _WEIGHT.sub("", told) and {frozenset(axes_of(one)) for one in found} <= known
    return _PLAIN.fullmatch(aim) is not None


def _met(text: str, tables: Tables, worst: Sequence[float]) -> bool:
    """Whether an accuracy is about one of the tables, and its cells have it."""
    try:
        want = Want.parse(text)
    except PlanError:
        return False
    errors = [
        half_width(want.level) * sd
        for names, sd in zip(tables, worst, strict=True)
        if want.margin is not None and set(names) == set(want.margin)
    ]
    return bool(errors) and max(errors) <= (1 + NEAR) * want.within
