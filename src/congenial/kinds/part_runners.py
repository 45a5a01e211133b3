"""Run a step for every part: in this process, in a pool of processes on one machine, or on Spark.

A runner calls the step once per task at least; what was done stays done, and a repeated or
speculated step draws the same words (`parted_run`). A process of the pool that dies ends the run,
with what was finished kept. On Spark tasks travel as files of a folder that all of its machines
share, so that neither driver nor plan of the job holds them; a row of the job is the number of one
task. A step that refuses says so in its row, and the driver raises it; whatever else fails, Spark
tries again elsewhere, and then the job.
"""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from congenial import errors
from congenial.data.advance import watching
from congenial.data.source import guarded
from congenial.errors import DataError

Step = Callable[..., Any]
Tell = Callable[[int], Any]
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
    tell: Tell = lambda _: None,
) -> list[Any]:
    """What `step(*task)` gives for every task, in the order they end; `tell` how many are done."""
    if workers == 1:
        found = []
        for task in tasks:
            found.append(step(*task))
            tell(len(found))
        return found
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
    step: Step, tasks: Iterator[tuple[Any, ...]], workers: int, tell: Tell
) -> list[Any]:
    """Few tasks at a time are handed over, so that few are in memory."""
    found: list[Any] = []
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: set[Future[Any]] = set()
        for task in tasks:
            waiting.add(pool.submit(step, *task))
            if len(waiting) > workers:
                found += _ended(waiting)
                tell(len(found))
        while waiting:
            found += _ended(waiting)
            tell(len(found))
    return found


def _ended(waiting: set[Future[Any]]) -> list[Any]:
    """Wait for some to end; their errors are raised here."""
    ended, _ = wait(waiting, return_when=FIRST_COMPLETED)
    waiting -= ended
    return [one.result() for one in ended]


# ---- Spark ---------------------------------------------------------------------------------------


def run_on_spark(
    source: object, step: Step, tasks: Iterator[tuple[Any, ...]], folder: Path, tell: Tell
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
        found = guarded(lambda: quiet(job), _FAILED, _REMEDY)
    tell(many)
    for refusal in found.to_pylist():
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


def _watched(place: Path, tell: Tell) -> AbstractContextManager[None]:
    """Tell now and then how many tasks have ended."""
    return watching(lambda: sum(1 for _ in place.glob("*.done")) or None, tell, EVERY)
