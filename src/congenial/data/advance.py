"""How far long work has come: words for a person, the share that is done, and the time left."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from threading import Event, Thread
from typing import Any, TypeVar

Far = TypeVar("Far", int, float)
Thing = TypeVar("Thing")
Tell = Callable[[str], Any]

EVERY = 0.25  # seconds between two looks at work that does not tell by itself
OFTEN = 200  # times that a long list is told about, at most
TOLD_FROM = 0.05  # share from which, or
TOLD_AFTER = 10.0  # seconds after which the pace of a step says how long the rest takes


class Advance(str):
    """What is being done, and which share (0 to 1) of that step is done.

    It is a text, with `detail`, for whoever prints it. `step` is the text without `detail`, which
    may hold numbers of people: a page shows `step` and `share` only.

    >>> now = Advance("counting the records", 0.25, "5 of 20 rows")
    >>> str(now), now.step, now.share
    ('counting the records: 5 of 20 rows', 'counting the records', 0.25)
    """

    step: str
    share: float

    def __new__(cls, step: str, share: float, detail: str = "") -> Advance:
        """The words of a step, with its share cut to 0 to 1."""
        text = super().__new__(cls, f"{step}: {detail}" if detail else step)
        text.step, text.share = step, min(max(share, 0.0), 1.0)
        return text


def quiet(words: str) -> None:
    """Nobody waits: what is told is lost."""


_LISTENER: ContextVar[Tell] = ContextVar("_LISTENER", default=quiet)


@contextmanager
def telling(progress: Tell) -> Iterator[None]:
    """Inside, whoever is given no `progress` tells this one: work behind a public protocol."""
    before = _LISTENER.set(progress)
    try:
        yield
    finally:
        _LISTENER.reset(before)


def tell(words: str) -> None:
    """Tell the listener of `telling`, if there is one."""
    _LISTENER.get()(words)


def one_by_one(things: Sequence[Thing], step: str, progress: Tell = tell) -> Iterator[Thing]:
    """The things in order; now and then `progress` is told which share of them is done.

    >>> told = []
    >>> list(one_by_one(("a", "b"), "reading", told.append)), [one.share for one in told]
    (['a', 'b'], [0.0, 0.5])
    """
    every = math.ceil(len(things) / OFTEN)
    for at, thing in enumerate(things):
        if at % every == 0:
            progress(Advance(step, at / len(things)))
        yield thing


class StepClock:
    """The step that work is in, and how long the rest of it takes at the pace so far."""

    def __init__(self, step: str, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self.words = self.step = step
        self.share: float | None = None
        self._begun = self._told = now()  # when this step began, and when something was told last

    def take(self, words: str) -> None:
        """Take down how far the work is."""
        step = words.step if isinstance(words, Advance) else words
        share = words.share if isinstance(words, Advance) else None
        if step != self.step or (share or 0) < (self.share or 0):
            self._begun = self._told
        self._told = self._now()
        self.words, self.step, self.share = str(words), step, share

    @property
    def seconds_left(self) -> float | None:
        """How long this step may still take; None where that cannot be told yet."""
        taken = self._now() - self._begun
        if not self.share or (self.share < TOLD_FROM and taken < TOLD_AFTER):
            return None
        return taken * (1 - self.share) / self.share

    def __str__(self) -> str:
        if self.share is None:
            return self.words
        left = self.seconds_left
        rest = "" if left is None else f", about {math.ceil(left):,} s left"
        return f"{self.words}: {self.share:.0%}{rest}"


def bytes_read() -> int | None:
    """Bytes that this process has read so far; None where the system does not say (Linux does)."""
    try:
        lines = Path("/proc/self/io").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line[7:]) for line in lines if line.startswith("rchar: ")), None)


@contextmanager
def watching(
    look: Callable[[], Far | None], tell: Callable[[Far], Any], every: float | None = None
) -> Iterator[None]:
    """While something runs, ask `look` now and then how far it is and `tell` it, from a thread."""
    ended = Event()

    def watch() -> None:
        while not ended.wait(EVERY if every is None else every):
            far = look()
            if far is not None:
                tell(far)

    watcher = Thread(target=watch, name="progress", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
