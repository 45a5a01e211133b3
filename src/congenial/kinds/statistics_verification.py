"""The report of a release of statistics, written anew from its bundle."""

from __future__ import annotations

import math
import re
from dataclasses import replace

from congenial.mechanisms.distribution.sampling_error import SamplingError, cost_words
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.report.render import basis_of, has_pictures
from congenial.report.statistics_report import StatisticsReport

_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")


def report(release: StatisticsRelease, promise: str) -> str:
    """The report without what was fitted and tried, which no bundle holds."""
    made = StatisticsReport(
        tried=(), diagnosis="", persons=release.person_guarantee, fit="", picture=None
    )
    return made.render(release, promise)


def expected_report(release: StatisticsRelease, promise: str, page: str) -> str:
    """The report with what a page says was fitted and tried, and its picture left empty.

    Of the error of the fit, which is told beside the promise, only figures are taken from the page.
    """
    drawn = has_pictures(page)
    made = StatisticsReport.from_dict(basis_of(page), release.person_guarantee, drawn)
    return replace(made, fit=made.fit if _is_fit(made.fit) else "").render(release, promise)


def _is_fit(told: str) -> bool:
    """Whether the error of the fit is told in our words, if at all; no bundle has its figures."""
    forms = {
        _NUMBER.sub("#", SamplingError(parameter, bound, 0.95, "").beside(0.1) + cost)
        for cost in ("", cost_words(1.5))
        for parameter in ("epsilon", "delta")
        for bound in (0.01, 0.5, math.inf)  # kept, not kept, unknown
    }
    return _NUMBER.sub("#", told) in forms | {""}
