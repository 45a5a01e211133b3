"""The report of a release that is no single table: what all of them show, and what one adds."""

from __future__ import annotations

from typing import Any

from congenial.mechanisms.released import Released
from congenial.privacy.guarantee import BASIS_WORDS, Guarantee
from congenial.report.exact_section import exact_section
from congenial.report.render import page
from congenial.report.usage_section import python_lines

Facts = list[tuple[str, object]]  # names and what they are


def release_page(template: str, release: Released, promise: str, **shown: Any) -> str:
    """A report as one HTML document; `promise` is the paragraph printed at release time.

    It shows exact figures, the promise and how to begin; `shown` adds to these or replaces them.
    """
    common = {
        "release": release,
        "promise": promise,
        "exact": exact_section(release),
        "promise_facts": promise_facts(release.guarantee),
        "code": python_lines(release),
    }
    return page(template, **common | shown)


def promise_facts(guarantee: Guarantee, *more: tuple[str, object]) -> Facts:
    """The building blocks of a promise; `more` are facts of one kind of release."""
    return [
        (
            "The protection compares",
            f"{guarantee.adjacency.words} ({guarantee.adjacency.metric})",
        ),
        ("How alike", guarantee.likelihood_clause()),
        *more,
        ("Basis", f"{guarantee.basis}: {BASIS_WORDS[guarantee.basis]}"),
        ("Source", guarantee.citation or "-"),
    ]
