"""Protected tables from a plan: build the mechanism, say what it promises, get ready to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from congenial.data.source import SPARK_SCHEME
from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, PredicateError, StructureError
from congenial.figures.invariants import Invariants
from congenial.figures.support import Support, support
from congenial.kinds.kind import Offer, Setting, tabulate, unit_words
from congenial.kinds.sections import ReleaseSection
from congenial.kinds.table_building import build
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.projection.projection import project, rehearse
from congenial.mechanisms.table_release import Release
from congenial.pairs.adjacency import Supremum
from congenial.privacy.composition import largest_gauge
from congenial.privacy.description import HULLS
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.normaliser import Price
from congenial.report.accuracy import ErrorRow, Want, error_rows, smallest
from congenial.report.table_report import render
from congenial.sampling.randomness import Randomness, SeededRandomness

__all__ = ["ReleaseCheck", "build", "check", "offer", "promise"]


@dataclass(frozen=True)
class ReleaseCheck:
    """What a release of the plan would promise and how accurate it would be."""

    section: ReleaseSection
    mechanism: Mechanism
    guarantee: Guarantee
    sensitivity: Supremum
    support: Support
    errors: list[ErrorRow]
    price: Price | None  # of conditioning on counts >= 0, part of the promise
    wanted: tuple[str, Fraction] | None  # the parameter the plan gives, and what a wish needs
    unanswered: str = ""  # why a wish about a sum that the table shows has no answer


def check(
    plan: Setting, section: ReleaseSection, mandates: Invariants, wish: Want | None = None
) -> ReleaseCheck:
    """What it promises and how accurate it is, from public parameters alone."""
    mechanism = build(plan, section, mandates)
    guarantee = promise(plan, section, mechanism)
    table = mechanism.description.table
    wanted, unanswered = None, ""
    if wish is not None:
        kind = section.kind
        try:
            wanted = (kind, smallest(wish, lambda x: _with(plan, section, mandates, {kind: x})))
        except (BundleError, PredicateError):
            pass  # this table does not show what is asked about
        except StructureError as reason:
            unanswered = reason.what
    return ReleaseCheck(
        section,
        mechanism,
        guarantee,
        _sensitivity(mechanism),
        support(mechanism.description.support, table),
        error_rows(mechanism),
        mechanism.price if isinstance(mechanism, CongenialCounts) else None,
        wanted,
        unanswered,
    )


def _sensitivity(mechanism: Mechanism) -> Supremum:
    """How far look-alikes are apart in the norm the loss is counted in."""
    description, adjacency = mechanism.description, mechanism.adjacency
    if description.norm == "gauge":
        return largest_gauge(adjacency, HULLS[description.family])
    if description.norm == "l1":
        return adjacency.l1(description.table)
    return adjacency.l2_squared(description.table)


def _with(
    plan: Setting, section: ReleaseSection, mandates: Invariants, change: dict[str, Fraction]
) -> Mechanism:
    return build(plan, section.model_copy(update=change), mandates)


def promise(plan: Setting, section: ReleaseSection, mechanism: Mechanism) -> Guarantee:
    """The mechanism's guarantee with what the plan assumes about the data added."""
    guarantee = mechanism.guarantee
    delta = guarantee.stated_delta if section.delta is None else float(section.delta)
    assumed = (*guarantee.assumptions, unit_words(plan))
    return replace(guarantee, assumptions=assumed, stated_delta=delta)


@contextmanager
def offer(
    plan: Setting,
    section: ReleaseSection,
    mandates: Invariants,
    randomness: Randomness | None,
    progress: Callable[[str], Any],
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw, while the data are open."""
    mechanism = build(plan, section, mandates)
    description = mechanism.description
    if section.nonnegative == "project":
        description = replace(description, post_processing="project")
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        progress("reading the data")
        draw = _ready(plan, section, mechanism, data, randomness, progress)
        error_rows(mechanism)  # what the report will need; it must not fail after the draw
        if section.nonnegative == "project":
            rehearse(mechanism)

        def finished() -> Release:
            drawn = draw()
            return project(drawn, randomness) if section.nonnegative == "project" else drawn

        yield Offer(
            section.name,
            description,
            promise(plan, section, mechanism),
            finished,
            render,
            lambda now: build(plan, section, now.mandates) == mechanism,
        )


def _ready(
    plan: Setting,
    section: ReleaseSection,
    mechanism: Mechanism,
    data: Microdata,
    randomness: Randomness | None,
    progress: Callable[[str], Any],
) -> Callable[[], Release]:
    """Check the data, and return what draws; refuses before anything is spent."""
    if section.by and str(plan.source).startswith(SPARK_SCHEME):
        from congenial.kinds.by_group import ByGroup  # pyspark only when it is asked for

        groups = ByGroup(mechanism, data, tuple(section.by))
        groups.check()
        seed = randomness.seed if isinstance(randomness, SeededRandomness) else None
        return lambda: groups.release(section.name, seed)
    released = {plan.schema.axis(axis).base for axis in section.table}
    mandated = mechanism.adjacency.mandates.bases
    names = [name for name in plan.schema.names if name in released or name in mandated]
    table = tabulate(plan, data, names, progress)
    mechanism.check(table)
    return lambda: mechanism.release(table, randomness, section.name)
