"""What both kinds that take `scenarios` share: a table of counts and an estimate."""

from __future__ import annotations

from dataclasses import replace

from congenial.errors import GuaranteeError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.mechanisms.record_release import RecordRelease
from congenial.privacy.guarantee import Guarantee


def refuse_other_number(figures: Figures, people: int) -> None:
    """Refuse a number of people other than the published one, once it is published."""
    if figures.values is None or not figures.equalities:
        return
    known = support(figures, ()).totals
    if known is not None and len(known) == 1 and int(known[0]) != people:
        raise GuaranteeError(
            f"scenarios are about {people} people, but {int(known[0])} are published.",
            remedy="Give the published number.",
        )


def further_promise(release: RecordRelease) -> Guarantee | None:
    """What the report says about persons besides the promise of the release.

    What a plan assumes about the data is assumed in both.
    """
    persons = release.persons
    if persons is None:
        return None
    own = {line for made in release.rebuilt() for line in made.guarantee.assumptions}
    of_the_plan = tuple(line for line in release.guarantee.assumptions if line not in own)
    return replace(persons, assumptions=(*persons.assumptions, *of_the_plan))
