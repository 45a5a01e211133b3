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
            "risks by record are confidential and cannot be pickled or copied.",
            remedy="Look at them where the data are.",
        )


@takes(DataError, synthesizer=Synthesizer, data=one_of(Table, Microdata))
def record_risk(synthesizer: Synthesizer, data: Table | Microdata) -> tuple[RecordRisk, ...]:
    """Weights and used shares of M for the records of the data, one entry per column.

    A record with value v in context c has the weight alpha(c, v), and its score s = alpha log p
    uses (max_theta s - min_theta s) / M of what one record may move (`Synthesizer.bound`): 1 for a
    record as heavy as any may be. CONFIDENTIAL: which levels occur, and how often, is the data's.
    For the curator alone; nothing is released, and no privacy is spent. Levels that no record has
    are left out. DataError where the data lack a column.

    Source: pseudo-posterior, section 3 (risk-adjusted weights), with the range of certified mode.

    >>> from fractions import Fraction
    >>> from congenial import ReplaceOne, Schema
    >>> from congenial.synthesis import Column, MultinomialColumn
    >>> schema = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
    >>> columns = (Column("x", MultinomialColumn()),)
    >>> synthesizer = Synthesizer(ReplaceOne(schema), columns, Fraction(1, 2))
    >>> (risk,) = record_risk(synthesizer, Table(schema, ["x"], [3, 0, 2]))
    >>> risk.column, risk.level.tolist(), bool((risk.used <= 1).all())
    ('x', [0, 2], True)
    """
    counts, _ = synthesizer.fetch(data)
    found = []
    for column, kernel, table in zip(synthesizer.columns, synthesizer.kernels, counts, strict=True):
        context, level = np.nonzero(table)
        where: Any = (context, level)
        found.append(
            RecordRisk(column.name, level, table[where], kernel.weights[where], kernel.used[where])
        )
    return tuple(found)
