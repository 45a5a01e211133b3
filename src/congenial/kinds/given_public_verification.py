"""The report of a release given public information, written anew from its bundle."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from congenial.errors import BundleError
from congenial.mechanisms.record_release import RecordRelease
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.privacy.guarantee import Guarantee
from congenial.report.given_public_report import Earlier, GivenPublicReport
from congenial.report.pictures import Blank
from congenial.report.render import basis_of, has_pictures


def report(release: ValuesRelease, promise: str) -> str:
    """The report without the earlier counts, which no bundle holds."""
    return GivenPublicReport(_persons(release)).render(release, promise)


def expected_report(release: ValuesRelease, promise: str, page: str) -> str:
    """The report with the earlier counts that a page has, and its pictures left empty."""
    told: Any = basis_of(page) if release.base.kind == "prior-congenial" else None
    earlier = None if told is None else Earlier.from_dict(told)
    made = GivenPublicReport(_persons(release), earlier)
    return made.render(release, promise, Blank(has_pictures(page)))


def _persons(release: ValuesRelease) -> Guarantee:
    persons = further_promise(release)
    if persons is None:
        raise BundleError(
            f"release '{release.name}' promises nothing about persons, and no plan makes such a "
            "release.",
            remedy="Write its report from Python.",
        )
    return persons


def further_promise(release: RecordRelease) -> Guarantee | None:
    """What the report says about persons besides the promise of the release.

    What a plan assumes about the data is assumed in both.
    """
    persons = release.persons
    if persons is None:
        return None
    known = {line for made in release.rebuilt() for line in made.guarantee.assumptions}
    more = tuple(line for line in release.guarantee.assumptions if line not in known)
    return replace(persons, assumptions=(*persons.assumptions, *more))
