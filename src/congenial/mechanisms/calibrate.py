"""From a promise to a mechanism, and from a description back to one."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any

from congenial.data.arguments import expect, texts
from congenial.errors import PlanError, StructureError
from congenial.mechanisms import (  # noqa: F401 - entering the registry
    congenial,
    congenial_chain,
    kernel_gaussian,
    knorm,
    norm_noise,
    plain,
)
from congenial.mechanisms.mechanism import REGISTRY, Mechanism
from congenial.pairs.pairs import Adjacency
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import refuse_absurd

AUTO = "auto"
# What "auto" takes, the first that fits: exact integer noise before noise on the reals. A mechanism
# that is not named here is drawn on request only, whenever it is registered.
PREFERRED = (
    "plain_geometric",
    "plain_discrete_gaussian",
    "plain_gaussian",
    "congenial",
    "congenial_gaussian",
    "kernel_gaussian",
)


def calibrate(
    mechanism: str | type[Mechanism],
    target: Guarantee,
    table: Sequence[str] | None = None,
    *,
    tables: Sequence[Sequence[str]] | None = None,
) -> Any:
    """The mechanism that just meets `target`, from public inputs only.

    `mechanism` is a class, a registered name, or "auto": exact integer noise of the kind the target
    asks for, conditioned on the figures when there are any. `table` defaults to all attributes.
    `tables`: several of them, measured together under one promise (`calibrate_tables` of
    `congenial.mechanisms`, which can share the error otherwise); "auto" only.

    Nothing is read or spent: noise is scaled to the largest difference that a pair of `target`
    allows, and rounding goes towards more noise, so the promise of what is returned is `target` or
    stronger. Raises StructureError where nothing proved applies, and where the figures leave
    nothing to protect.

    >>> from congenial import ReplaceOne, Schema
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> made = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> made.name, made.description.scale  # one person moves two cells
    ('plain_geometric', Fraction(1, 2))
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["0", "1"]}})
    >>> several = [["sex", "ill"], ["sex"]]
    >>> calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)), tables=several)
    MeasuredTables(sex x ill; sex)
    """
    if tables is not None:
        if not isinstance(mechanism, str) or mechanism != AUTO or table is not None:
            raise PlanError(
                "several tables are measured by the mechanism 'auto'.",
                remedy='Give calibrate("auto", target, tables=[...]).',
            )
        return import_module("congenial.mechanisms").calibrate_tables(target, tables)
    expect(target, Guarantee, "the target", "Give for example Guarantee.pure(1, under=...).")
    refuse_absurd(target.tradeoff)
    names = target.adjacency.schema.names if table is None else texts(table, "the table")
    if not (isinstance(mechanism, str) or _is_mechanism(mechanism)):
        expect(mechanism, str, "the mechanism", "Give 'auto', a registered name or a class.")
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


def _is_mechanism(given: object) -> bool:
    return isinstance(given, type) and issubclass(given, Mechanism)


def _choose(target: Guarantee) -> type[Mechanism]:
    """The first preferred mechanism that takes the target and keeps what figures there are."""
    mandated = bool(target.adjacency.figures.equalities)
    for name in PREFERRED:
        mechanism = REGISTRY[name]
        if isinstance(target.tradeoff, mechanism.targets) and mechanism.conditions == mandated:
            return mechanism
    raise StructureError(
        f"no mechanism keeps these exact figures with {target.tradeoff.words}.",
        remedy="Give epsilon, rho, or epsilon with delta.",
    )


def rebuild(description: Description, adjacency: Adjacency) -> Mechanism:
    """The mechanism a description stands for."""
    if description.mechanism not in REGISTRY:
        raise StructureError(
            f"this version of congenial does not know the mechanism '{description.mechanism}'.",
            remedy="Use the version of congenial named in the bundle.",
        )
    return REGISTRY[description.mechanism](adjacency, description)
