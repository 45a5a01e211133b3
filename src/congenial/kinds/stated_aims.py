"""Whether a bundle says of several tables what error was shared by as plans and Python say it.

The words stand in the report: they may name tables of the release and numbers, and accuracies that
a plan asked for are those of its cells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from congenial.data.rational import fraction
from congenial.errors import PlanError
from congenial.kinds.tables import axes_of
from congenial.report.accuracy import Want
from congenial.tables.intervals import half_width

Tables = Sequence[tuple[str, ...]]

SAME = 1e-5  # relative difference of numbers that are worked out again; weights have 6 digits
NEAR = 0.01  # by which an accuracy may be missed: designs are found in steps
_NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
_PLAIN = re.compile(
    rf"keep|even|largest|Keep\(factor={_NUMBER}\)|Even\(\)|Largest\(\)"
    rf"|Weighted\(weights=\((?:{_NUMBER},? ?)+\), absolute=(?:True|False)\)"
)
_WEIGHT = re.compile(rf"(.+?) = ({_NUMBER})(?:, |$)")


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
        known = {frozenset(names) for names in tables}
        named = {frozenset(axes_of(one[1])) for one in _WEIGHT.finditer(told)}
        return not _WEIGHT.sub("", told) and named <= known
    return _PLAIN.fullmatch(aim) is not None


def objective_holds(design: Mapping[str, Any], tables: Tables) -> bool:
    """Whether a design made small what its aim says: variances relative to those of a release of
    the finest tables alone, times the weights of the aim, or their geometric mean.

    Limits of `accuracy` are searched for, step by step; whether they are met is in `aim_holds`.
    """
    aim, objective = str(design["aim"]), design["objective"]
    if aim.startswith("accuracy: "):
        return bool(objective["kind"] == "largest ratio")
    factors, alone = np.array(objective["factors"], float), np.array(design["alone"], float)
    promise, moved = float(fraction(design["promise"])), np.any(design["types"]["maximal"], axis=0)
    scale = 2 * promise if design["law"] == "gaussian" else promise**2
    relative = 1 / np.where(moved, alone * scale, 1)
    weights, absolute = _weights(aim, tables)
    wanted = np.where(moved, weights * (1 if absolute else relative), 0)
    kind = "largest ratio" if aim in ("largest", "Largest()") else "power mean"
    same = bool(np.allclose(factors, wanted, rtol=SAME, atol=0))
    geometric = objective.get("order") == 0 and bool((factors == 1).all())
    plain = aim in ("keep", "even") or aim.startswith(("Keep(", "Even("))
    return objective["kind"] == kind and (same or (geometric and plain))


def _weights(aim: str, tables: Tables) -> tuple[Any, bool]:
    """The weight of each table that an aim states, 1 where it states none, and whether variances
    count as they are.
    """
    if aim.startswith("weights: "):
        stated = _WEIGHT.finditer(aim.removeprefix("weights: "))
        given = {frozenset(axes_of(one[1])): float(one[2]) for one in stated}
        return np.array([given.get(frozenset(names), 1.0) for names in tables]), False
    if aim.startswith("Weighted("):
        listed = aim.partition("absolute")[0]
        return np.array([float(one) for one in re.findall(_NUMBER, listed)]), "True" in aim
    return np.ones(len(tables)), False


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
