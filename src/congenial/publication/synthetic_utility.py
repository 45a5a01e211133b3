"""For the curator only: how well released synthetic records serve, and how much each record weighs.

Every number here is computed from the confidential records. It goes to a private folder, never into
a bundle, and choosing a parameter by it is not covered by any promise.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.advance import one_by_one
from congenial.data.rational import written
from congenial.data.records import fetch
from congenial.data.tabulate import Microdata
from congenial.errors import BundleError, PlanError
from congenial.publication.plan import Plan
from congenial.publication.private import private_file, private_folder
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.combine import combine
from congenial.synthesis.local import LABEL
from congenial.synthesis.local_levels import local_column
from congenial.synthesis.record_model import generator_of
from congenial.synthesis.records_from_models_release import SyntheticRelease
from congenial.synthesis.risk import RecordRisk, record_risk
from congenial.synthesis.utility_report import CoefficientRow, UtilityReport, utility_report

NOTES = (
    "CONFIDENTIAL, for the curator only: these numbers are computed from the confidential records. "
    "No bundle holds them, and they must not be published.",
    "Choosing M, Theta, a model, epsilon or the number of copies by looking at them is NOT covered "
    "by the promise of a release.",
)
OVERLAP = (
    "Overlap: how much of the two 95 % intervals is common to both, on average: 1 if they are "
    "the same, 0 if they just touch, below 0 if they are apart (by that many lengths of an "
    "interval)."
)
SETTLED = "its totals are published, so its records need no weights."
LOCAL_DRAWS, LOCAL_SEED = 1000, 20200101  # of the posterior; the seed only repeats the numbers
LOCAL_WORDS = (
    "The weights and epsilon of the pseudo-posterior paper for these data (weights by min-max of "
    f"the records' risk, Delta over {LOCAL_DRAWS:,} draws): {LABEL}. The release does not use them."
)
Regression = tuple[str, Sequence[str]]


def examine(
    plan: Plan, release: SyntheticRelease, regression: Regression | None = None
) -> dict[str, Any]:
    """CONFIDENTIAL: released copies against the plan's data, and the weight of every record.

    Numbers of several copies are averaged, with the least and the largest beside them; coefficients
    are combined by the rule for analysts.
    """
    if plan.schema.digest != release.schema.digest:
        raise PlanError(
            f"the bundle '{release.name}' has a schema that differs from the plan's.",
            remedy="Give the plan from which it was released.",
        )
    pairs: Any = release.guarantee.adjacency
    made = Synthesizer.from_dict(pairs, release.description.law)
    with Microdata.open(plan.source, plan.schema, plan.unit) as data:
        risks = record_risk(made, data)
        weightless = made.weightless(data)
        local = _local(made, made.fetch(data)[0])
        real, _ = fetch(data, made.names)
    copies = one_by_one(release.copies, "comparing copies with the data")
    reports = [utility_report(real, copy, plan.schema, regression) for copy in copies]
    first = reports[0]
    return {
        "release": release.name,
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
        "risk": [_risk(made, one) for one in risks if one.column not in made.settled],
    }


def _over(values: Sequence[float]) -> dict[str, float]:
    """A number over all copies."""
    found = np.asarray(values, dtype=float)
    return {
        "synthetic": float(found.mean()),
        "least": float(found.min()),
        "largest": float(found.max()),
    }


def _column(made: Synthesizer, name: str, reports: Sequence[UtilityReport]) -> dict[str, Any]:
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
    found = []
    for level, (low, high) in zip(attribute.levels, attribute.intervals, strict=False):
        if low is None and high is not None:
            found.append((level, f"the last number below {written(high)}"))
        elif high is None and low is not None:
            found.append((level, written(low)))
    return [
        f"{name}: everybody in the open class '{level}' is recorded as {number}, so quantiles in "
        "that class can differ from those of the data."
        for level, number in found
    ]


def _quantiles(reports: Sequence[UtilityReport]) -> list[dict[str, Any]]:
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


def _coefficients(reports: Sequence[UtilityReport]) -> list[dict[str, Any]]:
    """Coefficients that every copy has, combined; one copy stands for itself."""
    by_name = [{row.name: row for row in r.coefficients} for r in reports]
    found = []
    for name, first in by_name[0].items():
        rows = [some[name] for some in by_name if name in some]
        if len(rows) < len(reports):
            continue
        value, error = first.synthetic, first.synthetic_se
        if len(rows) > 1:
            one = combine([r.synthetic for r in rows], [r.synthetic_se**2 for r in rows])
            value, error = float(one.estimate), float(np.sqrt(one.variance))
        row = CoefficientRow(name, first.original, first.original_se, value, error)
        found.append(
            {
                "name": name,
                "original": row.original,
                "original_se": row.original_se,
                "synthetic": row.synthetic,
                "synthetic_se": row.synthetic_se,
                "overlap": row.overlap,
            }
        )
    return found


def _local(made: Synthesizer, counts: Sequence[Any]) -> list[dict[str, Any]]:
    """The paper's min-max weights of each column that is drawn, and the estimate they give."""
    generator = generator_of(SeededRandomness(LOCAL_SEED))
    named = zip(made.columns, made.kernels, counts, strict=True)
    return [
        {"column": one.name, **vars(local_column(kernel, table, LOCAL_DRAWS, generator))}
        for one, kernel, table in named
        if one.name not in made.settled
    ]


def _risk(made: Synthesizer, one: RecordRisk) -> dict[str, Any]:
    """What the records of each level weigh; a level has a row for each weight it has."""
    labels = made.schema.attribute(one.column).levels
    keys = np.stack([one.level, one.weight, one.used], axis=1)
    seen, at = np.unique(keys, axis=0, return_inverse=True)
    people = np.bincount(at.reshape(-1), one.records)
    return {
        "column": one.column,
        "records": int(one.records.sum()),
        "downweighted": int(one.records[one.weight < 1].sum()),
        "sum_of_weights": float(one.records @ one.weight),
        "levels": list(labels),
        "rows": [
            {"level": labels[int(level)], "records": int(n), "weight": weight, "used": used}
            for (level, weight, used), n in zip(seen.tolist(), people, strict=True)
        ],
    }


def write(document: dict[str, Any], folder: Path) -> list[Path]:
    """Write page and numbers to a private folder (only its owner may enter), never in a bundle."""
    from congenial.report.utility_page import render

    content = {
        "utility.json": json.dumps(document, indent=1),
        "utility.html": render(document),
    }
    private_folder(folder)
    paths = [folder / name for name in content]
    try:
        for path, text in zip(paths, content.values(), strict=True):
            private_file(path).write_text(text, encoding="utf-8")
    except OSError as reason:
        raise BundleError(f"'{folder}' cannot be written: {reason.strerror}.") from None
    return paths
