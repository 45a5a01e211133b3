"""The risk-utility curve: error of a statistic against epsilon, for the curator only.

One point is one mechanism at one setting: the certified one (a weight per record), the scalar one
(one weight for all, on the same Theta and levels), and the paper's local one (min-max weights with
c and g, whose epsilon is an estimate). Points are kept in a file of JSON lines as they are
finished, so an interrupted run goes on where it stopped. The file knows which plan and which data
its points belong to (the data by a fingerprint under a random key of its own) and refuses others.

CONFIDENTIAL: errors are measured against the confidential data, and choosing a setting by looking
at the curve is not covered by any promise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.arguments import (
    RANGE,
    RATIONAL,
    SEVERAL,
    listed,
    one_of,
    optional,
    takes,
)
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import Attribute
from congenial.data.table import Table
from congenial.data.tabulate import Microdata
from congenial.errors import DataError, GuaranteeError
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.column_kernels import Weighting
from congenial.synthesis.columns import Codes
from congenial.synthesis.local import LABEL, draw_locally
from congenial.synthesis.models.level_columns import ends
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.utility_report import NOTE, total_variation

DRAWS = 1000  # posterior draws that a local point reads its epsilon off


@dataclass(frozen=True)
class Measure:
    """What is compared: a quantile of a numeric column, or the distance of a column's levels.

    Quantiles are interpolated inside levels, for the data and the synthetic records alike.
    """

    column: str
    quantile: float | None = None

    @property
    def words(self) -> str:
        """In words."""
        if self.quantile is None:
            return f"total variation distance of {self.column}"
        return f"error of quantile {self.quantile:g} of {self.column}"

    def error(self, attribute: Attribute, truth: Ints, synthetic: Ints) -> float:
        """Absolute error of the quantile, or the distance."""
        if self.quantile is None:
            return total_variation(truth / truth.sum(), synthetic / synthetic.sum())
        a, b = (level_quantile(attribute, codes, self.quantile) for codes in (truth, synthetic))
        return abs(a - b)


def level_quantile(attribute: Attribute, counts: Ints, at: float) -> float:
    """A quantile of numbers known by their level, linear inside a level; open levels are points."""
    low, high = ends(attribute)
    if np.isnan(low).all():
        raise GuaranteeError(
            f"column {attribute.name!r} has no numbers.", remedy="Measure its distance instead."
        )
    usable = ~np.isnan(low) & (counts > 0)
    low, high, counts = low[usable], high[usable], counts[usable]
    low = np.where(np.isinf(low), high, low)
    high = np.where(np.isinf(high), low, high)
    last = np.cumsum(counts) / counts.sum()
    place = min(int(np.searchsorted(last, at)), len(last) - 1)
    inside = 1 - (last[place] - at) / (counts[place] / counts.sum())
    return float(low[place] + (high[place] - low[place]) * min(max(inside, 0.0), 1.0))


@takes(
    DataError,
    synthesizer=Synthesizer,
    data=one_of(Table, Microdata),
    measure=Measure,
    bounds=listed(RATIONAL),
    local=listed(RANGE),
    replicates=SEVERAL,
    results=optional(Path),
    randomness=optional(Randomness),
)
def risk_utility_curve(
    synthesizer: Synthesizer,
    data: Table | Microdata,
    measure: Measure,
    *,
    bounds: Sequence[Fraction | int | str] = (),
    local: Sequence[tuple[float, float]] = (),
    replicates: int = 20,
    results: Path | None = None,
    randomness: Randomness | None = None,
) -> list[dict[str, Any]]:
    """Sweep M over `bounds` for the certified and the scalar mechanism, and (c, g) over `local`.

    Each point is one dict: mechanism, setting, epsilon of one copy, its basis, the mean and the
    root mean square of the error over `replicates` draws, with standard errors (`summary`).
    `results` is a private file that keeps finished points.
    """
    randomness = SystemRandomness() if randomness is None else randomness
    points = list(_points(bounds, local))
    if not points:
        raise GuaranteeError("the curve has no points.", remedy="Give values of M, or (c, g).")
    truth = _Truth(synthesizer, data, measure)
    cache = _Kept(results, _key(synthesizer, measure, replicates), truth)
    rows = []
    for point in one_by_one(points, f"drawing for the {measure.words}"):
        row = cache.get(point)
        if row is None:
            row = point | _run(synthesizer, truth, point, replicates, randomness)
            cache.add(row)
        rows.append(row)
    return rows


def _points(
    bounds: Sequence[Fraction | int | str], local: Sequence[tuple[float, float]]
) -> Iterator[dict[str, Any]]:
    for bound in bounds:
        for mechanism in ("certified", "scalar"):
            yield {"mechanism": mechanism, "setting": {"M": str(Fraction(bound))}}
    for c, g in local:
        yield {"mechanism": "local", "setting": {"c": c, "g": g}}


class _Truth:
    """CONFIDENTIAL: what points are made from and compared with."""

    def __init__(self, synthesizer: Synthesizer, data: Table | Microdata, measure: Measure) -> None:
        self.counts, self.n = synthesizer.fetch(data)
        self.known: Codes = synthesizer.public_codes(data)
        self.measure = measure
        self.attribute = synthesizer.schema.attribute(measure.column)
        at = [column.name for column in synthesizer.columns].index(measure.column)
        self.levels: Ints = self.counts[at].sum(axis=0)

    def fingerprint(self, key: bytes) -> str:
        """Changes with the data; tells nothing to whoever lacks the key."""
        digest = hmac.new(key, digestmod="sha256")
        for array in (*self.counts, *self.known.values()):
            digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def error(self, codes: Codes) -> float:
        drawn = np.bincount(codes[self.measure.column], minlength=self.attribute.size)
        return self.measure.error(self.attribute, self.levels, drawn)


def _run(
    synthesizer: Synthesizer,
    truth: _Truth,
    point: dict[str, Any],
    replicates: int,
    randomness: Randomness,
) -> dict[str, Any]:
    generator = generator_of(randomness)
    n = truth.n if synthesizer.records is None else synthesizer.records
    errors = []
    if point["mechanism"] == "local":
        laws, epsilon = draw_locally(
            synthesizer.kernels, truth.counts, point["setting"], DRAWS, replicates, generator
        )
        epsilon *= getattr(synthesizer.adjacency, "records", 1)
        basis = LABEL
        for law in laws:
            errors.append(truth.error(synthesizer.records_given(law, generator, n, truth.known)))
    else:
        candidate = _at(synthesizer, point)
        epsilon, basis = float(candidate.epsilon), candidate.guarantee.basis
        fitted = candidate.laws(truth.counts)
        for _ in range(replicates):
            thetas = [[law.draw(randomness) for law in laws] for laws in fitted]
            errors.append(truth.error(candidate.records_from(thetas, generator, n, truth.known)))
    return {"epsilon": epsilon, "basis": basis, **summary(errors), "replicates": replicates}


def summary(errors: Sequence[float]) -> dict[str, float | None]:
    """Mean and root mean square of the errors, and what chance does to both (standard errors).

    The root's standard error is that of the mean square over twice the root (delta method). One
    replicate has none.

    >>> summary([3.0, 4.0, 5.0])["mean_error"], summary([7.0])["mean_se"]
    (4.0, None)
    """
    size: Floats = np.asarray(errors, dtype=float)
    rms = float(np.sqrt((size**2).mean()))
    several = len(size) > 1
    return {
        "mean_error": float(size.mean()),
        "mean_se": _standard_error(size) if several else None,
        "rms_error": rms,
        "rms_se": (_standard_error(size**2) / (2 * rms) if rms else 0.0) if several else None,
    }


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def _at(synthesizer: Synthesizer, point: dict[str, Any]) -> Synthesizer:
    """The certified or the scalar mechanism at M, one copy."""
    weighting: Weighting = "record" if point["mechanism"] == "certified" else "scalar"
    columns = tuple(replace(column, weighting=weighting) for column in synthesizer.columns)
    bound = Fraction(point["setting"]["M"])
    return replace(synthesizer, columns=columns, bound=bound, copies=1)


def _key(synthesizer: Synthesizer, measure: Measure, replicates: int) -> str:
    """What makes two runs the same curve, data apart: all but M, the copies and the weighting."""
    document = synthesizer.to_dict()
    plain = [
        {k: v for k, v in column.items() if k != "weighting"} for column in document["columns"]
    ]
    pairs = synthesizer.adjacency
    parts = [plain, document["public"], document["records"], pairs.to_dict(), pairs.figures.digest]
    parts += [synthesizer.settled, list(summary([0.0]))]  # whose share goes where; what is kept
    text = json.dumps([*parts, measure.words, replicates, DRAWS], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


class _Kept:
    """Finished points in a private file of JSON lines; the first line says what they belong to."""

    def __init__(self, path: Path | None, curve: str, truth: _Truth) -> None:
        self.path, self.rows = path, []
        if path is None:
            return
        lines = _lines(path)
        key = secrets.token_bytes(32)
        if lines:
            key = _refuse_others(path, lines[0], curve, truth)
            self.rows = lines[1:]
        first = {"note": NOTE, "curve": curve, "key": key.hex(), "data": truth.fingerprint(key)}
        whole = [first, *self.rows]  # a line cut short is written again
        path.touch(mode=0o600)
        path.write_text("".join(json.dumps(line) + "\n" for line in whole), encoding="utf-8")

    def get(self, point: dict[str, Any]) -> dict[str, Any] | None:
        same = (row for row in self.rows if all(row.get(k) == v for k, v in point.items()))
        return next(same, None)

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")


def _refuse_others(path: Path, first: dict[str, Any], curve: str, truth: _Truth) -> bytes:
    """The key of a file whose points belong to this plan and these data."""
    what = ""
    if first.get("curve") != curve:
        what = "of another plan, measure or number of draws"
    try:
        key = bytes.fromhex(first.get("key", ""))
    except (TypeError, ValueError):
        key = b""
    if not what and first.get("data") != truth.fingerprint(key):
        what = "measured against other data"
    if what:
        raise DataError(
            f"{path.name!r} holds points {what}.",
            remedy="Delete it, or keep the new points elsewhere (--out).",
        )
    return key


def _lines(path: Path) -> list[dict[str, Any]]:
    """The complete lines of a file, if there is one."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break
    if not all(isinstance(line, dict) for line in rows):
        raise DataError(f"{path.name!r} is not a file of a curve.", remedy="Give another file.")
    return rows


# ---- For the curator only: how much each record counts, for a picture of risk by record ----


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
    rows = []
    for column, kernel, table in zip(synthesizer.columns, synthesizer.kernels, counts, strict=True):
        context, level = np.nonzero(table)
        where: Any = (context, level)
        rows.append(
            RecordRisk(column.name, level, table[where], kernel.weights[where], kernel.used[where])
        )
    return tuple(rows)
