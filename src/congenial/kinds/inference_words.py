"""What `congenial check` says about inference from a bundle to come."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.inference.feasibility import Outlook
    from congenial.kinds.kind import Document


def examine(found: Outlook, minutes: float | None = None) -> Document:
    """Whether `congenial infer` will work, as plain data."""
    return {
        "works": found.works,
        "slow": found.slow,
        "minutes": None if minutes is None else float(f"{minutes:.2g}"),
        "why": found.why or None,
        "remedy": found.remedy or None,
    }


def words(one: Document) -> str:
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
