"""The numbers behind a column's levels: intervals, values for predictors, values inside a level."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.errors import SchemaError


def ends(attribute: Attribute) -> tuple[Floats, Floats]:
    """Lower and upper end of each level's interval; infinite where open, NaN without a number."""
    low = np.full(attribute.size, np.nan)
    high = np.full(attribute.size, np.nan)
    for at, (first, last) in enumerate(attribute.intervals):
        low[at] = -np.inf if first is None else float(first)
        high[at] = np.inf if last is None else float(last)
    return low, high


def whole_ends(attribute: Attribute) -> tuple[Floats, Floats]:
    """First and last whole number of each level; last < first for a level that holds none."""
    low, high = ends(attribute)
    return np.ceil(low), np.ceil(high) - 1


def numbers(attribute: Attribute) -> Floats:
    """One number per level, for a predictor: the middle, or the finite end of an open interval.

    A categorical attribute of two levels counts as 0 and 1; with more levels it has no numbers.
    """
    if attribute.kind == "categorical":
        if attribute.size == 2:
            return np.array([0.0, 1.0])
        raise SchemaError(
            f"attribute {attribute.name!r} has {attribute.size} levels and no numbers to regress "
            "on.",
            remedy="Use a model with a parameter per context, or a predictor with numbers.",
        )
    low, high = ends(attribute)
    if np.isnan(low).any():
        raise SchemaError(
            f"attribute {attribute.name!r} has a level without a number.",
            remedy="Regress on an attribute all of whose levels are numbers.",
        )
    low = np.where(np.isinf(low), high, low)
    high = np.where(np.isinf(high), low, high)
    return low if attribute.kind == "integers" else (low + high) / 2


def values_within(attribute: Attribute, codes: Ints, generator: np.random.Generator) -> Floats:
    """A number uniform inside each level's interval, the last one at the finite end of an open one,
    NaN without.

    Whole numbers where the attribute's numbers are whole.
    """
    low, high = ends(attribute)
    below = high - 1 if attribute.whole else np.nextafter(high, -np.inf)  # high is the next level's
    low = np.where(np.isinf(low), below, low)
    high = np.where(np.isinf(high), low, high)
    first, last = low[codes], high[codes]
    value = first + (last - first) * generator.random(len(codes))
    value = np.where(last > first, np.minimum(value, np.nextafter(last, -np.inf)), value)
    return np.floor(value) if attribute.whole else value


def log_normal_mass(a: Floats, b: Floats) -> Floats:
    """log P(a < Z <= b) of a standard normal Z, accurate in both tails; -inf where b <= a."""
    flip = a > 0
    left, right = np.where(flip, -b, a), np.where(flip, -a, b)
    with np.errstate(divide="ignore", invalid="ignore"):
        top, bottom = log_ndtr(right), log_ndtr(left)
        gap = np.where(right > left, bottom - top, 0.0)
        return np.asarray(np.where(right > left, top + np.log1p(-np.exp(gap)), -np.inf))
