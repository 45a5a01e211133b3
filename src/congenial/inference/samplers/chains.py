"""Data augmentation: chains over latent tables and parameters, the workhorse.

Where the law of the release is independent noise and counts have weights (see _kernels), a sweep
redraws the latent table exactly along lines that connect all conforming tables: a Gibbs sampler
with nothing to reject. The parameters are integrated out where they can be (`Collapsed`); where
only the counts can be, those are (`Marginal`); otherwise both are kept (`Augmented`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.errors import InferenceError
from congenial.inference.cell_noise import LevelNoise
from congenial.inference.latent_tables import FIXED
from congenial.inference.models.counts import log_weights
from congenial.inference.models.model import BoundModel
from congenial.inference.samplers import count_kernels, line_kernels
from congenial.inference.samplers.log_normaliser import PricedSweeps
from congenial.inference.samplers.parameter_steps import NewtonSteps, Walk, begin

INNER = 4  # Metropolis steps in theta for each sweep over the table


class ChainSampler(ABC):
    """Several chains at once: `iterate` moves them, `theta` and `x` are where they are."""

    bound: BoundModel
    chains: int
    words: str

    @abstractmethod
    def iterate(self, learn: bool) -> None:
        """One step of every chain; `learn` during the warm-up only."""

    @property
    @abstractmethod
    def theta(self) -> Floats:
        """Parameters, (chains, size)."""

    @property
    @abstractmethod
    def x(self) -> Any:
        """Latent tables, (chains, cells)."""

    acceptance: float | None = None
    acceptance_floor: float | None = None
    seconds: float = 0.0  # of a step, as far as is known before the first one


class TableChains(ChainSampler):
    """The latent tables and their exact redraw given the weights of the modelled counts.

    The modelled counts are the latent ones, or sums of them where the law is known for finer cells.
    """

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        self.bound, self.chains, self.rng = bound, chains, rng
        fine, owner = bound.observation.finer or (bound.observation, None)
        self.fine, self.known = fine, fine.conforming
        self.owner = np.arange(fine.cells) if owner is None else owner
        self.widths = np.bincount(self.owner, minlength=bound.observation.cells).astype(float)
        start = self.known.start(fine.y, self._most())
        self._latent = np.tile(start, (chains, 1))
        self.y = np.ascontiguousarray(fine.y)
        self.levels = fine.levels or LevelNoise.none(len(start))
        self.room = np.empty((8 + 4 * self.levels.above.shape[1], 3))
        plain = owner is None and not self.known.ties
        self.tied = bound.parts if bound.free_totals and plain else None
        self.parts = np.zeros(len(start), np.int64) if self.tied is None else self.tied.copy()
        self.words = f"moves along {self.known.words}"
        if fine.levels is not None:
            self.words += ", with noise in sums"
        if owner is not None:
            self.words += ", of finer cells"
        self.priced: PricedSweeps | None = None
        if fine.normaliser is not None:
            self.priced = PricedSweeps(fine.normaliser, self._latent, self.known.labels)
            self.words += ", kept by the normaliser of the release"

    def _most(self) -> Floats:
        """The largest possible latent counts."""
        most = self.bound.most
        if self.bound.observation.finer is not None and np.any(np.isfinite(most)):
            raise InferenceError(
                "capacities of sums that mix groups of published totals: no connecting moves are "
                "proved.",
                remedy="Use a model without capacities, such as poisson, or the finest cells.",
            )
        return np.asarray(most[self.owner])

    @property
    def x(self) -> Ints:
        """Tables of modelled counts, (chains, cells)."""
        if self.bound.observation.finer is None:
            return self._latent
        sums = np.zeros((len(self.widths), self.chains), dtype=np.int64)
        np.add.at(sums, self.owner, self._latent.T)
        return np.ascontiguousarray(sums.T)

    def sweep(self, cells: Floats) -> None:
        """Redraw every table along a fresh set of lines; cells: (chains, counts, 4)."""
        assert self.fine.noise is not None
        lines = self.known.lines(self.rng, self.tied)
        totals = np.zeros((self.chains, 0), dtype=np.int64)
        if self.tied is not None:
            totals = np.zeros((self.chains, int(self.tied.max()) + 1), dtype=np.int64)
            np.add.at(totals.T, self.tied, self._latent.T)
        arguments, levels = self.fine.noise.arguments, self.levels
        gaps = levels.gaps(self._latent)
        shared = levels.squared, self.owner, self.widths
        if self.priced is not None:
            self.priced.sweep(
                self._latent, lines, self.rng,
                lambda chain: (
                    self.y, cells[chain], *arguments, self.parts, totals[chain],
                    levels.above, levels.rates, gaps[chain], *shared, self._latent[chain],
                    self.room,
                ),
            )  # fmt: skip
            return
        line_kernels.sweep(
            self._latent, lines, self.rng, self.y, cells, *arguments, self.parts, totals,
            levels.above, levels.rates, gaps, *shared, self.x.copy(), self.room,
        )  # fmt: skip

    def concave(self, cells: Floats) -> Floats:
        """Weights with log-concave steps: G(x + a)/G(x + k) with a < k is a mixture of v^x.

        v given x is Beta(x + a, k - a), because the Beta function is its normaliser; the same for
        the factor in n - x. Drawing v makes one more Gibbs step.
        """
        x = self.x
        cells = np.array(np.broadcast_to(cells, (*x.shape, 4)))
        c, a, n, b = (cells[..., k] for k in range(4))
        widths = np.broadcast_to(self.widths, x.shape)
        low = (a > 0) & (a < widths)
        c[low] *= self.rng.beta(x[low] + a[low], (widths - a)[low])
        a[low] = widths[low]
        low = (b > 0) & (b < 1)
        c[low] /= np.maximum(self.rng.beta(n[low] - x[low] + b[low], 1 - b[low]), 1e-300)
        b[low] = 1.0
        return cells


class Collapsed(TableChains):
    """Parameters integrated out: the chain is over tables only, parameters are drawn afterwards."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        cells = bound.collapsed()
        assert cells is not None
        self.cells = cells
        self.words += ", parameters integrated out"

    def iterate(self, learn: bool) -> None:  # noqa: ARG002 - nothing to learn
        """One sweep."""
        self.sweep(self.concave(self.cells))

    @property
    def theta(self) -> Floats:
        """Parameters given the present tables, a fresh exact draw."""
        return self.bound.draw_parameters(self.rng, self.x)

    @property
    def acceptance(self) -> float | None:  # type: ignore[override]
        """Share of moves kept by the normaliser; nothing is rejected without one."""
        return None if self.priced is None else self.priced.acceptance


class Augmented(TableChains):
    """Tables and parameters in turn."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        table = self.x[:1]

        def first(theta: Floats) -> Floats:
            return bound.log_prior(theta) + bound.score(np.repeat(table, len(theta), axis=0), theta)

        self.walk: Walk | NewtonSteps
        if bound.curvature(table, bound.start(table[0])[None]) is None:
            self.walk = begin(first, bound.start(table[0]), chains, rng)
        else:
            self.walk = NewtonSteps(bound, table[0], chains, rng)
            self.words += ", coefficients by Newton proposals"

    def iterate(self, learn: bool) -> None:
        """A sweep over the tables, then steps in the parameters."""
        cells = self.bound.given(self.walk.theta)
        assert cells is not None
        self.sweep(self.concave(self._given_people(cells)))
        if isinstance(self.walk, NewtonSteps):
            self.walk.step(self.x, self.rng, learn)
        else:
            self.walk.step(self._target, self.rng, learn, INNER)

    def _given_people(self, cells: Floats) -> Floats:
        """Weights where unknown totals of parts are tied to others: each part gets an intensity.

        total! is the integral of m^total exp(-m), so a flat prior of the total and outcomes given
        it are counts with means m p under a flat prior of m; m given the total is Gamma(total + 1).
        """
        if not self.bound.free_totals or self.tied is not None:
            return cells
        parts, x = self.bound.parts, self.x
        assert parts is not None
        totals = np.zeros((int(parts.max()) + 1, self.chains))
        np.add.at(totals, parts, x.T)
        means = self.rng.standard_gamma(totals + 1.0)
        cells = cells.copy()
        cells[..., 0] *= means[parts].T
        return cells

    def _target(self, theta: Floats) -> Floats:
        return self.bound.log_prior(theta) + self.bound.score(self.x, theta)

    @property
    def theta(self) -> Floats:
        """Parameters, (chains, size)."""
        return self.walk.theta

    @property
    def acceptance(self) -> float:  # type: ignore[override]
        """Share of parameter steps accepted; the tables have nothing to reject."""
        return self.walk.acceptance


class Marginal(ChainSampler):
    """Counts summed out, cell by cell: the chain is over parameters only.

    log p(y | theta) = sum over cells of log sum over x of p(x | theta) p(y | x). Needs cells that
    are independent given theta and no published sums. It mixes well however strong the noise is,
    where keeping the counts would tie parameters to them.
    """

    words = "latent counts summed out"

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        self.bound, self.chains, self.rng = bound, chains, rng
        observation = bound.observation
        assert observation.noise is not None
        self.moving = observation.conforming.moving
        self.fixed = np.flatnonzero(observation.conforming.labels == FIXED)
        self.noise = observation.noise.at(self.moving)
        self.y = np.ascontiguousarray(observation.y[self.moving])
        start = bound.start(observation.conforming.start(observation.y, bound.most))
        self.walk = begin(self.target, start, chains, rng, fixed=True)

    def target(self, theta: Floats) -> Floats:
        """log p(theta) + log p(y | theta) for each row."""
        cells = self.bound.given(theta)
        assert cells is not None
        densities = np.full(len(theta), -np.inf)
        able = np.isfinite(self.bound.log_prior(theta)) & self._near(cells)
        if np.any(able):
            inside = np.ascontiguousarray(cells[able][:, self.moving])
            logs = count_kernels.log_marginals(self.y, inside, *self.noise.arguments).sum(axis=-1)
            fixed_counts = self.bound.observation.conforming.known[self.fixed]
            logs = logs + log_weights(fixed_counts, cells[able][:, self.fixed]).sum(axis=-1)
            logs = logs + self.bound.log_constant(theta[able]) + self.bound.log_prior(theta[able])
            densities[able] = np.where(np.isnan(logs), -np.inf, logs)
        return densities

    def _near(self, cells: Floats) -> Any:
        """Rows whose counts are not absurdly far from some released value.

        Where the model's mean is more than 40 of its standard deviations above y + 1000 noise
        scales, the density is below exp(-500): such rows count as impossible, because summing
        would take for ever.
        """
        kind, scale, rows, _ = self.noise.arguments
        reach = rows.shape[1] if kind == 2 else 1 / np.log(scale) if kind == 0 else scale**-0.5
        c, a, n = (cells[:, self.moving, k] for k in range(3))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            mean = np.where(a > 0, a * c / (1 - c), c)
            spread = np.sqrt(np.where(a > 0, mean / (1 - c), mean))
            far = (n < 0) & (mean - 40 * spread > np.abs(self.y) + 1000 * reach)
        return ~np.any(far, axis=1)

    def iterate(self, learn: bool) -> None:
        """Two steps in the parameters."""
        self.walk.step(self.target, self.rng, learn, 2)

    @property
    def theta(self) -> Floats:
        """Parameters, (chains, size)."""
        return self.walk.theta

    @property
    def x(self) -> Ints:
        """Latent counts given the present parameters, a fresh exact draw."""
        observation = self.bound.observation
        out = np.tile(observation.conforming.known, (self.chains, 1))
        cells = self.bound.given(self.theta)
        assert cells is not None
        for chain in range(self.chains):
            inside = np.ascontiguousarray(cells[chain, self.moving])
            uniforms = self.rng.random((len(self.moving), 1))
            counts = count_kernels.draw_counts(self.y, inside, *self.noise.arguments, uniforms)
            out[chain, self.moving] = counts[:, 0]
        return out

    @property
    def acceptance(self) -> float:  # type: ignore[override]
        """Share of steps accepted."""
        return self.walk.acceptance
