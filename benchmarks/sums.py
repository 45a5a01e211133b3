"""Why the sums are right: sums of cells made nonnegative one by one, beside counts fitted together.

Run `python -m benchmarks sums`; `python -m benchmarks.sums docs/images/sums.svg` draws the picture
of the page "Why the sums are right". The people are made up: 300 towns of 6 counties, 8 languages,
most of them rare. All from pinned seeds. One row per table: root mean square error, and mean error
of the rarest language, over all releases, for both columns; both start from the same noisy cells.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.kinds.tables import KIND
from congenial.publication.plan import Plan
from congenial.sampling.randomness import SeededRandomness

TOWNS, COUNTIES, RELEASES = 300, 6, 20
LANGUAGES = ("Alva", "Brin", "Corr", "Dell", "Esk", "Fenn", "Gorse", "Holm")
SHARES = (0.90, 0.05, 0.02, 0.012, 0.008, 0.005, 0.003, 0.002)
PEOPLE_PER_TOWN = 200
TABLES = (("town", "language"), ("county", "language"), ("language",))
PLAN = f"""
[data]
source = "people.csv"
[schema]
town = {{ levels = {[f"T{i}" for i in range(TOWNS)]}, within = {{ county = {
    [f"C{i * COUNTIES // TOWNS}" for i in range(TOWNS)]
} }} }}
language = {{ levels = {list(LANGUAGES)} }}
[[release]]
name = "languages"
tables = {[list(one) for one in TABLES]}
rho = 0.1
[budget]
ledger = "ledger.sqlite"
rho = 1
"""


def people(schema: Schema) -> Table:
    """The made-up counts of people by town and language."""
    generator = np.random.default_rng(5)
    counts = generator.multinomial(PEOPLE_PER_TOWN, SHARES, size=TOWNS)
    return Table(schema, ("town", "language"), counts)


def columns() -> dict[tuple[str, ...], tuple[Any, Any, Any]]:
    """By table: the truth, and per release the sums one by one and the counts that are printed."""
    plan = Plan.parse(PLAN, Path())
    truth = people(plan.schema)
    figures = plan.figures.evaluate(truth)
    built = KIND.build(plan, plan.release[0], figures)  # type: ignore[arg-type]
    source = SeededRandomness(6)
    releases = [built.release(truth, source) for _ in range(RELEASES)]
    alone = [
        np.maximum(one.to_arrow(*TABLES[0])["count_as_drawn"].to_numpy(), 0) for one in releases
    ]
    return {
        names: (
            _summed(truth.counts, names),
            np.array([_summed(one.reshape(TOWNS, -1), names) for one in alone]),
            np.array([one.to_arrow(*names)["count"].to_numpy() for one in releases]),
        )
        for names in TABLES
    }


def _summed(cells: Any, names: tuple[str, ...]) -> Any:
    groups = {"town": TOWNS, "county": COUNTIES}.get(names[0], 1)
    return cells.reshape(groups, -1, len(LANGUAGES)).sum(axis=1).ravel()


SMALLEST = {"RELEASES": 1}


def run() -> list[dict[str, Any]]:
    """Error of both columns, table by table."""
    return [
        {
            "table": " x ".join(names),
            "one by one: error": float(((alone - truth) ** 2).mean() ** 0.5),
            "one by one: rarest": _rarest(alone - truth),
            "together: error": float(((fitted - truth) ** 2).mean() ** 0.5),
            "together: rarest": _rarest(fitted - truth),
        }
        for names, (truth, alone, fitted) in columns().items()
    ]


def _rarest(errors: Any) -> float:
    """Mean error of the rarest language's counts: above zero where counts are pushed up."""
    return float(errors.reshape(RELEASES, -1, len(LANGUAGES))[:, :, -1].mean())


def picture() -> str:
    """Two columns of the first release: every language but the first, beside its true number."""
    truth, alone, fitted = columns()["language",]
    top = float(max(alone[0, 1:].max(), truth[1:].max()))
    panels = [
        _panel(40, "cells made nonnegative one by one", truth[1:], alone[0, 1:], top),
        _panel(430, "sums measured too, fitted together", truth[1:], fitted[0, 1:], top),
    ]
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 830 330" font-family="sans-serif" '
        'font-size="12">\n<rect width="830" height="330" fill="#fff"/>\n'
        + "".join(panels)
        + "</svg>\n"
    )


def _panel(left: int, title: str, truth: Any, printed: Any, top: float) -> str:
    parts = [f'<text x="{left}" y="24" font-size="14">{title}</text>\n']
    for place, (name, true, told) in enumerate(zip(LANGUAGES[1:], truth, printed, strict=True)):
        y, whole, bar = 42 + 38 * place, 200 * true / top, 200 * told / top
        end = left + 50 + max(whole, bar)
        parts.append(
            f'<text x="{left}" y="{y + 17}">{name}</text>\n'
            f'<rect x="{left + 45}" y="{y}" width="{whole:.1f}" height="11" fill="#999"/>\n'
            f'<rect x="{left + 45}" y="{y + 12}" width="{bar:.1f}" height="11" fill="#c2571a"/>\n'
            f'<text x="{end:.1f}" y="{y + 17}">{told:,} (true: {true:,})</text>\n'
        )
    parts.append(f'<text x="{left}" y="320" fill="#555">grey: true; orange: printed</text>\n')
    return "".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(picture(), encoding="utf-8")
