"""The report of an estimate: its numbers, the promise, and how to use it.

Everything on the page is released or public.
"""

from __future__ import annotations

from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease
from congenial.privacy.guarantee import Guarantee
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.release_page import release_page


def render(release: EstimateRelease, promise: str, persons: Guarantee | None = None) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time.

    `persons`: what is promised without any assumption about beliefs, where `promise` leans on some.
    """
    return release_page(
        "convex_estimate.html", release, promise, values=_values(release), persons=persons
    )


def _values(release: EstimateRelease) -> PageTable:
    columns = [PageColumn("what"), PageColumn("released value", number=True)]
    rows = [list(row) for row in zip(release.spec.names, release.values, strict=True)]
    return table(columns, rows, "A draw near the best value for these data, on a public grid.")
