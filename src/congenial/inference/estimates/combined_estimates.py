"""Several releases of one population as one best estimate: generalised least squares.

y_b = T_b x + noise for every table b, A x = t for the exact figures. The estimate minimises sum_b
p_b |y_b - T_b x|^2 subject to the figures (`congenial.tables`); p_b is one over the average
variance of table b's cells. It is linear in the y_b and unbiased whatever the p_b are, so its
errors are linear combinations of the tables' own errors, drawn from their public laws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.table import cell_index
from congenial.data.workload import Margin, Workload
from congenial.errors import InferenceError
from congenial.figures.figures import Figures
from congenial.figures.restricted_figures import summed_out
from congenial.inference.estimates.cell_estimates import (
    CellEstimates,
    IndependentTables,
    ScaledLaw,
    SingleTableEstimates,
    Weights,
    summed_number,
)
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.parted_release import PartedRelease
from congenial.mechanisms.released import Released
from congenial.mechanisms.tables_files import said
from congenial.mechanisms.tables_release import TablesRelease
from congenial.tables.inverse import Inverse
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.linear_estimates import choose_inverse, estimate
from congenial.tables.measurements import Measurements
from congenial.tables.simulated_errors import DRAWS
from congenial.tables.tree_inverse import TreeInverse

SAMPLED = 200  # cells of a table whose variance stands for all
MANY = 100  # combinations for which it is quicker to estimate from every simulated table of noise
PASS = 500  # tables of noise at a time
FAR_APART = 8.0  # standard deviations between two estimates of one sum: not one population


def cell_estimates(release: Any) -> CellEstimates:
    """The cells that a release estimates, with the law of their errors.

    A table: its values as drawn, before anything made them nonnegative, because those are unbiased.
    Several tables drawn together: their best linear combination. Anything with a method
    `cell_estimates()`: what that returns. Noise that was simulated for a table is kept with it, so
    that questions asked one after the other agree. InferenceError where a release has no table
    whose errors have a public law (statistics, counts given public information).

    >>> from congenial import Guarantee, ReplaceOne, Schema, SeededRandomness, Table, calibrate
    >>> from congenial import release_table
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = release_table(mechanism, Table(schema, ["sex"], [90, 110]), SeededRandomness(1))
    >>> found = cell_estimates(release)
    >>> found.axes, bool((found.cells == release.drawn[0]).all())
    (('sex',), True)
    """
    if isinstance(release, DrawnTable | TablesRelease | PartedRelease):
        # Kept with the release, as a cached property would be: simulated noise is used again.
        if "_cell_estimates" not in vars(release):
            vars(release)["_cell_estimates"] = _of_tables(release)
        cached: CellEstimates = vars(release)["_cell_estimates"]
        return cached
    offered = getattr(release, "cell_estimates", None)
    source = offered() if callable(offered) else release
    if isinstance(source, CellEstimates):
        return source
    raise InferenceError(
        f"a release of kind '{getattr(release, 'kind', type(release).__name__)}' has no table "
        "with known errors.",
        remedy=release.instead()
        if isinstance(release, Released)
        else "Use a bundle with protected tables.",
    )


def measured_estimates(release: Any) -> tuple[CellEstimates, ...]:
    """The cells of everything that a release measures: counts, sums of one number or of several."""
    if isinstance(release, TablesRelease) and release.offset and release.counted is not None:
        release = release.counted  # one of its measures, of which counts are a part
    measures = release.measures if isinstance(release, TablesRelease) else (release,)
    return tuple(map(cell_estimates, measures))


def _of_tables(release: DrawnTable | TablesRelease | PartedRelease) -> CellEstimates:
    """The cells of one table, or of several that were drawn together (above the parts, if any)."""
    if isinstance(release, DrawnTable):
        return SingleTableEstimates(release)
    tables = tuple(
        SingleTableEstimates(measured_table) for measured_table in release.measured_tables()
    )
    if not tables:
        raise InferenceError(
            f"release '{release.name}' has no table above its parts.",
            remedy="Ask for one cell with release.interval(condition, part=...).",
        )
    if len(tables) == 1:
        return tables[0]
    if isinstance(release, PartedRelease):
        return CombinedEstimates(tables, release=release)
    estimator = release.estimator
    assert isinstance(estimator, JointEstimator)  # of several tables
    precisions = dict(zip(release.tables, estimator.measurements.precisions, strict=True))
    return CombinedEstimates(tables, tuple(precisions[table.axes] for table in tables), release)


def combined(tables: Sequence[CellEstimates], same_population: bool = False) -> CellEstimates:
    """The best estimate from all tables; refused where they do not belong together."""
    if len(tables) == 1:
        return tables[0]
    for first, other in combinations(tables, 2):
        _refuse_strangers(first, other, same_population)
    # Tables that were drawn together enter one by one, each with its own precision.
    apart = [
        estimates.tables if isinstance(estimates, CombinedEstimates) else (estimates,)
        for estimates in tables
    ]
    return CombinedEstimates(tuple(table for each in apart for table in each))


@dataclass(frozen=True, eq=False)
class CombinedEstimates(IndependentTables):
    """`CellEstimates` from several tables; the cells are those of the finest, or of `asked`.

    Where no table is the finest, each of `views` gives the same estimates for the cells of one.
    """

    precisions: tuple[float, ...] | None = None  # of each table; from its errors if not given
    release: TablesRelease | PartedRelease | None = None  # that the tables were drawn for
    asked: tuple[str, ...] | None = None  # the axes of the cells, where they are not the finest's

    @property
    def name(self) -> str:
        """The release's, or all names."""
        if self.release is not None:
            return self.release.name
        return " + ".join(table.name for table in self.tables)

    @property
    def schema(self) -> Schema:
        """What the cells mean."""
        return self.tables[0].schema

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the cells."""
        return self.finest.axes if self.asked is None else self.asked

    @cached_property
    def finest(self) -> CellEstimates:
        """The table of which all others are sums."""
        for table in self.tables:
            if _has_all(table, self.tables):
                return table
        tables = "; ".join(said(view.axes) for view in self.views)
        raise InferenceError(
            f"no table of '{self.name}' contains the cells of all others.",
            remedy=f"Ask in words about columns of one table: {tables}.",
        )

    @cached_property
    def views(self) -> tuple[CombinedEstimates, ...]:
        """The same estimates for the cells of each table, where none is the finest; the printed
        tables of one release.
        """
        if self.asked is not None or any(_has_all(table, self.tables) for table in self.tables):
            return ()
        printed = self.release.tables if isinstance(self.release, TablesRelease) else ()
        each_view = []
        for axes in dict.fromkeys((*printed, *(table.axes for table in self.tables))):
            view = replace(self, asked=axes)
            vars(view).update(_measurements=self._measurements, _inverse=self._inverse)
            each_view.append(view)
        return tuple(each_view)

    @cached_property
    def published(self) -> Figures:
        """The figures of all tables."""
        joined = self.tables[0].published
        for table in self.tables[1:]:
            joined = joined.join(table.published)
        return joined

    @cached_property
    def _measurements(self) -> Measurements:
        work = Workload.of(self.schema, [table.axes for table in self.tables])
        precisions = self.precisions or tuple(_precision(table) for table in self.tables)
        return Measurements(work, precisions, self._shown)

    @cached_property
    def _shown(self) -> Figures:
        """The exact figures about attributes of the tables, and what is empty."""
        bases = {axis.base for table in self.tables for axis in self.schema.axes(table.axes)}
        figures = summed_out(self.published, [*bases])
        axes_shown = [
            i
            for i, statement in enumerate(figures.statements)
            if figures.values is not None
            and (figures.values[i] is not None or statement.relation == "zero")
            and {*Figures(self.schema, (statement,)).bases} <= bases
        ]
        values = tuple((figures.values or ())[i] for i in axes_shown)
        statements = tuple(figures.statements[i] for i in axes_shown)
        return Figures(self.schema, statements, values if axes_shown else None)

    @cached_property
    def _inverse(self) -> Inverse:
        return choose_inverse(self._measurements)

    @cached_property
    def cells(self) -> Floats:
        """The best estimate of every cell."""
        if isinstance(self.release, TablesRelease):
            return self.release.own_estimates_of(*self.axes).reshape(-1)
        values = [table.cells.reshape(_shape(table)) for table in self.tables]
        return estimate(self._measurements, values, self._inverse).table(self.axes).reshape(-1)

    # ---- errors ------------------------------------------------------------------------------

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Sums of the tables' errors; of many combinations by estimating from tables of noise."""
        tables = [table for table in self.tables if isinstance(table, SingleTableEstimates)]
        drawn_once = len(tables) == len(self.tables) and all(
            table.is_remembered for table in tables
        )
        inverse = self._inverse
        if weights.shape[0] < MANY or not drawn_once or not isinstance(inverse, TreeInverse):
            return super().errors(weights, stream)
        margin, asked = self._asked(weights)
        noise = [table.noise(stream * len(tables) + i) for i, table in enumerate(tables)]
        found = np.empty((DRAWS, weights.shape[0]))
        for start in range(0, DRAWS, PASS):
            terms = [self._term(i, draws[start : start + PASS]) for i, draws in enumerate(noise)]
            errors = inverse.totals(terms, margin).reshape(len(terms[0][1]), -1)
            found[start : start + PASS] = (asked @ errors.T).T
        return found

    def _asked(self, weights: Weights) -> tuple[Margin, Weights]:
        """The smallest table of which the combinations are, and their weights on its cells."""
        dense, columns = weights.toarray().reshape(-1, *_shape(self)), []
        for at, name in enumerate(self.axes, start=1):
            first = dense.take([0], axis=at)
            if np.all(dense == first):
                dense = first
            else:
                columns.append(name)
        margin = self._measurements.margin(columns)
        flat = self._by_attribute(dense, self.axes, margin).reshape(len(dense), -1)
        return margin, sp.csr_array(flat)

    def _term(self, table: int, noise: Any) -> tuple[Margin, Floats]:
        """What tables of noise tell the estimator: w_b = p_b y_b."""
        axes, margin = self.tables[table].axes, self._measurements.margins[table]
        rows = (self._measurements.precisions[table] * noise).reshape(
            -1, *_shape(self.tables[table])
        )
        return margin, self._by_attribute(rows, axes, margin)

    def of_tables(self, weights: Weights) -> Iterator[tuple[CellEstimates, Weights]]:
        """For each table, the weights with which its values enter linear combinations."""
        measured = self._measurements
        dense = np.asarray(weights.todense(), dtype=float).reshape(-1, *_shape(self))
        margin = measured.margin(self.axes)  # coarser than the cells where figures are finer
        solved = self._inverse.apply([(margin, self._by_attribute(dense, self.axes, margin))])
        for i, table in enumerate(self.tables):
            margin = measured.margins[i]
            weighted = measured.precisions[i] * solved.totals(margin)
            yield table, sp.csr_array(self._by_axis(weighted, table.axes).reshape(len(dense), -1))

    def _places(self, axes: tuple[str, ...]) -> list[int]:
        return [self._measurements.names.index(self.schema.axis(name).base) for name in axes]

    def _by_attribute(self, rows: Floats, axes: tuple[str, ...], margin: Margin) -> Floats:
        places = self._places(axes)
        order = sorted(range(len(places)), key=places.__getitem__)
        return rows.transpose([0, *(1 + i for i in order)]).reshape(-1, *margin.shape)

    def _by_axis(self, rows: Floats, axes: tuple[str, ...]) -> Floats:
        places = self._places(axes)
        rest = tuple(1 + at for at in range(rows.ndim - 1) if at not in places)
        ordered = sorted(places)
        return np.squeeze(rows, rest).transpose([0, *(1 + ordered.index(at) for at in places)])

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """None: sums of several tables' noise are simulated."""
        return [None] * weights.shape[0]


def _shape(table: CellEstimates) -> tuple[int, ...]:
    return tuple(axis.size for axis in table.schema.axes(table.axes))


def _precision(table: CellEstimates) -> float:
    """One over the average variance of some cells."""
    count = table.cells.size
    chosen = np.unique(np.linspace(0, count - 1, min(count, SAMPLED)).astype(np.int64))
    at = (np.ones(len(chosen)), (np.arange(len(chosen)), chosen))
    errors = table.errors(sp.csr_array(at, shape=(len(chosen), count)))
    return 1 / max(float(np.mean(errors**2)), 1e-12)


def _views(table: CellEstimates) -> Sequence[CellEstimates]:
    """A table, or what one that has no finest shows."""
    return getattr(table, "views", ()) or (table,)


def _has_all(fine: CellEstimates, tables: Sequence[CellEstimates]) -> bool:
    """Whether every cell of every table is a sum of cells of one."""
    return all(_is_sum_of(other, fine) for other in tables)


def _is_sum_of(coarse: CellEstimates, fine: CellEstimates) -> bool:
    """Whether every cell of one table is a sum of cells of the other."""
    own = {axis.base: axis for axis in fine.schema.axes(fine.axes)}
    for axis in coarse.schema.axes(coarse.axes):
        if axis.base not in own:
            return False
        levels = zip(own[axis.base].of_base.tolist(), axis.of_base.tolist(), strict=True)
        if len({*levels}) != own[axis.base].size:
            return False
    return True


# ---- what belongs together -----------------------------------------------------------------------


def _refuse_strangers(one: CellEstimates, other: CellEstimates, same_population: bool) -> None:
    refuse_other_people(one, other, same_population)
    names = f"'{one.name}' and '{other.name}'"
    if summed_number(one) != summed_number(other):
        raise InferenceError(
            f"{names} do not have the same measure: counts of people, or sums of one number with "
            "the same bounds and step.",
            remedy="Ask them one by one.",
        )
    refuse_the_same(one, other, names)
    for pair in product(_views(one), _views(other)):
        _refuse_far_apart(*pair, names)


def refuse_other_people(one: CellEstimates, other: CellEstimates, same_population: bool) -> None:
    """Refuse two releases that do not seem to be of the same people, whatever they measure."""
    names = f"'{one.name}' and '{other.name}'"
    if one.schema.digest != other.schema.digest:
        raise InferenceError(
            f"{names} have different schemas.",
            remedy=(
                "Combine bundles of the same plan; compare others with change(...) or growth(...)."
            ),
        )
    first, second = (getattr(each, "people", each.published) for each in (one, other))
    joined = first.join(second)  # refuses figures that disagree
    shared = [s for s in first.equalities if s in second.equalities]
    if not shared and not same_population:
        raise InferenceError(
            f"no exact figure shows that {names} are of the same population "
            f"({len(joined.statements)} figures, none in both).",
            remedy="If they are, add --same-population (same_population=True).",
        )


def refuse_the_same(one: CellEstimates, other: CellEstimates, names: str) -> None:
    """Refuse a bundle that is given twice: its noise is not independent of itself."""
    each, others = _views(one), _views(other)
    if [table.axes for table in each] == [table.axes for table in others] and all(
        np.array_equal(a.cells, b.cells) for a, b in zip(each, others, strict=True)
    ):
        raise InferenceError(
            f"{names} are the same release, which adds nothing twice.",
            remedy="Give each bundle once.",
        )


def _refuse_far_apart(one: CellEstimates, other: CellEstimates, names: str) -> None:
    """Sums over axes that both show must agree within the noise."""
    shared = [name for name in one.axes if name in other.axes]
    for axes in [(), *((name,) for name in shared)]:
        sums, variances = zip(*(_margin(table, axes) for table in (one, other)), strict=True)
        spread = np.sqrt(sum(variances))
        if np.any(np.abs(sums[0] - sums[1]) > FAR_APART * spread + 1e-6):
            of = f"by {axes[0]}" if axes else "in all"
            raise InferenceError(
                f"{names} differ {of} by far more than their noise, so they are not of the same "
                "population.",
                remedy="Compare them with change(...) or growth(...) instead.",
            )


def _margin(table: CellEstimates, axes: tuple[str, ...]) -> tuple[Floats, Floats]:
    """Sums of a table over some axes, and the variances of their errors."""
    index = np.broadcast_to(cell_index(table.schema, table.axes, axes), _shape(table)).reshape(-1)
    count, cells = table.schema.size(axes), np.arange(table.cells.size)
    weights = sp.csr_array((np.ones(len(cells)), (index, cells)), shape=(count, len(cells)))
    return weights @ table.cells, np.mean(table.errors(weights) ** 2, axis=0)
