"""Run a step for every part: in this process, or in a pool of processes on one machine.

A runner is anything that calls the step once per task at least; what was done stays done
(`parted_steps`). A process of the pool that dies ends the run, with what was finished kept.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import get_context
from typing import Any

from congenial.errors import DataError

Step = Callable[..., Any]
Tell = Callable[[int], Any]


def workers_for(parts: int, asked: int | None) -> int:
    """How many processes: as asked, otherwise one per core and not more than parts."""
    return max(1, min(parts, asked or os.cpu_count() or 1))


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
            remedy="Free memory, choose smaller parts or fewer workers. A script must call release "
            "below `if __name__ == '__main__':`. Finished parts are kept.",
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
