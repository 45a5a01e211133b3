"""Every mutation is killed by the test it names, and the tree without it passes that test."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import congenial
from tests.mutation.mutation import Mutation
from tests.mutation.noise import NOISE
from tests.mutation.prices import PRICES
from tests.mutation.records import RECORDS

MUTATIONS = (*NOISE, *PRICES, *RECORDS)

SOURCE = Path(congenial.__file__).parent
ROOT = SOURCE.parents[1]
FAILED, PASSED = 1, 0  # exit codes of pytest; 2 and above mean that no test spoke


def test_every_mutation_applies() -> None:
    """A constant that moved would be mutated nowhere."""
    for one in MUTATIONS:
        assert (SOURCE / one.file).read_text().count(one.old) == 1, one
        assert one.new != one.old
        for test in one.tests.split():
            assert (ROOT / test).exists(), one


@pytest.fixture(scope="session")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources, with their times and compiled kernels, in a place of their own."""
    place = tmp_path_factory.mktemp("mutated") / "src"
    shutil.copytree(SOURCE, place / "congenial")
    return place


def run(place: Path, one: Mutation) -> int:
    """The exit code of the tests that a mutation names, on the sources at `place`."""
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    words += ["-m", "not audit and not spark", *one.tests.split()]
    words += ["-k", one.select] if one.select else []
    paths = os.pathsep.join([str(place), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, text=True)
    print(done.stdout[-1500:])
    return done.returncode


@pytest.mark.audit
@pytest.mark.parametrize("one", MUTATIONS, ids=str)
def test_mutation_is_killed(one: Mutation, copy: Path, attempt: Callable[..., None]) -> None:
    attempt("mutations", mutations=1)
    file = copy / "congenial" / one.file
    text, times = file.read_text(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text(text.replace(one.old, one.new))
    try:
        assert run(copy, one) == FAILED
    finally:
        file.write_text(text)
        os.utime(file, ns=times)


@pytest.mark.audit
@pytest.mark.parametrize(
    "one", {(one.tests, one.select): one for one in MUTATIONS}.values(), ids=lambda m: m.tests
)
def test_without_a_mutation_the_same_tests_pass(one: Mutation, copy: Path) -> None:
    assert run(copy, one) == PASSED
