"""Random mutants are noticed by a test, or named with the reason why not."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.mutation import random_mutants
from tests.mutation.mutators import changes, functions
from tests.mutation.random_mutants import (
    BROKEN,
    CAUGHT,
    SURVIVED,
    TOO_LONG,
    UNKNOWN,
    Mutant,
    copied,
    draw,
    outcome,
    settings,
)

NUMBER: int = settings()["number"]
NAMED: dict[str, dict[str, Any]] = {one["mutant"]: one for one in settings()["survivor"]}


@cache  # not while tests are collected: every source is read for it
def mutants() -> list[Mutant]:
    return draw(NUMBER, settings()["seed"])


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
    assert len(mutants()) == NUMBER
    for mutant in mutants():
        source = (random_mutants.SOURCE / mutant.file).read_text()
        ast.parse(mutant.change.applied(source))


def test_a_change_of_other_code_leaves_the_draw_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions that come and go add or remove their own mutants, in any order."""
    drawn = draw(12, 1)
    known = random_mutants._candidates()
    gone = {f"{Path(one.file).stem}.{one.function}" for one in drawn[3:5]}
    left = [(name, file, place) for name, file, place in known if name not in gone]
    monkeypatch.setattr(random_mutants, "_candidates", lambda: reversed(left))
    assert [one.name for one in draw(10, 1)] == [one.name for one in [*drawn[:3], *drawn[5:]]]


@pytest.mark.parametrize(
    ("with_mutant", "without", "result"),
    [(0, 0, SURVIVED), (1, 0, CAUGHT), (1, 1, BROKEN), (TOO_LONG, 0, UNKNOWN)],
)
def test_a_test_that_fails_anyway_notices_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, with_mutant: int, without: int, result: str
) -> None:
    """Stand-in for pytest: it fails or not while the source is changed, and afterwards."""
    mutant = mutants()[0]
    file = tmp_path / "congenial" / mutant.file
    file.parent.mkdir(parents=True)
    original = (random_mutants.SOURCE / mutant.file).read_text()
    file.write_text(original)

    def run(words: list[str], environment: dict[str, str]) -> tuple[int, str]:
        code = with_mutant if file.read_text() != original else without
        failed = "FAILED tests/test_one.py::test_it[a b] - assert 0\n"
        return code, failed if code > 0 else "passed\n"

    monkeypatch.setattr(random_mutants, "_run", run)
    assert outcome(tmp_path, mutant)[0] == result
    assert file.read_text() == original


def test_only_seconds_of_a_processor_decide(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that waits is not decided; one that computes without end is caught."""
    monkeypatch.setattr(random_mutants, "PATIENCE", 0.5)
    asleep = [sys.executable, "-c", "import time; time.sleep(60)"]
    assert random_mutants._run(asleep, dict(os.environ))[0] == TOO_LONG
    monkeypatch.setattr(random_mutants, "PATIENCE", 600)
    monkeypatch.setattr(random_mutants, "SECONDS", 1)
    endless = [sys.executable, "-c", "while True: pass"]
    assert random_mutants._run(endless, dict(os.environ))[0] not in (0, TOO_LONG)


def test_mutants_of_kernels_are_compiled_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no compiled caller runs without the mutant, or keeps it."""
    seen: list[dict[str, str]] = []
    monkeypatch.setattr(
        random_mutants, "_run", lambda words, environment: (seen.append(environment), (0, ""))[1]
    )
    monkeypatch.setattr(random_mutants, "mutated", lambda *_: nullcontext())
    kernel, plain = (
        next(one for one in mutants() if ("word_kernels" in one.file) == wanted)
        for wanted in (True, False)
    )
    outcome(random_mutants.SOURCE.parent, kernel)
    outcome(random_mutants.SOURCE.parent, plain)
    assert seen[0].get("NUMBA_CACHE_DIR", "") != os.environ.get("NUMBA_CACHE_DIR", "")
    assert seen[1].get("NUMBA_CACHE_DIR", "") == os.environ.get("NUMBA_CACHE_DIR", "")


def test_survivors_are_few_and_each_has_its_reason() -> None:
    """With the audit below, in which every other mutant must be caught, this holds the share."""
    drawn = [NAMED[one.name] for one in mutants() if one.name in NAMED]
    open_ones = [one for one in drawn if not one["equivalent"]]
    changing = NUMBER - (len(drawn) - len(open_ones))
    assert len(open_ones) <= settings()["share"] * changing
    assert all(len(one["reason"].split()) > 4 for one in NAMED.values())


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return copied(tmp_path_factory.mktemp("random") / "src")


@pytest.mark.audit
@pytest.mark.parametrize("number", range(NUMBER))
def test_a_random_mutant(number: int, place: Path, attempt: Callable[..., None]) -> None:
    mutant = mutants()[number]
    known = NAMED.get(mutant.name)
    if known is not None:
        attempt("random mutants", drawn=1, changing=int(not known["equivalent"]), caught=0)
        return
    result, said = outcome(place, mutant)
    print(said)
    attempt("random mutants", drawn=1, changing=1, caught=int(result == CAUGHT))
    assert result != UNKNOWN, f"the machine was too busy to tell: {mutant}"
    assert result != BROKEN, f"mend the test first, it fails without {mutant} too"
    assert result == CAUGHT, f"no test notices {mutant}: test it, or name it with its reason"
