"""The picture of "What is promised": how far odds move, by what somebody knows or believes.

`python docs/odds.py` writes docs/images/odds.svg. n areas have one resident each, and the totals of
areas are exact. Person j is thought to be in area j and ill, or in the next area and well, 1/2
each, independently. The totals leave two datasets; how far their odds move is worked out from the
law that the product draws from.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from congenial import Congenial, Guarantee, Schema, SemiAdjacent, Table, calibrate, publish, total

AREAS = (2, 4, 6, 8, 10)
SHOWN = 4  # areas of the drawing on the left
ILL, WELL, KNOWN = "#c2571a", "#fff", "#3465a4"


def moved(people: int) -> float:
    """How far the odds between the two datasets that are left move, in multiples of epsilon."""
    areas = [f"area {j}" for j in range(people)]
    schema = Schema.from_dict({"area": {"levels": areas}, "ill": {"levels": ["no", "yes"]}})
    ill, well = (
        Table(schema, schema.names, np.eye(2, dtype=np.int64)[[k] * people]) for k in (1, 0)
    )
    pairs = SemiAdjacent(publish(ill, total(by="area")))
    mechanism = calibrate(Congenial, Guarantee.pure(1, under=pairs), schema.names)
    one, other = (mechanism.log_density(ill.counts, table) for table in (ill, well))
    return float(one - other)


def picture() -> str:
    """Left: the two datasets; right: how far the odds of one person's answer move."""
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 860 300" font-family="sans-serif" '
        'font-size="13">\n<rect width="860" height="300" fill="#fff"/>\n'
        + _datasets(20)
        + _chart(470)
        + "</svg>\n"
    )


def _text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{more}>{words}</text>\n'


def _datasets(left: int) -> str:
    parts = [_text(left, 26, "What one resident per area leaves possible", ' font-size="15"')]
    for row, (title, fill) in enumerate(
        (("everybody in their own area, ill", ILL), ("everybody one area further, well", WELL))
    ):
        top = 62 + 110 * row
        parts.append(_text(left, top, title))
        for area in range(SHOWN):
            x, person = left + 100 * area, (area - row) % SHOWN + 1
            parts.append(
                f'<rect x="{x}" y="{top + 10}" width="88" height="60" fill="#eee"/>\n'
                f'<circle cx="{x + 44}" cy="{top + 34}" r="15" fill="{fill}" stroke="{ILL}" '
                'stroke-width="2"/>\n'
                + _text(x + 40, top + 39, str(person), f' fill="{WELL if row == 0 else ILL}"')
                + _text(x + 24, top + 64, f"area {area + 1}", ' font-size="11" fill="#555"')
            )
    parts.append(
        _text(
            left,
            282,
            "filled: ill; open: well. No other mixture agrees with the totals.",
            ' fill="#555"',
        )
    )
    return "".join(parts)


def _chart(left: int) -> str:
    wide, high, top, most = 320, 190, 50, AREAS[-1] / 2
    right, base = left + wide, top + high

    def at(people: float, moves: float) -> tuple[float, float]:
        return left + wide * people / (AREAS[-1] + 1), base - high * moves / (most + 0.5)

    parts = [
        _text(left - 30, 26, "How far the odds move, in multiples of epsilon", ' font-size="15"')
    ]
    parts.append(f'<path d="M{left} {top}V{base}H{right}" fill="none" stroke="#888"/>\n')
    for moves in range(1, int(most) + 1):
        parts.append(_text(left - 18, at(0, moves)[1] + 4, str(moves), ' fill="#555"'))
    for people in AREAS:
        parts.append(_text(at(people, 0)[0] - 6, base + 18, str(people), ' fill="#555"'))
    parts.append(_text(left + 110, base + 40, "people (one per area)", ' fill="#555"'))
    points = [at(people, moved(people)) for people in AREAS]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="{ILL}" stroke-width="2"/>\n')
    parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{ILL}"/>\n' for x, y in points]
    (first, y), (last, _) = at(AREAS[0], 1), at(AREAS[-1], 1)
    parts.append(
        f'<path d="M{first:.1f} {y:.1f}H{last:.1f}" stroke="{KNOWN}" stroke-width="2" '
        'stroke-dasharray="6 4"/>\n'
    )
    parts.append(_text(left + 20, top + 30, "independent beliefs: n / 2", f' fill="{ILL}"'))
    parts.append(_text(first + 40, y + 22, "knows all records but two: 1", f' fill="{KNOWN}"'))
    return "".join(parts)


if __name__ == "__main__":
    (Path(__file__).parent / "images" / "odds.svg").write_text(picture(), encoding="utf-8")
