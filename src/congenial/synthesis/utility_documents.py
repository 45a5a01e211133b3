"""For the curator only: synthetic records against the confidential ones, as plain data.

Three documents: the errors of records from models at several settings (`curve_of_models`), the
errors of records from tables beside other ways to make records (`curve_of_tables`), and how well
released copies serve and how much each record weighs (`utility_of_copies`).

Every number here is computed from the confidential records. It goes to a private folder, never into
a bundle, and choosing a parameter by it is not covered by any promise (`NOTES`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations, product
from math import isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.arrays import Ints
from congenial.data.rational import written
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import fetch
from congenial.errors import DataError
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.combine import combine
from congenial.synthesis.from_tables.junction_tree import Axes, Reals
from congenial.synthesis.from_tables.measuring_budget import GRID
from congenial.synthesis.from_tables.records_run import Confidential, CountedRecords, TableRecords
from congenial.synthesis.local import LABEL, local_column
from congenial.synthesis.record_files import (
    level_numbers,
)
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.risk_utility import (
    Measure,
    RecordRisk,
    record_risk,
    risk_utility_curve,
    summary,
)
from congenial.synthesis.utility_report import (
    NOTES,
    CoefficientRow,
    UtilityReport,
    total_variation,
    utility_report,
)

OVERLAP = (
    "Overlap: the mean share of the two 95 % intervals that they have in common; 1 if they are the "
    "same, 0 if they just touch, and below 0 if they are apart, by how far in lengths of an "
    "interval."
)
SETTLED = "its totals are published, so its records need no weights."
LOCAL_DRAWS, LOCAL_SEED = 1000, 20200101  # of the posterior; the seed only repeats the numbers
LOCAL_WORDS = (
    "The weights and epsilon of the pseudo-posterior paper for these data (weights by min-max of "
    f"the records' risk, Delta over {LOCAL_DRAWS:,} draws): {LABEL}. The release does not use them."
)
Document = dict[str, Any]
Regression = tuple[str, Sequence[str]]


def curve_of_models(
    made: Synthesizer,
    data: Microdata,
    measures: Sequence[Measure],
    bounds: Sequence[Fraction],
    local: Sequence[tuple[float, float]],
    replicates: int,
    folder: Path,
) -> Document:
    """CONFIDENTIAL: errors of the certified, the scalar and the local mechanism at every setting.

    Finished points are kept in the private `folder`, a file for each measure. Local settings that
    the data do not allow are left out, with the reason.
    """
    rows: list[Document] = []
    left_out: list[str] = []
    for measure in measures:
        results = folder / f"{_file(measure)}.jsonl"
        rows += _points(made, data, measure, results, replicates, bounds=bounds)
        for setting in local:
            try:
                rows += _points(made, data, measure, results, replicates, local=[setting])
            except DataError as error:
                left_out.append(f"local {setting}, {measure.words}: {error}")
    return {
        "notes": list(NOTES),
        "replicates": replicates,
        "folder": str(folder),
        "rows": rows,
        "left_out": left_out,
    }


def _points(
    made: Synthesizer,
    data: Microdata,
    measure: Measure,
    results: Path,
    replicates: int,
    **sweep: Any,
) -> list[Document]:
    points = risk_utility_curve(
        made, data, measure, replicates=replicates, results=results, **sweep
    )
    return [{"measure": measure.words} | point for point in points]


def _file(measure: Measure) -> str:
    plain = "".join(c if c.isalnum() or c in "-_" else "_" for c in measure.column)
    return plain if measure.quantile is None else f"{plain}-{measure.quantile:g}"


def curve_of_tables(
    made: TableRecords,
    fine: Microdata,
    data: Microdata,
    times: Sequence[Fraction],
    replicates: int,
    copies: Sequence[Any] = (),
) -> Document:
    """CONFIDENTIAL: errors of records from tables and of other ways, at so many times the promise.

    `fine` are the records by the plan's levels, `data` by those that are counted; `copies` are
    released ones, which stand beside.
    """
    compared = ComparedRecords(made, made.fetch(fine), data)
    rows = list(compared.released(copies)) if copies else []
    rows += compared.rows(times, replicates, SystemRandomness())
    return {
        "promise": made.guarantee.tradeoff.words,
        "notes": list(NOTES),
        "replicates": replicates,
        "rows": rows,
    }


def utility_of_copies(
    made: Synthesizer, data: Microdata, copies: Sequence[Any], regression: Regression | None = None
) -> Document:
    """CONFIDENTIAL: released copies against the data, and the weight of every record.

    Numbers of several copies are averaged, with the least and the largest beside them; coefficients
    are combined by the rule for analysts.
    """
    risks = record_risk(made, data)
    weightless = made.weightless(data)
    local = _local(made, made.fetch(data)[0])
    real, _ = fetch(data, made.names)
    each = one_by_one(copies, "comparing copies with the data")
    reports = [utility_report(real, copy, made.schema, regression) for copy in each]
    first = reports[0]
    return {
        "notes": list(NOTES),
        "copies": len(reports),
        "columns": [_column(made, name, reports) for name in made.names],
        "quantiles": _quantiles(reports),
        "open_levels": [words for name in made.names for words in _open_levels(made, name)],
        "correlations": [
            {
                "columns": list(pair),
                "original": x,
                **_over([r.correlations[pair][1] for r in reports]),
            }
            for pair, (x, _) in first.correlations.items()
        ],
        "pmse": _over([r.pmse for r in reports]),
        "pmse_ratio": _over([r.pmse_ratio for r in reports]),
        "uniques": first.uniques,
        "replicated": _over([r.replicated for r in reports]),
        "response": None if regression is None else regression[0],
        "coefficients": _coefficients(reports),
        "overlap_words": OVERLAP,
        "weightless": weightless,
        "settled": list(made.settled),
        "settled_words": SETTLED,
        "local": local,
        "local_words": LOCAL_WORDS,
        "risk": [_risk(made, risk) for risk in risks if risk.column not in made.settled],
    }


def _over(values: Sequence[float]) -> dict[str, float]:
    """A number over all copies."""
    over = np.asarray(values, dtype=float)
    return {
        "synthetic": float(over.mean()),
        "least": float(over.min()),
        "largest": float(over.max()),
    }


def _column(made: Synthesizer, name: str, reports: Sequence[UtilityReport]) -> Document:
    drawn = np.mean([r.shares[name][1] for r in reports], axis=0)
    return {
        "name": name,
        "copied": name in made.public,
        "distance": _over([r.marginals[name] for r in reports]),
        "levels": list(made.schema.attribute(name).levels),
        "original": reports[0].shares[name][0].tolist(),
        "synthetic": drawn.tolist(),
    }


def _open_levels(made: Synthesizer, name: str) -> list[str]:
    """Which levels a file writes as one number, so that quantiles of data and file differ there."""
    attribute = made.schema.attribute(name)
    if attribute.kind == "categorical" or name in made.public:
        return []
    rows = []
    for level, (low, high) in zip(attribute.levels, attribute.intervals, strict=False):
        if low is None and high is not None:
            rows.append((level, f"the last number below {written(high)}"))
        elif high is None and low is not None:
            rows.append((level, written(low)))
    return [
        f"{name}: everybody in the open class '{level}' is recorded as {number}, so quantiles in "
        "that class can differ from those of the data."
        for level, number in rows
    ]


def _quantiles(reports: Sequence[UtilityReport]) -> list[Document]:
    return [
        {
            "column": rows[0].column,
            "at": rows[0].at,
            "original": rows[0].original,
            "low": rows[0].low,
            "high": rows[0].high,
            "copies": _over([row.synthetic for row in rows]),
        }
        for rows in zip(*(r.quantiles for r in reports), strict=True)
    ]


def _coefficients(reports: Sequence[UtilityReport]) -> list[Document]:
    """Coefficients that every copy has, combined; one copy stands for itself."""
    by_name = [{row.name: row for row in r.coefficients} for r in reports]
    coefficients = []
    for name, first in by_name[0].items():
        rows = [some[name] for some in by_name if name in some]
        if len(rows) < len(reports):
            continue
        value, error = first.synthetic, first.synthetic_se
        if len(rows) > 1:
            combined = combine([r.synthetic for r in rows], [r.synthetic_se**2 for r in rows])
            value, error = float(combined.estimate), float(np.sqrt(combined.variance))
        row = CoefficientRow(name, first.original, first.original_se, value, error)
        coefficients.append(
            {
                "name": name,
                "original": row.original,
                "original_se": row.original_se,
                "synthetic": row.synthetic,
                "synthetic_se": row.synthetic_se,
                "overlap": row.overlap,
            }
        )
    return coefficients


def _local(made: Synthesizer, counts: Sequence[Any]) -> list[Document]:
    """The paper's min-max weights of each column that is drawn, and the estimate they give."""
    generator = generator_of(SeededRandomness(LOCAL_SEED))
    named = zip(made.columns, made.kernels, counts, strict=True)
    return [
        {"column": name.name, **vars(local_column(kernel, table, LOCAL_DRAWS, generator))}
        for name, kernel, table in named
        if name.name not in made.settled
    ]


def _risk(made: Synthesizer, one: RecordRisk) -> Document:
    """What the records of each level weigh; a level has a row for each weight it has."""
    labels = made.schema.attribute(one.column).levels
    keys = np.stack([one.level, one.weight, one.used], axis=1)
    distinct, at = np.unique(keys, axis=0, return_inverse=True)
    people = np.bincount(at.reshape(-1), one.records)
    return {
        "column": one.column,
        "records": int(one.records.sum()),
        "downweighted": int(one.records[one.weight < 1].sum()),
        "sum_of_weights": float(one.records @ one.weight),
        "levels": list(labels),
        "rows": [
            {"level": labels[int(level)], "records": int(n), "weight": weight, "used": used}
            for (level, weight, used), n in zip(distinct.tolist(), people, strict=True)
        ],
    }


# ---- CONFIDENTIAL, for the curator: records from tables beside other ways to make records ----
# At the same promise: records from tables, the certified pseudo-posterior (a multinomial for each
# column), a noisy histogram of all columns together (of each column, where that has too many
# cells), and no privacy at all: records drawn from the data with replacement. Where figures are
# published the other private ways get the same loss per replaced record, and keep none of the
# figures.
#
# The errors are measured against the confidential data: choosing by them is covered by no
# promise.

LARGEST_HISTOGRAM = 2_000_000  # cells of all columns together
MEASURES = {1: "columns", 2: "pairs"}  # by how many columns a table has
WAYS = ("records from tables", "certified pseudo-posterior", "noisy histogram", "no privacy")

Shares = Callable[[Axes], Reals]  # the table of some columns as shares


@dataclass(frozen=True, eq=False)
class ComparedRecords:
    """CONFIDENTIAL: what every way is measured against.

    `made`: the plan's mechanism. `confidential` is what it fetched; `data` are the records by the
    levels that are counted (`made.schema`), where columns to be cut have bins of equal width.
    """

    made: TableRecords
    confidential: tuple[Confidential, int]
    data: Microdata

    @cached_property
    def levels(self) -> Mapping[str, Ints]:
        """CONFIDENTIAL: the level of every record in each column."""
        return CountedRecords.read(self.data, self.made.names).levels

    def rows(
        self, times: Sequence[Fraction], replicates: int, source: Randomness
    ) -> Iterator[dict[str, Any]]:
        """One row for each way, promise (so many times the plan's) and measure."""
        for factor, way in product(times, WAYS):
            each = one_by_one(range(replicates), f"{way}, {float(factor):g} times the promise")
            errors = [self._errors(self._drawn(way, factor, source)) for _ in each]
            yield from _summaries(way, float(factor), errors)

    def released(self, copies: Sequence[Any]) -> Iterator[dict[str, Any]]:
        """The same of records that were released."""
        each = [self._errors(_counted(self._levels_of(copy), self.made)) for copy in copies]
        yield from _summaries("as released", 1.0, each)

    def _errors(self, shares: Shares) -> dict[str, float]:
        """Mean total variation over columns, and over pairs of columns where there are any."""
        tables = {size: list(combinations(self.made.names, size)) for size in (1, 2)}
        return {
            MEASURES[size]: float(
                np.mean([_distance(self._truth, shares, table) for table in axes])
            )
            for size, axes in tables.items()
            if axes
        }

    @cached_property
    def _truth(self) -> Shares:
        return _remembered(_counted(self.levels, self.made))

    def _levels_of(self, copy: Any) -> Mapping[str, Ints]:
        return level_numbers(self.made.schema, copy)

    def _drawn(self, way: str, times: Fraction, source: Randomness) -> Shares:
        mechanism, rng = self.made, generator_of(source)
        if way == "no privacy":
            people = len(next(iter(self.levels.values())))
            rows = rng.integers(0, people, people)
            return _counted({name: codes[rows] for name, codes in self.levels.items()}, mechanism)
        if way == "noisy histogram":
            return self._histogram(float(mechanism.budget.amount * times), rng)
        if way == "records from tables":
            more = replace(mechanism.budget, amount=mechanism.budget.amount * times)
            release = replace(mechanism, budget=more, copies=1).release(self.confidential, source)
            return _counted(self._levels_of(release.copies[0]), mechanism)
        posterior = self._certified(times)
        copy = posterior.release(posterior.fit(self.data), source).copies[0]
        return _counted(self._levels_of(copy), mechanism)

    def _certified(self, times: Fraction) -> Synthesizer:
        """A multinomial for each column, at the same loss per replaced record."""
        amount = self.made.budget.amount * times
        if self.made.budget.law == "gaussian":  # pure epsilon implies rho = epsilon^2 / 2
            amount = Fraction(isqrt(int(2 * amount * GRID**2)), GRID)
        pairs = SemiAdjacent(Figures(self.made.schema))
        columns = [Column(name) for name in self.made.names if self.made.sizes[name] > 1]
        return Synthesizer.calibrate(Guarantee.pure(amount, under=pairs), columns)

    def _histogram(self, amount: float, rng: np.random.Generator) -> Shares:
        """All columns together with noise, cut at 0; column by column where cells are too many."""
        names = self.made.names
        if prod(self.made.shape(names)) <= LARGEST_HISTOGRAM:
            whole = self._noisy(names, amount, rng)
            return lambda axes: _summed(whole, names, axes)
        alone = {name: self._noisy((name,), amount / len(names), rng) for name in names}
        return lambda axes: np.asarray(
            np.multiply.outer(alone[axes[0]], alone[axes[1]]) if axes[1:] else alone[axes[0]]
        )

    def _noisy(self, axes: Axes, amount: float, rng: np.random.Generator) -> Reals:
        counts = self._truth(axes) * len(next(iter(self.levels.values())))
        if self.made.budget.law == "gaussian":
            noise = rng.normal(0.0, amount**-0.5, counts.shape)
        else:
            noise = rng.laplace(0.0, 2 / amount, counts.shape)
        cut = np.maximum(counts + noise, 0.0)
        return np.asarray(cut / cut.sum() if cut.sum() > 0 else np.full(cut.shape, 1 / cut.size))


def _counted(levels: Mapping[str, Ints], made: TableRecords) -> Shares:
    def shares(axes: Axes) -> Reals:
        counts = np.zeros(made.shape(axes))
        np.add.at(counts, tuple(levels[name] for name in axes), 1.0)
        return np.asarray(counts / counts.sum())

    return shares


def _remembered(shares: Shares) -> Shares:
    truths: dict[Axes, Reals] = {}

    def again(axes: Axes) -> Reals:
        if axes not in truths:
            truths[axes] = shares(axes)
        return truths[axes]

    return again


def _summed(table: Reals, names: Axes, axes: Axes) -> Reals:
    away = tuple(at for at, name in enumerate(names) if name not in axes)
    return np.asarray(table.sum(axis=away))


def _summaries(
    way: str, times: float, errors: Sequence[Mapping[str, float]]
) -> Iterator[dict[str, Any]]:
    for measure in errors[0]:
        errors_of = summary([error[measure] for error in errors])
        yield {"mechanism": way, "times": times, "measure": measure, **errors_of}


def _distance(one: Shares, other: Shares, axes: Axes) -> float:
    return total_variation(one(axes), other(axes))
