"""Whose content a ledger counts: one record, rows that come and go, or the rows of a unit; and how
that is changed.

The unit stands in the first event. An owner may change it later by an event of its own, to one that
promises more: more rows (`max_rows`), or the rows of a unit, which change while published figures
stay, in place of single records or of rows that come and go. Everything counted so far is then
priced again over the new pairs, by the joint supremum; no earlier price is multiplied.

A release that replaces records has the number of rows in its noise: it can be priced for units only
where the figures tell that number. A unit is never made smaller: what was promised stays counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from congenial.data.schema import Schema
from congenial.errors import LedgerError
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows

Unit = Literal["replace-one", "add-remove", "several rows"]
# From which kind of unit to which a ledger may go on.
_STRONGER: dict[Unit, tuple[Unit, ...]] = {
    "replace-one": ("several rows",),
    "add-remove": ("add-remove", "several rows"),
    "several rows": ("several rows",),
}


@dataclass(frozen=True)
class CountedUnit:
    """What one protected unit is; `max_rows` is None where it is one record that is replaced.

    >>> CountedUnit.of(None, 3).words, CountedUnit.of("several rows", 3).figures_kept
    ('add-remove with max_rows = 3', True)
    """

    kind: Unit
    max_rows: int | None

    @classmethod
    def of(cls, kind: Unit | None, max_rows: int | None) -> CountedUnit:
        """The unit that is asked for: `max_rows` alone means rows that come and go."""
        if kind not in (*get_args(Unit), None):
            units = ", ".join(f"'{unit}'" for unit in get_args(Unit))
            raise LedgerError(f"adjacency '{kind}' is not known.", remedy=f"Use one of {units}.")
        if kind == "replace-one" and max_rows is not None:
            raise LedgerError(
                f"max_rows = {max_rows} has no meaning under replace-one.",
                remedy="Use adjacency 'add-remove', or drop max_rows.",
            )
        if kind == "several rows" and max_rows is None:
            raise LedgerError(
                "max_rows is missing: how many rows a unit may have.", remedy="Give max_rows."
            )
        if kind is None:
            kind = "replace-one" if max_rows is None else "add-remove"
        return cls(kind, 1 if kind == "add-remove" and max_rows is None else max_rows)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> CountedUnit:
        """Inverse of `to_dict`."""
        return cls.of(data["kind"], data["max_rows"])

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as events have it."""
        return {"kind": self.kind, "max_rows": self.max_rows}

    @property
    def figures_kept(self) -> bool:
        """Whether the pairs agree with the published figures, of which there may be some."""
        return self.kind != "add-remove"

    @property
    def words(self) -> str:
        """The unit of protection in words."""
        if self.max_rows is None:
            return "replace-one"
        return f"{self.kind} with max_rows = {self.max_rows}"

    def adjacency(self, figures: Figures) -> Adjacency:
        """The pairs that must look alike, given what is published."""
        if self.max_rows is None:
            return SemiAdjacent(figures)
        if self.kind == "add-remove":
            return AddRemove(figures.schema, self.max_rows)

        return SeveralRows.given(figures, self.max_rows)

    def may_become(self, other: CountedUnit) -> bool:
        """Whether a ledger that counts this may go on with another: one that promises more."""
        wider = (other.max_rows or 1) >= (self.max_rows or 1)
        return other == self or (other.kind in _STRONGER[self.kind] and wider)

    def changed(self, payload: Mapping[str, Any]) -> CountedUnit:
        """The unit after an event that changes it; ValueError for one that is none."""
        new = CountedUnit.from_dict(payload)
        if not isinstance(new.max_rows, int) or not self.may_become(new):
            raise ValueError(new.words)
        return new

    def remedy(self, other: CountedUnit, where: str) -> str:
        """What to do where the ledger at `where` counts this and another unit is asked for."""
        if self.may_become(other):
            return (
                f"Let an owner change it: `congenial ledger unit {where} '{other.kind}' --max-rows "
                f"{other.max_rows}` prices again what is spent. Or keep the unit."
            )
        if (self.kind, other.kind) == ("several rows", "add-remove"):
            return (
                f"Write max_rows = {self.max_rows} and name under [publish] what is published; a "
                "new population needs a new ledger."
            )
        return "Keep the unit; a new population needs a new ledger."


def opening_unit(schema: Schema, kind: Unit | None, max_rows: int | None) -> dict[str, Any]:
    """The unit of the first event; AddRemove checks the number of rows."""
    unit = CountedUnit.of(kind, max_rows)
    if unit.max_rows is not None:
        AddRemove(schema, unit.max_rows)
    return unit.to_dict()
