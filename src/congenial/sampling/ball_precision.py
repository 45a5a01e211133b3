"""The working precision of ball arithmetic, set by one thread at a time.

flint keeps the precision in one place for the whole process. A ball computed while another thread
lowers it would still be a rigorous enclosure, but wider than its user counted on.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from flint import ctx

_lock = threading.RLock()


@contextmanager
def working_precision(bits: int) -> Iterator[None]:
    """Run the block at this precision, alone: other threads wait at their own blocks."""
    with _lock, ctx.workprec(bits):
        yield


def _forked() -> None:
    global _lock
    _lock = threading.RLock()  # its owner may be a thread that does not exist in the child


if hasattr(os, "register_at_fork"):  # there is no fork on Windows
    os.register_at_fork(after_in_child=_forked)
