"""What `congenial check --want` says: the promise that a wished accuracy needs."""

from __future__ import annotations

from congenial.kinds.kind import Document, Screen


def show_want(one: Document, screen: Screen, want: str | None) -> None:
    """What a wished accuracy needs, where one was asked for."""
    from congenial.privacy.numbers import number

    if want is not None:
        needs = "this table does not show it"
        if one["unanswered"]:
            needs = f"no answer for '{one['name']}': {one['unanswered'].rstrip('.')}"
        for parameter, value in (one["wanted"] or {}).items():
            exact = "published exactly"
            needs = f"needs {parameter} = {number(value)} per person" if value else exact
        screen.paragraph(f"{want}: {needs}.", style="bold")
