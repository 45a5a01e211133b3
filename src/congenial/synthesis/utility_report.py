"""For the curator only: how well synthetic records serve, compared with the confidential ones.

Every number here is computed from confidential records and belongs in no bundle. Choosing M, Theta
or a model by looking at them is not covered by any promise (`NOTE`, printed with every report).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from congenial.data.arguments import NAMES, TEXT, Rule, either, optional, takes
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import codes, fetch
from congenial.errors import DataError

NOTES = (
    "CONFIDENTIAL, for the curator only: these numbers are computed from the confidential records. "
    "No bundle holds them, and they must not be published.",
    "Choosing a mechanism, a model, columns, M, Theta, the promise or the number of copies by "
    "looking at them is NOT covered by the promise of a release.",
)
NOTE = " ".join(NOTES)
QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)

FRAME = Rule("an Arrow table", lambda one: isinstance(getattr(one, "column_names", None), list))
RECORDS = either(Microdata, FRAME)
MODEL = Rule("a response and a list of predictors", lambda one: _is_model(one))


@dataclass(frozen=True)
class QuantileRow:
    """A quantile of the data with its 95 % sampling interval, and of the synthetic records."""

    column: str
    at: float
    original: float
    low: float
    high: float
    synthetic: float


@dataclass(frozen=True)
class CoefficientRow:
    """A regression coefficient in both, with standard errors and the overlap of intervals."""

    name: str
    original: float
    original_se: float
    synthetic: float
    synthetic_se: float

    @property
    def overlap(self) -> float:
        """Mean share of the two 95 % intervals that they have in common; negative when apart."""
        a, b = 1.96 * self.original_se, 1.96 * self.synthetic_se
        common = min(self.original + a, self.synthetic + b)
        common -= max(self.original - a, self.synthetic - b)
        return 0.5 * (common / (2 * a) + common / (2 * b)) if a > 0 and b > 0 else math.nan


@dataclass(frozen=True)
class UtilityReport:
    """How synthetic records compare. CONFIDENTIAL: prints the warning first and is not pickled.

    marginals: total variation distance of each column's levels, shares: those of both by level, the
    data's first. pmse: how well a logistic
    regression tells the two apart; pmse_ratio: relative to what it is when both have the same law
    (1 is perfect). uniques: combinations of levels that one record has, replicated: those among
    them that exactly one synthetic record has too.
    """

    marginals: dict[str, float]
    quantiles: tuple[QuantileRow, ...]
    correlations: dict[tuple[str, str], tuple[float, float]]
    pmse: float
    pmse_ratio: float
    uniques: int
    replicated: int
    coefficients: tuple[CoefficientRow, ...]
    shares: dict[str, tuple[Floats, Floats]] = field(repr=False)

    note = NOTE

    def __str__(self) -> str:
        lines = [NOTE, ""]
        lines += [f"{name}: total variation {d:.4f}" for name, d in self.marginals.items()]
        lines += [
            f"{q.column}, quantile {q.at:g}: {q.original:.6g} ({q.low:.6g} to {q.high:.6g}), "
            f"synthetic {q.synthetic:.6g}"
            for q in self.quantiles
        ]
        lines += [
            f"correlation of {a} and {b}: {x:.3f}, synthetic {y:.3f}"
            for (a, b), (x, y) in self.correlations.items()
        ]
        lines += [
            f"coefficient of {c.name}: {c.original:.6g}, synthetic {c.synthetic:.6g}, overlap of "
            f"intervals {c.overlap:.2f}"
            for c in self.coefficients
        ]
        lines.append(
            f"pMSE {self.pmse:.3g}, {self.pmse_ratio:.2f} times its value under equal laws"
        )
        lines.append(f"unique combinations: {self.uniques}, of which replicated: {self.replicated}")
        return "\n".join(lines)

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise DataError(
            "a utility report is confidential and cannot be pickled or copied.",
            remedy="Read it where the data are.",
        )


@takes(DataError, original=RECORDS, synthetic=FRAME, schema=Schema, regression=optional(MODEL))
def utility_report(
    original: Microdata | Any,
    synthetic: Any,
    schema: Schema,
    regression: tuple[str, Sequence[str]] | None = None,
) -> UtilityReport:
    """Compare confidential records (Microdata or an Arrow table) with one synthetic Arrow table.

    regression: (response, predictors) of a linear model fitted to both; columns without variation
    are left out of it. Quantiles, correlations and regression use numeric columns.
    """
    names = list(synthetic.column_names)
    real = fetch(original, names)[0] if isinstance(original, Microdata) else original
    both = [
        {name: codes(schema.attribute(name), t[name]) for name in names} for t in (real, synthetic)
    ]
    for name in names:
        if any((side[name] < 0).any() for side in both):
            raise DataError(
                f"column {name!r} has values outside the schema.",
                remedy="Add a category for them.",
            )
    numeric = [name for name in names if schema.attribute(name).kind != "categorical"]
    values = [{name: _numbers(t[name]) for name in numeric} for t in (real, synthetic)]
    pmse, ratio = _pmse(*(_design(schema, names, c, v) for c, v in zip(both, values, strict=True)))
    uniques, replicated = _uniques(*(np.stack([c[n] for n in names]) for c in both))
    rows = () if regression is None else _coefficients(values[0], values[1], *regression)
    size = {name: schema.attribute(name).size for name in names}
    shares = {n: (_shares(both[0][n], size[n]), _shares(both[1][n], size[n])) for n in names}
    return UtilityReport(
        {n: total_variation(p, q) for n, (p, q) in shares.items()},
        tuple(_quantile(n, at, *(v[n] for v in values)) for n in numeric for at in QUANTILES),
        _correlations(numeric, *values),
        pmse,
        ratio,
        uniques,
        replicated,
        rows,
        shares,
    )


def total_variation(first: Floats, second: Floats) -> float:
    """Half the sum of the absolute differences of two laws.

    >>> total_variation(np.array([0.5, 0.5]), np.array([1.0, 0.0]))
    0.5
    """
    return float(np.abs(first - second).sum() / 2)


def _numbers(column: Any) -> Floats:
    """The numbers of a column, which may be text as in a CSV file; NaN where there is none."""
    return np.asarray(pc.fill_null(column.cast(pa.float64(), safe=False), np.nan), dtype=float)


def _shares(levels: Ints, size: int) -> Floats:
    return np.asarray(np.bincount(levels, minlength=size) / len(levels))


def _quantile(name: str, at: float, real: Floats, synthetic: Floats) -> QuantileRow:
    """The interval is between order statistics, by the normal approximation of their ranks."""
    real, synthetic = (np.sort(side[~np.isnan(side)]) for side in (real, synthetic))
    n = len(real)
    reach = 1.96 * math.sqrt(at * (1 - at) / n)
    low, high = (float(np.quantile(real, min(max(at + s * reach, 0), 1))) for s in (-1, 1))
    return QuantileRow(
        name, at, float(np.quantile(real, at)), low, high, float(np.quantile(synthetic, at))
    )


def _correlations(
    names: Sequence[str], real: dict[str, Floats], synthetic: dict[str, Floats]
) -> dict[tuple[str, str], tuple[float, float]]:
    return {
        (a, b): (_correlation(real[a], real[b]), _correlation(synthetic[a], synthetic[b]))
        for a, b in combinations(names, 2)
    }


def _correlation(x: Floats, y: Floats) -> float:
    complete = ~(np.isnan(x) | np.isnan(y))
    if complete.sum() < 2 or x[complete].std() == 0 or y[complete].std() == 0:
        return math.nan
    return float(np.corrcoef(x[complete], y[complete])[0, 1])


def _uniques(real: Ints, synthetic: Ints) -> tuple[int, int]:
    """Columns are records. Combinations one real record has; those one synthetic one has too."""
    _, label = np.unique(np.concatenate([real, synthetic], axis=1), axis=1, return_inverse=True)
    label = label.reshape(-1)
    size = int(label.max()) + 1
    once = [
        np.bincount(part, minlength=size) == 1
        for part in (label[: real.shape[1]], label[real.shape[1] :])
    ]
    return int(once[0].sum()), int((once[0] & once[1]).sum())


def _design(
    schema: Schema, names: Sequence[str], level: dict[str, Ints], values: dict[str, Floats]
) -> Floats:
    """Numbers as they are (0 where missing, with an indicator), categories as indicators."""
    parts: list[Floats] = []
    for name in names:
        attribute: Attribute = schema.attribute(name)
        if attribute.kind == "categorical":
            parts.append(np.eye(attribute.size)[level[name]][:, 1:])
        else:
            missing = np.isnan(values[name])
            parts.append(np.column_stack([np.where(missing, 0.0, values[name]), missing]))
    return np.concatenate(parts, axis=1)


def _pmse(real: Floats, synthetic: Floats) -> tuple[float, float]:
    """pMSE of main effects; ratio to the null, (k - 1) (1 - c)^2 c / N (Snoke et al. 2018)."""
    x = np.concatenate([real, synthetic])
    x = x[:, x.std(axis=0) > 0]
    x = np.column_stack([np.ones(len(x)), (x - x.mean(axis=0)) / x.std(axis=0)])
    x = x[:, _independent(x)]
    y = np.repeat([0.0, 1.0], [len(real), len(synthetic)])
    c = float(y.mean())
    p = _logistic(x, y)
    pmse = float(((p - c) ** 2).mean())
    null = (x.shape[1] - 1) * (1 - c) ** 2 * c / len(x)
    return pmse, pmse / null if null > 0 else math.nan


def _independent(x: Floats) -> Ints:
    """Columns that do not depend on those before them."""
    r = np.abs(np.diag(np.linalg.qr(x, mode="r")))
    return np.flatnonzero(r > 1e-9 * r.max())


def _logistic(x: Floats, y: Floats) -> Floats:
    """Fitted probabilities by Newton's method with a trace of ridge, which keeps it finite."""
    b = np.zeros(x.shape[1])
    for _ in range(30):
        p = 1 / (1 + np.exp(-np.clip(x @ b, -30, 30)))
        hessian = (x * (p * (1 - p))[:, None]).T @ x + 1e-8 * len(x) * np.eye(len(b))
        step = np.linalg.solve(hessian, x.T @ (y - p) - 1e-8 * len(x) * b)
        b = b + step
        if np.abs(step).max() < 1e-8:
            break
    return np.asarray(1 / (1 + np.exp(-np.clip(x @ b, -30, 30))))


def _coefficients(
    real: dict[str, Floats], synthetic: dict[str, Floats], response: str, predictors: Sequence[str]
) -> tuple[CoefficientRow, ...]:
    for name in (response, *predictors):
        if name not in real:
            raise DataError(f"column {name!r} has no numbers to regress.", remedy="Name another.")
    used = [p for p in predictors if all(np.nanstd(t[p]) > 0 for t in (real, synthetic))]
    fits = [_least_squares(table, response, used) for table in (real, synthetic)]
    return tuple(
        CoefficientRow(name, *(float(v[at]) for fit in fits for v in fit))
        for at, name in enumerate(("constant", *used))
    )


def _least_squares(
    table: dict[str, Floats], response: str, predictors: Sequence[str]
) -> tuple[Floats, Floats]:
    x = np.column_stack([np.ones(len(table[response])), *(table[p] for p in predictors)])
    complete = ~(np.isnan(x).any(axis=1) | np.isnan(table[response]))
    x, y = x[complete], table[response][complete]
    b, *_ = np.linalg.lstsq(x, y, rcond=None)
    variance = float(((y - x @ b) ** 2).sum()) / max(1, len(y) - x.shape[1])
    error = np.sqrt(variance * np.diag(np.linalg.pinv(x.T @ x)))
    return np.asarray(b, dtype=float), np.asarray(error, dtype=float)


def _is_model(value: Any) -> bool:
    pair = isinstance(value, tuple) and len(value) == 2
    return pair and TEXT.holds(value[0]) and NAMES.holds(value[1])
