"""Outlines of areas from GeoJSON files: whatever a file holds, it is read or refused in words."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from congenial.data import about
from congenial.data.about import HEIGHT, MOST_KEPT, WIDTH, MapShapes, read_map
from congenial.errors import SchemaError

SQUARE = [[0, 0], [2, 0], [2, 1], [0, 1], [0, 0]]


def feature(code: Any, *polygons: Any, **more: Any) -> dict[str, Any]:
    geometry = {"type": "MultiPolygon", "coordinates": [list(one) for one in polygons]}
    return {"type": "Feature", "properties": {"code": code}, "geometry": geometry} | more


def moved(across: float, up: float) -> list[list[float]]:
    return [[x + across, y + up] for x, y in SQUARE]


def read(folder: Path, document: Any, levels: tuple[str, ...] = ("1", "2", "3")) -> MapShapes:
    path = folder / "areas.geojson"
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return read_map(path, "areas.geojson", "code", "area", levels)


def collection(*features: Any) -> dict[str, Any]:
    return {"type": "FeatureCollection", "features": list(features)}


def test_outlines_are_on_a_grid_with_north_at_the_top(tmp_path: Path) -> None:
    """Two areas side by side far from the equator; the second has an island to the north."""
    north = [moved(2, 60), moved(2, 62)]
    shapes = read(
        tmp_path, collection(feature(1, [moved(0, 60)]), feature("2", *([n] for n in north)))
    )
    assert list(shapes.rings) == ["1", "2"]  # the third has no outline
    (first,), (mainland, island) = shapes.rings["1"], shapes.rings["2"]
    assert max(x for x, _ in mainland) == WIDTH
    assert max(x for x, _ in first) == min(x for x, _ in mainland) == WIDTH // 2
    assert max(y for _, y in island) < min(y for _, y in mainland)
    assert abs(shapes.height / WIDTH - 3 / (4 * 0.4772)) < 0.01  # cos(61.5 degrees)
    again = MapShapes.from_dict(json.loads(json.dumps(shapes.to_dict())))
    assert again == shapes


def test_points_that_are_not_seen_are_dropped(tmp_path: Path) -> None:
    line = [[x / 1000, 0] for x in range(2001)]
    shapes = read(tmp_path, collection(feature("1", [[*line, [2, 1], [0, 1], [0, 0]]])))
    assert len(shapes.rings["1"][0]) == 5


def test_detailed_outlines_become_coarser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    random.seed(3)
    ring = [[random.uniform(0, 2), random.uniform(0, 1)] for _ in range(3000)]
    monkeypatch.setattr(about, "MOST_KEPT", 2000)
    shapes = read(tmp_path, collection(feature("1", [ring])))
    kept = [point for ring in shapes.rings["1"] for point in ring]
    assert 4 <= len(kept) <= 2000 < MOST_KEPT


def test_an_area_smaller_than_the_grid_is_not_lost(tmp_path: Path) -> None:
    tiny = [[x / 1e9, y / 1e9] for x, y in SQUARE]
    shapes = read(tmp_path, collection(feature("1", [SQUARE]), feature("2", [tiny])))
    assert shapes.rings["2"]


@pytest.mark.parametrize(
    "document",
    [
        "",
        "no json",
        "[" * 100_000,
        "[1, 2]",
        '{"type": "FeatureCollection", "features": {}}',
        {"type": "Topology", "features": []},
        collection(),
        collection(7, None, {"geometry": 3}),
        collection(feature("9", [SQUARE])),
        collection(feature(True, [SQUARE])),
        collection(feature("1", [[["a", "b"]] * 5])),
        collection(feature("1", [[[1]] * 5])),
        collection({"properties": {"code": "1"}}),
        collection(feature("1", [[[1, 1]] * 5])),  # one point
        json.dumps(collection(feature("1", [SQUARE]))).replace("2", "NaN"),
        json.dumps(collection(feature("1", [SQUARE]))).replace("2", "1e999"),
        json.dumps(collection(feature("1", [SQUARE]))).replace("2", "9" * 400),
    ],
)
def test_what_is_no_map_is_refused_in_words(tmp_path: Path, document: Any) -> None:
    with pytest.raises(SchemaError) as refused:
        read(tmp_path, document)
    assert refused.value.remedy


def test_limits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good = collection(feature("1", [SQUARE]))
    monkeypatch.setattr(about, "MOST_POINTS", 4)
    with pytest.raises(SchemaError, match="more than 4 points"):
        read(tmp_path, good)
    monkeypatch.setattr(about, "LARGEST_FILE", 100)
    with pytest.raises(SchemaError, match="larger than"):
        read(tmp_path, good)
    with pytest.raises(SchemaError, match="cannot be read"):
        read_map(tmp_path / "none", "none", "code", "area", ["1"])


GOOD: dict[str, Any] = {"axis": "area", "height": 10, "rings": {"1": [[0, 0, 5, 0, 5, 5, 0, 0]]}}


@pytest.mark.parametrize(
    "change",
    [
        {"height": HEIGHT + 1},
        {"height": "10"},
        {"rings": {}},
        {"rings": {"1": [[0, 0, 5]]}},
        {"rings": {"1": [[0, 0, WIDTH + 1, 0]]}},
        {"rings": {"1": [["0 0'/><script>", 0]]}},
        {"rings": {"1": [[True, 0]]}},
        {"rings": {"1": [[0, 0] * (MOST_KEPT + 1)]}},
        {"rings": 7},
        {"axis": 7},
        {"more": 1},
    ],
)
def test_outlines_of_a_bundle_are_read_strictly(change: dict[str, Any]) -> None:
    assert MapShapes.from_dict(GOOD).height == 10
    with pytest.raises(SchemaError):
        MapShapes.from_dict(GOOD | change)


def test_random_documents_are_read_or_refused(tmp_path: Path) -> None:
    """Parts of a good file replaced by others, anywhere in it."""
    random.seed(11)
    good = json.dumps(collection(feature("1", [SQUARE]), feature("2", [moved(2, 0)])))
    pieces = ["[]", "{}", "null", "-1", '"x"', "1e308", "[[", "]]", "true", ",", "", "0"]
    outcomes = set()
    for _ in range(400):
        at = random.randrange(len(good))
        text = good[:at] + random.choice(pieces) + good[at + random.randrange(4) :]
        try:
            outcomes.add(bool(read(tmp_path, text).rings))
        except SchemaError:
            outcomes.add(False)
    assert outcomes == {True, False}
