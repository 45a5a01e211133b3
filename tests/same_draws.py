"""Noise that is keyed by the operating system, the same in every run.

A change is judged on the same draws every time: what a test asserts about noise cannot fail in one
run of thousands and pass in the next. `make audit` draws anew.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from types import SimpleNamespace

from congenial.sampling import randomness

REAL = "test_randomness.py"  # tests of the system's generator itself


class SameKeys:
    """Bytes in place of the system's: from a name, and how often they were asked for."""

    def __init__(self, name: str) -> None:
        self.name, self.asked, self.process = name, itertools.count(), os.getpid()

    def __call__(self, n: int) -> bytes:
        found = os.urandom(n)  # fails where the system's generator does
        if os.getpid() != self.process:
            return found  # a forked process repeats nothing of its parent's
        return hashlib.shake_256(f"{self.name} {next(self.asked)}".encode()).digest(len(found))


def begin(module: str, name: str) -> None:
    """From here on noise is that of a name, unless the module is about the system's generator."""
    same = SimpleNamespace(urandom=SameKeys(name), getpid=os.getpid)
    vars(randomness)["os"] = os if module == REAL else same
