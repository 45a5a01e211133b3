"""What a test of an odds ratio asks: null value, side, size, level, and where its power matters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from congenial.data.arguments import NUMBER, expect
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.inference.odds_ratio import Alternative, check_alternative

RATIOS = (1.5, 2, 3, 5)  # alternatives whose power is stated unless others are named
DIGITS = 6  # of what is printed; libraries agree far beyond


@dataclass(frozen=True)
class OddsRatioQuestion:
    """What is tested: "the odds ratio is at most `null_value`" against `alternative`, at size
    `alpha`; `level` is that of the interval, and power is stated at the odds ratios `power_at`.

    >>> OddsRatioQuestion(null_value=2, alternative="less").hypothesis
    'the odds ratio is at least 2'
    """

    null_value: Fraction | float = Fraction(1)
    alternative: Alternative = "greater"
    alpha: Fraction | float = Fraction(1, 20)
    level: Fraction | float = Fraction(19, 20)
    power_at: tuple[Fraction | float, ...] = ()

    def __post_init__(self) -> None:
        check_alternative(self.alternative)
        remedy = "Give a list of odds ratios, such as [2, 3]."
        expect(self.power_at, (tuple, list), "power_at", remedy, GuaranteeError)
        ratios = tuple(self.power_at)
        for name, value in (
            ("null_value", self.null_value),
            *(("power_at", one) for one in ratios),
        ):
            expect(value, NUMBER, name, "Give an odds ratio such as 2.", GuaranteeError)
            if not 1e-100 < value < 1e100:
                raise GuaranteeError(
                    f"{name}: an odds ratio is a positive number.", remedy="Give one such as 2."
                )
        for name in ("alpha", "level"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
            if not 0 < getattr(self, name) < 1:
                raise GuaranteeError(
                    f"{name} = {getattr(self, name)} is not between 0 and 1.",
                    remedy=f"Give {name} such as 0.05 or 0.95.",
                )
            object.__setattr__(self, name, fraction(getattr(self, name)))
        object.__setattr__(self, "null_value", fraction(self.null_value))
        object.__setattr__(self, "power_at", tuple(map(fraction, ratios)))

    @property
    def hypothesis(self) -> str:
        """What the test may reject, in words."""
        most = {"greater": "at most", "less": "at least", "two-sided": "exactly"}
        return f"the odds ratio is {most[self.alternative]} {shown(self.null_value)}"

    @property
    def alternatives(self) -> tuple[float, ...]:
        """The odds ratios at which power is stated."""
        if self.power_at:
            return tuple(map(float, self.power_at))
        up = [float(self.null_value) * ratio for ratio in RATIOS]
        down = [float(self.null_value) / ratio for ratio in reversed(RATIOS)]
        return tuple({"greater": up, "less": down, "two-sided": down + up}[self.alternative])

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        told = {name: str(getattr(self, name)) for name in ("null_value", "alpha", "level")}
        return told | {
            "alternative": self.alternative,
            "power_at": [str(one) for one in self.power_at],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> OddsRatioQuestion:
        """Inverse of `to_dict`."""
        return cls(
            fraction(data["null_value"]),
            data["alternative"],
            fraction(data["alpha"]),
            fraction(data["level"]),
            tuple(fraction(one) for one in data["power_at"]),
        )


def shown(value: Fraction | float) -> str:
    """A number of the question for people.

    >>> shown(Fraction(1, 20)), shown(Fraction(2))
    ('0.05', '2')
    """
    return f"{float(value):.{DIGITS}g}"
