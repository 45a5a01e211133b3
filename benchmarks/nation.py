"""A made-up nation by parts: seconds of CPU, seconds on the clock and memory of every command.

Run `python -m benchmarks nation`. `NATION_AREAS=1000000` asks for other sizes, separated by commas;
`NATION_FIGURES=crossing` publishes women and people of voting age of every block beside all people;
`NATION_ENGINE=spark` reads and draws on Spark (`MASTER=local[2]`). CPU adds up the driver and its
processes, but for those of Spark. Memory is the largest during a command, of the driver and of all
processes together. Growth should be linear.
"""

from __future__ import annotations

import os
import resource
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from congenial.publication import workflow
from congenial.publication.demo_population import write_nation
from congenial.publication.plan import Plan
from congenial.publication.verification import verify

SIZES = "10000,100000"
SEED = 1
SMALLEST = {"SIZES": "60"}
EVERY = 0.1  # seconds between two looks at memory
CROSSING = """[publish]
"Female" = { count = "sex = 'female'", by = ["block"] }
"Voting age" = { count = "age >= 18", by = ["block"] }
"""


def run() -> list[dict[str, Any]]:
    """One row per size and command."""
    rows = []
    for areas in map(int, os.environ.get("NATION_AREAS", SIZES).split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows += _nation(areas, Path(folder) / "nation")
    return rows


def _nation(areas: int, folder: Path) -> list[dict[str, Any]]:
    place = write_nation(folder, areas, SEED, os.environ.get("NATION_ENGINE") == "spark")
    if os.environ.get("NATION_FIGURES") == "crossing":
        place.write_text(place.read_text().replace("[publish]", CROSSING, 1))
    plan = Plan.load(place)
    commands: dict[str, Callable[[], Any]] = {
        "check": lambda: workflow.check(plan),
        "publish": lambda: workflow.publish(plan),
        "release": lambda: workflow.release(plan, "nation"),
        "verify": lambda: verify(folder / "bundles" / "nation"),
    }
    return [{"areas": areas, "command": name} | _measured(do) for name, do in commands.items()]


def _measured(do: Callable[[], Any]) -> dict[str, Any]:
    before, start = _cpu(), time.monotonic()
    with _watched() as largest:
        do()
    return {
        "cpu seconds": _cpu() - before,
        "seconds": time.monotonic() - start,
        "driver GB": largest[0],
        "all processes GB": largest[1],
    }


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextmanager
def _watched() -> Iterator[list[float]]:
    """The largest memory, in GB, of this process and of it with all of its children."""
    largest, over = [0.0, 0.0], threading.Event()

    def look() -> None:
        while not over.wait(EVERY):
            found = _memory()
            largest[:] = [max(pair) for pair in zip(largest, found, strict=True)]

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    try:
        yield largest
    finally:
        over.set()
        watcher.join()


def _memory() -> tuple[float, float]:
    """What this process holds in memory, and what it and its children hold together."""
    parents, pages = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            number = int(place.name)
            parents[number] = int((place / "stat").read_text().rpartition(")")[2].split()[1])
            pages[number] = int((place / "statm").read_text().split()[1])
        except OSError:  # it has ended
            continue
    me = os.getpid()
    mine = [one for one in pages if _descends(one, me, parents)]
    size = resource.getpagesize() / 1e9
    return pages[me] * size, sum(pages[one] for one in mine) * size


def _descends(one: int, ancestor: int, parents: dict[int, int]) -> bool:
    while one and one != ancestor:
        one = parents.get(one, 0)
    return one == ancestor
