"""Chains for any density and any model: Metropolis moves in the latent values and the parameters.

Two kernels for the latent table:

- `RecordChains`: one record is drawn again from the model and kept with probability
  min(1, p(y | x') / p(y | x)). The model's own terms cancel, so at least exp(-l) of the proposals
  are accepted, l the largest change of log p(y | x), normaliser included, over such
  moves (Ju, Awan, Gong and Rao 2022, with their epsilon replaced by l: it is epsilon only for a
  pure promise about one record).
- `Anything`: units move along the connecting lines by random steps; no such floor is known.

Where the public figures and bounds leave few tables, all of them are looked at.

Bounds on sums may cut the conforming tables into pieces between which no moves are proved, and the
normaliser of the release is then a sum over all of them. With a list of the tables both are easy:
a latent table is drawn from the whole list at once, with nothing to reject and nothing to connect.
"""

from __future__ import annotations

import math
import time
from abc import abstractmethod
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.inference.feasibility import LEAST_MOVES
from congenial.inference.latent_tables import FREE, no_mass
from congenial.inference.models.counts import log_weights
from congenial.inference.models.model import BoundModel
from congenial.inference.models.outcomes import Outcome
from congenial.inference.samplers.chains import INNER, ChainSampler
from congenial.inference.samplers.parameter_steps import Walk, begin

TRIES = 2000  # prior draws among which a possible starting point is sought


class General(ChainSampler):
    """Latent values and parameters in turn; subclasses move the latent values."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        self.bound, self.chains, self.rng = bound, chains, rng
        self.kept = self.tried = 0.0
        self._x, theta = self._begin()
        self._law = bound.observation.log_law(self._x)
        self.seconds = self._time()
        self.conjugate = bound.collapsed() is not None
        self._theta = theta
        self.walk: Walk | None = None
        if bound.has_log_prior and not self.conjugate:
            table = self._x[:1]

            def first(t: Floats) -> Floats:
                tables = np.repeat(table, len(t), axis=0)
                return bound.log_prior(t) + bound.score(tables, t)

            self.walk = begin(first, theta[0], chains, rng)

    def parameters(self, x: Any) -> Floats:
        """Parameters that suit one table: a draw given it, or the model's own guess."""
        if self.bound.collapsed() is not None:
            return self.bound.draw_parameters(self.rng, x[None])
        return self.bound.start(x)[None]

    def _begin(self) -> tuple[Any, Floats]:
        """Tables near the release with parameters under which they are possible."""
        bound, observation = self.bound, self.bound.observation
        x: Any = observation.y[None]
        if observation.whole:
            x = observation.conforming.start(observation.y, bound.most)[None]
        if bound.has_log_prior:
            theta = self.parameters(x[0])
            if np.isfinite(bound.log_likelihood(x, theta)[0] + observation.log_law(x)[0]):
                return np.repeat(x, self.chains, axis=0), np.repeat(theta, self.chains, axis=0)
        theta = bound.draw_prior(self.rng, TRIES)
        tables = np.repeat(x, TRIES, axis=0)
        logs = bound.log_likelihood(tables, theta) + observation.log_law(x)[0]
        if not np.any(np.isfinite(logs)):
            tables = bound.draw_data(self.rng, theta)
            logs = observation.log_law(tables)
        good = np.flatnonzero(np.isfinite(logs))
        if not len(good):
            raise no_mass(f"none of {TRIES:,} prior draws agrees with them and the release.")
        chosen = self.rng.choice(good, self.chains)
        return tables[chosen].copy(), theta[chosen]

    def _time(self) -> float:
        """Seconds that a step may take: one density for each chain and each move."""
        observation = self.bound.observation
        near = self._x[:1].copy()
        for line in observation.conforming.lines(np.random.default_rng(0)):
            up, down = line[:2][line[:2] >= 0], line[2:][line[2:] >= 0]
            if np.all(near[0, down] >= 1):
                near[0, up] += 1
                near[0, down] -= 1
                begun = time.perf_counter()
                observation.log_law(near)
                seconds = time.perf_counter() - begun
                return seconds * max(LEAST_MOVES, observation.cells) * self.chains
        return 0.0

    def iterate(self, learn: bool) -> None:
        """Move the latent values, then the parameters."""
        self.move_latent(learn)
        if self.conjugate:
            self._theta = self.bound.draw_parameters(self.rng, self._x)
        elif self.walk is not None:
            self.walk.step(self._target, self.rng, learn, INNER)
        else:
            self._from_prior()

    @abstractmethod
    def move_latent(self, learn: bool) -> None:
        """Move the latent values of every chain."""

    def _target(self, theta: Floats) -> Floats:
        return self.bound.log_prior(theta) + self.bound.score(self._x, theta)

    def _from_prior(self) -> None:
        """Fresh parameters from the prior, kept by their likelihood; right for any prior."""
        now = self.bound.log_likelihood(self._x, self._theta)
        for _ in range(INNER):
            new = self.bound.draw_prior(self.rng, self.chains)
            there = self.bound.log_likelihood(self._x, new)
            accept = np.log(self.rng.random(self.chains)) < there - now
            self._theta = np.where(accept[:, None], new, self._theta)
            now = np.where(accept, there, now)

    def decide(self, new: Any, log_ratio: Floats, learn: bool) -> Any:
        """Keep the proposed tables with min(1, ratio), the law's share included."""
        law = self.bound.observation.log_law(new)
        with np.errstate(invalid="ignore"):
            gain = np.nan_to_num(log_ratio + law - self._law, nan=-np.inf, neginf=-np.inf)
        accept = np.log(self.rng.random(self.chains)) < gain
        self._x = np.where(accept[:, None], new, self._x)
        self._law = np.where(accept, law, self._law)
        if not learn:
            self.kept, self.tried = self.kept + float(accept.mean()), self.tried + 1
        return accept

    @property
    def theta(self) -> Floats:
        """Parameters, (chains, size)."""
        return self._theta if self.walk is None else self.walk.theta

    @property
    def x(self) -> Any:
        """Latent values, (chains, cells)."""
        return self._x

    @property
    def acceptance(self) -> float:  # type: ignore[override]
        """Share of proposed latent tables accepted after the warm-up."""
        return self.kept / max(self.tried, 1)


class Anything(General):
    """Latent values by random steps along the connecting lines, or one by one if they are real."""

    words = "random steps in the latent values"

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        self.log_step = math.log(max(1.0, float(np.std(bound.observation.y)) / 4))
        self.learnt = 0

    def move_latent(self, learn: bool) -> None:
        """One pass over the lines."""
        observation, theta = self.bound.observation, self.theta
        conforming = observation.conforming
        lines = conforming.lines(self.rng)
        now = self.bound.log_likelihood(self._x, theta)
        for line in lines:
            new = self._x.copy()
            step = self._steps(observation.whole)
            for k, cell in enumerate(line):
                if cell >= 0:
                    new[:, cell] = new[:, cell] + (step if k < 2 else -step)
            possible = np.all(new >= 0, axis=1) if observation.whole else np.full(len(new), True)
            there = np.full(len(new), -np.inf)
            if np.any(possible):
                there[possible] = self.bound.log_likelihood(new[possible], theta[possible])
            accept = self.decide(new, there - now, learn)
            now = np.where(accept, there, now)
            if learn:
                self.learnt += 1
                self.log_step += (float(accept.mean()) - 0.4) / self.learnt**0.6

    def _steps(self, whole: bool) -> Any:
        """Symmetric random steps, one per chain."""
        size = math.exp(min(max(self.log_step, -20.0 if not whole else 0.0), 40.0))
        if not whole:
            return size * self.rng.standard_normal(self.chains)
        sign = self.rng.choice(np.array([-1, 1]), self.chains)
        return sign * self.rng.geometric(min(1.0, 1 / size), self.chains)


class RecordChains(General):
    """One record at a time, drawn again from the model inside its group of known total."""

    words = "one record drawn again from the model"

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        change = bound.observation.largest_change
        self.acceptance_floor = None if math.isinf(change) else math.exp(-change)

    @staticmethod
    def fits(bound: BoundModel) -> bool:
        """Whether the model is of records whose groups have known totals."""
        conforming = bound.observation.conforming
        return (
            isinstance(bound, Outcome)
            and not bound.free_totals
            and not conforming.ties
            and not np.any(conforming.labels == FREE)
            and bound.observation.whole
        )

    def move_latent(self, learn: bool) -> None:
        """As many records as the table has cells, at least ten."""
        assert isinstance(self.bound, Outcome)
        p = self.bound.probabilities(self.theta)
        labels = self.bound.observation.conforming.labels
        rows = np.arange(self.chains)
        for _ in range(max(LEAST_MOVES, len(labels))):
            people = np.where(labels >= 0, self._x, 0)
            source = _choose(self.rng, people)
            inside = labels[None] == labels[source][:, None]
            target = _choose(self.rng, np.where(inside, p, 0.0))
            new = self._x.copy()
            new[rows, source] -= 1
            new[rows, target] += 1
            self.decide(new, np.zeros(self.chains), learn)


def _choose(rng: np.random.Generator, weights: Any) -> Any:
    """One column per row, with probability proportional to its weight."""
    mass = np.cumsum(weights, axis=1)
    return np.argmax(mass > rng.random((len(mass), 1)) * mass[:, -1:], axis=1)


def listed_draws(bound: BoundModel, draws: int, rng: np.random.Generator) -> tuple[Floats, Ints]:
    """Independent draws of (theta, x) where the parameters integrate out."""
    tables, law = _listed(bound)
    cells = bound.collapsed()
    assert cells is not None
    x = tables[
        _choose_several(rng, (law + log_weights(tables, cells).sum(axis=-1))[None], draws)[0]
    ]
    return bound.draw_parameters(rng, x), x


class ListedTables(General):
    """Parameters by Metropolis steps, and the latent table from the list, given them."""

    words = "latent tables drawn from the list of all that are possible"
    acceptance = None  # type: ignore[assignment]

    def _begin(self) -> tuple[Any, Floats]:
        """The likeliest table, with parameters that suit it."""
        tables, law = _listed(self.bound)
        x = tables[int(law.argmax())]
        has_prior = self.bound.has_log_prior
        theta = self.parameters(x) if has_prior else self.bound.draw_prior(self.rng, 1)
        return np.tile(x, (self.chains, 1)), np.repeat(theta, self.chains, axis=0)

    def move_latent(self, learn: bool) -> None:  # noqa: ARG002 - nothing to learn
        """A fresh table for every chain."""
        tables, law = _listed(self.bound)
        logs = [
            law + self.bound.log_likelihood(tables, np.repeat(row[None], len(tables), axis=0))
            for row in self.theta
        ]
        chosen = _choose_several(self.rng, np.stack(logs), 1)[:, 0]
        self._x, self._law = tables[chosen], law[chosen]


def _listed(bound: BoundModel) -> tuple[Ints, Floats]:
    assert bound.observation.listed is not None
    return bound.observation.listed


def _choose_several(rng: np.random.Generator, logs: Floats, draws: int) -> Any:
    """Columns of each row with probability proportional to exp(logs), (rows, draws)."""
    mass = np.cumsum(np.exp(logs - logs.max(axis=1, keepdims=True)), axis=1)
    return np.stack([np.searchsorted(row, rng.random(draws) * row[-1], "right") for row in mass])
