"""Processes that start as a copy of the tests' own, with everything imported."""

from __future__ import annotations

import gc
import multiprocessing as mp
from collections.abc import Callable

FORK = mp.get_context("fork")


def start(work: Callable[..., None], *args: object) -> mp.process.BaseProcess:
    """Start `work(*args)` in a child."""
    process = FORK.Process(target=_fresh, args=(work, *args))
    process.start()
    return process


def _fresh(work: Callable[..., None], *args: object) -> None:
    # What other tests left may own threads that a copy does not have: freeing it would crash.
    gc.freeze()
    work(*args)
