"""Intervals of every kind of estimate keep their level, given that one is printed.

`python -m benchmarks estimates` is the study, of which this is a short part.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks import estimates as study
from benchmarks.estimates import QUESTIONS, World
from scipy import stats

from congenial.inference.estimates.quantities import CellSums, IntervalCover

SEED = study.SEED
ALPHA = 1e-6
SHORT = 8  # releases
WORLDS = [World("crossing", "epsilon", "one cell"), World("none", "rho", "usual")]


def holds(inside: np.ndarray) -> bool:
    """Whether so many covered intervals are compatible with coverage at the level."""
    return bool(stats.binom.cdf(inside.sum(), inside.size, study.LEVEL) >= ALPHA)


@pytest.mark.parametrize("kind", QUESTIONS)
@pytest.mark.parametrize("world", WORLDS, ids=lambda w: f"{w.people}-{w.figures}-{w.law}")
def test_intervals_keep_their_level(world, kind):
    found = study.answers(world, kind, SHORT)
    assert holds(found.covered)
    assert found.determined[:, -1].all()  # of 24,000 people


def test_two_intervals_by_quadrature_would_be_noticed():
    world = World("crossing", "epsilon", "usual")
    inside = study.by_quadrature(world, 60)[:, 1:]
    assert inside.mean() < 0.87
    assert not holds(inside)
    together = "count(sex = 'f' and age >= 18) - count(sex = 'm' and age >= 18) by county"
    assert holds(study.answers(world, together, 20).covered)


def test_a_plain_bootstrap_of_an_index_would_be_noticed():
    world = World("none", "rho", "usual")
    assert not holds(study.plain_bootstrap(world, 80)[:, 2:5])


def test_ratios_that_forget_what_was_selected_would_be_noticed(monkeypatch):
    """Fieller's sets hold the truth; those of them that are bounded often do not."""
    everything = CellSums.clear_of_zero

    def unselected(self, i, cover):
        chosen = everything(self, i, cover)
        return np.ones_like(chosen) if chosen is not None else np.ones(10_000, dtype=bool)

    monkeypatch.setattr(CellSums, "clear_of_zero", unselected)
    assert not holds(study.answers(WORLDS[0], "share", 250).covered)


@pytest.mark.audit
@pytest.mark.parametrize("world", study.worlds(), ids=lambda w: f"{w.people}-{w.figures}-{w.law}")
def test_every_world_and_kind(world):
    for kind in QUESTIONS:
        assert holds(study.answers(world, kind, 100).covered), kind


def test_intervals_hold_together_when_asked_to():
    """Thirty-six counts at once; intervals for one at a time hold together far less often."""
    world, question = World("nested", "rho", "usual"), "count(sex = 'f') by county, age"
    truth = world.truth(question)
    together, alone = [], []
    for source in world.releases(25):
        quantity = world.quantity(source, question)
        for cover, held in (
            (IntervalCover.of_all(0.9, quantity.sizes()), together),
            (IntervalCover.of_one(0.9), alone),
        ):
            ends = quantity.ends(cover)
            held.append(bool(np.all((ends.low <= truth) & (truth <= ends.high))))
    assert holds(np.array(together))
    assert not holds(np.array(alone))
