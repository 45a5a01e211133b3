"""The section of a report that states a promise: the same for every kind of release."""

from __future__ import annotations

from collections.abc import Sequence

from congenial.privacy.guarantee import BASIS_WORDS, Guarantee
from congenial.report.page import bullets, facts, section, text


def promise_section(
    guarantee: Guarantee,
    promise: str,
    *rest: str,
    lead: str = "",
    rows: Sequence[tuple[str, object]] = (),
) -> str:
    """`promise` as printed at release time, its building blocks, what is assumed and left open.

    `lead` follows the paragraph, `rows` are facts of this kind of release, `rest` comes last.
    """
    blocks: list[tuple[str, object]] = [
        ("Must look alike", f"{guarantee.adjacency.words} ({guarantee.adjacency.metric})"),
        ("How alike", guarantee.likelihood_clause()),
        *rows,
        ("Basis", f"{guarantee.basis}: {BASIS_WORDS[guarantee.basis]}"),
        ("Source", guarantee.citation or "-"),
    ]
    return section(
        "promise",
        "The promise",
        f"<blockquote>{text(promise)}</blockquote>",
        lead,
        facts(blocks),
        "<h3>Assumed</h3>",
        bullets(guarantee.assumptions),
        "<h3>Not covered</h3>",
        bullets(guarantee.left_open),
        *rest,
    )
