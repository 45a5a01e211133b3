"""The report of a release given public information, written anew from its bundle."""

from __future__ import annotations

from dataclasses import replace

from congenial.errors import BundleError
from congenial.mechanisms.wasserstein.values_release import ValuesRelease
from congenial.privacy.guarantee import Guarantee
from congenial.report.given_public_report import CAPTIONS, GivenPublicReport
from congenial.report.markup import Loose
from congenial.report.markup import same_page as same


def report(release: ValuesRelease, promise: str) -> str:
    """The report without the earlier counts, which no bundle holds."""
    persons = persons_of(release)
    if persons is None:
        raise BundleError(
            f"release '{release.name}' promises nothing about persons, and no plan makes such a "
            "release.",
            remedy="Write its report from Python.",
        )
    return GivenPublicReport(persons).render(release, promise)


def same_page(release: ValuesRelease, promise: str, page: str) -> bool:
    """Whether a report is the one written anew, apart from what rests on earlier counts."""
    if persons_of(release) is None:
        return False  # no plan makes such a release
    leans = release.base.kind == "prior-congenial"
    captions = CAPTIONS if leans else CAPTIONS[:1]
    loose = Loose(("counts", "law") if leans else (), "counts", captions)
    return same(page, report(release, promise), loose)


def persons_of(release: ValuesRelease) -> Guarantee | None:
    """What the report says about persons besides the promise of the release.

    What a plan assumes about the data is assumed in both.
    """
    persons = release.persons
    if persons is None:
        return None
    known = {line for made in release.rebuilt() for line in made.guarantee.assumptions}
    more = tuple(line for line in release.guarantee.assumptions if line not in known)
    return replace(persons, assumptions=(*persons.assumptions, *more))
