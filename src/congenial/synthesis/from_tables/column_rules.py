"""How the columns of records from tables are cut into bins and written, as a plan says it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.data.rational import Number, exact, written
from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.synthesis.from_tables.private_quantiles import Cuts, QuantileBins
from congenial.synthesis.models.level_columns import ends

# ---- Values in bins ----
# Numbers inside bins: a density that follows the neighbours, and stated tails at open ends.
#
# Records are drawn by level; what people of a level have inside its interval was not measured.
# Inside a bin between neighbours the density is linear, with the slope of the two neighbours'
# heights, made smaller until its ends lie between the heights: a curve that rises over three bins
# rises inside the middle one, and it is flat at a peak. Its mass is that of the bin, so that
# counts by bin stay as they are. One whole number with a level of its own (a spike) is nobody's
# neighbour.
#
# Beyond the end of an open level numbers are exponential with a mean that the plan states;
# without one they are written as the end.

INSIDE = "a value in the interval; the density leans towards that of its neighbours"


@dataclass(frozen=True)
class StatedTail:
    """The means of the numbers beyond the two ends of a column; None: written as the end.

    They are public numbers, stated without looking at the data.
    """

    name: str
    top: Number | None = None
    bottom: Number | None = None

    def refuse(self, attribute: Attribute) -> None:
        """Refuse a mean for a level that is not open, or on the wrong side of its end."""
        open_ends: dict[str, Number | None] = {"top": None, "bottom": None}
        if attribute.top is not None:
            open_ends["top"] = attribute.edges[-1]
        if attribute.bottom is not None:
            open_ends["bottom"] = attribute.edges[0]
        for side, mean in (("top", self.top), ("bottom", self.bottom)):
            end = open_ends[side]
            if mean is None:
                continue
            if end is None:
                raise StructureError(
                    f"tails of {self.name!r}: it has no open class at the {side}.",
                    remedy=f"Leave {side} out, or give the column `{side}` in the schema.",
                )
            if (mean <= end) if side == "top" else (mean >= end):
                raise StructureError(
                    f"tails of {self.name!r}: a mean of {written(mean)} does not lie beyond the "
                    f"end {written(end)} at the {side}.",
                    remedy="Give the mean of the numbers beyond the end.",
                )

    @property
    def words(self) -> dict[tuple[str, str], str]:
        """How open levels are written, by column and side."""
        return {
            (self.name, side): f"exponential beyond the end, with a stated mean of {mean}"
            for side, mean in self.to_dict().items()
        }

    def to_dict(self) -> dict[str, str]:
        """Plain data."""
        ends = {"top": self.top, "bottom": self.bottom}
        return {side: written(mean) for side, mean in ends.items() if mean is not None}

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> StatedTail:
        """Inverse of `to_dict`."""
        means = {side: exact(mean, f"tails of {name!r}") for side, mean in data.items()}
        return cls(name, **means)


def values_by(
    tails: Mapping[str, StatedTail],
) -> Callable[[Attribute, Ints, np.random.Generator], Floats]:
    """What writes the numbers of a column of levels, given the stated tails by column."""

    def values(attribute: Attribute, codes: Ints, generator: np.random.Generator) -> Floats:
        return values_in_bins(attribute, codes, generator, tails.get(attribute.name))

    return values


def values_in_bins(
    attribute: Attribute,
    codes: Ints,
    generator: np.random.Generator,
    tail: StatedTail | None = None,
) -> Floats:
    """A number for every record's level, NaN where it has none; whole where all its numbers are.

    >>> income = Attribute("income", "bins", edges=(0, 10, 20), top="20+")
    >>> rng = np.random.default_rng(1)
    >>> found = values_in_bins(income, np.array([0, 1, 2]), rng, StatedTail("income", top=30))
    >>> found >= [0, 10, 20]
    array([ True,  True,  True])
    """
    low, high = ends(attribute)
    chance = generator.random(len(codes))
    tilt = tilts(np.bincount(codes, minlength=attribute.size), low, high, whole=attribute.whole)
    t = tilt[codes]
    place = 2 * chance / np.maximum(1 - t + np.sqrt((1 - t) ** 2 + 4 * t * chance), 1e-300)
    first, last = _beyond(low, high, chance, codes, tail)
    with np.errstate(invalid="ignore"):
        inside = np.isfinite(low[codes]) & np.isfinite(high[codes])
        width = np.where(inside, high[codes] - low[codes], 0.0)
        value = np.where(inside, low[codes] + width * place, np.where(np.isnan(first), last, first))
    value = np.floor(value) if attribute.whole else value
    return _within(value, low[codes], high[codes], whole=attribute.whole)


def tilts(counts: Ints, low: Floats, high: Floats, *, whole: bool) -> Floats:
    """How far each bin's density leans, -1 to 1: at x in (0, 1) it is 1 + tilt (2 x - 1).

    A bin with one neighbour takes the slope towards it; with none it is flat.
    """
    out = np.zeros(len(counts))
    with np.errstate(invalid="ignore"):
        width = high - low
    usable = np.isfinite(width) & ~((width == 1) & whole)
    height = np.where(usable, counts / np.where(usable, width, 1.0), 0.0)
    for at in np.flatnonzero(usable & (counts > 0)):
        sides = [
            (side, 2 * (height[at + side] - height[at]) / (width[at + side] + width[at]))
            for side in (-1, 1)
            if 0 <= at + side < len(counts) and usable[at + side]
        ]
        slopes = [side * slope for side, slope in sides]
        if not slopes or min(slopes) < 0 < max(slopes):
            continue
        limits = [2 * abs(height[at + side] - height[at]) / width[at] for side, _ in sides]
        slope = min(abs(float(np.mean(slopes))), *limits)
        lean = slope * width[at] / (2 * height[at])
        out[at] = np.sign(slopes[0] or slopes[-1]) * min(lean, 1.0)
    return out


def _beyond(
    low: Floats, high: Floats, chance: Floats, codes: Ints, tail: StatedTail | None
) -> tuple[Floats, Floats]:
    """Numbers of open levels: from the end at the top up, and from that at the bottom down."""
    top, bottom = (None, None) if tail is None else (tail.top, tail.bottom)
    far = -np.log1p(-chance)
    up, down = low[codes], high[codes]
    above = 0.0 if top is None else (float(top) - up) * far
    under = 0.0 if bottom is None else (down - float(bottom)) * far
    first = np.where(np.isinf(high[codes]) & np.isfinite(up), up + above, np.nan)
    last = np.where(np.isinf(low[codes]) & np.isfinite(down), down - under, np.nan)
    return first, last


def _within(value: Floats, low: Floats, high: Floats, *, whole: bool) -> Floats:
    """Rounding must not lead out of a level: its upper end belongs to the next one."""
    below = high - 1 if whole else np.nextafter(high, -np.inf)
    return np.asarray(np.where(np.isnan(value), value, np.maximum(np.minimum(value, below), low)))


# ---- Made up columns ----
# Columns that files of records need and that say nothing: identifiers and dates, made up.
#
# Nothing of the data enters: they are functions of a record's place in the file alone, and
# records are in random order. Identifiers say what they are ("made-up-000001"); that dates are
# made up is said in the data dictionary and in the report.

IDENTIFIER = "identifier"
LONGEST = 40  # characters of one that is made up
MADE_UP = "made up: says nothing about anybody"
SEED = 20261117  # public: which dates are written hides nothing


@dataclass(frozen=True)
class MadeUpColumn:
    """A column of identifiers, or of dates between two (both may occur)."""

    name: str
    between: tuple[date, date] | None = None

    def __post_init__(self) -> None:
        if self.between is not None and self.between[0] > self.between[1]:
            raise StructureError(
                f"made_up {self.name!r}: {self.between[0]} comes after {self.between[1]}.",
                remedy="Give the first date, then the last.",
            )

    def values(self, records: int) -> Any:
        """An Arrow array for so many records."""
        import pyarrow as pa

        if self.between is None:
            digits = max(6, len(str(records)))
            return pa.array([f"made-up-{at:0{digits}}" for at in range(1, records + 1)])
        days = (self.between[1] - self.between[0]).days + 1
        drawn = np.random.default_rng(SEED).integers(0, days, records)
        first = (self.between[0] - date(1970, 1, 1)).days
        return pa.array((first + drawn).astype(np.int32), type=pa.int32()).cast(pa.date32())

    @property
    def row(self) -> list[str]:
        """Its row of the data dictionary."""
        if self.between is None:
            return [self.name, "identifier", "", "", "", MADE_UP]
        first, last = self.between
        return [self.name, "date", "", str(first), "", f"{MADE_UP}; the last one is {last}"]

    def to_plain(self) -> str | list[str]:
        """As a plan writes it."""
        return IDENTIFIER if self.between is None else [str(day) for day in self.between]

    @classmethod
    def from_plain(cls, name: str, told: object) -> MadeUpColumn:
        """Inverse of `to_plain`."""
        if told == IDENTIFIER:
            return cls(name)
        try:
            first, last = (
                day if isinstance(day, date) else date.fromisoformat(day)
                for day in told  # type: ignore[attr-defined]
            )
        except (TypeError, ValueError):
            raise StructureError(
                f"made_up {name!r} is neither {IDENTIFIER!r} nor two dates.",
                remedy='Write "identifier", or ["2024-01-01", "2024-12-31"].',
            ) from None
        return cls(name, (first, last))


def with_made_up(table: Any, columns: Sequence[MadeUpColumn]) -> Any:
    """An Arrow table of records with the made-up columns after its own."""
    for column in columns:
        table = table.append_column(column.name, column.values(table.num_rows))
    return table


def read_made_up(data: Mapping[str, Any]) -> tuple[MadeUpColumn, ...]:
    """The columns that a plan or a law names."""
    return tuple(MadeUpColumn.from_plain(name, plain) for name, plain in data.items())


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
        for name, asked in (quantiles or {}).items():
            bins, *pairs = [asked] if isinstance(asked, int) else asked
            values = tuple(exact(value, f"spikes of {name!r}") for value in alone.pop(name, ()))
            cut.append(QuantileBins(name, bins, pairs[0] if pairs else bins, values))
        if alone:
            raise StructureError(
                f"spikes has {next(iter(alone))!r}, which has no quantiles.",
                remedy="A column with bins of its own has a spike by an edge on both sides of it.",
            )
        told_tails = tuple(StatedTail.from_dict(name, tail) for name, tail in (tails or {}).items())
        by = tuple((coarse or {}).items())
        return cls(by, tuple(cut), told_tails, read_made_up(made_up or {}))

    @property
    def in_pairs(self) -> dict[str, str]:
        """The names that columns are counted by in pairs, where these are others."""
        return dict(self.coarse) | {bins.name: bins.coarse for bins in self.quantiles}

    @property
    def steps(self) -> int:
        """Choices of a cut that one record is part of: the steps of all columns."""
        return sum(bins.steps for bins in self.quantiles)

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
        taken = {
            axis for attribute in schema.attributes for axis in (attribute.name, *attribute.coarser)
        }
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
        return {bins.name: bins.evenly(schema.attribute(bins.name)) for bins in self.quantiles}

    def to_dict(self) -> dict[str, Any]:
        """Plain data: nothing where nothing is asked for."""
        plain = {
            "coarse": dict(self.coarse),
            "quantiles": {bins.name: bins.to_dict() for bins in self.quantiles},
            "tails": {tail.name: tail.to_dict() for tail in self.tails},
            "made_up": {column.name: column.to_plain() for column in self.made_up},
        }
        return {key: value for key, value in plain.items() if value}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ColumnRules:
        """Inverse of `to_dict`."""
        cut = data.get("quantiles", {}).items()
        tails = data.get("tails", {}).items()
        return cls(
            tuple(data.get("coarse", {}).items()),
            tuple(QuantileBins.from_dict(name, bins) for name, bins in cut),
            tuple(StatedTail.from_dict(name, tail) for name, tail in tails),
            read_made_up(data.get("made_up", {})),
        )
