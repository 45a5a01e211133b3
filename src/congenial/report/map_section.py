"""Maps of a release: counts by area, and beside them how far they may be off.

For a plan that names a map, of the tables over the areas alone, or by one attribute with few
levels. Everything is released or public.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise, product
from typing import Any

import numpy as np

from congenial.data.about import WIDTH, MapShapes, Ring
from congenial.data.schema import Schema
from congenial.report.page import Picture, amount
from congenial.report.svg import GREY, INK, address, words

BLUES = ("#e3eef7", "#b3d0e8", "#74abd6", "#3a7fb8", "#0b4a80")
ORANGES = ("#ffffff", "#fdeedd", "#fbd0a2", "#f29f55", "#d2691e", "#8a3b00")
NOTHING = "#c9ced4"
BORDER = "#7b8794"
SIDE = 390  # width of the picture
LEGEND, SWATCH = 22, 14  # height of a line of the legend, side of its colour
TITLE = 24


def choropleth(
    shapes: MapShapes,
    classes: Mapping[str, int],
    legend: Sequence[tuple[str, str]],
    title: str,
) -> str:
    """Areas in the colours of their classes, as the address of an `img`.

    `classes`: for each level the place of its class in `legend`, which pairs colours with words;
    areas without a class are grey.
    """
    scale = SIDE / WIDTH
    top = TITLE + shapes.height * scale + 10
    height = top + LEGEND * len(legend)
    drawn = [
        f'<rect width="{SIDE}" height="{height:.0f}" fill="#fff"/>'
        f'<text x="0" y="15" font-weight="bold" fill="{INK}">{escape(title)}</text>'
        f'<g transform="translate(1 {TITLE}) scale({(SIDE - 2) / WIDTH:.5f})" stroke="{BORDER}" '
        'stroke-width="1" stroke-linejoin="round" fill-rule="evenodd">'
    ]
    for level, rings in shapes.rings.items():
        fill = legend[classes[level]][0] if level in classes else NOTHING
        drawn.append(f'<path fill="{fill}" d="{"".join(map(_path, rings))}"/>')
    drawn.append("</g>")
    drawn += [_entry(top + LEGEND * at, *entry) for at, entry in enumerate(legend)]
    return address(SIDE, height, drawn)


def _path(ring: Ring) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in ring) + "Z"


def _entry(y: float, colour: str, said: str) -> str:
    return (
        f'<rect x="1" y="{y:.0f}" width="{SWATCH}" height="{SWATCH}" fill="{colour}" '
        f'stroke="{BORDER}"/>{words(SWATCH + 8, y + 12, said, GREY)}'
    )


MOST_MAPS = 4  # levels of the other attribute that get a map each
MOST_UNNAMED = 8  # areas without an outline that are named
SHARES = (0.01, 0.05, 0.2, 0.5)  # classes of half-widths, relative to the count


@dataclass(frozen=True)
class AreaCount:
    """One area: its code, its count, and the interval around it (None where there is none)."""

    level: str
    count: float
    interval: tuple[float, float] | None


def _can_be_mapped(schema: Schema, shapes: MapShapes, names: Sequence[str]) -> bool:
    """Whether a table is over the areas, and at most one attribute with few levels."""
    others = [name for name in names if name != shapes.axis]
    few = math.prod(schema.axis(name).size for name in others) <= MOST_MAPS
    return shapes.axis in names and len(others) < 2 and few


def maps_of(
    schema: Schema, names: Sequence[str], counts: Any, low: Any, high: Any, level: str
) -> tuple[Picture, ...]:
    """Pictures of one table, two for each level of its other attribute: counts and uncertainty.

    `low`, `high`: arrays of the ends of intervals, or None where errors have no law.
    """
    shapes = schema.about.map
    pictures: list[Picture] = []
    if shapes is None or not _can_be_mapped(schema, shapes, names):
        return ()
    panels = list(_panels(schema, shapes, names, (counts, low, high)))
    ends = _classes([one.count for _, areas in panels for one in _drawn(shapes, areas)])
    for title, areas in panels:
        pictures.append(_counts(schema, shapes, title, areas, ends))
        if low is not None:
            pictures.append(_uncertainty(schema, shapes, title, areas, level))
    return tuple(pictures)


def _panels(
    schema: Schema, shapes: MapShapes, names: Sequence[str], arrays: Sequence[Any]
) -> Iterator[tuple[str, list[AreaCount]]]:
    """The areas of each level of the other attribute, and what they are called.

    `arrays`: counts, and both ends of intervals or None.
    """
    at = list(names).index(shapes.axis)
    others = [name for name in names if name != shapes.axis]
    shown = [schema.shown_levels(name) for name in others]
    codes = schema.axis(shapes.axis).levels
    for place in product(*(range(len(levels)) for levels in shown)):
        said = [levels[i] for levels, i in zip(shown, place, strict=True)]
        counts, low, high = (_along(one, at, place) for one in arrays)
        intervals = [None] * len(codes) if low is None else zip(low, high, strict=True)
        areas = [AreaCount(*told) for told in zip(codes, counts, intervals, strict=True)]
        yield ", ".join(said) or "All people", areas


def _along(array: Any, at: int, place: tuple[int, ...]) -> Any:
    """The numbers along one axis of an array, at a place of the others; None for no array."""
    if array is None:
        return None
    last = np.moveaxis(np.asarray(array), at, -1)
    return last[place].tolist()


def _drawn(shapes: MapShapes, areas: Sequence[AreaCount]) -> list[AreaCount]:
    """Areas that have an outline."""
    return [one for one in areas if one.level in shapes.rings]


def _counts(
    schema: Schema,
    shapes: MapShapes,
    title: str,
    areas: Sequence[AreaCount],
    ends: Sequence[float],
) -> Picture:
    """Areas in classes of their counts; `ends`: the largest count of each class, for all maps."""
    drawn = _drawn(shapes, areas)
    classes = {one.level: int(np.searchsorted(ends, one.count, side="left")) for one in drawn}
    legend = list(zip(_spread(len(ends)), _ranges(ends), strict=True))
    address = choropleth(shapes, classes, legend, f"{title}: count")
    alternative = (
        f"Map: {title}, count by {schema.shown(shapes.axis)}, {len(drawn)} areas in {len(ends)} "
        "classes; the numbers are in the table below."
    )
    return Picture(address, alternative, f"Darker: more people.{_unmapped(schema, shapes, areas)}")


def _classes(counts: Sequence[float]) -> list[float]:
    """Upper ends of at most five classes, each with about as many areas."""
    ordered = sorted(counts)
    cuts = [
        ordered[math.ceil(len(ordered) * part / len(BLUES)) - 1]
        for part in range(1, len(BLUES) + 1)
    ]
    return sorted(set(cuts))


def _spread(many: int) -> list[str]:
    """As many shades, from light to dark."""
    if many == 1:
        return [BLUES[2]]
    return [BLUES[round(at * (len(BLUES) - 1) / (many - 1))] for at in range(many)]


def _ranges(ends: Sequence[float]) -> list[str]:
    """Each class by the counts it ends at."""
    said = [amount(round(end, 1)) for end in ends]
    later = (f"more than {a}, up to {b}" for a, b in pairwise(said))
    return [f"up to {said[0]}", *later]


def _uncertainty(
    schema: Schema, shapes: MapShapes, title: str, areas: Sequence[AreaCount], level: str
) -> Picture:
    """Classes of how far an interval reaches, relative to the count."""
    drawn = _drawn(shapes, areas)
    classes = {one.level: _relative_class(one) for one in drawn}
    words = ["exact", *(f"up to {share:.0%}" for share in SHARES), f"more than {SHARES[-1]:.0%}"]
    legend = list(zip(ORANGES, words, strict=True))
    address = choropleth(shapes, classes, legend, f"{title}: how far off, at {level}")
    alternative = (
        f"Map: {title}, half the width of the {level} interval relative to the count, by "
        f"{schema.shown(shapes.axis)}; the intervals are in the table below."
    )
    return Picture(
        address, alternative, f"How far the {level} interval reaches, relative to the count."
    )


def _relative_class(area: AreaCount) -> int:
    low, high = area.interval or (0.0, math.inf)
    half = max(high - area.count, area.count - low)
    if half <= 0:
        return 0
    share = half / area.count if area.count > 0 else math.inf
    return 1 + sum(share > one for one in SHARES)


def _unmapped(schema: Schema, shapes: MapShapes, areas: Sequence[AreaCount]) -> str:
    labels = dict(
        zip(schema.axis(shapes.axis).levels, schema.shown_levels(shapes.axis), strict=True)
    )
    absent = [labels[one.level] for one in areas if one.level not in shapes.rings]
    if not absent:
        return ""
    more = f" and {len(absent) - MOST_UNNAMED} more" if len(absent) > MOST_UNNAMED else ""
    return f" Not on the map: {', '.join(absent[:MOST_UNNAMED])}{more}."
