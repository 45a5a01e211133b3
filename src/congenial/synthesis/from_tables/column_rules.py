"""How the columns of records from tables are cut into bins and written, as a plan says it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from congenial.data.rational import exact
from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.synthesis.from_tables.made_up_columns import MadeUpColumn, read_made_up
from congenial.synthesis.from_tables.private_quantiles import Cuts, QuantileBins
from congenial.synthesis.from_tables.values_in_bins import StatedTail


@dataclass(frozen=True)
class ColumnRules:
    """`coarse`: columns that are counted by a coarser name in pairs, level by level alone.
    `quantiles`: columns that are cut at private quantiles. `tails`: what open levels hold.
    `made_up`: columns that say nothing, written after the others.
    """

    coarse: tuple[tuple[str, str], ...] = ()
    quantiles: tuple[QuantileBins, ...] = ()
    tails: tuple[StatedTail, ...] = ()
    made_up: tuple[MadeUpColumn, ...] = ()

    @classmethod
    def of(
        cls,
        coarse: Mapping[str, str] | None = None,
        quantiles: Mapping[str, int | Sequence[int]] | None = None,
        spikes: Mapping[str, Sequence[Any]] | None = None,
        tails: Mapping[str, Mapping[str, Any]] | None = None,
        made_up: Mapping[str, Any] | None = None,
    ) -> ColumnRules:
        """From the keys of a plan; `quantiles` of a column are one number, or one for pairs too."""
        alone = dict(spikes or {})
        cut = []
        for name, told in (quantiles or {}).items():
            bins, *pairs = [told] if isinstance(told, int) else told
            values = tuple(exact(one, f"spikes of {name!r}") for one in alone.pop(name, ()))
            cut.append(QuantileBins(name, bins, pairs[0] if pairs else bins, values))
        if alone:
            raise StructureError(
                f"spikes has {next(iter(alone))!r}, which has no quantiles.",
                remedy="A column with bins of its own has a spike by an edge on both sides of it.",
            )
        told_tails = tuple(StatedTail.from_dict(name, one) for name, one in (tails or {}).items())
        by = tuple((coarse or {}).items())
        return cls(by, tuple(cut), told_tails, read_made_up(made_up or {}))

    @property
    def in_pairs(self) -> dict[str, str]:
        """The names that columns are counted by in pairs, where these are others."""
        return dict(self.coarse) | {one.name: one.coarse for one in self.quantiles}

    @property
    def steps(self) -> int:
        """Choices of a cut that one record is part of: the steps of all columns."""
        return sum(one.steps for one in self.quantiles)

    def refuse(self, figures: Figures, names: Sequence[str]) -> None:
        """Refuse rules that do not fit the columns, before any data are read."""
        schema: Schema = figures.schema
        for name, axis in self.coarse:
            if name not in names or schema.axis(axis).base != name or axis == name:
                raise StructureError(
                    f"{axis!r} is not a coarser name of a column {name!r} of the records.",
                    remedy="Name one that the schema has under `within` of this column.",
                )
        rules: list[QuantileBins | StatedTail] = [*self.quantiles, *self.tails]
        for rule in rules:
            if rule.name not in names:
                raise StructureError(
                    f"{rule.name!r} has quantiles or tails but is not synthesised.",
                    remedy="Name it under synthesise.",
                )
            rule.refuse(schema.attribute(rule.name))
        for cut in self.quantiles:
            if cut.name in dict(self.coarse):
                raise StructureError(
                    f"{cut.name!r} has quantiles, so it cannot use a coarser name of the schema.",
                    remedy="Give two numbers of quantiles, alone and in pairs: [32, 8].",
                )
            self._refuse_figures(cut, figures)
        taken = {axis for one in schema.attributes for axis in (one.name, *one.coarser)}
        for column in self.made_up:
            if column.name in taken:
                raise StructureError(
                    f"made_up {column.name!r} is a column of the schema.",
                    remedy="Synthesise it, or give the made-up column another name.",
                )

    def _refuse_figures(self, cut: QuantileBins, figures: Figures) -> None:
        """Bins that are drawn could not keep what is published about a column."""
        for statement in figures.statements:
            if cut.name in Cells(figures.schema, (statement,)).bases:
                raise StructureError(
                    f"'{statement.label}' is about {cut.name!r}, whose classes are drawn as "
                    "quantiles and could not keep it.",
                    remedy=f"Give {cut.name!r} bins in the schema (edges), and no quantiles.",
                )

    def evenly(self, schema: Schema) -> dict[str, Cuts]:
        """Cuts that know nothing of the data, for checks and rehearsals."""
        return {one.name: one.evenly(schema.attribute(one.name)) for one in self.quantiles}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: nothing where nothing is asked for."""
        told = {
            "coarse": dict(self.coarse),
            "quantiles": {one.name: one.to_dict() for one in self.quantiles},
            "tails": {one.name: one.to_dict() for one in self.tails},
            "made_up": {one.name: one.to_plain() for one in self.made_up},
        }
        return {key: value for key, value in told.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnRules:
        """Inverse of `to_dict`."""
        cut = data.get("quantiles", {}).items()
        tails = data.get("tails", {}).items()
        return cls(
            tuple(data.get("coarse", {}).items()),
            tuple(QuantileBins.from_dict(name, one) for name, one in cut),
            tuple(StatedTail.from_dict(name, one) for name, one in tails),
            read_made_up(data.get("made_up", {})),
        )
