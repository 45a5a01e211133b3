"""Work that takes longer than a page may: publishing and releasing, in threads, with progress.

Progress tells a share and a time left, never a number of people.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from congenial.errors import CongenialError, PlanError, SpentNote

Tell = Callable[[str], Any]
Work = Callable[[Tell], Any]
State = Literal["running", "done", "failed"]
KEPT = 50  # finished jobs that are remembered
_ROWS = re.compile(r"([\d,]+) of ([\d,]+) rows")


@dataclass
class Job:
    """One piece of work: what it is about, how far it is, and how it ended."""

    id: str
    title: str
    plan: str
    who: str
    then: str  # the page to go to when it is done
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    state: State = "running"
    stage: str = "starting"
    share: float | None = None
    error: str = ""

    def tell(self, words: str) -> None:
        """Take down how far it is."""
        found = _ROWS.search(words)
        self.share = None
        if found:
            done, of = (int(one.replace(",", "")) for one in found.groups())
            self.share = min(1.0, done / of) if of else None
            self.stage = "counting"
        else:
            self.stage = re.sub(r"\d", "", words)

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def seconds_left(self) -> float | None:
        """How long this stage may still take, where that can be told."""
        if not self.share or self.state != "running":
            return None
        return self.seconds * (1 - self.share) / self.share

    def document(self) -> dict[str, Any]:
        """What a page shows of it."""
        left = self.seconds_left
        return {
            "state": self.state,
            "stage": self.stage,
            "share": None if self.share is None else round(100 * self.share),
            "seconds": round(self.seconds),
            "left": None if left is None else round(left),
            "error": self.error,
            "then": self.then,
        }


class Jobs:
    """The jobs of one desk; a plan has one at a time."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()

    def start(
        self,
        title: str,
        plan: str,
        who: str,
        then: str,
        work: Work,
    ) -> Job:
        """Run `work` in a thread; it is given a function to tell its progress with."""
        with self._lock:
            if any(one.plan == plan and one.state == "running" for one in self._jobs.values()):
                raise PlanError(
                    "something is running for this plan already.", remedy="Wait until it has ended."
                )
            job = Job(secrets.token_urlsafe(16), title, plan, who, then)
            finished = [key for key, one in self._jobs.items() if one.state != "running"]
            for key in finished[: max(0, len(finished) - KEPT)]:
                del self._jobs[key]
            self._jobs[job.id] = job
        threading.Thread(target=_run, args=(job, work), name="desk job").start()
        return job

    def find(self, key: str) -> Job | None:
        """The job with this id."""
        return self._jobs.get(key)


def _run(job: Job, work: Work) -> None:
    try:
        work(job.tell)
    except CongenialError as error:
        job.error = str(error)
    except Exception as error:  # noqa: BLE001 - its text stays out: it may quote a record
        notes = [one for one in getattr(error, "__notes__", ()) if isinstance(one, SpentNote)]
        job.error = " ".join([f"unexpected error: {type(error).__name__}.", *notes])
    job.ended = time.monotonic()
    job.state = "failed" if job.error else "done"
