"""Intervals of every kind of estimate keep their level; what people do by hand does not.

`python -m benchmarks estimates` is the study, of which this is a short part.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import estimates as study
from benchmarks.estimates import QUESTIONS, World
from scipy import stats

SEED = study.SEED
ALPHA = 1e-6
SHORT = 25  # releases
WORLDS = [World("crossing", "epsilon", "sparse"), World("nested", "rho", "dense")]


def holds(inside: np.ndarray) -> bool:
    """Whether so many covered intervals are compatible with coverage at the level."""
    return bool(stats.binom.cdf(inside.sum(), inside.size, study.LEVEL) >= ALPHA)


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.people}-{w.figures}-{w.law}")
def test_intervals_keep_their_level(world, kind):
    inside, width = study.covered(world, QUESTIONS[kind], SHORT)
    assert holds(inside)
    assert np.median(width[np.isfinite(width)]) > 0


def test_two_intervals_by_quadrature_would_be_noticed():
    world = WORLDS[0]
    inside = study.by_quadrature(world, 150)
    assert inside.mean() < 0.87
    assert not holds(inside)
    together = study.covered(
        world, "count(sex = 'f' and age >= 18) - count(sex = 'm' and age >= 18) by county", 60
    )[0]
    assert holds(together)


def test_a_plain_bootstrap_of_an_index_would_be_noticed():
    assert not holds(study.plain_bootstrap(WORLDS[0], SHORT))


@pytest.mark.audit
@pytest.mark.parametrize("world", study.worlds(), ids=lambda w: f"{w.people}-{w.figures}-{w.law}")
def test_every_world_and_kind(world):
    for kind, question in QUESTIONS.items():
        assert holds(study.covered(world, question, 150)[0]), kind


def test_intervals_hold_together_when_asked_to():
    """Eighteen counts at once; intervals for one at a time hold together far less often."""
    from congenial.inference.estimates.interval_cover import IntervalCover

    world, question = WORLDS[1], "count(sex = 'f') by county, age"
    truth = world.truth(question)
    together, alone = [], []
    for source in world.releases(100):
        quantity = world.quantity(source, question)
        for cover, found in (
            (IntervalCover.of_all(0.9, quantity.sizes()), together),
            (IntervalCover.of_one(0.9), alone),
        ):
            ends = quantity.ends(cover)
            found.append(bool(np.all((ends.low <= truth) & (truth <= ends.high))))
    assert holds(np.array(together))
    assert not holds(np.array(alone))
