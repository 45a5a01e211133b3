"""A picture of Gaussian laws: a panel for each statistic, and in it, for each scenario, the density
of the statistic as fitted (solid) and with the noise added (dashed).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from congenial.report.svg import COLOURS, INK, address, axis, legend, room, short, ticks, words

WIDTH, PANEL, PLOT = 390, 172, 120
POINTS, REACH = 81, 3.2  # of a curve: points, and standard deviations to either side
DASHED = ' stroke-dasharray="5 4"'


@dataclass(frozen=True)
class LawCurve:
    """A statistic in one scenario: its mean, its standard deviation as fitted and with noise."""

    scenario: str
    mean: float
    fitted: float
    noisy: float


def law_curves(panels: Sequence[tuple[str, Sequence[LawCurve]]]) -> str:
    """The picture as the address of an `img`: for each statistic its name and its curves."""
    scenarios = list(dict.fromkeys(curve.scenario for _, curves in panels for curve in curves))
    colours = {name: COLOURS[at % len(COLOURS)] for at, name in enumerate(scenarios)}
    drawn = list(
        chain.from_iterable(
            _panel(PANEL * at, name, curves, colours) for at, (name, curves) in enumerate(panels)
        )
    )
    keys = [(colours[name], "", name) for name in scenarios]
    keys += [(INK, "", "as fitted"), (INK, DASHED, "with noise")]
    marks = [
        (f'<path d="M0 0h28" stroke="{colour}" stroke-width="2"{dash}/>', said)
        for colour, dash, said in keys
    ]
    end, below = legend(PANEL * len(panels) + 4, WIDTH, marks)
    return address(WIDTH, end, [*drawn, *below])


def _panel(top: float, name: str, curves: Sequence[LawCurve], colours: dict[str, str]) -> list[str]:
    """One statistic: its name, the axis of its values, and its curves; densities begin at 0."""
    ends = [curve.mean + side * REACH * curve.noisy for curve in curves for side in (-1, 1)]
    values = ticks(min(ends), max(ends))
    start, width = values[0], (values[-1] - values[0]) or 1.0
    least = min(min(curve.fitted, curve.noisy) for curve in curves)  # highest where it is narrowest
    plot, bottom, edge = top + 24, top + 24 + PLOT, room(values)
    drawn = [words(0, top + 14, short(name, WIDTH)), axis(values, edge, WIDTH - edge, plot, bottom)]
    for curve in curves:
        for deviation, dash in ((curve.fitted, ""), (curve.noisy, DASHED)):
            places = []
            for at in range(POINTS):
                z = REACH * (2 * at / (POINTS - 1) - 1)
                share = (curve.mean + z * deviation - start) / width
                height = least / deviation * math.exp(-z * z / 2)
                x = edge + share * (WIDTH - 2 * edge)
                places.append(f"{x:.1f} {bottom - (PLOT - 4) * height:.1f}")
            drawn.append(
                f'<path d="M{"L".join(places)}" fill="none" stroke="{colours[curve.scenario]}" '
                f'stroke-width="1.8"{dash}/>'
            )
    return drawn
