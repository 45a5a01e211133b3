"""What all sections of a plan share, and what every [[release]] has.

Each kind of release has a class of its own with the keys it takes, beside the kind; see `registry`.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from congenial.data.rational import fraction
from congenial.privacy.parameter_limits import LIMITED, absurd


def exact(value: Any) -> Any:
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


Positive = Annotated[Fraction, BeforeValidator(exact)]


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

    def refused_beside(self, publishes: bool, others: int) -> str:
        """Why it cannot stand beside exact figures or other releases of a plan; empty if it can."""
        if not self.alone or not (publishes or others):
            return ""
        return (
            f"release '{self.name}' promises something about the whole dataset, which nothing "
            "else from the same data may be released beside; put all statistics into it"
        )
