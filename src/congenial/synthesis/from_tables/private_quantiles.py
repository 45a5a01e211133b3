"""Bins of a numeric column from private quantiles: where a bin starts is chosen by ranks.

The levels of the column are halved, and every half again: in each step a part with n' people and
levels a, ..., b - 1 is cut before level c with P(c) ~ exp(-epsilon |F(c) - n' / 2| / 2), where F
counts people of the part below c. k bins, a power of two, take log2(k) steps.

What a step costs. A replaced record leaves one part and enters one. It moves F(c) - n' / 2 by at
most 1/2 in each of two parts, or by at most 1 where both are the same part. So the scores of all
parts of a step move by at most 1 together: epsilon per record, and rho = epsilon^2 / 8, because a
choice whose scores move by d has a bounded range d epsilon and squares of d add up to at most 1.
With a records replaced they move by a together: a epsilon, a^2 rho. Cutting at other shares than
one half would cost more: F(c) - n' / 3 moves by 2/3 in each of two parts.

What is drawn is exact (`choose`). Parts of one level are not cut: a value that many people
share ends up alone. `spikes` are values that stand alone from the start, as open levels do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.attribute import Attribute
from congenial.data.rational import Number, exact, written
from congenial.data.schema import Schema
from congenial.errors import SchemaError, StructureError
from congenial.sampling.exact_decisions import bernoulli_exp
from congenial.sampling.randomness import Randomness, uniform_below

# ---- Table choice ----
# Which table to measure next: the exponential mechanism on rational scores, drawn exactly.
#
# P(c) ~ exp(epsilon q_c / (2 D)), where one replaced record moves every score q by at most D.
# That keeps epsilon per record, and because every ratio of two probabilities moves by at most
# epsilon, zero-concentrated rho = epsilon^2 / 8 (Cesar and Rogers 2021). With k records replaced
# scores move by k D: k epsilon, k^2 rho.


def choose(
    scores: Sequence[int | Fraction], epsilon: Fraction, moves: int, randomness: Randomness
) -> int:
    """The index of a score, drawn with P(c) ~ exp(epsilon q_c / (2 moves)), exactly.

    A score is proposed at random and kept with probability exp(-epsilon (best - q) / (2 moves)):
    the best one is always kept, so about as many proposals as there are scores are enough.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> choose([3, 900, 5], Fraction(4), 2, SeededRandomness(1))
    1
    """
    best = max(scores)
    while True:
        at = uniform_below(len(scores), randomness)
        if bernoulli_exp(epsilon * (best - scores[at]) / (2 * moves), randomness):
            return at


MOST_BINS = 256
MOST_LEVELS = 1_000_000  # of a column that is cut: all of them are candidates

Cuts = tuple[tuple[int, ...], ...]  # levels before which a column is cut, by step


@dataclass(frozen=True)
class QuantileBins:
    """How a column is cut: into `bins` alone and `in_pairs` in pairs, both powers of two.

    `spikes`: numbers that are a bin of their own whatever is drawn.
    """

    name: str
    bins: int
    in_pairs: int
    spikes: tuple[Number, ...] = ()

    def __post_init__(self) -> None:
        for number in (self.bins, self.in_pairs):
            if not 2 <= number <= MOST_BINS or number & (number - 1):
                raise StructureError(
                    f"quantiles of {self.name!r}: {number} classes are not possible.",
                    remedy=f"Use 2, 4, 8, ... or {MOST_BINS}.",
                )
        if self.in_pairs > self.bins:
            raise StructureError(
                f"quantiles of {self.name!r}: {self.in_pairs} bins in pairs are more than the "
                f"{self.bins} it has alone.",
                remedy="Give as many or fewer.",
            )

    @property
    def steps(self) -> int:
        """How often the column is halved."""
        return self.bins.bit_length() - 1

    @property
    def coarse(self) -> str:
        """The name of the column by its bins in pairs."""
        return self.name if self.in_pairs == self.bins else f"{self.name} in pairs"

    def refuse(self, attribute: Attribute) -> None:
        """Refuse a column that has no numbers, or fewer levels than bins."""
        numbers = len(attribute.intervals)
        if attribute.kind == "categorical":
            raise StructureError(
                f"column {self.name!r} has text categories and no numbers, so it has no quantiles.",
                remedy="Name a column with `edges` or `integers`, or leave out quantiles.",
            )
        if not self.bins <= numbers <= MOST_LEVELS:
            raise StructureError(
                f"column {self.name!r} has {numbers} categories with numbers, but is to be cut "
                f"into {self.bins} classes.",
                remedy=f"Give at least as many categories as classes, and at most {MOST_LEVELS:,}.",
            )
        self.parts(attribute)

    def parts(self, attribute: Attribute) -> list[tuple[int, int]]:
        """Level ranges before anything is drawn: what lies between spikes and open levels."""
        last = len(attribute.intervals) - 1
        starts = {0, last + 1, *((1,) if attribute.bottom is not None else ())}
        starts |= {last} if attribute.top is not None else set()
        for value in self.spikes:
            level = _level_of(attribute, value)
            starts |= {level, level + 1}
        return list(pairwise(sorted(starts)))

    def draw(self, counts: Ints, at: Attribute, epsilon: Fraction, source: Randomness) -> Cuts:
        """CONFIDENTIAL counts in: where the column is cut, step by step."""
        cuts, parts = [], self.parts(at)
        for _ in range(self.steps):
            places = tuple(
                low + 1 + choose(_scores(counts[low:high]), epsilon, 2, source)
                for low, high in parts
                if high - low > 1
            )
            cuts.append(places)
            parts = _cut(parts, places)
        return tuple(cuts)

    def evenly(self, attribute: Attribute) -> Cuts:
        """Cuts that know nothing of the data: every part in the middle."""
        cuts, parts = [], self.parts(attribute)
        for _ in range(self.steps):
            middles = tuple((low + high) // 2 for low, high in parts if high - low > 1)
            cuts.append(middles)
            parts = _cut(parts, middles)
        return tuple(cuts)

    def possible(self, attribute: Attribute, cuts: Cuts) -> bool:
        """Whether cuts are such as may be drawn: one inside every part that has two levels."""
        parts = self.parts(attribute)
        for step in cuts:
            wide = [part for part in parts if part[1] - part[0] > 1]
            if len(wide) != len(step):
                return False
            if not all(low < cut < high for (low, high), cut in zip(wide, step, strict=True)):
                return False
            parts = _cut(parts, step)
        return len(cuts) == self.steps

    def binned(self, attribute: Attribute, cuts: Cuts) -> Attribute:
        """The column with its bins as levels; in pairs it has a coarser name."""
        starts = _starts(self.parts(attribute), cuts)
        few = _starts(self.parts(attribute), cuts[: self.in_pairs.bit_length() - 1])
        binned = _with_bins(attribute, starts)
        if self.coarse == self.name:
            return binned
        wide = _with_bins(attribute, few).levels
        parents = np.searchsorted(few, starts, side="right") - 1
        labels = tuple(wide[at] for at in parents.tolist())
        return replace(binned, levels=(), coarser={self.coarse: labels})

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        spikes = {"spikes": [written(spike) for spike in self.spikes]} if self.spikes else {}
        return {"bins": self.bins, "in_pairs": self.in_pairs, **spikes}

    @classmethod
    def from_dict(cls, name: str, data: Mapping[str, Any]) -> QuantileBins:
        """Inverse of `to_dict`."""
        spikes = tuple(exact(spike, f"spikes of {name!r}") for spike in data.get("spikes", ()))
        return cls(name, int(data["bins"]), int(data["in_pairs"]), spikes)


def cuts_to_plain(attribute: Attribute, cuts: Cuts) -> list[list[str]]:
    """Cuts as the numbers at which bins start, by step."""
    starts = attribute.intervals
    return [[written(starts[cut][0] or 0) for cut in step] for step in cuts]


def cuts_from_plain(attribute: Attribute, data: Sequence[Sequence[str]]) -> Cuts:
    """Inverse of `cuts_to_plain`; LookupError for a number at which no level starts."""
    levels = {
        written(low): at for at, (low, _) in enumerate(attribute.intervals) if low is not None
    }
    return tuple(tuple(levels[text] for text in step) for step in data)


def binned_schema(
    schema: Schema, quantiles: Sequence[QuantileBins], cuts: Mapping[str, Cuts]
) -> Schema:
    """The schema in which cut columns have their bins as levels."""
    cut = {
        bins.name: bins.binned(schema.attribute(bins.name), cuts[bins.name]) for bins in quantiles
    }
    return Schema(
        tuple(cut.get(attribute.name, attribute) for attribute in schema.attributes), schema.about
    )


def bin_of_level(one: QuantileBins, attribute: Attribute, cuts: Cuts) -> Ints:
    """The bin of every level; levels without a number are bins of their own, after the others."""
    starts = _starts(one.parts(attribute), cuts)
    numbers = len(attribute.intervals)
    inside = np.searchsorted(starts, np.arange(numbers), side="right") - 1
    return np.append(inside, len(starts) + np.arange(attribute.size - numbers)).astype(np.int64)


def _scores(counts: Ints) -> list[int]:
    """-|2 F(c) - n'| for every cut c inside a part: twice the score, so that it is whole."""
    below = np.cumsum(counts)[:-1]
    scores: list[int] = (-np.abs(2 * below - counts.sum())).tolist()
    return scores


def _cut(parts: Sequence[tuple[int, int]], cuts: Sequence[int]) -> list[tuple[int, int]]:
    return list(pairwise(sorted({*cuts, *(end for part in parts for end in part)})))


def _starts(parts: Sequence[tuple[int, int]], cuts: Cuts) -> list[int]:
    """The level each bin starts with."""
    return sorted({*(low for low, _ in parts), *(cut for step in cuts for cut in step)})


def _level_of(attribute: Attribute, value: Number) -> int:
    """The level that is one value and nothing else."""
    for at, (low, high) in enumerate(attribute.intervals):
        if attribute.whole and low == value and high == value + 1:
            return at
    raise SchemaError(
        f"spikes of {attribute.name!r}: {written(value)} is not a category of its own.",
        remedy="Give a whole number that the column has alone: `integers`, or whole `edges` of "
        "which one is this number and the next one is 1 more.",
    )


def _with_bins(attribute: Attribute, starts: Sequence[int]) -> Attribute:
    """The same column with the intervals between `starts` as levels."""
    ends = [attribute.intervals[start][0] for start in starts]
    last = attribute.intervals[len(attribute.intervals) - 1][1]
    edges = [end for end in (*ends, last) if end is not None]
    return replace(
        attribute,
        kind="bins",
        levels=(),
        edges=tuple(edges),
        low=None,
        high=None,
        coarser={},
        labels={},
    )
