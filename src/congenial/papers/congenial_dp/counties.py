"""Sex by age of all 3,143 counties of 2010, under three sets of figures; and TopDown's own output.

The published SF1 counts play the confidential table (they were themselves swapped, which is not
our concern here). All methods make one promise: epsilon per person over the conforming universe.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import Statement, count, total
from congenial.figures.support import support
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.congenial_dp.example import EDGES
from congenial.papers.item import Study
from congenial.papers.post_processing.comparison import error_rows
from congenial.papers.post_processing.methods import METHODS, MethodSetting
from congenial.privacy.normaliser import Conditions, largest_eps_cell
from congenial.sampling.randomness import SeededRandomness

SF1 = "census/sf1_2010_P12_counties.csv.gz"
TOPDOWN = "census/dhc_demo_2022-03-16_CA_P12.csv.gz"
ALLOCATION = "census/das_2020_pl94_us_person_rho_allocation.csv"
EPSILON = Fraction(1)
MANDATES: dict[str, tuple[Statement, ...]] = {
    "state totals": (total(by="state"),),
    "county totals": (total(by="county"),),
    "sex and voting age by county": (
        total(by="county"),
        count("sex = 'female'", by="county"),
        count("age >= 18", by="county"),
    ),
}
SHOWN = ("plain", "project", "condition", "condition_project", "condition_nonnegative")
COUNTIES = (0, 1_000, 10_000, 100_000, 1_000_000)  # lower ends of the classes of population
CELL_COLUMNS = ("cells", "count", "mean_error", "mean_absolute_error", "root_mean_square_error")


LEAST_CELLS = 30  # whose mean error is drawn; fewer say more about chance than about a method
FEW = (
    f"The picture leaves out bars that rest on fewer than {LEAST_CELLS} cells; the table has them."
)


def _enough(columns: list[str], rows: list[list[Any]]) -> list[list[Any]]:
    """Rows whose error is a mean over enough cells to be drawn."""
    at = columns.index("cells")
    return [row for row in rows if row[at] >= LEAST_CELLS]


def read_p12(path: Path, key: str) -> dict[str, Any]:
    """Code of each area and its 2 x 23 counts, females first; `key` names the column of codes."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    ages = [name[2:] for name in lines[0] if name.startswith("m_") and name != "m_total"]
    return {
        line[key]: np.array([[int(line[f"{sex}_{age}"]) for age in ages] for sex in "fm"])
        for line in lines
    }


def county_table(counts: dict[str, Any]) -> Table:
    """A table over county (in its state), sex and age."""
    codes = list(counts)
    schema = Schema.from_dict(
        {
            "county": {"levels": codes, "within": {"state": [code[:2] for code in codes]}},
            "sex": {"levels": ["female", "male"]},
            "age": {"edges": EDGES, "top": "85+"},
        }
    )
    return Table(schema, schema.names, np.stack(list(counts.values())))


def settings(table: Table, statements: Sequence[Statement]) -> dict[str, MethodSetting]:
    """Each method under the figures, calibrated to EPSILON per person."""
    figures = publish(table, *statements)
    table_support = support(figures, table.names)
    delta = SemiAdjacent(figures).l1(table.names).value
    signed = largest_eps_cell(EPSILON, Conditions.of(figures, table.names, int(delta)))
    return {
        name: MethodSetting(
            table.counts,
            table_support,
            signed if name == "condition_nonnegative" else EPSILON / delta,
        )
        for name in SHOWN
    }


@lru_cache(maxsize=1)
def _errors(study: Study) -> list[tuple[str, str, MethodSetting, Any]]:
    """(figures, method, setting, one draw) for every pair; cached, since two items show it."""
    counts = read_p12(study.file(SF1), "fips")
    if study.quick:
        states = ("10", "15", "44")  # three small states
        counts = {code: table for code, table in counts.items() if code[:2] in states}
    table, randomness, rows = county_table(counts), SeededRandomness(study.seed), []
    for words, statements in MANDATES.items():
        for name, setting in settings(table, statements).items():
            study.progress(f"{words}: {METHODS[name].words}")
            drawn = METHODS[name].draw(setting, randomness, 1)
            rows.append((words, METHODS[name].words, setting, drawn))
    return rows


def by_cell(study: Study) -> dict[str, Any]:
    """Errors by size of cell."""
    rows = [
        [words, method, float(setting.eps_cell), *(row[c] for c in CELL_COLUMNS)]
        for words, method, setting, drawn in _errors(study)
        for row in error_rows(method, setting, drawn)
    ]
    columns = ["mandates", "method", "eps_cell", *CELL_COLUMNS]
    return {
        "columns": columns,
        "rows": rows,
        "notes": [
            "One release of each; epsilon = 1 per person over the conforming universe. The more is "
            "published, the more people must move to give one person another answer, and the less "
            "noise budget each cell has: eps_cell says how much.",
            "mean_error is the bias: projecting raises small cells and lowers large ones.",
            FEW,
        ],
        "chart": {
            "kind": "bar",
            "data": {"columns": columns, "rows": _enough(columns, rows)},
            "x": "count",
            "y": "mean_absolute_error",
            "by": "method",
            "facet": "mandates",
            "x_title": "people in the cell",
            "y_title": "mean absolute error",
        },
    }


def by_county(study: Study) -> dict[str, Any]:
    """Errors of cells, county totals and voting-age counts by size of county."""
    rows = []
    for words, method, setting, drawn in _errors(study):
        error = (drawn[0] - setting.truth).reshape(-1, 2, 23)
        people = setting.truth.reshape(-1, 46).sum(axis=1)
        size = np.searchsorted(np.array(COUNTIES), people, side="right") - 1
        for number in np.unique(size).tolist():
            part = error[size == number]
            rows.append(
                [
                    words,
                    method,
                    _population(number),
                    len(part),
                    float(np.abs(part).mean()),
                    float(np.abs(part.sum(axis=(1, 2))).mean()),
                    float(np.abs(part[:, :, 4:].sum(axis=(1, 2))).mean()),
                ]
            )
    return {
        "columns": ["mandates", "method", "population", "counties", "cell", "total", "voting_age"],
        "rows": rows,
        "notes": [
            "Mean absolute errors of single cells, of county totals and of those aged 18 and over; "
            "zero where the figure is mandated and kept. epsilon = 1 per person."
        ],
        "chart": {
            "kind": "bar",
            "x": "population",
            "y": "cell",
            "by": "method",
            "facet": "mandates",
            "x_title": "people in the county",
            "y_title": "mean absolute error of a cell",
        },
    }


def _population(number: int) -> str:
    low = COUNTIES[number]
    if number + 1 == len(COUNTIES):
        return f"{low:,}+"
    return f"{low:,}-{COUNTIES[number + 1] - 1:,}"


def beside_topdown(study: Study) -> dict[str, Any]:
    """California's 58 counties: the Census Bureau's TopDown output and ours at several epsilon."""
    truth = {c: t for c, t in read_p12(study.file(SF1), "fips").items() if c[:2] == "06"}
    theirs = read_p12(study.file(TOPDOWN), "geoid")
    released = np.stack([theirs[f"0500000US{code}"] for code in truth]).reshape(1, -1)
    table, randomness, rows = county_table(truth), SeededRandomness(study.seed), []
    table_support = support(publish(table, total()), table.names)
    census = MethodSetting(table.counts, table_support, Fraction(1))
    rows += _topdown_rows("Census Bureau, TopDown", None, census, released)
    for epsilon in (1, 4) if study.quick else (Fraction(1, 4), Fraction(1, 2), 1, 2, 4):
        # over the national universe with state totals mandated: a* = 2, Delta_1 = 4
        setting = MethodSetting(table.counts, table_support, Fraction(epsilon) / 4)
        drawn = METHODS["condition_project"].draw(setting, randomness, 1 if study.quick else 5)
        words = f"ours, epsilon = {float(epsilon):g}"
        rows += _topdown_rows(words, float(epsilon), setting, drawn)
    columns = ["release", "epsilon", *CELL_COLUMNS]
    return {
        "columns": columns,
        "rows": rows,
        "notes": [
            "State totals are exact in both. The budgets are not comparable: the Bureau's is "
            "zero-concentrated (rho), covers every table of the file from the nation down to "
            f"blocks, and splits over them ({_county_share(study)}); the file does not state the "
            "allocation of this demonstration. Ours is pure epsilon per person over the conforming "
            "universe for this one table, released for counties alone: noise given the state "
            "total, then the nearest whole table.",
            "TopDown's errors grow with the cell, whose count it adds up from finer ones (by race "
            "and single years of age); ours do not.",
            FEW,
        ],
        "chart": {
            "kind": "bar",
            "data": {"columns": columns, "rows": _enough(columns, rows)},
            "x": "count",
            "y": "mean_absolute_error",
            "by": "release",
            "x_title": "people in the cell",
            "y_title": "mean absolute error",
        },
    }


def _topdown_rows(
    words: str, epsilon: float | None, setting: MethodSetting, drawn: Any
) -> list[list[Any]]:
    return [
        [words, epsilon, *(row[c] for c in CELL_COLUMNS)]
        for row in error_rows(words, setting, drawn)
    ]


def _county_share(study: Study) -> str:
    """What the 2020 redistricting file gave to counties, as an example of such a split."""
    with study.file(ALLOCATION).open(encoding="utf-8", newline="") as file:
        lines = list(csv.DictReader(file))
    whole = sum(float(line["rho"]) for line in lines)
    here = sum(float(line["rho"]) for line in lines if line["geolevel"].lower() == "county")
    return f"the 2020 redistricting file gave counties rho = {here:.3f} of {whole:.3f}"
