"""The words of a bundle written anew, for `verify`: README, citation, report.

They are written from public parts, so they must come out the same, and a sentence that somebody
changed or added is noticed. Not compared: what pictures show, and the wording of passages that rest
on something no bundle holds (the earlier counts behind a prior; what was fitted to modelling data,
and the mechanisms that were tried); these keep their form (`markup`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

from congenial._version import __version__
from congenial.privacy.guarantee import Guarantee
from congenial.publication.bundle import citation, read_text, readme
from congenial.publication.markup import Loose, same_page
from congenial.report.page import text

_FIT = re.compile(r'<th scope="row">Error of the fit</th><td>([^<]*)</td>')
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
_IMAGE = re.compile(r'<img src="data:image/svg\+xml;base64,[A-Za-z0-9+/=]*"')


def comparable(index: Mapping[str, Any]) -> bool:
    """Whether this software would write the same words."""
    return bool(index.get("software") == f"congenial {__version__}")


def same_words(folder: Path, release: Any, promise: str) -> dict[str, bool]:
    """For each text of the bundle whether it is what would be written anew."""
    page = read_text(folder / "report.html")
    return {
        "README.txt": read_text(folder / "README.txt") == readme(release, promise),
        "CITATION.cff": read_text(folder / "CITATION.cff") == citation(release),
        "report.html": _PAGES[release.kind](release, promise, page),
    }


def report(release: Any, promise: str) -> str:
    """The report of a release of any kind, from what its bundle holds."""
    from congenial.report import given_public_report, statistics_report, synthetic_report
    from congenial.report import table_report as tables

    if release.kind == "table":
        return tables.render(release, promise)
    if release.kind == "synthetic records":
        return synthetic_report.render(release, promise)
    persons = persons_of(release)
    if release.kind == "values" and persons is not None:
        return given_public_report.GivenPublicReport(persons).render(release, promise)
    prepared = statistics_report.StatisticsReport([], "", persons, fit="", picture="")
    return prepared.render(release, promise)


def states(release: Any, promise: str, page: str) -> bool:
    """Whether a report has the promise, and the one about persons where that is another."""
    told = [promise]
    persons = persons_of(release)
    if persons is not None:
        told.append(persons.explain())
    return all(text(one) in page for one in told)


def persons_of(release: Any) -> Guarantee | None:
    """What the report of a release says about persons besides its own promise.

    What a plan assumes about the data is assumed in both.
    """
    own: Guarantee | None = getattr(release, "person_guarantee", None)
    persons: Guarantee | None = getattr(release, "persons", None)
    if persons is None:
        return own
    known = {line for made in release.rebuilt() for line in made.guarantee.assumptions}
    more = tuple(line for line in release.guarantee.assumptions if line not in known)
    return replace(persons, assumptions=(*persons.assumptions, *more))


# ---- reports by kind -----------------------------------------------------------------------------


def _table(release: Any, promise: str, page: str) -> bool:
    from congenial.report.pictures import Blank
    from congenial.report.table_report import render
    from congenial.report.values_section import HINT

    again = render(release, promise, Blank(HINT not in page))
    return _IMAGE.sub('<img src=""', page) == again


def _synthetic(release: Any, promise: str, page: str) -> bool:
    from congenial.report.synthetic_report import render

    return page == render(release, promise)


def _values(release: Any, promise: str, page: str) -> bool:
    from congenial.report.given_public_report import CAPTIONS, GivenPublicReport

    persons = persons_of(release)
    if persons is None:
        return False  # no plan makes such a release
    again = GivenPublicReport(persons).render(release, promise)
    leans = release.base.kind == "prior-congenial"
    captions = CAPTIONS if leans else CAPTIONS[:1]
    return same_page(page, again, Loose(("counts", "law") if leans else (), "counts", captions))


def _statistics(release: Any, promise: str, page: str) -> bool:
    from congenial.report.statistics_report import CAPTION, StatisticsReport

    found = _FIT.search(page)
    fit = "" if found is None else unescape(found[1])
    if fit and not _is_fit(fit):
        return False
    made = StatisticsReport(
        candidates=[], diagnosis="", persons=persons_of(release), fit=fit, picture=""
    )
    again = made.render(release, promise)
    return same_page(page, again, Loose(("laws", "tried"), "laws", [CAPTION]))


def _is_fit(told: str) -> bool:
    """Whether the error of the fit is told in our words; its figures cannot be known."""
    from congenial.mechanisms.distribution.sampling_error import SamplingError, cost_words

    forms = {
        _NUMBER.sub("#", SamplingError(parameter, bound, 0.95, "").beside(0.1) + cost)
        for cost in ("", cost_words(1.5))
        for parameter in ("epsilon", "delta")
        for bound in (0.01, 0.5, math.inf)  # kept, not kept, unknown
    }
    return _NUMBER.sub("#", told) in forms


_PAGES = {
    "table": _table,
    "synthetic records": _synthetic,
    "values": _values,
    "statistics": _statistics,
}
