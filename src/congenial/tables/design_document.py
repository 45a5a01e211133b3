"""A design as plain data for a bundle, and whether what it says holds, worked out anew.

The document says what was made small, under which promise, over which difference types, and the
multipliers that prove how near the best it is. Nothing in it is believed: types, loss, variances
and the proven share are recomputed from the tables, the figures and the noise parameters.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.magnitude import Magnitude
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.data.workload import Workload
from congenial.errors import CongenialError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.restricted_figures import summed_out
from congenial.pairs.difference_types import DifferenceTypes, difference_types
from congenial.pairs.pairs import Adjacency
from congenial.privacy.descriptions import TablesDescription
from congenial.tables.aims import LargestRatio, Objective, PowerMean
from congenial.tables.design import NO_CERTIFICATE, Design
from congenial.tables.information import Information
from congenial.tables.optimise import DesignCertificate
from congenial.tables.promise import Law

NEAR = 1e-6  # relative difference of recomputed numbers
APPROXIMATED = (
    "of variances as if blocks were equal and crossed evenly; the standard deviations printed are "
    "not so simplified"
)


def variance_model(workload: Workload, figures: Figures, types: DifferenceTypes) -> Information:
    """The variances that a design makes small; `approximate` where they have no closed form."""
    figures = summed_out(figures, workload.axes)
    total_fixed, moved = figures.tells_total, tuple(map(any, zip(*types.squares, strict=True)))
    try:
        return Information.of(workload, figures, people_kept=total_fixed, moved=moved)
    except StructureError:
        return Information.of(
            workload, figures, people_kept=total_fixed, moved=moved, approximate=True
        )


@dataclass(frozen=True, eq=False)
class Together:
    """Variances of several measures of the same tables, whose noise is independent.

    `shifts`: of each measure, what is added of the first one's estimates (`Magnitude.shift`).
    """

    models: tuple[Information, ...]
    size: int  # tables of each
    shifts: tuple[float, ...]

    @property
    def approximate(self) -> bool:
        """Whether one of them is."""
        return any(model.approximate for model in self.models)

    def _parts(self, *values: Floats) -> Iterator[tuple[Information, tuple[Floats, ...]]]:
        for at, model in enumerate(self.models):
            yield model, tuple(vector[at * self.size : (at + 1) * self.size] for vector in values)

    def variances(self, precisions: Floats) -> Floats:
        """Mean variance of the cells of each table, measure by measure."""
        apart = [model.variances(*part) for model, part in self._parts(precisions)]
        pairs = zip(apart, self.shifts, strict=True)
        return np.concatenate(
            [variances + shift**2 * apart[0] if shift else variances for variances, shift in pairs]
        )

    def gains(self, precisions: Floats, weights: Floats) -> Floats:
        """-d/dp_c of sum_b weights_b V_b, for each table c."""
        of_measure = weights.reshape(len(self.models), -1).copy()
        of_measure[0] += np.square(self.shifts) @ of_measure
        parts = self._parts(precisions, of_measure.reshape(-1))
        return np.concatenate([model.gains(*part) for model, part in parts])


Model = Information | Together


def repeated(schema: Schema, tables: Sequence[Sequence[str]], times: int) -> Workload:
    """The same tables once for each of several measures, one measure after the other."""
    return Workload.of(schema, [*tables] * times)


def model_of(
    workload: Workload,
    given: Sequence[Figures],
    types: DifferenceTypes,
    measures: Sequence[Magnitude | None],
) -> Model:
    """The variances of tables that are repeated for several measures, each given its figures."""
    if len(given) == 1:
        return variance_model(workload, given[0], types)
    size = len(workload.tables) // len(given)
    first = Workload.of(workload.schema, workload.tables[:size])
    models = []
    for at, figures in enumerate(given):
        moved = tuple(row[at * size : (at + 1) * size] for row in types.squares)
        models.append(variance_model(first, figures, replace(types, squares=moved)))
    units = types.units[::size]
    pairs = zip(measures, units, strict=True)
    shifts = tuple(
        0.0 if magnitude is None else magnitude.offset / unit for magnitude, unit in pairs
    )
    return Together(tuple(models), size, shifts)


def document(found: Design, model: Model, aim: str) -> dict[str, Any]:
    """A design as plain data."""
    types = found.types
    return {
        "aim": aim,
        "law": found.law,
        "promise": str(found.promise),
        "parameters": [str(value) for value in found.parameters],
        "mean_variances": list(found.variances),
        "alone": list(found.single),
        "types": {
            "method": types.method,
            "footing": types.footing,
            "reason": types.reason,
            "records": types.records,
            "maximal": [list(row) for row in _norms(types, found.law)],
        },
        "objective": _objective(found.objective),
        "certificate": _certificate(found.certificate),
        "words": _words(found, model),
    }


def _words(found: Design, model: Model) -> str:
    about = f" ({APPROXIMATED})" if model.approximate and found.certificate is not None else ""
    return found.words + about


def _norms(types: DifferenceTypes, law: Law) -> Sequence[Sequence[int]]:
    return types.squares if law == "gaussian" else types.absolutes


def _objective(one: Objective) -> dict[str, Any]:
    if isinstance(one, LargestRatio):
        return {"kind": "largest ratio", "factors": one.factors.tolist()}
    assert isinstance(one, PowerMean)
    return {
        "kind": "power mean",
        "shares": one.shares.tolist(),
        "factors": one.factors.tolist(),
        "order": one.order,
    }


def _read_objective(data: Mapping[str, Any]) -> Objective:
    factors = np.array(data["factors"], dtype=float)
    if data["kind"] == "largest ratio":
        return LargestRatio(factors)
    return PowerMean(np.array(data["shares"], dtype=float), factors, float(data["order"]))


def _certificate(one: DesignCertificate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    tables = None if one.tables is None else list(one.tables)
    return {"share": one.share, "types": list(one.types), "tables": tables}


def _read_certificate(data: Mapping[str, Any] | None) -> DesignCertificate | None:
    if data is None:
        return None
    tables = data["tables"]
    return DesignCertificate(
        float(data["share"]),
        tuple(float(value) for value in data["types"]),
        None if tables is None else tuple(float(value) for value in tables),
    )


@dataclass(frozen=True)
class DesignChecks:
    """What holds of a design as written: the promise kept, its types, and how near the best."""

    feasible: bool
    types: bool
    gap: bool


def recheck(told: TablesDescription, workload: Workload, adjacency: Adjacency) -> DesignChecks:
    """Work out a design anew, and compare it with the noise that was drawn."""
    try:
        return _recheck(told, workload, adjacency)
    except (CongenialError, ArithmeticError, KeyError, TypeError, ValueError, IndexError):
        return DesignChecks(False, False, False)


def _recheck(
    description: TablesDescription, workload: Workload, adjacency: Adjacency
) -> DesignChecks:
    described, measures = description.design, description.measures
    tables, workload = workload.tables, repeated(workload.schema, workload.tables, len(measures))
    of_measure = [measure.magnitude for measure in measures]
    numbers = [number for number in of_measure for _ in tables]
    types, law = difference_types(adjacency, workload, numbers), described["law"]
    model = model_of(workload, [measure.support for measure in measures], types, of_measure)
    drawn = [{law.table: law.scale for law in measure.measured} for measure in measures]
    scales = tuple(of_measure.get(names) for of_measure in drawn for names in tables)
    read = Design(
        workload,
        types,
        law,
        tuple(fraction(value) for value in described["parameters"]),
        fraction(described["promise"]),
        tuple(described["mean_variances"]),
        tuple(described["alone"]),
        _read_objective(described["objective"]),
        _read_certificate(described["certificate"]),
    )
    same = document(read, model, described["aim"])
    return DesignChecks(
        read.scales == scales and read.family == description.family and read.feasible(),
        repr(same["types"]) == repr(described["types"]) and _nothing_else(described, same),
        _gap(read, model) and _variances(read, model),
    )


def _nothing_else(told: Mapping[str, Any], same: Mapping[str, Any]) -> bool:
    """Whether a design has the words and the fields that are written, and no others."""
    written = ("words", "objective", "certificate", "parameters", "promise")
    return all(told[key] == same[key] for key in written) and told.keys() == same.keys()


def _gap(found: Design, model: Model) -> bool:
    if found.certificate is None:
        return found.words == NO_CERTIFICATE and found.law == "geometric"
    return bool(np.isclose(found.certified_share(model), found.certificate.share, rtol=NEAR))


def _variances(found: Design, model: Model) -> bool:
    x = np.array([float(value) for value in found.parameters])
    precisions = x if found.law == "gaussian" else x * x / 2
    return bool(
        np.allclose(model.variances(precisions), found.variances, rtol=NEAR)
        and np.allclose(found.single_again(model), found.single, rtol=NEAR)
    )
