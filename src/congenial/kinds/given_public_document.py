"""The report of a table released given public information: counts, both promises, the law.

Everything on the page is released or public.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any, Self

from congenial._notebook import Picture
from congenial.data.rational import fraction
from congenial.mechanisms.wasserstein.given_public_release import VALUES, ValuesRelease
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.privacy.tradeoff import Pure
from congenial.report.page import PageColumn, PageTable, folded_table
from congenial.report.release_page import Facts, Headline, release_page
from congenial.report.svg import IntervalRow, interval_rows
from congenial.transport.delta_z import meaning

MOST_CELLS = 40  # that can be labelled one under the other
CAPTIONS = (  # without and with earlier counts
    "The released counts.",
    "The released counts, and the earlier public counts that they were drawn towards.",
)
BASES = {
    "naive": "all tables of whole numbers, equally likely",
    "congenial": "tables of counts with the published sums, equally likely",
    "prior-congenial": "tables of counts with the published sums, weighted by the earlier counts "
    "(Dirichlet-multinomial)",
}


@dataclass(frozen=True)
class Earlier:
    """The public counts a base measure leans on, in the order of the cells, and their weight."""

    file: str
    counts: tuple[int, ...]
    alpha: Fraction
    kappa: Fraction

    @property
    def words(self) -> str:
        """The Dirichlet parameter of a cell."""
        return (
            f"alpha (earlier count + kappa), alpha = {number(self.alpha)}, kappa = "
            f"{number(self.kappa)}, earlier counts from {self.file}"
        )

    def to_dict(self) -> dict[str, Any]:
        """As plain data, for the head of the page."""
        return {
            "file": self.file,
            "counts": list(self.counts),
            "alpha": str(self.alpha),
            "kappa": str(self.kappa),
        }

    @classmethod
    def from_dict(cls, basis: dict[str, Any]) -> Self:
        """Inverse of `to_dict`."""
        counts = tuple(int(count) for count in basis["counts"])
        return cls(str(basis["file"]), counts, fraction(basis["alpha"]), fraction(basis["kappa"]))


@dataclass(frozen=True)
class GivenPublicReport:
    """What a report needs besides the draw: earlier counts, and the promise to anybody at all."""

    persons: Guarantee
    earlier: Earlier | None = None

    def render(self, release: ValuesRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        tradeoff = release.guarantee.tradeoff
        return release_page(
            "given_public.html",
            release,
            promise,
            basis=None if self.earlier is None else self.earlier.to_dict(),
            headlines=self._headlines(release),
            picture=self._picture(release),
            counts=self._counts(release),
            belief=meaning(tradeoff.eps) if isinstance(tradeoff, Pure) else "",
            persons=self.persons,
            law=self._law(release),
        )

    def _headlines(self, release: ValuesRelease) -> list[Headline]:
        """The largest counts."""
        pairs = zip(_cells(release), release.values, strict=True)
        largest = sorted(pairs, key=lambda pair: -pair[1])[:2]
        return [Headline(", ".join(cell), f"{n:,}", "a draw, not the truth") for cell, n in largest]

    def _counts(self, release: ValuesRelease) -> PageTable:
        columns = [
            *(PageColumn(release.schema.shown(name)) for name in release.table),
            PageColumn("released count", number=True),
        ]
        rows = [[*cell, n] for cell, n in zip(_cells(release), release.values, strict=True)]
        if self.earlier is not None:
            columns.append(PageColumn(f"in {self.earlier.file}", number=True))
            rows = [[*row, count] for row, count in zip(rows, self.earlier.counts, strict=True)]
        return folded_table(columns, rows, of=len(rows), file=VALUES)

    def _picture(self, release: ValuesRelease) -> Picture | None:
        """Counts by cell; none where cells are too many to be labelled."""
        labels = [", ".join(cell) for cell in _cells(release)]
        if not 1 < len(labels) <= MOST_CELLS:
            return None
        before = [None] * len(labels) if self.earlier is None else self.earlier.counts
        rows = [
            IntervalRow(label, count, count, count, before=earlier)
            for label, count, earlier in zip(labels, release.values, before, strict=True)
        ]
        public = "" if self.earlier is None else f"public before: {self.earlier.file}"
        words = CAPTIONS[self.earlier is not None]
        return Picture(interval_rows(rows, "released, with noise", public), words)

    def _law(self, release: ValuesRelease) -> Facts:
        law, base = release.description.law, release.base
        pairs: Any = release.guarantee.adjacency
        earlier: Facts = []
        if self.earlier is not None:
            earlier = [("Dirichlet parameter of a cell", self.earlier.words)]
        return [
            ("Taken as known", "; ".join(pairs.facts) or "nothing"),
            ("Base measure nu", f"{base.kind}: {BASES[base.kind]}"),
            *earlier,
            ("Loss", law["loss"]),
            ("Rate", number(release.rate)),
            ("Factor for the normaliser", law["factor"]),
            ("Delta_z", f"{law['delta_z']['value']:g} in {law['delta_z']['measure']}"),
            ("Sampler", law["sampler"]),
            ("One replaced record", f"epsilon = {number(release.description.epsilon)}"),
        ]


def _cells(release: ValuesRelease) -> list[tuple[str, ...]]:
    """The labels of the cells, in the order of the counts."""
    return list(product(*(release.schema.shown_levels(name) for name in release.table)))
