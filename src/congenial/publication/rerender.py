"""The words of a bundle written again, for `verify`: README, citation, report with its pictures.

They are written from public parts, so they must come out the same, and a sentence that somebody
changed or added is noticed. Not compared are figures that no bundle holds (the earlier counts
behind a prior; what was fitted to modelling data, and the mechanisms that were tried): they are
taken from the head of the page, and the sentences around them are written again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from congenial.errors import CongenialError
from congenial.kinds.kind import Check
from congenial.kinds.registry import by_name
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle import read_text
from congenial.publication.bundle_texts import citation, readme
from congenial.report.render import differences, stated


def nothing_else(folder: Path, release: Any, promise: str) -> list[Check]:
    """For each text of the bundle whether it is what would be written anew."""
    texts = {"README.txt": readme(release, promise), "CITATION.cff": citation(release)}
    checks = [
        Check(f"{name} contains no unexpected text", read_text(folder / name) == again)
        for name, again in texts.items()
    ]
    return [*checks, _report_check(release, promise, read_text(folder / "report.html"))]


def _report_check(release: Any, promise: str, page: str) -> Check:
    """The report, and where it differs."""
    what = "report.html contains no unexpected text or pictures"
    try:
        again = by_name(release.kind).expected_report(release, promise, page)
    except (CongenialError, ArithmeticError, KeyError, TypeError, ValueError):
        return Check(what, False, "what it says it rests on makes no sense")
    found = differences(page, again)
    return Check(what, not found, f"it differs in: {', '.join(found)}" if found else "")


def report(release: Any, promise: str) -> str:
    """The report of a release of any kind, from what its bundle holds."""
    return by_name(release.kind).report(release, promise)


def states(release: Any, promise: str, page: str) -> bool:
    """Whether a report has the promise, and the one about persons where that is another."""
    persons = further_promise_of(release)
    told = [promise] if persons is None else [promise, persons.explain()]
    return all(stated(one) in page for one in told)


def further_promise_of(release: Any) -> Guarantee | None:
    """What the report of a release says about persons besides its own promise."""
    return by_name(release.kind).further_promise(release)
