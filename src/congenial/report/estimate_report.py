"""The report of an estimate: its numbers, the promise, and how to use it.

Everything on the page is released or public.
"""

from __future__ import annotations

from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease
from congenial.report.exact_section import exact_section
from congenial.report.page import PageColumn, table
from congenial.report.promise_section import promise_facts
from congenial.report.render import page
from congenial.report.usage_section import python_lines


def render(release: EstimateRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    columns = [PageColumn("what"), PageColumn("released value", number=True)]
    rows = zip(release.spec.names, release.values, strict=True)
    caption = "A draw near the best value for these data, on a public grid."
    return page(
        "estimate.html",
        release=release,
        promise=promise,
        exact=exact_section(release),
        values=table(columns, rows, caption),
        belief="",
        promise_facts=promise_facts(release.guarantee),
        code=python_lines(release),
    )
