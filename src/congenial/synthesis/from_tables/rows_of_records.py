"""Of what records from tables are made: people, or rows of units that own several.

Everything they are made from is a function of the table of rows, whoever a row belongs to. Where
the figures tell the number of rows, the tables of look-alike datasets differ as if so many rows
were replaced (`pairs/several_rows`), so that the loss per replaced row is all that is needed.
Records say nothing about which rows belong to one unit.
"""

from __future__ import annotations

from congenial.errors import GuaranteeError, StructureError
from congenial.pairs.adjacency import Adjacency
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.pairs.several_rows import SeveralRows
from congenial.synthesis.from_tables.junction_tree import Axes


def rows_apart(pairs: Adjacency | SensitiveValues, names: Axes) -> int:
    """How many replaced rows the tables of look-alikes over these columns are apart."""
    return pairs.rows_apart(names) if isinstance(pairs, Adjacency) else pairs.records


def refuse_unknown_number(pairs: Adjacency | SensitiveValues, names: Axes) -> None:
    """Refuse pairs for which the number of records is not public, and what is no column of rows."""
    known = isinstance(pairs, SensitiveValues) or pairs.metric == "replace-one"
    if not known and not (isinstance(pairs, SeveralRows) and pairs.people_kept):
        raise GuaranteeError(
            "records from tables are as many as there are rows, so the number of rows must be "
            f"public; the promise is about {pairs.metric}.",
            remedy='Publish it ("Rows" = { total = true } under [publish]), or use one row per '
            "person (unit without max_rows).",
        )
    for name in names:
        if name in pairs.schema.sizes:
            raise StructureError(
                f"{name!r} is the number of rows of a unit, and a record is one row.",
                remedy="Leave it out of the columns to synthesise.",
            )
