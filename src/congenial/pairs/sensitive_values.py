"""Partial synthesis: some columns are public person by person, the others are protected."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from congenial.data.arguments import PLAIN_NAMES, check_fields
from congenial.errors import FigureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.pairs.pairs import PublishedPairs


@dataclass(frozen=True)
class SensitiveValues(PublishedPairs):
    """Two datasets with the same public columns that differ in one person's other columns.

    The pairs of partial synthesis. `public` names the columns everybody may know of everybody; no
    published figure or bound may involve another column, so that a value can change on its own.
    One record differs, so the price is that of one replacement. Under `SemiAdjacent` with the same
    figures nobody's public columns are taken as known and a person may have any of them, which
    takes a* >= 2 records.
    """

    metric = "replace-one value"
    records = 1
    counted = " for whole records"

    published: Figures
    public: tuple[str, ...]

    def __post_init__(self) -> None:
        check_fields(self, FigureError, published=Figures, public=PLAIN_NAMES)
        named = {self.schema.attribute(name).name for name in self.public}
        if not 0 < len(named) < len(self.schema.names):
            raise FigureError(
                "all columns are public, or none is: some must be public and some protected.",
                remedy="Use ReplaceOne or SemiAdjacent, or leave a column to protect.",
            )
        for statement in (*self.published.equalities, *self.published.bounds):
            outside = set(Cells(self.schema, (statement,)).bases) - named
            if outside:
                raise FigureError(
                    f"'{statement.label}' is published and involves {sorted(outside)[0]!r}, which "
                    "is not public for each person.",
                    remedy="Use SemiAdjacent, which prices such figures.",
                )

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The columns that are protected."""
        return tuple(name for name in self.schema.names if name not in self.public)

    @property
    def subject(self) -> str:
        """The epsilon is about these values alone."""
        return f"per person, for {', '.join(self.sensitive)}"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """The public columns are not protected at all."""
        return (f"anybody's {', '.join(self.public)}, taken as known",)

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        impossible = self.published.zeros
        without = ", both without what is impossible by definition" if impossible else ""
        return (
            f"two datasets with the same {', '.join(self.public)} for everybody that differ in one "
            f"person's {', '.join(self.sensitive)}{without}"
        )

    @property
    def guesser(self) -> str:
        """Given the public columns a value can change alone."""
        return (
            f"knows everybody's {', '.join(self.public)}, knows the other people's "
            f"{', '.join(self.sensitive)} or believes that yours is independent of theirs, and "
            "thinks two values of yours equally likely"
        )

    def to_dict(self) -> dict[str, Any]:
        """Metric, records and words, with the public columns."""
        return {
            "metric": self.metric,
            "records": self.records,
            "public": list(self.public),
            "words": self.words,
        }

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> SensitiveValues:
        """Inverse of `to_dict`."""
        return cls(figures, tuple(data["public"]))


def values_given_public(
    figures: Figures, public: Collection[str], drawn: Collection[str]
) -> SensitiveValues | None:
    """The pairs in which one person's drawn columns differ, where `public` columns are copied.

    The columns that figures are about are taken as known too. None without public columns, and
    where a figure is about a drawn column, whose values then cannot change on their own.
    """
    about = Cells(figures.schema, (*figures.equalities, *figures.bounds)).bases
    if not public or set(about) & set(drawn):
        return None
    public_columns = {*public, *about}
    return SensitiveValues(
        figures, tuple(name for name in figures.schema.names if name in public_columns)
    )


def refuse_unpublished(figures: Figures, public: tuple[str, ...]) -> None:
    """Raise FigureError unless the joint table of the public columns is published."""
    whole = (("", 1),)
    tables = [set(s.by) for s in figures.equalities if s.terms == whole]
    if public and set(public) not in tables:
        raise FigureError(
            f"the columns {', '.join(public)} are copied from the data, but their table is not "
            "published.",
            remedy=f"Publish margin({', '.join(repr(name) for name in public)}).",
        )
