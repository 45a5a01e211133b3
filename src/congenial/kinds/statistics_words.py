"""What `congenial check` says about a release of statistics."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from congenial.kinds.kind import Document, Screen

if TYPE_CHECKING:
    from congenial.kinds.statistics_offer import StatisticsCheck


def examine(one: StatisticsCheck) -> Document:
    """The check of one section as plain data."""
    error = one.mechanism.fit_error
    bounded = error is not None and math.isfinite(error.bound)
    return {
        "name": one.section.name,
        "kind": "statistics",
        "statistics": list(one.section.statistics),
        "records": one.section.records,
        "mechanism": one.mechanism.name,
        "candidates": one.choice.table(),
        "errors": [
            {"what": name, "standard_deviation": deviation}
            for name, deviation in zip(
                one.section.statistics,
                (one.mechanism.noise.total_covariance.diagonal() ** 0.5).tolist(),
                strict=True,
            )
        ],
        "fit_error": error and vars(error) | {"bound": error.bound if bounded else None},
        "fit_words": one.fit_words,
        "model_error": one.model_error,
        "diagnosis": one.diagnosis.words,
        "doubtful": [
            {"assumption": test.assumption, "about": test.about, "test": test.test, "p": test.p}
            for test in one.diagnosis.doubtful
        ],
        "guarantee": one.guarantee.to_dict(),
        "promise": one.guarantee.explain(),
        "persons": None if one.persons is None else one.persons.explain(),
        "per_person": None if one.persons is None else one.persons.tradeoff.words,
        "wanted": None,
    }


def show(one: Document, screen: Screen) -> None:
    """The check of one section for people."""
    many = len(one["statistics"])
    screen.heading(
        f"Release '{one['name']}': {many} statistics" if many > 1 else f"Release '{one['name']}'"
    )
    screen.paragraph(one["promise"])
    screen.paragraph("")
    if one["fit_words"]:
        screen.paragraph(f"Error of the fit: {one['fit_words']}", style="bold")
        screen.paragraph("")
    screen.paragraph(one["persons"] or "Single persons: this release promises nothing about them.")
    screen.paragraph("")
    screen.table(
        ("error of", "standard deviation"),
        [(row["what"], f"{row['standard_deviation']:.4g}") for row in one["errors"]],
        numbers=("standard deviation",),
    )
    screen.paragraph("")
    rows = [
        (
            ("* " if row["mechanism"] == one["mechanism"] else "") + row["mechanism"],
            "-" if row["expected_error"] is None else f"{row['expected_error']:.4g}",
            row.get("directions", "-"),
            row.get("why_not", ""),
        )
        for row in one["candidates"]
    ]
    screen.table(
        ("mechanism", "expected error", "directions", "why not"),
        rows,
        numbers=("expected error", "directions"),
    )
    _show_model_error(one, screen)
    screen.paragraph(f"The fit: {one['diagnosis']}")
    for test in one["doubtful"]:
        screen.paragraph(
            f"- {test['assumption']}: {test['about']} ({test['test']}, p = {test['p']:.2g})"
        )


def _show_model_error(one: Document, screen: Screen) -> None:
    """Theorems 4.6 and 4.7 as numbers, where the laws are Gaussian."""
    if not one["model_error"]:
        return
    screen.paragraph("")
    screen.paragraph(
        "If the laws are somewhat wrong. The first two columns: laws within (lambda, eta) of the "
        "true ones give this promise (Theorem 4.6); eta is that of equal covariances. The last "
        "two: laws within a distance W (W_inf, l1) give the same epsilon with this delta, once "
        "Laplace noise of so many times W is added in every statistic (Theorem 4.7)."
    )
    rows = [
        (
            f"{row['lambda']:g}",
            f"{row['eta']:.2g}",
            f"{row['epsilon']:.4g}",
            f"{row['delta']:.3g}",
            f"{row['delta_with_noise']:.3g}",
            f"{row['noise_per_distance']:g} W",
        )
        for row in one["model_error"]
    ]
    columns = ("lambda", "eta", "epsilon", "delta", "delta with noise", "noise")
    screen.table(columns, rows, numbers=columns)
    screen.paragraph("")
