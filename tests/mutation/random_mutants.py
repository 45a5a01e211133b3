"""Random mutants of the code that promises rest on: one per function, functions drawn uniformly.

`random_mutants.toml` holds the seed, the packages with their tests, and every survivor with its
reason. Functions are ranked by a hash of seed and name and the first ones are taken; within a
function the change with the least hash is taken. So a mutant stays the same until its own function
changes.

    python -m tests.mutation.random_mutants --number 60 --results mutants.jsonl

runs them one after another; what is in the file of results already is not run again.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import congenial
from tests.mutation.mutators import Change, changes, functions

SOURCE = Path(congenial.__file__).parent
ROOT = Path(__file__).resolve().parents[2]
DATA = Path(__file__).with_suffix(".toml")
FAILING = re.compile(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", re.MULTILINE)
SECONDS = 1200  # of a processor, after which a mutant counts as caught: it never ends
PATIENCE = 2 * 3600  # seconds on the clock after which nothing is known: the machine is too busy
CAUGHT, SURVIVED, BROKEN, UNKNOWN = "caught", "survived", "fails without it too", "not decided"

TOO_LONG = -signal.SIGALRM  # no program ends so by itself


@dataclass(frozen=True)
class Mutant:
    """One change of one function; `name` holds no folder, so that it outlives a move."""

    file: str
    function: str
    change: Change

    @property
    def name(self) -> str:
        return f"{Path(self.file).stem}.{self.function}: {self.change.words}"

    def __str__(self) -> str:
        return f"{self.file} {self.function}: {self.change.words}"


@cache
def settings() -> dict[str, Any]:
    """What random_mutants.toml says."""
    return tomllib.loads(DATA.read_text())


def draw(number: int, seed: int) -> list[Mutant]:
    """The first `number` functions in the order of their hashes, with one change of each."""
    ranked = sorted(_candidates(), key=lambda one: _hash(seed, one[0]))
    found = []
    for name, file, place in ranked:
        source = (SOURCE / file).read_text()
        function, node = list(functions(source))[place]
        possible = list(changes(source, node))
        if possible:
            least = min(possible, key=lambda c: (_hash(seed, f"{name} {c.words}"), c.start))
            found.append(Mutant(file, function, least))
        if len(found) == number:
            break
    return found


@cache
def _candidates() -> list[tuple[str, str, int]]:
    """Every function of the packages: its name, its file, and which one of the file it is."""
    packages = [SOURCE / package for package in settings()["packages"]]
    return [
        (f"{path.stem}.{function}", str(path.relative_to(SOURCE)), place)
        for path in sorted({path for package in packages for path in package.rglob("*.py")})
        for place, (function, _) in enumerate(functions(path.read_text()))
    ]


def _hash(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed} {text}".encode()).hexdigest()


def tests_of(file: str) -> list[str]:
    """Tests that import the module, then all those of its package: the likely ones come first."""
    module = "congenial." + file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    package = max((p for p in settings()["packages"] if file.startswith(f"{p}/")), key=len)
    named = settings()["packages"][package]
    direct = [path for path in _test_files(tuple(named)) if module in path.read_text()]
    stem = Path(file).stem.strip("_")
    direct.sort(key=lambda path: (stem not in path.stem, str(path)))
    return list(dict.fromkeys([*(str(path.relative_to(ROOT)) for path in direct), *named]))


@cache
def _test_files(named: tuple[str, ...]) -> list[Path]:
    found = []
    for place in named:
        path = ROOT / place
        found += [path] if path.is_file() else sorted(path.rglob("test_*.py"))
    return found


@contextmanager
def mutated(place: Path, mutant: Mutant) -> Iterator[None]:
    """The copy of the sources at `place` with one mutant in it; afterwards as before."""
    file = place / "congenial" / mutant.file
    text, times = file.read_text(), (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text(mutant.change.applied(text))
    try:
        yield
    finally:
        file.write_text(text)
        os.utime(file, ns=times)


def outcome(place: Path, mutant: Mutant) -> tuple[str, str]:
    """Whether a test notices the mutant, and the last lines of what was printed.

    A test that fails without the mutant too notices nothing: the outcome is then BROKEN.
    """
    with mutated(place, mutant), _kernels_for(place, mutant) as kernels:
        code, told = _tested(place, tests_of(mutant.file), kernels)
    result = UNKNOWN if code == TOO_LONG else CAUGHT if code else SURVIVED
    blamed = FAILING.findall(told)
    if blamed and _tested(place, blamed, {})[0] in (1, 2):  # tests failed, or could not be read
        result = BROKEN
    return result, "\n".join(told.splitlines()[-4:])


def _tested(place: Path, tests: list[str], kernels: dict[str, str]) -> tuple[int, str]:
    words = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    paths = os.pathsep.join([str(place), str(ROOT)])
    environment = os.environ | {"PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"} | kernels
    return _run([*words, "-m", "not audit and not spark", *tests], environment)


@contextmanager
def _kernels_for(place: Path, mutant: Mutant) -> Iterator[dict[str, str]]:
    """Where kernels are compiled to: for a mutant of kernels a place of its own.

    Numba does not see that a kernel of another file has changed: callers that are compiled already
    would run without the mutant, and those compiled now would keep it.
    """
    text = (place / "congenial" / mutant.file).read_text()
    if "njit" not in text and "@loop" not in text:
        yield {}
        return
    with tempfile.TemporaryDirectory() as folder:
        yield {"NUMBA_CACHE_DIR": folder}


def _run(words: list[str], environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output; what runs too long is ended together with its own processes.

    The limit that decides is in seconds of a processor, so that a busy machine catches nothing.
    """
    with subprocess.Popen(
        words,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as running:
        resource.prlimit(running.pid, resource.RLIMIT_CPU, (SECONDS, SECONDS))
        try:
            told, _ = running.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            return TOO_LONG, f"longer than {PATIENCE} s"
    return running.returncode, told


def copied(place: Path) -> Path:
    """The sources, with their times and compiled kernels, in a place of their own."""
    shutil.copytree(SOURCE, place / "congenial")
    return place


def main() -> None:
    """Run mutants one after another and append each outcome to a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--number", type=int, default=settings()["number"])
    parser.add_argument("--seed", type=int, default=settings()["seed"])
    parser.add_argument("--results", type=Path, required=True)
    given = parser.parse_args()
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    known = {json.loads(line)["mutant"] for line in lines}
    with tempfile.TemporaryDirectory() as folder:
        place = copied(Path(folder) / "src")
        for mutant in draw(given.number, given.seed):
            if str(mutant) in known:
                continue
            result, words = outcome(place, mutant)
            with given.results.open("a") as file:
                file.write(
                    json.dumps({"mutant": str(mutant), "result": result, "by": words}) + "\n"
                )
            print(f"{result}: {mutant}", flush=True)


if __name__ == "__main__":
    main()
