"""Section 6: what state totals do to the advertised promise of the 2020 redistricting data.

rho = 10.24 (a = 2) holds for every mechanism of 2.56, and is attained by one that spends all of it
on queries that can change. The production allocation spends .8270 of its 2.5562 on state totals:
they are the figure itself, no look-alike has others, and their loss is 0. The rest gives
4 (2.5562 - .8270) = 6.917.
"""

from __future__ import annotations

import csv
from fractions import Fraction
from typing import Any

from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.statements import total
from congenial.ledger.reassessment import reassess
from congenial.pairs.adjacency import SemiAdjacent
from congenial.papers.item import Study
from congenial.privacy.conversions import gaussian_epsilon, zcdp_epsilon, zcdp_epsilon_bun_steinke
from congenial.privacy.tradeoff import ZeroConcentrated

DELTA = 1e-10
PERSONS, UNITS = Fraction(256, 100), Fraction(7, 100)
ALLOCATION = "census/das_2020_pl94_us_person_rho_allocation.csv"
TOTAL = "total"  # the query that counts everybody of a place
MANDATED = ("US", "State")  # levels whose totals are the figure, or sums of it


def section6(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """rho and epsilon at delta = 1e-10, advertised and given the state totals."""
    cases = [
        ("persons, advertised", PERSONS, 1),
        ("housing units, advertised", UNITS, 1),
        ("in all, advertised", PERSONS + UNITS, 1),
        ("persons given state totals, robust (A_2)", PERSONS, 2),
        ("persons given state totals, existential", PERSONS, 1),
    ]
    rows = []
    for words, rho, records in cases:
        effective = ZeroConcentrated(rho).group(records).rho
        mu = (2 * float(effective)) ** 0.5
        rows.append(
            [
                words,
                records,
                float(effective),
                zcdp_epsilon_bun_steinke(effective, DELTA),
                zcdp_epsilon(effective, DELTA),
                gaussian_epsilon(mu, DELTA),
            ]
        )
    return {
        "columns": [
            "what",
            "a",
            "rho",
            "epsilon (Lemma 40)",
            "epsilon (best)",
            "epsilon (if G_mu)",
        ],
        "rows": rows,
        "notes": [
            "delta = 1e-10. The paper prints 17.91528 and 40.95057 (Lemma 40).",
            "rho = 10.24 holds for every mechanism of 2.56. It is tight for A_2 if none of it is "
            "spent on state totals, and is then attained by two people of one state who make the "
            "same move. The production allocation spends .8270 of its 2.5562 on state totals, "
            "which are the figure itself and lose nothing: 4 (2.5562 - .8270) = 6.917, epsilon "
            "32.16 by Lemma 40 (item census-allocation).",
            "A person who moves to another state is replaced by one who moves back; the tables "
            "then differ by one move, which costs 2.56 when only counts are seen: the existential "
            "reading.",
            "epsilon (if G_mu) holds for continuous Gaussian noise; the production noise is "
            "discrete.",
        ],
    }


def allocation(study: Study) -> dict[str, Any]:
    """The production allocation by geographic level and query, advertised and given the figures.

    What the figures do is worked out on a stand-in schema: a* depends on there being two or more
    states with people who differ otherwise, not on how many there are.
    """
    queries = _queries(study)
    rows = [
        _given("state", "persons by state", f"{level}: {query}", rho, _changing(level, query, rho))
        for level, query, rho in queries
        if rho > 0
    ]
    for level in dict.fromkeys(level for level, _, _ in queries):
        rows.append(_all(f"{level}: all", [query for query in queries if query[0] == level]))
    rows.append(_all("persons: all", queries))
    rows.append(_given("block", "housing units by block", "housing units: all", UNITS, UNITS))
    return {
        "columns": [
            "what",
            "mandate",
            "rho",
            "robust",
            "existential",
            "epsilon",
            "eps_robust",
            "eps_robust (Lemma 40)",
        ],
        "rows": rows,
        "notes": [
            f"Epsilon is the best known conversion at delta = {DELTA:g}, advertised and robust; "
            "beside it the paper's, Lemma 40.",
            "State totals are the figure itself: look-alikes have the same, so that query loses "
            "nothing, whatever was spent on it.",
            "Mandates: persons by state; housing units (and group quarters) by block. Robust: two "
            "people of one place may make the same move, which quadruples the rho of every query "
            "that can change; existential: once that rho, for one stored rule, and nothing "
            "against someone who knows all but two.",
            "10.24 = 4 x 2.56 holds too, and is tight for a mechanism without the query of state "
            "totals.",
            "Housing units: how much of their rho goes to which query is not in the file; 0.28 is "
            "tight if none of it goes to counts of units.",
            "Levels are measured on the same people, so their rho add up.",
        ],
    }


Query = tuple[str, str, Fraction]  # level, query, rho


def _queries(study: Study) -> list[Query]:
    with study.file(ALLOCATION).open(encoding="utf-8", newline="") as file:
        return [(r["geolevel"], r["query"], Fraction(r["rho"])) for r in csv.DictReader(file)]


def _figures(place: str) -> Figures:
    schema = Schema.from_dict({place: {"levels": ["A", "B"]}, "answer": {"levels": ["x", "y"]}})
    return Figures(schema, (total(by=place),))


def _changing(level: str, query: str, rho: Fraction) -> Fraction:
    """The rho of a query as far as look-alikes can differ in it: none of it for the figure."""
    if query != TOTAL or level not in MANDATED:
        return rho
    return rho if SemiAdjacent(_figures("state")).l2_squared(("state",)).value else Fraction(0)


def _all(name: str, queries: list[Query]) -> list[Any]:
    """The line of several queries together."""
    rho = sum((rho for _, _, rho in queries), Fraction(0))
    changing = sum((_changing(*query) for query in queries), Fraction(0))
    return _given("state", "persons by state", name, rho, changing)


def _given(place: str, mandate: str, name: str, rho: Fraction, changing: Fraction) -> list[Any]:
    """One line: advertised rho, what is left of it in both readings, epsilon before and after."""
    (reassessed,) = reassess({name: ZeroConcentrated(changing)}, _figures(place))
    now = [float(reading.tradeoff.rho) for reading in (reassessed.robust, reassessed.existential)]  # type: ignore[attr-defined]
    epsilons = [zcdp_epsilon(value, DELTA) if value else 0.0 for value in (float(rho), now[0])]
    printed = zcdp_epsilon_bun_steinke(now[0], DELTA) if now[0] else 0.0
    return [name, mandate, float(rho), *now, *epsilons, printed]
