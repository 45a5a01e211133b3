"""Protected tables from a plan: the mechanism that a section asks for, or why there is none; what
it promises; and getting ready to draw.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from congenial.data.tabulate import Microdata
from congenial.errors import (
    BundleError,
    GuaranteeError,
    MandateError,
    PlanError,
    PredicateError,
    StructureError,
)
from congenial.figures.invariants import Invariants
from congenial.figures.support import Support, support
from congenial.kinds.counted_pairs import pairs_of
from congenial.kinds.kind import (
    Offer,
    Setting,
    Tell,
    planned,
    refuse_other_rows,
    refuse_other_units,
    tabulate,
)
from congenial.kinds.single_table import ReleaseSection
from congenial.ledger.ledger import Ledger
from congenial.mechanisms.acceptance_pilot import refuse_hopeless
from congenial.mechanisms.calibrate import AUTO, calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.projection.expected_counts import ExpectedCounts, expected_counts
from congenial.mechanisms.projection.projection import project, rehearse
from congenial.mechanisms.single_table_release import Release
from congenial.pairs.adjacency import Supremum
from congenial.privacy.composition import largest_change
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.normaliser import Price
from congenial.report.accuracy import ErrorRow, Want, error_rows, smallest
from congenial.report.single_table_report import render
from congenial.sampling.randomness import Randomness, SeededRandomness


def build(plan: Setting, section: ReleaseSection, figures: Invariants) -> Mechanism:
    """The mechanism of one release section over the databases that agree with `figures`."""
    target = section.target(pairs_of(plan, section, figures))
    mechanism = calibrate(_asked(section), target, section.table)
    figures = mechanism.adjacency.figures
    if figures.equalities and not mechanism.conditions:
        raise MandateError(
            f"mechanism = '{section.mechanism}' does not keep the mandated figures.",
            remedy="Use mechanism = 'auto'.",
        )
    if figures.bounds and section.nonnegative == "no":
        raise PlanError(
            f"release '{section.name}': '{figures.bounds[0].label}' bounds a statistic, and "
            "nonnegative = 'no' keeps no bounds.",
            remedy="Use nonnegative = 'project', which is free, or 'condition', which is priced.",
        )
    if isinstance(mechanism, CongenialCounts):
        refuse_hopeless(mechanism)
    if section.nonnegative == "project" and mechanism.description.continuous:
        raise PlanError(
            f"release '{section.name}': nonnegative = 'project' is for whole counts, "
            f"and '{mechanism.name}' draws real numbers.",
            remedy="Use nonnegative = 'no', or mechanism = 'auto'.",
        )
    if section.basis is not None and mechanism.guarantee.basis != section.basis:
        raise GuaranteeError(
            f"release '{section.name}' asks for basis = '{section.basis}'; "
            f"'{mechanism.name}' offers '{mechanism.guarantee.basis}'."
        )
    return mechanism


def _asked(section: ReleaseSection) -> str:
    """The mechanism a release section asks for: conditioning on signs is a law of its own."""
    if section.nonnegative != "condition":
        return section.mechanism
    if section.mechanism not in (AUTO, CongenialCounts.name):
        raise PlanError(
            f"release '{section.name}': nonnegative = 'condition' does not go with mechanism = "
            f"'{section.mechanism}'.",
            remedy="Use mechanism = 'auto', or nonnegative = 'project'.",
        )
    return CongenialCounts.name


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
    printed: ExpectedCounts | None = None  # of counts that are made nonnegative afterwards


def check(
    plan: Setting, section: ReleaseSection, figures: Invariants, wish: Want | None = None
) -> ReleaseCheck:
    """What it promises and how accurate it is, from public parameters alone."""
    mechanism = build(plan, section, figures)
    guarantee = planned(mechanism.guarantee, plan, section.delta)
    table = mechanism.description.table
    wanted, unanswered = None, ""
    if wish is not None:
        kind = section.kind
        try:
            wanted = (kind, smallest(wish, lambda x: _with(plan, section, figures, {kind: x})))
        except (BundleError, PredicateError):
            pass  # this table does not show what is asked about
        except StructureError as reason:
            unanswered = reason.what
    return ReleaseCheck(
        section,
        mechanism,
        guarantee,
        largest_change(mechanism.description, mechanism.adjacency),
        support(mechanism.description.support, table),
        error_rows(mechanism),
        mechanism.price if isinstance(mechanism, CongenialCounts) else None,
        wanted,
        unanswered,
        expected_counts(mechanism) if section.nonnegative == "project" else None,
    )


def _with(
    plan: Setting, section: ReleaseSection, figures: Invariants, change: dict[str, Fraction]
) -> Mechanism:
    return build(plan, section.model_copy(update=change), figures)


@contextmanager
def offer(
    plan: Setting,
    section: ReleaseSection,
    mechanism: Mechanism,
    figures: Invariants,
    randomness: Randomness | None,
    progress: Tell,
) -> Iterator[Offer]:
    """Read and check the data; what is left is to draw, while the data are open."""
    reader, fit = mechanism, None
    if section.nonnegative == "project":
        fit = rehearse(mechanism)
        reader = mechanism.projected(fit)
    guarantee = planned(mechanism.guarantee, plan, section.delta)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        progress("reading the data")
        draw = _ready(plan, section, mechanism, data, randomness, progress)

        def finished() -> Release:
            drawn = draw()
            drawn = drawn if fit is None else project(drawn, randomness, fit)
            return drawn.made_by(reader, guarantee)

        def holds(now: Ledger) -> bool:
            current = now.figures
            return current == figures or build(plan, section, current) == mechanism

        yield Offer(
            section.name,
            reader.description,
            guarantee,
            finished,
            lambda: made_up(reader, section.name).made_by(reader, guarantee),
            render,
            holds,
        )


def made_up(mechanism: Mechanism, name: str = "rehearsal") -> Release:
    """A release of the same form around a table of zeros: what can be written of it can be written
    of a draw. Noise where it does not depend on the data, so that the sampler is tried too.
    """
    description, source = mechanism.description, SeededRandomness(0)
    values = np.zeros(mechanism.shape, float if description.continuous else np.int64)
    if mechanism.additive:
        values = values + mechanism.noise(source, 1)[0]
    shown = np.maximum(values, 0) if description.post_processing == "project" else values
    raw = values if description.post_processing == "project" else None
    return Release(
        name, description, mechanism.guarantee, shown, source.label, source.publishable, raw
    )


def _ready(
    plan: Setting,
    section: ReleaseSection,
    mechanism: Mechanism,
    data: Microdata,
    randomness: Randomness | None,
    progress: Tell,
) -> Callable[[], Release]:
    """Check the data, and return what draws; refuses before anything is spent."""
    everything = mechanism.adjacency.everything
    refuse_other_units(everything, data)
    if section.units:
        refuse_other_rows(everything, data, progress)
    if section.units:
        units = data.tabulate_units(everything.schema.of_units)
        return lambda: mechanism.release(units, randomness, section.name)
    released = {plan.schema.axis(axis).base for axis in section.table}
    mandated = mechanism.adjacency.figures.bases
    names = [name for name in plan.schema.names if name in released or name in mandated]
    table = tabulate(data, names, progress)
    mechanism.check(table)
    return lambda: mechanism.release(table, randomness, section.name)
