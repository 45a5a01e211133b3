"""Random mutants are noticed by a test, or named with the reason why not."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import random_mutants
from tests.mutation.mutators import changes, functions
from tests.mutation.random_mutants import CAUGHT, Mutant, copied, draw, outcome, settings

MUTANTS = draw(settings()["number"], settings()["seed"])
NAMED: dict[str, dict[str, Any]] = {one["mutant"]: one for one in settings()["survivor"]}
SOURCE = """
def f(x, y):
    \"\"\"Not 1 of these words.\"\"\"
    if x < 3:
        return g(x, y)
    return not y
"""


def test_changes_of_a_small_function() -> None:
    ((name, node),) = functions(SOURCE)
    found = list(changes(SOURCE, node))
    assert name == "f"
    assert [one.words for one in found] == [
        "if x < 3: return g(x, y) -> pass",
        "x < 3 -> (x <= 3)",
        "3 -> 4",
        "3 -> 2",
        "g(x, y) -> (g(y, x))",
        "not y -> (y)",
    ]
    for one in found:
        assert ast.dump(ast.parse(one.applied(SOURCE))) != ast.dump(ast.parse(SOURCE))


def test_the_draw_is_the_same_every_time_and_every_mutant_is_a_program() -> None:
    assert draw(12, 1) == draw(12, 1) != draw(12, 2)
    assert draw(12, 1)[:5] == draw(5, 1)
    for mutant in MUTANTS:
        source = (random_mutants.SOURCE / mutant.file).read_text()
        ast.parse(mutant.change.applied(source))


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("random") / "src")


@pytest.mark.audit
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name[:80])
def test_a_random_mutant(mutant: Mutant, place: Path, attempt: Callable[..., None]) -> None:
    known = NAMED.get(mutant.name)
    if known is not None:
        attempt("random mutants", drawn=1, changing=int(not known["equivalent"]), caught=0)
        return
    result, said = outcome(place, mutant)
    print(said)
    attempt("random mutants", drawn=1, changing=1, caught=int(result == CAUGHT))
    assert result == CAUGHT, f"no test notices {mutant}: test it, or name it with its reason"
