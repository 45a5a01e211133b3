"""Delta_z: how far the law of a statistic (or of the database) moves with one person's secret.

Delta_z = sup over scenarios and secret pairs of W_inf between the two conditional laws given the
public figures (partially-private-data, Theorem 9), or of the least W for (W, delta)-closeness.
Calibrated to it, a mechanism keeps its epsilon for everybody who holds one of the beliefs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from congenial.data.arguments import NOT_NEGATIVE, expect, takes
from congenial.errors import GuaranteeError
from congenial.pairs.scenarios import Conditionals, Level, Query
from congenial.pairs.secrets import SecretPairs, belief_gap, event_gap
from congenial.pairs.stated_laws import probability
from congenial.privacy.guarantee import BASES, Basis
from congenial.privacy.numbers import above, odds, small
from congenial.transport.certificates import Certificate, Distance, Norm
from congenial.transport.wasserstein import distance


@dataclass(frozen=True, eq=False)
class DistanceBound:
    """Delta_z, never too small, with its footing and the pair that decides it.

    `measure`: the norm of the statistic, or "records" at level "database". `distance` carries the
    proof for the pair that decides, unless the scenarios state a closed form. `notes` say what a
    reader should know: pairs left out, nothing to protect, no noise needed.
    """

    value: float
    at_least: float
    basis: Basis
    level: Level
    measure: str
    delta: Fraction
    worst: Conditionals | None
    distance: Distance | None = None
    notes: tuple[str, ...] = ()

    @property
    def vacuous(self) -> bool:
        """Whether no secret pair is left: a promise over these scenarios says nothing."""
        return self.worst is None

    @property
    def degenerate(self) -> bool:
        """Whether every pair of laws is the same, so that no noise is asked for."""
        return not self.vacuous and self.value == 0

    @property
    def coupling(self) -> Certificate | None:
        """The proof for the pair that decides, where there are laws to couple."""
        if self.distance is None or self.distance.prove is None:
            return None
        return self.distance.certificate

    def require(self) -> float:
        """The value, to calibrate with; refused when the class is vacuous or Delta_z infinite."""
        if self.distance is None:
            raise GuaranteeError(
                "every scenario already fixes every answer, so there is nothing to protect.",
                remedy="State scenarios that leave the answers open.",
            )
        return self.distance.require()


def delta_z(
    pairs: SecretPairs,
    query: Query | None = None,
    *,
    norm: Norm = "l1",
    delta: Fraction | float | int | str = 0,
) -> DistanceBound:
    """The supremum over scenarios and secret pairs; at level "database" in records.

    >>> from congenial.data.schema import Schema
    >>> from congenial.pairs.scenarios import DependentCounts
    >>> schema = Schema.from_dict({"answer": {"levels": ["no", "yes"]}})
    >>> delta_z(SecretPairs(schema, (DependentCounts(100, "1/10", "9/10"),))).value
    81.0
    """
    expect(pairs, SecretPairs, "the secrets", "Give SecretPairs.", GuaranteeError)
    share = probability(delta, "delta")
    value = at_least = 0.0
    basis: Basis = "theorem"
    worst: Conditionals | None = None
    proof: Distance | None = None
    for pair in pairs.conditionals(query):
        pair_distance = _distance(pair, norm, share)
        if worst is None or pair_distance.value > value:
            value, worst, proof = pair_distance.value, pair, pair_distance
        at_least = max(at_least, pair_distance.at_least)
        basis = max(basis, pair_distance.basis, key=BASES.index)
    notes = _notes(pairs, value, worst)
    measure = "records" if pairs.level == "database" else norm
    return DistanceBound(value, at_least, basis, pairs.level, measure, share, worst, proof, notes)


def _distance(pair: Conditionals, norm: Norm, delta: Fraction) -> Distance:
    if pair.left is None or pair.right is None:
        assert pair.known is not None
        closed_form = above(pair.known)
        return Distance(
            closed_form, closed_form, delta, norm
        )  # a closed form: the proof is in words
    return distance(pair.left, pair.right, delta=delta, norm="hamming" if pair.databases else norm)


def _notes(pairs: SecretPairs, value: float, worst: Conditionals | None) -> tuple[str, ...]:
    notes = []
    left_out = pairs.excluded
    if left_out:
        notes.append(f"{len(left_out)} pair(s) left out, of probability 0 or 1: {left_out[0]}")
    if worst is None:
        notes.append("vacuous: every scenario fixes every secret; nothing would be promised")
    elif value == 0:
        notes.append(
            "degenerate: the statistic does not depend on the secret, so no noise is needed; "
            "together with another release the secret may show"
        )
    elif math.isinf(value):
        notes.append("infinite: ask for (W, delta)-closeness with a small delta > 0")
    return tuple(notes)


def below_ordinary(bound: DistanceBound, sensitivity: Fraction | float | int) -> str | None:
    """A warning when Delta_z is below the ordinary sensitivity (Lemma 12); None otherwise.

    Over a class rich enough to come near every single database Delta_z is never below it. If it is,
    the saving rests on the beliefs that were left out.
    """
    if bound.value >= sensitivity:
        return None
    return (
        f"Delta_z = {bound.value:g} is below the ordinary sensitivity {float(sensitivity):g}: the "
        "promise rests on the scenarios, and against somebody with another belief it is weaker "
        "than ordinary differential privacy."
    )


@takes(GuaranteeError, epsilon=NOT_NEGATIVE, bound=DistanceBound)
def conditioned_epsilon(epsilon: Fraction | float, bound: DistanceBound) -> Fraction | float:
    """Loss of an epsilon-private release of a database that is conditioned on being possible.

    2 eps Delta_H, with Delta_H the distance of the databases given either secret, in records;
    2 eps only if that is 1 (Lemma 8 as printed is false: n eps is reached). A bound at level
    "query", or an infinite one, is refused.
    """
    if bound.level != "database":
        raise GuaranteeError(
            "the loss of a conditioned release is counted in records.",
            remedy="Use the bound at level 'database'.",
        )
    return 2 * epsilon * int(bound.require())


def meaning(epsilon: Fraction | float) -> str:
    """A pure promise over secret pairs as statements about beliefs (Lemma 4, sharp constants)."""
    return (
        "Having seen the release, the odds of one answer against another are at most "
        f"{odds(epsilon)} times what they were given the public figures alone; a belief in one "
        f"against the other moves by at most {small(belief_gap(float(epsilon)))}; and the chance "
        "of any event of the release differs between the two by at most "
        f"{small(event_gap(float(epsilon)))}."
    )
