"""The report's section on values and uncertainty: pictures where they can be drawn, else tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from congenial.mechanisms.released import EXACT_LAW
from congenial.mechanisms.single_table_release import Release
from congenial.report import pictures
from congenial.report.page import (
    LARGEST_TABLE,
    PageColumn,
    PageTable,
    Picture,
    amount,
    folded_table,
)
from congenial.report.pictures import Pen, cells_chart, margin_chart, noise_chart, pair_chart
from congenial.report.views import (
    LEVEL,
    MOST_CELLS,
    Shown,
    View,
    cell_noise,
    chosen_words,
    held_words,
    one_way,
    piece_of,
    shown,
    sums_words,
    view,
)

SUM_IT = "table.csv (sum {column} over the other columns)"


@dataclass(frozen=True)
class ShownPiece:
    """One part of the section: a picture, or words in its place, and the numbers."""

    title: str
    words: str = ""
    picture: Picture | None = None
    numbers: PageTable | None = None
    maps: tuple[Picture, ...] = ()


@dataclass(frozen=True)
class ValuesSection:
    """How to read the values, and the parts; `hint`: software to draw pictures is missing."""

    reading: str
    hint: bool
    pieces: tuple[ShownPiece, ...]


def values_section(release: Release, pen: Pen = pictures) -> ValuesSection:
    """Margins, one piece of the table, the law of the noise, and the table itself."""
    draw, small = pen.available(), release.values.size <= MOST_CELLS
    margins = {name: shown(release, (name,)) for name in one_way(release)}
    pieces = []
    for name, rows in margins.items():
        address = pen.draw(margin_chart, release, name, rows) if draw else None
        pieces.append(_sums(release, (name,), rows, address))
    piece = view(release)
    if piece is not None and piece.panels is not None and piece.held:
        rows = shown(release, piece.names)
        address = pen.draw(pair_chart, release, piece, rows) if draw else None
        pieces.append(_sums(release, piece.names, rows, address))
    if draw and small and piece is not None and len(release.table) > 1:
        pieces.append(_cells(release, piece, pen))
    if small and release.mechanism.additive:
        pieces.append(_noise(release, pen))
    reading = _reading(release, margins.values())
    return ValuesSection(reading, bool(pieces) and not draw, (*pieces, _table(release, small)))


def _reading(release: Release, margins: Iterable[Sequence[Shown]]) -> str:
    if not release.mechanism.additive:
        return (
            "Points are counts as drawn. They were drawn given that "
            f"{release.description.conditions}, so their error depends on the confidential table "
            "and no interval holds for all of them; what can be inferred is said under How to use "
            "it. A sum that is published exactly is marked by a hollow diamond. Axes need not "
            "start at zero."
        )
    small = release.values.size <= MOST_CELLS
    cells = shown(release, release.table) if small else []
    simulated = any(one.simulated for rows in (*margins, cells) for one in rows)
    why = (
        "simulated from the law of the noise, which is public, wherever that law is not tabulated "
        "(half-widths are then upper confidence bounds)"
        if simulated
        else f"exact because {EXACT_LAW.removeprefix('exact: ')}"
    )
    return (
        f"Points are counts as drawn; bars are {LEVEL:.0%} intervals for the true count, {why}. "
        "Bars are cut to what published sums allow, so a draw beyond that lies outside its bar. A "
        "sum that is published exactly has no interval and is marked by a hollow diamond. Axes "
        "need not start at zero."
    )


def _sums(
    release: Release, names: tuple[str, ...], rows: Sequence[Shown], address: str | None
) -> ShownPiece:
    """One margin: its picture with the numbers folded away, or the numbers alone."""
    title = " and ".join(release.schema.shown(name) for name in reversed(names))
    words = _width_words(rows)
    column = "count" if release.prints(*names) else "count_as_drawn"
    numbers = _rows(release, names, rows, SUM_IT.format(column=column))
    alternative = (
        f"Counts by {title}{_with_intervals(release)}, {len(rows)} sums; the numbers are in the "
        "table below."
    )
    picture = None if address is None else Picture(address, alternative, words)
    return ShownPiece(f"By {title}", words, picture, numbers, _maps(release, names, rows))


def _maps(release: Release, names: tuple[str, ...], rows: Sequence[Shown]) -> tuple[Picture, ...]:
    """Maps of a margin, where the plan names outlines of its areas."""
    if release.schema.about.map is None:
        return ()
    from congenial.report.map_section import maps_of

    shape = [release.schema.axis(name).size for name in names]
    values, *ends = (
        np.array([getattr(one, key) for one in rows]).reshape(shape)
        for key in ("value", "low", "high")
    )
    low, high = ends if release.mechanism.additive else (None, None)
    return maps_of(release.schema, names, values, low, high, f"{LEVEL:.0%}")


def _with_intervals(release: Release) -> str:
    return f" with {LEVEL:.0%} intervals" if release.mechanism.additive else ""


def _rows(release: Release, names: Sequence[str], sums: Sequence[Shown], file: str) -> PageTable:
    """The numbers behind a picture; sums that are no printed counts are those drawn."""
    prints = release.prints(*names)
    projected = release.raw is not None and prints
    counts = "count" if prints else "count as drawn"
    shown = release.schema.shown
    columns = [*(PageColumn(shown(name)) for name in names), PageColumn(counts, number=True)]
    if projected:
        columns.append(PageColumn("count as drawn", number=True))
    bounded = release.mechanism.additive
    if bounded:
        columns += [PageColumn(f"{LEVEL:.0%} from", number=True), PageColumn("to", number=True)]
    columns.append(PageColumn("note"))
    rows = [
        [
            *one.labels,
            one.value,
            *([one.drawn] if projected else []),
            *([one.low, one.high] if bounded else []),
            "exact" if one.exact else "",
        ]
        for one in sums[:LARGEST_TABLE]
    ]
    return folded_table(columns, rows, len(sums), file)


def _width_words(sums: Sequence[Shown]) -> str:
    """How wide the intervals are, because on a long scale they can be narrower than a point."""
    noisy = [one for one in sums if not one.exact]
    if noisy and all(one.low == one.high for one in noisy):
        return "Values without intervals."
    if not noisy:
        return "All of these follow from published figures: they are exact."
    nearest = [min(max(one.drawn, one.low), one.high) for one in noisy]
    half = max(max(o.high - at, at - o.low) for o, at in zip(noisy, nearest, strict=True))
    typical = float(np.median([abs(one.drawn) for one in noisy]))
    share = f", {100 * half / typical:.2g}% of the median" if typical > half else ""
    return f"Intervals reach at most {amount(half)} to either side{share}."


def _cells(release: Release, piece: View, pen: Pen) -> ShownPiece:
    where = held_words(release, piece)
    chosen = f"One piece of the table, {where}{chosen_words(release, piece)}. " if where else ""
    _, kinds = piece_of(release, piece)
    alternative = (
        f"Single cells {where} by {piece.words}{_with_intervals(release)}; the numbers are in "
        "table.csv."
    )
    address = pen.draw(cells_chart, release, piece)
    caption = chosen + sums_words(release, kinds)
    return ShownPiece("Single cells", picture=Picture(address, alternative, caption))


def _noise(release: Release, pen: Pen) -> ShownPiece:
    noise = cell_noise(release)
    deviation, half = (amount(round(x, 2)) for x in (noise.standard_deviation, noise.half_width))
    words = (
        f"In a cell with as much noise as any: standard deviation {deviation}; in {LEVEL:.0%} of "
        f"draws it is at most {half} in either direction. The law is public and the same whatever "
        "the data are."
    )
    if noise.simulated:
        words += " The picture is simulated, and made symmetric as the law is."
    alternative = f"Symmetric law, highest at zero; the middle, with {LEVEL:.0%}, is darker."
    picture = None
    if pen.available():
        picture = Picture(pen.draw(noise_chart, noise), alternative, words)
    return ShownPiece("The law of the noise in one cell", words, picture)


def _table(release: Release, small: bool) -> ShownPiece:
    if small:
        cells = shown(release, release.table)
        numbers = _rows(release, release.table, cells, "table.csv")
    else:
        numbers = _first_rows(release)
    return ShownPiece("The protected table", numbers=numbers)


def _first_rows(release: Release) -> PageTable:
    """The beginning of a table that is too large for intervals of every cell."""
    first = release.to_arrow().slice(0, LARGEST_TABLE)
    columns = [
        PageColumn(
            name.replace("_", " ") if name.startswith("count_") else name, name not in release.table
        )
        for name in first.column_names
    ]
    rows = [list(row) for row in zip(*(c.to_pylist() for c in first.columns), strict=True)]
    return folded_table(columns, rows, release.values.size, "table.csv")
