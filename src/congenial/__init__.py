"""Publish what you must, exactly. Protect everything else, provably.

Names are loaded on first use, so that `import congenial` and the command line start at once.

>>> import congenial
>>> congenial.total(by="county").label
'Population by county'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use
from congenial._version import __version__

if TYPE_CHECKING:
    from congenial.data.schema import Schema, Unit
    from congenial.data.table import Table
    from congenial.data.tabulate import tabulate
    from congenial.errors import CongenialError
    from congenial.figures.figures import Figures, publish
    from congenial.figures.statements import (
        at_least,
        at_most,
        count,
        linear,
        margin,
        structural_zeros,
        total,
    )
    from congenial.inference.estimates.estimating import estimate
    from congenial.inference.inference import infer
    from congenial.ledger.budget import Budget
    from congenial.ledger.ledger import Ledger
    from congenial.mechanisms.calibrate import calibrate
    from congenial.mechanisms.congenial import Congenial
    from congenial.mechanisms.measured_tables import release_table
    from congenial.mechanisms.tables_release import TablesRelease
    from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
    from congenial.privacy.guarantee import Guarantee
    from congenial.publication.bundle import read
    from congenial.publication.drawing import save
    from congenial.publication.plan import Plan
    from congenial.publication.verification import verify
    from congenial.sampling.randomness import SeededRandomness

__all__ = [
    "AddRemove",
    "Budget",
    "Congenial",
    "CongenialError",
    "Figures",
    "Guarantee",
    "Ledger",
    "Plan",
    "ReplaceOne",
    "Schema",
    "SeededRandomness",
    "SemiAdjacent",
    "Table",
    "TablesRelease",
    "Unit",
    "__version__",
    "at_least",
    "at_most",
    "calibrate",
    "count",
    "estimate",
    "infer",
    "linear",
    "margin",
    "publish",
    "read",
    "release_table",
    "save",
    "structural_zeros",
    "tabulate",
    "total",
    "verify",
]

load_on_first_use(__name__)
