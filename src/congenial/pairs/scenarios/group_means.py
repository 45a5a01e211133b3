"""Normal records of which means are public: who is in which of them decides how far a mean moves.

partially-private-data, Example 1, with the public figures a curator has: means of everybody or of
groups, each known with a normal error. Records are independent with one variance s2, so with m_j
people in group j and v_j the variance of its error

    Cov(X_i, Z_j) = s2 / m_j for a member i, else 0;  Cov(Xbar, Z_j) = s2 / n;
    Cov(Z_j, Z_k) = s2 |j and k| / (m_j m_k) + v_j [j = k].

People of the same groups are alike: one `ConditionalNormal` for each kind of person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from congenial.data.arguments import COUNT, TEXT, check_fields
from congenial.errors import GuaranteeError
from congenial.pairs.scenarios.count_rules import ConditionalNormal
from congenial.pairs.scenarios.statistic_laws import rational


@dataclass(frozen=True)
class PublicMean:
    """The mean of `people` of the records, public with an error of this variance."""

    label: str
    people: int
    variance: Fraction

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, label=TEXT, people=COUNT)
        object.__setattr__(self, "variance", rational(self.variance))
        if self.people < 1 or self.variance <= 0:
            raise GuaranteeError(
                f"'{self.label}' is a mean of {self.people} people with an error of variance "
                f"{self.variance}.",
                remedy="Give 1 or more people and a positive variance.",
            )


def given_means(
    n: int, variance: object, diameter: object, means: Sequence[PublicMean] = ()
) -> tuple[ConditionalNormal, ...]:
    """What is believed of each kind of person, by the public means that person is part of.

    Means are of everybody, or of groups with nobody in common.

    >>> everybody = PublicMean("last year", 4, 1)
    >>> [one.coefficient for one in given_means(4, 4, 1, [everybody])]
    [Fraction(1, 7)]
    """
    groups = [one for one in means if one.people != n]
    outside = n - sum(one.people for one in groups)
    if outside < 0:
        raise GuaranteeError(
            f"the public means are of {n - outside} people in separate groups, but there are {n} "
            "people.",
            remedy="Name means of everybody, or of groups with nobody in common.",
        )
    members: list[PublicMean | None] = [*groups, *([None] if outside else [])]
    s2 = rational(variance)
    return tuple(dict.fromkeys(_one_kind(n, s2, rational(diameter), means, own) for own in members))


def _one_kind(
    n: int,
    s2: Fraction,
    diameter: Fraction,
    means: Sequence[PublicMean],
    own: PublicMean | None,
) -> ConditionalNormal:
    """The belief about a person who is in the group `own`, and in every mean of all."""
    if not means:
        return ConditionalNormal(n, s2, Fraction(1), Fraction(0), Fraction(0), diameter)
    with_record = [s2 / one.people if one.people == n or one is own else 0 for one in means]
    covariance = [[_covariance(n, s2, a, b) for b in means] for a in means]
    return ConditionalNormal.given_several(
        n, s2, covariance, with_record, [s2 / n] * len(means), diameter
    )


def _covariance(n: int, s2: Fraction, one: PublicMean, other: PublicMean) -> Fraction:
    """Of two public means: by the people who are in both, and the error of one with itself."""
    if one is other or n in (one.people, other.people):
        shared = s2 / max(one.people, other.people)
        return shared + (one.variance if one is other else 0)
    return Fraction(0)
