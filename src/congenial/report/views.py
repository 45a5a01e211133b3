"""What a report shows of a release: sums with intervals, a piece of the table, the noise.

Numbers only, all of them released or public; `pictures` draws them and `values_section` puts them
into words and tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from congenial.data.table import select
from congenial.errors import PredicateError
from congenial.figures.support import FROZEN, LOOSE, support
from congenial.mechanisms.error_laws import SimulatedLaw
from congenial.mechanisms.single_table_release import Release, cell_index

LEVEL = 0.90
MOST_LEVELS = 40  # levels of an axis that a picture can still label
MOST_PANELS = 4
MOST_CELLS = 200_000  # intervals of single cells are listed up to this size of table

NOISY, EXACT = f"protected, with {LEVEL:.0%} interval", "published exactly"
BARE = "protected"  # counts whose error has no law that holds for every table
NO_SUM = "in no published sum"
SUM = "sum published exactly"


@dataclass(frozen=True)
class Shown:
    """One released sum: labels, value as published and as drawn, interval, and whether it is exact.

    `exact` means that its noise is zero for sure, not that the interval happens to have no width;
    `simulated`, that the interval rests on draws of the noise.
    """

    labels: tuple[str, ...]
    value: float
    drawn: float
    low: float
    high: float
    exact: bool
    simulated: bool = False


def shown(release: Release, names: Sequence[str]) -> list[Shown]:
    """The cells of the margin over `names` with their intervals, in table order."""
    names = tuple(names)
    if not release.mechanism.additive:
        return _bare(release, names)
    intervals = release.intervals(names, LEVEL)
    values = np.asarray(release.margin(*names)).reshape(-1).tolist()
    index = np.broadcast_to(cell_index(release.schema, release.table, names), release.values.shape)
    laws, of_sum = release.mechanism.different_error_laws(index, len(values))
    exact = np.array([law.variance == 0 for law in laws])[of_sum].tolist()
    drawn = np.array([isinstance(law, SimulatedLaw) for law in laws])[of_sum].tolist()
    labels = product(*(release.schema.shown_levels(name) for name in names))
    columns = [intervals[name].to_pylist() for name in ("estimate", "low", "high")]
    return [
        Shown(told, value, estimate, low, high, sure, simulated)
        for told, value, sure, simulated, (estimate, low, high) in zip(
            labels, values, exact, drawn, zip(*columns, strict=True), strict=True
        )
    ]


def _bare(release: Release, names: tuple[str, ...]) -> list[Shown]:
    """The same where errors have no law that holds for every table: values without intervals."""
    values = np.asarray(release.margin(*names))
    index = np.broadcast_to(cell_index(release.schema, release.table, names), release.values.shape)
    known = support(release.description.support, release.table)
    fixed = known.fixes(index, values.size).tolist()
    levels = [release.schema.shown_levels(name) for name in names]
    found = []
    for at, exact in zip(np.ndindex(*values.shape), fixed, strict=True):
        labels = tuple(shown[i] for shown, i in zip(levels, at, strict=True))
        value = values[at].item()
        found.append(Shown(labels, value, value, value, value, exact))
    return found


@dataclass(frozen=True)
class View:
    """A flat piece of the table: an axis in rows, perhaps one in panels, the others held."""

    rows: str
    panels: str | None
    held: tuple[tuple[str, int], ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The axes in sight."""
        return (self.rows,) if self.panels is None else (self.rows, self.panels)

    @property
    def words(self) -> str:
        """The axes in sight, as a clause: "sex and age"."""
        return " and ".join(reversed(self.names))


def one_way(release: Release) -> list[str]:
    """Axes whose margin is worth a picture: 2 to 40 levels, at most three."""
    axes = release.schema.axes(release.table)
    return [axis.name for axis in axes if 2 <= len(axis.levels) <= MOST_LEVELS][:3]


def view(release: Release) -> View | None:
    """The piece of the table that shows single cells best, or None when every axis is too long.

    Rows: the longest axis that fits, numeric ones first. Panels: an axis of two to four levels. The
    rest is held where the released total is the median: neither the largest piece nor an empty one.
    """
    axes = {axis.name: len(axis.levels) for axis in release.schema.axes(release.table)}
    fitting = [name for name, levels in axes.items() if 2 <= levels <= MOST_LEVELS]
    if not fitting:
        return None
    rows = max(fitting, key=lambda name: (ordered(release, name), axes[name]))
    others = [name for name in fitting if name != rows and axes[name] <= MOST_PANELS]
    panels = min(others, key=lambda name: axes[name]) if others else None
    rest = tuple(name for name in axes if name not in (rows, panels))
    totals = np.asarray(release.margin(*rest))
    order = np.argsort(totals.reshape(-1), kind="stable")
    middle = np.unravel_index(int(order[len(order) // 2]), totals.shape) if rest else ()
    return View(rows, panels, tuple(zip(rest, map(int, middle), strict=True)))


def ordered(release: Release, name: str) -> bool:
    """Whether the axis is numeric, so that its levels have an order of their own."""
    axis = release.schema.axis(name)
    return axis.name == axis.base and release.schema.attribute(name).kind != "categorical"


def held_words(release: Release, piece: View) -> str:
    """Where the other axes are held: "county = Adams"."""
    schema = release.schema
    return ", ".join(
        f"{schema.shown(name)} = {schema.shown_levels(name)[i]}" for name, i in piece.held
    )


def chosen_words(release: Release, piece: View) -> str:
    """Why this piece, where there were more than two to choose from."""
    pieces = release.schema.size(tuple(name for name, _ in piece.held))
    return ", chosen because its released total is the median" if pieces > 2 else ""


def sums_words(release: Release, kinds: Sequence[str]) -> str:
    """What the colours of single cells say about sums; `kinds`: what the legend says."""
    if any(SUM in kind for kind in kinds):
        return "Where the legend names a published sum, counts of that colour add up to it."
    if release.description.support.equalities:
        return "The counts agree with every published sum."
    return "The noise is independent from cell to cell." if release.mechanism.additive else ""


def piece_of(release: Release, piece: View) -> tuple[list[Shown], list[str]]:
    """The cells in sight, rows by panels, and the published sum each belongs to."""
    table = release.table
    cells = np.arange(release.values.size).reshape(release.values.shape)
    held = dict(piece.held)
    seen = cells[tuple(held.get(name, slice(None)) for name in table)]
    free = [name for name in table if name not in held]
    seen = np.transpose(seen, [free.index(name) for name in piece.names]).reshape(-1)
    every = shown(release, table)
    at = [table.index(name) for name in piece.names]
    rows = [
        replace(one, labels=tuple(one.labels[i] for i in at))
        for one in (every[cell] for cell in seen)
    ]
    return rows, _membership(release, seen)


def _membership(release: Release, seen: Any) -> list[str]:
    """For each cell in sight, in words, what is published about the sum it belongs to."""
    known = support(release.description.support, release.table)
    labels = known.labels.reshape(-1)[seen]
    inside = np.bincount(labels[labels >= 0], minlength=known.groups)
    counted = _counted(release, seen) if known.ties else []

    def words(i: int, label: int) -> str:
        if label == LOOSE:
            return NO_SUM
        if label == FROZEN or (known.sizes[label] == 1 and not known.tied[label]):
            return EXACT
        if known.tied[label]:
            return counted[i]
        if known.totals is not None and inside[label] == known.sizes[label]:
            return f"{known.sizes[label]:,} cells; {SUM}: {known.totals[label]:,}"
        return "part of a larger published sum"

    kinds = [words(i, int(label)) for i, label in enumerate(labels)]
    if len(set(kinds)) > MOST_PANELS:
        return [kind if kind in (EXACT, NO_SUM) else "part of a published sum" for kind in kinds]
    return kinds


def _counted(release: Release, seen: Any) -> list[str]:
    """For each cell in sight the figures that count it, those that count every cell first."""
    found: list[list[str]] = [[] for _ in seen]
    everywhere = []
    for statement in release.description.support.equalities:
        weight = np.zeros(release.values.shape, dtype=np.int64)
        try:
            for condition, times in statement.terms:
                weight += times * select(condition, release.schema, release.table)
        except PredicateError:  # the table does not show it
            continue
        if np.all(weight):
            everywhere.append(statement.label)
            continue
        for i in np.flatnonzero(weight.reshape(-1)[seen]):
            found[i].append(statement.label)
    told = (", ".join([*everywhere, *labels]) for labels in found)
    return [f"counted in: {names or 'other sums'}" for names in told]


@dataclass(frozen=True)
class CellNoise:
    """Law of the noise in the noisiest cell: mass at whole numbers, or a density on a grid."""

    at: Any
    weight: Any
    whole: bool
    standard_deviation: float
    half_width: float
    simulated: bool = False


def cell_noise(release: Release) -> CellNoise:
    """The law of the noise in a cell that has as much as any."""
    mechanism, cells = release.mechanism, release.values.size
    laws = mechanism.error_laws(np.arange(cells).reshape(release.values.shape), cells)
    law: Any = max({id(one): one for one in laws}.values(), key=lambda one: one.variance)
    deviation, half = law.variance**0.5, float(law.interval(LEVEL))
    reach = 4 * deviation + 1
    if release.description.continuous:
        at = np.linspace(-reach, reach, 401)
        scale = float(release.description.scale)
        if release.description.family == "laplace":
            weight = scale / 2 * np.exp(-scale * np.abs(at))
        else:
            weight = np.exp(-(at**2) / (2 * scale)) / np.sqrt(2 * np.pi * scale)
        return CellNoise(at, weight, False, deviation, half)
    at = np.arange(law.lo, law.lo + len(law.probs))
    near = np.abs(at) <= reach
    if not hasattr(law, "basis"):
        return CellNoise(at[near], law.probs[near], True, deviation, half)
    both = dict(zip(at.tolist(), law.probs.tolist(), strict=True))  # the law is symmetric
    even = np.array([(both.get(u, 0.0) + both.get(-u, 0.0)) / 2 for u in _between(at[near])])
    return CellNoise(_between(at[near]), even, True, deviation, half, simulated=True)


def _between(at: Any) -> Any:
    """The whole numbers up to the largest in size, on both sides."""
    far = int(np.abs(at).max(initial=0))
    return np.arange(-far, far + 1)
