"""From a promise to a mechanism, and from a description back to one."""

from __future__ import annotations

from collections.abc import Sequence

from congenial.errors import PlanError, StructureError
from congenial.mechanisms.mechanism import REGISTRY, Mechanism
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee

AUTO = "auto"


def calibrate(
    mechanism: str | type[Mechanism], target: Guarantee, table: Sequence[str] | None = None
) -> Mechanism:
    """The mechanism that just meets `target`, from public inputs only.

    `mechanism` is a class, a registered name, or "auto": exact integer noise of the kind the target
    asks for, conditioned on the mandates when there are any. `table` defaults to all attributes.
    """
    names = tuple(table) if table is not None else target.adjacency.schema.names
    if mechanism == AUTO:
        return _choose(target).calibrate(target, names)
    if isinstance(mechanism, str):
        if mechanism not in REGISTRY:
            raise PlanError(
                f"mechanism = '{mechanism}' is not known.",
                remedy=f"Known: {', '.join(['auto', *sorted(REGISTRY)])}.",
            )
        mechanism = REGISTRY[mechanism]
    return mechanism.calibrate(target, names)


def _choose(target: Guarantee) -> type[Mechanism]:
    """First registered mechanism that keeps the mandates, takes the target, and is exact."""
    mandated = bool(target.adjacency.mandates.equalities)
    fitting = [
        mechanism
        for mechanism in REGISTRY.values()
        if isinstance(target.tradeoff, mechanism.targets)
        and mechanism.conditions == mandated
        and mechanism.basis == "theorem"
        and mechanism.additive  # counts given that none is negative are drawn on request only
    ]
    fitting.sort(key=lambda mechanism: mechanism.family in ("laplace", "gaussian"))
    if not fitting:
        raise StructureError(
            f"no mechanism keeps these mandates under {target.tradeoff.words}.",
            remedy="Give epsilon, rho, or epsilon with delta.",
        )
    return fitting[0]


def rebuild(description: Description, adjacency: Adjacency) -> Mechanism:
    """The mechanism a description stands for."""
    if description.mechanism not in REGISTRY:
        raise StructureError(
            f"this software does not know the mechanism '{description.mechanism}'.",
            remedy="Use the version of congenial named in the bundle.",
        )
    return REGISTRY[description.mechanism](adjacency, description)
