"""What a Wasserstein mechanism promises: epsilon given the public figures.

partially-private-data, Definition 3 and Theorem 9.
"""

from __future__ import annotations

from fractions import Fraction

from congenial.errors import GuaranteeError
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.secrets import LEAKAGE, SecretPairs
from congenial.pairs.stated_laws import rational
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import BASES, Basis, Guarantee
from congenial.privacy.numbers import above, number
from congenial.privacy.tradeoff import Pure
from congenial.transport.certificates import Norm
from congenial.transport.delta_z import DistanceBound, below_ordinary

EXACT = "exact"  # what a law says of a sampler that draws from it, and of no other
CITATION = "partially-private-data, Theorem 9, with errata"


def assumed_delta(value: object, norm: Norm) -> DistanceBound:
    """Delta_z taken as given, in the named norm: the promise is then an estimate and says so.

    One unit that moves between two cells is 2 in l1 and sqrt 2 in l2.
    """
    assumed = rational(value)
    if assumed <= 0:
        raise GuaranteeError(
            f"Delta_z = {assumed} is not positive.", remedy="Give a number above 0."
        )
    used = above(assumed)
    note = f"Delta_z = {number(used)} in {norm} is assumed, not derived from scenarios"
    return DistanceBound(used, 0.0, "estimate", "query", norm, Fraction(0), None, None, (note,))


def usable(bound: DistanceBound) -> Fraction:
    """Delta_z as a rational to calibrate with; refused where it is 0 or infinite."""
    if bound.distance is None and bound.basis != "estimate":
        bound.require()  # vacuous: raises with the reason
    if bound.value == float("inf"):
        raise GuaranteeError(
            "Delta_z is infinite: no finite amount of noise hides the secret.",
            remedy="Ask for (W, delta)-closeness with a small delta > 0, or narrow the scenarios.",
        )
    if bound.value == 0:
        raise GuaranteeError(
            "Delta_z is 0: the statistic does not depend on the secret, so the promise needs no "
            "noise.",
            remedy="Publish the statistic by itself only if nothing else is ever released; "
            "otherwise calibrate at level 'database'.",
        )
    if bound.delta:
        raise GuaranteeError(
            "a bound for (W, delta)-closeness does not give a pure promise.",
            remedy="Compute delta_z with delta = 0.",
        )
    return Fraction(bound.value)


def promise(
    pairs: SecretPairs,
    epsilon: Fraction,
    bound: DistanceBound,
    *,
    ordinary: Fraction | None = None,
    chain: bool = False,
    more: tuple[str, ...] = (),
) -> Guarantee:
    """The guarantee: what is assumed, what is not covered, and on what footing."""
    assumed = [*pairs.assumptions, *more, *bound.notes]
    warning = None if ordinary is None else below_ordinary(bound, ordinary)
    if warning:
        assumed.append(warning)
    basis: Basis = bound.basis
    if chain:
        basis = max(basis, "uncertified chain", key=BASES.index)
    return Guarantee(pairs, Pure(epsilon), basis, tuple(assumed), (LEAKAGE,), CITATION)


def person_promise(description: RecordDescription, figures: Figures) -> Guarantee | None:
    """What the same release promises without any assumption about beliefs.

    The promise over databases that agree with the published figures: a* records apart, a*
    times what one record costs. None where no such promise is known.
    """
    if not description.persons:
        return None
    pairs = SemiAdjacent(figures)
    basis: Basis = "theorem"
    if description.law.get("sampler", EXACT) != EXACT:
        basis = "uncertified chain"
    return Guarantee(pairs, Pure(pairs.records * description.epsilon), basis, citation=CITATION)


def both_promises(given: Guarantee, persons: Guarantee) -> str:
    """What is promised given the public figures, and without any assumption about beliefs."""
    return (
        f"Given what is public. {given.explain()}\n\n"
        f"Without any assumption about beliefs. {persons.explain()}"
    )
