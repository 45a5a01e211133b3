"""What data are about, in the words of who publishes them: title, agency, reference date, contact,
the release to quote; and a map of areas.

Public and for readers only: no number depends on it, and no digest of a schema covers it. A map is
read from a GeoJSON file that a plan names. The file may come from anywhere, so it is read within
limits, and only what a picture needs is kept: for every level a few polygons on a grid of whole
numbers, which `schema.json` of a bundle carries.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from congenial.data.attribute import check_name
from congenial.errors import SchemaError

QUOTE = "Release to quote where several show the same number"
KEY = "$about"  # in a schema as plain data, beside its attributes
WORDS = ("title", "agency", "date", "contact", "quote")


@dataclass(frozen=True)
class ReliabilityLimits:
    """Standard deviations relative to a number, up to which it is called good, and of some use.

    Without others those of Statistics Canada's rules for releasing survey estimates.

    >>> ReliabilityLimits().words
    'good: sd up to 16.5 % of the number; caution: up to 33.3 %; else poor'
    """

    good: float = 0.165
    caution: float = 0.333

    def __post_init__(self) -> None:
        if not 0 < self.good < self.caution < math.inf:
            raise SchemaError(
                f"about: reliability = [{self.good:g}, {self.caution:g}] is not two rising shares.",
                remedy="Write the largest relative standard deviation of a good number, then that "
                "of one to use with care: reliability = [0.165, 0.333].",
            )

    @property
    def percent(self) -> tuple[str, str]:
        """Both in per cent."""
        return f"{100 * self.good:.3g} %", f"{100 * self.caution:.3g} %"

    @property
    def words(self) -> str:
        """What the classes mean, in a line."""
        good, caution = self.percent
        return f"good: sd up to {good} of the number; caution: up to {caution}; else poor"


DEFAULT = ReliabilityLimits()


@dataclass(frozen=True)
class About:
    """Words for readers, each of which may be empty, what reliable means, and outlines of areas.

    >>> About(title="Census 2020", date="2020-04-01").told
    (('Reference date', '2020-04-01'),)
    """

    title: str = ""
    agency: str = ""
    date: str = ""
    contact: str = ""
    quote: str = ""  # the release to quote where several show the same number
    reliability: ReliabilityLimits = DEFAULT
    map: MapShapes | None = None

    def __post_init__(self) -> None:
        for key, value in self._words().items():
            check_name(value, f"about: {key}")

    def _words(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in WORDS if getattr(self, key)}

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """What stands below the title."""
        pairs = (
            ("Published by", self.agency),
            ("Reference date", self.date),
            ("Contact", self.contact),
            (QUOTE, self.quote),
        )
        return tuple(pair for pair in pairs if pair[1])

    def to_dict(self) -> dict[str, Any]:
        """What is not empty."""
        limits = self.reliability
        own = {} if limits == DEFAULT else {"reliability": [limits.good, limits.caution]}
        return self._words() | own | ({} if self.map is None else {"map": self.map.to_dict()})

    @classmethod
    def from_dict(cls, mapping: object) -> About:
        """Inverse of `to_dict`."""
        if not isinstance(mapping, Mapping) or not set(mapping) <= set(cls.__annotations__):
            raise SchemaError(
                "the description of the data ([about]) has an unknown key.",
                remedy=f"Use {', '.join(cls.__annotations__)}.",
            )
        told = dict(mapping)
        if "reliability" in told:
            told["reliability"] = ReliabilityLimits(*map(float, told["reliability"]))
        if "map" in told:
            told["map"] = MapShapes.from_dict(told["map"])
        return cls(**told)


# Maps ---------------------------------------------------------------------------------------------

Point = tuple[int, int]
Ring = tuple[Point, ...]

LARGEST_FILE = 64 * 2**20  # bytes
MOST_POINTS = 3_000_000  # in the file
MOST_KEPT = 30_000  # of all outlines together
WIDTH = 720  # of the grid; its height is at most twice that
HEIGHT = 2 * WIDTH
_FEW = 4  # points of a closed ring, the first of them twice


@dataclass(frozen=True)
class MapShapes:
    """Outlines of levels of one axis: rings on a grid, x to the right and y downwards.

    `height`: of the grid, whose width is `WIDTH`. A level without an outline has no entry.
    """

    axis: str
    height: int
    rings: Mapping[str, tuple[Ring, ...]]

    def __post_init__(self) -> None:
        points = [point for rings in self.rings.values() for ring in rings for point in ring]
        inside = all(0 <= x <= WIDTH and 0 <= y <= self.height for x, y in points)
        if not self.rings or len(points) > MOST_KEPT or not 0 < self.height <= HEIGHT or not inside:
            raise SchemaError(
                "the outlines of the map are not on their grid.",
                remedy="Name the GeoJSON file in the plan again.",
            )

    def to_dict(self) -> dict[str, Any]:
        """As plain data: each ring as x, y, x, y and so on."""
        flat = {
            level: [[number for point in ring for number in point] for ring in rings]
            for level, rings in self.rings.items()
        }
        return {"axis": self.axis, "height": self.height, "rings": flat}

    @classmethod
    def from_dict(cls, mapping: object) -> MapShapes:
        """Inverse of `to_dict`."""
        try:
            axis, height, rings = (mapping[key] for key in ("axis", "height", "rings"))  # type: ignore[index]
            pairs = {str(level): tuple(map(_pairs, outlines)) for level, outlines in rings.items()}
            if len(mapping) == 3 and isinstance(axis, str) and type(height) is int:  # type: ignore[arg-type]
                return cls(axis, height, pairs)
        except (KeyError, TypeError, ValueError, AttributeError):
            pass
        raise SchemaError("the outlines of the map cannot be read.", remedy="See the plan.")


def _pairs(flat: Sequence[object]) -> Ring:
    """A ring from x, y, x, y; ValueError for anything but whole numbers in pairs."""
    numbers = [number for number in flat if type(number) is int]
    if len(numbers) != len(flat) or len(numbers) % 2:
        raise ValueError
    return tuple(zip(numbers[::2], numbers[1::2], strict=True))


def read_map(path: Path, name: str, key: str, axis: str, levels: Sequence[str]) -> MapShapes:
    """The outlines of `levels` in a GeoJSON file: of features whose property `key` names one.

    `name` is how the plan writes the file. Features of other areas are passed over. SchemaError
    for what is no GeoJSON, is too large, or has none of the levels.
    """
    outlines: dict[str, list[list[tuple[float, float]]]] = {}
    wanted, budget = set(levels), _Budget(name)
    for feature in _features(_document(path, name), name):
        level = _code(feature, key)
        if level in wanted:
            outlines.setdefault(level, []).extend(_outlines(feature.get("geometry"), budget))
    outlines = {level: outlines[level] for level in levels if outlines.get(level)}
    if not outlines:
        raise SchemaError(
            f"no feature of '{name}' has a category of '{axis}' in its property '{key}'.",
            remedy="Name the property with the codes in about.map.property.",
        )
    return _on_a_grid(outlines, axis)


class _Budget:
    """Counts the points that were read."""

    def __init__(self, name: str) -> None:
        self.name, self.left = name, MOST_POINTS

    def spend(self, points: int) -> None:
        self.left -= points
        if self.left < 0:
            raise SchemaError(
                f"'{self.name}' has more than {MOST_POINTS:,} points.",
                remedy="Simplify the outlines first.",
            )


def _document(path: Path, name: str) -> Any:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise SchemaError(
                f"'{name}' is larger than {LARGEST_FILE >> 20} MB.",
                remedy="Simplify the outlines first.",
            )
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as reason:
        raise SchemaError(
            f"'{name}' cannot be read: {reason.strerror}.",
            remedy="Check the path; it is relative to the plan's folder.",
        ) from None
    except (ValueError, RecursionError):
        raise _no_geojson(name) from None


def _no_geojson(name: str) -> SchemaError:
    return SchemaError(
        f"'{name}' is not a GeoJSON file.", remedy="Give a FeatureCollection of areas in UTF-8."
    )


def _features(document: Any, name: str) -> Iterator[dict[str, Any]]:
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list) or document.get("type") != "FeatureCollection":
        raise _no_geojson(name)
    for feature in features:
        if isinstance(feature, dict):
            yield feature


def _code(feature: Mapping[str, Any], key: str) -> str:
    """The code of a feature: its property, or its id where the key is "id"."""
    properties = feature.get("properties")
    value = properties.get(key) if isinstance(properties, dict) else None
    if value is None and key == "id":
        value = feature.get("id")
    return str(value) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _outlines(geometry: Any, budget: _Budget) -> list[list[tuple[float, float]]]:
    """The rings of a polygon or of several; SchemaError for coordinates that are no numbers."""
    kind = geometry.get("type") if isinstance(geometry, dict) else None
    if kind not in ("Polygon", "MultiPolygon"):
        return []
    try:
        coordinates = geometry["coordinates"]
        polygons = [coordinates] if kind == "Polygon" else coordinates
        rings = [ring for polygon in polygons for ring in polygon]
        budget.spend(sum(map(len, rings)))
        read = [[(float(point[0]), float(point[1])) for point in ring] for ring in rings]
    except (KeyError, TypeError, ValueError, IndexError, OverflowError):
        read = [[(math.nan, math.nan)]]
    if not all(abs(x) < 1e12 and abs(y) < 1e12 for ring in read for x, y in ring):
        raise SchemaError(
            f"'{budget.name}' has coordinates that are not numbers.", remedy="Check the file."
        )
    return [ring for ring in read if len(ring) >= _FEW]


def _on_a_grid(
    outlines: Mapping[str, Sequence[Sequence[tuple[float, float]]]], axis: str
) -> MapShapes:
    """Outlines in whole numbers, coarse enough to be carried by a page."""
    points = [point for rings in outlines.values() for ring in rings for point in ring]
    if not points:
        raise SchemaError(
            f"the areas of '{axis}' have no outlines.", remedy="Check the map's file."
        )
    xs, ys = [x for x, _ in points], [y for _, y in points]
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    degrees = max(map(abs, xs)) <= 360 and max(map(abs, ys)) <= 90
    squeeze = math.cos(math.radians((low + high) / 2)) if degrees else 1.0
    wide, tall = (right - left) * squeeze, high - low
    scale = min(WIDTH / wide if wide else math.inf, HEIGHT / tall if tall else math.inf)
    if not math.isfinite(scale):
        raise SchemaError(
            f"the areas of '{axis}' are all one point.", remedy="Check the map's file."
        )

    def rings_of(step: int) -> dict[str, tuple[Ring, ...]]:
        def place(x: float, y: float) -> Point:
            across, down = (x - left) * squeeze * scale, (high - y) * scale
            return step * round(across / step), step * round(down / step)

        placed = {
            level: tuple(_plain([place(*point) for point in ring]) for ring in rings)
            for level, rings in outlines.items()
        }
        return {level: _kept(rings) for level, rings in placed.items()}

    step = 1
    rings = rings_of(step)
    while sum(len(ring) for told in rings.values() for ring in told) > MOST_KEPT:
        step *= 2
        rings = rings_of(step)
    height = max(y for told in rings.values() for ring in told for _, y in ring)
    return MapShapes(axis, max(1, min(HEIGHT, height)), _clipped(rings))


def _clipped(rings: Mapping[str, tuple[Ring, ...]]) -> dict[str, tuple[Ring, ...]]:
    """Within the grid, where a coarse step rounded beyond it."""
    return {
        level: tuple(
            tuple((min(x, WIDTH), min(y, HEIGHT)) for x, y in ring) for ring in level_rings
        )
        for level, level_rings in rings.items()
    }


def _kept(rings: Sequence[Ring]) -> tuple[Ring, ...]:
    """Rings that are seen; the largest where none is, so that no area is lost."""
    visible = tuple(ring for ring in rings if len(ring) >= _FEW)
    return visible or tuple(sorted(rings, key=len)[-1:])


def _plain(points: Sequence[Point]) -> Ring:
    """Without points that repeat the one before or lie on the line between their neighbours."""
    corners: list[Point] = []
    for point in points:
        if corners and corners[-1] == point:
            continue
        if len(corners) > 1 and _on_a_line(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return tuple(corners)


def _on_a_line(first: Point, middle: Point, last: Point) -> bool:
    (ax, ay), (bx, by), (cx, cy) = first, middle, last
    return (bx - ax) * (cy - ay) == (cx - ax) * (by - ay)
