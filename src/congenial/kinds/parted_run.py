"""A nation drawn part by part: what one process does with one part, and the run over all of them.

Each step (`check_part`, `draw_part`, `finish_part`) reads and writes files of a private folder and
nothing else, so that any runner (`run_each`, `run_on_spark`) may call it, in any order, on any
machine that sees the folder, and again after a crash: a step whose file is there and whole is not
done twice, and a draw that is repeated takes the same words (`KeyedRandomness`). Files are synced,
with the folder that names them, before a step ends. `drawing_by_parts` says when each is called.

    counts/part=K/    CONFIDENTIAL counts of part K: cell, n; only cells with somebody
    drawn/K.npz       its tables as drawn, what they say of its top node (`Below`), and CONFIDENTIAL
                      counts of that node, for the tables above the parts
    parts/T/          table T below the parts as published, one Parquet file per part
    done/K.json       digests and rows of part K's files
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from math import prod
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

import numpy as np

from congenial import errors
from congenial.data.advance import Advance, watching
from congenial.data.area_parts import count_parts
from congenial.data.arrays import Ints
from congenial.data.durable_files import sync_tree, write_whole
from congenial.data.engines.checked_parquet import as_parquet
from congenial.data.source import SPARK_SCHEME, guarded, on_spark
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import DataError
from congenial.kinds.kind import Document, Secret, Tell
from congenial.kinds.planned_data import PlannedData
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.parted_tables import Names, PartedTables, TablesPiece
from congenial.mechanisms.released import PartFile
from congenial.mechanisms.tables_files import file_name, part_name
from congenial.sampling.randomness import KeyedRandomness, Randomness, key_of, system_key
from congenial.tables.estimates_by_parts import Above, Below, Settled, UpperEstimator

Step = Callable[..., Any]
TellDone = Callable[[int], Any]  # how many tasks have ended
SMALL = 2_000_000  # cells below which one process is quicker than starting several
EVERY = 1.0  # seconds after which finished tasks of Spark are counted
_ROWS = "refusal STRING, what STRING, remedy STRING"
_FAILED = "the Spark job for the parts failed."
_REMEDY = (
    "See the Spark log. Workers need congenial, memory for one part, and the folder `runs` "
    "beside the plan, shared by all machines. Finished parts are kept."
)


def workers_for(parts: int, cells: int, asked: int | None = None) -> int:
    """How many processes: as asked, otherwise one per core; not more than parts, and one for a
    nation of few cells.
    """
    if asked is None and cells < SMALL:
        return 1
    return max(1, min(parts, asked or os.cpu_count() or 1))


# ---- one machine ---------------------------------------------------------------------------------


def run_each(
    step: Step,
    tasks: Iterator[tuple[Any, ...]],
    workers: int,
    tell: TellDone = lambda _: None,
) -> list[Any]:
    """What `step(*task)` gives for every task, in the order they end; `tell` how many are done."""
    if workers == 1:
        results = []
        for task in tasks:
            results.append(step(*task))
            tell(len(results))
        return results
    try:
        return _run_in_pool(step, tasks, workers, tell)
    except BrokenProcessPool:
        raise DataError(
            "a process that worked on a part was killed or ran out of memory.",
            remedy=(
                "Free memory, choose smaller parts or fewer workers. A script must call release "
                "below `if __name__ == '__main__':`. Finished parts are kept."
            ),
        ) from None


def _run_in_pool(
    step: Step, tasks: Iterator[tuple[Any, ...]], workers: int, tell: TellDone
) -> list[Any]:
    """Few tasks at a time are handed over, so that few are in memory."""
    results: list[Any] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[Any]] = set()
        for task in tasks:
            waiting.add(pool.submit(step, *task))
            if len(waiting) > workers:
                results += _ended(waiting)
                tell(len(results))
        while waiting:
            results += _ended(waiting)
            tell(len(results))
    return results


def _ended(waiting: set[Future[Any]]) -> list[Any]:
    """Wait for some to end; their errors are raised here."""
    ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
    waiting -= ended
    return [future.result() for future in ended]


# ---- Spark ---------------------------------------------------------------------------------------


def run_on_spark(
    source: object, step: Step, tasks: Iterator[tuple[Any, ...]], folder: Path, tell: TellDone
) -> None:
    """Call `step(*task)` for every task where Spark likes; `tell` how many are done."""
    from congenial.data.engines.spark_source import quiet, session_of

    place = folder / "tasks"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(mode=0o700)
    many = _written(tasks, place)
    if not many:
        return
    work = _worker(step, str(place))

    def job() -> Any:
        return session_of(source).range(0, many, 1, many).mapInArrow(work, _ROWS).toArrow()

    with _watched(place, tell):
        results = guarded(lambda: quiet(job), _FAILED, _REMEDY)
    tell(many)
    for refusal in results.to_pylist():
        kind = getattr(errors, refusal["refusal"])
        raise kind(refusal["what"], remedy=refusal["remedy"])
    shutil.rmtree(place)


def _written(tasks: Iterator[tuple[Any, ...]], place: Path) -> int:
    """Write the tasks by number; how many there are."""
    many = 0
    for task in tasks:
        (place / f"{many}.task").write_bytes(pickle.dumps(task))
        many += 1
    return many


def _worker(step: Step, place: str) -> Callable[[Any], Any]:
    """What Spark runs: tasks by number in, refusals out."""

    def work(batches: Any) -> Any:
        import pyarrow as pa

        for batch in batches:
            refused = []
            for number in batch.column(0).to_pylist():
                task = pickle.loads((Path(place) / f"{number}.task").read_bytes())  # noqa: S301
                try:
                    step(*task)
                except errors.CongenialError as reason:
                    refusal = (type(reason).__name__, reason.what, reason.remedy)
                    refused.append(dict(zip(("refusal", "what", "remedy"), refusal, strict=True)))
                (Path(place) / f"{number}.done").touch()
            text = pa.schema([(name, pa.string()) for name in ("refusal", "what", "remedy")])
            yield pa.RecordBatch.from_pylist(refused, text)

    return work


def _watched(place: Path, tell: TellDone) -> AbstractContextManager[None]:
    """Tell now and then how many tasks have ended."""
    return watching(lambda: sum(1 for _ in place.glob("*.done")) or None, tell, EVERY)


BYTES_OF_A_CELL = 64  # on disk: as drawn, and as published


@dataclass(frozen=True, eq=False)
class PartTask:
    """One part: what is drawn there (public), and where its files are."""

    number: int
    label: str
    piece: TablesPiece
    axes: Names  # the attributes of the counts, in order
    top: Names  # the same, with the part in place of its areas
    below: tuple[int, ...]  # the tables that are written for the part
    folder: Path

    def file(self, kind: str, ending: str) -> Path:
        """A file of this part."""
        return self.folder / kind / f"{self.number}.{ending}"


# ---- counts: confidential ------------------------------------------------------------------------


def counts_of(task: PartTask) -> Table:
    """CONFIDENTIAL: the counts of a part."""
    shape = tuple(task.piece.schema.attribute(name).size for name in task.axes)
    flat = np.zeros(prod(shape), dtype=np.int64)
    cells, people = _cells(task.folder, task.number)
    flat[cells] = people
    return Table(task.piece.schema, task.axes, flat.reshape(shape))


def _cells(folder: Path, number: int) -> tuple[Ints, Ints]:
    """CONFIDENTIAL: the cells of a part with somebody, in order, and how many are in each."""
    import pyarrow.parquet as pq

    read = [np.empty((2, 0), dtype=np.int64)]
    for file in (folder / "counts" / f"part={number}").glob("*.parquet"):
        columns = pq.ParquetFile(file).read(columns=["cell", "n"])
        read.append(
            np.stack([columns["cell"].to_numpy(), columns["n"].to_numpy()]).astype(np.int64)
        )
    cells, people = np.concatenate(read, axis=1)
    order = np.argsort(cells)
    return cells[order], people[order]


def counted_part(folder: Path, number: int) -> dict[str, Any]:
    """CONFIDENTIAL: what a part's counts are known by.

    The digest is of the counts, not of the files: counted again, they give the same.
    """
    cells, people = _cells(folder, number)
    digest = hashlib.sha256(np.stack([cells, people]).astype("<i8").tobytes()).hexdigest()
    return {"digest": digest, "rows": len(cells), "people": int(people.sum())}


def check_part(task: PartTask) -> None:
    """Refuse counts that do not agree with the figures of the part: before anything is drawn."""
    task.piece.check(counts_of(task))


# ---- drawing a part ------------------------------------------------------------------------------


def draw_part(task: PartTask, keys: Mapping[int, bytes]) -> None:
    """Draw every table of the part once, and write what they say of its top node.

    `keys`: one for each table that is drawn in the part, and for nothing else.
    """
    if is_drawn(task.folder, task.number):
        return
    counts, estimator = counts_of(task), task.piece.estimator
    values = task.piece.draw(counts, keys)
    below = estimator.below(estimator.upward(values))
    packed = _packed(values, below) | {"top": counts.marginal(task.top).counts}
    write_whole(task.file("drawn", "npz"), lambda file: np.savez(file, **packed))


def is_drawn(folder: Path, number: int) -> bool:
    """Whether a part was drawn, and its file is whole."""
    try:
        with ZipFile(folder / "drawn" / f"{number}.npz") as file:
            return file.testzip() is None
    except (OSError, ValueError, EOFError, NotImplementedError, BadZipFile):
        return False


def key_for(secret: bytes, names: Names, label: str | None) -> bytes:
    """The key of the words of one table in one part; None: above the parts."""
    return key_of(secret, json.dumps([list(names), label]))


def _packed(values: Sequence[Any], below: Below) -> dict[str, Any]:
    """Plain arrays."""
    packed = {
        f"drawn {at}": drawn_values
        for at, drawn_values in enumerate(values)
        if drawn_values is not None
    }
    for contrasts, mean in below.means.items():
        key = json.dumps(list(contrasts))
        packed[f"mean {key}"], packed[f"covariance {key}"] = mean, below.covariances[contrasts]
    packed["start"] = below.start
    packed["precision"] = np.array([below.p, below.q])
    packed["bounds"] = np.array([below.low, below.high])
    return packed


def below_of(file: Path) -> Below:
    """What a part that was drawn says of its top node."""
    with np.load(file, allow_pickle=False) as saved:
        means, covariances = (
            {
                tuple(json.loads(key.partition(" ")[2])): saved[key]
                for key in saved.files
                if key.startswith(f"{what} ")
            }
            for what in ("mean", "covariance")
        )
        p, q = saved["precision"].tolist()
        low, high = saved["bounds"].tolist()
        return Below(means, covariances, saved["start"], p, q, low, high)


def top_of(file: Path) -> Any:
    """CONFIDENTIAL: the counts of the top node of a part that was drawn."""
    with np.load(file, allow_pickle=False) as saved:
        return saved["top"]


def drawn_of(task: PartTask) -> list[Any]:
    """The part's tables as drawn; None for those that are not drawn there."""
    with np.load(task.file("drawn", "npz"), allow_pickle=False) as saved:
        tables = range(len(task.piece.tables))
        return [saved[f"drawn {at}"] if f"drawn {at}" in saved.files else None for at in tables]


# ---- settling and writing a part -----------------------------------------------------------------


def finish_part(task: PartTask, above: Above) -> None:
    """Estimates and whole counts of the part, written as they are published."""
    if is_done(task.folder, task.number):
        return
    values, piece = drawn_of(task), task.piece
    settled = piece.estimator.settled(piece.estimator.upward(values), above)
    done = {}
    for at in task.below:
        columns = piece.with_ends(at, piece.columns(at, settled, values[at]))
        content = as_parquet(piece.file(at).table(columns))
        name = f"{file_name(piece.tables, at)}/{part_name(task.number)}"
        write_whole(task.folder / "parts" / name, content)
        worst = float(columns["sd"].max(initial=0.0))
        done[name] = {"digest": hashlib.sha256(content).hexdigest(), "table": at, "sd": worst}
    write_whole(task.file("done", "json"), json.dumps(done).encode())


def is_done(folder: Path, number: int) -> bool:
    """Whether a part's files are written, each with its digest."""
    try:
        files = done_of(folder / "done" / f"{number}.json")
        return bool(files) and all(
            hashlib.sha256((folder / "parts" / name).read_bytes()).hexdigest() == file["digest"]
            for name, file in files.items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):  # absent, or damaged
        return False


def done_of(file: Path) -> dict[str, Any]:
    """Digests of a part's files, by name."""
    record: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return record


# ---- files ---------------------------------------------------------------------------------------


def make_folders(folder: Path, tables: Sequence[Names], below: Sequence[int]) -> None:
    """Where the steps write. They make no folder: one that ends after its run was removed fails."""
    for name in ("drawn", "done", *(f"parts/{file_name(tables, at)}" for at in below)):
        (folder / name).mkdir(parents=True, exist_ok=True)


# ---- the run -------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class NationRun:
    """One release by parts: its tables, its data, and how many processes work on it."""

    plan: PlannedData
    made: PartedTables
    name: str
    randomness: Randomness | None
    progress: Tell
    workers: int | None = None

    @property
    def fingerprint(self) -> str:
        """What it is drawn from: law, schema, and the files of the records."""
        rests_on = [
            self.made.description.to_dict(),
            self.made.schema.digest,
            _stat(self.plan.source),
        ]
        return hashlib.sha256(json.dumps(rests_on).encode()).hexdigest()

    @property
    def room(self) -> int:
        """Bytes that it needs on disk, about."""
        return BYTES_OF_A_CELL * self.made.cells

    def secret(self) -> Secret:
        """256 bits of the operating system, or of the stream that was given."""
        if self.randomness is None:
            return Secret(system_key(), KeyedRandomness.label, True)
        bits = self.randomness.words(4).tobytes()
        return Secret(bits, self.randomness.label, self.randomness.publishable)

    # ---- tasks -------------------------------------------------------------------------------

    @cached_property
    def _processes(self) -> int:
        return workers_for(len(self.made.parts.labels), self.made.cells, self.workers)

    def task(self, number: int, folder: Path) -> PartTask:
        """One part."""
        mechanism = self.made
        axes, top, label = (
            mechanism.counted,
            mechanism.summed(mechanism.counted),
            mechanism.parts.labels[number],
        )
        return PartTask(number, label, mechanism.part(number), axes, top, mechanism.below, folder)

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
            run_on_spark(self.plan.source, step, tasks, folder, self._told(what))
        else:
            run_each(step, tasks, self._processes, self._told(what))

    def _told(self, what: str) -> Callable[[int], None]:
        """Tell how many parts are done."""
        total = len(self.made.parts.labels)

        def tell(done: int) -> None:
            self.progress(Advance(what, done / total, f"{done:,} of {total:,} parts"))

        return tell

    # ---- what `drawing_by_parts` calls -------------------------------------------------------

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
            tasks = ((part_task,) for part_task in self.tasks(folder))
            self._each(check_part, tasks, folder, "checking the figures")
        tables_counted = self._counted(folder)
        if tables_counted is None:
            raise DataError(
                f"the counts in '{folder}' cannot be read back.", remedy="Check the disk."
            )
        if counted is not None and tables_counted != counted:
            raise DataError(
                "the records are not those that it was begun with.",
                remedy="Bring them back, then release again.",
            )
        return tables_counted

    def _counted(self, folder: Path) -> Document | None:
        """CONFIDENTIAL: what the counts of every part are known by; None if some are unreadable."""
        labels = self.made.parts.labels
        try:
            return {label: counted_part(folder, number) for number, label in enumerate(labels)}
        except (OSError, ValueError, KeyError):  # those of pyarrow are among them
            return None

    def draw(self, folder: Path, secret: Secret) -> PartedRelease:
        """Draw every part, settle what lies above them, then settle and write every part."""
        mechanism = self.made
        make_folders(folder, mechanism.tables, mechanism.below)
        tasks = (
            (part_task, self._keys(secret, part_task.piece, part_task.label))
            for part_task in self.tasks(folder, is_drawn)
        )
        self._each(draw_part, tasks, folder, "drawing")
        estimator, settled, drawn = self._above(folder, secret)
        rest = (
            (part_task, estimator.above(settled, part_task.number))
            for part_task in self.tasks(folder, is_done)
        )
        self._each(finish_part, rest, folder, "estimating and writing")
        files: dict[str, PartFile] = {}
        worst = dict.fromkeys(mechanism.below, 0.0)
        for number in range(len(mechanism.parts.labels)):
            for name, digest in done_of(folder / "done" / f"{number}.json").items():
                files[name] = PartFile(folder / "parts" / name, digest["digest"])
                worst[digest["table"]] = max(worst[digest["table"]], digest["sd"])
        source, upper = (secret.label, secret.publishable), mechanism.upper_columns(settled, drawn)
        return mechanism.released(self.name, source, upper, worst, files)

    def _keys(self, secret: Secret, piece: TablesPiece, label: str | None) -> dict[int, bytes]:
        """What a piece is drawn with: its own keys, never the secret of all of them."""
        return {at: key_for(secret.bits, piece.tables[at], label) for at in piece.drawn}

    def _above(self, folder: Path, secret: Secret) -> tuple[UpperEstimator, Settled, list[Any]]:
        """Draw and settle the tables above the parts: the same words give the same, each time."""
        mechanism, piece = self.made, self.made.upper
        drawn = [folder / "drawn" / f"{k}.npz" for k in range(len(mechanism.parts.labels))]
        below, tops = [below_of(file) for file in drawn], [top_of(file) for file in drawn]
        names = mechanism.summed(mechanism.counted)
        together = np.concatenate(tops, axis=names.index(mechanism.parts.parts))
        counts = Table(piece.schema, names, together)
        values = piece.draw(counts, self._keys(secret, piece, None))
        estimator = piece.above(below)
        return estimator, estimator.settled(values), values


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
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files]
