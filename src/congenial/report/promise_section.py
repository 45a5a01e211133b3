"""The section of a report that states a promise: the same for every kind that is no table."""

from __future__ import annotations

from congenial.privacy.guarantee import BASIS_WORDS, Guarantee

Facts = list[tuple[str, object]]  # names and what they are


def promise_facts(guarantee: Guarantee, *more: tuple[str, object]) -> Facts:
    """The building blocks of a promise; `more` are facts of one kind of release."""
    return [
        ("Must look alike", f"{guarantee.adjacency.words} ({guarantee.adjacency.metric})"),
        ("How alike", guarantee.likelihood_clause()),
        *more,
        ("Basis", f"{guarantee.basis}: {BASIS_WORDS[guarantee.basis]}"),
        ("Source", guarantee.citation or "-"),
    ]
