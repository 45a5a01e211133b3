"""A section of a plan: its keys are those written, their values are not coerced."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema, model_validator

from congenial.data.rational import fraction
from congenial.privacy.numbers import LIMITED, absurd


def exact(value: Any) -> Any:
    """A positive finite number as an exact fraction."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal | Fraction):
        raise ValueError("must be a number such as 0.5 or 1")
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("must be finite; infinity and NaN would promise nothing")
    if value <= 0:
        raise ValueError("must be positive")
    try:
        return fraction(value)
    except ValueError:
        raise ValueError("must be between 1e-300 and 1e300") from None


Positive = Annotated[
    Fraction,
    BeforeValidator(exact),
    WithJsonSchema({"type": "number", "exclusiveMinimum": 0}),  # text is refused
]


_PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("_")}  # hidden from completion


class Section(BaseModel):
    """Base of the sections: unknown keys are refused, values are not coerced."""

    model_config = ConfigDict(
        extra="forbid", strict=True, arbitrary_types_allowed=True, frozen=True
    )

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _PYDANTIC]


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
            f"release '{self.name}' hides a property of the whole dataset, so nothing else may be "
            "released from the same data; put all statistics into it"
        )
