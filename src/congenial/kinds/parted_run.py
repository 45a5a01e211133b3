"""A nation drawn part by part, on one machine or on Spark: what `drawing_by_parts` asks for."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.advance import Advance
from congenial.data.durable_files import sync_tree
from congenial.data.engines.part_counts import count_parts
from congenial.data.source import SPARK_SCHEME, on_spark
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import DataError
from congenial.figures.sum_ranges import table_ranges
from congenial.kinds.kind import Document, Secret, Setting, Tell
from congenial.kinds.part_pool import Step, run_each, workers_for
from congenial.mechanisms.parted_steps import (
    PartTask,
    below_of,
    check_part,
    counted_part,
    done_of,
    draw_part,
    finish_part,
    is_done,
    is_drawn,
    key_for,
    make_folders,
    numbers,
    top_of,
)
from congenial.mechanisms.parted_tables import PartedTables
from congenial.mechanisms.released import PartFile
from congenial.mechanisms.tables_by_parts_release import PartedRelease
from congenial.sampling.keyed_randomness import KeyedRandomness
from congenial.sampling.randomness import Randomness, system_key
from congenial.tables.upper_estimator import UpperEstimates

BYTES_OF_A_CELL = 64  # on disk: as drawn, and as published
SMALL = 2_000_000  # cells below which one process is quicker than starting several


@dataclass(frozen=True, eq=False)
class NationRun:
    """One release by parts: its tables, its data, and how many processes work on it."""

    plan: Setting
    made: PartedTables
    name: str
    randomness: Randomness | None
    progress: Tell
    workers: int | None = None

    @property
    def fingerprint(self) -> str:
        """What it is drawn from: law, schema, and the files of the records."""
        told = [self.made.description.to_dict(), self.made.schema.digest, _stat(self.plan.source)]
        return hashlib.sha256(json.dumps(told).encode()).hexdigest()

    @property
    def cells(self) -> int:
        """Cells of all tables."""
        return sum(self.made.schema.size(names) for names in self.made.tables)

    @property
    def room(self) -> int:
        """Bytes that it needs on disk, about."""
        return BYTES_OF_A_CELL * self.cells

    def secret(self) -> Secret:
        """256 bits of the operating system, or of the stream that was given."""
        if self.randomness is None:
            return Secret(system_key(), KeyedRandomness.label, True)
        bits = self.randomness.words(4).tobytes()
        return Secret(bits, self.randomness.label, self.randomness.publishable)

    # ---- tasks -------------------------------------------------------------------------------

    @cached_property
    def _processes(self) -> int:
        if self.workers is None and self.cells < SMALL:
            return 1
        return workers_for(len(self.made.parts.labels), self.workers)

    def task(self, number: int, folder: Path) -> PartTask:
        """One part."""
        made = self.made
        axes, top, label = made.counted, made.summed(made.counted), made.parts.labels[number]
        return PartTask(number, label, made.part(number), axes, top, made.below, folder)

    def tasks(
        self, folder: Path, done: Callable[[Path, int], bool] = lambda *_: False
    ) -> Iterator[PartTask]:
        """The parts of which something is not done yet; all of them if nothing is named."""
        for number in range(len(self.made.parts.labels)):
            if not done(folder, number):
                yield self.task(number, folder)

    def _each(self, step: Step, tasks: Iterator[tuple[Any, ...]], folder: Path, what: str) -> None:
        """Run a step for every task: in processes of this machine, or where the records are."""
        if on_spark(self.plan.source):
            from congenial.kinds.part_jobs import run_on_spark

            run_on_spark(self.plan.source, step, tasks, folder, self._told(what))
        else:
            run_each(step, tasks, self._processes, self._told(what))

    def _told(self, what: str) -> Callable[[int], None]:
        """Tell how many parts are done."""
        total = len(self.made.parts.labels)

        def tell(done: int) -> None:
            self.progress(Advance(what, done / total, f"{done:,} of {total:,} parts"))

        return tell

    # ---- the run -----------------------------------------------------------------------------

    def prepare(self, folder: Path, counted: Document | None = None) -> Document:
        """CONFIDENTIAL counts of every part, checked against the figures; nothing is drawn."""
        if counted is not None and self._counted(folder) == counted:
            return counted
        if (folder / "counts").exists():
            shutil.rmtree(folder / "counts")
        self.progress("counting the records, part by part")
        with Microdata.open(self.plan.source, self.plan.schema, self.plan.unit) as data:
            count_parts(data, self.made.parts, self.made.counted, folder / "counts")
        sync_tree(folder / "counts")
        if self.made.figures.statements:
            tasks = ((one,) for one in self.tasks(folder))
            self._each(check_part, tasks, folder, "checking the figures")
        found = self._counted(folder)
        if found is None:
            raise DataError(
                f"the counts in '{folder}' cannot be read back.", remedy="Check the disk."
            )
        if counted is not None and found != counted:
            raise DataError(
                "the records are not those that it was begun with.",
                remedy="Bring them back, then release again.",
            )
        return found

    def _counted(self, folder: Path) -> Document | None:
        """CONFIDENTIAL: what the counts of every part are known by; None if some are unreadable."""
        labels = self.made.parts.labels
        try:
            return {label: counted_part(folder, number) for number, label in enumerate(labels)}
        except (OSError, ValueError, KeyError):  # those of pyarrow are among them
            return None

    def draw(self, folder: Path, secret: Secret) -> PartedRelease:
        """Draw every part, settle what lies above them, then settle and write every part."""
        make_folders(folder, self.made.tables, self.made.below)
        tasks = ((one, self._keys(one, secret)) for one in self.tasks(folder, is_drawn))
        self._each(draw_part, tasks, folder, "drawing")
        above, columns = self._above(folder, secret)
        rest = ((one, above.above(one.number)) for one in self.tasks(folder, is_done))
        self._each(finish_part, rest, folder, "estimating and writing")
        return self._release(folder, secret, columns)

    def _keys(self, task: PartTask, secret: Secret) -> dict[int, bytes]:
        """What a part is drawn with: its own keys, never the secret of all parts."""
        tables = self.made.tables
        return {at: key_for(secret.bits, tables[at], task.label) for at in task.share.drawn}

    def _above(self, folder: Path, secret: Secret) -> tuple[UpperEstimates, dict[int, Any]]:
        """Draw and settle the tables above the parts: the same words give the same, each time."""
        share, made = self.made.upper, self.made
        numbers_of = range(len(made.parts.labels))
        drawn = [folder / "drawn" / f"{number}.npz" for number in numbers_of]
        below, tops = [below_of(file) for file in drawn], [top_of(file) for file in drawn]
        names = made.summed(made.counted)
        together = np.concatenate(tops, axis=names.index(made.parts.parts))
        counts = Table(share.schema, names, together)
        values: list[Any] = [None] * len(share.tables)
        for at in share.drawn:
            words = KeyedRandomness(key_for(secret.bits, share.tables[at], None))
            values[at] = share.draw(at, counts.marginal(share.tables[at]).counts, words)
        found = share.above(below).settled(values)
        return found, upper_columns(made, found, values)

    def _release(self, folder: Path, secret: Secret, upper: dict[int, Any]) -> PartedRelease:
        files: dict[str, PartFile] = {}
        worst = dict.fromkeys(self.made.below, 0.0)
        for number in range(len(self.made.parts.labels)):
            for name, one in done_of(folder / "done" / f"{number}.json").items():
                files[name] = PartFile(folder / "parts" / name, one["digest"])
                worst[one["table"]] = max(worst[one["table"]], one["sd"])
        return PartedRelease(
            self.name,
            self.made.description,
            self.made.guarantee,
            secret.label,
            secret.publishable,
            upper,
            worst,
            files,
        )

    def made_up(self) -> PartedRelease:
        """A release of the same form about nobody: empty tables above the parts, and no files."""
        upper = {}
        for at, names in enumerate(self.made.tables):
            if at not in self.made.below:
                nobody = np.zeros([axis.size for axis in self.made.schema.axes(names)])
                drawn = None if self.made.scales[at] is None else nobody.astype(np.int64)
                upper[at] = numbers(nobody, nobody, nobody.astype(np.int64), drawn)
        given = (self.name, self.made.description, self.made.guarantee)
        worst = dict.fromkeys(self.made.below, 0.0)
        return PartedRelease(*given, KeyedRandomness.label, True, upper, worst)


def upper_columns(made: PartedTables, found: UpperEstimates, drawn: list[Any]) -> dict[int, Any]:
    """The columns of every table above the parts, by its place among all tables."""
    columns = {}
    for at, names in enumerate(made.tables):
        if at not in made.below:
            values = drawn[made.upper.tables.index(names)]
            given = (found.table(names), found.deviations(names), found.counts(names))
            columns[at] = numbers(*given, values, table_ranges(made.upper.figures, names))
    return columns


def _stat(source: object) -> list[list[Any]]:
    """Names, sizes and times of the files of a source, else its address; nothing for one that is
    in memory.
    """
    source = getattr(source, "address", source)
    if not isinstance(source, str | Path):
        return []
    path = Path(str(source).removeprefix(SPARK_SCHEME))
    if not path.exists():
        return [[str(source)]]
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return [[one.name, one.stat().st_size, one.stat().st_mtime_ns] for one in files]
