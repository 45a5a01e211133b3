"""What every release that is no table has in common: statistics, counts given what is public,
synthetic records.
"""

from __future__ import annotations

from dataclasses import dataclass

from congenial.data.schema import Schema
from congenial.privacy.description import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.public.invariants import Invariants


@dataclass(frozen=True)
class RecordRelease:
    """A release the ledger knows by what one record does to it.

    Subclasses add what was released, how it becomes files (`payload`) and how it is read back
    (`from_payload`, which takes these common parts by name).
    """

    name: str
    description: RecordDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool

    @property
    def schema(self) -> Schema:
        """What a record is."""
        return self.guarantee.adjacency.schema

    @property
    def published(self) -> Invariants:
        """The figures published exactly."""
        return self.guarantee.adjacency.mandates
