"""The picture of laws, read back from its SVG."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

from congenial.report.svg import LETTER, WIDTH, LawCurve, law_curves

LABELS = ("the share of records with ward = 'oncology' & more is 0.25", "a third")
PANELS = [
    ("mean age", [LawCurve(LABELS[0], 50.0, 1.0, 2.0), LawCurve(LABELS[1], 54.0, 1.5, 2.5)]),
    ("<b>cases</b>", [LawCurve(LABELS[0], -3e6, 5.0, 9.0), LawCurve(LABELS[1], -3e6, 5.0, 9.0)]),
]


def curves(svg: str) -> list[np.ndarray]:
    """The points of each curve, in order."""
    paths = re.findall(r'<path d="M([^"]+)" fill="none"', svg)
    return [np.array([list(map(float, one.split())) for one in path.split("L")]) for path in paths]


def numbers(svg: str) -> list[tuple[float, float, str]]:
    """The numbers at ticks: x, y, as written."""
    found = re.findall(r'<text x="([\d.-]+)" y="(\d+)" text-anchor="middle"[^>]*>([^<]+)<', svg)
    return [(float(x), float(y), said) for x, y, said in found]


def test_curves_stand_where_the_axis_says() -> None:
    svg = law_curves(PANELS)
    first = [(x, float(said)) for x, y, said in numbers(svg) if y < 172]
    slope, start = np.polyfit([value for _, value in first], [x for x, _ in first], 1)
    tops = [points[points[:, 1].argmin()] for points in curves(svg)[:4]]
    assert np.allclose([x for x, _ in tops], start + slope * np.array([50, 50, 54, 54]), atol=0.2)


def test_densities_begin_at_0_and_are_as_high_as_they_are_narrow() -> None:
    """Linear scales: twice the deviation is half the height."""
    heights = [points[:, 1].max() - points[:, 1].min() for points in curves(law_curves(PANELS))]
    base = np.exp(-(3.2**2) / 2)  # where a curve ends
    wanted = 116 * (1 - base) * np.array([1, 1 / 2, 1 / 1.5, 1 / 2.5])
    assert np.allclose(heights[:4], wanted, atol=0.2)


def test_scenarios_are_named_in_full_and_labels_are_text() -> None:
    svg = law_curves(PANELS)
    said = " ".join(re.findall(r">([^<]+)</text>", svg))
    assert "the share of records with ward = &#x27;oncology&#x27; &amp; more is 0.25" in said
    assert "&lt;b&gt;cases" in said
    assert "as fitted with noise" in said
    assert len(curves(svg)) == 8
    assert svg.count("stroke-dasharray") == 4 + 1


def test_numbers_stay_inside_the_picture_and_apart() -> None:
    found = numbers(law_curves(PANELS))
    for panel in {y for _, y, _ in found}:
        spans = [
            (x - LETTER * len(s) / 2, x + LETTER * len(s) / 2) for x, y, s in found if y == panel
        ]
        assert spans[0][0] >= 0
        assert spans[-1][1] <= WIDTH
        assert all(one[1] < other[0] for one, other in pairwise(spans))


@pytest.mark.parametrize("mean", [0.0, 1e-9, 1e17, -4e12])
def test_any_law_can_be_drawn(mean: float) -> None:
    """Also one that is narrower than its mean has digits."""
    svg = law_curves([("x", [LawCurve("a", mean, 1e-3, 2e-3), LawCurve("b", mean, 1, 2)])])
    assert "nan" not in svg
    assert len(curves(svg)) == 4
