"""Where a plan may reach when a team shares the desk: files of the desk's folder, and PostgreSQL.

The desk reads and writes files as the user who runs it. A plan that anybody of a team wrote must
not make it read others: their names, levels and digests would show on pages and in bundles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from congenial.data.source import POSTGRES_SCHEMES, SPARK_SCHEME
from congenial.errors import PlanError
from congenial.publication.plan import Plan
from congenial.publication.plan_files import named_files

PLACES = ("source", "ledger", "resume", "modelling")


def refuse_outside(plan: Plan, folder: Path) -> None:
    """PlanError when a plan names a file outside `folder`, or an address that is no database."""
    plain = plan.model_dump(mode="json", by_alias=True, fallback=str)
    for address in {*named_files(plain), *_addresses(plain)}:
        if address.startswith(POSTGRES_SCHEMES):
            continue
        bare = address.removeprefix("sqlite:///").removeprefix(SPARK_SCHEME)
        inside = (plan.folder / bare).resolve().is_relative_to(folder.resolve())
        if "://" in bare or not inside:
            raise PlanError(
                f"'{address}' is outside the folder of this desk.",
                remedy="Put the file into the folder; a desk for a team reads nothing else.",
            )


def _addresses(plan: Any) -> Iterator[str]:
    """Where the plan's records, ledger and private counts are."""
    if isinstance(plan, Mapping):
        for key, value in plan.items():
            if isinstance(value, str) and key in PLACES:
                yield value
            else:
                yield from _addresses(value)
    elif isinstance(plan, list | tuple):
        for value in plan:
            yield from _addresses(value)
