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

import numpy as np

from congenial.mechanisms.distribution.assumptions import Diagnosis
from congenial.mechanisms.distribution.choose import Choice
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.sampling_error import SamplingError, cost_words
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.privacy.guarantee import Guarantee
from congenial.report import pictures
from congenial.report.page import PageColumn, PageTable, Picture, table
from congenial.report.pictures import Pen
from congenial.report.release_page import promise_facts
from congenial.report.render import page
from congenial.report.usage_section import python_lines

LEVEL = 0.90
_POINTS = 81
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

    `tried` are the mechanisms that were calibrated, as the page shows them; `picture` is the
    address of the picture, or None.
    """

    tried: tuple[tuple[str, ...], ...]
    diagnosis: str
    persons: Guarantee | None
    fit: str
    picture: str | None

    @classmethod
    def of(
        cls,
        choice: Choice,
        diagnosis: Diagnosis,
        persons: Guarantee | None,
        fit: str,
        pen: Pen = pictures,
    ) -> StatisticsReport:
        """From what was calibrated."""
        mechanism = choice.mechanism
        pictured = pen.available() and mechanism.pairs.gaussian
        picture = pen.draw(laws_chart, mechanism) if pictured else None
        return cls(_tried(choice), diagnosis.words, persons, fit, picture)

    def to_dict(self) -> dict[str, Any]:
        """What no bundle holds, as plain data for the head of the page."""
        return {
            "fit": self.fit,
            "diagnosis": self.diagnosis,
            "tried": [list(row) for row in self.tried],
        }

    @classmethod
    def from_dict(cls, basis: dict[str, Any], persons: Guarantee | None, pictured: bool) -> Self:
        """Inverse of `to_dict`; the picture, if the page has one, is left empty.

        Of the error of the fit, which stands beside the promise, only numbers are taken from the
        page.
        """
        tried = tuple(tuple(str(value) for value in row) for row in basis["tried"])
        diagnosis, fit = str(basis["diagnosis"]), str(basis["fit"])
        fit = fit if _in_our_words(fit) else ""
        return cls(tried, diagnosis, persons, fit, "" if pictured else None)

    def render(self, release: StatisticsRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        origin = release.guarantee.adjacency.origin.words  # type: ignore[attr-defined]
        more = [("Error of the fit", self.fit)] if self.fit else []
        return page(
            "statistics.html",
            basis=self.to_dict(),
            release=release,
            promise=promise,
            values=_values(release),
            promise_facts=promise_facts(release.guarantee, *more),
            persons=self.persons,
            origin=origin[0].upper() + origin[1:],
            laws=_laws(release),
            picture=None if self.picture is None else Picture(self.picture, CAPTION, CAPTION),
            diagnosis=self.diagnosis,
            several=len(self.tried) > 1,
            tried=table(TRIED, self.tried),
            code=python_lines(release),
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
        interval = release.interval(name, LEVEL)
        rows.append([name, interval.estimate, interval.low, interval.high])
    columns = [
        PageColumn("statistic"),
        PageColumn("released value", number=True),
        PageColumn(f"{LEVEL:.0%} from", number=True),
        PageColumn("to", number=True),
    ]
    words = "Intervals for the statistics of these data, from the known noise."
    return table(columns, rows, words)


def laws_chart(mechanism: DistributionMechanism) -> Any:
    """Each statistic's law per scenario, before and after noise."""
    alt = pictures.altair()
    points = _curves(mechanism)
    seen = list(dict.fromkeys(point["law"] for point in points))
    colours = [pictures.BLUE, pictures.VERMILION, pictures.GREEN, pictures.PURPLE, pictures.GREY]
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=pictures.WIDTH)
    ticks = alt.Axis(tickCount=4, labelOverlap="greedy", labelSeparation=12)
    scale = alt.Scale(domain=seen, range=[colours[i % len(colours)] for i in range(len(seen))])
    chart = (
        pictures.chart_of(points)
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("x:Q", title=None, scale=alt.Scale(zero=False), axis=ticks),
            y=alt.Y("y:Q", title="density", axis=alt.Axis(labels=False)),
            color=alt.Color("law:N", scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("what:N", legend=alt.Legend(title=None, orient="bottom")),
        )
        .properties(width=pictures.WIDTH, height=130)
        .facet(
            facet=alt.Facet("statistic:N", title=None, sort=list(mechanism.pairs.statistics)),
            columns=1,
        )
        .resolve_scale(x="independent", y="independent")
    )
    return pictures.styled(chart)


def _curves(mechanism: DistributionMechanism) -> list[dict[str, Any]]:
    """Densities under fixed field names, so that no label is read as a Vega expression."""
    noise = np.diag(mechanism.noise.total_covariance)
    points = []
    for at, name in enumerate(mechanism.pairs.statistics):
        for law in mechanism.pairs.laws:
            own = float(law.covariance[at, at])
            for what, variance in (("as fitted", own), ("with noise", own + float(noise[at]))):
                deviation = math.sqrt(variance)
                for z in np.linspace(-3.2, 3.2, _POINTS).tolist():
                    points.append(
                        {
                            "statistic": name,
                            "law": law.label,
                            "what": what,
                            "x": float(law.mean[at]) + z * deviation,
                            "y": math.exp(-z * z / 2) / (deviation * math.sqrt(2 * math.pi)),
                        }
                    )
    return points
