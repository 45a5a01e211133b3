"""The walk of one release: the files and functions that `release` of the demo passes, in order.

Run `python -m benchmarks walk`. One row per room: how many of its files and functions are entered
between the call of `workflow.release` and its return, how often, and which file comes first; the
last row is the whole walk, with how often it changes from one file to another.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import congenial
from congenial.publication import workflow
from congenial.publication.demo_population import write_demo
from congenial.publication.plan import Plan

SEED = 20200401
ROOT = str(Path(congenial.__file__).parent) + "/"


class Walk:
    """Functions of congenial in the order of their first call."""

    def __init__(self) -> None:
        self.calls: dict[CodeType, int] = {}
        self.switches = 0
        self._last = ""

    def enter(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls; comprehensions and class bodies are no functions."""
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(ROOT):
            return
        if not code.co_flags & inspect.CO_NEWLOCALS or code.co_name.startswith("<"):
            return
        self.calls[code] = self.calls.get(code, 0) + 1
        self.switches += code.co_filename != self._last
        self._last = code.co_filename


def walked() -> Walk:
    """Publish the demo's figures, then watch its first release."""
    with tempfile.TemporaryDirectory() as place:
        plan = Plan.load(write_demo(Path(place) / "demo", SEED))
        workflow.publish(plan)
        walk = Walk()
        sys.setprofile(walk.enter)
        try:
            workflow.release(plan, plan.release[0].name)
        finally:
            sys.setprofile(None)
    return walk


def run() -> list[dict[str, Any]]:
    """One row per room, in the order in which they are first entered, and one for all."""
    walk = walked()
    rooms: dict[str, dict[CodeType, int]] = {}
    for code, times in walk.calls.items():
        room = code.co_filename.removeprefix(ROOT).split("/")[0]
        rooms.setdefault(room, {})[code] = times
    rows = [_row(room, calls) for room, calls in rooms.items()]
    return [*rows, _row("all", walk.calls) | {"switches": walk.switches}]


def _row(room: str, calls: dict[CodeType, int]) -> dict[str, Any]:
    files = list(dict.fromkeys(code.co_filename.removeprefix(ROOT) for code in calls))
    return {
        "room": room,
        "files": len(files),
        "functions": len(calls),
        "calls": sum(calls.values()),
        "first": files[0],
        "switches": "",
    }


if __name__ == "__main__":
    for row in run():
        print(row)
