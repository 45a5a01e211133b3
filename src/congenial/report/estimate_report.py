"""The report of an estimate: its numbers, the promise, and how to use it.

Everything on the page is released or public.
"""

from __future__ import annotations

from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease
from congenial.privacy.semantics import belief_words
from congenial.report.exact_section import exact_section
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.promise_section import promise_facts
from congenial.report.render import page
from congenial.report.usage_section import python_lines


def render(release: EstimateRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    return page(
        "estimate.html",
        release=release,
        promise=promise,
        exact=exact_section(release),
        values=_values(release),
        belief=belief_words(release.guarantee),
        promise_facts=promise_facts(release.guarantee),
        code=python_lines(release),
    )


def _values(release: EstimateRelease) -> PageTable:
    columns = [PageColumn("what"), PageColumn("released value", number=True)]
    rows = [list(row) for row in zip(release.spec.names, release.values, strict=True)]
    return table(columns, rows, "A draw near the best value for these data, on a public grid.")
