"""Run a step for every part as one job of Spark, in a folder that all of its machines share.

Tasks travel as files of that folder, so that neither driver nor plan of the job holds them; a row
of the job is the place of one task. A step that refuses says so in its row, and the driver raises
it; whatever else fails, Spark tries again elsewhere, and then the job. What a step has done stays
done, and a repeated or speculated step draws the same words (`parted_steps`): which attempt is
quicker does not show in what is drawn.
"""

from __future__ import annotations

import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from congenial import errors
from congenial.data.advance import watching
from congenial.data.engines.spark_source import quiet, session_of
from congenial.data.source import guarded
from congenial.kinds.part_pool import Step, Tell

EVERY = 1.0  # seconds after which finished tasks are counted
_ROWS = "refusal STRING, what STRING, remedy STRING"
_FAILED = "the Spark job for the parts failed."
_REMEDY = (
    "See the Spark log. Workers need congenial, memory for one part, and the folder `runs` "
    "beside the plan, shared by all machines. Finished parts are kept."
)


def run_on_spark(
    source: object, step: Step, tasks: Iterator[tuple[Any, ...]], folder: Path, tell: Tell
) -> None:
    """Call `step(*task)` for every task where Spark likes; `tell` how many are done."""
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
                    told = (type(reason).__name__, reason.what, reason.remedy)
                    refused.append(dict(zip(("refusal", "what", "remedy"), told, strict=True)))
                (Path(place) / f"{number}.done").touch()
            text = pa.schema([(name, pa.string()) for name in ("refusal", "what", "remedy")])
            yield pa.RecordBatch.from_pylist(refused, text)

    return work


def _watched(place: Path, tell: Tell) -> AbstractContextManager[None]:
    """Tell now and then how many tasks have ended."""
    return watching(lambda: sum(1 for _ in place.glob("*.done")) or None, tell, EVERY)
