"""What a bundle of statistics must say, worked out again from the laws and the noise it holds.

Not worked out again are figures of the fit: what its sampling error and equal covariances cost. A
bundle has to have the sentences; the numbers in them rest on a bootstrap.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from congenial.data.vector_statistics import Statistic, Statistics
from congenial.mechanisms.distribution.choose import AS_IS, AS_IS_SOURCE, KINDS
from congenial.mechanisms.distribution.distribution_mechanism import (
    EQUAL,
    FIT,
    DistributionMechanism,
)
from congenial.mechanisms.distribution.gaussians import worst_delta
from congenial.mechanisms.distribution.model_checks import MORE_NOISE
from congenial.mechanisms.distribution.target import Target
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Pure


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


def told(made: DistributionMechanism, said: Guarantee) -> bool:
    """Whether a promise has its footing and source, every assumption, and what it leaves open."""
    figures = [EQUAL] if made.assumed_equal else []
    figures += [FIT] if made.pairs.fitted and made.pairs.gaussian else []  # else: beyond its sample
    return (
        _wide_enough(made)
        and said.tradeoff == made.target.tradeoff
        and said.basis == made.basis
        and said.citation in (made.citation, made.citation + MORE_NOISE)
        and set(made.certain) <= set(said.assumptions)
        and set(made.not_covered) <= set(said.left_open)
        and all(any(line.startswith(figure) for line in said.assumptions) for figure in figures)
    )


def _wide_enough(made: DistributionMechanism) -> bool:
    """Whether noise that is said to hide laws of different covariances does."""
    if not made.numerical or made.name == AS_IS:
        return True
    laws, named, target = made.pairs.laws, made.pairs.pairs, made.target
    return worst_delta(laws, named, made.noise.covariance, float(target.epsilon)) <= target.delta


def changes(pairs: DistributionPairs) -> bool:
    """Whether one record changes the statistics by no more than stated, where something is stated,
    and whether the grids that they live on are those of their definitions.
    """
    if pairs.records is None or not pairs.definitions:
        return not (pairs.change or pairs.spacing)
    most, steps = [], []
    for name, spec in zip(pairs.statistics, pairs.definitions, strict=True):
        if "custom" in spec:  # nothing is known of it
            most.append(np.inf)
            steps.append(0.0)
            continue
        alone = Statistics(pairs.schema, (Statistic.read(name, spec),))
        most.append(float(alone.change(pairs.records)[0]))
        steps.append(float(alone.spacing(pairs.records)[0]))
    enough = not pairs.change or (np.array(pairs.change) >= np.array(most) * (1 - 1e-12)).all()
    return bool(enough) and np.array_equal(pairs.spacing, steps)
