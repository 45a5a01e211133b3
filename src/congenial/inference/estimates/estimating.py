"""`estimate`: the front door. Questions in, estimates with intervals out.

A question is read, its conditions become sums of cells for every group after 'by' (`resolve`), and
the quantity they make is asked for its intervals.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.arguments import PATH, expect
from congenial.data.arrays import Floats
from congenial.data.magnitude import Magnitude
from congenial.data.schema import Schema
from congenial.data.text_files import original
from congenial.errors import CongenialError, DataError, InferenceError, SchemaError, some_of
from congenial.figures.limits import indexed_ranges
from congenial.figures.support import support
from congenial.inference.estimates.answers import Estimate, EstimateTable
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    SideBySide,
    refuse_sums,
    summed_number,
)
from congenial.inference.estimates.cell_groups import (
    CellGroups,
    answering,
    asked_names,
    first_answer,
    has_parts,
    leaves,
    ordered,
    table_showing,
)
from congenial.inference.estimates.combined_estimates import (
    cell_estimates,
    combined,
    measured_estimates,
    refuse_other_people,
    refuse_the_same,
)
from congenial.inference.estimates.expression_language import (
    EXAMPLE,
    ArithmeticOf,
    BetweenOf,
    Constant,
    CountOf,
    Expression,
    IndexOf,
    NumberOf,
    QuantileOf,
    Question,
    RateOf,
    ShareOf,
    parse_question,
)
from congenial.inference.estimates.indices import function_of_table, index_quantity
from congenial.inference.estimates.quantiles import OrderedQuantile
from congenial.inference.estimates.quantities import (
    NOT_DETERMINED,
    CellSums,
    Ends,
    IntervalCover,
    Quantity,
    Ratio,
    combine,
)
from congenial.mechanisms.released import LEVEL, check_level

What = str | Callable[[Any], Any]
ALIKE_BY_CHANCE = 8  # two draws of fewer cells may well be the same numbers
Asked = tuple[str, Quantity, list[dict[str, str]]]


def estimate(
    releases: Any,
    what: What | Sequence[What],
    level: float = LEVEL,
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
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 2]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> table = Table(schema, ["sex", "age"], [[90, 110, 5], [100, 80, 70]])
    >>> release = release_table(mechanism, table, SeededRandomness(1))
    >>> share = estimate(release, "share(sex = 'f')")[0]
    >>> bool(share.low < 205 / 455 < share.high), share.method
    (True, 'inversion of jointly simulated errors')
    """
    check_level(level)
    asked_releases = list(releases) if isinstance(releases, list | tuple) else [releases]
    if has_parts(asked_releases):
        asked_alone = {"jointly": jointly, "outside": outside, "same_population": same_population}
        return _from_parts(asked_releases, _listed(what), level, asked_alone)
    if not asked_releases:
        raise InferenceError("no release is given.", remedy="Give a bundle.")
    file = None if outside is None else _outside(outside)
    listed = _listed(what)
    together = _Together(
        [measured_estimates(release) for release in asked_releases], same_population
    )
    asked = [_asked(expression, together, file) for expression in listed]
    cover = IntervalCover.of_one(level)
    if jointly:
        cover = IntervalCover.of_all(level, np.column_stack([q.sizes() for _, q, _ in asked]))
    each_asked = one_by_one(asked, "working out intervals")
    answers = [answer for each in each_asked for answer in _answers(each, cover, level, jointly)]
    return EstimateTable(tuple(answers))


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
    by_part = [
        first_answer(
            answering(releases, question),
            lambda answering_it, asked=question: estimate(answering_it, asked, level, **options),
        )
        for question in listed
    ]
    return EstimateTable(tuple(row for each in by_part for row in each))


def _outside(file: Any) -> Outside:
    expect(file, PATH, "the outside file", "Give its path.", InferenceError)
    return Outside.read(file)


def tables_of(releases: Any) -> list[CellEstimates]:
    """The cells of one release or of several."""
    listed = list(releases) if isinstance(releases, list | tuple) else [releases]
    if not listed:
        raise InferenceError("no release is given.", remedy="Give a bundle.")
    return [cell_estimates(release) for release in listed]


def _listed(what: Any) -> list[What]:
    listed = list(what) if isinstance(what, list | tuple) else [what]
    if not listed:
        raise InferenceError("there is no question.", remedy=EXAMPLE)
    for question in listed:
        if isinstance(question, type):
            raise InferenceError("a class is not a function of the table.", remedy=EXAMPLE)
    return listed


@dataclass(frozen=True)
class _Together:
    """What each release measures, and what they say together of each number and of people."""

    releases: list[tuple[CellEstimates, ...]]
    same_population: bool

    @cached_property
    def measures(self) -> tuple[CellEstimates, ...]:
        """One for each number, and one for people; of the first release the first."""
        for first, second in combinations(self.releases, 2):
            if [*map(summed_number, first)] != [*map(summed_number, second)]:
                refuse_other_people(first[0], second[0], self.same_population)
        tables_by_number: dict[Magnitude | None, list[CellEstimates]] = {}
        for table in (table for release in self.releases for table in release):
            tables_by_number.setdefault(summed_number(table), []).append(table)
        return tuple(combined(alike, self.same_population) for alike in tables_by_number.values())

    @property
    def one(self) -> CellEstimates:
        """What a question about cells alone is asked of."""
        return self.measures[0]


Side = Sequence[CellGroups]  # of what one release, or several together, measure


def _about(tables: Sequence[CellEstimates], column: str | None) -> int:
    """Which of several tables is of a number, or of people; the first where that is missing."""
    return _all_about(tables, column)[0]


def _all_about(tables: Sequence[CellEstimates], column: str | None) -> list[int]:
    """The same, all classes of a number with bounds by class; one class by its label."""
    numbers = [summed_number(table) for table in tables]
    labels = [None if number is None else number.label for number in numbers]
    if column in labels:
        return [labels.index(column)]
    columns = [None if number is None else number.column for number in numbers]
    return [at for at, name in enumerate(columns) if name == column] or [0]


def _groups_about(side: Side, column: str | None = None) -> CellGroups:
    return side[_about([groups.table for groups in side], column)]


def _needed(question: Question, measures: Sequence[CellEstimates]) -> list[CellEstimates]:
    """The measures that a question is about."""
    needed = []
    for node in leaves(question.expression):
        if isinstance(node, NumberOf):
            about = _all_about(measures, node.column)
            number = summed_number(measures[about[0]])
            counts = node.mean or (number is not None and number.shift)
            needed += about + [_about(measures, None)] * bool(counts)
        elif not isinstance(node, Constant):
            needed.append(_about(measures, None))
    return [measures[at] for at in dict.fromkeys(needed or [0])]


def _asked(what: What, together: _Together, outside: Outside | None) -> Asked:
    if callable(what):
        refuse_sums(together.one, "a function of the table")
        quantity = function_of_table(together.one, what)
        count = len(quantity.values)
        groups = [{} if count == 1 else {"number": str(i + 1)} for i in range(count)]
        return getattr(what, "__name__", "function"), quantity, groups
    question = parse_question(what)
    asked = asked_names(question)
    every = together.releases if question.compares else [together.measures]
    sides = [
        [table_showing(table, *asked, question.text) for table in _needed(question, measures)]
        for measures in every
    ]
    for earlier, other in pairwise(tables[0] for tables in sides):
        if earlier.cells.size >= ALIKE_BY_CHANCE:
            refuse_the_same(earlier, other, f"'{earlier.name}' and '{other.name}'")
    grouped = _grouped(sides, question.by)
    _refuse_other_groups([side[0] for side in grouped])
    return question.text, resolve(question, grouped, outside), grouped[0][0].labels


def _grouped(sides: Sequence[Sequence[CellEstimates]], by: tuple[str, ...]) -> list[Side]:
    """The groups of every table; several tables stand beside each other."""
    tables = [table for side in sides for table in side]
    if len(tables) == 1:
        return [[CellGroups(tables[0], tables[0], by)]]
    beside = SideBySide(tuple(tables))
    starts = iter(beside.starts)
    return [[CellGroups(beside, table, by, next(starts)) for table in side] for side in sides]


def _refuse_other_groups(groups: Sequence[CellGroups]) -> None:
    for other in groups[1:]:
        if other.labels != groups[0].labels:
            raise InferenceError(
                f"'{groups[0].table.name}' and '{other.table.name}' have different categories of "
                f"{', '.join(groups[0].by)}.",
                remedy="Compare bundles whose groups have the same categories.",
            )


def _refuse_all_unbounded(ends: Ends, text: str) -> None:
    """Refuse an answer of which no group has a bounded interval."""
    bounded = np.isfinite(ends.low) | np.isfinite(ends.high)
    if bounded.any() or not any(ends.notes):
        return
    why = next(note for note in ends.notes if note)
    raise InferenceError(
        f"'{text}': {why}.",
        remedy="Ask for a larger group (fewer conditions, a coarser name after 'by'), for the "
        "count itself, or for a difference instead of a ratio.",
    )


def _answers(asked: Asked, cover: IntervalCover, level: float, jointly: bool) -> list[Estimate]:
    text, quantity, groups = asked
    ends = quantity.ends(cover)
    _refuse_all_unbounded(ends, text)
    deviations = quantity.deviations
    return [
        Estimate(
            of=text,
            value=math.nan if _undetermined(ends, i) else float(quantity.values[i]),
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


def _undetermined(ends: Ends, i: int) -> bool:
    return ends.notes[i].startswith(NOT_DETERMINED)


def _end(value: float) -> float:
    return math.nan if np.isnan(value) else float(value)


def resolve(question: Question, sides: Sequence[Side], outside: Outside | None) -> Quantity:
    """What a question asks of what one bundle measures, or of two beside each other."""
    try:
        return _resolve(question.expression, sides, outside)
    except CongenialError as error:
        if question.text in str(error):
            raise
        raise type(error)(f"'{question.text}': {error.what}", remedy=error.remedy) from None


def _resolve(node: Expression, sides: Sequence[Side], outside: Outside | None) -> Quantity:
    groups = _groups_about(sides[0])
    if isinstance(node, BetweenOf):
        return _between(node, sides, outside)
    if isinstance(node, ArithmeticOf):
        left = _resolve(node.left, sides, outside)
        return combine(node.operator, left, _resolve(node.right, sides, outside))
    if isinstance(node, Constant):
        return groups.constant(node.value)
    if isinstance(node, NumberOf):
        return _of_number(node, sides[0])
    for side in sides:
        refuse_sums(_groups_about(side).table, "this")
    if isinstance(node, CountOf):
        return groups.sums(node.condition)
    if isinstance(node, ShareOf):
        return _share(node, groups)
    if isinstance(node, RateOf):
        return _rate(node, groups, outside)
    if isinstance(node, QuantileOf):
        return _quantile(node, groups)
    assert isinstance(node, IndexOf)
    return index_quantity(node, groups)


def _of_number(node: NumberOf, side: Side) -> Quantity:
    """The sum of a number, or its mean: over people whom exact figures count, or measured ones."""
    groups = _groups_about(side, node.column)
    number = summed_number(groups.table)
    if number is None or node.column not in (number.column, number.label):
        has = "counts of people" if number is None else f"sums of {number.column}"
        raise InferenceError(
            f"'{groups.table.name}' has {has}, not sums of {node.column}.",
            remedy="Ask a bundle whose plan has sum = "
            f'"{node.column}"{"" if number is None else f", or ask for sum({number.column})"}.',
        )
    sums = groups.sums(node.condition).times(float(number.step))
    for at in _all_about([each.table for each in side], node.column)[1:]:  # further classes
        more, of_class = side[at].sums(node.condition), summed_number(side[at].table)
        assert of_class is not None
        sums = sums.plus(more, float(of_class.step))
    if number.shift:  # that part of it is summed by the counts
        sums = sums.plus(_groups_about(side).sums(node.condition), float(number.shift))
    if not node.mean:
        return sums
    if node.column != number.column:
        raise InferenceError(
            f"'{groups.table.name}' has no number of people of the class of {node.column}.",
            remedy=f"Ask for mean({number.column}), or for sums.",
        )
    index = np.where(groups.selected(node.condition), groups.of_cell, -1)
    people: Any = groups.table.people  # type: ignore[attr-defined]
    ranges = indexed_ranges(support(people, groups.table.axes), index, groups.count)
    if np.array_equal(ranges.least, ranges.most):
        return Ratio(sums, groups.constant(ranges.least.astype(float)))
    counted = _groups_about(side)
    if summed_number(counted.table) is not None:
        raise InferenceError(
            f"a mean of {node.column} needs the number of people of every group, and no exact "
            "figure and no table tells it.",
            remedy="Ask by groups whose people are published exactly, ask for sums, or measure "
            "counts too (counts = true).",
        )
    return Ratio(sums, counted.sums(node.condition))


def _share(node: ShareOf, groups: CellGroups) -> Ratio:
    whole = groups.selected(node.whole)
    part = groups.rows(whole & groups.selected(node.part), groups.of_cell, groups.count)
    return Ratio(CellSums.of(groups.source, part), groups.sums(node.whole))


def _rate(node: RateOf, groups: CellGroups, outside: Outside | None) -> Quantity:
    if outside is None:
        raise InferenceError(
            f"rate(...) needs the column '{node.column}' of an outside file, and no file is given.",
            remedy="Give it with --outside FILE (in Python: outside=...).",
        )
    people = outside.per_group(node.column, groups.table.schema, groups.by)
    return groups.sums(node.condition).times(node.per / people)


def _between(node: BetweenOf, sides: Sequence[Side], outside: Outside | None) -> Quantity:
    if len(sides) != 2:
        raise InferenceError(
            f"change and growth compare two bundles, but {len(sides)} is given."
            if len(sides) == 1
            else f"change and growth compare two bundles, not {len(sides)}.",
            remedy="Give the earlier bundle first, then the later one.",
        )
    before = _resolve(node.inner, sides[:1], outside)
    after = _resolve(node.inner, sides[1:], outside)
    if not node.growth:
        return combine("-", after, before)
    return combine("-", combine("/", after, before), sides[0][0].constant(1.0))


def _quantile(node: QuantileOf, groups: CellGroups) -> OrderedQuantile:
    attribute = ordered(node.name, groups)
    level, count = groups.levels_of(node.name)
    chosen, bins = groups.selected(node.condition), len(attribute.intervals)
    rows = groups.rows(
        chosen & (level < bins), groups.of_cell * count + level, groups.count * count
    )
    each = [rows[g * count : g * count + bins] for g in range(groups.count)]
    return OrderedQuantile(groups.source, each, attribute, node.probability)


@dataclass(frozen=True)
class Outside:
    """A CSV file: columns named like axes of the schema hold levels, the others hold numbers.

    Its numbers are taken as exact.
    """

    file: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]

    @classmethod
    def read(cls, path: str | Path) -> Outside:
        """Read the file; refused where it is no CSV file in UTF-8."""
        try:
            with Path(path).open(newline="", encoding="utf-8-sig") as file:
                rows = [tuple(map(original, row)) for row in csv.reader(file, strict=True) if row]
        except OSError as reason:
            raise DataError(
                f"'{path}' cannot be opened: {reason.strerror}.",
                remedy="Give the path of a CSV file with a header row.",
            ) from None
        except (UnicodeDecodeError, csv.Error):
            raise DataError(
                f"'{path}' cannot be read as a CSV file in UTF-8.",
                remedy="Give a file with a header row.",
            ) from None
        if len(rows) < 2 or any(len(row) != len(rows[0]) for row in rows):
            raise DataError(
                f"'{path}' has no rows, or rows that are not as long as its header.",
                remedy="Give one row for each group, with a category or number in every column.",
            )
        return cls(str(path), rows[0], tuple(rows[1:]))

    def per_group(self, column: str, schema: Schema, by: Sequence[str]) -> Floats:
        """The column summed over the rows of each group; every group must have a positive sum."""
        for name in (column, *by):
            if name not in self.header:
                raise InferenceError(
                    f"'{self.file}' has no column '{name}'.",
                    remedy=f"It has {some_of(self.header)}.",
                )
        axes = schema.axes(tuple(by))
        estimates = np.zeros(tuple(axis.size for axis in axes))
        at = [self.header.index(axis.name) for axis in axes]
        codes = [{level: i for i, level in enumerate(axis.levels)} for axis in axes]
        for row in self.rows:
            place = tuple(self._code(code, row[i]) for code, i in zip(codes, at, strict=True))
            estimates[place] += self._number(row[self.header.index(column)])
        if not np.all(estimates > 0):
            raise InferenceError(
                f"'{column}' of '{self.file}' is 0 or missing for some group, so its rate cannot "
                "be computed.",
                remedy="Give a positive number for every group after 'by'.",
            )
        return estimates.reshape(-1)

    def _code(self, codes: dict[str, int], level: str) -> int:
        if level not in codes:
            raise SchemaError(
                f"'{self.file}' has the category {level[:80]!r}, which is not in the bundle.",
                remedy="Use the categories of the bundle's schema.",
            )
        return codes[level]

    def _number(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            number = np.nan
        if not np.isfinite(number) or number < 0:
            raise DataError(
                f"'{self.file}' has {text[:40]!r} where a number of people is expected.",
                remedy="Write numbers that are 0 or more, with a point for decimals.",
            )
        return number
