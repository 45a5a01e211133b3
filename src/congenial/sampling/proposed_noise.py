"""Double geometric noise on cells tied by crossing sums, by proposal and exact acceptance.

p(u) ~ a^||u||_1 on { u whole : E u = 0 }, a = exp(-eps_cell). Elimination (`elimination`) needs a
state for every equation that crosses; with one-way margins of three attributes it has too many.

**Proposal.** Four cells B with E_a - E_b - E_c + E_d = 0 are set apart (the square). Disjoint
equations that none of them is in are kept by drawing the other cells as `GroupedNoise`; cells in no
such equation are independent. What B must make good is y = -E_A u_A.
**Acceptance.** A y that B cannot make is refused; any other is accepted with probability N(y)/N(0),
N(y) the sum of the weights of B's values with E_B u_B = y. It is a probability: the weight's
Fourier transform is positive, so that N is positive definite and largest at 0. Then B is drawn.
Given the one-way margins of a 2 x 2 x 2 table B makes good whatever is left: about one proposal in
three is accepted at any eps_cell. Each equation that neither groups nor B keep costs a factor ~
eps_cell.

Doubles decide what is certain, ball arithmetic the rest: H = 0. Running time depends on
the equations, eps_cell and chance, never on data.

**The square.** Cells a, b, c, d whose columns of the equations satisfy E_a - E_b - E_c + E_d = 0
(two levels of one attribute by two of another). Given the sums they must have, they are q + s (1,
-1, -1, 1), s whole, and with a = exp(-eps) the weight of s is a^(|s - c_1| + ... + |s - c_4|), c_i
= -(sign of i) q_i. In order c_1 <= c_2 <= c_3 <= c_4 and with b = a^2, the sum over s is

    a^(c_4 - c_1 + c_3 - c_2) [ c_3 - c_2 + 1 + g(c_2 - c_1) + g(c_4 - c_3)
                                + (b^(c_2 - c_1) + b^(c_4 - c_3)) b^2 / (1 - b^2) ],

g(m) = b + b^2 + ... + b^m: the middle, two flanks, two tails. All terms are positive.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations, islice
from typing import Any

import numpy as np
from flint import arb

from congenial.data.arrays import Floats, Ints
from congenial.errors import StructureError
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.exact_decisions import (
    all_below,
    ball,
    exp_ball,
    happens,
    pick_fast,
    positive_rational,
)
from congenial.sampling.grouped_noise import GroupedNoise, log_normaliser
from congenial.sampling.inversion import _Geometric
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness, uniform_below

SIGNS = np.array([1, -1, -1, 1])
SLACK = 2.0**-30  # relative error granted to doubles, which make less than 2^-40


def log_sums(c: Ints, eps: float) -> Floats:
    """log of the sum over s in doubles, for centres of shape (n, 4), relative to all c equal."""
    c = np.sort(c, axis=1)
    left, middle, right = np.diff(c, axis=1).T.astype(float)
    b, norm = math.exp(-2 * eps), left + 2 * middle + right
    flanks = -b * (np.expm1(-2 * eps * left) + np.expm1(-2 * eps * right)) / -math.expm1(-2 * eps)
    ends = (np.exp(-2 * eps * left) + np.exp(-2 * eps * right)) * b * b / -math.expm1(-4 * eps)
    alike = math.log1p(2 * b * b / -math.expm1(-4 * eps))
    return np.asarray(np.log(middle + 1 + flanks + ends) - eps * norm - alike)


def log_sum_ball(c: list[int], eps: Fraction) -> Any:
    """The same as a ball, for one list of centres."""
    c = sorted(c)
    total = sum(_parts(c, eps), arb(0)) / sum(_parts([0] * 4, eps), arb(0))
    return total.log() - ball(eps * (c[3] - c[0] + c[2] - c[1]))


def _parts(c: list[int], eps: Fraction) -> list[Any]:
    """Middle, flanks and tails as balls, up to the common factor."""
    left, right = c[1] - c[0], c[3] - c[2]
    b = exp_ball(-2 * eps)
    end = b * b / (1 - b * b)
    return [
        arb(c[2] - c[1] + 1),
        *(b * (1 - b**m) / (1 - b) for m in (left, right)),
        *(b**m * end for m in (left, right)),
    ]


def draw_free(c: list[int], eps: Fraction, randomness: Randomness) -> int:
    """One exact draw of s."""
    c = sorted(c)
    left, right = c[1] - c[0], c[3] - c[2]
    part = pick_fast(_part_weights(c, float(eps)), SLACK, lambda: _parts(c, eps), randomness)
    if part == 0:
        return c[1] + uniform_below(c[2] - c[1] + 1, randomness)
    if part in (1, 2):
        step = 1 + _truncated(2 * eps, (left, right)[part - 1], randomness)
        return c[1] - step if part == 1 else c[2] + step
    step = 1 + int(_Geometric(4 * eps).draw(randomness, 1)[0])
    return c[0] - step if part == 3 else c[3] + step


def _part_weights(c: list[int], eps: float) -> Floats:
    b = math.exp(-2 * eps)
    sizes = (c[1] - c[0], c[3] - c[2])
    flanks = [b * math.expm1(-2 * eps * m) / math.expm1(-2 * eps) for m in sizes]
    ends = [math.exp(-2 * eps * m) * b * b / -math.expm1(-4 * eps) for m in sizes]
    return np.array([c[2] - c[1] + 1, *flanks, *ends])


def _truncated(rate: Fraction, size: int, randomness: Randomness) -> int:
    """j in 0 .. size - 1 with probability ~ exp(-rate j): at least every third proposal is kept."""
    while True:
        if rate * size > 1:
            j = int(_Geometric(rate).draw(randomness, 1)[0])
            if j < size:
                return j
        else:
            j = uniform_below(size, randomness)
            if happens(lambda j=j: -ball(rate * j), randomness):  # type: ignore[misc]
                return j


MOST_CELLS = 1e5  # proposed for one draw, about; beyond it a structure is refused
_BATCH = 1 << 19  # cells proposed at a time
_PAIRS = 64  # pairs of cells of one difference that squares are made of
_SQUARES = 2000  # that are tried
_WIDEST = 256  # different columns up to which squares are looked for


@dataclass(frozen=True, eq=False)
class Split:
    """Which equations groups keep, which four cells make good the rest, and how.

    q = inverse @ y[rows] are the first three of the four cells where the last is zero.
    """

    kept: list[int]
    square: Ints
    rows: Ints
    inverse: Ints


class ProposedNoise(WeightedLaw):
    """Independent double geometric noise given equations on sums of cells, without bounds.

    labels: the group of each cell; equations: one row of integers each, one column per group.
    StructureError where no four cells serve or too many proposals would be needed.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> level = np.indices((2, 2, 2)).reshape(3, -1)
    >>> margins = np.array([axis == k for axis in level for k in range(2)], dtype=np.int64)
    >>> u = ProposedNoise(np.arange(8), margins, Fraction(3, 8)).draw(SeededRandomness(1))
    >>> bool(np.any(margins @ u))
    False
    """

    log_ratio_error = 0.0
    log_Z = None

    def __init__(self, labels: Ints, equations: Ints, eps_cell: Fraction | int) -> None:
        self.eps_cell = positive_rational("eps_cell", eps_cell)
        self._of_groups = np.asarray(equations, dtype=np.int64)
        self.cells = len(labels)
        if len({column.tobytes() for column in self._of_groups.T}) > _WIDEST:
            raise _no_square(self.cells)
        self.matrix = self._of_groups[:, labels]
        self.split = _best_split(self.matrix)
        if self.cells_proposed > MOST_CELLS:
            raise StructureError(
                f"crossing sums tie {self.cells} cells too closely for exact draws of this law: "
                f"about one proposal in {1 / self.expected_acceptance:.1e} would be accepted.",
                remedy="Publish fewer crossing sums, or use a larger epsilon.",
            )

    @cached_property
    def expected_acceptance(self) -> float:
        """About the share of proposals accepted: normalisers, that of the law by a normal
        approximation, which is some two times too small for tables of a few cells.
        """
        eps, rows = float(self.eps_cell), _independent(self._of_groups)
        a = math.exp(-eps)
        spread = 2 * math.pi * 2 * a / (1 - a) ** 2
        log_ratio, sizes = math.log((1 + a) / (1 - a)), self.matrix[self.split.kept].sum(axis=1)
        gram = np.linalg.slogdet(self.matrix[rows] @ self.matrix[rows].T.astype(float))[1]
        law = self.cells * log_ratio - (len(rows) * math.log(spread) + gram) / 2
        groups = sum(log_normaliser(int(k), self.eps_cell) for k in sizes)
        loose = (self.cells - 4 - int(sizes.sum())) * log_ratio
        share = math.exp(float(law) - groups - loose) * math.tanh(2 * eps)
        return min(1.0, max(share, 1e-300))

    @property
    def cells_proposed(self) -> float:
        """About how many cells are proposed for one draw."""
        return self.cells / self.expected_acceptance

    def log_weight(self, u: Any) -> Any:
        """-eps_cell ||u||_1, or -inf where an equation does not hold; u has shape (..., cells)."""
        noise = np.asarray(u, dtype=np.int64)
        norm = np.abs(noise.astype(float)).sum(axis=-1)
        holds = ~np.any(noise @ self.matrix.T, axis=-1)
        return np.where(holds, -float(self.eps_cell) * norm, -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells).

        Words: proposals in batches of public size; a batch takes its groups, its loose cells, then
        a word for each acceptance; survivors, in order, take what open decisions and their four
        cells need. What is left of a batch is thrown away.
        """
        out = np.empty((0, self.cells), dtype=np.int64)
        while len(out) < n:
            out = np.concatenate([out, self._batch(randomness, n - len(out))])
        return out

    @cached_property
    def _proposals(self) -> tuple[GroupedNoise, Ints]:
        """The law of the groups, and the cells that are in none."""
        labels = np.full(self.cells, -1, dtype=np.int64)
        for group, row in enumerate(self.split.kept):
            labels[self.matrix[row] == 1] = group
        loose = np.setdiff1d(np.flatnonzero(labels < 0), self.split.square)
        return GroupedNoise(labels, self.eps_cell), loose

    def _batch(self, randomness: Randomness, wanted: int) -> Ints:
        """At most `wanted` draws, the first survivors of one batch of proposals."""
        size = math.ceil(1.1 * wanted / self.expected_acceptance) + 8
        size = min(size, max(1, _BATCH // self.cells))
        u = self._proposed(randomness, size)
        words = randomness.words(size)
        accepted = self._accepted(u, words, randomness)[:wanted]
        proposals: Ints = u[accepted]
        for row in proposals:
            centres = (-SIGNS * row[self.split.square]).tolist()
            row[self.split.square] += SIGNS * draw_free(centres, self.eps_cell, randomness)
        return proposals

    def _proposed(self, randomness: Randomness, size: int) -> Ints:
        """Proposals, the four cells q where they can be made good."""
        groups, loose = self._proposals
        u = groups.draw_many(randomness, size)
        cell = DoubleGeometric(self.eps_cell)
        u[:, loose] = cell.draw(randomness, size * len(loose)).reshape(size, -1)
        u[:, self.split.square] = self._made_good(u)
        return u

    def _made_good(self, u: Ints) -> Ints:
        """q for each proposal: the four cells, the last of them zero."""
        y = -(u @ self.matrix[self.split.rows].T)
        q: Ints = y @ self.split.inverse.T
        return np.column_stack([q, np.zeros(len(u), dtype=np.int64)])

    def _accepted(self, u: Ints, words: Any, randomness: Randomness) -> list[int]:
        """Proposals that are accepted, in order."""
        possible = np.flatnonzero(~np.any(u @ self.matrix.T, axis=1))
        c = -SIGNS * u[possible][:, self.split.square]
        logs = log_sums(c, float(self.eps_cell))

        def exact(i: int) -> Callable[[], Any]:
            return partial(log_sum_ball, c[i].tolist(), self.eps_cell)

        accepted = all_below(words[possible], logs, SLACK, exact, randomness)
        return [int(row) for row in possible[accepted]]


def _best_split(matrix: Ints) -> Split:
    """The split that leaves fewest equations to chance; StructureError if there is none."""
    best: tuple[int, Split] | None = None
    families = list(_families(matrix))
    members = np.array([np.isin(np.arange(len(matrix)), family) for family in families], dtype=int)
    for square, rows, inverse in islice(_squares(matrix), _SQUARES if families else 0):
        apart = ~np.any(matrix[:, square], axis=1)  # rows without any of the four cells
        sizes = members @ apart
        largest = int(np.argmax(sizes))
        if best is None or sizes[largest] > best[0]:
            cut = [row for row in families[largest] if apart[row]]
            best = len(cut), Split(cut, square, rows, inverse)
    if best is None:
        raise _no_square(matrix.shape[1])
    return best[1]


def _no_square(cells: int) -> StructureError:
    return StructureError(
        f"among {cells} cells tied by crossing sums no four can make up the difference of the "
        "others.",
        remedy="Publish fewer crossing sums.",
    )


def _families(matrix: Ints) -> Iterator[list[int]]:
    """Disjoint plain sums, from each row on: the levels of one attribute, for margins."""
    plain = [i for i, row in enumerate(matrix) if np.all((row == 0) | (row == 1)) and row.any()]
    for start in plain:
        family, taken = [start], matrix[start].copy()
        for row in plain:
            if not np.any(taken & matrix[row]):
                family.append(row)
                taken |= matrix[row]
        yield family


def _squares(matrix: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Four cells with E_a - E_b - E_c + E_d = 0, and how three of them are solved for."""
    cells = np.unique(matrix, axis=1, return_index=True)[1]
    pairs: dict[bytes, list[tuple[int, int]]] = {}
    for a, b in combinations(sorted(cells.tolist()), 2):
        pairs.setdefault((matrix[:, a] - matrix[:, b]).tobytes(), []).append((a, b))
    for alike in pairs.values():
        for (a, b), (c, d) in islice(combinations(alike, 2), _PAIRS):
            solved = _solved(matrix[:, [a, b, c]]) if len({a, b, c, d}) == 4 else None
            if solved is not None:
                yield np.array([a, b, c, d]), *solved


def _solved(three: Ints) -> tuple[Ints, Ints] | None:
    """Rows and the whole inverse of three columns on them; None where there is none."""
    for rows in combinations(_independent(three), 3):
        inverse = np.linalg.inv(three[list(rows)])
        whole: Ints = np.rint(inverse).astype(np.int64)
        if np.array_equal(whole @ three[list(rows)], np.eye(3, dtype=np.int64)):
            return np.array(rows), whole
    return None


def _independent(matrix: Ints) -> list[int]:
    """Rows, first ones first, that span all."""
    rows: list[int] = []
    for row in np.flatnonzero(np.any(matrix, axis=1)).tolist():
        if np.linalg.matrix_rank(matrix[[*rows, row]].astype(float)) > len(rows):
            rows.append(row)
        if len(rows) == matrix.shape[1]:
            break
    return rows
