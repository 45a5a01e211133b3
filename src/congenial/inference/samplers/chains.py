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

from congenial.inference.cell_noise import Floats, Ints
from congenial.inference.latent_tables import FIXED
from congenial.inference.level_noise import LevelNoise
from congenial.inference.models.counts import log_weights
from congenial.inference.models.model import BoundModel
from congenial.inference.samplers.log_normaliser import PricedSweeps
from congenial.inference.samplers.metropolis import Walk, begin
from congenial.inference.samplers.newton_steps import NewtonSteps

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
    """The latent tables and their exact redraw given the weights of the cells."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        self.bound, self.chains, self.rng = bound, chains, rng
        observation = bound.observation
        self.known = observation.conforming
        start = self.known.start(observation.y, bound.most)
        self._x = np.tile(start, (chains, 1))
        self.y = np.ascontiguousarray(observation.y)
        self.tied = bound.parts if bound.free_totals else None
        self.parts = np.zeros(len(start), np.int64) if bound.parts is None else bound.parts.copy()
        self.words = f"moves along {self.known.words}"
        self.levels = observation.levels or LevelNoise.none(len(start))
        if observation.levels is not None:
            self.words += ", with noise in sums"
        self.priced: PricedSweeps | None = None
        if observation.normaliser is not None:
            self.priced = PricedSweeps(observation.normaliser, self._x, self.known.labels)
            self.words += ", kept by the normaliser of the release"

    @property
    def x(self) -> Ints:
        """Latent tables, (chains, cells)."""
        return self._x

    def sweep(self, cells: Floats) -> None:
        """Redraw every table along a fresh set of lines; cells: (chains, cells, 4)."""
        from congenial.inference.samplers import line_kernels  # numba only when something is drawn

        assert self.bound.observation.noise is not None
        lines = self.known.lines(self.rng, self.tied)
        totals = np.zeros((self.chains, 0), dtype=np.int64)
        if self.tied is not None:
            totals = np.zeros((self.chains, int(self.tied.max()) + 1), dtype=np.int64)
            np.add.at(totals.T, self.tied, self._x.T)
        arguments, levels = self.bound.observation.noise.arguments, self.levels
        gaps = levels.sums(self.y - self._x)
        if self.priced is not None:
            self.priced.sweep(
                self._x, lines, self.rng,
                lambda chain: (
                    self.y, cells[chain], *arguments, self.parts, totals[chain],
                    levels.above, levels.rates, gaps[chain],
                ),
            )  # fmt: skip
            return
        line_kernels.sweep(
            self._x, lines, self.rng, self.y, cells, *arguments, self.parts, totals,
            levels.above, levels.rates, gaps,
        )  # fmt: skip

    def concave(self, cells: Floats) -> Floats:
        """Weights with log-concave steps: G(x + a)/G(x + 1) with a < 1 is a mixture of v^x.

        v given x is Beta(x + a, 1 - a), because the Beta function is its normaliser; the same for
        the factor in n - x. Drawing v makes one more Gibbs step.
        """
        cells = np.array(np.broadcast_to(cells, (*self._x.shape, 4)))
        c, a, n, b = (cells[..., k] for k in range(4))
        low = (a > 0) & (a < 1)
        c[low] *= self.rng.beta(self._x[low] + a[low], 1 - a[low])
        a[low] = 1.0
        low = (b > 0) & (b < 1)
        c[low] /= np.maximum(self.rng.beta(n[low] - self._x[low] + b[low], 1 - b[low]), 1e-300)
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
        return self.bound.draw_parameters(self.rng, self._x)

    @property
    def acceptance(self) -> float | None:  # type: ignore[override]
        """Share of moves kept by the normaliser; nothing is rejected without one."""
        return None if self.priced is None else self.priced.acceptance


class Augmented(TableChains):
    """Tables and parameters in turn."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        table = self._x[:1]

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
        self.sweep(self.concave(cells))
        if isinstance(self.walk, NewtonSteps):
            self.walk.step(self._x, self.rng, learn)
        else:
            self.walk.step(self._target, self.rng, learn, INNER)

    def _target(self, theta: Floats) -> Floats:
        return self.bound.log_prior(theta) + self.bound.score(self._x, theta)

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
        from congenial.inference.samplers import count_kernels

        cells = self.bound.given(theta)
        assert cells is not None
        found = np.full(len(theta), -np.inf)
        able = np.isfinite(self.bound.log_prior(theta)) & self._near(cells)
        if np.any(able):
            inside = np.ascontiguousarray(cells[able][:, self.moving])
            logs = count_kernels.log_marginals(self.y, inside, *self.noise.arguments).sum(axis=-1)
            known = self.bound.observation.conforming.known[self.fixed]
            logs = logs + log_weights(known, cells[able][:, self.fixed]).sum(axis=-1)
            logs = logs + self.bound.log_constant(theta[able]) + self.bound.log_prior(theta[able])
            found[able] = np.where(np.isnan(logs), -np.inf, logs)
        return found

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
        from congenial.inference.samplers import count_kernels

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


def independent_draws(
    bound: BoundModel, draws: int, rng: np.random.Generator
) -> tuple[Floats, Ints]:
    """Independent draws of (theta, x): parameters integrated out, cells unrelated, no sums known.

    Each count has a law on the integers given its released value; that law is tabulated once and
    drawn from, and theta follows given the counts.
    """
    from congenial.inference.samplers import count_kernels

    observation, cells = bound.observation, bound.collapsed()
    assert cells is not None
    assert observation.noise is not None
    moving = observation.conforming.moving
    x = np.empty((draws, observation.cells), dtype=np.int64)
    x[:] = observation.conforming.known
    x[:, moving] = count_kernels.draw_counts(
        np.ascontiguousarray(observation.y[moving]),
        np.ascontiguousarray(cells[moving]),
        *observation.noise.at(moving).arguments,
        rng.random((len(moving), draws)),
    ).T
    return bound.draw_parameters(rng, x), x
