"""The walk of one release: files and functions that the demo's own first release passes, in order.

Run `python -m benchmarks walk`. First one row per phase, then one per room, then the whole walk,
and last `verify` of the bundle that came of it, which is a walk of its own. Files, functions and
classes are those entered; `alone` counts functions that no other phase (or room) enters: what a
reader would be spared without it. A switch is a call from one file into another. Templates of the
report are no functions and are not counted.
"""

from __future__ import annotations

import inspect
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import congenial
from congenial.publication import workflow
from congenial.publication.demo_population import write_demo
from congenial.publication.plan import Plan
from congenial.publication.verification import verify

SEED = 20200401
ROOT = str(Path(congenial.__file__).parent) + "/"
PLAN = "plan"
# A phase begins with a call of one of these functions and ends with its return; what is called
# outside of all of them is the plan's. A folder stands for all functions in it.
PHASES = {
    "figures/": "figures",
    "pairs/": "pairs",
    "kinds/tables.py:TablesKind.build": "build",
    "tables/joint_estimator.py:JointEstimator.answer": "estimates and counts",
    "mechanisms/one_table.py:OneTable.answer": "estimates and counts",
    "data/tabulate.py:Microdata.open": "data",
    "data/tabulate.py:Microdata.tabulate": "data",
    "mechanisms/mechanism.py:Mechanism.check": "data",
    "mechanisms/measured_tables.py:MeasuredTables.release_each": "draw",
    "mechanisms/measured_tables.py:MeasuredTables.made_up": "draw",
    "report/tables_report.py:render": "report",
    "publication/bundle.py:files_of": "bundle",
    "publication/bundle.py:write": "bundle",
    "publication/bundle.py:assemble": "read back",
    "publication/claim.py": "claim",
    "ledger/": "ledger",
    "ledger/state.py:LedgerState.price": "price",
    "privacy/composition.py": "price",
}
PASSING = {"figures/", "pairs/"}  # phases of their own only when no other phase asks for them


def place_of(code: CodeType) -> str:
    """The file of a function, from the package's folder on."""
    return code.co_filename.removeprefix(ROOT)


class Walk:
    """Functions of congenial in the order of their first call, and in which phases."""

    def __init__(self) -> None:
        self.phases: dict[CodeType, set[str]] = {}
        self.calls: dict[CodeType, int] = {}
        self.switches = 0
        self._last = ""
        self._stack = [PLAN]

    def enter(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls; comprehensions and class bodies are no functions."""
        code = frame.f_code
        if not (code.co_filename.startswith(ROOT) and code.co_filename.endswith(".py")):
            return
        if event == "return":
            self._stack.pop()
        if event != "call":
            return
        self._stack.append(self._phase(code))
        if not code.co_flags & inspect.CO_NEWLOCALS or code.co_name.startswith("<"):
            return
        self.calls[code] = self.calls.get(code, 0) + 1
        self.phases.setdefault(code, set()).add(self._stack[-1])
        self.switches += code.co_filename != self._last
        self._last = code.co_filename

    def _phase(self, code: CodeType) -> str:
        place, now = place_of(code), self._stack[-1]
        folder = place.split("/")[0] + "/"
        for key in (f"{place}:{code.co_qualname}", place, folder):
            if key in PHASES and (key not in PASSING or now == PLAN):
                return PHASES[key]
        return now

    def watch(self, call: Callable[[], Any]) -> Walk:
        """Call something and note where it goes."""
        sys.setprofile(self.enter)
        try:
            call()
        finally:
            sys.setprofile(None)
        return self


def walked() -> tuple[Walk, Walk]:
    """Publish the demo's figures, then watch its first release, and the verification of that."""
    with tempfile.TemporaryDirectory() as place:
        plan = Plan.load(write_demo(Path(place) / "demo", SEED))
        workflow.publish(plan)
        folder, name = Path(place) / "bundle", plan.release[0].name
        release = Walk().watch(lambda: workflow.release(plan, name, folder))
        return release, Walk().watch(lambda: verify(folder))


def run() -> list[dict[str, Any]]:
    """Rows of phases, rooms, the release and its verification."""
    release, verification = walked()
    rooms = {code: {place_of(code).split("/")[0]} for code in release.calls}
    return [
        *_rows("phase", release, release.phases),
        *_rows("room", release, rooms),
        _row("release", release, list(release.calls)) | {"switches": release.switches},
        _row("verify", verification, list(verification.calls))
        | {"switches": verification.switches},
    ]


def _rows(what: str, walk: Walk, parts: dict[CodeType, set[str]]) -> list[dict[str, Any]]:
    """One row per part, in the order in which they are first entered."""
    rows = []
    for part in dict.fromkeys(name for names in parts.values() for name in sorted(names)):
        codes = [code for code, names in parts.items() if part in names]
        alone = sum(parts[code] == {part} for code in codes)
        rows.append(_row(f"{what} {part}", walk, codes) | {"alone": alone})
    return rows


def _row(part: str, walk: Walk, codes: list[CodeType]) -> dict[str, Any]:
    methods = {(place_of(code), *code.co_qualname.split(".")[:-1]) for code in codes}
    classes = {names for names in methods if len(names) == 2}
    return {
        "part": part,
        "files": len({place_of(code) for code in codes}),
        "functions": len(codes),
        "alone": "",
        "classes": len(classes),
        "calls": sum(walk.calls[code] for code in codes),
        "switches": "",
        "first": place_of(codes[0]),
    }


if __name__ == "__main__":
    for row in run():
        print(row)
