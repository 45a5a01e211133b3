"""The report of a test of an odds ratio: what was asked, what was found, the promise, the use."""

from __future__ import annotations

from typing import Any

from congenial.inference.odds_ratio_question import shown
from congenial.inference.odds_ratio_release import OddsRatioRelease, compared
from congenial.report.page import PageColumn, PageTable, table
from congenial.report.release_page import Facts, release_page


def render(release: OddsRatioRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    return release_page(
        "two_by_two.html",
        release,
        promise,
        asked=compared(release.schema, release.description.table),
        found=_found(release),
        power=_power(release),
    )


def _found(release: OddsRatioRelease) -> Facts:
    asked, found = release.question, release.found
    verdict = "rejected" if found["rejected"] else "not rejected"
    test = release.test
    low, high = (_end(one) for one in found["interval"])
    return [
        ("Hypothesis", f"{asked.hypothesis}: {verdict} at {shown(asked.alpha)}"),
        ("P-value", f"{found['p_value']:g} ({asked.alternative})"),
        (f"Interval at {shown(asked.level)}", f"{low} to {high}"),
        ("Noisy count of the first cell", f"{release.count:,}"),
        ("Uniform number added, less one half", repr(release.uniform)),
        ("Published margins", f"{_two(test.rows)}; {_two(test.columns)}"),
    ]


def _end(value: Any) -> str:
    return "infinity" if value is None else f"{value:g}"


def _two(values: tuple[int, int]) -> str:
    return f"{values[0]:,} and {values[1]:,}"


def _power(release: OddsRatioRelease) -> PageTable:
    columns = [
        PageColumn("if the odds ratio is", number=True),
        PageColumn("probability of rejecting", number=True),
    ]
    rows = [[f"{one['odds_ratio']:g}", f"{one['power']:.3f}"] for one in release.found["power"]]
    return table(columns, rows)
