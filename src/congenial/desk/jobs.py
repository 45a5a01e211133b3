"""Work that takes longer than a page may: publishing, releasing and slow pages, in threads.

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

from congenial.data.advance import StepClock, telling
from congenial.errors import CongenialError, PlanError, spent_words

Tell = Callable[[str], Any]
Work = Callable[[Tell], Any]
State = Literal["running", "done", "failed"]
KEPT = 50  # finished jobs that are remembered
MOST_PAGES = 20  # slow pages that are worked out, or wait for it, at the same time
FRESH = 30.0  # seconds for which a page that was worked out is handed out


@dataclass
class Job:
    """One piece of work: what it is about, how far it is, and how it ended."""

    id: str
    title: str
    plan: str
    then: str  # the page to go to when it is done
    page: bool = False  # whether it works out that page
    version: int = 0  # of what the desk has changed, when it began
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    state: State = "running"
    clock: StepClock = field(default_factory=lambda: StepClock("starting"))
    error: str = ""
    result: Any = None
    over: threading.Event = field(default_factory=threading.Event, repr=False)

    def tell(self, words: str) -> None:
        """Take down how far it is."""
        self.clock.take(words)

    @property
    def stage(self) -> str:
        """What is being done, without any number, which might be one of people."""
        return re.sub(r"\d", "", self.clock.step)

    @property
    def seconds(self) -> float:
        """How long it has run."""
        return (self.ended or time.monotonic()) - self.started

    def document(self) -> dict[str, Any]:
        """What a page shows of it."""
        share = self.clock.share if self.state == "running" else None
        left = None if share is None else self.clock.seconds_left
        return {
            "state": self.state,
            "stage": self.stage,
            "share": None if share is None else round(100 * share),
            "seconds": round(self.seconds),
            "left": None if left is None else round(left),
            "error": self.error,
            "then": self.then,
        }

    def run(self, work: Work) -> None:
        """Do the work, and note how it ended."""
        try:
            with telling(self.tell):
                self.result = work(self.tell)
        except CongenialError as error:
            self.error = " ".join([str(error), *spent_words(error)])
        except Exception as error:  # noqa: BLE001 - its text stays out: it may quote a record
            unexpected = f"unexpected error: {type(error).__name__}."
            self.error = " ".join([unexpected, *spent_words(error)])
        self.ended = time.monotonic()
        self.state = "failed" if self.error else "done"
        self.over.set()


class Jobs:
    """The jobs of one desk; a plan has one at a time, besides pages that are worked out."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = threading.Lock()
        self._version = 0

    def start(
        self,
        title: str,
        plan: str,
        then: str,
        work: Work,
    ) -> Job:
        """Run `work` in a thread; it is given a function to tell its progress with."""
        with self._lock:
            if any(job.plan == plan for job in self._running(page=False)):
                raise PlanError(
                    "something is running for this plan already.", remedy="Wait until it has ended."
                )
            return self._begin(Job(secrets.token_urlsafe(16), title, plan, then), work)

    def page(self, plan: str, place: str, work: Work) -> Job:
        """The work behind the page at an address: what runs for it already, or has just ended."""
        with self._lock:
            running = self._running(page=True)
            for each_job in self._jobs.values():
                same = (each_job.then, each_job.version) == (place, self._version)
                if each_job.page and same and self._holds(each_job):
                    return each_job
            if len(running) >= MOST_PAGES:
                raise PlanError(
                    "too many pages are being worked out.", remedy="Try again in a minute."
                )
            title = "Working it out"
            key = secrets.token_urlsafe(16)
            job = Job(key, title, plan, place, page=True, version=self._version)
            return self._begin(job, work)

    def changed(self) -> None:
        """Something may have changed: no page from before is handed out any more."""
        self._version += 1

    def find(self, key: str) -> Job | None:
        """The job with this id."""
        return self._jobs.get(key)

    def forget(self, job: Job) -> None:
        """Drop a page that was handed out: the next visit works it out again."""
        with self._lock:
            self._jobs.pop(job.id, None)

    def _running(self, *, page: bool) -> list[Job]:
        return [job for job in self._jobs.values() if job.page == page and job.state == "running"]

    @staticmethod
    def _holds(job: Job) -> bool:
        return job.ended is None or time.monotonic() - job.ended < FRESH

    def _begin(self, job: Job, work: Work) -> Job:
        finished = [key for key, other in self._jobs.items() if other.state != "running"]
        for key in finished[: max(0, len(finished) - KEPT)]:
            del self._jobs[key]
        self._jobs[job.id] = job
        threading.Thread(target=job.run, args=(work,), name="desk job", daemon=job.page).start()
        return job
