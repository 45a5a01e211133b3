"""Laws of error where groups are tied: exact with one free sum a tie, otherwise by simulation; and
of sums of wide noise, which is not tabulated.

The noise of an additive mechanism does not depend on the data, so anybody can draw it: half-widths
are upper confidence bounds of quantiles (wrong with probability at most 1e-6 each), never plain
sample quantiles, so that intervals keep their level.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from zlib import crc32

import numpy as np

from congenial.errors import StructureError
from congenial.figures.lattice import equal_lines
from congenial.figures.support import FROZEN, Support
from congenial.sampling.conditioned import ConditionedNoise, TiedNoise
from congenial.sampling.discrete import CellLaw, DoubleGeometric
from congenial.sampling.randomness import Randomness, SeededRandomness
from congenial.sampling.sums import Pmf, direction, independent_sum, subset_sum_law, tied_sum_law
from congenial.tables.simulated_errors import DRAWS, highest_level, upper_rank

CHAIN_STEPS = 500_000  # of a chain, over all draws from it; several microseconds each
CHAIN_DRAWS = 500  # at least, however long a run is
TIES = 40_000  # draws of single ties for a sum over several
BLOCK = 250  # draws of a tie made at once
FEWEST = 400  # draws of such a sum: enough for a level of 0.96
NUMBERS = 20_000_000  # cells drawn at most when whole tables are simulated
Draw = Callable[[Randomness, int], Any]
TIES_AT_ONCE = 65_536  # whose shares of sums are compared
NONE = np.iinfo(np.int64).max  # in place of a sum, for cells that are in none
Part = tuple[int, ...]  # a tie's make (-1: one group or loose cells) and the cells taken of it
Signature = tuple[tuple[Part, int], ...]  # parts of a sum, and how often each comes

WIDE = 1e6  # variance of a cell beyond which the law of a sum of numbers is not tabulated
_SEED = 20200101  # public: everybody gets the same intervals


@dataclass(frozen=True)
class SimulatedLaw:
    """Law of the noise in one sum, from independent draws of it."""

    draws: Any
    fixed: bool = False  # the sum is published: its noise is zero for sure, not just in these draws

    basis = "simulated: half-widths are upper confidence bounds from draws of the public noise law"

    @cached_property
    def _sizes(self) -> Any:
        return np.sort(np.abs(self.draws))

    @cached_property
    def variance(self) -> float:
        """Estimated from the draws; the mean is zero by symmetry."""
        mean_square = float(np.mean(self.draws.astype(float) ** 2))
        return 0.0 if self.fixed else max(mean_square, 1 / len(self.draws))

    def interval(self, level: float) -> float:
        """h with P(|noise| <= h) >= level, up to the stated false-alarm rate."""
        if self.fixed:
            return 0
        n = len(self._sizes)
        k = upper_rank(level, n)
        if k > n:
            raise StructureError(
                f"a level of {level} needs more than {n:,} simulated draws.",
                remedy=f"Ask for at most {highest_level(n)}.",
            )
        return int(self._sizes[k - 1])

    @property
    def lo(self) -> int:
        """Smallest noise seen."""
        return int(self.draws.min())

    @property
    def probs(self) -> Any:
        """Relative frequency from `lo` upwards."""
        return np.bincount(self.draws - self.lo) / len(self.draws)


def sums_alike(start: Any, met: Any, loose: Any) -> list[Any]:
    """Sums of cells whose noise has the same law, as lists of their numbers.

    Sum i meets groups as rows start[i] to start[i + 1] of `met` say (cells taken, cells there), in
    any order, and `loose[i]` cells of no group.
    """
    makes = met[:, 0] * (1 + met[:, 1].max(initial=0)) + met[:, 1]
    parts = np.diff(start)
    of_sum = np.repeat(np.arange(len(parts)), parts)
    makes = makes[np.lexsort((makes, of_sum))]  # sorted inside every sum
    alike = []
    for number in np.unique(parts):
        which = np.flatnonzero(parts == number)
        rows = makes[start[which][:, np.newaxis] + np.arange(number)]
        same = _equal_rows(np.column_stack([rows, loose[which]]))
        order = np.argsort(same, kind="stable")
        alike += np.split(which[order], np.flatnonzero(np.diff(same[order])) + 1)
    return alike


def _equal_rows(keys: Any) -> Any:
    """A number for each row, the same for equal rows; rows of two are quicker as one number."""
    if keys.shape[1] > 2:
        places: dict[bytes, int] = {}
        return np.array([places.setdefault(row.tobytes(), len(places)) for row in keys])
    as_one = keys[:, 0] * (1 + keys[:, -1].max()) + keys[:, -1]
    return np.unique(as_one, return_inverse=True)[1]


def drawn_laws(draw: Draw, support: Support, index: Any, sums: int) -> list[SimulatedLaw]:
    """The law of each sum, from whole tables of noise; as many as fit `NUMBERS`, at least 200.

    A sum of whole groups of known total is fixed.
    """
    inside = (index >= 0) & (support.labels.reshape(-1) != FROZEN)
    fixed = support.fixes(index, sums).tolist()
    draws = int(np.clip(NUMBERS // index.size, 200, DRAWS))
    source, rows = SeededRandomness(_SEED), max(1, 4_000_000 // index.size)
    draws_of_sums = np.zeros((sums, draws), dtype=np.int64)
    for start in range(0, draws, rows):
        u = draw(source, min(rows, draws - start))
        u = u.reshape(len(u), -1)
        block = np.zeros((sums, len(u)), dtype=np.int64)
        np.add.at(block, index[inside], u[:, inside].T)
        draws_of_sums[:, start : start + len(u)] = block
    return [
        SimulatedLaw(draws_of_sum, sure)
        for draws_of_sum, sure in zip(draws_of_sums, fixed, strict=True)
    ]


def _combinations(
    met: list[tuple[Any, int]], parts: dict[Part, int], sums: int
) -> tuple[list[Signature], Any]:
    """Which combinations of parts sums are made of, and the combination of each sum."""
    counts = np.zeros((sums, len(parts)), dtype=np.int64)
    for which, number in met:
        np.add.at(counts[:, number], which, 1)
    names, of_sum, combined = list(parts), np.zeros(sums, dtype=np.int64), list[Signature]()
    for same in equal_lines(counts):
        often = zip(names, counts[same[0]].tolist(), strict=True)
        combined.append(tuple(sorted((part, times) for part, times in often if times)))
        of_sum[same] = len(combined) - 1
    return combined, of_sum


class _Pool:
    """Independent draws of the noise of one make of ties, as many as have been asked for."""

    def __init__(self, sampler: TiedNoise, seed: int) -> None:
        self._sampler, self._seed = sampler, seed
        self.drawn = np.zeros((0, sampler.cells), dtype=np.int32)

    def first(self, n: int) -> Any:
        """The first n of them: the same ones however many were asked for before.

        They come in blocks, each of its own seed: how many draws a sampler makes in one call may
        decide what they are.
        """
        if n > len(self.drawn):
            more = [
                self._sampler.draw_many(SeededRandomness((self._seed << 64) + block), BLOCK)
                for block in range(len(self.drawn) // BLOCK, -(-n // BLOCK))
            ]
            self.drawn = np.concatenate([self.drawn, *more]).astype(np.int32)
        return self.drawn[:n]


class TiedErrors:
    """Laws of sums of noise on a table with ties: exact where each tie has one free sum, otherwise
    from draws. Parts are independent, each with draws of its own.

    Cells of one group are exchangeable, so what a sum's law depends on is how many cells it takes
    of each group, tie by tie (its signature), and which group that is does not matter where a
    symmetry takes each to each other. Where a chain draws, there are fewer draws the longer
    its runs are, half-widths are wider for it, and fewer levels are served; parts then share draws.
    """

    def __init__(self, noise: ConditionedNoise) -> None:
        self._noise = noise
        self._makes = list(noise.ties())
        steps = max((maker.steps for maker, _ in self._makes), default=0)
        self._chain = steps > 0
        self._count = max(CHAIN_DRAWS, min(DRAWS, CHAIN_STEPS // max(1, steps)))
        proposed = max((maker.cells_proposed for maker, _ in self._makes), default=0.0)
        if proposed:
            self._count = max(CHAIN_DRAWS, min(self._count, int(NUMBERS / proposed)))
        self._pools = [_Pool(maker, _SEED + i) for i, (maker, _) in enumerate(self._makes)]
        self._laws: dict[Signature, Pmf | SimulatedLaw] = {}

    def laws(self, index: Any, sums: int) -> tuple[list[Pmf | SimulatedLaw], Any]:
        """Different laws of sums, and which of them each sum has; `index` names the sum each cell
        belongs to (-1: none).
        """
        signatures, of_sum = self._signatures(index, sums)
        for parts in signatures:
            if parts not in self._laws:
                each = [part for part, times in parts for _ in range(times)]
                self._laws[parts] = self._exact(parts) or self._simulated(each)
        return [self._laws[parts] for parts in signatures], of_sum

    def _simulated(self, parts: list[Part]) -> SimulatedLaw:
        often = Counter(make for make, *_ in parts if make >= 0)
        n = self._count
        if not self._chain:  # fewer draws of the sum, of more parts each: no draw is used twice
            n = min(n, max(FEWEST, TIES // max(often.values())))
        total, used = np.zeros(n, dtype=np.int64), Counter[int]()
        # a sum's own numbers: its law is the same whichever sums were asked for before
        own = crc32(np.concatenate(parts).astype("<i8").tobytes())
        source = SeededRandomness((_SEED << 32) + own)
        for part in parts:
            make = part[0]
            total += self._draws(part, n, used[make], source)
            used[make] += 1
        return SimulatedLaw(total, all(map(self._fixed, set(parts))))

    def _exact(self, parts: Signature) -> Pmf | None:
        """The law of a sum if that of each part can be tabulated."""
        laws: list[Pmf] = []
        for (make, *taken), times in parts:
            law = self._alone(taken[0], taken[1]) if make < 0 else self._tied(make, tuple(taken))
            if law is None:
                return None
            laws += [law] * times
        return independent_sum(laws)

    def _tied(self, make: int, taken: Part) -> Pmf | None:
        sampler, along = self._makes[make][0], self._directions[make]
        if along is None:
            return None
        sizes = tuple(np.bincount(sampler.labels).tolist())
        return tied_sum_law(tuple(along.tolist()), sizes, taken, self._noise.cell)

    @cached_property
    def _cells(self) -> list[tuple[Any, Any]]:
        """The cells of each make of ties, group by group, and where each group begins."""
        labels = [sampler.labels for sampler, _ in self._makes]
        ends = [np.cumsum(np.bincount(each)) for each in labels]
        return [
            (np.argsort(each, kind="stable"), np.append(0, end[:-1]))
            for each, end in zip(labels, ends, strict=True)
        ]

    @cached_property
    def _groups_alike(self) -> list[bool]:
        """Of each make, whether the law of one group is that of any other: between the margins of
        groups of one size, permuting a feature's levels takes each group to each other.
        """
        return [
            sampler.certified
            and sampler.grid
            and len(set(np.bincount(sampler.labels).tolist())) == 1
            for sampler, _ in self._makes
        ]

    @cached_property
    def _directions(self) -> list[Any]:
        """The free sum of each tie; None for a chain, whose own law is not known."""
        return [direction(maker.equations) if maker.certified else None for maker, _ in self._makes]

    def _alone(self, m: int, size: int) -> Pmf:
        """m of the `size` cells of a group by itself, or m loose cells if size is 0."""
        groups, loose = ([(m, size)], 0) if size else ([], m)
        return subset_sum_law(groups, self._noise.cell, loose)

    def _signatures(self, index: Any, sums: int) -> tuple[list[Signature], Any]:
        """Which parts sums are made of, every combination once, and the combination of each sum."""
        parts: dict[Part, int] = {}
        met = [*self._met_ties(index, parts), *self._met_alone(index, parts)]
        times = np.zeros(sums, dtype=np.int64)
        for which, _ in met:
            np.add.at(times, which, 1)
        if times.max(initial=0) <= 1:  # cells and the like: one part each
            of_sum = np.full(sums, len(parts), dtype=np.int64)
            for which, number in met:
                of_sum[which] = number
            present, of_sum = np.unique(of_sum, return_inverse=True)
            each: list[Signature] = [*(((part, 1),) for part in parts), ()]
            return [each[i] for i in present.tolist()], of_sum
        return _combinations(met, parts, sums)

    def _met_ties(self, index: Any, parts: dict[Part, int]) -> Iterator[tuple[Any, int]]:
        """Sums that take the same cells of a tie, and the number of the part; ties whose cells are
        shared out in the same way are looked at once.
        """
        for make, (sampler, places) in enumerate(self._makes):
            groups = int(sampler.labels.max()) + 1
            for start in range(0, len(places), TIES_AT_ONCE):
                inside = index[places[start : start + TIES_AT_ONCE]]
                lines = np.where(inside >= 0, inside - inside[:, :1], NONE)
                for same in equal_lines(lines):
                    line = lines[same[0]]
                    for tie in np.unique(line[line != NONE]):
                        cells = np.flatnonzero(line == tie)
                        taken = np.bincount(sampler.labels[cells], minlength=groups)
                        if self._groups_alike[make] and np.count_nonzero(taken) == 1:
                            taken = np.roll(taken, -int(taken.argmax()))
                        part = (make, *taken.tolist())
                        yield inside[same, cells[0]], parts.setdefault(part, len(parts))

    def _met_alone(self, index: Any, parts: dict[Part, int]) -> Iterator[tuple[Any, int]]:
        """The same for groups in no tie and loose cells."""
        support = self._noise.support
        if np.all(support.tied) and not support.loose:
            return
        flat = support.labels.reshape(-1)
        tied = np.append(support.tied, False)[np.maximum(flat, -1)]
        alone = (index >= 0) & ~tied & (flat != FROZEN)
        width = support.groups + 3
        keys, met = np.unique(index[alone] * width + flat[alone] + 2, return_counts=True)
        label = keys % width - 2
        sizes = np.where(label >= 0, np.append(support.sizes, 0)[np.maximum(label, -1)], 0)
        for same in equal_lines(np.stack([met, sizes], axis=1)) if len(keys) else ():
            part = (-1, int(met[same[0]]), int(sizes[same[0]]))
            yield keys[same] // width, parts.setdefault(part, len(parts))

    def _fixed(self, part: Part) -> bool:
        """Whether the part is a sum of whole groups that the equations fix."""
        make, *taken = part
        if make < 0:
            return taken[0] == taken[1]
        sampler = self._makes[make][0]
        whole = np.bincount(sampler.labels)
        return bool(np.all((taken == whole) | (np.array(taken) == 0))) and sampler.fixes(
            np.array(taken) > 0
        )

    def _draws(self, part: Part, n: int, place: int, source: Randomness) -> Any:
        """n draws of one part of a sum, the `place`-th of its make."""
        make, *taken = part
        if make < 0:
            law = self._alone(taken[0], taken[1])
            up_to = np.cumsum(law.probs)
            uniform = (source.words(n) >> np.uint64(11)) * 2.0**-53 * up_to[-1]
            return law.lo + np.searchsorted(up_to, uniform, side="right")
        cells, start = self._cells[make]
        first = np.concatenate([cells[start[g] :][: taken[g]] for g in np.flatnonzero(taken)])
        if self._chain:  # too slow for more: the same draws in another order, with either sign
            drawn = self._pools[make].first(n)[np.argsort(source.words(n), kind="stable")]
            signs = np.where(source.words(n) >> np.uint64(63), -1, 1)
            return drawn[:, first].sum(axis=1) * signs
        return self._pools[make].first(n * (place + 1))[n * place :, first].sum(axis=1)


# ---- wide noise ----------------------------------------------------------------------------------


class NormalSum:
    """Law of a normal error with a given variance."""

    def __init__(self, variance: float) -> None:
        self.variance = variance

    def interval(self, level: float) -> float:
        """Half-width of the symmetric interval."""
        from scipy import stats

        return float(stats.norm.ppf(0.5 + level / 2) * self.variance**0.5)


class LaplaceSum:
    """Law of a sum of m independent Laplace variables: the difference of two Gamma(m) variables."""

    def __init__(self, terms: int, rate: float) -> None:
        self.terms, self._deviation = terms, 1 / rate  # the mean absolute deviation of a term
        self.variance = 2 * terms * self._deviation**2

    def interval(self, level: float) -> float:
        """Half-width of the symmetric interval, by root finding on the tail probability.

        P(G1 - G2 > h) = E[ sf(h + G2) ] with G1, G2 Gamma(m), summed over equal slices of G2.
        """
        from scipy import optimize, special

        if self.terms == 0:
            return 0.0
        m = self.terms
        slices = special.gammaincinv(m, (np.arange(20_000) + 0.5) / 20_000)

        def tail(h: float) -> float:
            return 2 * float(special.gammaincc(m, slices + h).mean()) - (1 - level)

        high = (2.0 * m) ** 0.5
        while tail(high) > 0:
            high *= 2
        return float(optimize.brentq(tail, 0, high)) * self._deviation


class WideSum:
    """Law of a sum of m independent whole numbers whose standard deviation is large.

    Double geometric and discrete Gaussian variables can be drawn from Laplace and Gaussian ones of
    the same sign that are less than 1 away, so a sum of m is less than m away, and an interval of
    the continuous law widened by m holds for the whole numbers too.
    """

    def __init__(self, terms: int, cell: CellLaw) -> None:
        self.terms, self.variance = terms, terms * float(cell.variance)
        if isinstance(cell, DoubleGeometric):
            self._law: LaplaceSum | NormalSum = LaplaceSum(terms, float(cell.eps))
        else:
            self._law = NormalSum(self.variance)

    def interval(self, level: float) -> int:
        """A half-width that holds with at least `level`, whole and at most m + 1 too wide."""
        return 0 if self.terms == 0 else math.ceil(self._law.interval(level)) + self.terms
