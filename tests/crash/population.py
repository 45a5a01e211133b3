"""A tiny population with a plan, processes that publish and release from it, and what must hold of
its ledger and its folder whatever happened to them.
"""

from __future__ import annotations

import multiprocessing as mp
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

from congenial import Ledger, Plan, Table, tabulate, verify
from congenial.errors import BudgetError, LedgerError
from congenial.kinds.tables import KIND
from congenial.ledger.stores.store import Event
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.publication import bundle, drawing, workflow
from congenial.publication.drawing import Offer, finish
from congenial.report.render import stated

EACH = Fraction(1, 10)  # epsilon of one release
STUCK = 300  # seconds in which nothing happens
SPENT = ("drawn", "committed", "abandoned")
NO_REPORT = "report.html contains no unexpected text or pictures"  # it is a stand-in

PLAN = """
[data]
source = "people.csv"
unit = "id"
[schema]
county = {{ levels = ["A", "B"] }}
sex = {{ levels = ["f", "m"] }}
age = {{ edges = [0, 18, 65], top = "65+" }}
[publish]
{figures}
[[release]]
name = "{name}"
table = ["county", "sex"]
epsilon = {epsilon}
[budget]
ledger = '{ledger}'
epsilon = {allowed}
"""

# One statistic under several labels: each is an event of its own, and none adds to the cost.
FIGURE = '"Population, edition {}" = {{ total = true }}'


@dataclass
class Population:
    """A folder with data, the place of its ledger, and how many releases its budget allows."""

    folder: Path
    place: str
    allowed: int
    seen: list[Event] = field(default_factory=list, repr=False)  # what the ledger held before
    whole: set[str] = field(default_factory=set, repr=False)  # committed bundles verified before

    @classmethod
    def found(cls, folder: Path, place: str, allowed: int) -> Population:
        """Sixty people, their first figure published and a first release drawn."""
        folder.mkdir()
        rows = "".join(f"{i},{'AB'[i % 3 % 2]},{'fm'[i % 2]},{i}\n" for i in range(60))
        (folder / "people.csv").write_text("id,county,sex,age\n" + rows)
        population = cls(folder, place, allowed)
        workflow.publish(population.plan("first"))
        population.quick_release("first")
        assert population.judge() == []
        return population

    def plan(self, name: str, figures: int = 1) -> Plan:
        """The plan with one release, and so many figures."""
        text = PLAN.format(
            figures="\n".join(FIGURE.format(i) for i in range(figures)),
            name=name,
            epsilon=float(EACH),
            ledger=self.place,
            allowed=float(self.allowed * EACH),
        )
        return Plan.parse(text, self.folder)

    @property
    def ledger(self) -> Ledger:
        """The ledger as somebody who comes later finds it."""
        return Ledger.open(self.place, timeout=60)

    @property
    def draws(self) -> int:
        """How often noise was drawn."""
        file = self.folder / "draws"
        return file.stat().st_size if file.exists() else 0

    def note(self) -> None:
        """Noise is drawn now: one byte, written straight to the file."""
        handle = os.open(self.folder / "draws", os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(handle, b"x")
        os.close(handle)

    def release(self, name: str) -> None:
        """Draw one release as `congenial release` does, taking note of the draw itself."""
        with watched(self.note):
            workflow.release(self.plan(name), name)

    @cached_property
    def ready(self) -> tuple[MeasuredTables, Table]:
        """Mechanism and counts: what a release has prepared when it comes to the ledger."""
        plan = self.plan("ready")
        table = tabulate(plan.source, plan.schema, ["county", "sex"])
        return KIND.build(plan, plan.release[0], workflow.published_so_far(plan)), table

    def quick_release(self, name: str, out: Path | None = None) -> None:
        """The same from the ledger on, without reading the data or rendering a report."""
        mechanism, table = self.ready

        def draw() -> Any:
            self.note()
            return mechanism.release(table, None, name)

        plan = self.plan(name)
        promise, report = mechanism.guarantee, lambda _, words: stated(words)
        made = mechanism.description, promise, draw, lambda: mechanism.made_up(name), report
        offer = Offer(name, *made)
        folder = (out or self.folder / "bundles") / name
        drawing.carry_out(plan, offer, folder, self.ledger, lambda _: None)

    def judge(self) -> list[str]:
        """Faults of the ledger and the folder: no overspending, no release without a record, no
        record lost, nothing half-written under a final name.
        """
        faults = []
        ledger = self.ledger
        events = ledger.events()
        if list(events[: len(self.seen)]) != self.seen:
            faults.append("a record was lost")
        self.seen[:] = events
        entries = ledger.entries()
        counted = [entry for entry in entries if entry.counted]
        if ledger.spent().epsilon != len(counted) * EACH or len(counted) > self.allowed:
            faults.append("more was spent than the budget allows, or it was counted wrongly")
        if sum(entry.status in SPENT for entry in entries) < self.draws:
            faults.append("noise was drawn without a record")
        faults += self._judge_bundles({entry.name: entry for entry in entries})
        published = self.folder / "published" / "published.json"
        if published.exists():
            told = {label["label"] for label in bundle._parse(published)["statements"]}
            if not told <= {statement.label for statement in ledger.figures.statements}:
                faults.append("a figure was published without a record")
        return faults

    def _judge_bundles(self, entries: dict[str, Any]) -> list[str]:
        faults = []
        folder = self.folder / "bundles"
        named = {} if not folder.exists() else {path.name: path for path in folder.iterdir()}
        whole = {name: path for name, path in named.items() if not name.startswith(".")}
        for name, path in whole.items():
            if name in self.whole:
                continue
            entry = entries.get(name)
            if entry is None or entry.status not in SPENT:
                faults.append(f"bundle {name} has no record")
                continue
            checks = verify(path, entry.bundle_digest or None)
            if not all(check.holds or check.what == NO_REPORT for check in checks):
                faults.append(f"bundle {name} is not whole, or not the one recorded")
            elif entry.status == "committed":
                self.whole.add(name)
        for entry in entries.values():
            if entry.status == "committed" and entry.name not in whole:
                faults.append(f"bundle {entry.name} is recorded and not there")
        return faults

    def recover(self) -> None:
        """What the curator does after a crash: finish what was drawn, give up the rest."""
        ledger = self.ledger
        finish(ledger, self.folder / "bundles", lambda _, words: stated(words))
        for entry in ledger.pending():
            ledger.abandon(entry.id)


class watched:
    """While it is entered, `note` is called at the moment when noise is drawn."""

    def __init__(self, note: Callable[[], None]) -> None:
        self._note = note

        self._carry_out = drawing.carry_out

    def __enter__(self) -> None:
        def carry_out(plan: Plan, offer: Offer, *rest: Any) -> Any:
            def draw() -> Any:
                self._note()
                return offer.draw()

            return self._carry_out(plan, replace(offer, draw=draw), *rest)

        drawing.carry_out = carry_out  # where `workflow` takes it from when it comes to the draw

    def __exit__(self, *_: object) -> None:
        drawing.carry_out = self._carry_out


def work_until_killed(
    population: Population, release: Callable[[str], None], first: int, seed: int
) -> None:
    """Publish and release without end; every release has a name of its own."""
    chance = random.Random(seed)
    while True:
        if chance.random() < 0.2:
            known = len(population.ledger.figures.statements)
            workflow.publish(population.plan("first", known + 1))
        release(f"r{first}")
        first += 1


def compete(release: Callable[[str], None], own: str, tries: int) -> None:
    """Try some releases; what the budget refuses is not drawn, and a ledger that others keep busy
    for too long is asked again.
    """
    for i in range(tries):
        again = True
        while again:
            try:
                release(f"{own}-{i}")
                again = False
            except BudgetError:
                again = False
            except LedgerError as error:
                if "locked by another process" not in error.what:
                    raise


def wait_for(running: Sequence[mp.process.BaseProcess], progress: Callable[[], object]) -> None:
    """Wait until all have ended, as long as something happens: a busy machine is no fault."""
    seen, since = progress(), time.monotonic()
    while any(process.is_alive() for process in running):
        for process in running:
            process.join(1 / len(running))
        now = progress()
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > STUCK:
            break
