"""A map: areas shaded by class, with a legend."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from congenial.data.about import WIDTH, MapShapes, Ring
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
