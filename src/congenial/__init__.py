"""Publish what you must, exactly. Protect everything else, provably.

Names are loaded on first use, so that `import congenial` and the command line start at once.

>>> import congenial
>>> congenial.total(by="county").label
'Population by county'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from congenial._version import __version__

if TYPE_CHECKING:
    from congenial.data.schema import Schema
    from congenial.data.table import Table
    from congenial.data.tabulate import tabulate
    from congenial.data.unit import Unit
    from congenial.errors import CongenialError
    from congenial.inference.samplers import infer
    from congenial.mechanisms.calibrate import calibrate
    from congenial.mechanisms.congenial import Congenial
    from congenial.mechanisms.projection import project
    from congenial.mechanisms.release import Release
    from congenial.privacy.budget import Budget
    from congenial.privacy.guarantee import Guarantee
    from congenial.privacy.ledger import Ledger
    from congenial.public.adjacency import AddRemove, ReplaceOne, SemiAdjacent
    from congenial.public.invariants import Invariants, publish
    from congenial.public.statements import (
        at_least,
        at_most,
        count,
        linear,
        margin,
        structural_zeros,
        total,
    )
    from congenial.release.bundle import read
    from congenial.release.plan import Plan
    from congenial.release.verification import verify
    from congenial.sampling.randomness import SeededRandomness

_HOME = {
    "Schema": "data.schema",
    "Table": "data.table",
    "Unit": "data.unit",
    "tabulate": "data.tabulate",
    "Invariants": "public.invariants",
    "publish": "public.invariants",
    "total": "public.statements",
    "margin": "public.statements",
    "count": "public.statements",
    "linear": "public.statements",
    "structural_zeros": "public.statements",
    "at_least": "public.statements",
    "at_most": "public.statements",
    "AddRemove": "public.adjacency",
    "ReplaceOne": "public.adjacency",
    "SemiAdjacent": "public.adjacency",
    "Guarantee": "privacy.guarantee",
    "Budget": "privacy.budget",
    "Ledger": "privacy.ledger",
    "Congenial": "mechanisms.congenial",
    "calibrate": "mechanisms.calibrate",
    "project": "mechanisms.projection",
    "Release": "mechanisms.release",
    "infer": "inference.samplers",
    "Plan": "release.plan",
    "read": "release.bundle",
    "verify": "release.verification",
    "SeededRandomness": "sampling.randomness",
    "CongenialError": "errors",
}

__all__ = [
    "AddRemove",
    "Budget",
    "Congenial",
    "CongenialError",
    "Guarantee",
    "Invariants",
    "Ledger",
    "Plan",
    "Release",
    "ReplaceOne",
    "Schema",
    "SeededRandomness",
    "SemiAdjacent",
    "Table",
    "Unit",
    "__version__",
    "at_least",
    "at_most",
    "calibrate",
    "count",
    "infer",
    "linear",
    "margin",
    "project",
    "publish",
    "read",
    "structural_zeros",
    "tabulate",
    "total",
    "verify",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'congenial' has no attribute {name!r}")
    value = getattr(import_module(f"congenial.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
