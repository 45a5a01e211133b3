"""Numbers inside bins: a density that follows the neighbours, and stated tails at open ends.

Records are drawn by level; what people of a level have inside its interval was not measured. Inside
a bin between neighbours the density is linear, with the slope of the two neighbours' heights, made
smaller until its ends lie between the heights: a curve that rises over three bins rises inside the
middle one, and it is flat at a peak. Its mass is that of the bin, so that counts
by bin stay as they are. One whole number with a level of its own (a spike) is nobody's neighbour.

Beyond the end of an open level numbers are exponential with a mean that the plan states; without
one they are written as the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.data.attribute import Attribute
from congenial.data.rational import Number, exact, written
from congenial.errors import StructureError
from congenial.synthesis.models.level_columns import ends
from congenial.synthesis.record_model import Floats, Ints

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
        told = {"top": self.top, "bottom": self.bottom}
        return {side: written(mean) for side, mean in told.items() if mean is not None}

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
    found = np.zeros(len(counts))
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
        found[at] = np.sign(slopes[0] or slopes[-1]) * min(lean, 1.0)
    return found


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
