"""What data are about, in the words of who publishes them: title, agency, reference date, contact;
and a map of areas.

Public and for readers only: no number depends on it, and no digest of a schema covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from congenial.data.attribute import check_name
from congenial.errors import SchemaError

if TYPE_CHECKING:
    from congenial.data.map_shapes import MapShapes

KEY = "$about"  # in a schema as plain data, beside its attributes
WORDS = ("title", "agency", "date", "contact")


@dataclass(frozen=True)
class About:
    """Words for readers, each of which may be empty, and outlines of areas.

    >>> About(title="Census 2020", date="2020-04-01").told
    (('Reference date', '2020-04-01'),)
    """

    title: str = ""
    agency: str = ""
    date: str = ""
    contact: str = ""
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
        )
        return tuple(pair for pair in pairs if pair[1])

    def to_dict(self) -> dict[str, Any]:
        """What is not empty."""
        return self._words() | ({} if self.map is None else {"map": self.map.to_dict()})

    @classmethod
    def from_dict(cls, mapping: object) -> About:
        """Inverse of `to_dict`."""
        if not isinstance(mapping, Mapping) or not set(mapping) <= set(cls.__annotations__):
            raise SchemaError(
                "the description of the data ([about]) has an unknown key.",
                remedy=f"Use {', '.join(cls.__annotations__)}.",
            )
        words = {key: value for key, value in mapping.items() if key != "map"}
        if "map" not in mapping:
            return cls(**words)
        from congenial.data.map_shapes import MapShapes

        return cls(**words, map=MapShapes.from_dict(mapping["map"]))
