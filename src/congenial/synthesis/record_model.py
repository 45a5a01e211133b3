"""What synthesis asks of a model: likelihood of a record, prior, weighted posterior, new records.

`RecordModel` is the small protocol: anything that has these four methods runs in local mode.
Certified mode asks for more: a compact parameter space Theta declared in advance as a finite `Grid`
for each parameter, because only a finite Theta can be sampled without rounding
(`weighted_posterior`), and probabilities of the schema's levels (`LevelModel`).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import NUMBER, WHOLE, expect
from congenial.data.arrays import Floats
from congenial.data.attribute import Attribute
from congenial.errors import GuaranteeError
from congenial.sampling.convergence import effective_draws, split_r_hat
from congenial.sampling.randomness import Randomness

Bools = npt.NDArray[np.bool_]

LARGEST_GRID = 2_000_000  # points of Theta


@runtime_checkable
class RecordModel(Protocol):
    """A model of independent records. `theta` has one row per draw, results one column per record.

    Records are whatever the model takes: an array with one entry or one row per record.
    """

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log p(x_i | theta_s) as an array (draws, records); NaN and infinities are allowed."""

    def log_prior(self, theta: Floats) -> Floats:
        """log prior density of each row of theta, up to a constant."""

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Draws from the posterior ~ prior(theta) prod_i p(x_i | theta)^weight_i."""

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """As many new records as `records` has, given one row of theta.

        A conditional model reads the predictors of `records` and nothing else of them.
        """


def generator_of(randomness: Randomness) -> np.random.Generator:
    """A numpy generator keyed by 128 fresh bits.

    For what needs no exactness: drawing records from a parameter that is already protected, and
    local mode, which promises nothing. Theta itself is never drawn from it in certified mode.
    """
    key = randomness.words(2)
    return np.random.Generator(np.random.Philox(key=key.astype(np.uint64)))


def _all_numbers(values: Iterable[object]) -> bool:
    return all(isinstance(value, NUMBER) and not isinstance(value, bool) for value in values)


@dataclass(frozen=True)
class Grid:
    """The values one parameter may take: `points` of them from low to high, both included.

    Evenly spaced, or evenly in the logarithm with spacing = "log". A grid is compact and finite, so
    oscillations are maxima over finitely many numbers and a draw can be exact. Choose it from what
    is public; steps well below the posterior's width cost nothing but time.

    >>> Grid(1, 100, 3, "log").values.tolist()
    [1.0, 10.0, 100.0]
    """

    low: float
    high: float
    points: int = 101
    spacing: Literal["even", "log"] = "even"
    _ENDS: ClassVar[tuple[str, ...]] = ("low", "high", "points")

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
        expect(self.points, WHOLE, "points", "Give a whole number.", GuaranteeError)
        if not (abs(self.low) < math.inf and abs(self.high) < math.inf):
            raise GuaranteeError(
                f"Theta is not compact: a parameter runs from {self.low} to {self.high}.",
                remedy="Give two finite ends, fixed without looking at the data.",
            )
        if self.low > self.high or self.points < 1 or (self.points == 1) != (self.low == self.high):
            raise GuaranteeError(
                f"a grid of {self.points} points from {self.low} to {self.high} is empty or "
                "repeats a point.",
                remedy="Give low < high and two or more points, or one value and one point.",
            )
        if self.spacing not in ("even", "log"):
            raise GuaranteeError(
                f"spacing {self.spacing!r} is not known.", remedy='Use "even" or "log".'
            )
        if self.spacing == "log" and self.low <= 0:
            raise GuaranteeError(
                f"a grid from {self.low} has no logarithm.", remedy="Give low > 0."
            )

    @property
    def values(self) -> Floats:
        """The points, ascending."""
        if self.spacing == "log":
            return np.geomspace(self.low, self.high, self.points)
        return np.linspace(self.low, self.high, self.points)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a plan writes it."""
        return {
            "low": self.low,
            "high": self.high,
            "points": self.points,
            "spacing": self.spacing,
        }

    @classmethod
    def from_value(cls, value: object, where: str) -> Grid:
        """Read [low, high], [low, high, points] or a table of the four fields."""
        try:
            if isinstance(value, Grid):
                return value
            if isinstance(value, dict) and _all_numbers(value.get(k, 1) for k in cls._ENDS):
                return cls(**value)
            if isinstance(value, (list, tuple)) and len(value) in (2, 3) and _all_numbers(value):
                return cls(*value)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return cls(float(value), float(value), 1)
        except TypeError:
            pass
        raise GuaranteeError(
            f"{where} is not a range of a parameter.",
            remedy="Write [low, high, points], for example [0.5, 2.0, 31].",
        )


class LevelModel(ABC):
    """A model that can be certified: a finite Theta, and probabilities of the schema's levels.

    Subclasses are frozen dataclasses whose `Grid` fields, in order, span Theta. One theta is drawn
    for each context (combination of the parents' levels), or one for all if the model is `shared`,
    as a regression on the parents is.
    """

    kind: ClassVar[str]

    @property
    def shared(self) -> bool:
        """Whether one theta serves all contexts."""
        return False

    @property
    def grids(self) -> tuple[Grid, ...]:
        """The grids whose product is Theta."""
        values = (getattr(self, field.name) for field in fields(self))  # type: ignore[arg-type]
        flat = (v for value in values for v in (value if isinstance(value, tuple) else (value,)))
        return tuple(value for value in flat if isinstance(value, Grid))

    def points(self) -> Floats:
        """Theta, one row per point, the last parameter running fastest."""
        self._refuse_unbounded()
        return product_of(self.grids)

    def _refuse_unbounded(self) -> None:
        """Raise GuaranteeError where a parameter has no range, here or in a model inside."""
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if isinstance(value, LevelModel):
                value._refuse_unbounded()
            elif str(field.type).startswith(("Grid", "tuple[Grid")) and not value:
                raise GuaranteeError(
                    f"model {self.kind!r} declares no range for its {field.name}, so Theta is not "
                    "compact.",
                    remedy="Give it [low, high, points], fixed without looking at the data.",
                )

    @abstractmethod
    def log_prior(self, theta: Floats) -> Floats:
        """log prior weight of each point of Theta, finite, up to a constant."""

    @abstractmethod
    def log_probability(
        self, theta: Floats, attribute: Attribute, predictors: Floats | None = None
    ) -> Floats:
        """log P(level | theta) as an array (rows of theta, levels); -inf where it is impossible.

        `predictors` holds the numbers of the parents' levels for a shared model. These numbers make
        the scores; an error in them costs accuracy, never privacy (see `scores`).
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain data: kind and fields."""
        plain: dict[str, Any] = {"kind": self.kind}
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            plain[field.name] = _plain(value)
        return plain

    @classmethod
    def from_dict(cls, data: dict[str, Any], where: str) -> Self:
        """Inverse of `to_dict` for one kind; unknown and missing keys are refused by name."""
        fields_of = {field.name: field for field in fields(cls)}  # type: ignore[arg-type]
        arguments = {key: value for key, value in data.items() if key != "kind"}
        for key in arguments:
            if key not in fields_of:
                raise GuaranteeError(
                    f"{where}: model {cls.kind!r} has no key {key!r}.",
                    remedy=f"Known: {', '.join(fields_of)}.",
                )
        read = {key: cls._read(key, value, where) for key, value in arguments.items()}
        try:
            return cls(**read)
        except TypeError:
            raise GuaranteeError(
                f"{where}: model {cls.kind!r} lacks a key, or has a value of the wrong kind.",
                remedy=f"Its keys: {', '.join(fields_of)}.",
            ) from None

    @classmethod
    def _read(cls, key: str, value: Any, where: str) -> Any:
        """One field from plain data; annotations say which are grids."""
        annotation = str(next(f.type for f in fields(cls) if f.name == key))  # type: ignore[arg-type]
        if annotation.startswith("tuple[Grid"):
            return tuple(Grid.from_value(item, f"{where}: {key}") for item in value)
        if annotation.startswith("Grid"):
            return Grid.from_value(value, f"{where}: {key}")
        return value


class ContextModel(LevelModel):
    """A model with a theta of its own in each context, so that predictors say nothing more."""

    @abstractmethod
    def log_levels(self, theta: Floats, attribute: Attribute) -> Floats:
        """log P(level | theta), as in `log_probability`."""

    def log_probability(
        self,
        theta: Floats,
        attribute: Attribute,
        predictors: Floats | None = None,  # noqa: ARG002 - one theta per context
    ) -> Floats:
        """`log_levels`, whatever the context."""
        return self.log_levels(theta, attribute)


def _plain(value: Any) -> Any:
    if isinstance(value, (Grid, LevelModel)):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)


def product_of(grids: Sequence[Grid]) -> Floats:
    """All combinations of the grids' points, the last grid running fastest."""
    size = math.prod(grid.points for grid in grids)
    if size > LARGEST_GRID:
        raise GuaranteeError(
            f"Theta has {size} points, more than {LARGEST_GRID}.",
            remedy="Use coarser grids or fewer parameters.",
        )
    axes = np.meshgrid(*(grid.values for grid in grids), indexing="ij")
    return np.stack([axis.reshape(-1) for axis in axes], axis=1)


# ---- Chains that have not converged are refused: split R-hat and effective sample size ----


def refuse_unconverged(
    chains: Floats, names: Sequence[str] = (), r_hat: float = 1.05, effective: float = 100
) -> None:
    """Raise GuaranteeError with the worst parameter's diagnostics unless the chains converged."""
    if chains.ndim != 3 or chains.shape[1] < 4 or not np.isfinite(chains).all():
        raise GuaranteeError(
            "the chains are too short, or have numbers that are not finite.",
            remedy="Run at least two chains of some hundred draws.",
        )
    rates, sizes = split_r_hat(chains), effective_draws(chains)
    worst = int(np.argmax(np.where(rates > r_hat, rates, 1.0) + (sizes < effective)))
    if rates[worst] > r_hat or sizes[worst] < effective:
        name = names[worst] if names else f"parameter {worst}"
        raise GuaranteeError(
            f"the chain did not converge: {name} has R-hat {rates[worst]:.3f} (at most {r_hat}) "
            f"and {sizes[worst]:.0f} effective draws (at least {effective:.0f}).",
            remedy="Run longer chains, or simplify the model.",
        )
