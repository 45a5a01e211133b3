"""The exact audit as a product function: its verdicts, its curves, and that it can fail."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from congenial.audit.exact_audit import ALPHAS, audit_laws, exact_audit, outputs
from congenial.audit.universes import FURTHER, UNIVERSES
from congenial.mechanisms.mechanism import REGISTRY
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, ZeroConcentrated
from tests.audit.every_mechanism import LAWS, AuditRow, audit_every_mechanism, table_cases

ALL = {universe.label: universe for universe in (*UNIVERSES, *FURTHER)}


def report(attempt, rows: list[AuditRow]) -> None:
    attempt("exact", universes=len(rows), pairs=sum(row.pairs for row in rows))


def test_every_promise_holds_and_is_attained_where_that_is_claimed(attempt):
    rows = audit_every_mechanism(quick=True)
    assert [row for row in rows if not row.passed] == []
    assert {row.mechanism.split(" (")[0] for row in rows} >= set(REGISTRY)
    others = {name for name, _, _ in LAWS}
    assert {row.mechanism for row in rows} >= others
    assert sum(row.verdict == "attained" for row in rows) > 40
    assert all(row.worst > 0.09 * row.promised for row in rows if row.mechanism in others)
    report(attempt, rows)


@pytest.mark.audit
def test_every_promise_on_every_universe(attempt):
    rows = audit_every_mechanism()
    assert [row for row in rows if not row.passed] == []
    report(attempt, rows)


@pytest.mark.parametrize("name", ["knorm", "congenial_gaussian", "kernel_gaussian"])
def test_hexagons_are_attained(name):
    """Where Proposition 32 fails: 3 x 3 tables given both margins."""
    case = next(c for c in table_cases([ALL["hexagon"]]) if c.name == name)
    found = exact_audit(case.mechanism, case.universe, most=13_000)
    assert found.tight
    assert found.verdict == "attained"


CASES = [
    case
    for case in table_cases([ALL["voting age"], ALL["both margins"]])
    if case.mechanism is not None and case.name != "congenial_counts"
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_negative_control_less_noise_is_broken(case):
    mechanism = case.mechanism
    promised, scale = mechanism.guarantee.tradeoff, mechanism.description.scale
    scale = scale * 16 / 25 if mechanism.description.norm == "l2" else scale * 5 / 4
    less = replace(mechanism, description=replace(mechanism.description, scale=scale))
    found = exact_audit(less, case.universe, most=1500)
    assert found.violations(promised)
    assert not exact_audit(mechanism, case.universe, most=1500).violations(promised)


def test_the_window_holds_what_conforms_and_nothing_else():
    universe = ALL["margins of 2 x 3"]
    case = next(c for c in table_cases([universe]) if c.name == "congenial")
    found = outputs(case.mechanism, [universe.table], 1)
    counts = universe.table.counts
    grid = np.array(list(product(range(-1, 2), repeat=6))).reshape(-1, 2, 3) + counts
    kept = grid[case.mechanism.log_density(grid, universe.table) > -np.inf]
    assert {y.tobytes() for y in found} == {y.tobytes() for y in kept}
    counted = next(c for c in table_cases([universe]) if c.name == "congenial_counts")
    assert outputs(counted.mechanism, [universe.table], 1).min() == 0


def test_curves_are_those_of_randomised_response():
    logs = np.log([np.e / (1 + np.e), 1 / (1 + np.e)])
    found = audit_laws(Pure(1), [(logs, logs[::-1]), (logs[::-1], logs)])
    assert found.verdict == "attained"
    assert found.tradeoff == pytest.approx(Pure(1)(ALPHAS).tolist())
    assert found.deltas == pytest.approx([Pure(1).delta(e) for e in found.epsilons])
    assert audit_laws(Pure("0.99"), [(logs, logs[::-1])]).verdict == "broken"


def test_an_output_of_one_side_only_breaks_every_pure_promise():
    with np.errstate(divide="ignore"):
        p, q = np.log([0.5, 0.5, 0.0]), np.log([0.5, 0.4, 0.1])
    assert audit_laws(Pure(100), [(p, q), (q, p)]).log_ratio == math.inf
    assert audit_laws(ZeroConcentrated(100), [(p, q), (q, p)]).verdict == "broken"
    assert audit_laws(Approximate(100, "0.1"), [(p, q), (q, p)]).worst == pytest.approx(0.1)


def test_what_the_window_leaves_out_is_pooled():
    """Masses far out may differ as they like: they count as one output."""
    found = audit_laws(Pure(9), [(np.log([0.4, 0.2]), np.log([0.2, 0.4]))], epsilons=[0.0])
    assert found.missing == pytest.approx(0.4)
    assert found.deltas == pytest.approx([0.2])
    assert min(np.diff(found.tradeoff)) >= 0


def test_gaussian_laws_in_closed_form():
    case = next(c for c in table_cases([ALL["total"]]) if c.name == "kernel_gaussian")
    found = exact_audit(case.mechanism, case.universe)
    assert found.parameter == "mu"
    assert found.deltas == pytest.approx([Gaussian(3).delta(e) for e in found.epsilons])
