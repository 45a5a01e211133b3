"""How many cases, and a watch over each: errors on purpose only, in time, nothing written."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from congenial.errors import CongenialError
from tests.children import start

LONGEST = 10.0  # seconds of the processor for one case
WAITING = 60.0  # seconds of the clock, where it may wait for something for ever


def cases(n: int) -> Callable[[Any], Any]:
    """Run a property n times."""
    return settings(
        max_examples=n,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


class Hang(BaseException):
    """A case took too long; no handler for errors catches it."""


@contextmanager
def accepted() -> Iterator[None]:
    """Within it, an error raised on purpose is fine; another one, or taking too long, is not."""

    rung = []

    def ring(number: int, __: FrameType | None) -> None:
        rung.append(number)  # a handler somewhere may swallow what is raised
        raise Hang("too long")

    before = [signal.signal(number, ring) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, LONGEST)
    signal.setitimer(signal.ITIMER_REAL, WAITING)
    try:
        yield
    except CongenialError as error:
        if not str(error).strip() or not 2 <= error.exit_code <= 7:
            raise
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])
    if rung:
        raise Hang("too long")


@pytest.fixture(autouse=True)
def counted(request: pytest.FixtureRequest, attempt: Callable[..., None]) -> None:
    """Report how many inputs a property is tried on; hypothesis keeps its settings here."""
    found = getattr(request.function, "_hypothesis_internal_use_settings", None)
    if found is not None:
        attempt("inputs", cases=found.max_examples)


@pytest.fixture
def in_time() -> Callable[..., None]:
    """Run something in a process of its own that is ended when it takes too long or too much."""
    import resource

    def limited(work: Callable[..., None], args: tuple[Any, ...]) -> None:
        room = 4 * 2**30
        resource.setrlimit(resource.RLIMIT_AS, (room + _memory(), resource.RLIM_INFINITY))
        work(*args)

    def run(work: Callable[..., None], *args: Any) -> None:
        process = start(limited, work, args)
        process.join(WAITING)
        if process.is_alive():
            process.kill()
            process.join()
        assert process.exitcode == 0

    return run


def _memory() -> int:
    """Bytes of address space this process has now."""
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[0]) * 4096
