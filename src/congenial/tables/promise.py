"""What several noisy tables promise together, and what is left of it when a figure is added.

Independent discrete noise on the tables T_b, drawn given the exact figures: Gaussian with variance
1 / p_b has zCDP loss rho = (1/2) sup_u sum_b p_b ||T_b u||_2^2 (the law is that of a lattice which
contains T_b u, and D_alpha <= alpha ||v||^2 / (2 sigma^2) on any lattice that contains v); double
geometric with parameter eps_b has pure loss sup_u sum_b eps_b ||T_b u||_1. Both suprema are maxima
over the difference types, in exact rational arithmetic. A promise of epsilon with delta is kept by
the largest rho of one draw that keeps it (`law_and_promise`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from congenial.data.arguments import NUMBERS, takes
from congenial.data.workload import Workload
from congenial.errors import GuaranteeError, PlanError, some_of
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.difference_types import DifferenceTypes, difference_types
from congenial.pairs.pairs import Adjacency, Supremum
from congenial.privacy.gaussian_draw import lattice_rho
from congenial.privacy.numbers import below

Law = Literal["gaussian", "geometric"]


def law_and_promise(
    *,
    rho: Fraction | None = None,
    epsilon: Fraction | None = None,
    delta: Fraction | None = None,
) -> tuple[Law, Fraction]:
    """The law that keeps a promise, and its rho ("gaussian") or epsilon ("geometric").

    `epsilon` with `delta`: the largest rho of one draw that meets them, rounded down.

    >>> law_and_promise(epsilon=Fraction(1))
    ('geometric', Fraction(1, 1))
    >>> law, rho = law_and_promise(epsilon=Fraction(1), delta=Fraction(1, 10**6))
    >>> law, round(float(rho), 5)
    ('gaussian', 0.02789)
    """
    if (rho is None) == (epsilon is None) or (delta is not None and epsilon is None):
        raise PlanError(
            "a promise of several tables is rho, epsilon, or epsilon with delta.",
            remedy="State exactly one of the three.",
        )
    if rho is not None:
        return "gaussian", rho
    assert epsilon is not None
    if delta is None:
        return "geometric", epsilon
    if not 0 < delta < 1:
        raise PlanError(
            f"delta {float(delta):g} is outside 0 .. 1.",
            remedy="Leave delta out for pure epsilon, or state one such as 1e-9.",
        )
    return "gaussian", Fraction(lattice_rho(epsilon, below(delta)))


@takes(types=DifferenceTypes, precisions=NUMBERS)
def joint_rho(types: DifferenceTypes, precisions: Sequence[Fraction]) -> Supremum:
    """zCDP loss of Gaussian noise with precision p_b = 1 / sigma_b^2 on each table; 0: no draw.

    sup over look-alike databases of sum_b p_b ||T_b(x) - T_b(x')||_2^2 / 2. `exact` of
    what is returned says whether some pair attains it or it is a bound.
    """
    value, exact = _largest(types, types.squares, precisions)
    return Supremum(value / 2, exact, _by(types))


@takes(types=DifferenceTypes, parameters=NUMBERS)
def joint_epsilon(types: DifferenceTypes, parameters: Sequence[Fraction]) -> Supremum:
    """Pure loss of double geometric noise with parameter eps_b on each table; 0: no draw.

    sup over look-alike databases of sum_b eps_b ||T_b(x) - T_b(x')||_1. `exact` of
    what is returned says whether some pair attains it or it is a bound.
    """
    value, exact = _largest(types, types.absolutes, parameters)
    return Supremum(value, exact, _by(types))


def _largest(
    types: DifferenceTypes, norms: Sequence[tuple[int, ...]], parameters: Sequence[Fraction]
) -> tuple[Fraction, bool]:
    """max over types of sum_b c_b * parameter_b, and whether a type that occurs attains it."""
    for value in parameters:
        if value < 0:
            raise GuaranteeError(
                f"a noise parameter is {value}; parameters are not negative.",
                remedy="Use 0 for a table that is not measured.",
            )
    if len(parameters) != len(types.tables):
        raise GuaranteeError(
            f"{len(parameters)} noise parameters for {len(types.tables)} tables.",
            remedy="Give one for each table; 0 for one that is not measured.",
        )
    losses = {
        row: sum((c * value for c, value in zip(row, parameters, strict=True)), Fraction(0))
        for row in norms
    }
    worst = max(losses.values())
    return worst, any(types.occurs(row) for row, loss in losses.items() if loss == worst)


def _by(types: DifferenceTypes) -> str:
    return "closed form" if types.method == "bound" else "enumeration"


@dataclass(frozen=True)
class Measured:
    """Noisy tables as the ledger knows them: which, how precisely, under which adjacency drawn.

    `law`: "gaussian" (parameters are precisions) or "geometric" (parameters are eps_b).
    """

    workload: Workload
    parameters: tuple[Fraction, ...]
    law: str
    adjacency: Adjacency

    def loss(self, under: Adjacency | None = None) -> Supremum:
        """rho or epsilon over the pairs of an adjacency; by default that of the draw.

        Figures published later leave fewer conforming databases, but more records may have to
        change to tell two of them apart, so the loss can grow or shrink.
        """
        under = under or self.adjacency
        self._refuse_other_lattice(under)
        types = difference_types(under, self.workload)
        priced = joint_rho if self.law == "gaussian" else joint_epsilon
        return priced(types, self.parameters)

    def _refuse_other_lattice(self, under: Adjacency) -> None:
        """Noise was drawn given figures: a pair that differs in one is told apart for sure."""
        missing = [
            statement.label
            for statement in self.adjacency.figures.equalities
            if statement not in under.figures.equalities
        ]
        if missing:
            raise GuaranteeError(
                f"the noise was drawn given {some_of(map(repr, missing))}; over databases that "
                "differ in that the loss is infinite.",
                remedy="Price the release under an adjacency that keeps these figures.",
            )
        if _keeps_people(self.adjacency) and not _keeps_people(under):
            raise GuaranteeError(
                "the noise was drawn given the number of people; over databases that differ in it "
                "the loss is infinite.",
                remedy="Use the replace-one metric, or publish the total.",
            )


def _keeps_people(adjacency: Adjacency) -> bool:
    if adjacency.metric == "replace-one":
        return True
    return isinstance(adjacency, SemiAdjacent) and adjacency.people_kept
