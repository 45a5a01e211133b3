"""What a kind of release is given, and what it hands back when it is ready to be drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.data.unit import Unit
from congenial.figures.invariants import Invariants
from congenial.pairs.a_star import Reading
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.description import AnyDescription
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.data.engines.parquet_count import Progress
    from congenial.ledger.ledger import Ledger


class Setting(Protocol):
    """What a kind of release may know of the plan around its section."""

    @property
    def folder(self) -> Path:
        """Where relative paths of the plan start."""

    @property
    def schema(self) -> Schema:
        """What a record is."""

    @property
    def unit(self) -> Unit:
        """Who is one person in the data."""

    @property
    def source(self) -> str | Path:
        """Where the confidential records are."""

    @property
    def resume(self) -> Path | None:
        """A private folder for the counts of finished files."""

    def place(self, key: str, address: str) -> str | Path:
        """Where the records are that `key` of the plan names."""

    def adjacency(
        self, mandates: Invariants | None = None, reading: Reading = "robust"
    ) -> Adjacency:
        """Which datasets must look alike, given published values when there are any."""


@dataclass(frozen=True)
class Offer:
    """A release that is ready: its law, its promise, how it is drawn, and its report.

    `holds` says, once the share of the budget is reserved, whether what it rests on still does.
    """

    name: str
    description: AnyDescription
    guarantee: Guarantee
    draw: Callable[[], Any]
    report: Callable[[Any, str], str]
    holds: Callable[[Ledger], bool] = lambda _: True


def unit_words(plan: Setting) -> str:
    """What the plan assumes about who is one person."""
    if plan.unit.column is None:
        return "each row of the data is one person (no unit column was given to check it)"
    if plan.unit.max_rows is not None:
        return f"a person has at most {plan.unit.max_rows} rows (checked in '{plan.unit.column}')"
    return f"each person is one row (checked in '{plan.unit.column}')"


def tabulate(
    plan: Setting, data: Microdata, names: Sequence[str], progress: Callable[[str], Any]
) -> Table:
    """Count, telling the curator how far it has come."""

    def tell(now: Progress) -> None:
        speed = now.rows_per_second / 1e6
        progress(f"{now.rows:,} of {now.total:,} rows, {speed:.1f} million a second")

    return data.tabulate(names, progress=tell, resume=plan.resume)
