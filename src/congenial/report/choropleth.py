"""A map without any library: areas shaded by class, with a legend.

Drawn by hand as SVG, so that a page written anew is the same to the letter. As wide as a telephone:
a page makes it larger, never smaller.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape as text

from congenial.data.map_shapes import WIDTH, MapShapes, Ring

BLUES = ("#e3eef7", "#b3d0e8", "#74abd6", "#3a7fb8", "#0b4a80")
ORANGES = ("#ffffff", "#fdeedd", "#fbd0a2", "#f29f55", "#d2691e", "#8a3b00")
NOTHING = "#c9ced4"
INK, GREY, LINE = "#1c2530", "#5b6673", "#7b8794"
SIDE = 400  # width of the picture
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
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {SIDE} {height:.0f}" '
        f'font-family="sans-serif" font-size="13"><rect width="{SIDE}" height="{height:.0f}" '
        f'fill="#fff"/><text x="0" y="15" font-weight="bold" fill="{INK}">{text(title)}</text>'
        f'<g transform="translate(1 {TITLE}) scale({(SIDE - 2) / WIDTH:.5f})" stroke="{LINE}" '
        'stroke-width="1" stroke-linejoin="round" fill-rule="evenodd">'
    ]
    for level, rings in shapes.rings.items():
        fill = legend[classes[level]][0] if level in classes else NOTHING
        lines.append(f'<path fill="{fill}" d="{"".join(map(_path, rings))}"/>')
    lines.append("</g>")
    lines += [_entry(top + LEGEND * at, *entry) for at, entry in enumerate(legend)]
    svg = "".join([*lines, "</svg>"])
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _path(ring: Ring) -> str:
    return "M" + "L".join(f"{x} {y}" for x, y in ring) + "Z"


def _entry(y: float, colour: str, words: str) -> str:
    return (
        f'<rect x="1" y="{y:.0f}" width="{SWATCH}" height="{SWATCH}" fill="{colour}" '
        f'stroke="{LINE}"/><text x="{SWATCH + 8}" y="{y + 12:.0f}" fill="{GREY}">'
        f"{text(words)}</text>"
    )
