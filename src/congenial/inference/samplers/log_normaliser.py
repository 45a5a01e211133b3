"""log Z(x) of counts released given their sums: it changes with the true table, as the noise does.

p(y | x) = nu(y) exp(-rate |y - x|_1) / Z(x) on tables y >= 0 with known sums. In each group Z is
the weight of a sum of independent counts, by a discrete Fourier transform of few points: the
density of the sum is smooth, so its transform is nearly zero away from the origin. A move of two
counts changes two factors of the product, which are followed by recursion (`_normaliser`).

Errors are some 1e-9 in log Z where the total has a fair chance under the tilted laws; a chain that
comes where it has not is refused.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import gammaln, logsumexp

from congenial.data.arrays import Floats, Ints
from congenial.errors import InferenceError
from congenial.inference.samplers import normaliser_kernels
from congenial.mechanisms.wasserstein.base_measure import Base
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.sampling.counts_given_total import CountsGivenTotal

FAR = 50.0  # a weight below exp(-FAR) of the largest counts as none
TOLERANCE = 1e-10  # what the points that are left out may add up to
MOST_POINTS = 8192
COMPARED = 500  # listed tables compared with all others at a time
MOST_KEPT = 1 << 22  # complex numbers kept in the tables of a group


@dataclass(frozen=True, eq=False)
class _Group:
    """Cells of one known sum: tilt, Fourier points, and tables up to a largest count."""

    cells: Ints
    total: int
    rate: float
    shapes: Floats
    theta: float
    period: int
    points: int
    tops: Ints  # largest count in each cell's table

    @classmethod
    def of(cls, cells: Ints, y: Ints, law: CountsGivenTotal, rate: float) -> _Group:
        spread = math.sqrt(math.fsum(table.moments[1] for table in law.tables))
        period = math.ceil(24 * spread + 64 / min(rate, 1.0))
        period = min(period, max(len(cells) - 1, 1) * law.total + 1)  # larger sums do not exist
        points = _points(law, period)
        shapes = np.array([float(cell.shape) for cell in law.cells])
        group = cls(cells, law.total, rate, shapes, law.theta, period, points, y)
        return group.reaching(y + math.ceil(8 / rate))

    def reaching(self, x: Ints) -> _Group:
        """The same with tables that reach beyond x in every cell."""
        far = [self._beyond(j, min(int(v), self.total)) for j, v in enumerate(x)]
        return replace(self, tops=np.maximum(self.tops, np.array(far, dtype=np.int64)))

    def covering(self, x: Ints) -> _Group:
        """Itself, or with longer tables where x is beyond them."""
        return self if np.all(x <= self.limits) else self.reaching(x + math.ceil(8 / self.rate))

    def _slope(self, j: int, c: Any) -> Any:
        """log weight of a count above x, as a function of c: log A(c) + (theta - rate) c."""
        a = self.shapes[j]
        return gammaln(c + a) - gammaln(c + 1.0) + (self.theta - self.rate) * c

    def _beyond(self, j: int, x: int) -> int:
        """The first count beyond x whose weight is below exp(-FAR) of the largest; at most s."""
        peak = max(x, math.ceil((self.shapes[j] - 1) / (self.rate - self.theta)))
        height, step = self._slope(j, float(peak)), 1
        while peak + step < self.total and self._slope(j, float(peak + step)) > height - FAR:
            step *= 2
        return int(min(peak + step, self.total))

    @cached_property
    def limits(self) -> Ints:
        """The largest count of each cell for which its table is long enough."""
        limits = np.empty(len(self.cells), dtype=np.int64)
        for j, top in enumerate(self.tops.tolist()):
            low, high = 0, top
            while low < high and top < self.total:
                middle = (low + high + 1) // 2
                low, high = (middle, high) if self._beyond(j, middle) <= top else (low, middle - 1)
            limits[j] = top if top == self.total else low
        return limits

    @cached_property
    def law(self) -> tuple[Any, ...]:
        """The tables, as `_normaliser` takes them."""
        roots = np.exp(2j * np.pi * np.arange(self.period) / self.period)
        block = -(-int((self.tops + 1).sum()) * 2 * self.points // MOST_KEPT)
        logs, columns = [], []
        for j, top in enumerate(self.tops.tolist()):
            c = np.arange(top + 1.0)
            a = self.shapes[j]
            logs.append(gammaln(c + a) - gammaln(c + 1) - math.lgamma(a) + self.theta * c)
            columns.append(
                normaliser_kernels.tabulate(logs[-1], self.rate, self.points, roots, block)
            )
        first = np.cumsum([0, *(entry.size for entry in logs)])
        rows = np.cumsum([0, *(entry[1].size for entry in columns)])
        tables = [np.concatenate([entry[i] for entry in columns]) for i in range(4)]
        return np.concatenate(logs), first, rows, self.rate, roots, block, *tables

    def empty(self, *shape: int) -> Any:
        """Room for transforms."""
        return np.empty((*shape, self.points), dtype=np.complex128)


def _points(law: CountsGivenTotal, period: int) -> int:
    """How many Fourier points matter, with some to spare for other tables than the released one."""
    size = np.ones(period // 2 + 1)
    for table in law.tables:
        at = np.arange(table.low, table.high + 1) % period
        folded = np.bincount(at, table.weights / table.weights.sum(), period)
        size *= np.abs(np.fft.rfft(folded)) ** 0.75
    rest = np.cumsum(size[::-1])[::-1]
    points = int(np.count_nonzero(rest > TOLERANCE * rest[0])) + 1
    if points > MOST_POINTS:
        raise InferenceError(
            f"the normaliser of {len(law.cells)} counts so noisy needs {points:,} points.",
            remedy="Ask for a release with a larger epsilon, or over more cells.",
        )
    return min(points, period // 2 + 1)


class Normaliser:
    """log Z(x) under a base measure with signs and sums, l1 loss."""

    def __init__(self, base: Base, y: Ints, rate: Fraction) -> None:
        law = TableLaw(base, y, rate)
        self.log_base = float(np.asarray(law.log_density(y)))
        self.groups = [
            _Group.of(np.array(cells), y[list(cells)], part, float(rate))
            for (cells, _), part in zip(base.totals, law.groups, strict=True)
            if isinstance(part, CountsGivenTotal) and len(cells) > 1 and part.total > 0
        ]
        self.log_base += float(self.log(y[None])[0])  # log nu(y), since log p(y | y) is known

    def log(self, x: Any) -> Floats:
        """log Z for tables (n, cells) that have the known sums."""
        tables = np.asarray(x, dtype=np.int64)
        prices = np.zeros(len(tables))
        for at, before in enumerate(self.groups):
            inside = tables[:, before.cells]
            group = self.groups[at] = before.covering(inside.max(axis=0, initial=0))
            shares, room = group.empty(len(group.cells)), group.empty(5)
            rows = np.ascontiguousarray(inside)
            prices += normaliser_kernels.prices(rows, group.law, group.total, shares, room)
            prices -= group.theta * group.total
        refuse_faint(bool(np.any(np.isnan(prices))))
        return prices


def log_signed(x: Any, rate: float) -> Floats:
    """log of the sum over y >= 0 of exp(-rate |y - x|), for each count x >= 0 in no sum."""
    q = math.exp(-rate)
    counts = np.asarray(x, dtype=float)
    return np.asarray(np.log1p(-q * np.expm1(-rate * counts)) - math.log(-math.expm1(-rate)))


def listed_law(tables: Ints, y: Any, eps: float) -> Floats:
    """log p(y | x) for every table x of a list of all that conform, y among them.

    -eps |y - x|_1 - log sum over m of exp(-eps |m - x|_1), the sum over the whole list.
    """
    logs = -eps * np.abs(tables - np.asarray(y)).sum(axis=1).astype(float)
    every = tables.astype(float)
    for first in range(0, len(tables), COMPARED):
        rows = slice(first, first + COMPARED)
        logs[rows] -= logsumexp(-eps * cdist(every[rows], every, "cityblock"), axis=1)
    return np.asarray(logs)


class PricedSweeps:
    """Chains over tables whose law has a normaliser: where they are, and how they move.

    A move is drawn exactly from the law without the normaliser and kept with probability
    min(1, Z(x) / Z(x')): what is left of the law is the target.
    """

    def __init__(self, normaliser: Normaliser, x: Ints, labels: Ints) -> None:
        self.labels = labels
        self.groups = [part.covering(x[:, part.cells].max(axis=0)) for part in normaliser.groups]
        self.kept = self.made = 0
        self._shares = [part.empty(len(x), len(part.cells)) for part in self.groups]
        self._logs = [np.empty((len(x), len(part.cells))) for part in self.groups]
        for group, shares, logs in zip(self.groups, self._shares, self._logs, strict=True):
            inside = np.ascontiguousarray(x[:, group.cells])
            for chain in range(len(x)):
                normaliser_kernels.prepare(
                    inside[chain], group.law, shares[chain], logs[chain], group.empty(5)
                )

    def sweep(self, x: Ints, lines: Ints, rng: np.random.Generator, weights: Any) -> None:
        """Move every chain's table along each line; `weights(chain)` is the law without Z."""
        for at, group in enumerate(self.groups):
            own = np.ascontiguousarray(lines[self.labels[lines[:, 0]] == self._label(group)])
            for chain in range(len(x)):
                done = pending = 0
                while True:
                    done, pending = self._run(at, x, chain, own, rng, weights(chain), done, pending)
                    if not pending:
                        break

    def _label(self, group: _Group) -> int:
        return int(self.labels[group.cells[0]])

    def _run(
        self,
        at: int,
        x: Ints,
        chain: int,
        lines: Ints,
        rng: Any,
        weights: Any,
        done: int,
        move: int,
    ) -> tuple[int, int]:
        """Lines from `done` on; tables are enlarged for a move that leaves them, and it waits."""
        group = self.groups[at]
        place = np.full(x.shape[1], -1, dtype=np.int64)
        place[group.cells] = np.arange(len(group.cells))
        done, move, accepted, moved, faint = normaliser_kernels.sweep(
            x[chain], lines, rng, weights, group.law, place, group.limits, group.total,
            self._shares[at][chain], self._logs[at][chain], group.empty(5), done, move,
        )  # fmt: skip
        refuse_faint(faint > 0)
        self.kept, self.made = self.kept + accepted, self.made + moved
        if move:
            new = x[chain].copy()
            new[lines[done, 0]] += move
            new[lines[done, 2]] -= move
            self.groups[at] = group.covering(new[group.cells])
        return done, move

    @property
    def acceptance(self) -> float:
        """Share of proposed moves that were kept."""
        return self.kept / max(self.made, 1)


def refuse_faint(lost: bool) -> None:
    """Refuse to go on where the normaliser is lost in rounding."""
    if lost:
        raise InferenceError(
            "the model puts the true table too far from the released one.",
            remedy="Check the prior against the released counts.",
        )
