"""What one process checks of one part of a published nation, from its files alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.workload import Ints
from congenial.figures.sum_ranges import SumRanges, table_ranges
from congenial.figures.support import support
from congenial.mechanisms.parted_steps import LEVEL, numbers, part_folder, part_name
from congenial.mechanisms.parted_tables import Share
from congenial.mechanisms.tables_files import TableFile
from congenial.tables.intervals import ends
from congenial.tables.part_estimator import Above, Below, PartEstimates

RESIDUAL = 1e-6  # of a standard deviation, by which recomputed estimates may differ


@dataclass(frozen=True, eq=False)
class PublishedPart:
    """One part of a bundle."""

    number: int
    share: Share
    below: tuple[int, ...]
    folder: Path

    @property
    def finest(self) -> int:
        """The table of all cells."""
        work = self.share.work
        return next(at for at in self.below if work.margins[at].size == work.size)

    def form(self, at: int) -> TableFile:
        """The form of a table's file in this part."""
        return TableFile(self.share.schema, self.share.tables, at, True, at in self.share.drawn)

    def content(self, at: int) -> bytes:
        """A table's file."""
        place = part_folder(self.share.tables, at)
        return (self.folder / place / part_name(self.number)).read_bytes()

    def columns(self, at: int) -> dict[str, Any]:
        """The numbers of a table; BundleError if the file is another."""
        form = self.form(at)
        return form.read({f"{form.name}.parquet": self.content(at)})

    def written(self, at: int, told: dict[str, Any]) -> bool:
        """Whether a table's file holds these numbers with their labels, in order, and nothing else.

        Its digest binds its bytes; they depend on the version of the library that wrote them.
        """
        form = self.form(at)
        return bool(form.expected.read(self.content(at)).equals(form.table(told)))

    def drawn(self) -> list[Any]:
        """The tables as drawn; None for those that are not drawn in the part."""
        values: list[Any] = [None] * len(self.share.tables)
        for at in self.share.drawn:
            values[at] = self.columns(at)["count_as_drawn"]
        return values


@dataclass(frozen=True, eq=False)
class PartSays:
    """What a part says of its top node, and whether its draws keep the figures."""

    number: int
    below: Below
    keeps: bool


@dataclass(frozen=True)
class PartHolds:
    """Whether a part's files are as written, and follow from its draws and its top node.

    `worst`: the largest printed standard deviation of each table.
    """

    number: int
    written: bool
    estimates: bool
    deviations: bool
    counts: bool
    worst: Mapping[int, float]


def says(part: PublishedPart) -> PartSays:
    """Going up."""
    values, share = part.drawn(), part.share
    keeps = all(support(share.figures, share.tables[at]).agrees(values[at]) for at in share.drawn)
    return PartSays(part.number, share.part.below(share.part.upward(values)), keeps)


def holds(part: PublishedPart, above: Above | None) -> PartHolds:
    """Going down; None: from what is printed of the top node, and with the deviations printed."""
    values, share = part.drawn(), part.share
    settled = share.part.settled(share.part.upward(values), above or printed_top(part))
    written, estimates, known = True, True, True
    counts: dict[int, Ints] = {}
    worst: dict[int, float] = {}
    for at in part.below:
        told = part.columns(at)
        names = share.tables[at]
        deviations = settled.deviations(names) if above is not None else told["sd"]
        given = (settled.fitted.table(names), deviations, settled.counts(names))
        again = numbers(*given, values[at])
        written &= part.written(at, told)
        estimates &= close(told, again, table_ranges(share.figures, names))
        known &= bool(np.allclose(told["sd"], again["sd"], rtol=RESIDUAL, atol=1e-9))
        counts[at], worst[at] = told["count"], float(told["sd"].max(initial=0.0))
    whole = fitted(part, settled, counts)
    return PartHolds(part.number, written, estimates, known, whole, worst)


def fitted(part: PublishedPart, settled: PartEstimates, counts: Mapping[int, Ints]) -> bool:
    """Whether printed counts are those of the fit, or as near with the same sums.

    Estimates that are worked out elsewhere differ in their last bits, so that a tie can fall
    another way.
    """
    share = part.share
    if all(np.array_equal(told, settled.counts(share.tables[at])) for at, told in counts.items()):
        return True
    finest = part.finest
    names, told = share.tables[finest], counts[finest]
    whole = replace(settled, cells=_by_attribute(part, names, told))
    same = all(np.array_equal(counts[at], whole.counts(share.tables[at])) for at in counts)
    keeps = told.min() >= 0 and support(share.figures, names).agrees(told)
    return same and keeps and settled.fit(whole.cells)


def close(told: dict[str, Any], again: dict[str, Any], ranges: SumRanges) -> bool:
    """Whether estimates are the same up to rounding, and intervals those of what is printed.

    `ranges`: what can be.
    """
    off = np.abs(told["estimate"] - again["estimate"])
    same = bool(np.all(off <= RESIDUAL * told["sd"] + 1e-9 * (1 + np.abs(again["estimate"]))))
    low, high = ends(told["estimate"], told["sd"], LEVEL, told["count"], ranges)
    return same and np.array_equal(told["low"], low) and np.array_equal(told["high"], high)


def printed_top(part: PublishedPart) -> Above:
    """What is printed of the part's top node, as if it had come from above.

    Its covariances are not printed and are left at zero: standard deviations cannot be checked.
    """
    estimator = part.share.part
    work, inverse, top = estimator.work, estimator.inverse, estimator.top
    told, names = part.columns(part.finest), part.share.tables[part.finest]
    root, counts = (
        top.totals(_by_attribute(part, names, told[column])) for column in ("estimate", "count")
    )
    moved = (root - work.start_totals(top))[None]
    means, covariances = {}, {}
    for contrasts in inverse.parts:
        here = inverse.contrast(top, moved, contrasts)
        means[contrasts] = here[:, 0] * estimator.separation.summed(top, contrasts)
        covariances[contrasts] = np.zeros((here.shape[2], here.shape[2]))
    return Above(means, covariances, counts.reshape(-1).astype(np.int64))


def _by_attribute(part: PublishedPart, names: tuple[str, ...], values: Any) -> Any:
    """A table of all cells with one axis per attribute, in the order of the cells."""
    work, schema = part.share.work, part.share.schema
    places = [work.names.index(schema.axis(name).base) for name in names]
    return np.transpose(values, np.argsort(places))
