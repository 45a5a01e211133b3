"""`estimate`: the front door. Questions in, estimates with intervals out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.arguments import PATH, expect
from congenial.errors import InferenceError
from congenial.inference.estimates.answers import Estimate, EstimateTable
from congenial.inference.estimates.arithmetic import refuse_all_unbounded
from congenial.inference.estimates.asked_columns import (
    answering,
    asked_names,
    first_answer,
    has_parts,
    table_showing,
)
from congenial.inference.estimates.cell_estimates import CellEstimates, cell_estimates
from congenial.inference.estimates.checked_bootstrap import function_of_table
from congenial.inference.estimates.combined_estimates import combined, refuse_the_same
from congenial.inference.estimates.expression_language import EXAMPLE, parse_question
from congenial.inference.estimates.interval_cover import IntervalCover
from congenial.inference.estimates.outside_file import Outside
from congenial.inference.estimates.quantities import Quantity
from congenial.inference.estimates.resolve import CellGroups, resolve
from congenial.inference.estimates.side_by_side import SideBySide
from congenial.mechanisms.released import check_level

What = str | Callable[[Any], Any]
ALIKE_BY_CHANCE = 8  # two draws of fewer cells may well be the same numbers
Asked = tuple[str, Quantity, list[dict[str, str]]]


def estimate(
    releases: Any,
    what: What | Sequence[What],
    level: float = 0.95,
    *,
    jointly: bool = False,
    outside: str | Path | None = None,
    same_population: bool = False,
) -> EstimateTable:
    """Estimates with intervals from a release (or several) and nothing else.

    `what`: an expression such as "share(sex = 'f' | age >= 65) by county", a Python function of
    the table, or a list of these. `jointly`: all intervals hold together at the level, not each by
    itself. `outside`: a CSV file for `rate`. Several releases of one population are combined into
    one best estimate; `same_population` says that they are of one where no exact figure shows it.

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 2]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> table = Table(schema, ["sex", "age"], [[90, 110, 5], [100, 80, 70]])
    >>> share = estimate(mechanism.release(table, SeededRandomness(1)), "share(sex = 'f')")[0]
    >>> bool(share.low < 205 / 455 < share.high), share.method
    (True, "Fieller's, with the simulated law of the noise")
    """
    check_level(level)
    given = list(releases) if isinstance(releases, list | tuple) else [releases]
    if has_parts(given):
        asked_alone = {"jointly": jointly, "outside": outside, "same_population": same_population}
        return _from_parts(given, _listed(what), level, asked_alone)
    tables = tables_of(releases)
    file = None if outside is None else _outside(outside)
    listed = _listed(what)
    together = _Together(tables, same_population)
    asked = [_asked(one, together, file) for one in listed]
    cover = IntervalCover.of_one(level)
    if jointly:
        cover = IntervalCover.of_all(level, np.column_stack([q.sizes() for _, q, _ in asked]))
    each_asked = one_by_one(asked, "working out intervals")
    found = [one for each in each_asked for one in _answers(each, cover, level, jointly)]
    return EstimateTable(tuple(found))


def _from_parts(
    releases: list[Any], listed: list[What], level: float, options: dict[str, Any]
) -> EstimateTable:
    """Every question from the measured tables that answer it best; those of one release of records
    are of one population.
    """
    if len(releases) == 1:
        options = options | {"same_population": True}
    if options["jointly"] and len(listed) > 1:
        raise InferenceError(
            "intervals of several questions about records come from different tables.",
            remedy="Ask one question at a time, or leave out jointly.",
        )
    found = [
        first_answer(
            answering(releases, one), lambda told, one=one: estimate(told, one, level, **options)
        )
        for one in listed
    ]
    return EstimateTable(tuple(row for each in found for row in each))


def _outside(file: Any) -> Outside:
    expect(file, PATH, "the outside file", "Give its path.", InferenceError)
    return Outside.read(file)


def tables_of(releases: Any) -> list[CellEstimates]:
    """The cells of one release or of several."""
    listed = list(releases) if isinstance(releases, list | tuple) else [releases]
    if not listed:
        raise InferenceError("no release is given.", remedy="Give a bundle.")
    return [cell_estimates(one) for one in listed]


def _listed(what: Any) -> list[What]:
    listed = list(what) if isinstance(what, list | tuple) else [what]
    if not listed:
        raise InferenceError("there is no question.", remedy=EXAMPLE)
    for one in listed:
        if isinstance(one, type):
            raise InferenceError("a class is not a function of the table.", remedy=EXAMPLE)
    return listed


@dataclass(frozen=True)
class _Together:
    """The tables that were given, and the one that they make together."""

    tables: list[CellEstimates]
    same_population: bool

    @cached_property
    def one(self) -> CellEstimates:
        return combined(self.tables, self.same_population)


def _asked(what: What, together: _Together, outside: Outside | None) -> Asked:
    if callable(what):
        quantity = function_of_table(together.one, what)
        count = len(quantity.values)
        groups = [{} if count == 1 else {"number": str(i + 1)} for i in range(count)]
        return getattr(what, "__name__", "function"), quantity, groups
    question = parse_question(what)
    asked = asked_names(question)
    if question.compares:
        tables = [table_showing(one, *asked, question.text) for one in together.tables]
        for one, other in pairwise(tables):
            if one.cells.size >= ALIKE_BY_CHANCE:
                refuse_the_same(one, other, f"'{one.name}' and '{other.name}'")
        beside = SideBySide(tuple(tables))
        sides = [
            CellGroups(beside, table, question.by, start)
            for table, start in zip(beside.tables, beside.starts, strict=False)
        ]
        _refuse_other_groups(sides)
    else:
        table = table_showing(together.one, *asked, question.text)
        sides = [CellGroups(table, table, question.by)]
    return question.text, resolve(question, sides, outside), sides[0].labels


def _refuse_other_groups(sides: list[CellGroups]) -> None:
    for other in sides[1:]:
        if other.labels != sides[0].labels:
            raise InferenceError(
                f"'{sides[0].table.name}' and '{other.table.name}' have different categories of "
                f"{', '.join(sides[0].by)}.",
                remedy="Compare bundles whose groups have the same categories.",
            )


def _answers(asked: Asked, cover: IntervalCover, level: float, jointly: bool) -> list[Estimate]:
    text, quantity, groups = asked
    ends = quantity.ends(cover)
    refuse_all_unbounded(ends, text)
    deviations = quantity.deviations
    return [
        Estimate(
            of=text,
            value=float(quantity.values[i]),
            low=_end(ends.low[i]),
            high=_end(ends.high[i]),
            level=level,
            method=ends.methods[i],
            group=group,
            sd=float(deviations[i]),
            note=ends.notes[i],
            jointly=jointly,
        )
        for i, group in enumerate(groups)
    ]


def _end(value: float) -> float:
    return math.nan if np.isnan(value) else float(value)
