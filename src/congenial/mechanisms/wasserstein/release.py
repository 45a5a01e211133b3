"""Released integers or numbers, their law, and what is promised given the public figures."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from congenial.errors import BundleError
from congenial.privacy.description import RecordDescription
from congenial.privacy.guarantee import Guarantee

VALUES = "values.json"


@dataclass(frozen=True)
class ValuesRelease:
    """Values as published: integers in the order of the base measure's cells, or coordinates."""

    name: str
    description: RecordDescription
    guarantee: Guarantee
    randomness: str
    publishable: bool
    values: tuple[int | float, ...]

    def explain(self) -> str:
        """The promise; its basis says where the values were not drawn exactly."""
        return self.guarantee.explain()

    def payload(self) -> dict[str, bytes]:
        """Files for a bundle besides the common ones."""
        return {VALUES: (json.dumps({"values": list(self.values)}) + "\n").encode()}

    @classmethod
    def from_payload(
        cls,
        *,
        name: str,
        description: RecordDescription,
        guarantee: Guarantee,
        randomness: str,
        publishable: bool,
        payload: Mapping[str, bytes],
    ) -> Self:
        """Inverse of `payload`, given the common parts."""
        try:
            values = tuple(json.loads(payload[VALUES])["values"])
            if not all(isinstance(v, int | float) for v in values):
                raise ValueError
        except (KeyError, ValueError, TypeError):
            raise BundleError(
                f"the values of '{name}' cannot be read.", remedy="Ask for the bundle again."
            ) from None
        return cls(name, description, guarantee, randomness, publishable, values)
