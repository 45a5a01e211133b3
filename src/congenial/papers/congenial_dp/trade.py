"""Condition or project: every method on Table 1, at one promise, under more and more figures."""

from __future__ import annotations

from typing import Any

from congenial.figures.figures import publish
from congenial.figures.statements import Statement, count, total
from congenial.papers.congenial_dp.example import TABLE1, published
from congenial.papers.item import Study
from congenial.papers.post_processing.comparison import compare
from congenial.papers.post_processing.methods import METHODS
from congenial.sampling.randomness import SeededRandomness

MANDATES: dict[str, tuple[Statement, ...]] = {
    "total": (total(),),
    "total, 18 and over": (total(), count("age >= 18")),
    "total, female, 18 and over": (total(), count("sex = 'female'"), count("age >= 18")),
}
COLUMNS = ("eps_cell", "l1", "l2", "negative_share", "figures_kept")


def run(study: Study) -> dict[str, Any]:
    """Mean distances from the truth at epsilon = 1 per person given each set of figures."""
    table, randomness, rows = published(TABLE1)[0], SeededRandomness(study.seed), []
    draws = 10 if study.quick else 200
    for words, statements in MANDATES.items():
        study.progress(words)
        compared = compare(table, publish(table, *statements), 1, list(METHODS), draws, randomness)
        for name in METHODS:
            row = compared.overall(name)
            rows.append([words, row["method"], *(row[c] for c in COLUMNS)])
    return {
        "columns": ["mandates", "method", *COLUMNS],
        "rows": rows,
        "notes": [
            f"{draws} draws each; epsilon = 1 per person over the databases that agree with the "
            "mandates, for every method. Noise is paid for by eps_cell x Delta_1, which grows with "
            "the figures (2, 4, 6); only conditioning on signs pays more.",
        ],
        "chart": {
            "kind": "bar",
            "x": "mandates",
            "x_title": "published figures",
            "y": "l1",
            "by": "method",
            "y_title": "mean l1 distance from the truth",
        },
    }
