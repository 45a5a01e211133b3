"""A made-up nation by parts: seconds of CPU, seconds on the clock and memory of every command.

Run `python -m benchmarks nation`; `NATION_AREAS=1000000` asks for other sizes, separated by commas.
CPU adds up the driver and its processes. Memory is the largest so far, of the driver and of one of
its processes. Growth should be linear.
"""

from __future__ import annotations

import os
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from congenial.publication import workflow
from congenial.publication.demo_nation import write_nation
from congenial.publication.plan import Plan
from congenial.publication.verification import verify

SIZES = "10000,100000"
SEED = 1


def run() -> list[dict[str, Any]]:
    """One row per size and command."""
    rows = []
    for areas in map(int, os.environ.get("NATION_AREAS", SIZES).split(",")):
        with tempfile.TemporaryDirectory() as folder:
            rows += _nation(areas, Path(folder) / "nation")
    return rows


def _nation(areas: int, folder: Path) -> list[dict[str, Any]]:
    plan = Plan.load(write_nation(folder, areas, SEED))
    commands: dict[str, Callable[[], Any]] = {
        "check": lambda: workflow.check(plan),
        "publish": lambda: workflow.publish(plan),
        "release": lambda: workflow.release(plan, "nation"),
        "verify": lambda: verify(folder / "bundles" / "nation"),
    }
    return [{"areas": areas, "command": name} | _measured(do) for name, do in commands.items()]


def _measured(do: Callable[[], Any]) -> dict[str, Any]:
    before, start = _cpu(), time.monotonic()
    do()
    driver, workers = (_memory(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "cpu seconds": _cpu() - before,
        "seconds": time.monotonic() - start,
        "driver GB": driver,
        "process GB": workers,
    }


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def _memory(who: int) -> float:
    return resource.getrusage(who).ru_maxrss / 1e6
