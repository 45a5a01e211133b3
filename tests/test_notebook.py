"""What notebooks show: escaped, and without a confidential number."""

from __future__ import annotations

import math
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from congenial import Schema, SeededRandomness, Table, calibrate
from congenial._notebook import intervals_picture
from congenial.figures import Figures, count, publish, total
from congenial.inference import Estimate, EstimateTable, Posterior
from congenial.ledger import Budget, Ledger
from congenial.mechanisms import Congenial, release_table
from congenial.pairs import SemiAdjacent
from congenial.privacy import Guarantee

RARE = 918_273  # a count that no page may show
HOSTILE = "<script>alert(1)</script>"
TAGS = {
    *("h4", "table", "tr", "th", "td", "p", "b"),
    *("svg", "title", "text", "line", "circle", "rect", "polyline"),
}


def schema() -> Schema:
    return Schema.from_dict(
        {
            "county": {"levels": [HOSTILE, "B & C", "D"]},
            "age": {"edges": [0, 18, 65], "top": "65+"},
        }
    )


def published() -> tuple[Table, Figures]:
    counts = np.array([[RARE, 2, 3], [4, 5, 6], [7, 8, 9]])
    table = Table(schema(), ("county", "age"), counts)
    figures = total(by="county").named("People & places", HOSTILE)
    return table, publish(table, figures, count("age >= 18", by="county"))


def views(folder: Path) -> dict[str, Any]:
    table, public = published()
    target = Guarantee.pure(1, under=SemiAdjacent(public))
    mechanism = calibrate(Congenial, target, table=["county", "age"])
    ledger = Ledger.open(folder / "l.sqlite", schema(), budget=Budget(epsilon=4), who=HOSTILE)
    ledger.publish(public)
    with ledger.reserve(mechanism.description, mechanism.guarantee, "by-age") as share:
        share.mark_drawn()
        share.commit("")
    return {
        "schema": schema(),
        "planned": Figures(schema(), (total(),)),
        "published": public,
        "mechanism": mechanism,
        "guarantee": mechanism.guarantee,
        "ledger": ledger,
        "release": release_table(mechanism, table, SeededRandomness(1), f"by age {HOSTILE}"),
    }


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    made = views(tmp_path_factory.mktemp("ledger"))
    return {name: one._repr_html_() for name, one in made.items()}


def test_nothing_is_left_unescaped(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        assert set(re.findall(r"</?(\w+)", page)) <= TAGS, name
    assert HOSTILE in unescape(pages["schema"])
    assert HOSTILE in unescape(pages["published"])
    assert HOSTILE in unescape(pages["ledger"])
    assert HOSTILE in unescape(pages["release"])


def test_no_count_is_shown(pages: dict[str, str]) -> None:
    for name, page in pages.items():
        words = re.sub(r"<svg.*</svg>", "", page, flags=re.DOTALL)  # pictures: of released values
        assert words == page or name in ("release", "guarantee")
        digits = re.sub(r"[,\s]", "", words if name == "release" else page)
        assert str(RARE) not in digits, name
        assert str(RARE + 2 + 3) not in digits, name  # the published total stays in its file


def test_each_says_what_it_is(pages: dict[str, str]) -> None:
    assert "Schema: 2 attributes" in pages["schema"]
    assert "<td>categorical</td><td>3</td>" in pages["schema"]
    assert "values not computed" in pages["planned"]
    assert "2 statements, with values" in pages["published"]
    assert "<th>Promise</th><td>epsilon = 1" in pages["mechanism"]
    assert "<th>Basis</th>" in pages["guarantee"]
    assert "epsilon = 1 of epsilon = 4" in pages["ledger"]
    assert "county (3) x age (3)</h4><p><b>" in pages["release"]  # seeded: not for publication
    assert "<th>Promise</th><td>epsilon = 1" in pages["release"]
    assert "<td>by-age</td><td>committed</td>" in pages["ledger"]


def places(page: str, tag: str, *names: str) -> list[tuple[float, ...]]:
    found = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    space = "{http://www.w3.org/2000/svg}"
    return [
        tuple(float(one.attrib[name]) for name in names)
        for svg in found
        for one in svg.iter(space + tag)
        if "stroke-dasharray" not in one.attrib
    ]


def test_pictures_show_the_numbers_in_order(pages: dict[str, str]) -> None:
    released = views_of_release()
    dots = [x for (x,) in places(released._repr_html_(), "circle", "cx")]
    values = released.margin("county", "age").reshape(-1)
    assert len(dots) == values.size == 9
    share = (values - values.min()) / (values.max() - values.min())
    assert np.allclose(dots, 170 + 270 * share, atol=0.06)
    (curve,) = re.findall(r'<polyline points="(.*?)"', pages["guarantee"])
    points = np.array([[float(x) for x in one.split(",")] for one in curve.split()])
    alpha, beta = (points[:, 0] - 30) / 160, (170 - points[:, 1]) / 160
    errors = np.maximum(1 - math.e * alpha, (1 - alpha) / math.e)  # of the best tests, epsilon = 1
    assert np.allclose(beta, np.maximum(errors, 0), atol=0.01)


def views_of_release() -> Any:
    table, public = published()
    target = Guarantee.pure(1, under=SemiAdjacent(public))
    mechanism = calibrate(Congenial, target, table=["county", "age"])
    return release_table(mechanism, table, SeededRandomness(1), "by age")


def test_estimates_and_posteriors_have_their_intervals_drawn() -> None:
    rows = [("a", 2.0, 1.0, 4.0), (HOSTILE, 3.0, 0.0, math.inf), ("c", math.nan, 0, 4.0)]
    estimates = EstimateTable(
        tuple(Estimate("share", *row[1:], 0.9, "exact law", {"county": row[0]}) for row in rows)
    )
    page = estimates._repr_html_()
    assert HOSTILE not in page
    lines = places(page, "line", "x1", "x2")
    axis = (170, 440)
    assert lines == [(170 + 270 / 4, 440), (170, 440), axis]  # none where an end is infinite
    assert [x for (x,) in places(page, "circle", "cx")] == [305, pytest.approx(372.5)]
    assert places(estimates[0]._repr_html_(), "circle", "cx") == [(pytest.approx(260),)]
    draws = np.arange(800.0).reshape(2, 400)
    posterior = Posterior({"rate": draws}, {"rate": ()}, "exact")
    ((mean,),) = places(posterior._repr_html_(), "circle", "cx")
    assert mean == pytest.approx(305, abs=0.1)  # in the middle of a symmetric interval


def test_nothing_finite_is_no_picture() -> None:
    assert intervals_picture("none", [("a", math.nan, math.nan, math.inf)]) == ""
