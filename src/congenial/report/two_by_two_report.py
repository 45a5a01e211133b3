"""The report of a test of an odds ratio: what was asked, what was found, the promise, the use."""

from __future__ import annotations

from typing import Any

from congenial._version import __version__
from congenial.inference.odds_ratio_question import shown
from congenial.inference.odds_ratio_release import OddsRatioRelease, compared
from congenial.report.page import PageColumn, facts, page, section, table, text
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner
from congenial.report.usage_section import python_lines


def render(release: OddsRatioRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    return page(
        f"{release.name}: private test of an odds ratio",
        [
            banner(release),
            _opening(release),
            _found(release),
            _power(release),
            promise_section(release.guarantee, promise),
            _use(release),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


def _opening(release: OddsRatioRelease) -> str:
    told = compared(release.schema, release.description.table)
    return (
        f"<header><h1>{text(release.name)}</h1>\n<p class=lead>A private test of an odds ratio: "
        f"{text(told)}.</p></header>"
    )


def _found(release: OddsRatioRelease) -> str:
    asked, found = release.question, release.found
    verdict = "rejected" if found["rejected"] else "not rejected"
    test = release.test
    low, high = (_end(one) for one in found["interval"])
    rows: list[tuple[str, object]] = [
        ("Hypothesis", f"{asked.hypothesis}: {verdict} at {shown(asked.alpha)}"),
        ("P-value", f"{found['p_value']:g} ({asked.alternative})"),
        (f"Interval at {shown(asked.level)}", f"{low} to {high}"),
        ("Noisy count of the first cell", f"{release.count:,}"),
        ("Uniform number added, less one half", repr(release.uniform)),
        ("Published margins", f"{_two(test.rows)}; {_two(test.columns)}"),
    ]
    return section(
        "found",
        "What was found",
        facts(rows),
        "<p>The p-value accounts for the noise: where the hypothesis holds it is at most x with "
        "probability at most x. The uniform number was drawn after the noise and says nothing "
        "about anybody; it makes the test the most powerful among the unbiased tests with this "
        "promise. An interval whose ends are equal means that noise took the count far outside "
        "what the margins allow.</p>",
    )


def _end(value: Any) -> str:
    return "infinity" if value is None else f"{value:g}"


def _two(values: tuple[int, int]) -> str:
    return f"{values[0]:,} and {values[1]:,}"


def _power(release: OddsRatioRelease) -> str:
    columns = [
        PageColumn("if the odds ratio is", number=True),
        PageColumn("probability of rejecting", number=True),
    ]
    rows = [[f"{one['odds_ratio']:g}", f"{one['power']:.3f}"] for one in release.found["power"]]
    return section("power", "What it can detect", table(columns, rows))


def _use(release: OddsRatioRelease) -> str:
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(python_lines(release))}</code></pre>",
        "<p>Other null values, sides and levels spend nothing: "
        "<code>release.p_value(2, 'less')</code>. Without Python: <code>test.csv</code> and "
        "<code>test.json</code> hold what is on this page.</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )
