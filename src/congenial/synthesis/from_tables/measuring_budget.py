"""How the promise of records from tables is shared by quantiles, one-way tables, choices, pairs.

All is per replaced record, which moves two cells of every table by one. Discrete Gaussian noise of
variance v costs rho = 1 / v, and a choice epsilon^2 / 8 of rho; double geometric noise of rate r
costs epsilon = 2 r, and a choice epsilon. Costs add up; every parameter rounds towards more noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from math import exp, isqrt, pi, sqrt
from typing import Any, Literal

from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.privacy.description import Family
from congenial.sampling.discrete import cell_law

Law = Literal["gaussian", "geometric"]
QUANTILES = Fraction(1, 10)  # for private quantiles, where columns have some
FIRST = {"gaussian": Fraction(15, 100), "geometric": Fraction(1, 2)}  # for one-way tables
CHOICE = {"gaussian": Fraction(1, 10), "geometric": Fraction(1, 5)}  # of a round for its choice
ROUNDS_PER_COLUMN = {"gaussian": 2, "geometric": 1}
AMOUNT = {"gaussian": "rho", "geometric": "epsilon"}
SCALE = {"gaussian": "variance", "geometric": "rate"}
WORDS = {"gaussian": "discrete Gaussian", "geometric": "double geometric"}
FAMILY: dict[str, Family] = {"gaussian": "discrete_gaussian", "geometric": "double_geometric"}
GRID = 10**12


@dataclass(frozen=True)
class MeasuringBudget:
    """A promise per replaced record, and its shares.

    `amount`: rho ("gaussian") or epsilon ("geometric"). `weights`: of each column; one with twice
    the weight of another gets twice its share in one-way tables. `counted`: whether a column is
    measured alone; one that figures settle is not. `rounds`: how many of `pairs` are measured.
    `steps`: choices of private quantiles that come before all tables (`private_quantiles`).

    >>> one = Fraction(1)
    >>> pure = MeasuringBudget("geometric", 2 * one, (one, one), (True, True), rounds=1, pairs=1)
    >>> pure.column_scales, pure.pair_scale, pure.spent
    ((Fraction(1, 4), Fraction(1, 4)), Fraction(1, 2), Fraction(2, 1))
    """

    law: Law
    amount: Fraction
    weights: tuple[Fraction, ...]
    counted: tuple[bool, ...]
    rounds: int
    pairs: int
    steps: int = 0

    def __post_init__(self) -> None:
        if self.amount <= 0 or not 0 <= self.rounds <= self.pairs:
            raise GuaranteeError(
                f"{AMOUNT[self.law]} = {self.amount} must be positive, and rounds = {self.rounds} "
                "at most the number of pairs of columns that can be measured.",
                remedy=f"Give {AMOUNT[self.law]} > 0, and fewer rounds or none.",
            )
        if any(weight <= 0 for weight in self.weights):
            raise GuaranteeError(
                "a column's weight is not positive.", remedy="Give positive weights, or none."
            )
        if not self.rounds and not any(self.counted):
            raise GuaranteeError(
                "no table of these columns is left to measure: the published figures fix them, "
                "or every record has the same category.",
                remedy="Synthesise another column as well, or use the published tables.",
            )

    @property
    def chooses(self) -> bool:
        """Whether pairs are chosen; otherwise all of them are measured."""
        return 0 < self.rounds < self.pairs

    @property
    def column_scales(self) -> tuple[Fraction | None, ...]:
        """The variance or rate of every one-way table; None for one that is not measured."""
        first = self._left * (FIRST[self.law] if self.rounds else 1)
        each = [*zip(self.weights, self.counted, strict=True)]
        whole = sum((weight for weight, counted in each if counted), Fraction(0))
        return tuple(
            self._scale(first * weight / whole) if counted else None for weight, counted in each
        )

    @property
    def pair_scale(self) -> Fraction:
        """The variance or rate of every pair that is measured."""
        choices = self.rounds * self._choice_cost(self.choice_epsilon)
        return self._scale((self._left - self._first_cost - choices) / self.rounds)

    @property
    def quantile_epsilon(self) -> Fraction:
        """What one step of private quantiles costs one record; 0 where there is none."""
        if not self.steps:
            return Fraction(0)
        return self._choice_within(self.amount * QUANTILES / self.steps)

    @property
    def choice_epsilon(self) -> Fraction:
        """What one choice costs one record; 0 where nothing is chosen."""
        if not self.chooses:
            return Fraction(0)
        return self._choice_within((self._left - self._first_cost) * CHOICE[self.law] / self.rounds)

    def _choice_within(self, share: Fraction) -> Fraction:
        """The epsilon of a choice that costs at most this share."""
        if self.law == "geometric":
            return Fraction(int(share * GRID), GRID)
        return Fraction(isqrt(int(8 * share * GRID**2)), GRID)

    @property
    def spent(self) -> Fraction:
        """What everything that is measured and chosen costs together."""
        before = self._first_cost + self.amount - self._left
        if not self.rounds:
            return before
        choice = self._choice_cost(self.choice_epsilon)
        return before + self.rounds * (self._cost(self.pair_scale) + choice)

    def deviation(self, scale: Fraction) -> float:
        """The standard deviation of the noise in a cell, before figures are kept."""
        return sqrt(variance_of(FAMILY[self.law], scale))

    def absolute(self, scale: Fraction) -> float:
        """E|noise| in a cell, before figures are kept."""
        if self.law == "gaussian":
            return sqrt(2 / pi) * self.deviation(scale)
        a = exp(-float(scale))
        return 2 * a / (1 - a * a)

    @property
    def _first_cost(self) -> Fraction:
        return sum((self._cost(scale) for scale in self.column_scales if scale), Fraction(0))

    @property
    def _left(self) -> Fraction:
        """What private quantiles leave for tables and choices."""
        return self.amount - self.steps * self._choice_cost(self.quantile_epsilon)

    def _choice_cost(self, epsilon: Fraction) -> Fraction:
        return epsilon if self.law == "geometric" else epsilon**2 / 8

    def _cost(self, scale: Fraction) -> Fraction:
        return 2 * scale if self.law == "geometric" else 1 / scale

    def _scale(self, share: Fraction) -> Fraction:
        """The scale that costs at most this share, with few digits."""
        if self.law == "geometric":
            return Fraction(int(share / 2 * GRID), GRID)
        return Fraction(-int(-(1 / share) * 10**6 // 1), 10**6)

    def to_dict(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Plain data, for columns of these names."""
        scale, weights = SCALE[self.law], dict(zip(names, map(str, self.weights), strict=True))
        columns = {
            name: str(scale) for name, scale in zip(names, self.column_scales, strict=True) if scale
        }
        return {
            "family": f"{WORDS[self.law]} tables, chosen by the exponential mechanism",
            "columns": list(names),
            AMOUNT[self.law]: str(self.amount),
            "weights": weights,
            "rounds": self.rounds,
            "pairs": self.pairs,
            f"one_way_{scale}": columns,
            f"pair_{scale}": str(self.pair_scale) if self.rounds else None,
            "choice_epsilon": str(self.choice_epsilon),
            **self._quantiles_to_dict(),
        }

    def _quantiles_to_dict(self) -> dict[str, Any]:
        if not self.steps:
            return {}
        return {"quantile_steps": self.steps, "quantile_epsilon": str(self.quantile_epsilon)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> MeasuringBudget:
        """Inverse of `to_dict`."""
        law: Law = "gaussian" if "rho" in data else "geometric"
        weights = tuple(fraction(data["weights"][name]) for name in data["columns"])
        counted = tuple(name in data[f"one_way_{SCALE[law]}"] for name in data["columns"])
        amount = fraction(data[AMOUNT[law]])
        numbers = (int(data.get(key, 0)) for key in ("rounds", "pairs", "quantile_steps"))
        return cls(law, amount, weights, counted, *numbers)


def variance_of(family: str, scale: Fraction) -> float:
    """The variance of the noise in a cell: what is stated for Gaussian noise, which bounds it."""
    return float(scale) if family == FAMILY["gaussian"] else cell_law(family, scale).variance
