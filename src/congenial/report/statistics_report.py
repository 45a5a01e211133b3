"""The report of a release of statistics: values with intervals, the promise, what was tried.

Fitted laws are drawn as curves, which is no more than the promise publishes; how the sampled
statistics of the modelling data look is for the curator alone (`congenial audit --property`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial._version import __version__
from congenial.mechanisms.distribution.assumptions import Diagnosis
from congenial.mechanisms.distribution.choose import Choice
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
from congenial.privacy.guarantee import Guarantee
from congenial.report import pictures
from congenial.report.page import PageColumn, page, section, table, text
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner
from congenial.report.usage_section import python_lines

LEVEL = 0.90
_POINTS = 81
CAPTION = (
    "The statistics under each scenario, as fitted and with the noise added. The closer the "
    "dashed curves of two scenarios lie, the less the release tells."
)
CONTENTS = (
    ("values", "Values and their uncertainty"),
    ("promise", "The promise"),
    ("laws", "The laws it rests on"),
    ("tried", "How the noise was chosen"),
    ("use", "How to use it"),
)


@dataclass(frozen=True)
class StatisticsReport:
    """What a report needs besides the draw, worked out before it."""

    candidates: list[dict[str, Any]]
    diagnosis: str
    persons: Guarantee | None
    fit: str
    picture: str

    @classmethod
    def of(
        cls, choice: Choice, diagnosis: Diagnosis, persons: Guarantee | None, fit: str
    ) -> StatisticsReport:
        """From what was calibrated."""
        return cls(choice.table(), diagnosis.words, persons, fit, _picture(choice.mechanism))

    def render(self, release: StatisticsRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        return page(
            f"{release.name}: protected statistics",
            [
                banner(release),
                _opening(release),
                _values(release),
                _promise(release, promise, self.persons, self.fit),
                self._laws(release),
                self._tried(release),
                _use(release),
                f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
                "nothing from a network and shows released and public values only.</footer>",
            ],
        )

    def _laws(self, release: StatisticsRelease) -> str:
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
        words = f"Diagnosis of the fit: {self.diagnosis}"
        origin = f"<p>{text(pairs.origin.words[0].upper() + pairs.origin.words[1:])}.</p>"
        return section(
            "laws",
            "The laws it rests on",
            origin,
            table(columns, rows),
            self.picture,
            f"<p>{text(words)}</p>",
        )

    def _tried(self, release: StatisticsRelease) -> str:
        columns = [
            PageColumn("mechanism"),
            PageColumn("expected error", number=True),
            PageColumn("root mean square", number=True),
            PageColumn("directions with noise", number=True),
            PageColumn("why not"),
        ]
        rows = [
            [
                one["mechanism"],
                "-" if one["expected_error"] is None else float(one["expected_error"]),
                one.get("root_mean_square", "-"),
                one.get("directions", "-"),
                one.get("why_not", ""),
            ]
            for one in self.candidates
        ]
        several = len(self.candidates) > 1
        least = ", the least expected error" if several else ", as the plan says"
        tried = "Every mechanism that applies" if several else "The mechanism that the plan names"
        return section(
            "tried",
            "How the noise was chosen",
            f"<p>{tried} was calibrated to the promise. Expected error is the mean length of the "
            "noise vector, from public parameters alone.</p>",
            table(columns, rows),
            f"<p>Taken: {text(release.description.mechanism)}{least}.</p>",
        )


def _opening(release: StatisticsRelease) -> str:
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    many = len(release.statistics)
    what = "One statistic" if many == 1 else f"{many} statistics"
    persons = (
        "Single persons are not protected by it."
        if release.person_guarantee is None
        else f"Single persons get {release.person_guarantee.tradeoff.words}."
    )
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">{what} of one dataset, with noise '
        f"that hides what the dataset as a whole is like ({text(release.guarantee.tradeoff.words)})"
        f". {text(persons)}</p>\n<nav><ul>{links}</ul></nav></header>"
    )


def _values(release: StatisticsRelease) -> str:
    rows = []
    for name in release.statistics:
        found = release.interval(name, LEVEL)
        rows.append([name, found.estimate, found.low, found.high])
    columns = [
        PageColumn("statistic"),
        PageColumn("released value", number=True),
        PageColumn(f"{LEVEL:.0%} from", number=True),
        PageColumn("to", number=True),
    ]
    return section(
        "values",
        "Values and their uncertainty",
        table(
            columns,
            rows,
            "Intervals for the statistics of these data; the law of the noise is known.",
        ),
        "<p>They say nothing about a population these data may be a sample of.</p>",
    )


def _promise(release: StatisticsRelease, promise: str, persons: Guarantee | None, fit: str) -> str:
    guarantee = release.guarantee
    single = "<p>This release promises nothing about single persons.</p>"
    if persons is not None:
        single = f"<blockquote>{text(persons.explain())}</blockquote>"
    rows = [("Error of the fit", fit)] if fit else []
    return promise_section(guarantee, promise, "<h3>Single persons</h3>", single, rows=rows)


def _use(release: StatisticsRelease) -> str:
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(python_lines(release))}</code></pre>",
        "<p>Without Python: <code>statistics.csv</code> has one row per statistic, with its value "
        "and the standard deviation of the noise; the law is in <code>release.json</code> under "
        "<code>description</code>.</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )


def _picture(mechanism: DistributionMechanism) -> str:
    """Each statistic's law per scenario, before and after noise; empty without the extra."""
    if not pictures.available() or not mechanism.pairs.gaussian:
        return ""
    alt = pictures.altair()
    points = _curves(mechanism)
    seen = list(dict.fromkeys(point["law"] for point in points))
    colours = [pictures.BLUE, pictures.VERMILION, pictures.GREEN, pictures.PURPLE, pictures.GREY]
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=480)
    ticks = alt.Axis(tickCount=4, labelOverlap="greedy", labelSeparation=12)
    scale = alt.Scale(domain=seen, range=[colours[i % len(colours)] for i in range(len(seen))])
    chart = (
        alt.Chart(alt.Data(values=points))
        .mark_line(strokeWidth=1.8)
        .encode(
            x=alt.X("x:Q", title=None, scale=alt.Scale(zero=False), axis=ticks),
            y=alt.Y("y:Q", title="density", axis=alt.Axis(labels=False)),
            color=alt.Color("law:N", scale=scale, legend=legend),
            strokeDash=alt.StrokeDash("what:N", legend=alt.Legend(title=None, orient="bottom")),
        )
        .properties(width=260, height=130)
        .facet(
            facet=alt.Facet("statistic:N", title=None, sort=list(mechanism.pairs.statistics)),
            columns=2,
        )
        .resolve_scale(x="independent", y="independent")
    )
    uri = pictures.svg_uri(pictures.styled(chart))
    return (
        f'<figure><img src="{uri}" alt="{text(CAPTION)}"><figcaption>{text(CAPTION)}'
        "</figcaption></figure>"
    )


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
