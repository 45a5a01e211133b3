"""Choice, measurement, fit and records, enumerated: no look-alike pair is told apart by more than
the promise, and defects that would do so are caught.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

from congenial import AddRemove, Figures, Schema, SemiAdjacent, Table, margin, total
from congenial.errors import GuaranteeError
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.synthesis.from_tables import maximum_entropy, records_run
from congenial.synthesis.from_tables.column_rules import ColumnRules
from congenial.synthesis.from_tables.records_run import TableRecords
from tests.synthesis.from_tables.enumerated_procedure import Procedure

THREE = Schema.from_dict(
    {"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}, "w": {"levels": ["s", "t"]}}
)
TWO = Schema.from_dict({"x": {"levels": ["p", "q"]}, "y": {"integers": [1, 3]}})
PROMISE = Fraction(160)  # so large that noise has few outcomes; losses are proportional to it
SEED = 20261117
ORDERS = (1.2, 1.5, 2.0)


def people(*cells: tuple[int, int, int]) -> Table:
    counts = np.zeros((2, 3, 2), dtype=np.int64)
    for cell in cells:
        counts[cell] += 1
    return Table(THREE, THREE.names, counts)


# x is published; the second differs from the first in two people, who move together in y and w.
NOBODY_MOVED = people((0, 0, 0), (1, 0, 0), (1, 0, 0))
BOTH_MOVED = people((0, 2, 1), (1, 2, 1), (1, 0, 0))
ONE_MOVED = people((0, 2, 1), (1, 0, 0), (1, 0, 0))
BY_X = Figures(THREE, (total(by="x"),), (np.array([1, 2]),))

MARGINS = Figures(TWO, (margin("x"), margin("y")), (np.array([2, 2]), np.array([1, 2, 1])))
CONFORMING = [
    Table(TWO, TWO.names, [[a, b, 2 - a - b], [1 - a, 2 - b, a + b - 1]])
    for a, b in product(range(2), range(3))
    if 0 <= a + b - 1 <= 1
]


def look_alikes(databases: Sequence[Table], records: int) -> list[tuple[int, int]]:
    """Ordered pairs that differ in at most so many records."""
    counts = [one.counts for one in databases]
    pairs = product(range(len(counts)), repeat=2)
    return [(i, j) for i, j in pairs if np.abs(counts[i] - counts[j]).sum() <= 2 * records]


def worst(procedure: Procedure, records: int) -> float:
    """The largest D_alpha / alpha over look-alike pairs."""
    found = procedure.divergences(ORDERS)
    return float(max(found[:, i, j].max() for i, j in look_alikes(procedure.databases, records)))


def follows_from_outcomes(procedure: Procedure, most: int = 10**9) -> bool:
    """Whether a run publishes the same whatever the database, given noise and choices.

    If so, the losses of noise and choices are those of the whole procedure; if not, some result is
    possible for one database and impossible for another. `most`: outcomes of each
    step that are tried.
    """
    waiting: list[tuple[int, ...]] = [()]
    rng = np.random.default_rng(SEED)
    while waiting:
        outcomes = waiting.pop()
        ahead = procedure.ahead(outcomes)
        if ahead is not None:
            tried = rng.permutation(ahead[1].shape[1])[:most]
            waiting += [(*outcomes, int(one)) for one in tried]
            continue
        each = [procedure.results(at, outcomes) for at in range(len(procedure.databases))]
        if each.count(each[0]) < len(each):
            return False
    return True


def margins(patch: pytest.MonkeyPatch, rho: Fraction | None = None) -> Procedure:
    """Both margins published: one table is measured; a* = 3."""
    pairs = SemiAdjacent(MARGINS)
    made = TableRecords.calibrate(pairs, TWO.names, PROMISE)
    if rho is not None:
        made = replace(made, budget=replace(made.budget, amount=rho))
    return Procedure(made, CONFORMING, 1, patch)


def test_losses_with_choices_stay_below_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """One pair of three is chosen; x is published, and a* = 2."""
    made = TableRecords.calibrate(SemiAdjacent(BY_X), THREE.names, PROMISE, rounds=1)
    assert made.budget.chooses
    assert made.adjacency.records == 2
    databases = [NOBODY_MOVED, BOTH_MOVED, ONE_MOVED]
    found = worst(Procedure(made, databases, 1, monkeypatch), 2)
    assert found <= PROMISE
    assert found > 0.8 * PROMISE  # the bound is nearly reached


@pytest.mark.parametrize("weights", [{}, {"w": Fraction(4)}], ids=["even", "weighted"])
def test_pure_losses_stay_below_the_promise(
    monkeypatch: pytest.MonkeyPatch, weights: dict[str, Fraction]
) -> None:
    """Double geometric noise: no outcome at all has a log ratio above epsilon."""
    epsilon = Fraction(40)
    made = TableRecords.calibrate(
        SemiAdjacent(BY_X), THREE.names, rounds=1, epsilon=epsilon, weights=weights
    )
    assert made.budget.chooses
    found = Procedure(made, [NOBODY_MOVED, BOTH_MOVED], 0, monkeypatch).largest_ratios()
    assert 0.6 * epsilon < found.max() <= epsilon


@pytest.mark.parametrize("claimed", [Fraction(10), Fraction(5)], ids=["stated", "half"])
def test_pairs_by_coarser_names_stay_below_the_promise(
    monkeypatch: pytest.MonkeyPatch, claimed: Fraction
) -> None:
    """A coarser table moves no farther than a fine one; half of the promise would be exceeded."""
    y = {"integers": [1, 3], "within": {"half": ["low", "high", "high"]}}
    schema = Schema.from_dict({**THREE.to_dict(), "y": y})
    figures = Figures(schema, (total(by="x"),), (np.array([1, 2]),))
    made = TableRecords.calibrate(
        SemiAdjacent(figures),
        ("x", "y"),
        epsilon=Fraction(10),
        rules=ColumnRules.of(coarse={"y": "half"}),
    )
    assert set(made.scales) == {("y",), ("x", "half")}
    databases = [Table(schema, schema.names, one.counts) for one in (NOBODY_MOVED, BOTH_MOVED)]
    found = Procedure(made, databases, 0, monkeypatch).largest_ratios()
    assert (found.max() <= claimed) == (claimed == 10)


def test_planted_pure_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 in place of 2 a* again, for epsilon."""
    made = TableRecords.calibrate(SemiAdjacent(BY_X), ("x", "w"), epsilon=Fraction(10))
    made = replace(made, budget=replace(made.budget, amount=Fraction(10)))
    found = Procedure(made, [NOBODY_MOVED, BOTH_MOVED], 1, monkeypatch).largest_ratios()
    assert found.max() > 10


def test_losses_with_both_margins_stay_below_the_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pairs up to three records apart; the promise counts every table at its worst."""
    procedure = margins(monkeypatch)
    assert procedure.made.adjacency.records == 3
    assert 0.15 * PROMISE < worst(procedure, 3) <= PROMISE
    assert follows_from_outcomes(procedure)


def test_records_follow_from_noise_and_choices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fit and records use nothing else, where one of three pairs is chosen."""
    made = TableRecords.calibrate(SemiAdjacent(BY_X), THREE.names, PROMISE, rounds=1)
    procedure = Procedure(made, [NOBODY_MOVED, BOTH_MOVED], 1, monkeypatch)
    assert follows_from_outcomes(procedure, most=2)


def test_planted_sensitivity_of_one_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """2 in place of 2 a*: all of the promise for one record, though look-alikes differ in more."""
    assert worst(margins(monkeypatch, rho=PROMISE), 3) > PROMISE


def choice_losses(procedure: Procedure) -> Any:
    """The largest log ratio of a choice, for every pair of databases."""
    waiting, losses = [()], []
    while waiting:
        outcomes = waiting.pop()
        ahead = procedure.ahead(outcomes)
        assert ahead is not None
        if ahead[0] is None:
            losses.append(np.abs(ahead[1][:, None] - ahead[1][None]).max(axis=2))
        else:
            waiting += [(*outcomes, one) for one in range(0, ahead[1].shape[1], 3)]
    return np.max(losses, axis=0)


@pytest.mark.parametrize("planted", [False, True])
def test_choices_cost_what_they_are_said_to(monkeypatch: pytest.MonkeyPatch, planted: bool) -> None:
    """epsilon per record; planted: scores that move by 2 are treated as if they moved by 1."""
    made = TableRecords.calibrate(SemiAdjacent(BY_X), THREE.names, PROMISE, rounds=1)
    procedure = Procedure(made, [NOBODY_MOVED, BOTH_MOVED, ONE_MOVED], 1, monkeypatch)
    if planted:
        true_choice = records_run.choose
        monkeypatch.setattr(
            records_run, "choose", lambda s, e, moves, r: true_choice(s, e, moves // 2, r)
        )
    found, epsilon = choice_losses(procedure), float(made.budget.choice_epsilon)
    assert (found[0, 1] > 2 * epsilon or found[0, 2] > epsilon) == planted


def test_planted_figure_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Noise and records keep the figure, and the number of records does not count it."""
    monkeypatch.setattr(SemiAdjacent, "records", property(lambda _: 1))
    made = TableRecords.calibrate(SemiAdjacent(BY_X), ("x", "w"), PROMISE)
    assert made.adjacency.records == 1
    assert worst(Procedure(made, [NOBODY_MOVED, BOTH_MOVED], 1, monkeypatch), 2) > PROMISE


def test_planted_lambda_chosen_by_looking(monkeypatch: pytest.MonkeyPatch) -> None:
    fit = records_run.RecordsRun.fit

    def looks(run: Any, *more: Any, **named: Any) -> Any:
        first = run.truths["x", "y"][0, 0] > 0
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(maximum_entropy, "LAMBDA", 1e6 if first else 0.003)
            return fit(run, *more, **named)

    monkeypatch.setattr(records_run.RecordsRun, "fit", looks)
    assert not follows_from_outcomes(margins(monkeypatch))


# Where x is known of everybody, look-alikes differ in one person's y and w.
OTHER_MOVED = people((0, 0, 0), (1, 2, 1), (1, 0, 0))
KNOWN_X = SensitiveValues(BY_X, ("x",))


@pytest.mark.parametrize("twice", [False, True], ids=["stated", "planted"])
def test_losses_of_one_persons_values_stay_below_the_promise(
    monkeypatch: pytest.MonkeyPatch, twice: bool
) -> None:
    """One record differs, where the figures leave it free; planted: noise for twice the promise."""
    made = TableRecords.calibrate(KNOWN_X, THREE.names, PROMISE, rounds=1)
    assert made.budget.chooses
    if twice:
        made = replace(made, budget=replace(made.budget, amount=2 * made.budget.amount))
    databases = [NOBODY_MOVED, ONE_MOVED, OTHER_MOVED]
    found = worst(Procedure(made, databases, 1, monkeypatch), 1)
    assert (found > PROMISE) == twice
    assert found > 0.8 * PROMISE


def test_pure_losses_of_one_persons_values_stay_below_the_promise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    epsilon = Fraction(40)
    made = TableRecords.calibrate(KNOWN_X, THREE.names, rounds=1, epsilon=epsilon)
    databases = [NOBODY_MOVED, ONE_MOVED, OTHER_MOVED, BOTH_MOVED]
    found = Procedure(made, databases, 0, monkeypatch).largest_ratios()
    alike = look_alikes(databases, 1)
    assert 0.6 * epsilon < max(found[i, j] for i, j in alike) <= epsilon
    assert found[0, 3] > epsilon  # two people's values are not promised


def test_records_with_public_columns_follow_from_noise_and_choices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = TableRecords.calibrate(KNOWN_X, THREE.names, PROMISE, rounds=1)
    procedure = Procedure(made, [NOBODY_MOVED, ONE_MOVED, OTHER_MOVED], 1, monkeypatch)
    assert follows_from_outcomes(procedure, most=2)


def test_planted_number_of_people_from_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where rows may be added or removed, the number of records alone tells databases apart; such
    promises are refused.
    """
    with pytest.raises(GuaranteeError, match="symmetric difference"):
        TableRecords.calibrate(AddRemove(THREE), THREE.names, PROMISE)
    made = TableRecords.calibrate(SemiAdjacent(Figures(THREE)), ("w",), PROMISE)
    fewer = people((0, 0, 0), (1, 0, 0))
    assert not follows_from_outcomes(Procedure(made, [fewer, NOBODY_MOVED], 1, monkeypatch))
