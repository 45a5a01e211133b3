"""What holds of several tables drawn together, on universes small enough to list whole databases.

Tables are independent given the data, so the divergence of the whole release is the sum of the
tables', each enumerated from its density over all outputs in a window (which can only lose some).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from congenial import CongenialError, Guarantee, ReplaceOne, Schema, SeededRandomness, Table
from congenial.audit.exact_audit import outputs
from congenial.audit.universes import FURTHER, UNIVERSES, SmallUniverse
from congenial.data.table import cell_index
from congenial.errors import GuaranteeError, StructureError
from congenial.figures import Figures, count, structural_zeros, total
from congenial.mechanisms import MeasuredTables, calibrate_tables
from congenial.pairs import difference_types as types_module
from congenial.privacy import Pure, ZeroConcentrated, joint_loss

ORDERS = (1.5, 2.0, 4.0)
ROUNDING = 1e-9
AREAS = Schema.from_dict(
    {
        "area": {"levels": ["a", "b", "c"], "within": {"state": ["p", "p", "q"]}},
        "sex": {"levels": ["f", "m"]},
    }
)
NESTED = SmallUniverse(
    "coarser names",
    Table(AREAS, AREAS.names, np.array([[1, 0], [0, 1], [1, 0]])),
    (total(by="state"), count("sex = 'f'")),
    ("area", "sex"),
)
ZEROS = SmallUniverse(
    "impossible cells of one area",
    Table(AREAS, AREAS.names, np.array([[1, 0], [1, 1], [0, 0]])),
    (total(), structural_zeros("area = 'c' and sex = 'm'")),
    ("area", "sex"),
)
EVERY = [u for u in (*UNIVERSES, *FURTHER, NESTED, ZEROS) if u.label != "bounds"]


@dataclass(frozen=True)
class Joint:
    """A universe and what draws several of its tables."""

    universe: SmallUniverse
    made: MeasuredTables

    def __str__(self) -> str:
        return f"{self.universe.label}, {self.made.description.family}"


def tables_of(universe: SmallUniverse) -> list[tuple[str, ...]]:
    """The released table, every smaller one, coarser names and the total."""
    names = universe.release
    smaller = [part for k in range(len(names)) for part in combinations(names, k)]
    coarser = [(n,) for name in names for n in universe.table.schema.attribute(name).coarser]
    return [names, *smaller, *coarser]


def joint_cases() -> Iterator[Joint]:
    for universe in EVERY:
        for tradeoff in (Pure(Fraction(3, 2)), ZeroConcentrated(Fraction(3, 4))):
            target = Guarantee(universe.adjacency, tradeoff)
            try:
                yield Joint(universe, calibrate_tables(target, tables_of(universe)))
            except StructureError as reason:
                if "nothing is left to protect" not in reason.what:
                    raise


CASES = list(joint_cases())
cases = pytest.mark.parametrize("case", CASES, ids=str)


def logs(case: Joint, made: MeasuredTables) -> list[dict[bytes, np.ndarray]]:
    """Per measured table: the log density of every output in a window, for every database."""
    pairs = case.universe.pairs()
    tables = {t.counts.tobytes(): t for pair in pairs for t in pair}
    found = []
    for one in made.mechanisms:
        window = outputs(one, list(tables.values()), 2 if np.prod(one.shape) <= 4 else 1)
        found.append({key: one.log_density(window, table) for key, table in tables.items()})
    return found


def worst_loss(case: Joint, made: MeasuredTables) -> float:
    """Largest epsilon, or largest D_alpha / alpha, that any pair of databases shows."""
    densities, worst = logs(case, made), 0.0
    pure = made.description.family == "double_geometric"
    for left, right in case.universe.pairs():
        keys = left.counts.tobytes(), right.counts.tobytes()
        both = [(one[keys[0]], one[keys[1]]) for one in densities]
        if pure:
            worst = max(worst, sum(ratio(p, q) for p, q in both))
        else:
            worst = max(worst, *(sum(renyi(p, q, a) for p, q in both) / a for a in ORDERS))
    return worst


def ratio(p: np.ndarray, q: np.ndarray) -> float:
    seen = np.isfinite(p)
    return float(np.max(p[seen] - q[seen]))


def renyi(p: np.ndarray, q: np.ndarray, order: float) -> float:
    """D_alpha from below: what lies outside the window is left out."""
    seen = np.isfinite(p)
    if np.any(np.isneginf(q[seen])):
        return float("inf")
    powers = order * p[seen] + (1 - order) * q[seen]
    return float(np.log(np.sum(np.exp(powers))) / (order - 1))


def promised(made: MeasuredTables) -> float:
    told = made.guarantee.tradeoff
    return float(told.eps if isinstance(told, Pure) else told.rho)


@cases
def test_no_pair_of_databases_breaks_the_promise(case: Joint) -> None:
    assert worst_loss(case, case.made) <= promised(case.made) * (1 + ROUNDING)


@cases
def test_the_promise_is_what_was_asked_and_some_pair_attains_it_where_it_says_so(
    case: Joint,
) -> None:
    """Pure losses are attained inside every window; zCDP is only bounded from below there."""
    pure = case.made.description.family == "double_geometric"
    asked = 1.5 if pure else 0.75
    loss = joint_loss([case.made.description], case.made.adjacency)
    assert promised(case.made) <= asked
    if loss.exact:
        assert promised(case.made) == pytest.approx(asked, rel=1e-6)
        if pure and case.universe.complete:
            assert worst_loss(case, case.made) == pytest.approx(asked, rel=1e-6)


def with_scales(made: MeasuredTables, factor: Fraction) -> MeasuredTables:
    """The first measured table drawn with less noise than the promise was worked out for."""
    first = made.description.measured[0]
    invert = made.description.family == "discrete_gaussian"
    scale = first.scale / factor if invert else first.scale * factor
    told = replace(
        made.description, measured=(replace(first, scale=scale), *made.description.measured[1:])
    )
    return MeasuredTables(made.adjacency, told)


def test_a_table_at_the_wrong_precision_is_caught() -> None:
    """The negative control of the enumeration: one table with twice its precision."""
    sharp = [
        case
        for case in CASES
        if case.made.description.family == "double_geometric"
        and joint_loss([case.made.description], case.made.adjacency).exact
        and case.universe.complete
    ]
    assert len(sharp) > 4
    for case in sharp[::3]:
        made = with_scales(case.made, Fraction(2))
        assert worst_loss(case, made) > promised(case.made) * 1.001, case


def test_a_type_left_out_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the largest type of differences, designs promise too much; enumeration sees it."""
    whole = types_module.maximal
    monkeypatch.setattr(types_module, "maximal", lambda rows: whole(rows)[1:] or whole(rows // 2))
    found = []
    for universe in EVERY:
        target = Guarantee(universe.adjacency, Pure(Fraction(3, 2)))
        try:
            made = calibrate_tables(target, tables_of(universe))
        except GuaranteeError as reason:  # what the ledger counts shows it before any draw
            found.append("more than was asked for" in reason.what)
            continue
        except (CongenialError, ZeroDivisionError):
            continue
        found.append(worst_loss(Joint(universe, made), made) > 1.5 * 1.001)
    assert sum(found) >= 3


def test_a_figure_not_in_the_kernel_is_caught() -> None:
    """Noise that keeps no figure, under a promise given one, or noise given a figure that is not
    published: the first prints tables that contradict the figure, the second tells databases apart.
    """
    case = next(c for c in CASES if c.universe.label == "totals by group")
    made = case.made
    bare = Figures(made.adjacency.schema)
    name = {"double_geometric": "plain_geometric", "discrete_gaussian": "plain_discrete_gaussian"}
    plain = tuple(
        replace(one, mechanism=name[one.family], support=bare) for one in made.description.measured
    )
    wrong = MeasuredTables(made.adjacency, replace(made.description, measured=plain))
    figure = made.adjacency.figures.values[0]
    drawn = wrong.release(case.universe.table, SeededRandomness(1)).drawn[0]
    assert not np.array_equal(drawn.sum(axis=1), figure)
    with pytest.raises(CongenialError, match="which is not published"):
        joint_loss([made.description], ReplaceOne(case.universe.table.schema))


@cases
def test_tables_agree_with_each_other_and_with_every_figure(case: Joint) -> None:
    """Whatever is drawn: estimates are consistent, whole counts too, and none is negative."""
    universe = case.universe
    release = case.made.release(universe.table, SeededRandomness(11), "people")
    assert release.tables[0] == universe.release
    for told in (release.estimates, release.counts):
        for names, values in zip(release.tables, told, strict=True):
            if values is not None:
                assert np.allclose(values, sums(universe, told[0], names), atol=1e-6)
    finest = release.counts[0]
    if finest is None:
        assert "do not determine" in case.made.estimator.why_no_counts
        return
    assert int(finest.min()) >= 0
    figures = universe.adjacency.figures
    if figures.statements and set(figures.bases) <= set(universe.release):
        assert figures.holds_for(Table(universe.table.schema, universe.release, finest))


def sums(universe: SmallUniverse, values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    schema = universe.table.schema
    shape = tuple(axis.size for axis in schema.axes(names))
    found = np.zeros(int(np.prod(shape)))
    index = np.broadcast_to(cell_index(schema, universe.release, names), values.shape)
    np.add.at(found, index.reshape(-1), values.reshape(-1))
    return found.reshape(shape)
