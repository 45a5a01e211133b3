"""What every release that is no table has in common: statistics, counts given what is public,
synthetic records.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from congenial.mechanisms.released import Released
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee

FOLLOWS = "the promise follows from the description"


def _as_written(description: RecordDescription) -> str:
    """Every letter of it but the order of its keys: 1.0 and true are not 1."""
    return json.dumps(description.to_dict(), sort_keys=True)


class Made(Protocol):
    """A mechanism, as far as a release can be compared with it."""

    @property
    def description(self) -> RecordDescription:
        """Its law."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""


@dataclass(frozen=True)
class RecordRelease(Released):
    """A release the ledger knows by what one record does to it.

    Subclasses add what was released, how it becomes files (`payload`), how it is read back
    (`from_payload`, which takes these common parts by name) and what made it (`rebuilt`).
    """

    name: str
    description: RecordDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool

    def rebuilt(self) -> Iterator[Made]:
        """Mechanisms that may have made it, from its public parts alone."""
        yield from ()

    def checks(self) -> dict[str, bool]:
        """What must hold of a bundle besides its files, which `verify` writes again."""
        return {FOLLOWS: self.follows}

    @property
    def follows(self) -> bool:
        """Whether one of them has this description and this promise: for `congenial verify`."""
        description = _as_written(self.description)
        return any(
            _as_written(mechanism.description) == description
            and self.guarantee.follows_from(mechanism.guarantee)
            for mechanism in self.rebuilt()
        )
