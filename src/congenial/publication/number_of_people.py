"""The number of people, n: an exact figure of every promise that replaces records.

Such a promise compares datasets of the same size, so it leaves n public whether anybody states it
or not. Stated as a figure, noise is drawn given n, and every table is better at the same price: all
differences of look-alikes sum to zero already, so that neither a* nor a sensitivity changes (held
by tests/privacy/test_number_of_people.py, over whole databases). Two cells at epsilon = 1 have a
standard deviation of 1.36 in place of 2.80.

It is left out where a release could not keep it or would lose by it: see `_left_out_by`.
"""

from __future__ import annotations

from collections.abc import Sequence

from congenial.errors import CongenialError
from congenial.figures.figures import Figures
from congenial.figures.statements import total
from congenial.kinds.plan_sections import NamedSection
from congenial.kinds.planned_data import PlannedData
from congenial.kinds.registry import of_section

PEOPLE = total().named("Number of people", "public under such a promise")
COUNTS_EVERYBODY = ("tables", "synthesise")  # kinds that count every record once


def figures_beside(plan: PlannedData, sections: Sequence[NamedSection], known: Figures) -> Figures:
    """What a plan publishes beside what is published: its own figures and, where neither those nor
    these tell it, the number of people.
    """
    stated = plan.stated
    if plan.data.max_rows is not None or known.join(stated).tells_people:
        return stated
    if not any(_counts_everybody(section) for section in sections):
        return stated
    with_people = Figures(plan.schema, (*stated.statements, PEOPLE))
    before, after = known.join(stated), known.join(with_people)
    if any(_left_out_by(plan, section, before, after) for section in sections):
        return stated
    return with_people


def _counts_everybody(section: NamedSection) -> bool:
    """Whether a release is better with n as a figure: it counts every record once, or is their
    mean.
    """
    return of_section(section).key in COUNTS_EVERYBODY or getattr(
        section, "counts_everybody", False
    )


def _left_out_by(plan: PlannedData, section: NamedSection, before: Figures, after: Figures) -> bool:
    """Whether a release speaks against stating n: its promise takes no figures into account, parts
    of a nation are drawn apart, another number of records is asked for, a named mechanism keeps no
    figures, or counts conditioned on signs would need more noise (a known sum makes signs dearer).
    """
    kind = of_section(section)
    if section.alone or not kind.given_figures or getattr(section, "parts", None):
        return True
    if kind.key == "synthesise":
        return getattr(section, "records", None) is not None
    signs = getattr(section, "nonnegative", "no") == "condition"
    if section.mechanism == "auto" and not signs:
        return False
    try:
        without, with_figures = (
            kind.build(plan, section, figures).description for figures in (before, after)
        )
    except CongenialError:
        return True  # whoever builds the release says what is wrong
    return signs and bool(with_figures.measured[0].rate < without.measured[0].rate)
