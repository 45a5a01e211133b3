"""From a release section of a plan to the mechanism it asks for, or why there is none."""

from __future__ import annotations

from congenial.data.source import SPARK_SCHEME
from congenial.errors import GuaranteeError, MandateError, PlanError, StructureError
from congenial.figures.invariants import Invariants
from congenial.kinds.group_refusals import refuse_groups
from congenial.kinds.kind import Setting
from congenial.kinds.single_table import ReleaseSection
from congenial.mechanisms.acceptance_pilot import refuse_hopeless
from congenial.mechanisms.calibrate import AUTO, calibrate
from congenial.mechanisms.congenial import CongenialCounts
from congenial.mechanisms.hierarchy import CongenialHierarchy
from congenial.mechanisms.mechanism import Mechanism
from congenial.privacy.guarantee import Guarantee


def build(plan: Setting, section: ReleaseSection, mandates: Invariants) -> Mechanism:
    """The mechanism of one release section over the databases that agree with `mandates`."""
    if section.reading == "literal":
        raise PlanError(
            f"release '{section.name}': reading = 'literal' may leave some people without any "
            "promise; it is for studies only.",
            remedy="Use reading = 'robust', or 'existential' and read what it does not cover.",
        )
    target = section.target(plan.adjacency(mandates, section.reading))
    mechanism = _calibrated(section, target)
    if mandates.equalities and not mechanism.conditions:
        raise MandateError(
            f"mechanism = '{section.mechanism}' does not keep the mandated figures.",
            remedy="Use mechanism = 'auto'.",
        )
    if mandates.bounds and section.nonnegative == "no":
        raise PlanError(
            f"release '{section.name}': '{mandates.bounds[0].label}' bounds a statistic, and "
            "nonnegative = 'no' keeps no bounds.",
            remedy="Use nonnegative = 'project', which is free, or 'condition', which is priced.",
        )
    if section.by and str(plan.source).startswith(SPARK_SCHEME):
        refuse_groups(mechanism, tuple(section.by))
    if isinstance(mechanism, CongenialCounts):
        refuse_hopeless(mechanism)
    if section.nonnegative == "project" and mechanism.description.continuous:
        raise PlanError(
            f"release '{section.name}': nonnegative = 'project' is for whole counts, and "
            f"'{mechanism.name}' draws real numbers.",
            remedy="Use nonnegative = 'no', or mechanism = 'auto'.",
        )
    if section.basis is not None and mechanism.guarantee.basis != section.basis:
        raise GuaranteeError(
            f"release '{section.name}' asks for basis = '{section.basis}'; "
            f"'{mechanism.name}' offers '{mechanism.guarantee.basis}'."
        )
    return mechanism


def _calibrated(section: ReleaseSection, target: Guarantee) -> Mechanism:
    if section.levels is None:
        return calibrate(_asked(section), target, section.table)
    if section.mechanism not in (AUTO, CongenialHierarchy.name) or section.by:
        raise PlanError(
            f"release '{section.name}': levels goes with mechanism = 'auto' and without by.",
            remedy="Leave the other key out.",
        )
    if section.nonnegative == "condition":
        raise PlanError(
            f"release '{section.name}': what nonnegative = 'condition' costs with levels is not "
            "proved.",
            remedy="Use nonnegative = 'project', which is free.",
        )
    try:
        return CongenialHierarchy.calibrate(target, section.table, section.levels, section.shares)
    except StructureError as reason:
        raise StructureError(
            f"release '{section.name}': {reason.what}", remedy=reason.remedy
        ) from None


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
