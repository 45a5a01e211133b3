"""What people read about a release of statistics: what wrong laws cost, for `check`, and the report
with values and intervals, the promise and what was tried.

Fitted laws are drawn as curves, which is no more than the promise publishes; how the sampled
statistics of the modelling data look is for the curator alone (`congenial audit --property`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any, Self

from congenial.mechanisms.distribution.assumptions import Diagnosis
from congenial.mechanisms.distribution.choose import Choice
from congenial.mechanisms.distribution.sampling_error import SamplingError, cost_words
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.mechanisms.released import FILE_LEVEL
from congenial.privacy.guarantee import Guarantee
from congenial.report.law_curves import LawCurve, law_curves
from congenial.report.page import PageColumn, PageTable, Picture, table
from congenial.report.release_page import promise_facts, release_page

_NUMBER = re.compile(r"\d[\d.]*(?:e[+-]?\d+)?")
CAPTION = (
    "The statistics under each scenario, as fitted and with the noise added. The closer the "
    "dashed curves of two scenarios are, the less the release reveals."
)
TRIED = (
    PageColumn("mechanism"),
    PageColumn("expected error", number=True),
    PageColumn("root mean square", number=True),
    PageColumn("directions with noise", number=True),
    PageColumn("why not"),
)


@dataclass(frozen=True)
class StatisticsReport:
    """What a report needs besides the draw, worked out before it.

    `tried` are the mechanisms that were calibrated, as the page shows them.
    """

    tried: tuple[tuple[str, ...], ...]
    diagnosis: str
    persons: Guarantee | None
    fit: str

    @classmethod
    def of(
        cls, choice: Choice, diagnosis: Diagnosis, persons: Guarantee | None, fit: str
    ) -> StatisticsReport:
        """From what was calibrated."""
        return cls(_tried(choice), diagnosis.words, persons, fit)

    def to_dict(self) -> dict[str, Any]:
        """What no bundle holds, as plain data for the head of the page."""
        return {
            "fit": self.fit,
            "diagnosis": self.diagnosis,
            "tried": [list(row) for row in self.tried],
        }

    @classmethod
    def from_dict(cls, basis: dict[str, Any], persons: Guarantee | None) -> Self:
        """Inverse of `to_dict`.

        Of the error of the fit, which stands beside the promise, only numbers are taken from the
        page.
        """
        tried = tuple(tuple(str(value) for value in row) for row in basis["tried"])
        diagnosis, fit = str(basis["diagnosis"]), str(basis["fit"])
        fit = fit if _in_our_words(fit) else ""
        return cls(tried, diagnosis, persons, fit)

    def render(self, release: StatisticsRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        origin = release.guarantee.adjacency.origin.words  # type: ignore[attr-defined]
        more = [("Error of the fit", self.fit)] if self.fit else []
        return release_page(
            "statistics.html",
            release,
            promise,
            basis=self.to_dict(),
            values=_values(release),
            promise_facts=promise_facts(release.guarantee, *more),
            persons=self.persons,
            origin=origin[0].upper() + origin[1:],
            laws=_laws(release),
            picture=_picture(release),
            diagnosis=self.diagnosis,
            several=len(self.tried) > 1,
            tried=table(TRIED, self.tried),
        )


def _in_our_words(fit: str) -> bool:
    """Whether a page states the error of the fit in our words, if at all; no bundle has its
    numbers.
    """
    forms = {
        _NUMBER.sub("#", SamplingError(parameter, bound, 0.95, "").beside(0.1) + cost)
        for cost in ("", cost_words(1.5))
        for parameter in ("epsilon", "delta")
        for bound in (0.01, 0.5, math.inf)  # kept, not kept, unknown
    }
    return _NUMBER.sub("#", fit) in forms | {""}


def _tried(choice: Choice) -> tuple[tuple[str, ...], ...]:
    """The mechanisms that were calibrated, as shown: no more digits than the page has."""
    rows = [
        (
            candidate["mechanism"],
            "-" if candidate["expected_error"] is None else float(candidate["expected_error"]),
            candidate.get("root_mean_square", "-"),
            candidate.get("directions", "-"),
            candidate.get("why_not", ""),
        )
        for candidate in choice.table()
    ]
    return table(TRIED, rows).rows


def _laws(release: StatisticsRelease) -> PageTable:
    pairs: Any = release.guarantee.adjacency
    rows = [
        [law.label, name, float(law.mean[at]), math.sqrt(float(law.covariance[at, at]))]
        for law in pairs.laws
        for at, name in enumerate(pairs.statistics)
    ]
    columns = [
        PageColumn("scenario"),
        PageColumn("statistic"),
        PageColumn("mean", number=True),
        PageColumn("standard deviation", number=True),
    ]
    return table(columns, rows)


def _values(release: StatisticsRelease) -> PageTable:
    rows = []
    for name in release.statistics:
        interval = release.interval(name, FILE_LEVEL)
        rows.append([name, interval.estimate, interval.low, interval.high])
    columns = [
        PageColumn("statistic"),
        PageColumn("released value", number=True),
        PageColumn(f"{FILE_LEVEL:.0%} from", number=True),
        PageColumn("to", number=True),
    ]
    words = "Intervals for the statistics of these data, from the known noise."
    return table(columns, rows, words)


def _picture(release: StatisticsRelease) -> Picture | None:
    """The laws of each statistic before and after noise; none where laws are not Gaussian."""
    pairs: Any = release.guarantee.adjacency
    if not pairs.gaussian:
        return None
    noise = release.noise.total_covariance.diagonal().tolist()
    panels = []
    for at, name in enumerate(pairs.statistics):
        own = [(law, float(law.covariance[at, at])) for law in pairs.laws]
        curves = [
            LawCurve(law.label, float(law.mean[at]), math.sqrt(v), math.sqrt(v + noise[at]))
            for law, v in own
        ]
        panels.append((name, curves))
    return Picture(law_curves(panels), CAPTION, CAPTION)
