"""The report of protected tables: what was published, what was protected, and how to use it.

Self-contained and offline; it shows released and public values only. Every table has its printed
count, estimate and interval in one row; small ones have a picture. Pictures are drawn by hand, so
that a page that is written anew is the same to the letter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import islice
from math import isinf
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.errors import InferenceError, UnansweredError
from congenial.figures.support import support
from congenial.mechanisms.drawn_table import DrawnTable, of_persons
from congenial.mechanisms.measured_tables import whose_number
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.released import EXACT_LAW, LEVEL
from congenial.mechanisms.tables_files import file_name
from congenial.mechanisms.tables_release import MEANS, TablesRelease
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import largest_change
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import BASIS_WORDS
from congenial.privacy.numbers import number, small
from congenial.privacy.tradeoff import Pure
from congenial.report.accuracy import error_rows
from congenial.report.page import (
    LARGEST_TABLE,
    PageColumn,
    PageTable,
    Picture,
    counted,
    folded_table,
    table,
)
from congenial.report.release_page import Facts, example_condition, literal, release_page
from congenial.report.svg import IntervalRow, error_bars, interval_rows

Document = dict[str, Any]
ENDS = ("low", "high")
ENDS_OF_EXACT = (*ENDS, "exact")
COLUMNS = ("count", "estimate", *ENDS_OF_EXACT)
MOST_ROWS = 40  # cells of a table that are drawn
MOST_FIGURES = 4  # that the first sentence names
MOST_MARGINS = 3  # axes of one table whose sums are shown too
COVER = f"{LEVEL:.0%}"
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


def render(release: TablesRelease | PartedRelease, promise: str) -> str:
    """The report as one HTML document.

    `promise` is the paragraph printed at release time, with what has been spent of the budget.
    Every text that a person wrote is escaped; large tables are cut at 200 rows and refer to the
    bundle's files. Of a nation by parts it shows the tables above the parts.
    """
    several = len(release.tables) * len(release.description.measures) > 1
    return release_page(
        "tables.html",
        release,
        promise,
        words=_lead(release),
        agrees=_agreeing(release),
        summed=release.description.magnitude,
        beside=[one.magnitude for one in release.description.beside],
        whose=whose_number(of_persons(release.guarantee)),
        loss=_loss_words(release),
        picture=worst_errors(_worst(release)) if several else None,
        measured=_measured(release) if several else None,
        level=COVER,
        records=_records_words(release),
        **(_of_nation(release) if isinstance(release, PartedRelease) else _of_tables(release)),
        **_promise(release),
    )


def _of_tables(release: TablesRelease) -> Document:
    """What tables show that were drawn at once."""
    only = release.description.only_law is not None
    return {
        "whole": any(one is not None for one in release.counts),
        "fit": _fit(release),
        "how_counted": release.counts_words,
        "rests": _rests(release),
        "tables": [
            shown
            for one in release.measures
            for shown in (*_margins(one), *(_shown_table(one, names) for names in release.tables))
        ],
        "law": _law(release, _fit(release)),
        "parameters": _parameters(release) if only else [],
        "code": _code(release),
        "errors": _errors(release),
        "outlook": _outlook(release),
        "cut": None,
    }


def _of_nation(release: PartedRelease) -> Document:
    """What a nation shows: its tables above the parts, and where those below them are."""
    folders = [file_name(release.tables, at) for at in sorted(release.worst)]
    by = release.description.parts
    many = f"{len(release.parts.labels):,}"
    return {
        **dict.fromkeys(("fit", "rests", "parameters", "errors", "outlook")),  # of one table
        "how_counted": "",
        "whole": True,
        "cut": {"by": release.schema.shown(by), "many": many, "folders": folders},
        "tables": [_shown_table(release.above, one) for one in release.above.tables],
        "law": [*_law(release), ("Parts", f"{many}, by {by}")],
    }


# ---- values ----------------------------------------------------------------------------------


def _lead(release: TablesRelease | PartedRelease) -> str:
    """What was released, in a clause."""
    schema, units = release.schema, release.description.units
    if release.description.beside:
        of = _and([_nouns(one) for one in release.description.measures])
        return f"{counted(len(release.tables), 'table')} of {of} of the same people,"
    if len(release.tables) > 1:
        same = "units (not of their rows)" if units else "people"
        told = release.description
        of = "of" if told.magnitude is None else f"of {_nouns(told)} over"
        return f"{len(release.tables)} tables {of} the same {same},"
    axes = [f"{schema.shown(name)} ({schema.axis(name).size})" for name in release.tables[0]]
    counts = "counts of units (not of their rows)" if units else _nouns(release.description)
    return f"A table of {schema.size(release.tables[0]):,} {counts}, {' × '.join(axes) or 'total'},"


def _nouns(told: TablesDescription) -> str:
    """What the tables have in their cells."""
    return "counts" if told.magnitude is None else f"sums of {told.of}"


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _rests(release: TablesRelease) -> str:
    """What the intervals of one measured table rest on; empty for several, and without any."""
    if not isinstance(release.estimator, OneTable) or not release.has_errors:
        return ""
    if release.estimator.deviations(release.tables[0]).basis == "simulated":
        return (
            "The intervals are simulated from the public law of the noise wherever that law is "
            "not tabulated; half-widths are then upper confidence bounds."
        )
    return f"The coverage of the intervals is exact: {EXACT_LAW.removeprefix('exact: ')}."


def _margins(release: TablesRelease) -> list[Document]:
    """Sums of a single table by each of its short axes."""
    if len(release.tables) > 1 or len(release.tables[0]) < 2:
        return []
    axes = release.schema.axes(release.tables[0])
    short = [axis.name for axis in axes if 2 <= axis.size <= MOST_ROWS][:MOST_MARGINS]
    return [_shown_table(release, (name,)) for name in short]


def _shown_table(release: TablesRelease, names: tuple[str, ...]) -> Document:
    """A table, or sums of one: its picture if it is small, maps, and its numbers."""
    numbers = _numbers(release, names)
    beside = release.counted is not None or bool(release.description.beside)
    of = f", {_nouns(release.description)}" if beside or release.file_end else ""
    return {
        "name": f"{table_words(release.schema, names)}{of}",
        "printed": numbers["count"] is not None,
        "picture": _picture(release, names, numbers),
        "maps": _maps(release, names, numbers),
        "numbers": table_rows(
            release.schema, names, numbers, _file(release, names), _summed_columns(release, names)
        ),
    }


def _file(release: TablesRelease, names: tuple[str, ...]) -> str:
    tables = release.description.tables
    at = tables.index(names) if names in tables else 0
    return f"{file_name(tables, at)}{release.file_end}.csv"


def _numbers(release: TablesRelease, names: tuple[str, ...]) -> Document:
    """Counts where they are printed, estimates, and the ends of their intervals where errors have a
    law that does not depend on the data.
    """
    counts = release.margin(*names) if release.prints(*names) else None
    found: Document = {**dict.fromkeys(COLUMNS), "count": counts}
    try:
        columns = release.intervals(names, LEVEL)
    except UnansweredError:  # counts drawn given their signs
        return found
    shape = [axis.size for axis in release.schema.axes(names)]
    for name in COLUMNS[1:] if release.has_errors else ENDS_OF_EXACT:
        found[name] = np.reshape(columns[name].to_numpy(zero_copy_only=False), shape)
    return found


def _picture(release: TablesRelease, names: tuple[str, ...], numbers: Document) -> Picture | None:
    """Values of a small table with their intervals; none where all are exact."""
    values = numbers["estimate"] if numbers["count"] is None else numbers["count"]
    known = numbers["low"] is not None
    exact = numbers["exact"] if known else np.zeros(values.shape, dtype=bool)
    if values.size > MOST_ROWS or exact.all():
        return None
    ends: list[Any] = [numbers[end] if known else values for end in ENDS]
    low, high = (np.where(exact, values, end) for end in ends)
    levels = [release.schema.shown_levels(name) for name in names]
    rows = [
        IntervalRow(
            ", ".join(shown[i] for shown, i in zip(levels, cell, strict=True)) or "total",
            float(values[cell]),
            float(low[cell]),
            float(high[cell]),
            bool(exact[cell]),
        )
        for cell in np.ndindex(*values.shape)
    ]
    number = release.description.magnitude
    printed, unit = ("counts", " people") if number is None else ("sums", "")
    what = "estimates" if numbers["count"] is None else f"printed {printed}"
    widest = f"{np.max(high - low):,.0f}"
    bars = f", bars {COVER} intervals; the widest is {widest}{unit} wide" if known else ""
    marked = " Hollow diamonds are exact: they follow from published figures."
    return Picture(
        interval_rows(rows),
        f"Values of {table_words(release.schema, names)}"
        f"{f' with {COVER} intervals' if known else ''}, {len(rows)} cells; the numbers are in the "
        "table below.",
        f"{'People' if number is None else number.column}: points are {what}{bars}."
        f"{marked if exact.any() else ''} The axis need not start at zero.",
    )


def _maps(release: TablesRelease, names: tuple[str, ...], numbers: Document) -> tuple[Picture, ...]:
    """Maps of a table, where the plan names outlines of its areas."""
    if release.schema.about.map is None:
        return ()
    from congenial.report.map_section import maps_of

    values = numbers["estimate"] if numbers["count"] is None else numbers["count"]
    if numbers["low"] is None:
        return maps_of(release.schema, names, values, None, None, COVER)
    low, high = (np.where(numbers["exact"], values, numbers[end]) for end in ENDS)
    return maps_of(release.schema, names, values, low, high, COVER)


def _summed_columns(release: TablesRelease, names: tuple[str, ...]) -> list[list[str]]:
    """Of sums: the heading of printed ones, and people and means where figures tell people."""
    if release.description.magnitude is None:
        return [["count"]]
    exact = release.people(*names) is not None
    if not exact and release.counted is None:
        return [["sum"]]
    try:
        found = release.means(names, LEVEL).to_pydict()
    except InferenceError:  # all counts are too small beside their noise
        return [["sum"]]
    rows = zip(*(found[name] for name in MEANS), strict=True)
    told = [
        [
            _amount(n),
            *(
                ["-", "-"]
                if low is None or isinf(low) or not n
                else [f"{mean:,.2f}", f"{low:,.2f} to {high:,.2f}"]
            ),
        ]
        for n, mean, low, high in rows
    ]
    people = f"people{' (exact)' if exact else ''}"
    return [["sum", people, "mean", f"{COVER} interval of the mean"], *told]


def table_rows(
    schema: Schema,
    names: Sequence[str],
    numbers: Mapping[str, Any],
    file: str,
    summed: Sequence[Sequence[str]] = (("count",),),
) -> PageTable:
    """One row per cell: labels, printed count if there is one, estimate and interval if known.

    `summed`: the heading of printed counts and those of further columns, and their rows.
    """
    levels = [schema.shown_levels(name) for name in names]
    counts, estimates, low, high, exact = (numbers[key] for key in COLUMNS)
    rows = []
    shape = np.shape(counts if estimates is None else estimates)
    for at, cell in enumerate(islice(np.ndindex(*shape), LARGEST_TABLE)):
        labels = [shown[i] for shown, i in zip(levels, cell, strict=True)]
        printed = [] if counts is None else [_amount(counts[cell])]
        estimate = [] if estimates is None else [_estimate(estimates[cell])]
        interval = []
        if low is not None:
            ends = f"{_amount(low[cell])} to {_amount(high[cell])}"
            interval = ["exact" if exact[cell] else ends]
        further = summed[1 + at] if len(summed) > 1 else []
        rows.append([*labels, *printed, *estimate, *interval, *further])
    columns = [
        *(PageColumn(schema.shown(name)) for name in names),
        *([] if counts is None else [PageColumn(summed[0][0], number=True)]),
        *([] if estimates is None else [PageColumn("estimate", number=True)]),
        *([] if low is None else [PageColumn(f"{COVER} interval", number=True)]),
        *(PageColumn(heading, number=True) for heading in summed[0][1:]),
    ]
    return folded_table(columns, rows, schema.size(tuple(names)), file)


def _amount(value: Any) -> str:
    """A printed count or sum: whole, or with two decimals where steps are not whole."""
    return f"{value:,.2f}" if isinstance(value, np.floating) else f"{int(value):,}"


def _estimate(value: Any) -> str:
    """Whole numbers as they are, others with one decimal."""
    return f"{value:,}" if isinstance(value, np.integer) else f"{value:,.1f}"


def table_words(schema: Schema, names: Sequence[str]) -> str:
    """A table in words: the labels of its columns, or their names where they have none."""
    return " × ".join(map(schema.shown, names)) or "total"


def worst_errors(worst: Sequence[tuple[str, float]]) -> Picture:
    """The standard deviation of the worst cell of each table."""
    return Picture(
        error_bars(worst),
        "Standard deviation of each table",
        "Standard deviation of the estimates of each table (its worst cell), on a logarithmic "
        "scale.",
    )


def _measured(release: TablesRelease | PartedRelease) -> PageTable:
    """Cells, whether measured, worst standard deviation and, of a nation, files of each table."""
    told = release.description
    measured = {(one.of, law.table) for one in told.measures for law in one.measured}
    below = release.worst if isinstance(release, PartedRelease) else None
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("measured"),
        PageColumn("standard deviation", number=True),
        *([] if below is None else [PageColumn("files")]),
    ]
    rows = []
    of = [one.of for one in told.measures for _ in release.tables]
    for at, (name, deviation) in enumerate(_worst(release)):
        names = told.printed[at]
        cells, drawn = release.schema.size(names), "yes" if (of[at], names) in measured else "no"
        rows.append([name, cells, drawn, f"{deviation:.2f}"])
        if below is not None:
            ending = "/" if at in below else ".csv"
            rows[-1].append(f"{file_name(release.tables, at)}{ending}")
    return folded_table(columns, rows, len(rows), "release.json")


def _worst(release: TablesRelease | PartedRelease) -> list[tuple[str, float]]:
    words = [table_words(release.schema, names) for names in release.tables]
    if isinstance(release, PartedRelease) or not release.description.beside:
        return list(zip(words, release.largest_sds, strict=True))
    return [
        (f"{name}, {_nouns(one.description)}", sd)
        for one in release.measures
        for name, sd in zip(words, one.largest_sds, strict=True)
    ]


def _agreeing(release: TablesRelease | PartedRelease) -> str:
    """The published figures that the tables agree with, in words; empty where they keep none."""
    figures = [s for s in release.published.told if s.relation == "="]
    if not figures or not release.description.support.equalities:
        return ""
    named = [f"{s.label} by {', '.join(s.by)}" if s.by else s.label for s in figures]
    more = [f"{len(named) - MOST_FIGURES} more"] if len(named) > MOST_FIGURES else []
    return "; ".join([*named[:MOST_FIGURES], *more])


# ---- the law of the noise --------------------------------------------------------------------


def _law(release: TablesRelease | PartedRelease, fit: str = "") -> Facts:
    """What was drawn and how, and how noise was shared out over several tables; `fit`: how whole
    counts were fitted to one table.
    """
    told = release.description
    drawn = f"the randomness of the {release.randomness}"
    rows: Facts = []
    if isinstance(release, TablesRelease) and told.only_law is not None:
        known = support(told.support, told.only_law.table)
        rows += [
            ("Structure", known.words),
            ("Mechanism", f"{told.only_law.mechanism}: {_mechanism_words(release)}"),
            ("Noise", f"{FAMILY_WORDS[told.family]}, {told.only_law.law}"),
        ]
    else:
        rows.append(("Noise", told.measured[0].law))
    rows += [(f"Noise of {_nouns(one)}", one.measured[0].law) for one in told.beside]
    rows.append(("Drawn from", drawn if release.publishable else release.randomness))
    if told.design:
        rows += [
            ("Shared out", f"aim: {told.design.get('aim', '-')}"),
            ("How near the best", told.design.get("words", "-")),
        ]
    if fit:
        rows.append(("Afterwards", f"{fit}; this sees the draw only and costs no privacy"))
    return rows


def _fit(release: TablesRelease) -> str:
    """How whole counts were fitted to one table; empty where there are none, or several tables."""
    estimator = release.estimator
    if not isinstance(estimator, OneTable) or not release.has_errors or release.counts[0] is None:
        return ""
    if release.description.magnitude is not None:
        return "fitted so that sums add up, none is negative, and all are multiples of the step"
    if estimator.order is None:
        return "moved to the nearest whole, nonnegative counts with the same published sums"
    tables = ", then ".join(" × ".join(names) or "total" for names in estimator.fitted_tables)
    return (
        "fitted from coarse to fine to whole, nonnegative counts with the same published sums: "
        f"{tables}"
    )


def _records_words(release: TablesRelease | PartedRelease) -> str:
    adjacency = of_persons(release.guarantee)
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


def _mechanism_words(release: TablesRelease) -> str:
    law = release.only.description
    if law.nonnegative:
        return COUNTS.format(conditions=law.conditions)
    if release.description.support.equalities:
        return CONDITIONED
    if release.published.equalities:
        return f"{INDEPENDENT}; the table does not add up to the published figures"
    return INDEPENDENT


def _loss_words(release: TablesRelease | PartedRelease) -> str:
    """What one person may lose: decimals rather than ratios where that is one number."""
    tradeoff = release.guarantee.tradeoff
    return f"epsilon = {number(tradeoff.eps)}" if isinstance(tradeoff, Pure) else tradeoff.words


def _exactly(value: Fraction) -> str:
    """Decimals, with the ratio beside them when they had to be rounded."""
    shown = number(value)
    return shown if Fraction(shown) == value else f"{shown} (exactly {value})"


def _other_norm(drawn: DrawnTable) -> Facts:
    """The noise and the farthest pair, in the norm of the law."""
    unit, parameter, apart = _OTHER_NORMS[drawn.description.norm]
    most = largest_change(drawn.description, drawn.adjacency)
    told = f"{parameter} = {_exactly(drawn.description.scale)}"
    return [
        (f"Per unit of {unit} (the noise)", told),
        ("Most that a compared pair differs by", f"{number(most.value)} ({most.footing}), {apart}"),
    ]


def _parameters(release: TablesRelease) -> Facts:
    drawn = release.only
    description = drawn.description
    rows: Facts = [("Per person (the promise)", _loss_words(release))]
    scale, most = description.scale, largest_change(description, drawn.adjacency)
    steps = "" if description.magnitude is None else ", in steps"
    moved = f"{number(most.value)}{steps} ({most.footing})"
    if description.norm == "l1":
        rows.append(("Per cell (the noise)", f"eps_cell = {_exactly(scale)}"))
        rows.append(("Most that a compared pair differs by", f"{moved}, summed over all cells"))
        rows.append(("How they go together", _arithmetic(drawn)))
    elif description.norm in _OTHER_NORMS:
        rows += _other_norm(drawn)
    else:
        sigma = float(scale) ** 0.5
        rows.append(
            ("Per cell (the noise)", f"sigma = {sigma:.6g} (sigma squared = {number(scale)})")
        )
        rows.append(
            ("Most that a compared pair differs by", f"{moved}, sum of squares over all cells")
        )
    if description.log_ratio_error:
        told = f"H = {small(float(description.log_ratio_error))}"
        rows.append(("Numerics, counted in the promise", told))
    return rows


def _arithmetic(drawn: DrawnTable) -> str:
    """From the parameters of l1 noise to the promise."""
    description, who = drawn.description, f"per {drawn.adjacency.unit_noun}"
    most = largest_change(description, drawn.adjacency).value
    total = description.rate * most
    words = f"{number(description.rate)} per cell × {number(most)} = {number(total)}"
    if description.nonnegative:
        price = drawn.mechanism.price  # type: ignore[attr-defined]
        spent = number(total + price.value)
        what = description.signs_and_bounds
        return f"{words}, plus {number(price.value)} for {what} = {spent} {who}"
    return f"{words} {who}"


# ---- how to use it ---------------------------------------------------------------------------


def _code(release: TablesRelease) -> str:
    """How to begin, in Python."""
    names = release.tables[0]
    axes = ", ".join(literal(name) for name in names)
    lines = [
        "import congenial",
        "",
        'release = congenial.read("this-folder")',
        "",
        "# one row per cell",
        f"release.to_pandas({axes if len(release.tables) > 1 else ''})",
    ]
    if names:
        lines += ["", "# sums onto any axes of the tables", f"release.margin({literal(names[0])})"]
    if release.has_errors and names:
        condition = literal(example_condition(release))
        lines += ["", "# an interval for any sum of cells", f"release.interval({condition}, 0.90)"]
    for one in release.description.beside:
        lines += ["", f"# the same for sums of {one.of}, and means"]
        lines += [f"sums = release.measure({literal(one.of)})", f"sums.to_pandas({axes})"]
        lines += [f"sums.means([{axes}], 0.90)"]
    return "\n".join(lines)


def _outlook(release: TablesRelease) -> Any:
    """How to infer from counts drawn given their signs, or why that cannot be done."""
    if release.has_errors:
        return None
    from congenial.inference.feasibility import outlook  # only such counts need to know

    return outlook(release.only.mechanism)


def _errors(release: TablesRelease) -> PageTable | None:
    rows = error_rows(release.only.mechanism) if len(release.drawn) == 1 else []
    if not rows:
        return None
    columns = [
        PageColumn("sum"),
        PageColumn("how many", number=True),
        PageColumn("standard deviation", number=True),
        PageColumn(f"within, at {COVER}", number=True),
    ]
    return table(
        columns,
        [
            [
                f"each {row.what}" if row.sums > 1 else row.what,
                row.sums,
                float(round(row.standard_deviation, 2)),
                "exact" if row.standard_deviation == 0 else float(row.within),
            ]
            for row in rows
        ],
        "Largest error of the estimates, over the sums of each kind; from public parameters.",
    )


# ---- the promise -----------------------------------------------------------------------------


def _promise(release: TablesRelease | PartedRelease) -> dict[str, Any]:
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
