"""Description of a release that is no table: what replacing one record does to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from congenial.data.arguments import NUMBER, expect
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.errors import GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.privacy.description import VERSION, check_version


@dataclass(frozen=True)
class RecordDescription:
    """A release that is no table: synthetic records, or statistics of numbers.

    The ledger knows it by what replacing one record does to it, on any database: `epsilon` (pure)
    and `rho` (zCDP) per replaced record, `added` (pure) per record added or removed where that is
    known. For a records apart it counts a * epsilon and a^2 * rho. `persons` is False for a release
    that promises nothing about persons; it is recorded, and named beside every total. `law` is
    plain data from which an analyst can write down the law. `given`: published figures that every
    possible result agrees with; the losses are then those between databases that agree with them.
    """

    mechanism: str
    schema: Schema
    law: Mapping[str, Any]
    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    added: Fraction | None = None
    persons: bool = True
    given: Invariants | None = None

    columns: ClassVar[int] = 0  # numbers of a cell: it has none

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
        if self.epsilon < 0 or self.rho < 0 or (self.added or 0) < 0:
            raise GuaranteeError(f"the loss of '{self.mechanism}' is negative.")
        if self.persons and not self.epsilon and not self.rho:
            raise GuaranteeError(
                f"'{self.mechanism}' states no loss per record.",
                remedy="Give epsilon or rho, or persons=False for a release that promises none.",
            )

    @property
    def laws(self) -> tuple[RecordDescription, ...]:
        """What is drawn independently: one law."""
        return (self,)

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """No table."""
        return ()

    @property
    def support(self) -> Invariants:
        """Figures the release was conditioned on."""
        return Invariants(self.schema) if self.given is None else self.given

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the schema is written beside it, once."""
        return {
            "version": VERSION,
            "kind": "records",
            "mechanism": self.mechanism,
            "law": dict(self.law),
            "per_record": {
                "epsilon": str(self.epsilon),
                "rho": str(self.rho),
                "added": None if self.added is None else str(self.added),
            },
            "persons": self.persons,
            "support": self.support.to_dict(),
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> RecordDescription:
        """Inverse of `to_dict`; refuses versions it does not know."""
        check_version(data)
        loss = data["per_record"]
        return cls(
            mechanism=data["mechanism"],
            schema=schema,
            law=data["law"],
            epsilon=fraction(loss["epsilon"]),
            rho=fraction(loss["rho"]),
            added=None if loss["added"] is None else fraction(loss["added"]),
            persons=bool(data["persons"]),
            given=_given(schema, data.get("support")),
        )


def _given(schema: Schema, data: Mapping[str, Any] | None) -> Invariants | None:
    figures = None if data is None else Invariants.from_dict(schema, data)
    return figures if figures is not None and figures.statements else None
