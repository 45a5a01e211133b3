"""What a release says about a latent table: its values, their law, and what is public besides.

Everything here comes from the release alone. The law is one of two kinds: independent noise in
every cell (`noise`; conditioned on published sums or not, which for the latent table is the same
because the normaliser is constant; where it is not, `normaliser` works it out), perhaps with noise
in sums besides (`levels`); or any density of the mechanism (`density`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.attribute import Axis
from congenial.errors import InferenceError
from congenial.figures.figures import Figures
from congenial.figures.support import FROZEN, LOOSE, support
from congenial.inference.cell_noise import Floats, Ints, Noise
from congenial.inference.latent_tables import LatentTables
from congenial.inference.level_noise import LevelNoise
from congenial.inference.samplers.log_normaliser import Normaliser
from congenial.privacy.description import Family

Density = Callable[[Any], Floats]  # tables of shape (n, cells) -> log p(y | x), (n,)


@dataclass(frozen=True)
class Observation:
    """A released table (or vector) y, flat, and its law given the latent x.

    whole: the latent values are counts (0, 1, ...); otherwise real numbers. largest_change: bound
    on |log p(y | x) - log p(y | x')| when one record is replaced, inf where none is known. listed:
    all possible x with their log p(y | x), where they are few and no other way is simpler. finer:
    where the law is known for finer cells only, the observation of these, with the cell of x that
    each belongs to; all ways to split a count of x over them are equally likely.
    """

    y: Floats
    conforming: LatentTables
    noise: Noise | None = None
    normaliser: Normaliser | None = field(default=None, repr=False)
    levels: LevelNoise | None = field(default=None, repr=False)
    density: Density | None = field(default=None, repr=False)
    listed: tuple[Ints, Floats] | None = field(default=None, repr=False)
    log_bound: float = math.inf
    whole: bool = True
    axes: tuple[Axis, ...] = ()
    published: Figures | None = field(default=None, repr=False)
    largest_change: float = math.inf
    bounded: bool = False  # whether x must keep public bounds besides
    notes: tuple[str, ...] = ()
    finer: tuple[Observation, Ints] | None = field(default=None, repr=False)

    @classmethod
    def of_values(
        cls, values: npt.ArrayLike, family: Family, scale: Fraction | float, whole: bool = True
    ) -> Observation:
        """Released numbers with independent noise of a family; `scale` as in a description.

        For values that do not come from a bundle: eps per cell for the l1 families, sigma squared
        for the Gaussian ones.
        """
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        noise = Noise.of_family(family, Fraction(scale), np.ones(len(y), dtype=np.int64))
        return cls(
            y,
            LatentTables.anything(len(y)),
            noise,
            whole=whole,
            largest_change=2 * noise.largest_step,
        )

    @classmethod
    def of_density(
        cls,
        values: npt.ArrayLike,
        density: Density,
        *,
        log_bound: float = math.inf,
        largest_change: float = math.inf,
    ) -> Observation:
        """Released values with any density: `density(x)` gives log p(y | x) for each row of x.

        `log_bound` is at least the largest value of the density over x; rejection needs it.
        """
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        return cls(
            y,
            LatentTables.anything(len(y)),
            density=density,
            log_bound=log_bound,
            largest_change=largest_change,
        )

    @property
    def cells(self) -> int:
        """Number of latent values."""
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the latent table."""
        return tuple(axis.size for axis in self.axes) or (self.cells,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its axes."""
        return tuple(axis.name for axis in self.axes) or ("cell",)

    @property
    def dims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Axes with their levels."""
        if self.axes:
            return tuple((axis.name, axis.levels) for axis in self.axes)
        return (("cell", tuple(map(str, range(self.cells)))),)

    @cached_property
    def impossible(self) -> Any:
        """Cells that are empty by definition (structural zeros)."""
        zeros = () if self.published is None else self.published.zeros
        if self.published is None or not zeros:
            return np.zeros(self.cells, dtype=bool)
        rules = Figures(self.published.schema, zeros, (None,) * len(zeros))
        return support(rules, self.names).labels.reshape(-1) == FROZEN

    def log_law(self, x: Any) -> Floats:
        """log p(y | x) for tables (n, cells), up to one constant; -inf where x is impossible."""
        x = np.asarray(x)
        if not self.whole:
            return self._log_density(x)
        found = np.full(len(x), -np.inf)
        possible = self.conforming.holds(x) & np.all(x >= 0, axis=-1)
        found[possible] = self._log_density(x[possible])
        return found

    def _log_density(self, x: Any) -> Floats:
        if self.density is not None:
            return self.density(x)
        assert self.noise is not None
        moving = self.conforming.moving
        weights = self.noise.at(moving).log_weight(self.y[moving] - x[:, moving])
        found = np.asarray(weights.sum(axis=-1))
        if self.normaliser is not None:
            found += self.normaliser.log_base - self.normaliser.log(x)
        if self.levels is not None:
            found += self.levels.log_weight(x)
        return found

    @property
    def unrelated(self) -> bool:
        """Whether cells have nothing to do with each other: noise of their own, and no sum."""
        alone = self.levels is None and self.finer is None
        return self.noise is not None and alone and self.conforming.open

    @property
    def log_supremum(self) -> float:
        """At least sup over x of `log_law`: what the rejection sampler divides by.

        For additive noise the nearest counts >= 0 attain it (cells in no known sum), or weight zero
        noise bounds it.
        """
        if self.noise is None:
            return self.log_bound
        if self.normaliser is not None:
            return 0.0  # a probability
        moving = self.conforming.moving
        noise, y = self.noise.at(moving), self.y[moving]
        nearest = np.maximum(np.rint(y), 0) if self.whole else y
        free = self.conforming.labels[moving] == LOOSE
        return float(noise.log_weight(np.where(free, y - nearest, 0.0)).sum())

    def at(self, cell: int) -> Observation:
        """One cell on its own, where cells have nothing to do with each other."""
        assert self.noise is not None
        known = self.conforming
        alone = LatentTables(known.labels[[cell]], known.known[[cell]], known.totals)
        return replace(
            self, y=self.y[[cell]], noise=self.noise.at([cell]), conforming=alone, axes=()
        )

    def given_totals(self, labels: Ints, totals: Ints) -> Observation:
        """The same with totals of parts known from elsewhere, such as the number of people."""
        if self.conforming.open and np.all(self.conforming.labels == LOOSE):
            return replace(self, conforming=LatentTables.of_groups(labels, totals))
        known = self.conforming
        if not known.ties and np.all(known.labels[known.moving] >= 0):
            sums = np.zeros(len(totals), dtype=np.int64)
            np.add.at(sums, labels, known.start(self.y, np.full(self.cells, np.inf)))
            if np.array_equal(sums, totals):
                return self
        raise InferenceError(
            "the totals given to the model differ from the published ones.",
            remedy="Leave them out: the published totals are used automatically.",
        )
