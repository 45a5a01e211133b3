"""Whether `congenial infer` will work on a release, as several kinds say it alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from congenial.inference.feasibility import Outlook
    from congenial.kinds.kind import Document


def examine_inference(found: Outlook, minutes: float | None = None) -> Document:
    """Whether `congenial infer` will work, as plain data."""
    return {
        "works": found.works,
        "slow": found.slow,
        "minutes": None if minutes is None else float(f"{minutes:.2g}"),
        "why": found.why or None,
        "remedy": found.remedy or None,
    }
