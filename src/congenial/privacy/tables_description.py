"""Description of several noisy tables that are drawn independently and released together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any, ClassVar

from congenial.data.schema import Schema
from congenial.errors import GuaranteeError
from congenial.figures.invariants import Invariants
from congenial.privacy.description import VERSION, Description, Family, check_version

_WHOLE = ("double_geometric", "discrete_gaussian")  # families on the integers


@dataclass(frozen=True)
class TablesDescription:
    """Several noisy tables of one population, drawn independently and released together.

    `measured`: the law of each table that is drawn, given the same figures. `tables`: the axes of
    all tables that are printed, measured or not; `keep`: further partitions that printed whole
    counts follow. `design`: how the noise was chosen, as plain data, which no price depends on.
    `parts`: the geographic name by whose levels it was drawn and is written, if it was.
    """

    measured: tuple[Description, ...]
    tables: tuple[tuple[str, ...], ...]
    keep: tuple[str, ...] = ()
    design: Mapping[str, Any] = field(default_factory=dict)
    parts: str = ""

    mechanism: ClassVar[str] = "several_tables"
    columns: ClassVar[int] = 6  # numbers of a cell: count, estimate, sd, low, high, as drawn

    def __post_init__(self) -> None:
        laws = {(one.family, one.post_processing, one.nonnegative) for one in self.measured}
        if len(laws) != 1 or laws - set(product(_WHOLE, ("none",), (False,))):
            raise GuaranteeError(
                "several tables are measured with one family of whole-number noise as drawn.",
                remedy="Use double geometric or discrete Gaussian noise for all of them.",
            )
        named = [one.table for one in self.measured]
        if len(set(named)) < len(named) or not set(named) <= set(self.tables):
            raise GuaranteeError("a table is measured twice, or measured and not printed.")
        if any(one.support != self.support or one.levels for one in self.measured):
            raise GuaranteeError("tables measured together are drawn given the same figures.")
        if self.parts:
            self.support.schema.axis(self.parts)
        for names in self.tables:
            self.support.schema.axes(names)  # raises when an axis is unknown

    @property
    def laws(self) -> tuple[Description, ...]:
        """What is drawn independently: one law per measured table."""
        return self.measured

    @property
    def printed(self) -> tuple[tuple[str, ...], ...]:
        """Axes of every table that the release shows."""
        return self.tables

    @property
    def support(self) -> Invariants:
        """Figures the release was conditioned on."""
        return self.measured[0].support

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
            "keep": list(self.keep),
            "measured": [
                {key: value for key, value in one.to_dict().items() if key not in common}
                for one in self.measured
            ],
            "support": self.support.to_dict(),
            "design": dict(self.design),
            **({"parts": self.parts} if self.parts else {}),
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> TablesDescription:
        """Inverse of `to_dict`; refuses versions it does not know."""
        check_version(data)
        common = {key: data[key] for key in ("version", "support")}
        return cls(
            tuple(Description.from_dict(schema, {**one, **common}) for one in data["measured"]),
            tuple(tuple(names) for names in data["tables"]),
            tuple(data["keep"]),
            data["design"],
            str(data.get("parts", "")),
        )
