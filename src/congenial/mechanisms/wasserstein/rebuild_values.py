"""A mechanism from what a bundle says of it: every number is worked out again, none is taken over.

Delta_z is computed from the scenarios. Where it was assumed it stays assumed, which makes the
promise an estimate; where the laws it rests on are not written down (stated laws, of which a bundle
keeps words and a digest, and the query of a finite table) it is as told.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.mechanisms.wasserstein.base_measure import Base
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import Conditionals, StatedLaws
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure
from congenial.transport.certificates import Distance, Norm
from congenial.transport.delta_z import DistanceBound, delta_z


def rebuild(
    description: RecordDescription, guarantee: Guarantee
) -> Iterator[WassersteinExponential]:
    """Each mechanism that the law may be of: one per way in which Delta_z may have been found."""
    law, pairs, promised = description.law, guarantee.adjacency, guarantee.tradeoff
    if not isinstance(pairs, SecretPairs) or not isinstance(promised, Pure):
        return
    ordinary = None if law["ordinary"] is None else fraction(law["ordinary"])
    base, epsilon = Base.from_dict(law["base_measure"]), Fraction(promised.eps)
    for bound in _bounds(pairs, law, guarantee):
        try:
            mechanism = WassersteinExponential(
                pairs, bound, base, epsilon, law["loss"], ordinary, tuple(law["table"])
            )
        except GuaranteeError:
            continue
        yield mechanism


def _bounds(pairs: SecretPairs, law: Any, guarantee: Guarantee) -> Iterator[DistanceBound]:
    value, measure = float(law["delta_z"]["value"]), law["delta_z"]["measure"]
    norm: Norm = "l2" if measure == "l2" else "l1"
    try:
        yield delta_z(pairs, norm=norm)
    except GuaranteeError:
        if any(_unwritten(scenario, pairs.level) for scenario in pairs.scenarios):
            yield _as_told(value, measure, pairs, guarantee)
    if measure == norm:
        yield assumed_delta(value, norm)


def _unwritten(scenarios: Any, level: str) -> bool:
    """Whether a bundle holds a digest of the laws, or no query, instead of what Delta_z is of."""
    if isinstance(scenarios, StatedLaws):
        return bool(scenarios.digest)
    return isinstance(scenarios, FiniteScenarios) and level == "query"


def _as_told(value: float, measure: str, pairs: SecretPairs, guarantee: Guarantee) -> DistanceBound:
    norm: Norm = "l2" if measure == "l2" else "l1"
    distance = Distance(value, value, Fraction(0), norm)
    worst = Conditionals("", "")
    return DistanceBound(
        value, value, guarantee.basis, pairs.level, measure, Fraction(0), worst, distance
    )
