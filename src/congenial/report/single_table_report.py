"""The report: one HTML page that says what was published, what was protected, and how to use it.

Self-contained and offline; written for a statistician who is not a privacy expert. It shows
released and public values only. Pictures need the extra `report`; without it the numbers appear as
tables.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from congenial.figures.support import support
from congenial.mechanisms.single_table_release import Release
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import largest_change
from congenial.privacy.guarantee import BASIS_WORDS
from congenial.privacy.numbers import number, small
from congenial.privacy.tradeoff import Pure
from congenial.report import pictures
from congenial.report.exact_section import exact_section
from congenial.report.page import counted
from congenial.report.pictures import Pen
from congenial.report.release_page import Facts
from congenial.report.render import page
from congenial.report.usage_section import fitted_tables, usage_section
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
    "l2_norm": "l2 norm",
    "linf_norm": "largest entry (l_infinity norm)",
}
_OTHER_NORMS = {  # per unit of what, the parameter, and how far apart a pair is
    "gauge": ("gauge", "epsilon", "in the gauge of the hull"),
    "length": ("length", "rate squared", "sum of squares over all cells"),
    "linf": ("the largest entry", "rate", "in any one cell"),
}


def render(release: Release, promise: str, pen: Pen = pictures) -> str:
    """The report of a release as one HTML document.

    `promise` is the paragraph printed at release time, with what has been spent of the budget.
    Every text that a person wrote is escaped; large tables are cut at 200 rows and refer to the
    bundle's files.
    """
    return page(
        "single_table.html",
        release=release,
        promise=promise,
        axes=_axes(release),
        loss=_loss_words(release),
        agrees=_agreeing(release),
        exact=exact_section(release),
        law=_law(release),
        parameters=_parameters(release),
        records=_records_words(release),
        values=values_section(release, pen),
        **_promise(release),
        **usage_section(release),
    )


def _axes(release: Release) -> str:
    schema = release.schema
    axes = [f"{schema.shown(name)} ({schema.axis(name).size})" for name in release.table]
    return " × ".join(axes) or "total"


def _agreeing(release: Release) -> str:
    """How many published figures the table agrees with, in words; empty where it keeps none."""
    figures = sum(v.size for v in release.published.values or () if v is not None)
    return counted(figures, "figure") if figures and release.description.support.equalities else ""


# ---- what was protected ----------------------------------------------------------------------


def _law(release: Release) -> Facts:
    description = release.description
    drawn = f"the randomness of the {release.randomness}"
    rows: Facts = [
        ("Table", f"{_axes(release)} = {release.values.size:,} cells"),
        ("Structure", support(description.support, release.table).words),
        ("Mechanism", f"{description.mechanism}: {_mechanism_words(release)}"),
        ("Noise", f"{FAMILY_WORDS[description.family]}, {description.law}"),
        ("Drawn from", drawn if release.publishable else release.randomness),
    ]
    if description.post_processing == "project":
        rows.append(("Afterwards", _afterwards(release)))
    return rows


def _afterwards(release: Release) -> str:
    """How counts were made nonnegative."""
    free = "this sees the draw only and costs no privacy"
    if release.description.fit == "cells":
        return (
            "moved to the nearest table of whole, nonnegative counts with the same published "
            f"sums; {free}"
        )
    return (
        "fitted from coarse to fine to whole, nonnegative counts with the same published sums: "
        f"{fitted_tables(release)}; {free}"
    )


def _records_words(release: Release) -> str:
    adjacency = release.adjacency
    if isinstance(adjacency, SeveralRows):
        return (
            "The two datasets compared by the promise differ in at most "
            f"{counted(adjacency.units, 'unit')} and in at most {counted(adjacency.slots, 'row')} "
            "added, removed or changed."
        )
    if adjacency.metric != "replace-one":
        return (
            f"The two datasets compared by the promise differ by what one person adds: at most "
            f"{counted(adjacency.records, 'row')}."
        )
    words = (
        "The two datasets compared by the promise differ in at most "
        f"{counted(adjacency.records, 'record')} (a* in the papers)"
    )
    if adjacency.records > 1 and adjacency.figures.equalities:
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


def _other_norm(release: Release) -> Facts:
    """The noise and the farthest pair, in the norm of the law."""
    unit, parameter, apart = _OTHER_NORMS[release.description.norm]
    most = largest_change(release.description, release.adjacency)
    told = f"{parameter} = {_exactly(release.description.scale)}"
    return [
        (f"Per unit of {unit} (the noise)", told),
        ("Most that a compared pair differs by", f"{number(most.value)} ({most.footing}), {apart}"),
    ]


def _parameters(release: Release) -> Facts:
    description = release.description
    rows: Facts = [("Per person (the promise)", _loss_words(release))]
    scale, names = description.scale, release.table
    if description.norm == "l1":
        rows.append(("Per cell (the noise)", f"eps_cell = {_exactly(scale)}"))
        most = release.adjacency.l1(names)
        moved = f"{number(most.value)} ({most.footing})"
        rows.append(("Most that a compared pair differs by", f"{moved}, summed over all cells"))
        rows.append(("How they go together", _arithmetic(release)))
    elif description.norm in _OTHER_NORMS:
        rows += _other_norm(release)
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
    if description.log_ratio_error:
        told = f"H = {small(float(description.log_ratio_error))}"
        rows.append(("Numerics, counted in the promise", told))
    return rows


def _arithmetic(release: Release) -> str:
    """From the parameters of l1 noise to the promise, one product for each level of sums."""
    description, adjacency = release.description, release.adjacency
    products, total, who = [], Fraction(0), f"per {adjacency.unit_noun}"
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
        return f"{words}, plus {number(price.value)} for {what} = {spent} {who}"
    together = adjacency.joint_l1(description.terms).value
    if together < total:
        return f"{words} at most; no pair differs that much at once: {number(together)} {who}"
    return f"{words} {who}"


# ---- the promise -----------------------------------------------------------------------------


def _promise(release: Release) -> dict[str, Any]:
    guarantee = release.guarantee
    adjacency = guarantee.adjacency
    blocks: Facts = [
        ("Domain: what a record is", guarantee.domain),
        ("Universe: which datasets", guarantee.universe.words),
        ("Adjacency: which pairs", f"{adjacency.words} ({adjacency.metric})"),
        ("Trade-off: how alike", guarantee.likelihood_clause()),
        ("Parameters", f"{_loss_words(release)} per {adjacency.unit_noun}"),
    ]
    return {
        "building_blocks": blocks,
        "basis_words": BASIS_WORDS[guarantee.basis],
        "assumed": guarantee.assumptions or ("nothing beyond the above",),
        "left_open": guarantee.left_open,
    }
