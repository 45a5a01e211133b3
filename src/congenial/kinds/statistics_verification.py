"""The report of a release of statistics, written anew from its bundle."""

from __future__ import annotations

import math
import re
from html import unescape

from congenial.mechanisms.distribution.sampling_error import SamplingError
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.report.markup import Loose
from congenial.report.markup import same_page as same
from congenial.report.statistics_report import CAPTION, StatisticsReport

_FIT = re.compile(r'<th scope="row">Error of the fit</th><td>([^<]*)</td>')
_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")

# what follows where the noise allows for the error of the fit
COST_WORDS = (
    ' Allowing for it makes the expected error {:.3g} times what it is with confidence = "off".'
)


def report(release: StatisticsRelease, promise: str, fit: str = "") -> str:
    """The report without what was fitted and tried, which no bundle holds."""
    made = StatisticsReport(
        candidates=[], diagnosis="", persons=release.person_guarantee, fit=fit, picture=""
    )
    return made.render(release, promise)


def same_page(release: StatisticsRelease, promise: str, page: str) -> bool:
    """Whether a report is the one written anew, apart from what was fitted and tried."""
    found = _FIT.search(page)
    fit = "" if found is None else unescape(found[1])
    if fit and not _is_fit(fit):
        return False
    again = report(release, promise, fit)
    return same(page, again, Loose(("laws", "tried"), "laws", [CAPTION]))


def _is_fit(told: str) -> bool:
    """Whether the error of the fit is told in our words; its figures cannot be known."""
    forms = {
        _NUMBER.sub("#", SamplingError(parameter, bound, 0.95, "").beside(0.1))
        for parameter in ("epsilon", "delta")
        for bound in (0.01, 0.5, math.inf)  # kept, not kept, unknown
    }
    cost = _NUMBER.sub("#", COST_WORDS.format(1.0))
    return _NUMBER.sub("#", told).removesuffix(cost) in forms
