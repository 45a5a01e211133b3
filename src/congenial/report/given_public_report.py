"""The report of a table released given public information: counts, both promises, the law.

Everything on the page is released or public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Any

from congenial._version import __version__
from congenial.mechanisms.wasserstein.values_release import VALUES, ValuesRelease
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.rounding_words import number
from congenial.privacy.tradeoff import Pure
from congenial.report import pictures
from congenial.report.page import PageColumn, facts, folded_table, page, section, text
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner, published_section
from congenial.report.usage_section import python_lines
from congenial.transport.delta_z import meaning

MOST_CELLS = 40  # that can be labelled one under the other
CAPTIONS = (  # without and with earlier counts
    "The released counts.",
    "The released counts, and those that were public before and that they lean on.",
)
CONTENTS = (
    ("exact", "Published exactly"),
    ("counts", "The counts"),
    ("promise", "The promise"),
    ("law", "The law of the counts"),
    ("use", "How to use it"),
)


@dataclass(frozen=True)
class Earlier:
    """The public counts a base measure leans on, in the order of the cells, and their weight."""

    file: str
    counts: tuple[int, ...]
    alpha: Fraction
    kappa: Fraction

    @property
    def words(self) -> str:
        """The Dirichlet parameter of a cell."""
        return (
            f"alpha (earlier count + kappa), alpha = {number(self.alpha)}, kappa = "
            f"{number(self.kappa)}, earlier counts from {self.file}"
        )


@dataclass(frozen=True)
class GivenPublicReport:
    """What a report needs besides the draw: earlier counts, and the promise to anybody at all."""

    persons: Guarantee
    earlier: Earlier | None = None

    def render(self, release: ValuesRelease, promise: str) -> str:
        """The report as one HTML document; `promise` is the paragraph printed at release time."""
        return page(
            f"{release.name}: counts given public information",
            [
                banner(release),
                _opening(release),
                published_section(release),
                _counts(release, self.earlier),
                _promise(release, promise, self.persons),
                _law(release, self.earlier),
                _use(release),
                f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
                "nothing from a network and shows released and public values only.</footer>",
            ],
        )


def _opening(release: ValuesRelease) -> str:
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">{len(release.values):,} counts '
        f"over {text(', '.join(release.table))}, protected with "
        f"{text(release.guarantee.tradeoff.words)} given what is public already.</p>\n"
        f"<nav><ul>{links}</ul></nav></header>"
    )


def _counts(release: ValuesRelease, earlier: Earlier | None) -> str:
    axes = release.schema.axes(release.table)
    cells = list(product(*(axis.levels for axis in axes)))
    rows = [[*cell, value] for cell, value in zip(cells, release.values, strict=True)]
    columns = [
        *(PageColumn(name) for name in release.table),
        PageColumn("released count", number=True),
    ]
    if earlier is not None:
        columns.append(PageColumn(f"in {earlier.file}", number=True))
        rows = [[*row, count] for row, count in zip(rows, earlier.counts, strict=True)]
    by_how_much = (
        "; <code>congenial infer</code> shows by how much" if release.density_known else ""
    )
    told = (
        "<p>Released counts are draws, not the truth. Taking them for the truth makes intervals "
        f"too narrow{by_how_much}.</p>"
    )
    labels = [", ".join(cell) for cell in cells]
    return section(
        "counts",
        "The counts",
        told,
        _picture(counts_chart(labels, release.values, earlier), earlier),
        folded_table(columns, rows, of=len(rows), file=VALUES),
    )


def counts_chart(
    labels: Sequence[str], released: Sequence[float], earlier: Earlier | None = None
) -> Any:
    """Released counts by cell, beside earlier ones; None where cells are too many to be labelled,
    or without the extra `report`.
    """
    if not pictures.available() or not 1 < len(labels) <= MOST_CELLS:
        return None
    alt, kinds = pictures.altair(), ["released, a draw"]
    points = [
        {"cell": cell, "count": count, "kind": kinds[0]}
        for cell, count in zip(labels, released, strict=True)
    ]
    if earlier is not None:
        kinds.append(f"public before: {earlier.file}")
        points += [
            {"cell": cell, "count": count, "kind": kinds[1]}
            for cell, count in zip(labels, earlier.counts, strict=True)
        ]
    legend = alt.Legend(title=None, orient="bottom", columns=1, labelLimit=480)

    def by(channel: Any, of: list[str]) -> Any:
        scale = alt.Scale(domain=kinds, range=of[: len(kinds)])
        return channel("kind:N", scale=scale, legend=legend)

    drawn = (
        alt.Chart(alt.Data(values=points))
        .mark_point(opacity=1, size=46, strokeWidth=1.5)
        .encode(
            x=alt.X("count:Q", title="people", axis=alt.Axis(format=",~f", tickCount=6)),
            y=alt.Y("cell:N", sort=list(labels), title=None, axis=alt.Axis(labelLimit=190)),
            stroke=by(alt.Stroke, [pictures.BLUE, pictures.INK]),
            fill=by(alt.Fill, [pictures.BLUE, "white"]),
            shape=by(alt.Shape, ["circle", "diamond"]),
        )
    )
    return pictures.styled(drawn.properties(width=pictures.WIDTH, height=max(56, 18 * len(labels))))


def _picture(chart: Any, earlier: Earlier | None) -> str:
    if chart is None:
        return ""
    words = CAPTIONS[earlier is not None]
    return (
        f'<figure><img alt="{text(words)}" src="{pictures.svg_uri(chart)}">'
        f"<figcaption>{text(words)}</figcaption></figure>"
    )


def _promise(release: ValuesRelease, promise: str, persons: Guarantee) -> str:
    guarantee = release.guarantee
    beliefs = ""
    if isinstance(guarantee.tradeoff, Pure):
        beliefs = f"<p>{text(meaning(guarantee.tradeoff.eps))}</p>"
    anybody = f"<blockquote>{text(persons.explain())}</blockquote>"
    return promise_section(
        guarantee, promise, "<h3>Whatever anybody believes</h3>", anybody, lead=beliefs
    )


def _law(release: ValuesRelease, earlier: Earlier | None) -> str:
    law, base = release.description.law, release.base
    pairs: Any = release.guarantee.adjacency
    weighed = [] if earlier is None else [("Dirichlet parameter of a cell", earlier.words)]
    nu = {
        "naive": "every table of whole numbers, all alike",
        "congenial": "tables of counts with the published sums, all alike",
        "prior-congenial": "tables of counts with the published sums, weighted by the earlier "
        "counts (Dirichlet-multinomial)",
    }[base.kind]
    return section(
        "law",
        "The law of the counts",
        "<p>p(y | x) ~ nu(y) exp(-rate loss(y, x)), x the true table.</p>",
        facts(
            [
                ("Taken as known", "; ".join(pairs.facts) or "nothing"),
                ("Base measure nu", f"{base.kind}: {nu}"),
                *weighed,
                ("Loss", law["loss"]),
                ("Rate", number(release.rate)),
                ("Factor for the normaliser", law["factor"]),
                ("Delta_z", f"{law['delta_z']['value']:g} in {law['delta_z']['measure']}"),
                ("Sampler", law["sampler"]),
                ("One replaced record", f"epsilon = {number(release.description.epsilon)}"),
            ]
        ),
    )


def _use(release: ValuesRelease) -> str:
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(python_lines(release))}</code></pre>",
        "<p>Without Python: <code>values.csv</code> has one row per cell, with its labels and the "
        "column <code>count</code>; the law is in <code>release.json</code> under "
        "<code>description</code>.</p>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )
