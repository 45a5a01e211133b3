"""Several tables of one population at once: which, how precisely, and what they say together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.tables.workload import Margin, Partition, Workload

__all__ = [
    "Margin",
    "Partition",
    "Workload",
]

_HOMES = {
    "Margin": "tables.workload",
    "Partition": "tables.workload",
    "Workload": "tables.workload",
}

load_on_first_use(__name__, _HOMES)
