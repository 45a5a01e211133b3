"""What a bundle of statistics must say, worked out again from the laws and the noise it holds.

Not worked out again are figures of the fit: what its sampling error and equal covariances cost. A
bundle has to have the sentences; the numbers in them rest on a bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import numpy as np

from congenial.data.vector_statistics import Statistic, Statistics
from congenial.errors import StructureError
from congenial.kinds.kind import FOLLOWS
from congenial.mechanisms.distribution.calibrated_noise import CalibratedNoise
from congenial.mechanisms.distribution.choose import AS_IS, AS_IS_SOURCE, KINDS, Request
from congenial.mechanisms.distribution.distribution_mechanism import (
    EQUAL,
    FIT,
    MORE_NOISE,
    DistributionMechanism,
)
from congenial.mechanisms.distribution.persons import person_promise
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.mechanisms.distribution.target import Target
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Pure

ENOUGH = "the noise is large enough for every pair of scenarios"
PERSONS = "the promise to single persons follows from the noise"


def checks(release: StatisticsRelease) -> dict[str, bool]:
    """Both promises, and whether the noise is large enough for them."""
    pairs = release.guarantee.adjacency
    if not isinstance(pairs, DistributionPairs):
        return {FOLLOWS: False}
    mechanisms = rebuild(release.description.mechanism, release.noise, release.guarantee)
    enough = [mechanism for mechanism in mechanisms if hides(mechanism)]
    checks = {
        FOLLOWS: any(_made(release, mechanism) for mechanism in enough),
        PERSONS: _persons_follow(release, pairs) and _changes(pairs),
    }
    if pairs.gaussian or release.noise.family == "laplace":
        checks[ENOUGH] = bool(enough)
    return checks


# ---- the mechanism -------------------------------------------------------------------------------


def rebuild(name: str, noise: VectorNoise, guarantee: Guarantee) -> Iterator[DistributionMechanism]:
    """Each mechanism of this name and noise: covariances that differ are taken as equal, or not."""
    pairs, promised = guarantee.adjacency, guarantee.tradeoff
    if not isinstance(pairs, DistributionPairs) or not isinstance(promised, Pure | Approximate):
        return
    delta = float(promised.dlt) if isinstance(promised, Approximate) else 0.0
    source = KINDS[name].citation if name in KINDS else AS_IS_SOURCE
    for equal, numerical in _footings(name, pairs):
        yield DistributionMechanism(
            name, pairs, noise, Target(promised.eps, delta), source, equal, numerical
        )


def _footings(name: str, pairs: DistributionPairs) -> list[tuple[bool, bool]]:
    """Whether equal covariances are assumed, and whether integration is numerical."""
    if name == AS_IS:
        return [(False, not pairs.equal_covariances)]
    if name not in KINDS:
        return []
    if not KINDS[name].needs:
        free = pairs.equal_covariances or not pairs.gaussian or name == "bounded_wasserstein"
        return [(not free, False)]
    if pairs.translations:
        return [(False, False)]
    return [(True, False), (False, True)] if pairs.fitted else [(False, True)]


# ---- whether its noise is large enough -----------------------------------------------------------


def hides(calibrated: CalibratedNoise) -> bool:
    """Whether the noise hides which law of each pair the statistics come from, as promised."""
    if calibrated.noise.family == "laplace":
        needed = KINDS[calibrated.name].needs
        return _as_large_as_needed(calibrated) or (bool(needed) and _reaches_means(calibrated))
    return calibrated.delta() <= calibrated.target.delta


def _as_large_as_needed(calibrated: CalibratedNoise) -> bool:
    """Whether Laplace noise is at least what its mechanism needs for the promise."""
    row, noise, target = KINDS[calibrated.name], calibrated.noise, calibrated.target
    needed = []
    for equal in (False, True):  # which of the two was assumed is said in words only
        request = Request(calibrated.pairs, target, assume_equal=equal)
        with suppress(StructureError):  # covariances that differ, where they must not
            needed.append(row.build(request, float(target.epsilon)))
    return any(  # where no noise is needed (built for refits, it was), any is enough
        not least.rank
        or (least.rank == noise.rank and bool((least.scales <= noise.scales * (1 + 1e-9)).all()))
        for least in needed
    )


def _reaches_means(calibrated: CalibratedNoise) -> bool:
    """Whether Laplace noise along other directions, as built for refits too, hides the shifts.

    Laws that differ by d = V a, V the directions and b the scales, lose sum |a_j| / b_j.
    """
    noise, shifts = calibrated.noise, calibrated.pairs.differences.T
    steps = np.linalg.lstsq(noise.directions, shifts, rcond=None)[0]
    missed = np.abs(noise.directions @ steps - shifts).max()
    loss = float((np.abs(steps) / noise.scales[:, None]).sum(axis=0).max())
    size = max(1.0, float(np.abs(shifts).max()))
    allowed = float(calibrated.target.epsilon) * (1 + 1e-9)
    return bool(missed <= 1e-9 * size and loss <= allowed)


# ---- whether the promises are its own ------------------------------------------------------------


def _made(release: StatisticsRelease, mechanism: DistributionMechanism) -> bool:
    """Whether a mechanism has this description and promises what is stated, to persons too."""
    persons, stated = mechanism.person_guarantee, release.person_guarantee
    if mechanism.description != release.description or not _states(release.guarantee, mechanism):
        return False
    if persons is None or stated is None:
        return persons is stated
    return stated.follows_from(persons)


def _states(stated: Guarantee, mechanism: DistributionMechanism) -> bool:
    """Whether a promise has its footing and source, every assumption, and what it leaves open."""
    figures = [EQUAL] if mechanism.assumed_equal else []
    if mechanism.pairs.fitted and mechanism.pairs.gaussian:  # else: beyond its sample
        figures.append(FIT)
    return (
        stated.tradeoff == mechanism.target.tradeoff
        and stated.basis == mechanism.basis
        and stated.citation in (mechanism.citation, mechanism.citation + MORE_NOISE)
        and set(mechanism.certain) <= set(stated.assumptions)
        and set(mechanism.not_covered) <= set(stated.left_open)
        and all(any(line.startswith(figure) for line in stated.assumptions) for figure in figures)
    )


def _persons_follow(release: StatisticsRelease, pairs: DistributionPairs) -> bool:
    """Whether persons are promised what the noise gives for the stated change of one record."""
    stated = release.person_guarantee
    promised = person_promise(release.noise, pairs.change)
    if stated is None or promised is None:
        return stated is None and promised is None
    return bool(stated.tradeoff.to_dict() == promised.to_dict())


def _changes(pairs: DistributionPairs) -> bool:
    """Whether one record changes the statistics by no more than stated, where something is stated,
    and whether the grids that they live on are those of their definitions.
    """
    if pairs.records is None or not pairs.definitions:
        return not (pairs.change or pairs.spacing)
    most, steps = [], []
    for name, spec in zip(pairs.statistics, pairs.definitions, strict=True):
        if "custom" in spec:  # its change is not worked out from a definition
            most.append(np.inf)
            steps.append(0.0)
            continue
        alone = Statistics(pairs.schema, (Statistic.read(name, spec),))
        most.append(float(alone.change(pairs.records)[0]))
        steps.append(float(alone.spacing(pairs.records)[0]))
    enough = not pairs.change or (np.array(pairs.change) >= np.array(most) * (1 - 1e-12)).all()
    return bool(enough) and np.array_equal(pairs.spacing, steps)
