"""The kinds of [[release]] section, and what all sections of a plan share.

Each kind is a class with the keys it takes; the key that gives a kind its name (`scenarios`,
`table`, `statistics`, `model`) tells a reader of the plan which one it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)

from congenial.data.rational import fraction
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.parameter_limits import LIMITED, absurd
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff

NOT_PROTECTED = "not protected"  # what `persons` says of a release that promises them nothing


def _exact(value: Any) -> Any:
    """A positive finite number as an exact fraction."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number; write 0.5 or 1")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be finite; infinity and NaN promise nothing")
    if value <= 0:
        raise ValueError("must be positive")
    try:
        return fraction(value)
    except ValueError:
        raise ValueError("must be between 1e-300 and 1e300") from None


Positive = Annotated[Fraction, BeforeValidator(_exact)]


class Section(BaseModel):
    """Base of the sections: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, frozen=True
    )


class NamedSection(Section):
    """Base of the [[release]] sections: what each of them has.

    `alone`: whether its promise is void beside anything else from the same data.
    """

    alone: ClassVar[bool] = False

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$")
    mechanism: str = "auto"
    epsilon: Positive | None = None
    delta: Positive | None = None

    @model_validator(mode="after")
    def _sensible(self) -> NamedSection:
        for name in LIMITED:
            value = getattr(self, name, None)
            why = "" if value is None else absurd(name, value)
            if why:
                raise ValueError(why)
        return self


class ReleaseSection(NamedSection):
    """[[release]] with `table`: a protected table and the promise it must meet."""

    table: list[str] = Field(min_length=1)
    rho: Positive | None = None
    mu: Positive | None = None
    reading: Literal["robust", "existential", "literal"] = "robust"
    nonnegative: Literal["no", "project", "condition"] = "no"
    basis: Literal["theorem"] | None = None
    by: list[str] = []
    levels: list[list[str]] | None = None
    shares: list[Positive] | None = None

    @model_validator(mode="after")
    def _one_promise(self) -> ReleaseSection:
        if sum(x is not None for x in (self.epsilon, self.rho, self.mu)) != 1:
            raise ValueError("must have exactly one of epsilon, rho, mu")
        if self.delta is not None and self.epsilon is None:
            raise ValueError("delta goes with epsilon")
        if self.delta is not None and self.delta >= 1:
            raise ValueError("delta must be below 1")
        if not set(self.by) <= set(self.table):
            raise ValueError("by must name axes of the table")
        if self.shares is not None and len(self.shares) != len(self.levels or []) + 1:
            raise ValueError("shares must have one number for each level and one for the cells")
        if self.levels is not None and (self.epsilon is None or self.delta is not None):
            raise ValueError("levels needs epsilon without delta")
        if self.nonnegative == "condition" and (self.epsilon is None or self.delta is not None):
            raise ValueError(
                "nonnegative = 'condition' needs epsilon without delta: its price is proved for "
                "pure promises only; use 'project', which is free"
            )
        return self

    @property
    def kind(self) -> Literal["epsilon", "rho", "mu"]:
        """Which parameter states the promise."""
        if self.rho is not None:
            return "rho"
        return "epsilon" if self.mu is None else "mu"

    def target(self, adjacency: Adjacency) -> Guarantee:
        """The promise over an adjacency."""
        if self.rho is not None:
            return Guarantee.zero_concentrated(self.rho, adjacency)
        if self.mu is not None:
            return Guarantee.gaussian(self.mu, adjacency)
        assert self.epsilon is not None
        if self.delta is not None:
            return Guarantee.approximate(self.epsilon, float(self.delta), adjacency)
        return Guarantee.pure(self.epsilon, adjacency)


def _persons(value: Any) -> Any:
    """`persons`: in so many words not protected, or what the noise must promise to them too."""
    if value == NOT_PROTECTED:
        return value
    if not isinstance(value, dict) or set(value) not in ({"epsilon", "delta"}, {"mu"}):
        raise ValueError(
            f"must be '{NOT_PROTECTED}', or a promise: {{ epsilon = 1, delta = 1e-6 }} or "
            "{ mu = 0.5 }"
        )
    numbers = {name: _exact(number) for name, number in value.items()}
    if "mu" in numbers:
        return Gaussian(numbers["mu"])
    if numbers["delta"] >= 1:
        raise ValueError("delta must be below 1")
    return Approximate(numbers["epsilon"], float(numbers["delta"]))


class StatisticsSection(NamedSection):
    """[[release]] with `statistics`: numbers about the records that hide what the whole dataset is
    like.
    """

    alone: ClassVar[bool] = True

    statistics: dict[str, dict[str, Any]] = Field(min_length=1)
    protect: dict[str, Any] | list[dict[str, Any]]
    modelling: str | Positive
    records: int = Field(ge=2)
    replications: int = Field(default=1000, ge=2)
    epsilon: Positive
    confidence: Positive | Literal["off"] | None = None  # None: 0.95
    weights: dict[str, Positive] = {}
    persons: Annotated[str | Tradeoff | None, BeforeValidator(_persons)] = None

    @model_validator(mode="after")
    def _possible(self) -> StatisticsSection:
        for name in ("delta", "confidence"):
            value = getattr(self, name)
            if isinstance(value, Fraction) and value >= 1:
                raise ValueError(f"{name} must be below 1")
        if not set(self.weights) <= set(self.statistics):
            raise ValueError("weights must name statistics of the release")
        if isinstance(self.modelling, Fraction):
            if self.modelling >= 1:
                raise ValueError("modelling, as a share of the data, must be below 1")
            if self.persons != NOT_PROTECTED:
                raise ValueError(
                    "modelling as a share of the data publishes laws fitted to people of these "
                    "data: write persons = 'not protected', or give other people's data"
                )
        return self


class SyntheticSection(NamedSection):
    """[[release]] with `model`: synthetic records, drawn column by column from models.

    `model` has one entry per column, in the order they are drawn; `theta` the values each model's
    parameters may take. `M` is the range of one record's score for one copy; `epsilon` states the
    promise instead, or bounds it besides.
    """

    model: dict[str, str | dict[str, Any]] = Field(min_length=1)
    theta: dict[str, dict[str, Any]] = {}
    M: Positive | None = None
    copies: int = Field(default=1, ge=1)
    records: int | None = Field(default=None, ge=1)
    public: list[str] = []
    basis: Literal["theorem"] | None = None

    @model_validator(mode="after")
    def _possible(self) -> SyntheticSection:
        if self.M is None and self.epsilon is None:
            raise ValueError("must have M or epsilon")
        if self.delta is not None:
            raise ValueError("synthetic records promise epsilon without delta; leave delta out")
        for name in self.theta:
            if name not in self.model:
                raise ValueError(f"theta names {name!r}, which has no model")
        if self.mechanism not in ("auto", "pseudo-posterior"):
            raise ValueError(
                f"mechanism = {self.mechanism!r} cannot be released: only certified synthesis "
                "('auto', 'pseudo-posterior') has a proof; local estimates are for studies in "
                "Python and for `congenial curve`"
            )
        return self


INDEPENDENT: Literal["independent records"] = "independent records"


@dataclass(frozen=True)
class Believed:
    """`scenarios`: what somebody may believe, or the distance Delta_z that is assumed instead."""

    believe: Literal["independent records"] | None = None
    distance: Fraction | None = None
    because: str = ""


@dataclass(frozen=True)
class PriorCounts:
    """`base_measure` with `prior`: a file of earlier counts, and what they weigh."""

    prior: str
    alpha: Fraction
    kappa: Fraction


def _believed(value: Any) -> Any:
    told = dict(value) if isinstance(value, dict) else {}
    because, one = told.pop("because", ""), next(iter(told.items()), ("", None))
    if len(told) != 1 or not isinstance(because, str):
        one = ("", None)
    if one == ("believe", INDEPENDENT):
        return Believed(believe=INDEPENDENT, because=because)
    if one[0] == "distance":
        return Believed(distance=_exact(one[1]), because=because)
    raise ValueError(
        f"must be {{ believe = '{INDEPENDENT}' }}, or {{ distance = 2 }} where Delta_z is assumed; "
        "because = '...' may be added. Other scenarios are for Python"
    )


def _base_measure(value: Any) -> Any:
    if value in ("naive", "congenial"):
        return value
    if not isinstance(value, dict) or set(value) != {"prior", "alpha", "kappa"}:
        raise ValueError(
            "must be 'naive', 'congenial', or { prior = 'last-release.csv', alpha = 0.1, "
            "kappa = 0.5 }"
        )
    if not isinstance(value["prior"], str):
        raise ValueError("prior must name a CSV file")
    return PriorCounts(value["prior"], _exact(value["alpha"]), _exact(value["kappa"]))


class ScenariosSection(NamedSection):
    """[[release]] with `scenarios`: a table of counts, protected given what is public already."""

    table: list[str] = Field(min_length=1)
    scenarios: Annotated[Believed, BeforeValidator(_believed)]
    given: list[str] = []
    base_measure: Annotated[str | PriorCounts, BeforeValidator(_base_measure)] = "congenial"
    loss: Literal["l1", "l2"] = "l1"
    epsilon: Positive
    basis: Literal["theorem"] | None = None

    @model_validator(mode="after")
    def _possible(self) -> ScenariosSection:
        if self.delta is not None:
            raise ValueError("scenarios promise epsilon without delta; leave delta out")
        if self.mechanism not in ("auto", "wasserstein_exponential"):
            raise ValueError(
                f"mechanism = {self.mechanism!r} does not take scenarios; write 'auto'"
            )
        return self


# kind, which is the key that tells it from the others -> class; the first that is there decides
KINDS: dict[str, type[NamedSection]] = {
    "scenarios": ScenariosSection,
    "table": ReleaseSection,
    "statistics": StatisticsSection,
    "model": SyntheticSection,
}


def kind_of(value: Any) -> str:
    """The kind of a [[release]] section, read or not yet read: a table unless it says otherwise."""
    if isinstance(value, NamedSection):
        return next(kind for kind, model in KINDS.items() if type(value) is model)
    return next((kind for kind in KINDS if isinstance(value, dict) and kind in value), "table")


AnySection = Annotated[
    Annotated[ScenariosSection, Tag("scenarios")]
    | Annotated[ReleaseSection, Tag("table")]
    | Annotated[StatisticsSection, Tag("statistics")]
    | Annotated[SyntheticSection, Tag("model")],
    Discriminator(kind_of),
]
