"""Records counted into one file per part, without holding all cells at once.

One query where the records are: each record becomes a part and a cell within it, equal cells are
counted (which spills to disk where memory is short), and rows go to `folder/part=K/`. Records
without a cell are counted as part -1, with the reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.area_parts import AreaParts
from congenial.data.sql import tabulation
from congenial.data.tabulate import Microdata, no_records, refuse
from congenial.errors import DataError

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
    cells = tabulation(axes, data.schema, source.types, source.name, source.dialect)
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
    known = " AND ".join(f"c{at} >= 0" for at in range(len(names)))
    return (
        f"SELECT CASE WHEN {known} THEN areas.part ELSE {REFUSED} END AS part, "
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
    told = np.unique(np.concatenate(codes))
    for at, axis in enumerate(data.schema.axes(names)):
        mine = told[(told - 1) // _CODES == at]
        refuse(axis, _CODES * at - mine, data.schema)
    raise DataError(
        "some records belong to no cell of the table.",
        remedy="Run `congenial data` to see which values do not fit the schema.",
    )
