"""`verify` for tables, whole or by parts: everything is produced again from what was drawn, with
the code that produced it, and compared with what is printed.

A nation is looked into part by part, as it was drawn: up to the top node of every part, above the
parts, and down again. No process holds more than one part.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from congenial.data.advance import Advance
from congenial.data.arrays import Ints
from congenial.data.rational import fraction
from congenial.data.workload import Workload
from congenial.errors import BundleError, PlanError
from congenial.figures.limits import limits
from congenial.figures.support import support
from congenial.kinds.kind import (
    FOLLOWS,
    Check,
    Files,
    looked_into,
)
from congenial.kinds.parted_run import run_each, workers_for
from congenial.kinds.tables_section import axes_of
from congenial.mechanisms.measured_tables import MeasuredTables, described, noise_given
from congenial.mechanisms.parted_release import SUMMARY, PartedRelease
from congenial.mechanisms.parted_tables import PartedTables, TablesPiece
from congenial.mechanisms.tables_files import file_name, part_name
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.pairs import Adjacency
from congenial.report.accuracy import Want
from congenial.tables.estimates_by_parts import Above, Below, Settled
from congenial.tables.intervals import half_width
from congenial.tables.joint_estimator import Answer
from congenial.tables.whole_counts import WholeCounts

if TYPE_CHECKING:
    from congenial.tables.design_document import DesignChecks

Looks = dict[str, Callable[[], Any]]  # by what is looked into
RESIDUAL = 1e-6  # of a standard deviation, by which recomputed estimates may differ
READ_BACK = "the data files have the expected form"
AIM = "the stated priority is valid and its accuracy is met"
DRAWN = "the noisy tables agree with the exact figures"
FITTED = "the estimates follow from the noisy tables"
DEVIATIONS = "the standard deviations follow from the noise"
COUNTED = "the printed counts follow from the noisy tables"
PARTS_READ_BACK = "the files of every part have the expected form"
FILES = "there is one file for every part of every table"
LARGEST = "the largest standard deviation stated for a table is that of its cells"


# ---- what all of them have -----------------------------------------------------------------------


def same_estimates(printed: Any, again: Any, sd: Any) -> bool:
    """Whether estimates are the same up to rounding; values as drawn have none."""
    if np.issubdtype(np.asarray(again).dtype, np.integer):
        return np.array_equal(printed, again)
    off = np.abs(printed - again)
    return bool(np.all(off <= RESIDUAL * sd + 1e-9 * (1 + np.abs(again))))


def same_deviations(printed: Any, again: Any) -> bool:
    """Whether standard deviations are the same up to rounding."""
    return bool(np.allclose(again, printed, rtol=RESIDUAL, atol=1e-9))


def _reads_back(files: Files, release: TablesRelease | PartedRelease) -> bool:
    return all(files.same(name, content) for name, content in release.payload().items())


def _design_looks(release: TablesRelease | PartedRelease, adjacency: Adjacency) -> Looks:
    """How the noise was shared out, worked out anew; one table whose noise just meets its promise
    has no design.
    """
    if release.description.only_law is not None and not release.description.design:
        return {}

    looked_up = cache(lambda: _design_checks(release, adjacency))
    aim = str(release.description.design.get("aim"))
    return {
        "the noise keeps the promise": lambda: looked_up().feasible,
        "the differences that the noise hides follow from the exact figures": lambda: (
            looked_up().types
        ),
        "the split of the noise is as close to the best as stated": lambda: looked_up().gap,
        AIM: lambda: aim_holds(aim, release.tables, release.largest_sds),
    }


def _design_checks(release: TablesRelease | PartedRelease, adjacency: Adjacency) -> DesignChecks:
    from congenial.tables.design_document import recheck

    description = release.description
    rechecked = recheck(description, Workload.of(release.schema, description.tables), adjacency)
    design = description.design  # `recheck` has read it
    sound = rechecked.gap and objective_holds(design, description.printed)
    return replace(rechecked, gap=sound)


# ---- tables that are drawn at once ---------------------------------------------------------------


def verify(files: Files, release: TablesRelease) -> list[Check]:
    """What tables must satisfy."""
    adjacency = release.guarantee.adjacency
    assert isinstance(adjacency, Adjacency)
    mechanism = MeasuredTables(adjacency, release.description)
    mechanism.lend(release)  # public, and slow to make ready twice
    parts = [_Measure(*pair) for pair in zip(mechanism.measures, release.measures, strict=True)]
    looks: Looks = {
        READ_BACK: lambda: _reads_back(files, release),
        FOLLOWS: lambda: _follows(mechanism, release),
        **_design_looks(release, adjacency),
        DRAWN: lambda: all(_drawn_given(part.made, part.release) for part in parts),
        "the noisy values are multiples of the stated step": lambda: all(
            _on_grid(part.release) for part in parts
        ),
        FITTED: lambda: all(_fitted(part.release, part.again) for part in parts),
        COUNTED: lambda: all(part.counted for part in parts),
        "the printed counts keep every published bound": lambda: all(
            _bounded(part.release) for part in parts
        ),
    }
    if release.has_errors:
        looks[DEVIATIONS] = lambda: all(
            same_deviations(printed, part.made.estimator.deviations(names).values)
            for part in parts
            for names, printed in zip(release.tables, part.release.deviations, strict=True)
        )
    checks = looked_into(looks, files)
    detail = f"within {RESIDUAL:g} standard deviations, by "
    return [
        replace(check, detail=detail + parts[0].again.fitted.method)
        if check.what == FITTED and release.description.only_law is None
        else check
        for check in checks
    ]


@dataclass(frozen=True, eq=False)
class _Measure:
    """One of the things that a release measures, and how it is drawn."""

    made: MeasuredTables
    release: TablesRelease

    @cached_property
    def again(self) -> Answer:
        """What follows from the draw, worked out anew."""
        return self.made.estimator.answer(self.release.by_table)

    @property
    def counted(self) -> bool:
        """Whether printed numbers follow from the draw."""
        same = _same_counts(self.release, self.again)
        estimator = self.made.estimator
        return (same or estimator.as_near(self.release.by_table, self.release.counts)) and (
            estimator.follows_keep
        )


def _follows(made: MeasuredTables, release: TablesRelease) -> bool:
    """The promise is that of the laws, which state what their samplers cost."""
    stated = all(
        mechanism.priced == mechanism.description
        for part in made.measures
        for mechanism in part.mechanisms
    )
    alone = not any(part.description.design for part in made.beside)
    return stated and alone and release.guarantee.follows_from(made.guarantee)


def _drawn_given(made: MeasuredTables, release: TablesRelease) -> bool:
    """Known sums are as published, and cells known to be empty are.

    Noise that does not keep the figures does not claim to; noise that does says what they are. Sums
    are 0 where the figures say that nobody is, whatever their noise claims.
    """
    for mechanism, values in zip(made.mechanisms, release.drawn, strict=True):
        number, figures = mechanism.description.magnitude, mechanism.description.support
        if number is not None:
            figures = noise_given(made.adjacency.figures, number)
        table_support = support(figures, mechanism.description.table)
        if table_support.groups and table_support.totals is None:
            return False
        if not table_support.agrees(values):
            return False
    return True


def _on_grid(release: TablesRelease) -> bool:
    """Whole numbers, or multiples of the step that real values are rounded to."""
    pairs = zip(release.description.measured, release.drawn, strict=True)
    return all(not np.mod(values, law.grid or 1).any() for law, values in pairs)


def _fitted(release: TablesRelease, again: Answer) -> bool:
    deviations = release.deviations if release.has_errors else release.estimates  # not looked at
    three = zip(release.estimates, again.estimates, deviations, strict=True)
    return all(same_estimates(printed, worked_out, sd) for printed, worked_out, sd in three)


def _same_counts(release: TablesRelease, again: Answer) -> bool:
    return all(
        a is None if b is None else a is not None and bool(np.array_equal(a, b))
        for a, b in zip(release.counts, again.counts, strict=True)
    )


def _bounded(release: TablesRelease) -> bool:
    """Counts are not negative, and bounds that a table can show hold."""
    return all(
        counts is None
        or (
            counts.min(initial=0) >= 0
            and bool(limits(release.published, names).hold(counts.reshape(-1)))
        )
        for names, counts in zip(release.tables, release.counts, strict=True)
    )


# ---- one part of a nation: what one process does -------------------------------------------------


@dataclass(frozen=True, eq=False)
class PublishedPart:
    """One part of a bundle: what is drawn there (public), and where its files are."""

    number: int
    piece: TablesPiece
    below: tuple[int, ...]
    folder: Path

    def content(self, at: int) -> bytes:
        """A table's file."""
        place = file_name(self.piece.tables, at)
        return (self.folder / place / part_name(self.number)).read_bytes()

    def columns(self, at: int) -> dict[str, Any]:
        """The numbers of a table; BundleError if the file is another."""
        form = self.piece.file(at)
        return form.read({f"{form.name}.parquet": self.content(at)})

    def reads_back(self, at: int, printed: Mapping[str, Any]) -> bool:
        """Whether a table's file holds these numbers with their labels and intervals, in order, and
        nothing else.

        Its digest binds its bytes; they depend on the version of the library that wrote them.
        """
        form = self.piece.file(at)
        expected = form.table(self.piece.with_ends(at, printed))
        return bool(form.expected.read(self.content(at)).equals(expected))

    def drawn(self) -> list[Any]:
        """The tables as drawn; None for those that are not drawn in the part."""
        values: list[Any] = [None] * len(self.piece.tables)
        for at in self.piece.drawn:
            values[at] = self.columns(at)["count_as_drawn"]
        return values

    def by_attribute(self, names: tuple[str, ...], values: Any) -> Any:
        """A table of all cells with one axis per attribute, in the order of the cells."""
        work, schema = self.piece.work, self.piece.schema
        places = [work.names.index(schema.axis(name).base) for name in names]
        return np.transpose(values, np.argsort(places))

    @property
    def finest(self) -> int:
        """The table of all cells."""
        work = self.piece.work
        return next(at for at in self.below if work.margins[at].size == work.size)


@dataclass(frozen=True, eq=False)
class PartBelow:
    """What a part says of its top node, and whether its draws keep the figures."""

    number: int
    below: Below
    keeps: bool


@dataclass(frozen=True)
class PartFollows:
    """Whether a part's files read back, and follow from its draws and its top node.

    `worst`: the largest printed standard deviation of each table.
    """

    number: int
    reads_back: bool
    estimates: bool
    deviations: bool
    counts: bool
    worst: Mapping[int, float]


def look_below(part: PublishedPart) -> PartBelow:
    """Going up."""
    values, piece = part.drawn(), part.piece
    below = piece.estimator.below(piece.estimator.upward(values))
    return PartBelow(part.number, below, piece.keeps(values))


def look_into(part: PublishedPart, above: Above | None) -> PartFollows:
    """Going down; None: from what is printed of the top node, and with the deviations printed."""
    values, piece = part.drawn(), part.piece
    top = printed_top(part) if above is None else above
    settled = piece.estimator.settled(piece.estimator.upward(values), top)
    reads_back, estimates, deviations = True, True, True
    counts: dict[int, Ints] = {}
    worst: dict[int, float] = {}
    for at in part.below:
        printed = part.columns(at)
        deviations_printed = printed["sd"] if above is None else None
        again = piece.columns(at, settled, values[at], deviations_printed)
        reads_back &= part.reads_back(at, printed)
        estimates &= same_estimates(printed["estimate"], again["estimate"], printed["sd"])
        deviations &= same_deviations(printed["sd"], again["sd"])
        counts[at], worst[at] = printed["count"], float(printed["sd"].max(initial=0.0))
    whole = counts_follow(part, settled, top, counts)
    return PartFollows(part.number, reads_back, estimates, deviations, whole, worst)


def counts_follow(
    part: PublishedPart, settled: Settled, top: Above, counts: Mapping[int, Ints]
) -> bool:
    """Whether printed counts are those of the fit, or as near with the same sums.

    Estimates that are worked out elsewhere differ in their last bits, so that a tie can fall
    another way.
    """
    piece, finest = part.piece, part.finest

    def sums_of(whole: WholeCounts) -> bool:
        tables = ((printed, whole.table(piece.tables[at])) for at, printed in counts.items())
        return all(np.array_equal(printed, again) for printed, again in tables)

    if sums_of(settled.whole):
        return True
    names, printed = piece.tables[finest], counts[finest]
    cells = part.by_attribute(names, printed)
    keeps = printed.min() >= 0 and support(piece.figures, names).agrees(printed)
    same = sums_of(replace(settled.whole, cells=cells))
    return bool(same and keeps and piece.estimator.as_near(settled, cells, top.counts))


def printed_top(part: PublishedPart) -> Above:
    """What is printed of the part's top node, as if it had come from above.

    Its covariances are not printed and are left at zero: standard deviations cannot be checked.
    """
    estimator = part.piece.estimator
    work, inverse, top = estimator.work, estimator.inverse, estimator.top
    printed, names = part.columns(part.finest), part.piece.tables[part.finest]
    root, counts = (
        top.totals(part.by_attribute(names, printed[column])) for column in ("estimate", "count")
    )
    moved = (root - work.start_totals(top))[None]
    means, covariances = {}, {}
    for contrasts in inverse.parts:
        here = inverse.contrast(top, {(): moved}, contrasts)
        means[contrasts] = here[:, 0] * estimator.separation.summed(top, contrasts)
        covariances[contrasts] = np.zeros((here.shape[2], here.shape[2]))
    return Above(means, covariances, counts.reshape(-1).astype(np.int64))


# ---- a nation ------------------------------------------------------------------------------------


def part_file(files: Files, part: str) -> str:
    """The name of a part's file, from parts.json."""
    for entry in json.loads(files[SUMMARY])["parts"]:
        if part in (value for key, value in entry.items() if key != "file"):
            return str(entry["file"])
    raise BundleError(
        f"the bundle has no part {part!r}.", remedy=f"{SUMMARY} lists the parts by name."
    )


def verify_by_parts(files: Files, release: PartedRelease) -> list[Check]:
    """What a nation must satisfy; every part is read twice, and never two at once here."""
    mechanism = _rebuilt(release)
    public = looked_into(_public(files, release, mechanism), files)
    numbers = range(len(mechanism.parts.labels))
    workers = workers_for(len(numbers), mechanism.cells)
    tasks = ((_published(mechanism, release, number),) for number in numbers)
    parts_below: list[PartBelow] = run_each(
        look_below, tasks, workers, _telling(files, "reading the parts", len(numbers))
    )
    below = [part_below.below for part_below in sorted(parts_below, key=lambda one: one.number)]
    drawn = [_drawn_above(release, names) for names in mechanism.upper.tables]
    estimator = mechanism.upper.above(below)
    settled = estimator.settled(drawn)
    rest = ((_published(mechanism, release, k), estimator.above(settled, k)) for k in numbers)
    parts: list[PartFollows] = run_each(
        look_into, rest, workers, _telling(files, "working out the parts again", len(numbers))
    )
    pieces = [*parts, _above_follows(release, mechanism.upper_columns(settled, drawn))]
    names = (*mechanism.parts.labels, f"the tables above every {mechanism.parts.parts}")

    def check(what: str, field: str, detail: str = "") -> Check:
        failed = sorted(piece.number for piece in pieces if not getattr(piece, field))
        return Check(what, not failed, ", ".join(names[number] for number in failed[:5]) or detail)

    return [
        *public,
        Check(
            DRAWN,
            all(part_below.keeps for part_below in parts_below) and mechanism.upper.keeps(drawn),
        ),
        check(PARTS_READ_BACK, "reads_back"),
        check(FITTED, "estimates", f"within {RESIDUAL:g} standard deviations"),
        check(DEVIATIONS, "deviations"),
        Check(LARGEST, all(_largest(parts, at) == sd for at, sd in release.worst.items())),
        check(COUNTED, "counts"),
    ]


def verify_part(files: Files, release: PartedRelease, part: str) -> list[Check]:
    """What one part must satisfy, given what is printed of its top node."""
    mechanism = _rebuilt(release)
    piece = _published(mechanism, release, release.number(part))
    looked = look_into(piece, None)
    condition = f"given what is printed of {part}"
    largest = all(_largest([looked], at) <= sd for at, sd in release.worst.items())
    return [
        *looked_into(_public(files, release, mechanism), files),
        Check(DRAWN, look_below(piece).keeps),
        Check(PARTS_READ_BACK, looked.reads_back),
        Check(FITTED, looked.estimates, condition),
        Check(LARGEST, largest, f"or of cells outside {part}"),
        Check(COUNTED, looked.counts, condition),
    ]


def _rebuilt(release: PartedRelease) -> PartedTables:
    adjacency = release.guarantee.adjacency
    assert isinstance(adjacency, Adjacency)
    return PartedTables(adjacency, release.description)


def _public(files: Files, release: PartedRelease, made: PartedTables) -> Looks:
    """What does not depend on any draw below the parts."""
    return {
        READ_BACK: lambda: _reads_back(files, release),
        FILES: lambda: set(release.part_files) == _part_files(release),
        FOLLOWS: lambda: _as_drawn(made) and release.guarantee.follows_from(made.guarantee),
        **_design_looks(release, made.adjacency),
    }


def _as_drawn(made: PartedTables) -> bool:
    """Whether every law is that of the noise that is drawn, under its mechanism's name."""
    return all(
        measured_table
        == described(
            made.figures, measured_table.table, measured_table.family, measured_table.scale
        )
        for measured_table in made.description.measured
    )


def _part_files(release: PartedRelease) -> set[str]:
    """The files that a bundle must have in folders."""
    numbers = range(len(release.parts.labels))
    folders = (file_name(release.tables, at) for at in release.worst)
    return {f"{folder}/{part_name(number)}" for folder in folders for number in numbers}


def _published(made: PartedTables, release: PartedRelease, number: int) -> PublishedPart:
    folder = next(iter(release.part_files.values())).path.parents[1]
    return PublishedPart(number, made.part(number), made.below, folder)


def _drawn_above(release: PartedRelease, names: tuple[str, ...]) -> Any:
    """A table above the parts as drawn; None if it was not."""
    if names not in release.tables:
        return None
    return release.upper.get(release.tables.index(names), {}).get("count_as_drawn")


def _above_follows(release: PartedRelease, again: Mapping[int, Mapping[str, Any]]) -> PartFollows:
    """Whether what is printed above the parts is what is worked out again; that it reads back is
    looked into with the files.
    """
    pairs = [(columns, again[at]) for at, columns in release.upper.items()]
    return PartFollows(
        len(release.parts.labels),
        True,
        all(
            same_estimates(first["estimate"], second["estimate"], first["sd"])
            for first, second in pairs
        ),
        all(same_deviations(first["sd"], second["sd"]) for first, second in pairs),
        all(np.array_equal(first["count"], second["count"]) for first, second in pairs),
        {},
    )


def _largest(parts: list[PartFollows], at: int) -> float:
    """The largest standard deviation that these parts print of a table."""
    return max(part.worst[at] for part in parts)


def _telling(files: Files, step: str, total: int) -> Callable[[int], None]:
    """Tell which share of the parts is done."""
    return lambda done: files.progress(Advance(step, done / total))


# ---- what several tables say their noise was shared by -------------------------------------------


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
    kind, _, stated = aim.partition(": ")
    if kind == "accuracy":
        return all(_met(clause, tables, worst) for clause in stated.split("; "))
    if kind == "weights":
        table_sets = {frozenset(names) for names in tables}
        named = {frozenset(axes_of(match[1])) for match in _WEIGHT.finditer(stated)}
        return not _WEIGHT.sub("", stated) and named <= table_sets
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
        stated_weights = {frozenset(axes_of(match[1])): float(match[2]) for match in stated}
        return np.array([stated_weights.get(frozenset(names), 1.0) for names in tables]), False
    if aim.startswith("Weighted("):
        listed = aim.partition("absolute")[0]
        return np.array([float(weight) for weight in re.findall(_NUMBER, listed)]), "True" in aim
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
