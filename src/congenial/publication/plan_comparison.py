"""Two plans side by side: exact figures, promise, budget, and errors table by table."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from congenial.kinds.kind import Document, Tell
from congenial.publication import workflow
from congenial.publication.check_document import of_check
from congenial.publication.plan import Plan
from congenial.report.page import counted


@dataclass(frozen=True)
class InBothPlans:
    """One thing of both plans: None where a plan has it not."""

    what: str
    first: str | None
    second: str | None

    @property
    def differs(self) -> bool:
        """Whether the plans differ in it."""
        return self.first != self.second


@dataclass(frozen=True)
class ErrorInBothPlans:
    """Expected standard deviation of one table's counts under both plans."""

    release: str
    what: str
    first: float | None
    second: float | None

    @property
    def ratio(self) -> float | None:
        """Second over first, where both are known and the first is not exact."""
        if self.first is None or self.second is None or not self.first:
            return None
        return self.second / self.first


@dataclass(frozen=True)
class PlanComparison:
    """Both plans, checked: what is published, promised, spent and to be expected."""

    figures: tuple[InBothPlans, ...]
    promises: tuple[InBothPlans, ...]
    budget: tuple[InBothPlans, ...]
    errors: tuple[ErrorInBothPlans, ...]

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = asdict(self)
        for row, one in zip(plain["errors"], self.errors, strict=True):
            row["ratio"] = one.ratio
        return plain


def compare_plans(first: Plan, second: Plan, progress: Tell = lambda _: None) -> PlanComparison:
    """Check both plans and set them side by side. Reads no data; spends nothing."""
    checked = (workflow.check(plan, again=True, progress=progress) for plan in (first, second))
    return compare_documents(*(of_check(one, None, (), progress) for one in checked))


def compare_documents(first: Document, second: Document) -> PlanComparison:
    """The same from two checks as plain data."""
    return PlanComparison(
        _beside(_figures(first), _figures(second)),
        _beside(_promises(first), _promises(second)),
        _beside(_budget(first), _budget(second)),
        _errors(first, second),
    )


def _beside(first: dict[str, str], second: dict[str, str]) -> tuple[InBothPlans, ...]:
    return tuple(
        InBothPlans(what, first.get(what), second.get(what))
        for what in dict.fromkeys((*first, *second))
    )


def _figures(document: Document) -> dict[str, str]:
    found = {}
    for one in document["figures"]:
        by = f"by {', '.join(one['by'])}" if one["by"] else "in all"
        bound = one["bound"] or ""
        found[one["label"]] = bound or f"{by}: {counted(one['figures'] or 1, 'figure')}"
    return found


def _promises(document: Document) -> dict[str, str]:
    named = {
        f"release '{one['name']}'": one["per_person"] or "nothing about individual people"
        for one in document["releases"]
    }
    apart = f"{document['adjacency']['records']}"
    return named | {"records that may differ": apart}


def _budget(document: Document) -> dict[str, str]:
    budget = document["budget"]
    return {name: str(budget[name]) for name in ("limit", "spent", "asked", "left")}


def _errors(first: Document, second: Document) -> tuple[ErrorInBothPlans, ...]:
    mine, theirs = (_deviations(one) for one in (first, second))
    return tuple(
        ErrorInBothPlans(*key, mine.get(key), theirs.get(key))
        for key in dict.fromkeys((*mine, *theirs))
    )


def _deviations(document: Document) -> dict[tuple[str, str], float]:
    return {
        (release["name"], row["what"]): row["standard_deviation"]
        for release in document["releases"]
        for row in release["accuracy"]
    }
