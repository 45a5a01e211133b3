"""The picture of values with their intervals, read back from its SVG."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np

from congenial.report.svg import IntervalRow, interval_rows, ticks

ROWS = [
    IntervalRow("Adams & sons", 40.0, 31.0, 47.0),
    IntervalRow("<b>Bucks</b>", 12.0, 12.0, 12.0, exact=True),
    IntervalRow("x" * 60, 0.0, 0.0, 9.0),
]


def test_points_and_bars_stand_where_the_axis_says() -> None:
    svg = interval_rows(ROWS)
    places = {
        float(said.replace(",", "")): float(x)
        for x, said in re.findall(r'<text x="([\d.]+)" [^>]*middle[^>]*>([^<]+)<', svg)
    }
    slope, start = np.polyfit(list(places), list(places.values()), 1)
    points = [float(x) for x in re.findall(r'<circle cx="([\d.]+)"', svg)]
    assert np.allclose(points, [start + slope * value for value in (40, 0)], atol=0.2)
    bars = [tuple(map(float, bar)) for bar in re.findall(r'd="M([\d.]+) \d+H([\d.]+)', svg)]
    wanted = [[start + slope * end for end in ends] for ends in ((31, 47), (0, 9))]
    assert np.allclose(bars, wanted, atol=0.2)


def test_labels_are_text_and_exact_values_diamonds() -> None:
    svg = interval_rows(ROWS)
    assert "Adams &amp; sons" in svg
    assert "<b>" not in svg
    assert "x" * 60 not in svg
    assert svg.count('fill="white"') == 1  # one exact value


def test_a_value_without_interval_is_a_point_and_not_exact() -> None:
    svg = interval_rows([IntervalRow("a", 3.0, 3.0, 3.0), IntervalRow("b", 9.0, 9.0, 9.0)])
    assert svg.count("<circle") == 2
    assert "white" not in svg
    assert "stroke-width" not in svg


def test_words_stay_inside_the_picture_and_apart() -> None:
    """At 6.7 pixels a letter, wider than most fonts have them."""
    svg = interval_rows([IntervalRow("M" * 60, 2e9, 1.9e9, 2.1e9), ROWS[0]])
    width = float(re.findall(r'viewBox="0 0 (\d+)', svg)[0])
    for x, said in re.findall(r'<text x="([\d.]+)" [^>]*"end"[^>]*>([^<]+)<', svg):
        assert float(x) - 6.7 * len(said) >= 0
    numbers = re.findall(r'<text x="([\d.]+)" [^>]*middle[^>]*>([^<]+)<', svg)
    spans = [(float(x) - 3.35 * len(said), float(x) + 3.35 * len(said)) for x, said in numbers]
    assert len(spans) >= 2
    assert all(one[1] < other[0] for one, other in pairwise(spans))
    assert spans[-1][1] <= width


def test_ticks_contain_what_is_drawn() -> None:
    rng = np.random.default_rng(2)
    for _ in range(200):
        low = float(rng.choice([0.0, -3.0, 0.2, 1e5]) + rng.random())
        high = low + float(rng.choice([0.0, 0.01, 7.0, 1e6]))
        for least in (0, 1):
            found = ticks(low, high, least)
            assert found[0] <= low + 1e-9
            assert found[-1] >= high - 1e-9
            assert 2 <= len(found) <= 9


def test_what_was_public_before_is_a_diamond_on_the_same_axis() -> None:
    rows = [IntervalRow("a", 3, 3, 3, before=70), IntervalRow("b", 9, 9, 9, before=0)]
    svg = interval_rows(rows, "released", "before: <x>.csv")
    assert svg.count("<circle") == svg.count("white") == 3  # and one of each in the legend
    assert "before: &lt;x&gt;.csv" in svg
    assert ">80<" in svg
