"""Counts around counts under a prior base measure, given their total: drawn exactly.

p(c) ~ prod_j w_j(c_j) on { c >= 0, sum c = s },
w(c) = Gamma(c + a) / c! x exp(-rate |c - x|) x sum_{d = 0}^{c} exp(-rate |d - e|).

The first factor, given the total, is the Dirichlet-multinomial law with parameters a (a = 1: a
uniform base); the last one, where there is one, integrates out a subordinate count 0 <= d <= c
(deaths among cases), drawn afterwards by `draw_below`. |.| may be squared. No message tables:
the total may be 10^6.

**Algorithm.** All cells but one are proposed independently from w(c) e^(theta c), which given the
total is the same law; theta brings the expected sum to s. The last cell, the widest, takes what is
left, and the proposal is kept with probability w(left) / max w: probabilistic
divide-and-conquer (Arratia and DeSalvo 2016), about sd(cell) / sd(sum), or 1/8 for 67 equal cells.

**Down a tree.** Where the tables are narrow and many draws are asked for, the cells become leaves
of `tree_messages`: M is the table of a cell raised by its rounding error, and beyond the table a
geometric tail, which dominates since the weights are log-concave (or, for a Dirichlet parameter a <
1 going up, since (c + a)/(c + 1) <= 1 leaves a log-concave bound). Nearly every draw is kept, but
the messages have to be made first.

**Exactness.** A cell is proposed with integer weights n(c) out of 2^62, n(c) >= scale x w(c) on a
window, and in a bin for each side beyond it; there w falls, so a uniform place and the weight of
the edge dominate. A proposal is kept with probability prod_j scale w_j / n_j x w(left) / max w <=
1: the law of what is kept is p, with H = 0, whatever the floats are, as long as n
dominates. Doubles decide where they can (weights come from products of ratios, relative error
below `_error`); otherwise ball arithmetic does. Windows follow the noise, and values beyond them
have a path, so the support is the public one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from flint import arb

from congenial.data.arrays import Floats, Ints
from congenial.errors import FigureError, StructureError
from congenial.sampling.exact_decisions import (
    all_below,
    ball,
    below,
    positive_rational,
    working_precision,
)
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness, Words, uniform_below
from congenial.sampling.tree_messages import Forest, Node
from congenial.sampling.tree_splitter import Splitter

if TYPE_CHECKING:
    from congenial.sampling.tree_splitter import Splitter
from collections.abc import Callable
from functools import partial

from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric

_WIDEST = 1 << 22


@dataclass(frozen=True)
class CountCell:
    """The weight of one count: base measure, centre and rate of the loss, subordinate count.

    centre: the count x it is around. rate: of the loss |c - x|, or (c - x)^2 if `squared`. shape:
    Dirichlet parameter a, 1 for a uniform base. below: centre e of a count d <= c, None for none.
    """

    centre: int
    rate: Fraction
    shape: Fraction = Fraction(1)
    below: int | None = None
    squared: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate", positive_rational("rate", self.rate))
        object.__setattr__(self, "shape", positive_rational("shape", self.shape))
        if self.centre < 0 or (self.below is not None and not 0 <= self.below <= self.centre):
            raise FigureError(
                "a count is negative, or larger than the count it is part of.",
                remedy="Correct the table: counts are 0 or more, and a part is at most its whole.",
            )

    def log_weight(self, c: npt.ArrayLike) -> Floats:
        """log w(c) - log Gamma(a) in doubles; -inf for c < 0."""
        from scipy.special import gammaln

        k = np.asarray(c, dtype=float)
        counts = np.maximum(k, 0)
        a, away = float(self.shape), np.abs(counts - self.centre)
        logs = gammaln(counts + a) - gammaln(counts + 1) - math.lgamma(a)
        logs = logs - float(self.rate) * (away**2 if self.squared else away)
        if self.below is not None:
            logs = logs + np.log(self.mass_below(counts))
        return np.where(k >= 0, logs, -np.inf)

    def mass_below(self, c: npt.ArrayLike) -> Floats:
        """sum_{d = 0}^{c} exp(-rate |d - e|), or with squares."""
        assert self.below is not None
        k, e, rate = np.asarray(c, dtype=np.int64), self.below, float(self.rate)
        if self.squared:
            most = int(k.max(initial=0))
            terms = np.cumsum(np.exp(-rate * (np.arange(most + 1.0) - e) ** 2))
            return np.asarray(terms[k])
        unit = -math.expm1(-rate)
        low = np.minimum(k, e)
        rising = np.exp(-rate * (e - low)) * -np.expm1(-rate * (low + 1.0)) / unit
        falling = math.exp(-rate) * -np.expm1(-rate * np.maximum(k - e, 0)) / unit
        return np.asarray(rising + falling)

    def log_ball(self, c: int) -> Any:
        """log w(c) as a ball at the working precision."""
        away = abs(c - self.centre)
        logs = (ball(self.shape) + c).lgamma() - arb(c + 1).lgamma()
        logs -= ball(self.rate * (away**2 if self.squared else away))
        return logs if self.below is None else logs + self._below_ball(c).log()

    def _below_ball(self, c: int) -> Any:
        assert self.below is not None
        e = self.below
        if self.squared:
            return sum(((-ball(self.rate * (d - e) ** 2)).exp() for d in range(c + 1)), arb(0))
        q = (-ball(self.rate)).exp()
        low = min(c, e)
        rising = q ** (e - low) * (1 - q ** (low + 1)) / (1 - q)
        return rising if c <= e else rising + q * (1 - q ** (c - e)) / (1 - q)


@dataclass(frozen=True, eq=False)
class WeightTable:
    """Weights w(c) e^(theta c) / (the same at `anchor`) on low .. low + size - 1."""

    low: int
    anchor: int
    weights: Floats

    @property
    def high(self) -> int:
        """Last count of the table."""
        return self.low + self.weights.size - 1

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and variance."""
        from congenial.sampling import given_total_kernels

        mean, variance = given_total_kernels.moments(self.weights, self.low)
        return mean, variance


def tabulate(cell: CountCell, theta: float, total: int, cut: float) -> WeightTable:
    """The table of a cell, as far as its weights are above `cut` of the one at its anchor."""
    from congenial.sampling import given_total_kernels

    sums = np.empty(0)
    if cell.squared and cell.below is not None:
        sums = np.atleast_1d(cell.mass_below(np.arange(total + 1)))
    below = -1 if cell.below is None else cell.below
    tilted = given_total_kernels.Cell(
        float(cell.shape), cell.centre, float(cell.rate), cell.squared, below, sums, theta
    )
    anchor = int(given_total_kernels.peak(total, tilted))
    up = given_total_kernels.walk(anchor, total, tilted, cut)
    down = given_total_kernels.walk(anchor, 0, tilted, cut)
    if up.size + down.size > _WIDEST:
        raise StructureError(
            "the noise of one cell is too wide for a table.", remedy="Use a larger epsilon."
        )
    return WeightTable(anchor - down.size + 1, anchor, np.concatenate([down[:0:-1], up]))


@dataclass(frozen=True)
class CountWeight:
    """w(c) e^(theta c) over the same at `anchor`, for 0 <= c <= most."""

    cell: CountCell
    theta: Fraction
    anchor: int
    most: int

    def allows(self, c: int) -> bool:
        """Whether c is within 0 .. most."""
        return 0 <= c <= self.most

    def log_ratio(self, c: int) -> Any:
        """The log weight as a ball."""
        tilt = ball(self.theta * (c - self.anchor))
        return self.cell.log_ball(c) - self.cell.log_ball(self.anchor) + tilt

    def fall(self, edge: int, step: int) -> float:
        """t > 0 with w(edge + k step) <= w(edge) e^(-t k) for all k >= 0, edge + step allowed.

        Weights with max(a, 1) in place of a are log-concave: their next ratio bounds all later
        ones. Downwards a < 1 has no such bound; tables then reach 0.
        """
        assert step > 0 or self.cell.shape >= 1
        bound = replace(self, cell=replace(self.cell, shape=max(self.cell.shape, Fraction(1))))
        with working_precision(128):
            return float((bound.log_ratio(edge) - bound.log_ratio(edge + step)).lower())


def _leaf(weight: CountWeight, table: WeightTable, error: float) -> Node:
    """The message of one cell; error: bound of the relative error of the table."""
    m = table.weights * (1 + 2 * error)
    tails = []
    for edge, step, at in ((table.low, -1, 0), (table.high, 1, -1)):
        c, slope = 0.0, np.inf
        if weight.allows(edge + step):
            c, slope = float(m[at]), weight.fall(edge, step) * (1 - 2.0**-50)
        tails.append((c, slope))
    return Node(
        -1, -1, Fraction(0), weight, table.low, m, m, *tails[0], *tails[1], slack=4 * error
    )  # fmt: skip


def tree_of(
    cells: Sequence[CountCell],
    tables: Sequence[WeightTable],
    theta: float,
    total: int,
    error: float,
) -> Splitter | None:
    """A splitter whose only root is the sum of all cells; None if a tail does not fall."""
    forest, leaves = Forest(), []
    for cell, table in zip(cells, tables, strict=True):
        weight = CountWeight(cell, Fraction(theta), table.anchor, total)
        node = _leaf(weight, table, error)
        if not (node.t_lo > 0 and node.t_hi > 0):
            return None
        leaves.append(forest.add(node))
    root = forest.combine(leaves)
    nothing: Ints = np.zeros(len(cells), dtype=np.int64)
    return Splitter(forest, [root], np.arange(len(cells)), nothing)


__all__ = ["CountCell", "CountsGivenTotal"]

_CUT = 2.0**-66  # a window ends where a weight falls below this share of the largest
_COARSE = 2.0**-20  # the same while the tilt is chosen
_WHOLE = 1 << 62
_GUIDE = 10  # bits of the first look-up; more of them leave the cache
LIKELY = 1 << 32  # integer weights above this are taken for the weights they stand for
_BLOCK = 1 << 18  # words of proposals made at a time
_NARROW = 128  # standard deviation of the sum up to which messages are faster than proposals
_PAID = 80_000  # cells proposed in the time that the messages of one cell take


class CountsGivenTotal(IntegerLaw):
    """Independent counts with weights `cells`, given that they add up to `total`.

    Exact: `log_ratio_error` is 0.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> law = CountsGivenTotal([CountCell(x, Fraction(1, 2)) for x in (2, 0, 5)], 7)
    >>> c = law.draw_many(SeededRandomness(1), 4)
    >>> c.sum(axis=1).tolist(), bool(c.min() >= 0)
    ([7, 7, 7, 7], True)
    """

    log_ratio_error = 0.0

    def __init__(self, cells: Sequence[CountCell], total: int) -> None:
        self.cells, self.total = tuple(cells), int(total)
        if not self.cells:
            raise StructureError("a total of no cells.", remedy="Give at least one cell.")
        if self.total < 0:
            raise FigureError("a total is negative.", remedy="Counts add up to 0 or more.")
        if len(self.cells) > 1 and self.total > 0:
            self._prepare()

    # ---- tables --------------------------------------------------------------------------------

    def _prepare(self) -> None:
        self.theta, self.tables = self._tilted()
        self._last = int(np.argmin([t.weights.max() / t.weights.sum() for t in self.tables]))
        # some six operations a step; the subordinate's sum, in closed form or term by term
        steps = max(
            t.high + 1 if cell.squared else t.weights.size
            for cell, t in zip(self.cells, self.tables, strict=True)
        )
        pull = 1 + abs(self.theta) + max(float(cell.rate) for cell in self.cells)
        self._error = (16 * steps + 4096) * pull * 2.0**-53
        columns = [self._column(j) for j in range(len(self.cells))]
        sizes = [column[0].size for column in columns]
        self._offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._cumulative = np.concatenate([column[0] for column in columns])
        self._ratios = np.concatenate([column[1] for column in columns])
        self._scales = [column[2] for column in columns]
        slack = math.fsum(column[3] for column in columns)
        self._band = slack + 8 * (len(self.cells) + 1) * self._error
        self._guide = np.stack([_guide(column[0]) for column in columns])
        self._lows = np.array([t.low for t in self.tables], dtype=np.int64)
        last = self.tables[self._last]
        self._bound = float(last.weights.max()) * (1 + 2 * self._error)
        self._last_weights = last.weights / self._bound
        # P(sum fits) / max P(last): a proposal is kept about as often
        self._spread = math.sqrt(math.fsum(t.moments[1] for t in self.tables))
        peak = float(last.weights.max() / last.weights.sum())
        self._kept = min(1.0, 1 / (peak * math.sqrt(2 * math.pi) * self._spread))

    def _tilted(self) -> tuple[float, list[WeightTable]]:
        """theta, a double, that brings the mean of the sum near the total; and the tables there.

        It starts where the base measure alone has that mean; coarse tables are enough to choose.
        """
        parameters = math.fsum(float(cell.shape) for cell in self.cells)
        theta = math.log(self.total / (self.total + parameters))
        least, most, nearest, chosen = -math.inf, math.inf, math.inf, theta
        for _ in range(60):
            sums = [tabulate(cell, theta, self.total, _COARSE).moments for cell in self.cells]
            mean = math.fsum(moments[0] for moments in sums)
            variance = math.fsum(moments[1] for moments in sums)
            away = (self.total - mean) / math.sqrt(variance)
            if abs(away) < nearest:
                nearest, chosen = abs(away), theta
            if nearest < 0.2 or most - least < 1e-13:
                break
            least, most = (theta, most) if away > 0 else (least, theta)
            theta += max(-2.0, min(2.0, (self.total - mean) / variance))
            if not least < theta < most:
                theta = (least + most) / 2
        return chosen, [tabulate(cell, chosen, self.total, _CUT) for cell in self.cells]

    def _column(self, j: int) -> tuple[Words, Floats, float, float]:
        """Cumulative integer weights (bin below the window, window, bin above), ratios, scale, and
        how far below 1 the ratio is where the kernel takes it for 1.
        """
        table = self.tables[j]
        up = 1 + 2 * self._error
        below = table.low * float(table.weights[0]) * up
        above = (self.total - table.high) * float(table.weights[-1]) * up
        weights = np.concatenate([[below], table.weights * up, [above]])
        margin = 4 * weights.size + (1 << 16)
        scale = (_WHOLE - margin) / (float(weights.sum()) * (1 + 2.0**-44))
        n = np.floor(weights * scale).astype(np.uint64) + np.uint64(1)
        if table.low == 0:
            n[0] = 0
        if table.high == self.total:
            n[-1] = 0
        spare = _WHOLE - int(n.sum())
        assert spare >= 0
        n[1 + table.anchor - table.low] += np.uint64(spare)
        cumulative = np.zeros(n.size + 1, dtype=np.uint64)
        np.cumsum(n, out=cumulative[1:])
        ratios = np.zeros(n.size + 1)
        ratios[1 : n.size - 1] = table.weights * scale / n[1:-1]
        likely = n[1:-1] >= np.uint64(LIKELY)
        slack = float((1 - ratios[1 : n.size - 1][likely]).max(initial=0.0))
        return cumulative, ratios, scale, slack

    # ---- drawing -------------------------------------------------------------------------------

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        cells = len(self.cells)
        if cells == 1 or self.total == 0:
            return np.full((n, cells), self.total if cells == 1 else 0, dtype=np.int64)
        if n >= _PAID * self._kept and self._splitter is not None:
            return self._splitter.draw_all(randomness, n, np.array([[self.total]]))
        draws: list[Ints] = []
        missing, rate = n, 0.2
        while missing > 0:
            rows = int(min(max(missing / rate * 1.1, 8), max(_BLOCK // cells, 8)))
            drawn = self._attempts(randomness, rows)
            rate = max((drawn.shape[0] + 0.5) / rows, 0.002)
            draws.append(drawn[:missing])
            missing -= draws[-1].shape[0]
        return np.concatenate(draws) if draws else np.empty((0, cells), dtype=np.int64)

    @cached_property
    def _splitter(self) -> Splitter | None:
        """Draws down a tree, where the tables are narrow enough for one."""

        if self._spread > _NARROW:
            return None
        return tree_of(self.cells, self.tables, self.theta, self.total, self._error)

    def _attempts(self, randomness: Randomness, rows: int) -> Ints:
        from congenial.sampling import given_total_kernels as kernels

        cells = len(self.cells)
        words = randomness.words(rows * cells).reshape(rows, cells)
        out = np.empty((rows, cells), dtype=np.int64)
        status = np.empty(rows, dtype=np.int8)
        kernels.propose(
            words, self._cumulative, self._guide, self._ratios, self._offsets, self._lows,
            self.total, self._last, self._last_weights, self.tables[self._last].low, _GUIDE,
            self._band, out, status,
        )  # fmt: skip
        for t in np.flatnonzero(status == kernels.UNSURE).tolist():
            vector = self._exactly(words[t], randomness)
            status[t] = kernels.REJECTED if vector is None else kernels.ACCEPTED
            if vector is not None:
                out[t] = vector
        return np.asarray(out[status == kernels.ACCEPTED])

    def _exactly(self, words: Words, randomness: Randomness) -> Ints | None:
        """The proposal these words make, decided in ball arithmetic; None if it is rejected."""
        counts = np.empty(len(self.cells), dtype=np.int64)
        factors: list[tuple[int, Fraction]] = []
        for j in range(len(self.cells)):
            if j != self._last:
                counts[j], factor = self._place(j, int(words[j]) >> 2, randomness)
                factors.append((j, factor))
        left = self.total - int(np.delete(counts, self._last).sum())
        if left < 0:
            return None
        counts[self._last] = left
        factors.append((self._last, Fraction(1) / Fraction(self._bound)))

        def log_p() -> Any:
            logs = arb(0)
            for j, factor in factors:
                logs += self._log_relative(j, int(counts[j])) + ball(factor).log()
            return logs

        return counts if below(int(words[self._last]), 64, log_p, randomness) else None

    def _place(self, j: int, u: int, randomness: Randomness) -> tuple[int, Fraction]:
        """The value that u of 2^62 stands for, and scale / (integer weight of that value)."""
        first, end = int(self._offsets[j]), int(self._offsets[j + 1])
        cumulative, table = self._cumulative[first:end], self.tables[j]
        bin_ = int(np.searchsorted(cumulative, np.uint64(u), side="right")) - 1
        n = int(cumulative[bin_ + 1]) - int(cumulative[bin_])
        scale = Fraction(self._scales[j])
        if bin_ == 0:
            return uniform_below(table.low, randomness), scale * table.low / n
        if bin_ == end - first - 2:
            beyond = self.total - table.high
            return table.high + 1 + uniform_below(beyond, randomness), scale * beyond / n
        return table.low + bin_ - 1, scale / n

    def _log_relative(self, j: int, c: int) -> Any:
        """log of w(c) e^(theta c) over the same at the anchor, as a ball."""
        cell, anchor = self.cells[j], self.tables[j].anchor
        tilt = ball(Fraction(self.theta) * (c - anchor))
        return cell.log_ball(c) - cell.log_ball(anchor) + tilt

    # ---- density -------------------------------------------------------------------------------

    def log_density(self, c: npt.ArrayLike) -> Any:
        """log p(c), -inf off the support; c has shape (..., cells). Error about 1e-8."""
        counts = np.asarray(c, dtype=np.int64)
        logs = sum(
            (cell.log_weight(counts[..., j]) for j, cell in enumerate(self.cells)),
            np.zeros(counts.shape[:-1]),
        )
        return np.where(counts.sum(axis=-1) == self.total, logs - self.log_Z, -np.inf)[()]

    @cached_property
    def log_Z(self) -> float:
        """log of the sum of the product of weights over all c with this total.

        P(sum = total) under the tilted laws by a discrete Fourier transform: the total is near the
        mean there, where its error (about 1e-12 of the largest probability) does not matter.
        """
        if len(self.cells) == 1 or self.total == 0:
            only = [self.total] if len(self.cells) == 1 else [0] * len(self.cells)
            chosen = zip(self.cells, only, strict=True)
            return math.fsum(float(cell.log_weight(v)) for cell, v in chosen)
        reach = sum(t.weights.size for t in self.tables)
        size = 1 << max(4, math.ceil(math.log2(min(reach + 1, 64 * self._spread + 4096))))
        product, logs = np.ones(size // 2 + 1, dtype=complex), 0.0
        for cell, t in zip(self.cells, self.tables, strict=True):
            mass = float(t.weights.sum())
            folded = np.bincount(
                np.arange(t.low - t.anchor, t.high + 1 - t.anchor) % size, t.weights, size
            )
            product *= np.fft.rfft(folded / mass)
            logs += math.log(mass) + float(cell.log_weight(t.anchor)) + self.theta * t.anchor
        at = (self.total - sum(t.anchor for t in self.tables)) % size
        chance = float(np.fft.irfft(product, size)[at])
        return logs + math.log(chance) - self.theta * self.total


def _guide(cumulative: Words) -> Ints:
    """First bins by the leading bits of a 62-bit number."""
    starts = np.arange((1 << _GUIDE) + 1, dtype=np.uint64) << np.uint64(62 - _GUIDE)
    starts[-1] -= np.uint64(1)
    return np.searchsorted(cumulative, starts, side="right").astype(np.int64) - 1


def draw_below(
    counts: npt.ArrayLike,
    centres: npt.ArrayLike,
    rate: Fraction,
    randomness: Randomness,
    squared: bool = False,
) -> Ints:
    """Subordinate counts 0 <= d <= c, p(d) ~ exp(-rate |d - e|), drawn exactly, elementwise.

    e may be above c, by g = e - min(e, c). With a = |d - min(e, c)|: |d - e| = g + a, so that the
    l1 law is that around min(e, c); and (d - e)^2 = g^2 + 2 g a + a^2.

    Where the weights are nearly the same a uniform value is accepted with its weight; elsewhere
    noise that falls outside is drawn again. Either accepts more than a quarter; under the squared
    loss with e above c, where the noise is one factor and is accepted with the other, a seventh.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> draw_below([0, 3, 50], [0, 1, 2], Fraction(1), SeededRandomness(1)).shape
    (3,)
    """
    c, e = np.broadcast_arrays(np.asarray(counts, np.int64), np.asarray(centres, np.int64))
    top, near = c.reshape(-1), np.minimum(c, e).reshape(-1)
    over = (e.reshape(-1) - near) * squared
    law = _Law(rate, squared)
    out = np.zeros(top.size, dtype=np.int64)
    flat = (law.exponent(top, over) <= 1) & (top < 1 << 30)
    steep = ~flat & (over > 0)
    for chosen, draw in ((flat, law.uniform), (steep, law.steep), (~(flat | steep), law.noise)):
        places = np.flatnonzero(chosen & (top > 0))
        while places.size:
            d, accepted = draw(top[places], near[places], over[places], randomness)
            out[places[accepted]] = d[accepted]
            places = places[~accepted]
    return out.reshape(c.shape)


@dataclass(frozen=True)
class _Law:
    """p(d) ~ exp(-rate a), or exp(-rate (a^2 + 2 g a)), a = |d - near|; three ways to try a d."""

    rate: Fraction
    squared: bool

    def exponent(self, away: Ints, over: Ints) -> Floats:
        """rate a, or rate (a^2 + 2 g a), in doubles."""
        a = away.astype(float)
        return float(self.rate) * (a * (a + 2.0 * over) if self.squared else a)

    def uniform(
        self, top: Ints, near: Ints, over: Ints, randomness: Randomness
    ) -> tuple[Ints, Any]:
        """A uniform value, accepted with its weight."""
        words = randomness.words(2 * top.size).reshape(2, -1)
        d, fair = _uniform_upto(top, words[0])
        away = np.abs(d - near)

        def exact(i: int) -> Fraction:
            a, g = int(away[i]), int(over[i])
            return self.rate * (a * (a + 2 * g) if self.squared else a)

        return d, _accepted(self.exponent(away, over), exact, words[1], randomness) & fair

    def noise(self, top: Ints, near: Ints, over: Ints, randomness: Randomness) -> tuple[Ints, Any]:
        """Noise around the centre, accepted inside."""
        del over
        drawn = (
            DiscreteGaussian(1 / (2 * self.rate)) if self.squared else DoubleGeometric(self.rate)
        )
        d = near + drawn.draw(randomness, top.size)
        return d, (d >= 0) & (d <= top)

    def steep(self, top: Ints, near: Ints, over: Ints, randomness: Randomness) -> tuple[Ints, Any]:
        """A squared loss with the centre above: exp(-rate a^2) exp(-2 rate g a), a >= 0.

        The factor that falls faster is drawn from, and accepted with the other.
        """
        away = np.empty(top.size, dtype=np.int64)
        accepted = np.zeros(top.size, dtype=bool)
        for g in np.unique(over).tolist():
            at, slope = np.flatnonzero(over == g), 2 * self.rate * g
            fast = slope * g * 2 >= 1
            law = DoubleGeometric(slope) if fast else DiscreteGaussian(1 / (2 * self.rate))
            a = law.draw(randomness, at.size)
            steps = np.maximum(a, 0) ** 2 if fast else np.maximum(a, 0)
            rest = self.rate if fast else slope

            def exact(i: int, rest: Fraction = rest, steps: Ints = steps) -> Fraction:
                return rest * int(steps[i])

            words = randomness.words(at.size)
            sure = _accepted(float(rest) * steps, exact, words, randomness)
            away[at], accepted[at] = a, (a >= 0) & sure
        return near - away, accepted & (away <= top)


def _accepted(
    gamma: Floats, exact: Callable[[int], Fraction], words: Words, randomness: Randomness
) -> Any:
    """True with probability exp(-gamma), exactly; doubles are within 2^-50 of the exponents."""
    slack = 2.0**-50 * (1 + gamma)
    return all_below(words, -gamma, slack, lambda i: partial(_log, exact(i)), randomness)


def _log(gamma: Fraction) -> Any:
    return -ball(gamma)


def _uniform_upto(top: Ints, words: Words) -> tuple[Ints, Any]:
    """floor(word (c + 1) / 2^64), and whether the word is outside the surplus (Lemire)."""
    span = top.astype(np.uint64) + np.uint64(1)
    half, mask = np.uint64(32), np.uint64(0xFFFFFFFF)
    high = ((words >> half) * span + ((words & mask) * span >> half)) >> half  # span < 2^31
    surplus = (np.uint64(2**64 - 1) % span + np.uint64(1)) % span  # 2^64 mod span
    return high.astype(np.int64), words * span >= surplus
