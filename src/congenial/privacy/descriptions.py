"""Descriptions of releases that are no single table, and reading one of whichever kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from typing import Any, ClassVar

from congenial.data.arguments import NUMBER, expect
from congenial.data.magnitude import Magnitude
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.data.table import cell_index
from congenial.errors import BundleError, CongenialError, GuaranteeError, some_of
from congenial.figures.figures import Figures
from congenial.privacy.description import (
    VERSION,
    Description,
    Family,
    check_version,
    named_mechanism,
)

_WHOLE = ("double_geometric", "discrete_gaussian")  # families on the integers


@dataclass(frozen=True)
class RecordDescription:
    """A release that is no table: synthetic records, or statistics of numbers.

    The ledger knows it by what replacing one record does to it, on any database: `epsilon` (pure)
    and `rho` (zCDP) per replaced record, `added` (pure) per record added or removed where that is
    known. For a records apart it counts a * epsilon and a^2 * rho. `persons` is False for a release
    that promises nothing about persons; it is recorded, and named beside every total. `law` is
    plain data from which an analyst can write down the law. `given`: published figures that every
    possible result agrees with; the losses are then those between databases that agree with them.
    `shown`: the columns of rows that it is a function of, whatever unit a row belongs to; without
    them units that own several rows have no price.
    """

    printed: ClassVar[tuple[tuple[str, ...], ...]] = ()

    mechanism: str
    schema: Schema
    law: Mapping[str, Any]
    epsilon: Fraction = Fraction(0)
    rho: Fraction = Fraction(0)
    added: Fraction | None = None
    persons: bool = True
    given: Figures | None = None
    shown: tuple[str, ...] | None = None

    columns: ClassVar[int] = 0  # numbers of a cell: it has none

    def __post_init__(self) -> None:
        for name in ("epsilon", "rho"):
            expect(getattr(self, name), NUMBER, name, "Give a number.", GuaranteeError)
        if self.epsilon < 0 or self.rho < 0 or (self.added or 0) < 0:
            raise GuaranteeError(f"the loss of '{self.mechanism}' is negative.")
        if self.persons and not self.epsilon and not self.rho:
            raise GuaranteeError(
                f"'{self.mechanism}' does not state what it costs per record.",
                remedy="Give epsilon or rho, or persons=False for a release that promises none.",
            )

    @property
    def laws(self) -> tuple[RecordDescription, ...]:
        """What is drawn independently: one law."""
        return (self,)

    @property
    def support(self) -> Figures:
        """Figures the release was conditioned on."""
        return Figures(self.schema) if self.given is None else self.given

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
            **({} if self.shown is None else {"shown": list(self.shown)}),
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> RecordDescription:
        """Inverse of `to_dict`; refuses versions it does not know."""
        check_version(data)
        loss = data["per_record"]
        return cls(
            mechanism=named_mechanism(data),
            schema=schema,
            law=data["law"],
            epsilon=fraction(loss["epsilon"]),
            rho=fraction(loss["rho"]),
            added=None if loss["added"] is None else fraction(loss["added"]),
            persons=bool(data["persons"]),
            given=_given(schema, data.get("support")),
            shown=tuple(data["shown"]) if "shown" in data else None,
        )


def _given(schema: Schema, data: Mapping[str, Any] | None) -> Figures | None:
    figures = None if data is None else Figures.from_dict(schema, data)
    return figures if figures is not None and figures.statements else None


@dataclass(frozen=True, repr=False)
class TablesDescription:
    """Noisy tables of one population, one or several, drawn independently and released together.

    `measured`: the law of each table that is drawn, given the same figures; several are whole
    numbers of one family, a single one may have any law. `tables`: the axes of all tables that are
    printed, measured or not. `whole`: whether whole counts >= 0 are fitted to the draw and printed;
    `keep`: further partitions that they follow. `design`: how the noise was chosen, as plain data,
    which no price depends on. `parts`: the geographic name by whose levels it was drawn and is
    written, if it was. `beside`: what else is measured of the same tables under the same promise:
    sums of numbers, after the counts if people are counted too.
    """

    measured: tuple[Description, ...]
    tables: tuple[tuple[str, ...], ...]
    keep: tuple[str, ...] = ()
    design: Mapping[str, Any] = field(default_factory=dict)
    parts: str = ""
    whole: bool = True
    beside: tuple[TablesDescription, ...] = ()

    mechanism: ClassVar[str] = "tables"

    def __repr__(self) -> str:
        return (
            f"TablesDescription({some_of([' x '.join(axes) for axes in self.tables], '; ')[:160]})"
        )

    columns: ClassVar[int] = 6  # numbers of a cell: count, estimate, sd, low, high, as drawn

    def __post_init__(self) -> None:
        laws = {(law.family, law.nonnegative) for law in self.measured}
        several = len(laws) != 1 or bool(laws - set(product(_WHOLE, (False,))))
        if not laws or (several and self.only_law is None):
            raise GuaranteeError(
                "several tables need the same family of whole-number noise.",
                remedy="Use double geometric or discrete Gaussian noise for all of them.",
            )
        named = [law.table for law in self.measured]
        if len(set(named)) < len(named) or not set(named) <= set(self.tables):
            raise GuaranteeError("a table is measured twice, or measured but not printed.")
        if self.whole and self.measured[0].continuous:
            raise GuaranteeError("real-valued noise cannot be printed as whole counts.")
        if any(law.support != self.support for law in self.measured):
            raise GuaranteeError("tables measured together must have the same exact figures.")
        if any(law.units != self.units for law in self.measured):
            raise GuaranteeError(
                "tables measured together must all count rows, or all count units."
            )
        if any(law.magnitude != self.magnitude for law in self.measured):
            raise GuaranteeError("tables measured together must all sum the same number.")
        if self.parts and (self.keep or not self.whole or self.magnitude is not None):
            raise GuaranteeError(
                "tables by parts print whole counts of people that match no further sums."
            )
        for name in (*self.keep, *([self.parts] if self.parts else [])):
            self.support.schema.axis(name)  # raises when it is unknown
        for names in self.tables:
            self.support.schema.axes(names)  # raises when an axis is unknown
        self._check_beside()

    def _check_beside(self) -> None:
        """What is measured beside these tables is of the same tables, and of something else."""
        if any(other.tables != self.tables or other.beside or other.parts for other in self.beside):
            raise GuaranteeError("what is measured under one promise is of the same tables.")
        own = {*self.support.equalities, *self.support.bounds}
        if any(
            not {*other.support.equalities, *other.support.bounds} <= own for other in self.beside
        ):
            raise GuaranteeError("counts come before sums: they are drawn given more figures.")
        named = [measure.of for measure in self.measures]
        if len(set(named)) < len(named) or (self.beside and self.parts):
            raise GuaranteeError("a number is summed twice under one promise, or drawn by parts.")
        counted = self.magnitude is None and self.family == "discrete_gaussian"
        if any(other.magnitude and other.magnitude.shift for other in self.beside) and not counted:
            raise GuaranteeError("a shifted number is measured beside counts, with Gaussian noise.")
        if any((other.family, other.units) != (self.family, self.units) for other in self.beside):
            raise GuaranteeError("what is measured under one promise has one family of noise.")

    @property
    def measures(self) -> tuple[TablesDescription, ...]:
        """All that is measured of the tables, this first."""
        return self, *self.beside

    @property
    def of(self) -> str:
        """What the tables are of: the number that they sum, or "people"."""
        return "people" if self.magnitude is None else self.magnitude.label

    @property
    def laws(self) -> tuple[Description, ...]:
        """What is drawn independently: one law per measured table."""
        return tuple(law for measure in self.measures for law in measure.measured)

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every table that the release shows, once for each measure."""
        return self.tables * len(self.measures)

    @cached_property
    def only_law(self) -> Description | None:
        """The law of the one table that was drawn and of which all printed tables are sums; None
        where several are combined, with each other, with figures or with counts (`shift`), or parts
        with what lies above.
        """
        shifted = self.magnitude is not None and self.magnitude.shift
        if len(self.measured) != 1 or self.parts or shifted:
            return None
        law = self.measured[0]
        try:
            for names in self.tables:
                cell_index(law.support.schema, law.table, names)
        except CongenialError:
            return None
        return law

    @property
    def support(self) -> Figures:
        """Figures the release was conditioned on."""
        return self.measured[0].support

    @property
    def units(self) -> bool:
        """Whether the tables count units that own several rows."""
        return self.measured[0].units

    @property
    def magnitude(self) -> Magnitude | None:
        """The number that is summed; None where people are counted."""
        return self.measured[0].magnitude

    @property
    def family(self) -> Family:
        """The family of the noise of every measured table."""
        return self.measured[0].family

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the schema is written beside it, once."""
        common = ("version", "kind", "support")
        return {
            "version": VERSION,
            "kind": "tables",
            "mechanism": self.mechanism,
            "tables": [list(names) for names in self.tables],
            "whole": self.whole,
            "keep": list(self.keep),
            "measured": [
                {key: value for key, value in law.to_dict().items() if key not in common}
                for law in self.measured
            ],
            "support": self.support.to_dict(),
            "design": dict(self.design),
            **({"parts": self.parts} if self.parts else {}),
            **({"beside": [other.to_dict() for other in self.beside]} if self.beside else {}),
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> TablesDescription:
        """Inverse of `to_dict`; refuses versions it does not know."""
        check_version(data)
        common = {key: data[key] for key in ("version", "support")}
        return cls(
            tuple(Description.from_dict(schema, {**law, **common}) for law in data["measured"]),
            tuple(tuple(names) for names in data["tables"]),
            tuple(data["keep"]),
            data["design"],
            str(data.get("parts", "")),
            bool(data["whole"]),
            tuple(cls.from_dict(schema, entry) for entry in data.get("beside", ())),
        )


AnyDescription = Description | RecordDescription | TablesDescription
_KINDS: dict[str, type[AnyDescription]] = {
    "records": RecordDescription,
    "tables": TablesDescription,
}


def read_description(schema: Schema, data: Mapping[str, Any]) -> AnyDescription:
    """The description that `to_dict` wrote, of whichever kind.

    `kind` in the data says which; a table's has none. What is no description is a BundleError.
    """
    expect(schema, Schema, "the schema", "Give a Schema.", BundleError)
    expect(data, Mapping, "the description", "Give what to_dict wrote.", BundleError)
    return _KINDS.get(data.get("kind", ""), Description).from_dict(schema, data)
