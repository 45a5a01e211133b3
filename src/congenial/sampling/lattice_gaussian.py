"""Discrete Gaussian noise given sums of cells, drawn exactly on any small lattice.

p(u) ~ exp(-||u||^2/(2 sigma2)) on the integer u whose published sums are zero. It is rho =
Delta_2^2/(2 sigma2) zCDP; it is not Gaussian differential privacy. Draws are exact (H = 0) by
Klein's sampler (Gentry, Peikert and Vaikuntanathan 2008) with an acceptance step; their running
time depends on public parameters alone.

**Proposal.** A basis b_0, b_1, ... of the lattice has Gram-Schmidt vectors b*_i and coefficients
mu_ji = <b_j, b*_i>/||b*_i||^2, so u = sum z_i b_i has

    ||u||^2 = sum (z_i - c_i)^2 ||b*_i||^2,    c_i = -sum over j > i of mu_ji z_j.

From the last coordinate to the first draw z ~ exp(-(z - c)^2 / (2 s^2)) on Z with s_i^2 = sigma2
share_i, share_i = 1/||b*_i||^2. The product of these is q(u) = exp(-||u||^2/(2 sigma2)) / prod
rho_i(Z - c_i), with rho_i(S) = sum over S of exp(-x^2/(2 s_i^2)).

**Acceptance.** By Poisson summation rho(Z - c) <= rho(Z). Accepting u with probability
A(u) = prod rho_i(Z - c_i)/rho_i(Z) leaves q(u) A(u) = exp(-||u||^2/(2 sigma2)) / prod rho_i(Z):
proportional to the target, exactly. Without it the law is off by the ratio of these products (log
ratio .37 at sigma = .7). P(accept) = Z / prod rho_i(Z), which also brackets Z.

**Groups.** Cells lie in groups, and equations E T = 0 tie the sums T of groups. The first
coordinates are the partial sums y_1, y_2, ... inside each group (y_k = T_g is its sum): given
y_(l+1) the centre of y_l is l/(l+1) y_(l+1), and share_l = l/(l+1). They span what leaves all T as
they are; across it a group of k cells with sum T has length T^2/k, so the other coordinates are
those of the lattice E T = 0 with weights 1/k. This is the construction by theta functions: a group
has weight exp(-T^2/(2 k sigma2)) theta_k(T mod k), and theta_k/theta_k(0) is the mean of its
partial sums' acceptance.

**Two margins of groups** whose sizes are r_i c_j: T = sum z_ij (e_i - e_(i+1)) (x) (e_j - e_(j+1)).
With R_i = r_1 + .. + r_i the vectors e_i - e_(i+1) have b*_i = (mean of e_1 .. e_i by r) - e_(i+1),
||b*_i||^2 = 1/R_i + 1/r_(i+1), mu_(i,i-1) = -R_(i-1)/R_i, and a tensor product has the products:
with alpha = R_i/R_(i+1), beta = C_j/C_(j+1),

    c_ij = alpha z_(i+1,j) + beta z_(i,j+1) - alpha beta z_(i+1,j+1),
    share_ij = alpha r_(i+1) beta c_(j+1).

**Other equations**: all whole solutions (`figures.integers.kernel`), made short by LLL; mu and
share follow from the minors of the Gram matrix (fraction-free elimination), exactly.

**One coordinate.** With B = 2^b <= s/4 (or B = 1) and S >= s, write z - c = +-(k B + o + rest): a
sign, a block k >= 0 of law ~ exp(-k^2 B^2/(2 S^2)), a uniform place o in the block; accept with
exp(-(z - c)^2/(2 s^2) + k^2 B^2/(2 S^2)). S/B is the same for all coordinates, so that blocks come
from one `ExactLaw`; a word gives sign, place and the start of a lazily refined uniform for the
acceptance. Doubles decide what they can decide with certainty, exact rationals and ball arithmetic
the rest: H = 0. Where c is not a quotient of small integers it is a double within a stated distance
err of the truth, blocks are counted from its neighbours, and S is 2^-11 wider to allow for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from flint import arb, ctx, fmpz_mat

from congenial.data.arrays import Floats, Ints
from congenial.errors import RandomnessError, StructureError
from congenial.figures.blocks import margins
from congenial.figures.integers import kernel
from congenial.sampling.discrete import HalfGaussian
from congenial.sampling.exact_decisions import ball, below, positive_rational
from congenial.sampling.grouped_noise import Groups, checked_labels
from congenial.sampling.law import WeightedLaw
from congenial.sampling.randomness import Randomness

SLACK = 2.0**-46  # relative error allowed to doubles, per unit of exponent; they make 2^-50
MOST_GROUPS = 512  # tied by equations other than two margins: their basis takes seconds
MOST_PROPOSED = 1e6  # numbers for one draw, about a tenth of a second; beyond it a law is refused
_MOST_WORK = 2e13  # of the elimination of a Gram matrix: some ten seconds
_BATCH = 1 << 18  # coordinates drawn at a time
_UNIT = 2.0**-52
_ERR = 2.0**-12  # largest error of a centre that blocks allow for


class Row(NamedTuple):
    """One coordinate exactly: c = sum of weights[k] z[others[k]] / divisor, s^2 = sigma2 share."""

    others: list[int]
    weights: list[int]
    divisor: int
    share: Fraction


@dataclass(frozen=True, eq=False)
class Lattice:
    """A basis with its Gram-Schmidt coefficients; noise is u = z @ basis.

    c_i = centre[i] @ z / divisor[i] and s_i^2 = sigma2 share[i]. rounding: the relative error of
    centre[i] @ z in doubles, 0 where all of it is whole. spread: no coordinate has a standard
    deviation above sigma spread. exact: a coordinate without rounding.
    """

    basis: sp.csr_matrix = field(repr=False)
    centre: sp.csr_matrix = field(repr=False)
    divisor: Floats = field(repr=False)
    share: Floats = field(repr=False)
    rounding: Floats = field(repr=False)
    spread: float
    exact: Callable[[int], Row] = field(repr=False)

    @property
    def free(self) -> int:
        """Its dimension."""
        return len(self.share)

    def noise(self, z: Ints) -> Ints:
        """u, for z of shape (n, free)."""
        out: Ints = (self.basis.T @ z.T).T
        return out


def _sparse(shape: tuple[int, int], *entries: tuple[Any, Any, Any]) -> sp.csr_matrix:
    """A matrix of (rows, columns, values), listed in any order."""
    rows, columns, values = (np.concatenate(each) for each in zip(*entries, strict=True))
    return sp.csr_matrix((values, (rows, columns)), shape=shape)


def _whole_row(centre: sp.csr_matrix, i: int, divisor: int, share: Fraction) -> Row:
    """A row whose weights are whole."""
    part = slice(centre.indptr[i], centre.indptr[i + 1])
    weights = [int(weight) for weight in centre.data[part]]
    return Row(centre.indices[part].tolist(), weights, divisor, share)


def cells_in_groups(sizes: Ints, sums: Lattice) -> Lattice:
    """Cells in groups of these sizes, one after the other, whose sums are in the lattice `sums`."""
    last = np.cumsum(sizes) - 1
    inner = np.delete(np.arange(int(sizes.sum())), last)  # cells that are not the last of a group
    of, chain = np.repeat(np.arange(len(sizes)), sizes - 1), len(inner)
    at, step = np.arange(chain), inner - (last - sizes)[of]  # 1, 2, ... in each group
    goes_on = step < sizes[of] - 1
    entries = sums.basis.tocoo()
    several = sizes[entries.col] > 1
    group, moved = entries.col[several], entries.data[several]
    end = np.cumsum(sizes - 1) - 1  # each group's last coordinate
    own, number = sums.centre.tocoo(), chain + np.arange(sums.free)
    size = chain + sums.free
    centre = _sparse(
        (size, size),
        (at[goes_on], at[goes_on] + 1, step[goes_on].astype(float)),
        (end[group], number[entries.row[several]], (sizes[group] - 1.0) * moved),
        (number[own.row], number[own.col], own.data),
    )
    basis = _sparse(
        (size, int(sizes.sum())),
        (at, inner, np.ones(chain, dtype=np.int64)),
        (at, inner + 1, np.full(chain, -1)),
        (number[entries.row], last[entries.col], entries.data),
    )

    def exact(i: int) -> Row:
        if i < chain:
            k = int(step[i])
            return _whole_row(centre, i, k + 1, Fraction(k, k + 1))
        row = sums.exact(i - chain)
        return row._replace(others=[chain + j for j in row.others])

    return Lattice(
        basis,
        centre,
        np.concatenate([step + 1.0, sums.divisor]),
        np.concatenate([step / (step + 1.0), sums.share]),
        np.concatenate([np.zeros(chain), sums.rounding]),
        max(sums.spread, math.sqrt(float(sizes.max()))),
        exact,
    )


def zero_sums(groups: int) -> Lattice:
    """Sums of groups that are all zero."""
    none, empty = sp.csr_matrix((0, 0)), np.zeros(0)
    basis = sp.csr_matrix((0, groups), dtype=np.int64)
    return Lattice(basis, none, empty, empty, empty, 0.0, lambda _: Row([], [], 1, Fraction(0)))


def two_margins(features: Ints, sizes: Ints) -> Lattice | None:
    """Sums of groups given both margins; None unless a group's size is a product of two numbers,
    one of its row and one of its column. features: row and column of each group.
    """
    rows, columns = (int(number) + 1 for number in features.max(axis=0))
    place = np.zeros((rows, columns), dtype=np.int64)
    place[tuple(features.T)] = np.arange(len(features))
    r, c, unit = sizes[place[:, 0]], sizes[place[0]], int(sizes[place[0, 0]])
    if not np.array_equal(np.outer(r, c), unit * sizes[place]):
        return None
    up, across = np.cumsum(r), np.cumsum(c)
    i, j = (x.reshape(-1) for x in np.indices((rows - 1, columns - 1)))
    at, is_not_last, is_not_right = np.arange(len(i)), i + 2 < rows, j + 2 < columns
    near = (
        (is_not_last, columns - 1, up[i] * across[j + 1]),
        (is_not_right, 1, up[i + 1] * across[j]),
        (is_not_last & is_not_right, columns, -up[i] * across[j]),
    )
    centre = _sparse(
        (len(i), len(i)),
        *(
            (at[there], at[there] + step, weight[there].astype(float))
            for there, step, weight in near
        ),
    )
    divisor = up[i + 1] * across[j + 1]
    corners = ((0, 0, 1), (0, 1, -1), (1, 0, -1), (1, 1, 1))
    basis = _sparse(
        (len(i), len(features)),
        *((at, place[i + a, j + b], np.full(len(i), sign)) for a, b, sign in corners),
    )

    def exact(k: int) -> Row:
        a, b, d = int(i[k]), int(j[k]), int(divisor[k])
        grown = int(up[a]) * int(r[a + 1]) * int(across[b]) * int(c[b + 1])
        return _whole_row(centre, k, d, Fraction(grown, d * unit))

    sides = (up, r), (across, c)
    share = np.outer(*(total[:-1] * size[1:] / total[1:] for total, size in sides)) / unit
    widest = [float((total * (1 - total / total[-1])).max()) for total, _ in sides]
    return Lattice(
        basis,
        centre,
        divisor.astype(float),
        share.reshape(-1),
        np.zeros(len(i)),
        math.sqrt(widest[0] * widest[1] / unit),
        exact,
    )


def tied_sums(equations: Ints, sizes: Ints) -> Lattice:
    """Sums of groups given any equations; StructureError where its basis would take minutes."""
    if len(sizes) > MOST_GROUPS:
        raise StructureError(
            f"crossing figures tie the sums of {len(sizes)} groups of cells, more than "
            f"{MOST_GROUPS}.",
            remedy="Publish crossing figures by the same areas, or fewer or coarser ones.",
        )
    rows = np.ascontiguousarray(equations, dtype=np.int64)
    return _tied_sums(rows.tobytes(), tuple(sizes.tolist()))


@lru_cache(maxsize=32)
def _tied_sums(equations: bytes, sizes: tuple[int, ...]) -> Lattice:
    whole = kernel(np.frombuffer(equations, dtype=np.int64).reshape(-1, len(sizes))).basis
    if not len(whole):
        return zero_sums(len(sizes))
    lengths = np.rint(1024 / np.sqrt(np.array(sizes) / min(sizes))).astype(np.int64)
    short = fmpz_mat((whole * lengths).tolist()).lll().tolist()
    basis = np.array([[int(v) for v in row] for row in short], dtype=np.int64) // lengths
    basis = basis[np.argsort(((basis * lengths) ** 2).sum(axis=1), kind="stable")]
    scale = math.lcm(*sizes)
    weights = [scale // size for size in sizes]
    left = [[v * w for v, w in zip(row, weights, strict=True)] for row in basis.tolist()]
    gram = fmpz_mat(left) * fmpz_mat(basis.tolist()).transpose()
    digits = sum(math.log2(int(gram[i, i])) for i in range(len(basis)))  # of the largest minor
    if len(basis) ** 3 * digits**1.6 > _MOST_WORK:
        raise StructureError(
            f"crossing figures tie the sums of {len(sizes)} groups of cells of too many different "
            "sizes for exact draws.",
            remedy="Publish crossing figures by the same areas, or fewer or coarser ones.",
        )
    minors = [[int(v) for v in row] for row in gram.fflu()[3].tolist()]
    free = len(basis)

    def exact(i: int) -> Row:
        before, own = minors[i - 1][i - 1] if i else 1, minors[i][i]
        weights = [-minor for minor in minors[i][i + 1 :]]
        return Row(list(range(i + 1, free)), weights, own, Fraction(scale * before, own))

    centre = np.zeros((free, free))
    for i in range(free):
        centre[i, i + 1 :] = [-minor / minors[i][i] for minor in minors[i][i + 1 :]]
    centre = sp.csr_matrix(centre)
    inverse = np.linalg.inv(basis / np.array(sizes) @ basis.T)
    return Lattice(
        sp.csr_matrix(basis),
        centre,
        np.ones(free),
        np.array([float(exact(i).share) for i in range(free)]),
        (np.diff(centre.indptr) + 3) * _UNIT,
        math.sqrt(float(np.diag(inverse).max())),
        exact,
    )


def log_rho(s2: Floats) -> Floats:
    """log of the sum of exp(-x^2/(2 s2)) over the integers; relative error 1e-14.

    The direct sum for s2 < 1/4, else the sum over the dual, by Poisson summation.
    """
    k = np.arange(1, 12, dtype=float)
    out = np.empty_like(s2)
    small = s2 < 0.25
    out[small] = np.log1p(2 * np.exp(-k * k / (2 * s2[small][:, None])).sum(axis=1))
    s = s2[~small][:, None]
    dual = 2 * np.exp(-2 * math.pi**2 * s * k * k).sum(axis=1)
    out[~small] = 0.5 * np.log(2 * math.pi * s[:, 0]) + np.log1p(dual)
    return out


@dataclass(frozen=True, eq=False)
class Klein:
    """The sampler for one lattice. `draw(randomness, n)` returns coordinates z of shape (n, free).

    Everything that takes time depends on the lattice and on sigma2 alone, which are public.
    """

    lattice: Lattice
    sigma2: Fraction
    slack: float = SLACK

    def __post_init__(self) -> None:
        if 16 * math.sqrt(self.sigma2) * self.lattice.spread > self.largest:
            raise StructureError(
                f"sigma2 = {self.sigma2} makes noise too wide for 64 bits in a table of this size.",
                remedy="Use a smaller sigma2, or a smaller table.",
            )
        if self.log_acceptance < -700 or self.numbers_proposed > MOST_PROPOSED:
            raise StructureError(
                f"at sigma2 = {self.sigma2} perhaps only one proposal in "
                f"10^{-self.log_acceptance / math.log(10):.0f} would be accepted in a table of "
                "this size: a draw would take too long.",
                remedy="Use a smaller rho (so that sigma2 is 1 or more), or a smaller table.",
            )

    @cached_property
    def largest(self) -> int:
        """Coordinates up to this are safe: sums are whole below 2^52, or err is below 2^-12."""
        weights = np.asarray(abs(self.lattice.centre).sum(axis=1)).reshape(-1)
        weights = weights + self.lattice.divisor
        rounding = self.lattice.rounding
        safe = np.where(rounding > 0, _ERR / np.maximum(rounding, _UNIT), 2.0**52) / weights
        return int(safe.min(initial=2.0**52))

    @cached_property
    def variances(self) -> Floats:
        """s_i^2 = sigma2 share_i."""
        return float(self.sigma2) * self.lattice.share

    @cached_property
    def log_Z_bounds(self) -> tuple[float, float]:
        """log Z lies between these.

        Above: sum log rho_i(Z). Below: 0 (the term u = 0), and d/2 log(2 pi sigma2) - log det (the
        term 0 of the sum over the dual lattice), which is sum 1/2 log(2 pi s_i^2).
        """
        s2 = self.variances
        return max(0.0, 0.5 * math.fsum(np.log(2 * math.pi * s2))), math.fsum(log_rho(s2))

    @cached_property
    def log_acceptance(self) -> float:
        """A lower bound of log P(accept) = log Z - sum log rho_i(Z)."""
        low, high = self.log_Z_bounds
        return low - high

    @property
    def numbers_proposed(self) -> float:
        """At most about how many numbers are proposed for one draw; reading 64 others counts as
        one.
        """
        each = self.lattice.free + self.lattice.centre.nnz / 64
        return float(each * math.exp(-self.log_acceptance))

    @cached_property
    def sure(self) -> int:
        """A word below this accepts whatever the centres: 1 - A(u) <= sum of 4 q/(1 - q^3)."""
        q = np.exp(-2 * math.pi**2 * self.variances)
        bound = 1.001 * math.fsum(4 * q / (1 - q**3))
        return max(0, (1 << 64) - math.ceil(Fraction(bound) * (1 << 64)) - 1) if bound < 1 else 0

    @cached_property
    def _blocks(self) -> tuple[HalfGaussian, Ints]:
        """The law of block numbers, of variance S^2 / B^2, and log2 B of each coordinate.

        S^2 is a power of 4 times that of the narrowest, so that one law serves all; it is at most
        four times s^2 unless B = 1.
        """
        needed = self.lattice.share * np.where(
            self.lattice.rounding > 0, 1 + 2.0**-10, 1 + 2.0**-40
        )
        widest = max(Fraction(1), Fraction(math.ceil(8 * needed.max(initial=0.0)), 8)) * self.sigma2
        b = 0
        while widest >= 16 << (2 * (b + 1)):
            b += 1
        law = HalfGaussian(widest / (1 << (2 * b)))
        levels = float(law.sigma2 / self.sigma2) * 4.0 ** np.arange(b + 1)
        return law, np.minimum(np.searchsorted(levels, needed), b).astype(np.int64)

    def draw(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws of the coordinates.

        Words: draws are made in chunks of about 2^18 coordinates. A chunk takes blocks by
        `ExactLaw.draw` and as many words, in batches; a proposal for a coordinate takes one of
        each, the acceptance of a draw one word and no block (its block is thrown away). Open
        decisions take further words one at a time. What is left of a batch is thrown away.
        """
        out = np.empty((n, self.lattice.free), dtype=np.int64)
        step = max(1, _BATCH // max(1, self.lattice.free))
        for start in range(0, n if self.lattice.free else 0, step):
            self._fill(out[start : start + step], randomness)
        return out

    @cached_property
    def _arrays(self) -> Any:
        """What the compiled loop reads of each coordinate."""
        of = self.lattice
        return (
            of.centre.indptr.astype(np.int64), of.centre.indices.astype(np.int64), of.centre.data,
            of.divisor, of.rounding, 1 / (2 * self.variances), self._blocks[1],
        )  # fmt: skip

    def _fill(self, z: Ints, randomness: Randomness) -> None:
        from congenial.sampling import lattice_kernels as kernels

        task, pos, at = 0, z.shape[1], 0
        need, law = int(z.size * 1.3) + 64, self._blocks[0]
        blocks, words = law.draw(randomness, need), randomness.words(need)
        while True:
            status, task, pos, at = kernels.klein(
                z, task, pos, blocks, words, at, self._arrays, 1 / (2 * float(law.sigma2)),
                np.uint64(self.sure), self.slack, self.largest,
            )  # fmt: skip
            if status == kernels.DONE:
                return
            if status == kernels.MORE:
                more = max(64, need // 8)
                blocks, words = law.draw(randomness, more), randomness.words(more)
                at = 0
            elif status == kernels.OPEN:
                word, k = int(words[at - 1]), int(blocks[at - 1])
                pos -= self._is_kept(z[task], pos - 1, k, word, randomness)
            elif status == kernels.ACCEPT:
                log_p = partial(self.log_accept, z[task])
                task += below(int(words[at - 1]), 64, log_p, randomness)
                pos = z.shape[1]
            else:
                raise RandomnessError(
                    "a draw does not fit 64 bits; nothing was released.", remedy="Try again."
                )

    def centre(self, z: Ints, i: int) -> tuple[Fraction, Fraction]:
        """(c_i, s_i^2), exactly."""
        row = self.lattice.exact(i)
        total = sum(w * int(z[j]) for j, w in zip(row.others, row.weights, strict=True))
        return Fraction(total, row.divisor), self.sigma2 * row.share

    def _is_kept(self, z: Ints, i: int, k: int, word: int, randomness: Randomness) -> bool:
        """Whether an open proposal z_i of block k is accepted, in rationals."""
        c, s2 = self.centre(z, i)
        law, shifts = self._blocks
        shift = int(shifts[i])
        log_p = Fraction(k * k) / (2 * law.sigma2) - (int(z[i]) - c) ** 2 / (2 * s2)
        return below(word >> (1 + shift), 63 - shift, lambda: ball(log_p), randomness)

    def log_accept(self, z: Ints) -> Any:
        """log A(u) as a ball at the working precision."""
        total = arb(0)
        for i in range(len(z)):
            c, s2 = self.centre(z, i)
            total += _log_ratio(s2, c - math.floor(c))
        return total


def _log_ratio(s2: Fraction, c: Fraction) -> Any:
    """log rho(Z - c)/rho(Z) as a ball: sums over |x| <= reach, and a ball for what is beyond."""
    reach = 2 + math.ceil(math.sqrt(2 * float(s2) * (ctx.prec + 40)))

    def rho(centre: Fraction) -> Any:
        total = arb(0)
        for x in range(-reach, reach + 2):
            total += (-ball((x - centre) ** 2 / (2 * s2))).exp()
        # beyond reach the terms at least halve: they are below exp(-(reach^2)/(2 s2)) to start with
        last = (-ball(Fraction(reach * reach) / (2 * s2))).exp()
        tail = last / (1 - (-ball(Fraction(reach) / s2)).exp())
        return total + arb(0).union(2 * tail)

    return (rho(c) / rho(Fraction(0))).log()


_CLOSE = 1e-6  # bounds of log Z this close are printed as one number


@lru_cache(maxsize=4096)
def log_normaliser(k: int, sigma2: Fraction) -> float:
    """Return log of the sum of exp(-||u||^2/(2 sigma2)) over integer u in k cells with sum 0.

    sigma2 >= 8: the bounds of `Klein` agree to 1e-16. Below: the mean over N points of
    theta(j/N)^k, theta(x) = sum_n exp(-n^2/(2 sigma2)) e^(2 pi i n x) > 0, is the sum over u with
    sum 0 mod N. A sum of S != 0 contributes at most exp(-S^2/(2 k sigma2)) Z (split u into its mean
    and the rest, which lies in a coset of the lattice), so N = 10 sqrt(k sigma2) + 2 leaves a
    relative error below 1e-20.

    >>> round(log_normaliser(2, Fraction(1)), 6) == round(
    ...     math.log(sum(math.exp(-(n * n)) for n in range(-9, 10))), 6)
    True
    """
    if k == 1:
        return 0.0
    if sigma2 >= 8:
        j = np.arange(1, k, dtype=float)
        return math.fsum(log_rho(float(sigma2) * j / (j + 1)))
    n = math.ceil(10 * math.sqrt(k * sigma2)) + 2
    x = np.arange(n) / n
    s = float(sigma2)
    m = np.arange(-30, 31)
    if s < 0.1:  # away from its peak theta is a sum of waves close to 1
        waves = np.cos(2 * np.pi * np.outer(x, m[31:]))
        logs = np.log1p(2 * waves @ np.exp(-(m[31:] ** 2) / (2 * s)))
    else:
        peaks = np.exp(-2 * np.pi**2 * s * (x[:, None] + m) ** 2).sum(axis=1)
        logs = 0.5 * math.log(2 * math.pi * s) + np.log(peaks)
    top = float(logs.max())
    return k * top + math.log(math.fsum(np.exp(k * (logs - top))) / n)


class GroupedGaussian(Groups):
    """Discrete Gaussian noise on cells, given that each group of cells sums to zero.

    labels: as for `GroupedNoise` (0, 1, 2, ... for the groups, -1 for a cell without noise; a group
    of one cell gets 0). Density, for u with all group sums 0 and u = 0 on cells that are not free:
    p(u) = exp(-||u||^2/(2 sigma2)) / prod over groups of Z_k. A draw is linear in the cells; groups
    are independent, and each is accepted on its own.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> u = GroupedGaussian([0, 0, 1, 1, 1, -1], 4).draw(SeededRandomness(1))
    >>> (int(u[:2].sum()), int(u[2:5].sum()), int(u[5]))
    (0, 0, 0)
    """

    def __init__(self, labels: npt.ArrayLike, sigma2: Fraction | int) -> None:
        super().__init__(labels)
        self.sigma2 = positive_rational("sigma2", sigma2)
        order = np.argsort(self.labels, kind="stable")[int(np.sum(self.labels < 0)) :]
        starts = np.concatenate([[0], np.cumsum(self.sizes)])[:-1]
        # cells of the groups of one size, one row per group, and their sampler
        self._parts: list[tuple[Ints, Klein]] = []
        for k in np.unique(self.sizes[self.sizes >= 2]):
            members = order[starts[self.sizes == k][:, None] + np.arange(k)]
            line = cells_in_groups(np.array([k]), zero_sums(1))
            self._parts.append((members, Klein(line, self.sigma2)))

    def _log_normaliser(self, k: int) -> float:
        return log_normaliser(k, self.sigma2)

    def _log_weight(self, noise: Ints) -> Floats:
        norm: Floats = (noise.astype(float) ** 2).sum(axis=-1)
        return -norm / (2 * float(self.sigma2))

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells): sizes in ascending order, all draws of all
        groups of one size at a time, by `Klein.draw`.
        """
        out = np.zeros((n, self.cells), dtype=np.int64)
        for members, sampler in self._parts:
            z = sampler.draw(randomness, n * len(members))
            out[:, members] = sampler.lattice.noise(z).reshape(n, *members.shape)
        return out


class CrossingGaussian(WeightedLaw):
    """Discrete Gaussian noise on cells, given equations on the sums of groups of cells.

    labels: the group of each cell, 0, 1, 2, ...; equations: one row of integers each, one column
    per group; features: row and column of each group where the equations are both margins of a
    table of groups. Density p(u) = exp(-||u||^2/(2 sigma2)) / Z. log_Z is None unless sigma is
    large enough for the bounds `log_Z_bounds` to agree (sigma2 >= 4 does for most tables);
    `log_weight` is always there. Given both margins of groups whose sizes are those of rows times
    those of columns (such as: all equal) a proposal is linear in the cells, and tables may be of
    any size; other equations: a proposal is quadratic in the groups, at most `MOST_GROUPS`. Where
    sigma is so small that a draw could need more than `MOST_PROPOSED` numbers the law is refused
    (300 x 300 cells: below sigma of about .83).

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> margins = np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])
    >>> u = CrossingGaussian([0, 0, 1, 2, 3, 3], margins, 4).draw(SeededRandomness(1))
    >>> int(u[0] + u[1] + u[2]), int(u[0] + u[1] + u[3])  # a row and a column of 2 x 2 groups
    (0, 0)
    """

    log_ratio_error = 0.0

    def __init__(
        self,
        labels: npt.ArrayLike,
        equations: npt.ArrayLike,
        sigma2: Fraction | int,
        features: Ints | None = None,
    ) -> None:
        self.sigma2 = positive_rational("sigma2", sigma2)
        self.labels = checked_labels(labels)
        self.equations: Ints = np.asarray(equations, dtype=np.int64)
        sizes = np.bincount(self.labels, minlength=self.equations.shape[1])
        sums = None
        if features is not None and features.shape[1] == 2:
            sums = two_margins(features, sizes)
        sums = tied_sums(self.equations, sizes) if sums is None else sums
        self.sampler = Klein(cells_in_groups(sizes, sums), self.sigma2)
        self._order = np.argsort(self.labels, kind="stable")

    @classmethod
    def of_table(cls, shape: tuple[int, int], sigma2: Fraction | int) -> Self:
        """The cells of a table, row by row, given both its margins."""
        rows, columns = checked_shape(shape)
        features = np.indices((rows, columns)).reshape(2, -1).T
        return cls(np.arange(rows * columns), margins(features), sigma2, features)

    @property
    def log_Z_bounds(self) -> tuple[float, float]:
        """log Z lies between these."""
        return self.sampler.log_Z_bounds

    @cached_property
    def log_Z(self) -> float | None:
        """log of the sum of exp(-||u||^2/(2 sigma2)), or None where it is not known to 5e-7."""
        low, high = self.log_Z_bounds
        return (low + high) / 2 if high - low <= _CLOSE else None

    def log_weight(self, u: npt.ArrayLike) -> Any:
        """-||u||^2/(2 sigma2), or -inf off the lattice: the log density up to log Z.

        u has shape (..., cells); the result has the leading shape.
        """
        noise = np.asarray(u, dtype=np.int64)
        if noise.shape[-1:] != self.labels.shape:
            raise StructureError(
                f"noise has {noise.shape[-1:]} cells, the groups have {self.labels.size}.",
                remedy="Give one value per cell.",
            )
        norm = (noise.astype(float) ** 2).sum(axis=-1)
        holds = ~np.any(noise @ self.equations.T[self.labels], axis=-1)
        return np.where(holds, -norm / (2 * float(self.sigma2)), -np.inf)[()]

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells), by `Klein.draw`."""
        out = np.empty((n, self.labels.size), dtype=np.int64)
        out[:, self._order] = self.sampler.lattice.noise(self.sampler.draw(randomness, n))
        return out


def checked_shape(shape: tuple[int, int]) -> tuple[int, int]:
    """(r, c) as integers >= 1, or StructureError."""
    if len(shape) != 2 or any(int(k) != k or k < 1 for k in shape):
        raise StructureError(
            f"shape {shape!r} is not that of a two-way table.", remedy="Give (rows, columns) >= 1."
        )
    return int(shape[0]), int(shape[1])


def checked_tables(u: npt.ArrayLike, shape: tuple[int, int]) -> Ints:
    """u as integers of shape (..., r, c), or StructureError."""
    noise = np.asarray(u, dtype=np.int64)
    if noise.shape[-2:] != shape:
        raise StructureError(
            f"a table of shape {noise.shape[-2:]} was given, {shape} is needed.",
            remedy="Give one value per cell.",
        )
    return noise


def zero_margins(noise: Ints) -> npt.NDArray[np.bool_]:
    """Whether all row and column sums are zero, for each table of a batch."""
    off = noise.sum(axis=-1).any(axis=-1) | noise.sum(axis=-2).any(axis=-1)
    return np.asarray(~off)
