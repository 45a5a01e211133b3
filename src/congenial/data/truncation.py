"""Units with more rows than they may have, cut to their first ones.

The order is public and total over rows: by the level of the schema's first column, then of its
second, and so on; rows with a value that the schema refuses come before all others, so that they
are still found. What a unit keeps depends on its own rows only. So the truncated units are units
with at most k rows, everything is counted from them, and every promise about such units holds for
them word for word.

It holds for the whole data, too. Let d be the slot distance of two units: max(|x - y|, |y - x|) as
multisets, the rows added, removed or changed. With t(x) the k first rows of x,

    d(t(x), t(y)) <= d(x, y).

Proof: it is enough that one row is changed, added or removed. Let w be the rows of both, and e the
row that only x has. If w has fewer than k rows, then t(x) = w + e. Otherwise, with z the k-th row
of w, t(x) is t(w), or t(w) - z + e where e comes before z. In the same way for y. So t(x) and t(y)
have all rows of t(w) but perhaps z in common, and at most one more each: they differ in one slot.

So two datasets that differ in at most a units and b slots still do after truncation; what has to
agree is the figures of the truncated data, which is why those are the ones that are published.
"""

from __future__ import annotations

from congenial.data.schema import Schema
from congenial.data.source import Source
from congenial.data.sql import coded


def truncated(source: Source, schema: Schema, column: str, most: int) -> Source:
    """The same records, of each unit of `column` the first `most` in the schema's order."""
    dialect = source.dialect
    names = [*source.types]
    own = [f"src.{dialect.identifier(name)} AS b{at}" for at, name in enumerate(names)]
    axes = schema.axes(schema.columns)
    rows = coded(axes, schema, source.types, source.name, dialect, own)
    codes = [f"c{at}" for at in range(len(axes))]
    refused = " OR ".join(f"{code} < 0" for code in codes) or "1 = 0"
    # Rows of one cell are interchangeable; their values only settle which of them is named.
    ties = [f"b{at}" for at, name in enumerate(names) if name != column]
    order = ", ".join([f"CASE WHEN {refused} THEN 0 ELSE 1 END", *codes, *ties])
    place = f"ROW_NUMBER() OVER (PARTITION BY b{names.index(column)} ORDER BY {order}) AS place"
    kept = ", ".join(f"b{at} AS {dialect.identifier(name)}" for at, name in enumerate(names))
    placed = f"SELECT *, {place} FROM ({rows}) AS coded"
    first = f"(SELECT {kept} FROM ({placed}) AS placed WHERE place <= {most})"
    return source.under(first, source.types)
