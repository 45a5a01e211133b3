"""The number of people as a figure of a replace-one promise: what it costs, over whole databases.

Look-alikes under replace-one have the same size, so stating the size must change neither how many
records they differ in nor how far any table moves. Here all databases of five people are listed,
and the pairs are found by counting, without the closed forms.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from congenial import AddRemove, Guarantee, ReplaceOne, Schema, SemiAdjacent, Table, calibrate
from congenial.errors import GuaranteeError
from congenial.figures import Figures, Statement, count, linear, structural_zeros, total
from congenial.mechanisms.calibrate import rebuild
from congenial.privacy import Conditions, joint_loss, normaliser_price
from congenial.publication.number_of_people import PEOPLE
from congenial.report.accuracy import cell_deviation

SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"levels": ["a", "b", "c"]}})
SHAPE, N = (2, 3), 5
TABLES = (("sex", "age"), ("sex",), ("age",), ())
FIGURES: dict[str, tuple[Statement, ...]] = {
    "none": (),
    "a count": (count("sex = 'f'"),),
    "a count by sex": (count("age = 'a'", by="sex"),),
    "two counts that cross": (count("sex = 'f'"), count("age = 'a'")),
    "three counts that cross": (count("sex = 'f'"), count("age = 'a'"), count("age = 'b'")),
    "a weighted sum": (linear({"sex = 'f'": 2, "age = 'a'": 1}),),
    "an impossible cell": (structural_zeros("sex = 'f' and age = 'c'"),),
}
each = pytest.mark.parametrize("statements", FIGURES.values(), ids=FIGURES.keys())


def everybody(people: int) -> list[np.ndarray]:
    """All tables of so many people."""
    cells = combinations_with_replacement(range(6), people)
    return [np.bincount(one, minlength=6).reshape(SHAPE) for one in cells]


def shown(u: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    """A table summed to some axes."""
    left_out = tuple(i for i, name in enumerate(SCHEMA.names) if name not in names)
    return np.asarray(u.sum(axis=left_out))


def moved(statements: tuple[Statement, ...], records: int) -> list[np.ndarray]:
    """Differences of databases of N people that agree with the figures, as far apart as given."""
    cells = Figures(SCHEMA, statements).cells
    bases = [name for name in SCHEMA.names if name in cells.bases]
    alike: dict[tuple[int, ...], list[np.ndarray]] = {}
    for one in everybody(N):
        flat = shown(one, tuple(bases)).reshape(-1)
        told = [int(v) for s in statements for v in cells.sums(s, flat).reshape(-1)]
        zero = [cells.sums(s, flat).any() for s in statements if s.relation == "zero"]
        if not any(zero):
            alike.setdefault(tuple(told), []).append(one)
    pairs = [pair for group in alike.values() for pair in product(group, repeat=2)]
    return [x - y for x, y in pairs if np.abs(x - y).sum() <= 2 * records]


@each
def test_it_changes_neither_records_nor_sensitivities(statements: tuple[Statement, ...]) -> None:
    """Closed forms with n equal those without, and no pair of databases exceeds either."""
    without = SemiAdjacent(Figures(SCHEMA, statements))
    given = SemiAdjacent(Figures(SCHEMA, (*statements, PEOPLE)))
    assert given.records == without.records
    differences = moved(statements, without.records)
    weights = [(names, Fraction(i + 1)) for i, names in enumerate(TABLES)]
    for releases in [*([one] for one in weights), weights]:
        l1 = given.joint_l1(releases)
        l2 = given.joint_l2_squared(releases)
        assert l1.value == without.joint_l1(releases).value
        assert l2.value == without.joint_l2_squared(releases).value
        sums = [
            [sum(w * int(norm(shown(u, names))) for names, w in releases) for u in differences]
            for norm in (lambda v: np.abs(v).sum(), lambda v: np.square(v).sum())
        ]
        assert max(sums[0]) <= l1.value
        assert max(sums[1]) <= l2.value
        if not any(one.relation == "=" for one in statements):  # attained where records are free
            assert (max(sums[0]), max(sums[1])) == (l1.value, l2.value)


@each
def test_values_only_leave_fewer_pairs(statements: tuple[Statement, ...]) -> None:
    """Once n is known, nothing is dearer than before."""
    table = Table(SCHEMA, SCHEMA.names, np.array([[1, 2, 0], [1, 0, 1]]))
    without = SemiAdjacent(Figures(SCHEMA, statements).evaluate(table))
    given = SemiAdjacent(Figures(SCHEMA, (*statements, PEOPLE)).evaluate(table))
    assert given.records <= without.records
    for names in TABLES:
        assert given.l1(names).value <= without.l1(names).value
        assert given.l2_squared(names).value <= without.l2_squared(names).value


def known(people: int) -> SemiAdjacent:
    table = Table(SCHEMA, SCHEMA.names, np.array([[people, 0, 0], [0, 0, 0]]))
    return SemiAdjacent(Figures(SCHEMA, (PEOPLE,)).evaluate(table))


def test_the_noise_given_n_keeps_the_same_epsilon_for_several_tables() -> None:
    """Densities of two tables over all pairs of databases: the joint loss is attained exactly."""
    pairs, people = known(3), 3
    made = [
        calibrate("auto", Guarantee.pure(1, pairs), ("sex", "age")),
        calibrate("auto", Guarantee.pure(2, pairs), ("sex",)),
    ]
    assert [one.name for one in made] == ["congenial", "congenial"]
    plain = [
        calibrate("auto", Guarantee.pure(epsilon, ReplaceOne(SCHEMA)), names)
        for epsilon, names in ((1, ("sex", "age")), (2, ("sex",)))
    ]
    loss = joint_loss([one.description for one in made], pairs)
    assert (
        loss.epsilon == joint_loss([one.description for one in plain], ReplaceOne(SCHEMA)).epsilon
    )
    tables = [Table(SCHEMA, SCHEMA.names, one) for one in everybody(people)]
    worst = max(
        sum(
            float(one.log_density(one.query(x), x) - one.log_density(one.query(x), y))
            for one in made
        )
        for x, y in product(tables, repeat=2)
        if np.abs(x.counts - y.counts).sum() <= 2
    )
    assert worst == pytest.approx(float(loss.epsilon))


def test_the_noise_given_n_keeps_the_same_rho() -> None:
    """Renyi divergence of order 2 of the two-cell table, over all pairs, in a wide window."""
    pairs = known(3)
    made = calibrate("auto", Guarantee.zero_concentrated(Fraction(1, 10), pairs), ("sex",))
    assert made.name == "congenial_gaussian"
    tables = [Table(SCHEMA, SCHEMA.names, one) for one in everybody(3)]
    outputs = np.array([[k, 3 - k] for k in range(-40, 44)])
    worst = 0.0
    for x, y in product(tables, repeat=2):
        if np.abs(x.counts - y.counts).sum() <= 2:
            p, q = (np.asarray(made.log_density(outputs, one)) for one in (x, y))
            worst = max(worst, float(np.log(np.exp(2 * p - q).sum())) / 2)
    assert worst == pytest.approx(0.1, abs=1e-9)


@pytest.mark.parametrize(
    ("cells", "plain", "given"), [(2, 2.80, 1.36), (3, 2.80, 2.80 / 1.57), (10, 2.80, 2.80 / 1.14)]
)
def test_what_it_is_worth_at_epsilon_one(cells: int, plain: float, given: float) -> None:
    schema = Schema.from_dict({"x": {"levels": [f"{i}" for i in range(cells)]}})
    found = [
        cell_deviation(calibrate("auto", Guarantee.pure(1, SemiAdjacent(Figures(schema, one)))))
        for one in ((), (PEOPLE,))
    ]
    assert found == pytest.approx([plain, given], abs=0.006)


def test_what_it_is_worth_at_rho_one_tenth() -> None:
    schema = Schema.from_dict({"x": {"levels": ["a", "b"]}})
    found = [
        cell_deviation(
            calibrate(
                "auto",
                Guarantee.zero_concentrated(
                    Fraction(1, 10), SemiAdjacent(Figures(schema, statements))
                ),
            )
        )
        for statements in ((), (PEOPLE,))
    ]
    assert found == pytest.approx([3.16, 2.24], abs=0.005)


def test_planted_n_is_kept_where_people_come_and_go() -> None:
    """The defect: noise given n under add/remove. It is refused, and its true loss is infinite."""
    given = calibrate("auto", Guarantee.pure(1, known(3)), ("sex",))
    pairs = AddRemove(SCHEMA)
    with pytest.raises(GuaranteeError, match="Number of people"):
        joint_loss([given.description], pairs)
    with pytest.raises(GuaranteeError, match="Number of people"):
        _ = rebuild(given.description, pairs).guarantee
    three = Table(SCHEMA, SCHEMA.names, np.array([[2, 0, 0], [1, 0, 0]]))
    two = Table(SCHEMA, SCHEMA.names, np.array([[2, 0, 0], [0, 0, 0]]))
    assert np.isfinite(given.log_density(given.query(three), three))
    assert given.log_density(given.query(three), two) == -np.inf
    sound = calibrate("auto", Guarantee.pure(1, pairs), ("sex",))  # the control
    assert joint_loss([sound.description], pairs).epsilon == 1


def test_signs_cost_more_given_n() -> None:
    """Section by section: .214 without n and .490 with it, at 0.5 per cell and many cells."""
    schema = Schema.from_dict({"x": {"levels": [f"{i}" for i in range(200)]}})
    prices = [
        float(
            normaliser_price(
                Fraction(1, 2), Conditions.of(Figures(schema, statements), ("x",), 2)
            ).value
        )
        for statements in ((), (PEOPLE,))
    ]
    assert prices == pytest.approx([0.214, 0.490], abs=0.001)


def test_which_figures_tell_it() -> None:
    def tells(*statements: Statement) -> bool:
        return Figures(SCHEMA, statements).tells_people

    assert not tells()
    assert tells(total())
    assert tells(total(by="age"))
    assert not tells(count("sex = 'f'"))
    assert tells(count("sex = 'f'"), count("sex = 'm'", by="age"))
    assert not tells(count("sex = 'f'"), count("age = 'a'"))
    assert not tells(linear({"sex = 'f'": 2, "sex = 'm'": 1}))
    assert tells(linear({"sex = 'f'": 2, "sex = 'm'": 1}), count("sex = 'f'"))
    assert not tells(structural_zeros("sex = 'f'"))
    assert tells(structural_zeros("sex = 'f'"), count("sex = 'm'"))
