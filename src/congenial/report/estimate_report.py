"""The report of an estimate: its numbers, the promise, and how to use it.

Everything on the page is released or public.
"""

from __future__ import annotations

from congenial._version import __version__
from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease
from congenial.report.page import PageColumn, page, section, table, text
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner, published_section
from congenial.report.usage_section import python_lines

CONTENTS = (
    ("exact", "Published exactly"),
    ("values", "The estimate"),
    ("promise", "The promise"),
    ("use", "How to use it"),
)


def render(release: EstimateRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    opening = (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">'
        f"{text(', '.join(release.spec.names))}, protected with "
        f"{text(release.guarantee.tradeoff.words)}.</p>\n<nav><ul>{links}</ul></nav></header>"
    )
    return page(
        f"{release.name}: a protected estimate",
        [
            banner(release),
            opening,
            published_section(release),
            _values(release),
            promise_section(release.guarantee, promise),
            _use(release),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


def _values(release: EstimateRelease) -> str:
    columns = [PageColumn("what"), PageColumn("released value", number=True)]
    rows = [list(row) for row in zip(release.spec.names, release.values, strict=True)]
    units = f"<p>The {text(release.spec.units)}.</p>" if release.spec.units else ""
    return section(
        "values",
        "The estimate",
        table(columns, rows, "A draw near the best value for these data, on a public grid."),
        units,
        "<p>It is about these data, and says nothing about a population they may be a sample "
        "of.</p>",
    )


def _use(release: EstimateRelease) -> str:
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(python_lines(release))}</code></pre>",
        "<p>Without Python: <code>estimate.csv</code> has one row per number; the law of the draw "
        "is in <code>release.json</code> under <code>description</code>.</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )
