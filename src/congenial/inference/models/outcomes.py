"""Models of an outcome given covariates on a table, and the multinomial, the simplest of them.

People with the same covariates form a part of the table; their outcomes are a multinomial draw with
probabilities that depend on the parameters. How many people a part has is taken from the published
figures, or from the caller; otherwise it is unknown, with the same prior weight for every number.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln

from congenial.data.arguments import expect, numbers
from congenial.data.arrays import Floats, Ints
from congenial.errors import InferenceError
from congenial.inference.latent_tables import FREE
from congenial.inference.models.model import BoundModel, cell_parameters
from congenial.inference.models.priors import Dirichlet
from congenial.inference.observation import Observation

SMALLEST = 1e-300
FLAT = Dirichlet(1.0)


def part_totals(observation: Observation, parts: Ints) -> Ints | None:
    """The totals of parts of the table when public figures fix them, None otherwise."""
    conforming = observation.conforming
    for cells in (np.flatnonzero(parts == part) for part in range(int(parts.max()) + 1)):
        labels = conforming.labels[cells]
        groups = np.unique(labels[labels >= 0])
        inside = np.isin(conforming.labels, groups)
        if np.any(labels == FREE) or np.any(parts[inside] != parts[cells[0]]):
            return None
        for tie in conforming.ties:
            if not tie.pattern.fixes(np.isin(tie.groups, groups)):
                return None
    start = conforming.start(observation.y, np.full(observation.cells, np.inf))
    return np.bincount(parts, weights=start).astype(np.int64)


class Outcome(BoundModel):
    """Multinomial outcomes in each part; a subclass gives their probabilities."""

    def __init__(self, observation: Observation, parts: Ints, people: Any = None) -> None:
        if people is not None:
            totals = _people(people, int(parts.max()) + 1)
            observation = observation.given_totals(parts, totals)
        self.observation, self.parts = observation, parts
        self.totals = part_totals(observation, parts)
        self.free_totals = self.totals is None

    @abstractmethod
    def probabilities(self, theta: Floats) -> Floats:
        """Probability of each cell within its part, (n, cells)."""

    def given(self, theta: Floats) -> Floats:
        """Multinomial weights p^x / x!; totals that are unknown add total!."""
        return cell_parameters(
            self.probabilities(theta), shape=(len(theta), self.observation.cells)
        )

    def score(self, x: Any, theta: Floats) -> Floats:
        """sum of x log p."""
        p = np.maximum(self.probabilities(theta), SMALLEST)
        return np.asarray((x * np.log(p)).sum(axis=-1))

    def log_likelihood(self, x: Any, theta: Floats) -> Floats:
        """sum of x log p - log x!, and log total! of each part."""
        x = np.asarray(x, dtype=float)
        assert self.parts is not None
        sums = np.zeros((int(self.parts.max()) + 1, len(x)))
        np.add.at(sums, self.parts, x.T)
        ways = gammaln(sums + 1).sum(axis=0) - gammaln(x + 1).sum(axis=-1)
        return np.asarray(self.score(x, theta) + ways)

    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        """Outcomes of everybody, part by part."""
        if self.totals is None or self.parts is None:
            raise InferenceError(
                "how many people have which covariates is not public, so data cannot be drawn.",
                remedy="Give people=..., or use method='augmentation'.",
            )
        p, x = self.probabilities(theta), np.zeros((len(theta), self.observation.cells), np.int64)
        for part, total in enumerate(self.totals):
            cells = np.flatnonzero(self.parts == part)
            share = p[:, cells] / p[:, cells].sum(axis=1, keepdims=True)
            x[:, cells] = rng.multinomial(total, share)
        return x


def _people(people: Any, parts: int) -> Ints:
    """How many people there are: one number, or one for each part."""
    sizes = numbers(people, "people", InferenceError)
    if (
        sizes.shape not in ((), (parts,))
        or not ((sizes >= 0) & (sizes < 2**62) & (sizes == np.floor(sizes))).all()
    ):
        raise InferenceError(
            "people is not a whole number, nor one for each part.",
            remedy="Give the number of people in the table.",
        )
    return np.broadcast_to(sizes, (parts,)).astype(np.int64)


class CellShares(Outcome):
    """Shares of all cells with a Dirichlet prior, which integrates out."""

    def __init__(self, observation: Observation, people: Any, prior: Dirichlet) -> None:
        super().__init__(observation, np.zeros(observation.cells, dtype=np.int64), people)
        if self.free_totals:
            raise InferenceError(
                "the number of people in the table is not public.",
                remedy="Give people=..., or model counts with poisson.",
            )
        expect(prior, Dirichlet, "the prior", "Give a Dirichlet.", InferenceError)
        self.prior, self.size = prior, observation.cells
        self.dims = {"share": observation.dims}
        self.weights = np.where(self.observation.impossible, 0.0, prior.weight)

    def probabilities(self, theta: Floats) -> Floats:
        """The shares."""
        return theta

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of the shares."""
        return self.draw_parameters(rng, np.zeros((n, self.size)))

    def log_prior(self, theta: Floats) -> Floats:
        """Dirichlet log density, up to a constant."""
        inside = self.weights > 0
        return np.asarray(
            ((self.prior.weight - 1) * np.log(np.maximum(theta[:, inside], SMALLEST))).sum(axis=-1)
        )

    def collapsed(self) -> Floats:
        """G(x + weight)/x!; impossible cells are fixed at 0 and keep a weight for form's sake."""
        return cell_parameters(1.0, self.prior.weight, shape=(self.size,))

    def draw_parameters(self, rng: np.random.Generator, x: Any) -> Floats:
        """shares ~ Dirichlet(weight + x)."""
        shape = self.weights + np.asarray(x, dtype=float)
        gamma = rng.standard_gamma(np.maximum(shape, SMALLEST, out=shape))
        if self.weights.min() == 0:
            gamma[shape <= SMALLEST] = 0.0
        gamma /= gamma.sum(axis=-1, keepdims=True)
        return np.asarray(gamma)

    def report(self, theta: Floats) -> dict[str, Floats]:
        """The shares."""
        return {"share": theta.reshape(-1, *self.observation.shape)}


@dataclass(frozen=True)
class Multinomial:
    """Everybody falls into one cell; shares with a Dirichlet prior.

    The number of people is the published total, or `people`.
    """

    by: str | Sequence[str] | None = None
    prior: Dirichlet = FLAT
    people: Any = None

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""
        return CellShares(observation, self.people, self.prior)
