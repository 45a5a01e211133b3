"""A geography cut into parts: every part is a schema of its own, and so is what lies above them.

A geography is one attribute with coarser names that nest (block < tract < county < state). `parts`
names one of them: its levels are the parts. Tables over finer names fall apart into the parts;
tables over `parts` itself, over coarser names, or over no geography at all lie above them.

`count_parts` counts records into one file per part, without holding all cells at once: one query
where the records are. Each record becomes a part and a cell within it, equal cells are counted
(which spills to disk where memory is short), and rows go to `folder/part=K/`. Records without a
cell are counted as part -1, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.attribute import REFUSE, Attribute, Axis
from congenial.data.schema import Schema, near
from congenial.data.sql import tabulation
from congenial.data.tabulate import Microdata, no_records, refuse
from congenial.errors import DataError, SchemaError


@dataclass(frozen=True)
class AreaParts:
    """A schema and the name of the parts into which its geography is cut.

    >>> schema = Schema.from_dict({
    ...     "block": {"levels": ["1", "2", "3"], "within": {"state": ["P", "P", "Q"]}},
    ...     "sex": {"levels": ["f", "m"]},
    ... })
    >>> parts = AreaParts(schema, "state")
    >>> parts.labels, parts.schema_of(0).attribute("block").levels
    (('P', 'Q'), ('1', '2'))
    """

    schema: Schema
    parts: str

    def __post_init__(self) -> None:
        attribute = self.schema.attribute(self.schema.axis(self.parts).base)
        if self.parts == attribute.name:
            raise SchemaError(
                f"parts = {self.parts!r} is the finest geography, so every part would be a single "
                "area.",
                remedy=f"Name a coarser one. {near(self.parts, attribute.coarser)}"
                if attribute.coarser
                else f"Give {self.parts!r} coarser names with within or a levels_file.",
            )
        if (attribute.missing, attribute.other) != (REFUSE, REFUSE):
            raise SchemaError(
                f"attribute {attribute.name!r} has a category for missing or other values, which "
                "belongs to no part.",
                remedy="Leave out missing and other, or list that category as an area with its "
                "parents.",
            )

    @cached_property
    def attribute(self) -> Attribute:
        """The geography."""
        return self.schema.attribute(self._axis.base)

    @property
    def _axis(self) -> Axis:
        return self.schema.axis(self.parts)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parts, in order."""
        return self._axis.levels

    @cached_property
    def _by_part(self) -> tuple[Ints, Ints]:
        of_base = self._axis.of_base
        order = np.argsort(of_base, kind="stable")
        return order, np.searchsorted(of_base[order], np.arange(len(self.labels) + 1))

    def areas(self, part: int) -> Ints:
        """The finest areas of a part, as numbers of levels."""
        order, starts = self._by_part
        return order[starts[part] : starts[part + 1]]

    # ---- names -------------------------------------------------------------------------------

    def geographic(self, names: Sequence[str]) -> str | None:
        """The geographic axis of a table; None if it has none."""
        base = self.attribute.name
        return next((name for name in names if self.schema.axis(name).base == base), None)

    def is_below(self, names: Sequence[str]) -> bool:
        """Whether a table shows areas finer than the parts; SchemaError where they do not nest."""
        name = self.geographic(names)
        if name is None or name == self.parts:
            return False
        axis = self.schema.axis(name)
        try:
            self._axis.map_from(axis)
        except SchemaError:
            pass
        else:
            return axis.size > len(self.labels)
        try:
            axis.map_from(self._axis)
        except SchemaError:
            raise SchemaError(
                f"{name!r} and {self.parts!r} cross: a {name} lies in two of {self.parts!r}, and "
                f"a {self.parts} in two of {name!r}.",
                remedy="Give every area one parent, or choose other parts.",
            ) from None
        return False

    def chain(self, tables: Sequence[Sequence[str]]) -> tuple[str, ...]:
        """The geographic names of the tables and the parts, fine to coarse; refused if some cross.

        A county that lies in two states is such a crossing.
        """
        names = {self.attribute.name, self.parts}
        names |= {name for table in tables if (name := self.geographic(table)) is not None}
        ordered = sorted(names, key=lambda name: -self.schema.axis(name).size)
        for fine, coarse in pairwise(ordered):
            try:
                self.schema.axis(coarse).map_from(self.schema.axis(fine))
            except SchemaError:
                raise SchemaError(
                    f"the geography is not nested: some {fine} lies in two of {coarse!r}.",
                    remedy=(
                        "Give every area one parent, and make names unique, for example with the "
                        "parent's code in front."
                    ),
                ) from None
        return tuple(ordered)

    # ---- schemas -----------------------------------------------------------------------------

    def schema_of(self, part: int) -> Schema:
        """The schema of one part: its areas, with all of their coarser names."""
        at = self.areas(part)
        geography = self.attribute
        levels = tuple(geography.levels[i] for i in at)
        coarser = {
            name: tuple(parents[i] for i in at) for name, parents in geography.coarser.items()
        }
        own_areas = Attribute(
            geography.name,
            "categorical",
            levels=levels,
            coarser=coarser,
            from_file=geography.from_file,
        )
        return self._with(own_areas)

    @cached_property
    def upper(self) -> Schema:
        """The schema above the parts: the parts are the finest geography."""
        first = np.array([self.areas(part)[0] for part in range(len(self.labels))])
        coarser = {}
        for name, parents in self.attribute.coarser.items():
            axis = self.schema.axis(name)
            if name != self.parts and axis.size <= len(self.labels) and not self.is_below((name,)):
                coarser[name] = tuple(parents[i] for i in first)
        return self._with(Attribute(self.parts, "categorical", levels=self.labels, coarser=coarser))

    def _with(self, geography: Attribute) -> Schema:
        """The schema with another geography in the same place."""
        return Schema(
            tuple(
                geography if attribute.name == self.attribute.name else attribute
                for attribute in self.schema.attributes
            )
        )


REFUSED = -1  # the part of records that have no cell
_CODES = 4  # numbers per axis in which a refusal is told


def count_parts(data: Microdata, parts: AreaParts, names: Sequence[str], folder: Path) -> None:
    """CONFIDENTIAL: count the records over attributes `names` into `folder`, part by part.

    Raises DataError for what the schema refuses and for empty data; checks the unit first.
    """
    data.check_unit()
    folder.mkdir(mode=0o700, parents=True)
    axes = data.schema.axes(names)
    source = data.source_for(axes)
    cells = tabulation(source, axes, data.schema)
    source.copy(partial(_placed, parts, names, cells), _areas(parts), folder, "part")
    _refuse_found(folder, data, names)


def _areas(parts: AreaParts) -> Any:
    """Which part each area belongs to, its number there, and how many the part has."""
    import pyarrow as pa

    part = parts.schema.axis(parts.parts).of_base
    local, many = (np.empty(len(part), dtype=np.int64) for _ in range(2))
    for number in range(len(parts.labels)):
        areas = parts.areas(number)
        local[areas], many[areas] = np.arange(len(areas)), len(areas)
    return pa.table({"code": np.arange(len(part)), "part": part, "local": local, "many": many})


def _placed(parts: AreaParts, names: Sequence[str], cells: str, areas: str) -> str:
    """The query for part, cell and n; `areas` is what it calls the table of areas."""
    area = list(names).index(parts.attribute.name)
    number, refusal = "CAST(0 AS BIGINT)", ""
    for at, name in enumerate(names):
        size = "areas.many" if at == area else str(parts.schema.attribute(name).size)
        place = "areas.local" if at == area else f"c{at}"
        number = f"({number}) * {size} + {place}"
        refusal += f"WHEN c{at} < 0 THEN {_CODES * at} - c{at} "
    has_cell = " AND ".join(f"c{at} >= 0" for at in range(len(names)))
    return (
        f"SELECT CASE WHEN {has_cell} THEN areas.part ELSE {REFUSED} END AS part, "
        f"CASE {refusal}ELSE {number} END AS cell, n "
        f"FROM ({cells}) AS cells LEFT JOIN {areas} AS areas ON areas.code = c{area}"
    )


def _refuse_found(folder: Path, data: Microdata, names: Sequence[str]) -> None:
    """DataError for records without a cell, and where there are none at all."""
    import pyarrow.parquet as pq

    if not any(folder.iterdir()):
        raise no_records()
    codes: list[Any] = []
    for file in (folder / f"part={REFUSED}").glob("*.parquet"):
        codes.append(pq.ParquetFile(file).read(columns=["cell"])["cell"].to_numpy())
    if not codes:
        return
    codes_found = np.unique(np.concatenate(codes))
    for at, axis in enumerate(data.schema.axes(names)):
        mine = codes_found[(codes_found - 1) // _CODES == at]
        refuse(axis, _CODES * at - mine, data.schema)
    raise DataError(
        "some records belong to no cell of the table.",
        remedy="Run `congenial data` to see which values do not fit the schema.",
    )
