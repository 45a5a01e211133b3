"""What a promise under exact figures says about beliefs, by brute force over whole databases.

A database is a tuple with one cell per person, and `likelihood` is that of one result under each
database. A belief is a weight per database. The odds of two events about person 0 move by the log
ratio of the mean likelihoods under the belief given each event (`moved`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations, product

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

from congenial import Congenial, Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, calibrate
from congenial.data.arrays import Floats
from congenial.figures import Figures, Statement, count, margin, publish, structural_zeros, total

Database = tuple[int, ...]

EPSILON = 1.0
AREA_AND_ILL = {"area": {"levels": ["A", "B"]}, "ill": {"levels": ["no", "yes"]}}
CROSSED = {"sex": {"levels": ["f", "m"]}, "age": {"levels": ["0", "18", "65"]}}

# columns, true counts, figures, a*
UNIVERSES: dict[str, tuple[dict[str, object], list[list[int]], list[Statement], int]] = {
    "nothing": (AREA_AND_ILL, [[1, 1], [1, 0]], [], 1),
    "the total": (AREA_AND_ILL, [[1, 1], [1, 0]], [total()], 1),
    "a zero by definition": (
        AREA_AND_ILL,
        [[1, 1], [1, 0]],
        [structural_zeros("area = 'B' and ill = 'yes'")],
        1,
    ),
    "totals by area": (AREA_AND_ILL, [[1, 1], [1, 1]], [total(by="area")], 2),
    "a condition": (CROSSED, [[1, 1, 0], [0, 1, 1]], [count("age = '65'")], 2),
    "two margins": (CROSSED, [[1, 1, 0], [0, 1, 1]], [margin("sex"), margin("age")], 3),
}


class World:
    """All databases that agree with the figures, and every law that the product draws from them."""

    def __init__(self, name: str) -> None:
        columns, counts, figures, self.apart = UNIVERSES[name]
        self.schema = Schema.from_dict(columns)
        self.counts = np.array(counts)
        truth = Table(self.schema, self.schema.names, self.counts)
        self.figures: Figures = publish(truth, *figures)
        self.people = int(self.counts.sum())
        self.databases = [
            x
            for x in product(range(self.counts.size), repeat=self.people)
            if self.figures.holds_for(self.table(x))
        ]
        pairs = SemiAdjacent(self.figures) if figures else ReplaceOne(self.schema)
        assert pairs.records == self.apart
        self.mechanism = calibrate(Congenial, Guarantee.pure(1, under=pairs), self.schema.names)

    def table(self, x: Database) -> Table:
        counts = np.bincount(x, minlength=self.counts.size).reshape(self.counts.shape)
        return Table(self.schema, self.schema.names, counts)

    def likelihoods(self) -> Floats:
        """One row per database, one column per result; results are all conforming tables."""
        results = np.array(
            sorted({tuple(self.table(x).counts.reshape(-1)) for x in self.databases})
        )
        results = results.reshape(-1, *self.counts.shape)
        rows = [self.mechanism.log_density(results, self.table(x)) for x in self.databases]
        return np.exp(np.array(rows))


def moved(likelihood: Floats, belief: Floats, one: NDArray[np.bool_], other: NDArray[np.bool_]):
    """The most that the odds of two events move, over all results."""
    means = [belief[event] @ likelihood[event] / belief[event].sum() for event in (one, other)]
    return float(np.abs(np.log(means[0] / means[1])).max())


def most_moved(databases: Sequence[Database], likelihood: Floats, belief: Floats) -> float:
    """The same, over any two answers of person 0 that are thought possible."""
    own = np.array([x[0] for x in databases])
    events = [own == cell for cell in np.unique(own) if belief[own == cell].sum() > 0]
    return max(
        (moved(likelihood, belief, one, other) for one, other in combinations(events, 2)),
        default=0.0,
    )


def records_apart(x: Database, y: Database) -> int:
    return sum(a != b for a, b in zip(x, y, strict=True))


@pytest.mark.parametrize("name", UNIVERSES)
def test_somebody_who_knows_all_but_a_star_records_learns_at_most_epsilon(name):
    """Whatever is believed about the records that are not known; attained, and sharp in a*."""
    world, rng = World(name), np.random.default_rng(34)
    likelihood = world.likelihoods()

    def worst(unknown: int) -> float:
        """Over who is not known and what the others have: all pairs, hence all beliefs."""
        found = 0.0
        for others in combinations(range(1, world.people), unknown - 1):
            known = [i for i in range(1, world.people) if i not in others]
            groups: dict[Database, list[int]] = {}
            for at, x in enumerate(world.databases):
                groups.setdefault(tuple(x[i] for i in known), []).append(at)
            for group in groups.values():
                rows = likelihood[group]
                spread = np.log(rows.max(axis=0) / rows.min(axis=0)).max()
                databases = [world.databases[at] for at in group]
                belief = rng.dirichlet(np.ones(len(group)) / 3)
                assert most_moved(databases, rows, belief) <= spread + 1e-9
                found = max(found, float(spread))
        return found

    assert worst(world.apart) == pytest.approx(EPSILON)
    if world.apart < world.people:
        assert worst(world.apart + 1) > 1.1 * EPSILON


@pytest.mark.parametrize("name", [name for name, told in UNIVERSES.items() if told[3] == 1])
def test_where_one_record_can_change_alone_independent_beliefs_are_enough(name):
    """The databases form a product, which keeps independent beliefs independent."""
    world, rng = World(name), np.random.default_rng(35)
    values = [{x[i] for x in world.databases} for i in range(world.people)]
    assert len(world.databases) == np.prod([len(one) for one in values])
    likelihood = world.likelihoods()
    for _ in range(50):
        people = rng.dirichlet(np.ones(world.counts.size) / 3, size=world.people)
        belief = np.array(
            [np.prod([p[c] for p, c in zip(people, x, strict=True)]) for x in world.databases]
        )
        assert most_moved(world.databases, likelihood, belief) <= EPSILON + 1e-9


@pytest.mark.parametrize("people", [2, 4, 6])
def test_independent_beliefs_under_exact_figures_move_by_n_epsilon_over_two(people):
    """One resident per area; person j is in area j and ill, or in the next area and well."""
    areas = [f"area {j}" for j in range(people)]
    schema = Schema.from_dict({"area": {"levels": areas}, "ill": {"levels": ["no", "yes"]}})
    first = [(j, 1) for j in range(people)]
    second = [((j + 1) % people, 0) for j in range(people)]
    conforming = [
        x for x in product(*zip(first, second, strict=True)) if len({a for a, _ in x}) == people
    ]
    assert conforming == [tuple(first), tuple(second)]  # each 1/2: beliefs were independent

    def table(x: Sequence[tuple[int, int]]) -> Table:
        counts = np.zeros((people, 2), dtype=np.int64)
        np.add.at(counts, tuple(zip(*x, strict=True)), 1)
        return Table(schema, schema.names, counts)

    pairs = SemiAdjacent(publish(table(first), total(by="area")))
    assert pairs.records == 2
    mechanism = calibrate(Congenial, Guarantee.pure(1, under=pairs), schema.names)
    results = np.array([table(x).counts for x in conforming])
    logs = [mechanism.log_density(results, table(x)) for x in conforming]
    assert np.abs(logs[0] - logs[1]).max() == pytest.approx(people * EPSILON / 2)


def within(databases: Sequence[Database], belief: Floats, apart: int, one: int, other: int) -> bool:
    """Whether the beliefs given two answers of person 0 can be coupled within `apart` records.

    Then, and only then, every release that keeps epsilon for such pairs keeps it for the answers.
    """
    left, right = ([at for at, x in enumerate(databases) if x[0] == own] for own in (one, other))
    near = [
        (i, j)
        for i, a in enumerate(left)
        for j, b in enumerate(right)
        if records_apart(databases[a], databases[b]) <= apart
    ]
    if not near:
        return False
    sums = np.zeros((len(left) + len(right), len(near)))
    for k, (i, j) in enumerate(near):
        sums[i, k] = sums[len(left) + j, k] = 1
    masses = [belief[side] / belief[side].sum() for side in (left, right)]
    return linprog(np.zeros(len(near)), A_eq=sums, b_eq=np.concatenate(masses)).status == 0


def every_answer(databases: Sequence[Database], belief: Floats, apart: int) -> bool:
    answers = sorted({x[0] for x in databases})
    return all(within(databases, belief, apart, *pair) for pair in combinations(answers, 2))


def groups_believed(
    databases: Sequence[Database], atom: Callable[[int], int], laws: Floats
) -> Floats:
    """Uniform over who is in which group; records independent given that, laws by person."""
    return np.array([np.prod([laws[i, atom(c), c] for i, c in enumerate(x)]) for x in databases])


def test_exchangeable_groups_and_independent_records_keep_epsilon():
    """Totals of groups are exact: two records are enough, whatever each person's law in a group."""
    world, rng = World("totals by area"), np.random.default_rng(36)
    likelihood, cells = world.likelihoods(), world.counts.size
    inside = np.arange(cells) // 2 == np.arange(2)[:, None]
    for _ in range(5):
        laws = rng.dirichlet(np.ones(cells), size=(world.people, 2)) * inside
        laws /= laws.sum(axis=2, keepdims=True)
        belief = groups_believed(world.databases, lambda c: c // 2, laws)
        assert most_moved(world.databases, likelihood, belief) <= EPSILON + 1e-9
        assert every_answer(world.databases, belief, 2)
        assert not every_answer(world.databases, belief, 1)


def test_records_that_depend_on_each_other_given_the_groups_do_not():
    """All well or all ill: exchangeable, and yet the odds move by n / 2 epsilon."""
    world = World("totals by area")
    alike = np.array([float(len({c % 2 for c in x}) == 1) for x in world.databases])
    moves = most_moved(world.databases, world.likelihoods(), alike)
    assert moves == pytest.approx(world.people * EPSILON / 2)


@pytest.mark.parametrize(
    "counts", [[[1, 1, 0], [0, 1, 1]], [[1, 0, 1], [1, 1, 0]], [[2, 0, 1], [0, 1, 1]]]
)
def test_attributes_that_are_exchangeable_and_independent_keep_epsilon_under_margins(counts):
    """P one-way margins: one other person per attribute, P + 1 records."""
    table = np.array(counts)
    people = int(table.sum())
    databases = [
        x
        for x in product(range(6), repeat=people)
        if all(
            (np.bincount([c // 3 for c in x], minlength=2) == table.sum(axis=1)).tolist()
            + (np.bincount([c % 3 for c in x], minlength=3) == table.sum(axis=0)).tolist()
        )
    ]
    uniform = np.ones(len(databases))
    assert every_answer(databases, uniform, 3)
    assert not every_answer(databases, uniform, 2)


def test_under_margins_the_law_that_is_drawn_keeps_epsilon_for_these_beliefs():
    world = World("two margins")
    assert every_answer(world.databases, np.ones(len(world.databases)), world.apart)
    moves = most_moved(world.databases, world.likelihoods(), np.ones(len(world.databases)))
    assert moves <= EPSILON + 1e-9


def test_uniform_beliefs_are_not_enough_under_weighted_figures():
    """Weights 0, 3, 1, 4, 4, four people, weighted total 7, a* = 3: 1.0955 at epsilon = 1."""
    weights = (0, 3, 1, 4, 4)
    databases = [x for x in product(range(5), repeat=4) if sum(weights[c] for c in x) == 7]
    answers = {x[0] for x in databases}
    reach = max(
        min(records_apart(x, y) for y in databases if y[0] == answer)
        for x in databases
        for answer in answers
    )
    assert reach == 3
    tables = sorted({tuple(np.bincount(x, minlength=5).tolist()) for x in databases})
    moves = np.array(
        [[sum(abs(a - b) for a, b in zip(s, t, strict=True)) // 2 for t in tables] for s in tables]
    )
    steps = np.where(moves == 0, 0, np.where(moves <= reach, 1, 2))  # none is farther here
    worst = 0.0
    for centre in steps:
        likelihood = 0.1 * np.exp(np.outer(centre, [-EPSILON, EPSILON]))  # each with its opposite
        of = {t: likelihood[k] for k, t in enumerate(tables)}
        rows = np.array([of[tuple(np.bincount(x, minlength=5).tolist())] for x in databases])
        pairs = [
            np.abs(np.log(rows[i] / rows[j])).max()
            for i, x in enumerate(databases)
            for j, y in enumerate(databases)
            if records_apart(x, y) <= reach
        ]
        assert max(pairs) <= EPSILON + 1e-9  # the promise holds
        worst = max(worst, most_moved(databases, rows, np.ones(len(databases))))
    assert worst == pytest.approx(1.0955, abs=5e-5)


def test_tables_can_be_more_steps_apart_than_records_suggest():
    """2 x 2 margins (4, 3) and (4, 3): the two ends are six records and three steps apart."""
    tables = [np.array([[k, 4 - k], [4 - k, k - 1]]) for k in range(1, 5)]
    records = [int(np.abs(one - tables[0]).sum()) // 2 for one in tables]
    assert records == [0, 2, 4, 6]  # neighbours on this line are 2 apart: a step of 3 reaches one
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["no", "yes"]}})
    figures = publish(Table(schema, schema.names, tables[0]), margin("sex"), margin("ill"))
    assert SemiAdjacent(figures).records == 3
