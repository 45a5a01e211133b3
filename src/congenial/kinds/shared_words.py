"""What `congenial check` says of several kinds alike: the promise, whether inference will work, and
what a wished accuracy needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS
from congenial.privacy.numbers import number

if TYPE_CHECKING:
    from congenial.inference.feasibility import Outlook
    from congenial.kinds.kind import Document, Screen


def show_promise(one: Document, screen: Screen) -> None:
    """The promise and what it means for the beliefs it names, with space around them."""
    named = (one["belief"], "") if "belief" in one else ()
    for text in ("", one["promise"], "", *named):
        screen.paragraph(text)


def examine_inference(found: Outlook, minutes: float | None = None) -> Document:
    """Whether `congenial infer` will work, as plain data."""
    return {
        "works": found.works,
        "slow": found.slow,
        "minutes": None if minutes is None else float(f"{minutes:.2g}"),
        "why": found.why or None,
        "remedy": found.remedy or None,
    }


def inference_words(one: Document) -> str:
    """The same for people."""
    if not one["works"]:
        return f"congenial infer will not work: {one['why']}. {one['remedy']}"
    if not one["slow"]:
        about = "" if one["minutes"] is None else f", in about {duration(one['minutes'])}"
        return f"congenial infer works on it{about or ', quickly'}"
    about = "" if one["minutes"] is None else f", about {duration(one['minutes'])} or more"
    return f"congenial infer works on it, slowly{about}: {one['why']}"


def duration(minutes: float) -> str:
    """Seconds, minutes or hours, none of them to the last digit."""
    if minutes < 0.9:
        return f"{max(60 * minutes, 1):.0f} seconds"
    if minutes < 1.5:
        return "a minute"
    return f"{minutes:.0f} minutes" if minutes < 100 else f"{minutes / 60:.0f} hours"


def per_unit(one: Document) -> str:
    """Whom a promise is for: a person, or a unit that owns several rows."""
    metric = one["guarantee"]["adjacency"]["metric"]
    return "Per unit" if metric in (ROWS_OF_ONE_UNIT, UNITS_WITH_ROWS) else "Per person"


def show_want(one: Document, screen: Screen, want: str | None) -> None:
    """What a wished accuracy needs, where one was asked for."""
    if want is not None:
        needs = "this table does not show it"
        if one["unanswered"]:
            needs = f"no answer for '{one['name']}': {one['unanswered'].rstrip('.')}"
        for parameter, value in (one["wanted"] or {}).items():
            exact = "published exactly"
            needs = f"needs {parameter} = {number(value)} {per_unit(one).lower()}"
            needs = needs if value else exact
        screen.paragraph(f"{want}: {needs}.", style="bold")
