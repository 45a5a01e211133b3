"""What data are about, in the words of who publishes them: title, agency, reference date, contact.

Public and for readers only: no number depends on it, and no digest of a schema covers it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from congenial.data.attribute import check_name
from congenial.errors import SchemaError

KEY = "$about"  # in a schema as plain data, beside its attributes


@dataclass(frozen=True)
class About:
    """Words for readers; each may be empty.

    >>> About(title="Census 2020", date="2020-04-01").told
    (('Reference date', '2020-04-01'),)
    """

    title: str = ""
    agency: str = ""
    date: str = ""
    contact: str = ""

    def __post_init__(self) -> None:
        for key, value in asdict(self).items():
            if value:
                check_name(value, f"about: {key}")

    @property
    def told(self) -> tuple[tuple[str, str], ...]:
        """What stands below the title."""
        pairs = (
            ("Published by", self.agency),
            ("Reference date", self.date),
            ("Contact", self.contact),
        )
        return tuple(pair for pair in pairs if pair[1])

    def to_dict(self) -> dict[str, str]:
        """What is not empty."""
        return {key: value for key, value in asdict(self).items() if value}

    @classmethod
    def from_dict(cls, mapping: object) -> About:
        """Inverse of `to_dict`."""
        if not isinstance(mapping, Mapping) or not set(mapping) <= set(cls.__annotations__):
            raise SchemaError(
                "what the data are about is not told in the known keys.",
                remedy=f"Use {', '.join(cls.__annotations__)}.",
            )
        return cls(**mapping)
