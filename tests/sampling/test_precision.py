"""The precision of ball arithmetic is one for the whole process: one module sets it, locked."""

from __future__ import annotations

import threading
from fractions import Fraction

import pytest
from flint import arb, ctx

from congenial.sampling.exact_decisions import below, pick, working_precision
from congenial.sampling.grouped_noise import log_normaliser
from congenial.sampling.randomness import SeededRandomness
from congenial.sampling.two_way_noise import TwoWayNoise, profile_ball

SEED = 20_261_116


WORK = {
    "below": lambda: below(1, 2, lambda: (arb(3) / 4).log(), SeededRandomness(SEED)),
    "pick": lambda: pick(2, 2, lambda: [arb(1), arb(1)], SeededRandomness(SEED)),
    "profile_ball": lambda: profile_ball.__wrapped__(3, 2, Fraction(1, 7), 53),
    "three rows": lambda: TwoWayNoise((3, 4), Fraction(1, 3)).draw(SeededRandomness(SEED)),
    "group sums": lambda: log_normaliser.__wrapped__(4, Fraction(1, 7)),
}


@pytest.mark.parametrize("name", WORK)
def test_what_another_thread_computes_waits_its_turn(name):
    """Inside a block of 256 bits nobody else changes the precision, whatever they compute."""
    WORK[name]()  # compiled and imported: from here on it takes no time worth mentioning
    thread = threading.Thread(target=WORK[name])
    with working_precision(256):
        thread.start()
        thread.join(0.3)
        assert thread.is_alive(), "it changed the precision of this thread"
        assert ctx.prec == 256
    thread.join()
