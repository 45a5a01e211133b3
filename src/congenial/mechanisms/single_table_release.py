"""Release: what has been drawn, and everything an analyst needs to use it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from congenial._notebook import MOST_ROWS, intervals_picture
from congenial.data.csv_text import rounded, table_csv
from congenial.data.engines.checked_parquet import Expected, as_parquet, numbers
from congenial.data.schema import Schema
from congenial.data.table import cell_index as cell_index  # used by those who read releases
from congenial.data.table import select
from congenial.figures.sum_ranges import indexed_ranges
from congenial.figures.support import Support, support
from congenial.mechanisms.cell_errors import CellErrors, interval_ends, number_columns
from congenial.mechanisms.cell_labels import label_columns, label_names, with_words
from congenial.mechanisms.released import (
    EXACT_LAW,
    LEVEL,
    Interval,
    Released,
    axis_names,
    check_level,
)
from congenial.pairs.adjacency import Adjacency, SemiAdjacent
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from congenial.mechanisms.mechanism import Mechanism
    from congenial.tables.node_order import NodeOrder

INTERVAL = ("estimate", "low", "high", "exact")  # columns of intervals, and parts of `Interval`


@dataclass(frozen=True)
class Release(Released):
    """A protected table: `values` as published, `raw` as drawn when they were projected afterwards.

    Inference uses the drawn values, whose law is known exactly; projected values look like counts
    but have no closed-form law. Where counts were projected, sums that were settled as such (single
    cells, and the nodes of a fit from coarse to fine) are those printed; every other sum is that of
    the values as drawn, which is unbiased, while printed counts added up may not be.

    >>> from congenial import Guarantee, ReplaceOne, SeededRandomness, Table, calibrate
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = mechanism.release(Table(schema, ["sex"], [90, 110]), SeededRandomness(1), "sex")
    >>> release
    Release('sex': sex; epsilon = 1)
    >>> found = release.interval("sex = 'f'", 0.90)
    >>> found.low <= found.estimate <= found.high, release.publishable
    (True, False)
    """

    kind: ClassVar[str] = "table"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (
            "table.parquet, table.csv",
            "the protected table: one row per cell, column `count`; `sd`, `low` and `high`, where "
            "the law of the noise allows them, say how far the value as drawn may be off (standard "
            "deviation) and where the true count is (90 % interval, cut to what published sums "
            "allow; a count that was made nonnegative lies inside); `count_as_drawn`, where there "
            "is one, holds the values before they were made nonnegative: use it to infer and to "
            "add up",
        ),
    )
    name: str
    description: Description
    guarantee: Guarantee
    values: Any = field(repr=False)
    randomness: str
    publishable: bool
    raw: Any = field(default=None, repr=False)

    @property
    def table(self) -> tuple[str, ...]:
        """Axes of the released table."""
        return self.description.table

    @property
    def persons(self) -> Guarantee:
        """What is promised to single persons: the promise, or the law's where that is about other
        pairs.
        """
        own = isinstance(self.guarantee.adjacency, Adjacency)
        return self.guarantee if own else self.mechanism.guarantee

    def explain(self) -> str:
        """The promise in words, and the one to persons where that is another."""
        told = self.guarantee.explain()
        same = self.persons is self.guarantee
        return told if same else f"{told}\n\nAbout single persons. {self.persons.explain()}"

    @cached_property
    def adjacency(self) -> Adjacency:
        """The databases a person's own data can be changed between; the ledger counts over these.

        The promise may be about other pairs (secrets, distributions) of the same population.
        """
        pairs = self.guarantee.adjacency
        return pairs if isinstance(pairs, Adjacency) else SemiAdjacent(pairs.figures)

    @property
    def drawn(self) -> Any:
        """The values as drawn, before any projection."""
        return self.values if self.raw is None else self.raw

    @property
    def fitted(self) -> Any:
        """Printed counts that are not those drawn; None where they are."""
        return None if self.raw is None else self.values

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism rebuilt from its description."""
        from congenial.mechanisms.calibrate import rebuild

        return rebuild(self.description, self.adjacency)

    def made_by(self, mechanism: Mechanism, guarantee: Guarantee) -> Release:
        """The same with a promise in the plan's words; `mechanism` has its law, and is kept."""
        made = replace(self, guarantee=guarantee)
        vars(made)["mechanism"] = mechanism  # as the cached property would keep it
        return made

    @property
    def usage(self) -> tuple[str, ...]:
        """How to begin, as code; counts drawn given their signs have no intervals."""
        more = "release.count" if self.description.nonnegative else "release.interval"
        level = "" if self.description.nonnegative else ", 0.90"
        return "release.to_pandas()", f'{more}("<condition>"{level})'

    # ---- sums and intervals ------------------------------------------------------------------

    def count(self, condition: str) -> float:
        """Released number of people who meet a condition; what is no printed count is as drawn."""
        cells = select(condition, self.schema, self.table)
        values = self.values if self._prints_sum(cells) else self.drawn
        return _plain(np.sum(values[cells]))

    def margin(self, *names: str) -> Any:
        """Released table summed onto `names` (axes of the table or coarser ones).

        Printed counts where these sums were settled as such (`prints`), otherwise the values as
        drawn, which are unbiased. For inference use `intervals`, which rests on the draw.
        """
        flat = axis_names(names)
        return self._sum_onto(self.values if self.prints(*flat) else self.drawn, flat)

    def prints(self, *names: str) -> bool:
        """Whether sums onto `names` are printed counts: always, where nothing was projected, and
        where all of them are published exactly.
        """
        flat = axis_names(names)
        if self.raw is None or set(flat) == set(self.table):
            return True
        from congenial.mechanisms.projection.node_fit import is_node

        order = self._order
        if order is not None and is_node(order, flat):
            return True
        known = support(self.description.support, self.table)
        return bool(known.fixes(self._cell_of(flat), self.schema.size(flat)).all())

    @property
    def printed_tables(self) -> tuple[tuple[str, ...], ...]:
        """Tables whose sums are printed counts, from coarse to fine; the last is the table."""
        from congenial.mechanisms.projection.node_fit import node_tables

        return (self.table,) if self._order is None else node_tables(self._order, self.table)

    def _prints_sum(self, cells: Any) -> bool:
        """The same for one sum of cells."""
        marked = np.zeros(self.values.shape, dtype=bool)
        marked[cells] = True
        if self.raw is None or np.count_nonzero(marked) == 1:
            return True
        from congenial.mechanisms.projection.node_fit import is_node_cell

        order = self._order
        return order is not None and is_node_cell(order, self.table, marked)

    @cached_property
    def _order(self) -> NodeOrder | None:
        """The order of the fit, where counts were fitted from coarse to fine."""
        from congenial.mechanisms.projection.node_fit import node_order_of

        if self.description.fit != "nodes":
            return None
        return node_order_of(self.description.support, self.table)

    def __repr__(self) -> str:
        return f"Release({self.name!r}: {' x '.join(self.table)}; {self.guarantee.tradeoff.words})"

    def interval(self, condition: str, level: float = LEVEL) -> Interval:
        """Confidence interval for the true number of people who meet a condition.

        Exact coverage of at least `level`: the noise in the sum has a known law that does not
        depend on the truth. A figure that is published exactly gets an interval of width zero.
        The ends are cut to what can be (no count is negative, or larger than a published sum that
        contains it), and a draw outside of that reaches as far inwards as one at its edge; where
        the sum is a printed count they are widened to it. All of it loses no coverage.
        """
        check_level(level)
        cells = select(condition, self.schema, self.table)
        law = self.mechanism.error_law(cells)
        index = np.full(self.values.shape, -1)
        index[cells] = 0
        value = np.sum(self.drawn[cells])
        fitted = self.raw is not None and self._prints_sum(cells)
        printed = np.sum(self.values[cells]) if fitted else None
        half = law.interval(level)
        ranges = indexed_ranges(self._known, index, 1)
        ends = interval_ends(ranges, value.reshape(1), half, printed)
        basis, (low, high) = getattr(law, "basis", EXACT_LAW), (_plain(end[0]) for end in ends)
        return Interval(_plain(value), low, high, level, law.variance == 0, basis)

    def intervals(self, names: str | Sequence[str], level: float = LEVEL) -> Any:
        """Intervals for every cell of a margin: an Arrow table of estimate, low, high, exact."""
        import pyarrow as pa

        check_level(level)
        names = axis_names([names])
        cell = self._cell_of(names)
        estimate = self._sum_onto(self.drawn, names).reshape(-1)
        laws, of_sum = self.mechanism.different_error_laws(cell, len(estimate))
        half = np.array([law.interval(level) for law in laws])[of_sum]
        exact = np.array([law.variance == 0 for law in laws])[of_sum]
        fitted = self.raw is not None and self.prints(*names)
        printed = self._sum_onto(self.values, names) if fitted else None
        ranges = indexed_ranges(self._known, cell, len(estimate))
        low, high = interval_ends(ranges, estimate, half, printed)
        columns = label_columns(self.schema, tuple(names), INTERVAL)
        for part, values in zip(INTERVAL, (estimate, low, high, exact), strict=True):
            columns[part] = pa.array(values)
        return pa.table(columns)

    def estimate(self, what: Any, level: float = 0.95, **options: Any) -> Any:
        """Estimates with intervals, an `EstimateTable`: `congenial.estimate(self, what, ...)`.

        `what` is an expression such as "share(sex = 'f' | age >= 65) by county", a Python function
        of the table, or a list of these.
        """
        import congenial  # the front door: what is done with releases lives in later rooms

        return congenial.estimate(self, what, level, **options)

    @property
    def _known(self) -> Support:
        """What the published figures say of the table."""
        return support(self.published, self.table)

    def _cell_of(self, names: tuple[str, ...]) -> Any:
        return np.broadcast_to(cell_index(self.schema, self.table, names), self.values.shape)

    def _sum_onto(self, values: Any, names: Sequence[str]) -> Any:
        shape = tuple(len(axis.levels) for axis in self.schema.axes(tuple(names)))
        sums = np.zeros(int(np.prod(shape, dtype=np.int64)), dtype=values.dtype)
        np.add.at(sums, self._cell_of(tuple(names)).reshape(-1), values.reshape(-1))
        return sums.reshape(shape)

    # ---- leaving for other tools -------------------------------------------------------------

    @cached_property
    def errors(self) -> CellErrors:
        """Standard deviation and 90 % interval of every cell, as in the files."""
        return CellErrors.of(self.mechanism, self.published, self.drawn, self.fitted)

    def to_arrow(self) -> Any:
        """One row per cell: labels, `count`, `sd`, `low` and `high` (a 90 % interval) where the law
        of the noise allows them, and `count_as_drawn` when counts were projected.
        """
        import pyarrow as pa

        columns = number_columns(self.description)
        errors = self.errors.columns if "sd" in columns else {}
        values = {"count": self.values, **errors}
        values |= {} if self.raw is None else {"count_as_drawn": self.raw}
        named = label_columns(self.schema, self.table, columns)
        there = [name for name in columns if name in values]
        return pa.table(named | {name: pa.array(values[name].reshape(-1)) for name in there})

    def payload(self) -> dict[str, bytes]:
        """The files of a bundle that hold the table."""
        return {"table.parquet": as_parquet(self.to_arrow()), "table.csv": self.as_csv()}

    def as_csv(self) -> bytes:
        """The table as a CSV file for readers: codes, and labels beside them where there are."""
        return table_csv(rounded(with_words(self.to_arrow(), self.schema, self.table)))

    @classmethod
    def from_payload(
        cls,
        *,
        name: str,
        description: Description,
        guarantee: Guarantee,
        randomness: str,
        publishable: bool,
        payload: Mapping[str, bytes],
    ) -> Release:
        """Inverse of `payload`; refuses a table that is not the schema's."""
        shape = tuple(a.size for a in guarantee.adjacency.schema.axes(description.table))
        content = payload["table.parquet"]
        wanted = number_columns(description)
        found = expected_table(guarantee.adjacency.schema, description).read(content, wanted)
        counts = {n: numbers(found[n]).reshape(shape) for n in wanted if n.startswith("count")}
        values, raw = counts["count"], counts.get("count_as_drawn")
        made = cls(name, description, guarantee, values, randomness, publishable, raw)
        if "sd" in wanted:
            vars(made)["errors"] = CellErrors.read(found)  # as the cached property would keep it
        return made

    def _repr_html_(self) -> str:
        return super()._repr_html_() + self._picture()

    def _picture(self) -> str:
        """A dot for each released value, of the table or of its first axis, if they are few."""
        for names in (self.table, self.table[:1]):
            labels = list(product(*(axis.levels for axis in self.schema.axes(names))))
            if 1 < len(labels) <= MOST_ROWS:
                values = np.reshape(self.margin(*names), -1).tolist()
                rows = [
                    (", ".join(label), value, math.nan, math.nan)
                    for label, value in zip(labels, values, strict=True)
                ]
                return intervals_picture("values as released, without their intervals", rows)
        return ""

    def _title(self) -> str:
        axes = self.schema.axes(self.table)
        return f"Release '{self.name}': " + " x ".join(f"{a.name} ({a.size})" for a in axes)


def expected_table(schema: Schema, description: Description) -> Expected:
    """What table.parquet must hold: one row per cell, labels, counts of the law's type."""
    import pyarrow as pa

    axes, named = schema.axes(description.table), number_columns(description)
    number = pa.float64() if description.continuous else pa.int64()
    labels = label_names([axis.name for axis in axes], named)
    columns = [(label, pa.string()) for label in labels]
    columns += [(name, pa.float64() if name == "sd" else number) for name in named]
    longest = max((len(level.encode()) for axis in axes for level in axis.levels), default=0)
    cells = math.prod(axis.size for axis in axes)
    return Expected("table.parquet", pa.schema(columns), cells, longest)


def _plain(value: Any) -> float:
    return int(value) if np.issubdtype(np.asarray(value).dtype, np.integer) else float(value)
