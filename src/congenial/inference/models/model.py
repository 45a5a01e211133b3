"""A model is three functions: draw parameters, draw data, log density. Built-ins add shortcuts.

`Model` is for any model a user can write; the built-in ones (counts, outcomes) are dataclasses with
a `bind` method of their own. Binding a model to an observation gives a `BoundModel`: parameters as
one flat vector, and what the samplers may use. Numbers that belong to cells (exposures, trials,
covariates) are all of them public.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np

from congenial.data.arguments import numbers as as_numbers
from congenial.data.arguments import texts
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Axis
from congenial.data.table import cell_index
from congenial.errors import InferenceError, some_of
from congenial.inference.observation import Observation

Dims = tuple[tuple[str, tuple[str, ...]], ...]  # axes of a parameter: name and labels


def cell_parameters(
    c: Any, a: Any = 0.0, n: Any = -1.0, b: Any = 0.0, shape: tuple[int, ...] = ()
) -> Floats:
    """(c, a, n, b) of each cell's weight (see _kernels), stacked in a last dimension of 4."""
    return np.ascontiguousarray(
        np.stack([np.broadcast_to(np.asarray(v, dtype=float), shape) for v in (c, a, n, b)], -1)
    )


class BoundModel(ABC):
    """A model tied to an observation. theta: (n, size), on the scale where it is updated."""

    observation: Observation
    size: int  # of theta
    dims: dict[str, Dims]  # the reported parameters
    parts: Ints | None = None  # cells of one multinomial share a part
    has_log_prior: bool = True
    free_totals: bool = False  # whether the totals of the parts are unknown, with a flat prior

    # ---- the three functions -----------------------------------------------------------------

    @abstractmethod
    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        """n draws of theta."""

    @abstractmethod
    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        """One latent table (flat) per row of theta."""

    @abstractmethod
    def log_likelihood(self, x: Any, theta: Floats) -> Floats:
        """log p(x | theta) for each row, up to a constant."""

    def score(self, x: Any, theta: Floats) -> Floats:
        """The part of `log_likelihood` that depends on theta: all that moves in theta need."""
        return self.log_likelihood(x, theta)

    def log_prior(self, theta: Floats) -> Floats:  # noqa: ARG002 - optional
        """log p(theta) for each row, on the scale of theta; without it theta moves by fresh draws
        from the prior.
        """
        raise InferenceError(f"{type(self).__name__} does not have a prior density.")

    # ---- what is reported --------------------------------------------------------------------

    @abstractmethod
    def report(self, theta: Floats) -> dict[str, Floats]:
        """Parameters by name, each of shape (n, *dims)."""

    # ---- what samplers may use -----------------------------------------------------------------

    def given(self, theta: Floats) -> Floats | None:  # noqa: ARG002 - optional
        """Weights of the cells given theta, (n, cells, 4), when each count has its own law."""
        return None

    def log_constant(self, theta: Floats) -> Floats:  # noqa: ARG002 - optional
        """What `given` leaves out of the log density, summed over cells, for each row."""
        raise InferenceError(f"{type(self).__name__} does not have its constant.")

    def collapsed(self) -> Floats | None:
        """Weights of the cells with theta integrated out, (cells, 4), when that is a product."""
        return None

    def draw_parameters(self, rng: np.random.Generator, x: Any) -> Floats:  # noqa: ARG002 - optional
        """theta given the latent tables, exactly (conjugate models only)."""
        raise InferenceError(f"{type(self).__name__} does not have conjugate draws.")

    def curvature(
        self,
        x: Any,  # noqa: ARG002 - optional
        theta: Floats,  # noqa: ARG002 - optional
    ) -> tuple[Floats, Floats] | None:
        """Gradient (n, k) and expected information (n, k, k), prior included, of the first k
        components of theta, given one table for each row; None for models without coefficients.
        """
        return None

    def start(self, x: Any) -> Floats:  # noqa: ARG002 - a better guess uses it
        """A sensible theta for one latent table, where a chain may begin."""
        return np.median(self.draw_prior(np.random.default_rng(0), 101), axis=0)

    @property
    def most(self) -> Floats:
        """Largest possible count of each cell; inf without a limit."""
        return np.full(self.observation.cells, np.inf)


@runtime_checkable
class Bindable(Protocol):
    """What `infer` takes as a model."""

    @property
    def by(self) -> str | Sequence[str] | None:
        """Axes of the latent table; None: as released."""

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation."""


@dataclass(frozen=True)
class Model:
    """Any model, by three functions on rows.

    draw_prior(rng, n): n draws of the parameters, (n, number of parameters).
    draw_data(rng, theta): one latent table per row, (n, cells), cells in table order.
    log_density(x, theta): log p(x | theta) per row, -inf where x is impossible; only what depends
    on neither x nor theta may be left out.
    log_prior(theta): optional; with it chains take local steps in theta, without it they propose
    fresh draws from the prior, which is right for any theta (discrete too) but slow when the data
    say much.

    >>> import numpy as np
    >>> from scipy.stats import binom
    >>> grid = np.arange(1, 10) / 10
    >>> binomial = Model(
    ...     ("share",),
    ...     draw_prior=lambda rng, n: rng.choice(grid, (n, 1)),
    ...     draw_data=lambda rng, theta: rng.binomial(4, theta),
    ...     log_density=lambda x, theta: binom.logpmf(x, 4, theta)[:, 0],
    ... )
    """

    parameters: tuple[str, ...]
    draw_prior: Callable[[np.random.Generator, int], Any]
    draw_data: Callable[[np.random.Generator, Floats], Any]
    log_density: Callable[[Any, Floats], Any]
    log_prior: Callable[[Floats], Any] | None = None
    by: Sequence[str] | None = None

    def bind(self, observation: Observation) -> BoundModel:
        """Tie the model to an observation, after checking its three functions on each other."""
        bound = _Given(self, observation)
        rng = np.random.default_rng(0)
        theta = bound.draw_prior(rng, 3)
        x = bound.draw_data(rng, theta)
        if theta.shape != (3, bound.size):
            raise InferenceError(
                f"draw_prior(rng, 3) has shape {theta.shape}, not (3, {bound.size}).",
                remedy="Give one row per draw and one column per parameter.",
            )
        if x.shape != (3, observation.cells):
            raise InferenceError(
                f"draw_data gives tables of shape {x.shape[1:]}, the observation has "
                f"{observation.cells} cells.",
                remedy="Give one row per draw, cells in table order.",
            )
        if np.shape(bound.log_likelihood(x, theta)) != (3,):
            raise InferenceError("log_density does not give one number per row.")
        return bound


@dataclass
class _Given(BoundModel):
    """A user's model as a bound one."""

    model: Model
    observation: Observation
    dims: dict[str, Dims] = field(init=False)

    def __post_init__(self) -> None:
        self.has_log_prior = self.model.log_prior is not None
        self.size = len(self.model.parameters)
        self.dims = dict.fromkeys(self.model.parameters, ())

    def draw_prior(self, rng: np.random.Generator, n: int) -> Floats:
        return np.asarray(self.model.draw_prior(rng, n), dtype=float)

    def draw_data(self, rng: np.random.Generator, theta: Floats) -> Any:
        return np.asarray(self.model.draw_data(rng, theta))

    def log_likelihood(self, x: Any, theta: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.asarray(self.model.log_density(x, theta), dtype=float)
        return np.where(np.isnan(logs), -np.inf, logs)

    def log_prior(self, theta: Floats) -> Floats:
        assert self.model.log_prior is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.asarray(self.model.log_prior(theta), dtype=float)
        return np.where(np.isnan(logs), -np.inf, logs)

    def report(self, theta: Floats) -> dict[str, Floats]:
        return {name: theta[:, i] for i, name in enumerate(self.model.parameters)}


Covariates = Sequence[str] | Mapping[str, Any]


def per_cell(value: Any, observation: Observation, what: str) -> Floats:
    """One number per cell: a number, an array over the table or one axis, or a published figure.

    A text names a published figure by its label, for example "Population by county"; its axes must
    be among the table's.
    """
    if isinstance(value, str):
        return _published(value, observation, what)
    numbers = as_numbers(value, what, InferenceError)
    shapes = {(): 1, (observation.cells,): 1, observation.shape: 1}
    if numbers.shape not in shapes:
        raise InferenceError(
            f"{what} has shape {numbers.shape}, the table has {observation.shape}.",
            remedy="Give one number per cell, or one for all.",
        )
    flat = np.broadcast_to(numbers.reshape(-1) if numbers.shape else numbers, (observation.cells,))
    if not np.all(np.isfinite(flat)):
        raise InferenceError(f"{what} has a value that is not a finite number.")
    return flat.astype(float)


def _published(label: str, observation: Observation, what: str) -> Floats:
    published = observation.published
    places = {} if published is None else {s.label: i for i, s in enumerate(published.equalities)}
    if published is None or label not in places or published.values is None:
        raise InferenceError(
            f"{what}: no published figure is called '{label}'.",
            remedy=f"Published: {some_of(places) or 'nothing'}. Or give numbers.",
        )
    statement = published.equalities[places[label]]
    figures = published.values[published.statements.index(statement)]
    assert figures is not None
    index = cell_index(published.schema, observation.names, statement.by)
    cell = np.broadcast_to(index, observation.shape).reshape(-1)
    return np.asarray(figures.reshape(-1)[cell], dtype=float)


def design(
    covariates: Covariates, axes: Sequence[Axis], shape: tuple[int, ...]
) -> tuple[tuple[str, ...], Floats]:
    """Names of the coefficients and the matrix (cells, coefficients), intercept first.

    An axis name gives an indicator for each of its levels but the first. A mapping gives numbers:
    one per cell, or one per level of the axis that has this many levels and this name.
    """
    cells = int(np.prod(shape, dtype=np.int64))
    names, columns = ["intercept"], [np.ones(cells)]
    by_covariate = covariates
    if not isinstance(by_covariate, Mapping):
        by_covariate = dict.fromkeys(texts(by_covariate, "covariates", InferenceError))
    by_name = {axis.name: i for i, axis in enumerate(axes)}
    for name, numbers in by_covariate.items():
        if numbers is None:
            if name not in by_name:
                raise InferenceError(
                    f"covariate '{name}' is not an axis of the table.",
                    remedy=f"Axes: {', '.join(by_name)}. Or give its numbers.",
                )
            i = by_name[name]
            level = np.broadcast_to(np.indices(shape, sparse=True)[i], shape).reshape(-1)
            for code, label in enumerate(axes[i].levels[1:], start=1):
                names.append(f"{name} = {label}")
                columns.append((level == code).astype(float))
        else:
            names.append(name)
            columns.append(_numbers(name, numbers, axes, shape))
    matrix = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise InferenceError(
            f"the covariates {', '.join(names[1:])} are linearly dependent on this table.",
            remedy="Leave out one of them.",
        )
    return tuple(names), matrix


def _numbers(name: str, numbers: Any, axes: Sequence[Axis], shape: tuple[int, ...]) -> Floats:
    values = as_numbers(numbers, f"covariate '{name}'", InferenceError)
    if values.size == np.prod(shape, dtype=np.int64):
        return np.asarray(values.reshape(-1))
    for i, axis in enumerate(axes):
        if axis.name == name and values.shape == (axis.size,):
            spread = [1] * len(shape)
            spread[i] = axis.size
            return np.array(np.broadcast_to(values.reshape(spread), shape).reshape(-1))
    raise InferenceError(
        f"covariate '{name}' has {values.size} numbers, the table has {shape} cells.",
        remedy="Give one per cell, or name it after an attribute and give one per category.",
    )
