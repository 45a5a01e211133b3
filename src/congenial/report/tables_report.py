"""The report of protected tables: what was published, what was protected, and how to use it.

Self-contained and offline; it shows released and public values only. The rows of its tables are in
the page once, as data (`page_data`), from which its script answers, draws and lists; without a
script, and on paper, it has the first screen and the rows of small tables.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from congenial.data.about import WIDTH
from congenial.data.schema import Schema
from congenial.data.text_files import rounded
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
from congenial.report.page import PageColumn, PageTable, counted, folded_table, table
from congenial.report.page_data import columns, marks, packed, within_room
from congenial.report.release_page import (
    Facts,
    Headline,
    cite,
    example_condition,
    literal,
    release_page,
)
from congenial.tables.intervals import reliability

Document = dict[str, Any]
ENDS = ("low", "high")
ENDS_OF_EXACT = (*ENDS, "exact")
COLUMNS = ("count", "estimate", *ENDS_OF_EXACT)
SHORT = 40  # levels of an axis whose sums are shown too
PAPER = 60  # rows of a table that is printed as a whole
FIRST_ROWS = 8  # of a larger one
MOST_PAPER = 600  # rows of all tables as markup
FURTHER = (  # columns for analysts
    ("estimate", "estimate (unbiased)"),
    ("sd", "standard deviation"),
    ("drawn", "as drawn"),
    ("m_people", "people"),
    ("m_mean", "mean"),
    ("m_low", "mean: from"),
    ("m_high", "to"),
)
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
    Every text that a person wrote is escaped. All rows are in the page, of the smallest tables
    first, up to `page_data.MOST_ROWS`; larger tables are named. Of a nation by parts it shows the
    tables above the parts.
    """
    several = len(release.tables) * len(release.description.measures) > 1
    whole = release.above if isinstance(release, PartedRelease) else release
    tables, named = _tables_of(whole)
    leading = (each.leading(release.schema) for each in tables)
    return release_page(
        "tables.html",
        release,
        promise,
        words=_lead(release),
        agrees=_agreeing(release),
        summed=release.description.magnitude,
        beside=[number.magnitude for number in release.description.beside],
        whose=whose_number(of_persons(release.guarantee)),
        loss=_loss_words(release),
        headlines=list(islice(filter(None, leading), 2)),
        data_block=_page_rows(whole, tables) if tables else None,
        tables=_on_paper(release.schema, tables),
        named=named,
        downloads=_downloads(release),
        uncertain=_too_uncertain(tables),
        measured=_measured(release) if several else None,
        level=COVER,
        records=_records_words(release),
        **(_of_nation(release) if isinstance(release, PartedRelease) else _of_tables(release)),
        **_promise(release),
    )


def _tables_of(release: TablesRelease) -> tuple[list[TableNumbers], list[Document]]:
    """Tables whose rows the page carries, and those it only names."""
    tables = [(measure, names) for measure in release.measures for names in _shown_tables(measure)]
    sizes = [release.schema.size(names) for _, names in tables]
    within = within_room(sizes)
    named = [
        {"words": table_words(measure.schema, names), "file": _file(measure, names), "cells": size}
        for at, ((measure, names), size) in enumerate(zip(tables, sizes, strict=True))
        if at not in within
    ]
    return [TableNumbers.from_release(*tables[at]) for at in sorted(within)], named


def _too_uncertain(tables: Sequence[TableNumbers]) -> list[Document]:
    """Tables with numbers that are marked too uncertain to quote, and how many these are."""
    many = [(table, int(np.count_nonzero(table.flags == "poor"))) for table in tables]
    return [
        {"words": table.words, "many": count, "cells": table.flags.size}
        for table, count in many
        if count
    ]


def _on_paper(schema: Schema, shown: Sequence[TableNumbers]) -> list[Document]:
    """Rows as markup: of the first tables, as many as a few pages hold; the others are named."""
    on_paper, left = [], MOST_PAPER
    for shown_table in shown:
        rows = shown_table.rows(schema) if left > 0 else None
        left -= 0 if rows is None else len(rows.rows)
        on_paper.append(
            {
                "name": shown_table.words,
                "rows": rows,
                "file": shown_table.file,
                "printed": shown_table.printed,
            }
        )
    return on_paper


def _downloads(release: TablesRelease | PartedRelease) -> list[Document]:
    """The files of every table."""
    if isinstance(release, TablesRelease):
        return [
            {
                "name": _words(measure, names),
                "cells": measure.schema.size(names),
                "files": [_file(measure, names), _file(measure, names, "parquet")],
            }
            for measure in release.measures
            for names in release.tables
        ]
    listed = []
    for at, names in enumerate(release.tables):
        name, words = file_name(release.tables, at), table_words(release.schema, names)
        files = [f"{name}/"] if at in release.worst else [f"{name}.csv", f"{name}.parquet"]
        listed.append({"name": words, "cells": release.schema.size(names), "files": files})
    return listed


def _of_tables(release: TablesRelease) -> Document:
    """What tables show that were drawn at once."""
    only = release.description.only_law is not None
    return {
        "whole": any(counts is not None for counts in release.counts),
        "fit": _fit(release),
        "how_counted": release.counts_words,
        "rests": _rests(release),
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
        "law": [*_law(release), ("Parts", f"{many}, by {by}")],
    }


# ---- values ----------------------------------------------------------------------------------


def _lead(release: TablesRelease | PartedRelease) -> str:
    """What was released, in a clause."""
    schema, units = release.schema, release.description.units
    if release.description.beside:
        of = _and([_nouns(measure) for measure in release.description.measures])
        return f"{counted(len(release.tables), 'table')} of {of} of the same people,"
    if len(release.tables) > 1:
        same = "units (not of their rows)" if units else "people"
        description = release.description
        of = "of" if description.magnitude is None else f"of {_nouns(description)} over"
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


def _shown_tables(release: TablesRelease) -> list[tuple[str, ...]]:
    """The printed tables, the smallest first; before a single one its sums by each short axis."""
    names = sorted(release.tables, key=release.schema.size)
    if len(names) > 1 or len(names[0]) < 2:
        return names
    axes = release.schema.axes(names[0])
    short = [axis.name for axis in axes if 2 <= axis.size <= SHORT][:MOST_MARGINS]
    return [*((name,) for name in short), *names]


@dataclass(frozen=True)
class TableNumbers:
    """A table, or sums of one: the number to quote of every cell, and what else is known of it.

    `of`: people, or the column that is summed. `base`: printed counts, or estimates where there are
    none; `low` and `high` None: no interval is known. `flags`: how reliable each cell is, as in the
    CSV file, or "" where that is not known. `more`: further columns, for analysts.
    """

    names: tuple[str, ...]
    words: str
    of: str
    summed: bool
    file: str
    base: Any
    printed: bool
    low: Any
    high: Any
    flags: Any
    more: Mapping[str, Any]

    @classmethod
    def from_release(cls, release: TablesRelease, names: tuple[str, ...]) -> TableNumbers:
        """Those of a table of a release."""
        numbers = _numbers(release, names)
        base = numbers["count"] if numbers["count"] is not None else numbers["estimate"]
        further = _for_analysts(release, names, numbers)
        flags = np.full(base.shape, "", dtype=object)
        if further.deviations is not None:
            limits = release.schema.about.reliability
            flags = np.reshape(reliability(base, further.deviations, limits), base.shape)
        elif numbers["low"] is not None:
            flags[numbers["exact"]] = "exact"
        description = release.description
        return cls(
            names,
            _words(release, names),
            "units" if description.units and description.magnitude is None else description.of,
            description.magnitude is not None,
            _file(release, names),
            base,
            numbers["count"] is not None,
            numbers["low"],
            numbers["high"],
            flags,
            further.columns,
        )

    @property
    def exact(self) -> Any:
        """Which cells carry no noise."""
        return self.flags == "exact"

    @property
    def noun(self) -> str:
        """What is counted or summed."""
        return f"sum of {self.of}" if self.summed else self.of

    @property
    def heading(self) -> str:
        """The heading of the number to quote."""
        return "estimate" if not self.printed else "sum" if self.summed else "count"

    def plain(self) -> Document:
        """As plain data for the page."""
        return {
            "axes": list(self.names),
            "words": self.words,
            "of": self.of,
            "noun": self.noun,
            "heading": self.heading,
            "whole": np.issubdtype(self.base.dtype, np.integer),
            "file": self.file,
            "columns": columns(self.base, low=self.low, high=self.high, **self.more),
            "flags": marks(self.flags),
        }

    def rows(self, schema: Schema) -> PageTable:
        """Its rows where they are few, or the first of them: for paper, and without a script."""
        levels = [schema.shown_levels(name) for name in self.names]
        size = self.base.size
        rows = [
            [
                *(level_names[i] for level_names, i in zip(levels, cell, strict=True)),
                _amount(self.base[cell]),
                *([] if self.low is None else [self._between(cell)]),
            ]
            for cell in islice(np.ndindex(*self.base.shape), PAPER if size <= PAPER else FIRST_ROWS)
        ]
        titles = [
            *(PageColumn(schema.shown(name)) for name in self.names),
            PageColumn(self.heading, number=True),
            *([] if self.low is None else [PageColumn(f"{COVER} interval", number=True)]),
        ]
        page_table = table(titles, rows)
        return PageTable(page_table.columns, page_table.rows, of=size, file=self.file)

    def _between(self, cell: tuple[int, ...]) -> str:
        low, high, value = self.low[cell], self.high[cell], self.base[cell]
        if self.exact[cell]:
            return "exact"
        if value == 0 and low >= 0 and isinstance(value, np.integer):
            return f"probably fewer than {_amount(high + 1)}"
        return f"{_amount(low)} to {_amount(high)}"

    def leading(self, schema: Schema) -> Headline | None:
        """A number that is not exact, to open the page with: the largest, if its interval lies
        above all others, and otherwise the first. The largest of many like cells would be chosen by
        noise, and then its interval misses more often than it says.
        """
        open_cells = np.flatnonzero(~np.reshape(self.exact, -1))
        if not open_cells.size:
            return None
        flat = np.reshape(self.base, -1)[open_cells]
        chosen = int(np.argmax(flat))
        lowest = -np.inf if self.low is None else np.reshape(self.low, -1)[open_cells[chosen]]
        if not np.all(np.delete(flat, chosen) < lowest):
            chosen = 0
        at = np.unravel_index(open_cells[chosen], self.base.shape)
        levels = [schema.shown_levels(name)[i] for name, i in zip(self.names, at, strict=True)]
        where = zip(map(schema.shown, self.names), levels, strict=True)
        label = ", ".join(f"{name} {level}" for name, level in where) or self.noun
        label = f"{label} ({self.noun})" if self.summed and self.names else label
        reach = "" if self.low is None else f"{COVER} interval {self._between(at)}"
        return Headline(label, _amount(self.base[at]), reach)


def _words(release: TablesRelease, names: tuple[str, ...]) -> str:
    """A table in words, with what it is of where the release has several measures."""
    beside = release.counted is not None or release.description.beside or release.file_end
    of = f", {_nouns(release.description)}" if beside else ""
    return f"{table_words(release.schema, names)}{of}"


@dataclass(frozen=True)
class FurtherColumns:
    """Columns for analysts, and standard deviations with all digits; None where they depend on the
    data.
    """

    columns: Document
    deviations: Any


def _for_analysts(
    release: TablesRelease, names: tuple[str, ...], numbers: Document
) -> FurtherColumns:
    """Further columns, with as many digits as the CSV file has."""
    import pyarrow as pa

    columns: Document = {}
    deviations = None
    if numbers["estimate"] is not None:
        deviations = release.in_units(release.estimator.deviations(names).values)
        pair = {"estimate": numbers["estimate"].reshape(-1), "sd": np.reshape(deviations, -1)}
        short = rounded(pa.table(pair), "estimate")
        columns = {name: short[name].to_numpy() for name in pair}
    drawn = zip(release.description.measured, release.drawn, strict=True)
    values = next((v for law, v in drawn if law.table == names), None)
    if values is not None and len(release.drawn) > 1:
        columns["drawn"] = release.in_units(values)
    if release.description.magnitude is not None:
        with suppress(InferenceError):  # people are not known, or too few beside their noise
            means = release.means(names, LEVEL).to_pydict()
            columns |= {f"m_{key}": np.array(means[key], dtype=float) for key in MEANS}
    return FurtherColumns(columns, deviations)


def _page_rows(release: TablesRelease, shown: Sequence[TableNumbers]) -> str:
    """The data block of the page."""
    schema = release.schema
    names = dict.fromkeys(name for page_table in shown for name in page_table.names)
    return packed(
        {
            "release": release.name,
            "cite": cite(release),
            "level": COVER,
            "columns": [{"key": key, "title": title} for key, title in FURTHER],
            "axes": {name: _axis(schema, name) for name in names},
            "map": _outlines(schema) if schema.about.map else None,
            "tables": [page_table.plain() for page_table in shown],
        }
    )


def _axis(schema: Schema, name: str) -> Document:
    """An axis: its name and levels for readers; `codes` where the data have others."""
    axis, levels = schema.axis(name), schema.shown_levels(name)
    attribute = schema.attribute(axis.base)
    own = attribute.kind != "categorical" and axis.name == axis.base
    ends = attribute.intervals
    widths = {high - low for low, high in ends if low is not None and high is not None}
    return {
        "title": schema.shown(name),
        "levels": list(levels),
        **({} if levels == axis.levels else {"codes": list(axis.levels)}),
        "ordered": own,
        "uneven": own and len(widths) > 1,
    }


def _outlines(schema: Schema) -> Document:
    """The map of the plan as paths."""
    shapes = schema.about.map
    assert shapes is not None
    paths = {
        level: "".join("M" + "L".join(f"{x} {y}" for x, y in ring) + "Z" for ring in rings)
        for level, rings in shapes.rings.items()
    }
    return {"axis": shapes.axis, "width": WIDTH, "height": shapes.height, "paths": paths}


def _file(release: TablesRelease, names: tuple[str, ...], ending: str = "csv") -> str:
    tables = release.description.tables
    at = tables.index(names) if names in tables else 0
    return f"{file_name(tables, at)}{release.file_end}.{ending}"


def _numbers(release: TablesRelease, names: tuple[str, ...]) -> Document:
    """Counts where they are printed, estimates, and the ends of their intervals where errors have a
    law that does not depend on the data.
    """
    counts = release.margin(*names) if release.prints(*names) else None
    numbers: Document = {**dict.fromkeys(COLUMNS), "count": counts}
    try:
        columns = release.intervals(names, LEVEL)
    except UnansweredError:  # counts drawn given their signs
        return numbers
    shape = [axis.size for axis in release.schema.axes(names)]
    for name in COLUMNS[1:] if release.has_errors else ENDS_OF_EXACT:
        numbers[name] = np.reshape(columns[name].to_numpy(zero_copy_only=False), shape)
    return numbers


def _amount(value: Any) -> str:
    """A printed number: whole, or with two decimals where steps are not whole."""
    return f"{value:,.2f}" if isinstance(value, np.floating) else f"{int(value):,}"


def table_words(schema: Schema, names: Sequence[str]) -> str:
    """A table in words: the labels of its columns, or their names where they have none."""
    return " × ".join(map(schema.shown, names)) or "total"


def _measured(release: TablesRelease | PartedRelease) -> PageTable:
    """Cells, whether measured, worst standard deviation and, of a nation, files of each table."""
    description = release.description
    measured = {
        (measure.of, law.table) for measure in description.measures for law in measure.measured
    }
    below = release.worst if isinstance(release, PartedRelease) else None
    columns = [
        PageColumn("table"),
        PageColumn("cells", number=True),
        PageColumn("measured"),
        PageColumn("standard deviation", number=True),
        *([] if below is None else [PageColumn("files")]),
    ]
    rows = []
    of = [measure.of for measure in description.measures for _ in release.tables]
    for at, (name, deviation) in enumerate(_worst(release)):
        names = description.printed[at]
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
        (f"{name}, {_nouns(measure.description)}", sd)
        for measure in release.measures
        for name, sd in zip(words, measure.largest_sds, strict=True)
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
    description = release.description
    drawn = f"the randomness of the {release.randomness}"
    rows: Facts = []
    if isinstance(release, TablesRelease) and description.only_law is not None:
        law_support = support(description.support, description.only_law.table)
        rows += [
            ("Structure", law_support.words),
            ("Mechanism", f"{description.only_law.mechanism}: {_mechanism_words(release)}"),
            ("Noise", f"{FAMILY_WORDS[description.family]}, {description.only_law.law}"),
        ]
    else:
        rows.append(("Noise", description.measured[0].law))
    rows += [
        (f"Noise of {_nouns(measure)}", measure.measured[0].law) for measure in description.beside
    ]
    rows.append(("Drawn from", drawn if release.publishable else release.randomness))
    if description.design:
        rows += [
            ("Shared out", f"aim: {description.design.get('aim', '-')}"),
            ("How near the best", description.design.get("words", "-")),
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
    rounded = number(value)
    return rounded if Fraction(rounded) == value else f"{rounded} (exactly {value})"


def _other_norm(drawn: DrawnTable) -> Facts:
    """The noise and the farthest pair, in the norm of the law."""
    unit, parameter, apart = _OTHER_NORMS[drawn.description.norm]
    most = largest_change(drawn.description, drawn.adjacency)
    words = f"{parameter} = {_exactly(drawn.description.scale)}"
    return [
        (f"Per unit of {unit} (the noise)", words),
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
        words = f"H = {small(float(description.log_ratio_error))}"
        rows.append(("Numerics, counted in the promise", words))
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
    for measure in release.description.beside:
        lines += ["", f"# the same for sums of {measure.of}, and means"]
        lines += [f"sums = release.measure({literal(measure.of)})", f"sums.to_pandas({axes})"]
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
