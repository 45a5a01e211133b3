"""For the curator only: how much each record counts, for a picture of risk by record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from congenial.data.argument_rules import one_of, takes
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import DataError
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.record_model import Floats, Ints
from congenial.synthesis.utility_report import NOTE


@dataclass(frozen=True, eq=False)
class RecordRisk:
    """CONFIDENTIAL: for one column, weights of the records and their part of M, by level.

    level: the level's number, in each context it occurs in; records: how many records; weight:
    alpha; used: range of the record's score as a share of M (1: it is as heavy as any record may
    be). Weight and share are public functions of the level; how many records there are is not.
    """

    column: str
    level: Ints
    records: Ints = field(repr=False)
    weight: Floats
    used: Floats

    note = NOTE

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "risks by record are confidential and are neither pickled nor copied.",
            remedy="Look at them where the data are.",
        )


@takes(DataError, synthesizer=Synthesizer, data=one_of(Table, Microdata))
def record_risk(synthesizer: Synthesizer, data: Table | Microdata) -> tuple[RecordRisk, ...]:
    """Weights and used shares of M for the records of the data, one entry per column."""
    counts, _ = synthesizer.fetch(data)
    found = []
    for column, kernel, table in zip(synthesizer.columns, synthesizer.kernels, counts, strict=True):
        context, level = np.nonzero(table)
        where: Any = (context, level)
        found.append(
            RecordRisk(column.name, level, table[where], kernel.weights[where], kernel.used[where])
        )
    return tuple(found)
