"""The report: one HTML page that says what was published, what was protected, and how to use it.

Self-contained and offline; written for a statistician who is not a privacy expert. It shows
released and public values only. Pictures need the extra `report`; without it the numbers appear as
tables.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from congenial._version import __version__
from congenial.figures.statements import Statement
from congenial.figures.support import support
from congenial.mechanisms.bundled import Bundled
from congenial.mechanisms.table_release import Release
from congenial.privacy.composition import largest_gauge
from congenial.privacy.description import HULLS
from congenial.privacy.guarantee import ALWAYS_OPEN, BASIS_WORDS
from congenial.privacy.rounding_words import number, small
from congenial.privacy.semantics import belief_words
from congenial.privacy.tradeoff import Pure
from congenial.report import pictures
from congenial.report.page import (
    LARGEST_TABLE,
    PageColumn,
    bullets,
    counted,
    facts,
    folded_table,
    page,
    section,
    text,
)
from congenial.report.pictures import Pen
from congenial.report.usage_section import usage_section
from congenial.report.values_section import values_section

CONDITIONED = (
    "noise conditioned on the published sums: it adds up to zero inside each, so the protected "
    "table agrees with every published figure"
)
COUNTS = (
    "counts around the true ones, drawn given that {conditions}, and that they agree with every "
    "published figure"
)
INDEPENDENT = "independent noise in every cell"
FAMILY_WORDS = {
    "double_geometric": "double geometric (discrete Laplace)",
    "discrete_gaussian": "discrete Gaussian",
    "laplace": "Laplace",
    "gaussian": "Gaussian",
    "k_norm_2": "K-norm (hull of swaps)",
    "k_norm_3": "K-norm (hull of swaps and hexagons)",
}
CONTENTS = (
    ("exact", "Published exactly"),
    ("protected", "What was protected"),
    ("promise", "The promise"),
    ("values", "Values and their uncertainty"),
    ("use", "How to use it"),
)


def render(release: Release, promise: str, pen: Pen = pictures) -> str:
    """The report of a release as one HTML document.

    `promise` is the paragraph printed at release time, with what has been spent of the budget.
    Every text that a person wrote is escaped; large tables are cut at 200 rows and refer to the
    bundle's files.
    """
    return page(
        f"{release.name}: protected table",
        [
            banner(release),
            _opening(release),
            published_section(release),
            _protected(release),
            _promise(release, promise),
            values_section(release, pen),
            usage_section(release),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


# ---- 1. title --------------------------------------------------------------------------------


def banner(release: Bundled) -> str:
    """The warning of a release that is not for publication."""
    if release.publishable:
        return ""
    return (
        '<p class="banner" role="alert"><b>NOT FOR PUBLICATION:</b> the noise was not drawn from '
        f"the operating system's randomness ({text(release.randomness)}). Whoever can repeat the "
        "draw can take the noise away.</p>"
    )


def _axes(release: Release) -> str:
    axes = release.schema.axes(release.table)
    return " × ".join(f"{axis.name} ({len(axis.levels)})" for axis in axes) or "total"


def _opening(release: Release) -> str:
    figures = sum(v.size for v in release.published.values or () if v is not None)
    agrees = ""
    if figures and release.description.support.equalities:
        agrees = f" It agrees exactly with {counted(figures, 'figure')} published alongside it."
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    cells = release.values.size
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">A table of {cells:,} counts, '
        f"{text(_axes(release))}, protected with "
        f'<span class="whole">{text(_loss_words(release))}</span> per person.'
        f"{agrees}</p>\n<nav><ul>{links}</ul></nav></header>"
    )


# ---- 2. published exactly --------------------------------------------------------------------


def published_section(release: Bundled) -> str:
    """The section with every figure that was published exactly: the same for all kinds."""
    public, pairs = release.published, release.guarantee.adjacency
    figures = public.values or (None,) * len(public.statements)
    parts = [
        _figure(release, statement, values)
        for statement, values in zip(public.statements, figures, strict=True)
    ]
    if getattr(pairs, "secrets", pairs.metric) == "replace-one" and not public.tells_total:
        parts.append("<p>The number of people in the data is public too.</p>")
    intro = (
        "<p>These figures carry no noise. Neither they nor anything that follows from them is "
        "protected.</p>"
        if public.statements
        else "<p>No figure was published exactly.</p>"
    )
    return section("exact", "Published exactly", intro, *parts)


def _figure(release: Bundled, statement: Statement, values: Any) -> str:
    ground = f" Ground: {statement.because}." if statement.because else ""
    head = f"<h3>{text(statement.label)}</h3>\n<p>{text(_counted(statement))}.{text(ground)}</p>"
    if values is None:
        return head
    axes = release.schema.axes(statement.by)
    kept = list(np.ndindex(*values.shape))[:LARGEST_TABLE]
    rows = [
        [*(axis.levels[i] for axis, i in zip(axes, at, strict=True)), int(values[at])]
        for at in kept
    ]
    columns = [
        *(PageColumn(axis.name) for axis in axes),
        PageColumn("published value", number=True),
    ]
    return head + "\n" + folded_table(columns, rows, values.size, "published.csv")


def _counted(statement: Statement) -> str:
    """What a statement says, in words."""
    terms = []
    for condition, weight in statement.terms:
        who = f"people with {condition}" if condition else "people"
        terms.append(who if weight == 1 else f"{weight} × {who}")
    what = f"Number of {' + '.join(terms)}"
    if statement.by:
        what += f", for each {' × '.join(statement.by)}"
    if statement.relation == "zero":
        return f"{what}: zero by definition"
    return f"{what}: {statement.limit}, a public bound" if statement.limit else what


# ---- 3. what was protected -------------------------------------------------------------------


def _protected(release: Release) -> str:
    description = release.description
    rows: list[tuple[str, object]] = [
        ("Table", f"{_axes(release)} = {release.values.size:,} cells"),
        ("Structure", support(description.support, release.table).words),
        ("Mechanism", f"{description.mechanism}: {_mechanism_words(release)}"),
        ("Noise", f"{FAMILY_WORDS[description.family]}, {description.law}"),
        (
            "Drawn from",
            f"the randomness of the {release.randomness}"
            if release.publishable
            else release.randomness,
        ),
    ]
    if description.post_processing == "project":
        rows.append(("Afterwards", _afterwards(release)))
    return section(
        "protected",
        "What was protected",
        facts(rows),
        "<h3>Two numbers that must not be confused</h3>",
        "<p>The noise is set per cell; the promise is made per person, and one person may change "
        "several cells.</p>",
        facts(_parameters(release)),
        f"<p>{text(_records_words(release))}</p>",
    )


def _afterwards(release: Release) -> str:
    """How counts were made nonnegative."""
    free = "this sees the draw only and costs no privacy"
    if release.description.fit == "cells":
        return (
            "moved to the nearest table of whole, nonnegative counts with the same published "
            f"sums; {free}"
        )
    tables = ", then ".join(" × ".join(names) or "total" for names in release.printed_tables)
    return (
        "fitted from coarse to fine to whole, nonnegative counts with the same published sums: "
        f"{tables}; {free}"
    )


def _records_words(release: Release) -> str:
    adjacency = release.adjacency
    if adjacency.metric != "replace-one":
        return (
            f"The two datasets compared by the promise differ by what one person adds: at most "
            f"{counted(adjacency.records, 'row')}."
        )
    words = (
        f"a* = {adjacency.records}: the two datasets compared by the promise differ in at most "
        f"{counted(adjacency.records, 'record')}"
    )
    if adjacency.records > 1 and adjacency.mandates.equalities:
        others = "another person's answer" if adjacency.records == 2 else "other people's answers"
        words += (
            f", because giving one person another answer may force {others} to change too, so that "
            "the published figures still hold"
        )
    return words + "."


def _mechanism_words(release: Release) -> str:
    if release.description.nonnegative:
        return COUNTS.format(conditions=release.description.conditions)
    if release.description.support.equalities:
        return CONDITIONED
    if release.published.equalities:
        return f"{INDEPENDENT}; the table does not add up to the published figures"
    return INDEPENDENT


def _loss_words(release: Release) -> str:
    """What one person may lose: decimals rather than ratios where that is one number."""
    tradeoff = release.guarantee.tradeoff
    return f"epsilon = {number(tradeoff.eps)}" if isinstance(tradeoff, Pure) else tradeoff.words


def _exactly(value: Fraction) -> str:
    """Decimals, with the ratio beside them when they had to be rounded."""
    shown = number(value)
    return shown if Fraction(shown) == value else f"{shown} (exactly {value})"


def _parameters(release: Release) -> list[tuple[str, object]]:
    description = release.description
    rows: list[tuple[str, object]] = [("Per person (the promise)", _loss_words(release))]
    scale, names = description.scale, release.table
    if description.norm == "l1":
        rows += [
            (f"Per sum by {', '.join(level)}" if level else "Total", f"eps = {_exactly(eps)}")
            for level, eps in description.levels
        ]
        rows.append(("Per cell (the noise)", f"eps_cell = {_exactly(scale)}"))
        most = release.adjacency.l1(names)
        moved = f"{number(most.value)} ({most.footing})"
        rows.append(("Most that a compared pair differs by", f"{moved}, summed over all cells"))
        rows.append(("How they go together", _arithmetic(release)))
    elif description.norm == "gauge":
        rows.append(("Per unit of gauge (the noise)", f"epsilon = {_exactly(scale)}"))
        most = largest_gauge(release.adjacency, HULLS[description.family])
        moved = f"{number(most.value)} ({most.footing})"
        rows.append(("Most that a compared pair differs by", f"{moved}, in the gauge of the hull"))
    else:
        sigma = float(scale) ** 0.5
        rows.append(
            ("Per cell (the noise)", f"sigma = {sigma:.6g} (sigma squared = {number(scale)})")
        )
        most = release.adjacency.l2_squared(names)
        moved = f"{number(most.value)} ({most.footing})"
        rows.append(
            ("Most that a compared pair differs by", f"{moved}, sum of squares over all cells")
        )
    if description.log_ratio_error or description.mass_lost:
        rows.append(
            (
                "Numerics, counted in the promise",
                f"H = {small(float(description.log_ratio_error))}, "
                f"tau = {small(float(description.mass_lost))}",
            )
        )
    return rows


def _arithmetic(release: Release) -> str:
    """From the parameters of l1 noise to the promise, one product for each level of sums."""
    description, adjacency = release.description, release.adjacency
    products, total = [], Fraction(0)
    for names, eps in description.terms:
        most = adjacency.l1(names).value
        what = "cell" if names == release.table else f"sum by {', '.join(names) or 'nothing'}"
        products.append(f"{number(eps)} per {what} × {number(most)}")
        total += eps * most
    words = f"{' + '.join(products)} = {number(total)}"
    if description.nonnegative:
        price = release.mechanism.price  # type: ignore[attr-defined]
        spent = number(total + price.value)
        what = description.signs_and_bounds
        return f"{words}, plus {number(price.value)} for {what} = {spent} per person"
    together = adjacency.joint_l1(description.terms).value
    if together < total:
        return f"{words} at most; no pair differs that much at once: {number(together)} per person"
    return f"{words} per person"


# ---- 4. the promise --------------------------------------------------------------------------


def _promise(release: Release, promise: str) -> str:
    guarantee = release.guarantee
    adjacency = guarantee.adjacency
    blocks: list[tuple[str, object]] = [
        ("Domain: what a record is", guarantee.domain),
        ("Universe: which datasets", guarantee.universe.words),
        ("Adjacency: which pairs", f"{adjacency.words} ({adjacency.metric})"),
        ("Trade-off: how alike", guarantee.likelihood_clause()),
        ("Parameters", f"{_loss_words(release)} per person"),
    ]
    assumed = guarantee.assumptions or ("nothing beyond the above",)
    return section(
        "promise",
        "The promise",
        f"<blockquote>{text(promise)}</blockquote>",
        _belief(release),
        "<h3>Its five building blocks</h3>",
        facts(blocks),
        "<h3>Basis</h3>",
        f"<p>{text(guarantee.basis)}: {text(BASIS_WORDS[guarantee.basis])}."
        + (f" Source: {text(guarantee.citation)}." if guarantee.citation else "")
        + "</p>",
        "<h3>Assumed</h3>",
        bullets(assumed),
        "<h3>Not covered</h3>",
        bullets(ALWAYS_OPEN + guarantee.not_covered),
    )


def _belief(release: Release) -> str:
    """The promise as a change of belief."""
    guarantee = release.guarantee
    return f"<p>{text(belief_words(guarantee))}</p>"
