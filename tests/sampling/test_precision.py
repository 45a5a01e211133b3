"""The precision of ball arithmetic is one for the whole process: one module sets it, locked."""

from __future__ import annotations

import ast
import threading
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb, ctx

import congenial
from congenial.sampling.exact_decisions import below, pick, working_precision
from congenial.sampling.grouped_noise import log_normaliser
from congenial.sampling.randomness import SeededRandomness
from congenial.sampling.two_way_noise import TwoWayNoise, profile_ball

ROOT = Path(congenial.__file__).parent
SEED = 20_261_116
SEAM = ROOT / "sampling" / "exact_decisions.py"
SETTERS = {"workprec", "extraprec", "workdps", "extradps"}  # flint's context managers


def sets_precision(source: str) -> list[int]:
    """Lines that set flint's precision: a call of one of its managers, or an assignment."""
    lines = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Attribute):
            stored = isinstance(node.ctx, ast.Store) and node.attr in ("prec", "dps")
            if stored or node.attr in SETTERS:
                lines.append(node.lineno)
        elif isinstance(node, ast.Constant) and node.value in SETTERS:
            lines.append(node.lineno)
    return lines


def test_only_one_module_sets_the_precision():
    places = {
        str(path.relative_to(ROOT)): lines
        for path in ROOT.rglob("*.py")
        if path != SEAM and (lines := sets_precision(path.read_text(encoding="utf-8")))
    }
    assert places == {}
    assert sets_precision(SEAM.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "source",
    ["with ctx.workprec(64):\n    pass", "flint.ctx.prec = 64", "getattr(ctx, 'extraprec')(9)"],
)
def test_the_scan_sees_each_way_to_set_it(source):
    assert sets_precision(source) == [1]


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
