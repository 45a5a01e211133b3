"""The words of a bundle written anew, for `verify`: README, citation, report.

They are written from public parts, so they must come out the same, and a sentence that somebody
changed or added is noticed. Not compared: what pictures show, and the wording of passages that rest
on something no bundle holds (the earlier counts behind a prior; what was fitted to modelling data,
and the mechanisms that were tried); these keep their form (`report.markup`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from congenial._version import __version__
from congenial.kinds.registry import by_name
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle import citation, read_text, readme
from congenial.report.page import text


def comparable(index: Mapping[str, Any]) -> bool:
    """Whether this software would write the same words."""
    return bool(index.get("software") == f"congenial {__version__}")


def same_words(folder: Path, release: Any, promise: str) -> dict[str, bool]:
    """For each text of the bundle whether it is what would be written anew."""
    page = read_text(folder / "report.html")
    return {
        "README.txt": read_text(folder / "README.txt") == readme(release, promise),
        "CITATION.cff": read_text(folder / "CITATION.cff") == citation(release),
        "report.html": by_name(release.kind).same_page(release, promise, page),
    }


def report(release: Any, promise: str) -> str:
    """The report of a release of any kind, from what its bundle holds."""
    return by_name(release.kind).report(release, promise)


def states(release: Any, promise: str, page: str) -> bool:
    """Whether a report has the promise, and the one about persons where that is another."""
    told = [promise]
    persons = persons_of(release)
    if persons is not None:
        told.append(persons.explain())
    return all(text(one) in page for one in told)


def persons_of(release: Any) -> Guarantee | None:
    """What the report of a release says about persons besides its own promise."""
    return by_name(release.kind).persons(release)
