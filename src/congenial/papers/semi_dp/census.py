"""Section 6: what state totals do to the advertised promise of the 2020 redistricting data."""

from __future__ import annotations

import csv
from fractions import Fraction
from typing import Any

from congenial.data.schema import Schema
from congenial.figures.invariants import Invariants
from congenial.figures.statements import total
from congenial.ledger.reassessment import reassess
from congenial.papers.item import Study
from congenial.privacy.conversions import gaussian_epsilon, zcdp_epsilon, zcdp_epsilon_bun_steinke
from congenial.privacy.tradeoff import ZeroConcentrated

DELTA = 1e-10
PERSONS, UNITS = Fraction(256, 100), Fraction(7, 100)
ALLOCATION = "census/das_2020_pl94_us_person_rho_allocation.csv"


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
            "rho = 10.24 is tight for A_2, attained by two people of one state who make the same "
            "move. A person who moves to another state is replaced by one who moves back; the "
            "tables then differ by one move, which costs 2.56 when only counts are seen: the "
            "existential reading.",
            "epsilon (if G_mu) holds for continuous Gaussian noise; the production noise is "
            "discrete.",
        ],
    }


def allocation(study: Study) -> dict[str, Any]:
    """The production allocation by geographic level and query, advertised and given the mandates.

    What the mandates do is worked out on a stand-in schema: a* depends on there being two or more
    states with people who differ otherwise, not on how many there are.
    """
    with study.file(ALLOCATION).open(encoding="utf-8", newline="") as file:
        told = [(r["geolevel"], r["query"], Fraction(r["rho"])) for r in csv.DictReader(file)]
    lines = [(f"{level}: {query}", rho) for level, query, rho in told if rho > 0]
    levels = dict.fromkeys(level for level, _, _ in told)
    for level in levels:
        lines.append((f"{level}: all", sum((r for at, _, r in told if at == level), Fraction(0))))
    lines.append(("persons: all", sum((rho for _, _, rho in told), Fraction(0))))
    rows = [_given("state", "persons by state", name, rho) for name, rho in lines]
    rows.append(_given("block", "housing units by block", "housing units: all", UNITS))
    return {
        "columns": ["what", "mandate", "rho", "robust", "existential", "epsilon", "eps_robust"],
        "rows": rows,
        "notes": [
            f"Epsilon is the best known conversion at delta = {DELTA:g}, advertised and robust.",
            "Mandates: persons by state; housing units (and group quarters) by block. Robust: two "
            "people of one place may make the same move, which quadruples rho; existential: as "
            "advertised, for one stored rule, and nothing against someone who knows all but two.",
            "Levels are measured on the same people, so their rho add up.",
        ],
    }


def _given(place: str, mandate: str, name: str, rho: Fraction) -> list[Any]:
    """One line: advertised rho, both readings, epsilon before and after."""
    schema = Schema.from_dict({place: {"levels": ["A", "B"]}, "answer": {"levels": ["x", "y"]}})
    (found,) = reassess({name: ZeroConcentrated(rho)}, Invariants(schema, (total(by=place),)))
    now = [float(one.tradeoff.rho) for one in (found.robust, found.existential)]  # type: ignore[attr-defined]
    epsilons = [zcdp_epsilon(value, DELTA) for value in (float(rho), now[0])]
    return [name, mandate, float(rho), *now, *epsilons]
