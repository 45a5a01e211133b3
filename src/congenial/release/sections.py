"""The kinds of [[release]] section, and what all sections of a plan share.

Each kind is a class with the keys it takes; the key that gives a kind its name (`table`,
`statistics`) tells a reader of the plan which one it is.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag
from pydantic import model_validator as checked

from congenial.data.statistics import Statistic, Statistics
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Tradeoff
from congenial.public.adjacency import Adjacency
from congenial.public.properties import Property, read_property


def _exact(value: Any) -> Any:
    """A positive finite number as an exact fraction."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number; write 0.5 or 1")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be finite; infinity and NaN promise nothing")
    if value <= 0:
        raise ValueError("must be positive")
    return Fraction(value)


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

    @checked(mode="after")
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
