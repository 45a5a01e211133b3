"""The contract every registered mechanism must satisfy, checked by enumeration and by draws."""

from __future__ import annotations

import json
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from congenial import Figures, Guarantee, SeededRandomness, Table, release_table
from congenial.audit.exact_audit import claimed_tight, exact_audit, outputs
from congenial.errors import FigureError
from congenial.figures.support import LOOSE, support
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.error_laws import SimulatedLaw
from congenial.privacy import Description, Pure
from tests.contracts.cases import cases
from tests.worlds import ALPHA, often, pearson

SEED = SeededRandomness(20_261_115)
CASES = cases()
DISCRETE = [case for case in CASES if not case.mechanism.description.continuous]
CONTINUOUS = [case for case in CASES if case.mechanism.description.continuous]

SMALL = [case for case in DISCRETE if np.prod(case.mechanism.shape) <= 4]  # a window holds the mass
MANDATED = [case for case in CASES if case.universe.statements]
CONDITIONED = [case for case in CASES if case.mechanism.conditions]

all_cases = pytest.mark.parametrize("case", CASES, ids=str)
discrete_cases = pytest.mark.parametrize("case", DISCRETE, ids=str)


def radius(case) -> int:
    return {3: 6, 4: 4}.get(int(np.prod(case.mechanism.shape)), 1)


@discrete_cases
def test_no_adjacent_pair_breaks_the_promise_and_some_pair_attains_it(case):
    mechanism, universe = case.mechanism, case.universe
    audit = exact_audit(mechanism, universe, radius(case), epsilons=(0.5, 1.0, 2.0, 4.0, 8.0))
    assert audit.violations() == []
    if isinstance(mechanism.guarantee.tradeoff, Pure) and claimed_tight(mechanism):
        assert audit.worst == pytest.approx(float(mechanism.guarantee.tradeoff.eps), abs=1e-9)


@pytest.mark.parametrize("case", CONTINUOUS, ids=str)
def test_continuous_laws_keep_the_promise(case):
    audit = exact_audit(case.mechanism, case.universe)
    assert audit.violations() == []
    if audit.tight:
        assert audit.worst == pytest.approx(audit.stated, abs=1e-9)


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_density_sums_to_one(case):
    mechanism, table = case.mechanism, case.universe.table
    window = outputs(mechanism, [table], 20 if np.prod(mechanism.shape) <= 3 else 9)
    mass = float(np.exp(mechanism.log_density(window, table)).sum())
    assert mass <= 1 + 1e-9
    assert mass > 0.99


def seen(mechanism, drawn, table):
    """How often outputs were drawn, and are expected to be under the density."""
    return often(
        drawn, lambda y: np.exp(mechanism.log_density(y.reshape(-1, *mechanism.shape), table))
    )


@discrete_cases
def test_sampler_and_density_agree(case):
    """Pearson's test at ALPHA over all outputs expected at least 8 times; and it can fail."""
    mechanism, table, draws = case.mechanism, case.universe.table, 20_000
    truth = mechanism.query(table)
    drawn = mechanism.draw(truth, SEED, draws)
    assert pearson(*seen(mechanism, drawn, table)) > ALPHA
    sharper = replace(
        mechanism, description=replace(mechanism.description, scale=_less_noise(mechanism))
    )
    drawn = sharper.draw(truth, SEED, draws)
    observed, expected = seen(mechanism, drawn, table)
    if len(observed) < 2:  # one conforming output, or every output too rare to be counted
        assert case.universe.label in ("one person", "crossing groups"), "no power here"
        return
    assert pearson(observed, expected) < ALPHA, "a sampler with 20 % less noise went unnoticed"


def _less_noise(mechanism):
    factors = {"l2": Fraction(16, 25), "length": Fraction(25, 16)}
    return mechanism.description.scale * factors.get(mechanism.description.norm, Fraction(5, 4))


@pytest.mark.parametrize("case", [c for c in CASES if c.mechanism.additive], ids=str)
def test_error_law_is_the_law_of_the_noise(case):
    """Kolmogorov-type check of the stated half-widths against draws, at ALPHA."""
    mechanism, draws = case.mechanism, 20_000
    cells = np.zeros(mechanism.shape, dtype=bool)
    cells.reshape(-1)[: max(1, cells.size // 2)] = True
    law = mechanism.error_law(cells)
    noise = mechanism.noise(SeededRandomness(7), draws).reshape(draws, -1)
    error = np.abs(noise[:, cells.reshape(-1)].sum(axis=1))
    error[error < 1e-9] = 0  # sums of real noise that are published are zero up to rounding
    for level in (0.5, 0.9, 0.99):
        inside = int(np.count_nonzero(error <= law.interval(level)))
        assert stats.binom.cdf(inside, draws, level) > ALPHA
        if error.max() > 0 and not isinstance(law, SimulatedLaw):
            below = int(np.count_nonzero(error < law.interval(level)))
            assert stats.binom.sf(below - 1, draws, level) > ALPHA
    spread = float((noise[:, cells.reshape(-1)].sum(axis=1) ** 2.0).mean())
    assert spread == pytest.approx(law.variance, rel=0.15, abs=1e-12)


@pytest.mark.parametrize("case", [c for c in CASES if c.mechanism.additive], ids=str)
def test_error_laws_do_not_depend_on_the_order_of_questions(case):
    """`verify` asks other questions than `publish` did, and must find the same numbers."""
    cells = case.mechanism.shape
    single = np.arange(np.prod(cells)).reshape(cells)
    questions = [(single, single.size), (single % 2, 2), (np.zeros_like(single), 1)]

    def answers(order):
        twin = rebuild(case.mechanism.description, case.mechanism.adjacency)
        laws = {i: twin.error_laws(*questions[i]) for i in order}
        return [[(law.variance, law.interval(0.9)) for law in laws[i]] for i in range(3)]

    assert answers([0, 1, 2]) == answers([2, 1, 0])


@all_cases
def test_guarantee_needs_no_data_and_survives_writing(case):
    mechanism = case.mechanism
    told = json.loads(json.dumps(mechanism.description.to_dict()))
    again = Description.from_dict(mechanism.adjacency.schema, told)
    assert again == mechanism.description
    twin = rebuild(again, mechanism.adjacency)
    assert twin.guarantee == mechanism.guarantee
    guarantee = json.loads(json.dumps(mechanism.guarantee.to_dict()))
    assert Guarantee.from_dict(mechanism.adjacency.figures, guarantee).to_dict() == guarantee


@all_cases
def test_the_description_states_what_the_sampler_is_off_by(case):
    """H of the very laws that draw are in the description."""
    mechanism = case.mechanism
    assert mechanism.priced == mechanism.description
    laws = mechanism.laws(mechanism.query(case.universe.table))
    assert bool(laws) != mechanism.description.continuous
    if mechanism.basis == "uncertified chain":
        assert max(law.log_ratio_error for law in laws) == np.inf
        return
    assert sum(law.log_ratio_error for law in laws) <= mechanism.description.log_ratio_error


@all_cases
def test_it_says_which_law_draws_it(case):
    assert len(case.mechanism.sampler.split()) > 4


@pytest.mark.parametrize("case", CONDITIONED, ids=str)
def test_release_agrees_with_every_published_figure(case):
    mechanism, universe = case.mechanism, case.universe
    release = release_table(mechanism, universe.table, SeededRandomness(3))
    groups = support(mechanism.description.support, universe.release)
    assert groups.agrees(release.drawn[0])
    (counts,) = release.counts
    assert (counts is None) == mechanism.description.continuous
    assert counts is None or (groups.agrees(counts) and counts.min() >= 0)
    assert groups.agrees(mechanism.query(universe.table))


@all_cases
def test_a_seeded_release_is_marked(case):
    release = release_table(case.mechanism, case.universe.table, SeededRandomness(3))
    assert release.drawn[0].shape == case.mechanism.shape
    assert not release.publishable
    assert release_table(case.mechanism, case.universe.table).publishable


@pytest.mark.parametrize("case", MANDATED, ids=str)
def test_other_data_are_refused_without_a_count(case):
    mechanism, universe = case.mechanism, case.universe
    changed = universe.table.counts + 918_273
    with pytest.raises(FigureError) as error:
        release_table(mechanism, Table(universe.table.schema, universe.table.names, changed))
    assert "918" not in str(error.value)


@pytest.mark.parametrize("case", CONDITIONED, ids=str)
def test_density_is_zero_off_the_support(case):
    mechanism, universe = case.mechanism, case.universe
    truth = mechanism.query(universe.table)
    labels = support(mechanism.description.support, universe.release).labels
    known = np.flatnonzero(labels.reshape(-1) != LOOSE)
    off = truth.copy()
    off.reshape(-1)[known[:1] if len(known) else 0] += 1
    assert (mechanism.log_density(off, universe.table) == -np.inf) == (len(known) > 0)


def test_conditioning_is_the_unconditioned_law_given_the_totals():
    """Congenial-dp's definition itself: density ratios equal those of independent noise on S*."""
    by_name = {
        (c.mechanism.name, c.universe.label): c for c in CASES if c.universe.label == "voting age"
    }
    case = by_name["congenial", "voting age"]
    congenial, table = case.mechanism, case.universe.table
    description = replace(
        congenial.description,
        mechanism="plain_geometric",
        support=Figures(table.schema),
    )
    plain = rebuild(description, congenial.adjacency)
    window = outputs(congenial, [table], 4)
    kept = window[congenial.log_density(window, table) > -np.inf]
    shift = congenial.log_density(kept, table) - plain.log_density(kept, table)
    assert len(kept) > 50
    assert np.ptp(shift) < 1e-9
