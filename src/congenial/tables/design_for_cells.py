"""The least promise that is found under which every cell of some tables is as precise as asked.

A design knows the mean variance of each table's cells (`design_for_accuracy`); cells of unequal
areas differ. So the limits of the means are lowered by what the worst cell exceeds its mean, a few
times, and what still is too much in the end is met by more of everything: for Gaussian noise, a
factor of the precisions. Double geometric noise varies less than the 2 / eps^2 of a design, so the
least factor of its parameters is found by halving.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from congenial.data.workload import Workload
from congenial.figures.figures import Figures
from congenial.pairs.difference_types import DifferenceTypes
from congenial.tables.design import BITS, Design, design_for_accuracy
from congenial.tables.information import Information
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.promise import Law

ROUNDS = 4
LOOSER = 4.0  # by which a limit that is met easily is relaxed in a round
NEAR = 1e-3  # of the least factor, where it is found by halving
ENOUGH = 1.001  # excess of a variance that is met by more of everything


def design_for_cells(
    workload: Workload,
    types: DifferenceTypes,
    model: Information,
    limits: Mapping[int, float],
    figures: Figures,
    law: Law = "gaussian",
) -> Design:
    """A design whose worst cell of table b has a variance of at most `limits[b]`."""
    aims, tried = dict(limits), []
    for _ in range(ROUNDS):
        found = design_for_accuracy(workload, types, model, aims, law)
        excess = _excess(found, limits, figures)
        if law == "geometric":  # a design knows bounds of variances only: they may be far apart
            tried.append(_least(found, limits, figures))
            aims = {b: aim / max(excess[b], 1 / LOOSER) for b, aim in aims.items()}
        elif max(excess.values()) <= ENOUGH:
            break
        else:
            aims = {b: aim / max(1.0, excess[b]) for b, aim in aims.items()}
    if tried:
        return min(tried, key=lambda one: one.promise)
    return _more(found, max(1.0, *_excess(found, limits, figures).values()))


def _least(found: Design, limits: Mapping[int, float], figures: Figures) -> Design:
    """The same with the least multiple of its parameters that meets the limits, nearly."""

    def enough(factor: float) -> bool:
        return max(_excess(_more(found, factor), limits, figures).values()) <= 1

    high = 1.0
    while not enough(high):
        high *= 2
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    while high > low * (1 + NEAR):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _more(found, high)


def _excess(found: Design, limits: Mapping[int, float], figures: Figures) -> dict[int, float]:
    """Worst variance of each table, relative to its limit."""
    together = JointEstimator(found.workload, found.family, found.scales, figures)
    tables = found.workload.tables
    return {
        b: float(together.deviations(tables[b]).values.max(initial=0.0)) ** 2 / limit
        for b, limit in limits.items()
    }


def _more(found: Design, factor: float) -> Design:
    """The same with parameters and promise that much larger; variances fall as a design counts."""
    if factor == 1:
        return found
    up = Fraction(int(factor * 2**BITS) + 1, 2**BITS)
    less = float(up) ** (1 if found.law == "gaussian" else 2)
    return replace(
        found,
        parameters=tuple(value * up for value in found.parameters),
        promise=found.promise * up,
        variances=tuple(value / less for value in found.variances),
        single=tuple(value / less for value in found.single),
    )
