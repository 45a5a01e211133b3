from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.errors import (
    BudgetError,
    CongenialError,
    GuaranteeError,
    LedgerError,
    MandateError,
    StructureError,
)
from congenial.privacy import store as store_module
from congenial.privacy.budget import Budget
from congenial.privacy.composition import Loss
from congenial.privacy.description import Description, Family
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.ledger import Ledger
from congenial.public.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.public.invariants import Invariants
from congenial.public.statements import Statement, count, margin, total

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
HALF = Fraction(1, 2)
NONE = Invariants(SCHEMA)


def described(
    *table: str,
    scale: Fraction = HALF,
    family: Family = "double_geometric",
    support=NONE,
    **numerics,
) -> Description:
    """With eps_cell = 1/2 and no mandates the loss is exactly epsilon = 1."""
    return Description("plain", table or ("sex",), family, scale, support, **numerics)


def promise(ledger: Ledger) -> Guarantee:
    return Guarantee.pure(1, under=ledger.adjacency)


def published(*figures: tuple[Statement, list[int] | list[list[int]]]) -> Invariants:
    values = tuple(np.asarray(value, dtype=np.int64) for _, value in figures)
    return Invariants(SCHEMA, tuple(statement for statement, _ in figures), values)


COUNTIES = published((total("county"), [5, 7, 9]))


def spend(ledger: Ledger, description: Description, name: str = "r") -> str:
    with ledger.reserve(description, promise(ledger), name) as reservation:
        reservation.mark_drawn()
        reservation.commit("d" * 64)
    return reservation.id


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ledger.sqlite"


@pytest.fixture
def ledger(path: Path) -> Ledger:
    return Ledger.open(path, SCHEMA, budget=Budget(epsilon=2))


# ---- budget ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"delta": "1e-6"},
        {"epsilon": 1, "rho": 1},
        {"rho": 1, "delta": "1e-6"},
        {"epsilon": -1},
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": "much"},
        {"epsilon": True},
        {"epsilon": 1, "delta": 1},
    ],
)
def test_bad_budgets_are_refused_with_a_remedy(given) -> None:
    with pytest.raises(GuaranteeError) as caught:
        Budget(**given)
    assert caught.value.remedy


def test_budget_reads_a_float_as_its_decimal_and_round_trips() -> None:
    budget = Budget(epsilon=0.1, delta=1e-6)
    assert budget.epsilon == Fraction(1, 10)
    assert budget.delta == Fraction(1, 10**6)
    assert Budget.from_dict(budget.to_dict()) == budget
    assert Budget(rho="1/8").words == "rho = 0.125"


def test_pure_budget_is_exact_at_its_boundary() -> None:
    budget = Budget(epsilon="0.3")
    assert budget.allows(Loss(epsilon=Fraction(3, 10)))
    assert not budget.allows(Loss(epsilon=Fraction(3, 10) + Fraction(1, 10**30)))


def test_gaussian_loss_needs_a_delta_or_a_rho() -> None:
    loss = Loss(rho=Fraction(1, 8), discrete=True)
    with pytest.raises(GuaranteeError, match="needs a delta"):
        Budget(epsilon=100).spent(loss)
    assert not Budget(epsilon=100).allows(loss)
    assert Budget(rho="1/8").allows(loss)
    assert not Budget(rho="0.1249").allows(loss)
    amount = Budget(epsilon=100, delta="1e-6").spent(loss)
    assert amount >= loss.epsilon_at(1e-6)
    assert Budget(epsilon=amount, delta="1e-6").allows(loss)
    assert not Budget(epsilon=amount - Fraction(1, 1000), delta="1e-6").allows(loss)


def test_rho_budget_adds_pure_losses_and_refuses_windows() -> None:
    mixed = Loss(epsilon=Fraction(1), rho=Fraction(1, 8))
    assert Budget(rho=1).spent(mixed) == Fraction(5, 8)
    with pytest.raises(GuaranteeError, match="window"):
        Budget(rho=1).spent(Loss(epsilon=HALF, mass=Fraction(1, 10**9)))


def test_windows_need_a_delta_large_enough() -> None:
    loss = Loss(epsilon=Fraction(1), mass=Fraction(1, 10**8))
    assert not Budget(epsilon=2).allows(loss)
    assert Budget(epsilon=2, delta="1e-6").allows(loss)
    assert not Budget(epsilon=2, delta="1e-12").allows(loss)


def test_what_is_left_rounds_down_and_spent_rounds_up() -> None:
    budget, loss = Budget(epsilon=1), Loss(epsilon=Fraction(1, 3))
    assert budget.say(loss) == "epsilon = 0.333334"
    assert budget.left(loss) == "epsilon = 0.666666"
    assert budget.left(Loss(epsilon=Fraction(2))) == "nothing"


# ---- opening -----------------------------------------------------------------------------------


def test_opens_again_with_what_it_was_given(path: Path) -> None:
    Ledger.open(path, SCHEMA, budget=Budget(epsilon=2))
    again = Ledger.open(f"sqlite:///{path}", SCHEMA, budget=Budget(epsilon=2))
    assert again.schema == SCHEMA
    assert again.schema.names == ("county", "sex", "age")
    assert again.budget == Budget(epsilon=2)
    assert again.spent() == Loss()
    assert again.spent_words() == "epsilon = 0"
    assert [event.kind for event in again.events()] == ["open", "budget"]
    assert promise(again).same_pairs(Guarantee.pure(1, under=ReplaceOne(SCHEMA)))
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_refuses_another_population(path: Path, ledger: Ledger) -> None:
    other = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "county": {"levels": ["A", "B"]}})
    with pytest.raises(LedgerError, match=r"another schema.*new ledger"):
        Ledger.open(path, other)
    with pytest.raises(LedgerError, match=r"unit replace-one.*new ledger"):
        Ledger.open(path, SCHEMA, max_rows=3)
    with pytest.raises(LedgerError, match="set_budget"):
        Ledger.open(path, SCHEMA, budget=Budget(epsilon=3))
    foreign = Description("plain", ("sex",), "laplace", HALF, Invariants(other))
    with pytest.raises(LedgerError, match="another schema"):
        ledger.reserve(foreign, promise(ledger), "foreign")
    with pytest.raises(LedgerError, match="another schema"):
        ledger.publish(Invariants(other, (total(),), (np.asarray(4),)))


def test_unit_add_remove_prices_rows_and_refuses_mandates(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA, max_rows=3, budget=Budget(epsilon=4))
    assert Ledger.open(path, adjacency="add-remove", max_rows=3).adjacency == AddRemove(SCHEMA, 3)
    with pytest.raises(LedgerError, match="max_rows = 3"):
        Ledger.open(path, adjacency="replace-one")
    spend(ledger, described("county", "sex"))
    assert ledger.spent() == Loss(epsilon=Fraction(3, 2))
    with pytest.raises(LedgerError, match="replace-one"):
        ledger.publish(COUNTIES)
    with pytest.raises(GuaranteeError):
        ledger.reserve(described(support=COUNTIES), promise(ledger), "given counties")


@pytest.mark.parametrize(
    "unit", [{"adjacency": "both"}, {"adjacency": "replace-one", "max_rows": 2}]
)
def test_unknown_units_are_refused_and_nothing_is_created(path: Path, unit) -> None:
    with pytest.raises(LedgerError):
        Ledger.open(path, SCHEMA, **unit)
    assert not path.exists()


def test_budget_changes_are_explicit_and_recorded(ledger: Ledger) -> None:
    ledger.set_budget(Budget(epsilon=2))
    ledger.set_budget(Budget(epsilon=3))
    assert ledger.budget == Budget(epsilon=3)
    assert [event.kind for event in ledger.events()] == ["open", "budget", "budget"]


def test_without_a_budget_it_counts_and_never_refuses(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA)
    for _ in range(3):
        spend(ledger, described(scale=Fraction(50)))
    assert ledger.spent().epsilon == 300
    assert ledger.spent_words() == "epsilon = 300"


def test_writer_is_named(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA, who="curator")
    spend(ledger, described())
    assert {event.who for event in ledger.events()} == {"curator"}


def test_unknown_user_is_called_unknown(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def nobody() -> str:
        raise OSError

    monkeypatch.setattr("getpass.getuser", nobody)
    assert Ledger.open(path, SCHEMA).events()[0].who == "unknown"


# ---- reserve, draw, commit -----------------------------------------------------------------------


def test_lifecycle(path: Path, ledger: Ledger) -> None:
    reservation = ledger.reserve(described(), promise(ledger), "sex", plan_digest="p")
    assert [(e.name, e.status) for e in ledger.pending()] == [("sex", "reserved")]
    assert ledger.spent().epsilon == 1  # a reservation counts at once
    reservation.mark_drawn()
    assert ledger.pending()[0].status == "drawn"
    reservation.commit("bundle")
    (entry,) = Ledger.open(path).entries()
    assert (entry.status, entry.plan_digest, entry.bundle_digest) == ("committed", "p", "bundle")
    assert entry.description == described()
    assert Guarantee.from_dict(NONE, entry.guarantee) == promise(ledger)
    assert ledger.pending() == ()
    assert [e.kind for e in ledger.events()][2:] == ["reserve", "draw", "commit"]


def test_only_the_known_steps_are_possible(ledger: Ledger) -> None:
    reservation = ledger.reserve(described(), promise(ledger), "r")
    with pytest.raises(LedgerError, match="Mark it as drawn"):
        reservation.commit("b")
    reservation.mark_drawn()
    with pytest.raises(LedgerError, match="second draw"):
        reservation.mark_drawn()
    reservation.commit("b")
    for step in (reservation.mark_drawn, lambda: reservation.commit("b")):
        with pytest.raises(LedgerError, match="stays spent"):
            step()
    with pytest.raises(LedgerError, match="committed"):
        ledger.abandon(reservation.id)
    with pytest.raises(LedgerError, match="no release"):
        ledger.abandon("nothing")
    assert len(ledger.events()) == 5


def test_abandoning_refunds_only_what_was_not_drawn(ledger: Ledger) -> None:
    kept = ledger.reserve(described(), promise(ledger), "drawn")
    kept.mark_drawn()
    ledger.abandon(kept.id)
    back = ledger.reserve(described(), promise(ledger), "not drawn")
    ledger.abandon(back.id)
    assert [e.status for e in ledger.entries()] == ["abandoned", "cancelled"]
    assert ledger.pending() == ()
    assert ledger.spent().epsilon == 1
    with pytest.raises(LedgerError, match="Reserve it again"):
        back.mark_drawn()  # refunded: its noise must not be drawn
    with pytest.raises(LedgerError):
        ledger.abandon(back.id)


def draw_and_fail(ledger: Ledger) -> None:
    with ledger.reserve(described(), promise(ledger), "after") as drawn:
        drawn.mark_drawn()
        raise KeyError


def test_leaving_the_block_cancels_or_keeps(ledger: Ledger) -> None:
    with ledger.reserve(described(), promise(ledger), "changed my mind"):
        pass
    with pytest.raises(KeyError), ledger.reserve(described(), promise(ledger), "before"):
        raise KeyError
    assert ledger.spent() == Loss()
    with pytest.raises(KeyError):
        draw_and_fail(ledger)
    assert [e.status for e in ledger.entries()] == ["cancelled", "cancelled", "drawn"]
    assert [e.name for e in ledger.pending()] == ["after"]
    assert ledger.spent().epsilon == 1


def test_preview_writes_nothing_and_agrees_with_reserve(ledger: Ledger) -> None:
    spend(ledger, described())
    before = ledger.events()
    small, large = ledger.preview(described()), ledger.preview(described(scale=Fraction(3, 5)))
    assert (small.before.epsilon, small.after.epsilon, small.allowed) == (1, 2, True)
    assert (large.after.epsilon, large.allowed) == (Fraction(11, 5), False)
    assert ledger.events() == before


def test_budget_error_names_all_numbers_and_reserves_nothing(ledger: Ledger) -> None:
    spend(ledger, described())
    before = ledger.events()
    with pytest.raises(BudgetError) as caught:
        ledger.reserve(described("sex", "age", scale=Fraction(3, 4)), promise(ledger), "second")
    text = str(caught.value)
    for part in (
        "'second'",
        "epsilon = 1.5",
        "epsilon = 1 spent",
        "epsilon = 2.5",
        "epsilon = 2 (",
    ):
        assert part in text
    assert "left: epsilon = 1)" in text
    assert caught.value.remedy
    assert ledger.events() == before
    spend(ledger, described())  # exactly the budget is allowed
    assert ledger.spent_words() == "epsilon = 2"


def test_gaussian_release_under_a_pure_budget_is_refused_with_the_reason(ledger: Ledger) -> None:
    gaussian = described(family="discrete_gaussian", scale=Fraction(100))
    with pytest.raises(BudgetError, match=r"epsilon = 2\).*needs a delta"):
        ledger.reserve(gaussian, promise(ledger), "gauss")
    ledger.set_budget(Budget(epsilon=2, delta="1e-6"))
    spend(ledger, gaussian)
    assert ledger.spent().rho == Fraction(1, 100)
    assert ledger.spent_words().endswith("at delta = 1e-06")


def test_numerics_are_counted(ledger: Ledger) -> None:
    spend(ledger, described(log_ratio_error=Fraction(1, 4)))
    assert ledger.spent().epsilon == Fraction(3, 2)


@dataclass(frozen=True)
class Drawn:
    name: str
    description: Description
    guarantee: Guarantee


def test_record_counts_what_was_drawn_even_beyond_the_budget(ledger: Ledger) -> None:
    first = ledger.record(Drawn("first", described(), promise(ledger)))
    assert ledger.entries()[0].id == first
    with pytest.raises(BudgetError, match=r"counted as spent.*Do not publish"):
        ledger.record(Drawn("second", described(scale=Fraction(1)), promise(ledger)))
    assert [e.status for e in ledger.entries()] == ["committed", "abandoned"]
    assert ledger.spent().epsilon == 3
    assert ledger.pending() == ()
    with pytest.raises(BudgetError):
        ledger.reserve(described(scale=Fraction(1, 100)), promise(ledger), "third")


# ---- mandates and re-pricing ------------------------------------------------------------------


def test_publishing_counties_doubles_what_earlier_releases_cost(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA, budget=Budget(epsilon=3))
    spend(ledger, described("sex"), "sex")
    spend(ledger, described("age"), "age")
    assert ledger.adjacency.records == 1
    assert ledger.spent().epsilon == 2
    before = ledger.events()
    with pytest.raises(LedgerError) as caught:
        ledger.publish(COUNTIES)
    text = str(caught.value)
    for part in ("epsilon = 2 before", "epsilon = 4 after", "'sex' epsilon = 1 -> epsilon = 2"):
        assert part in text
    assert "beyond the budget" in text
    assert ledger.events() == before

    repricing = ledger.publish(COUNTIES, accept_weaker=True)
    assert (repricing.before.epsilon, repricing.after.epsilon) == (2, 4)
    assert [(r.name, r.before.epsilon, r.after.epsilon) for r in repricing.releases] == [
        ("sex", 1, 2),
        ("age", 1, 2),
    ]
    assert repricing.over_budget
    assert repricing.weaker
    assert ledger.adjacency == SemiAdjacent(COUNTIES)
    assert ledger.adjacency.records == 2
    assert Ledger.open(path).spent().epsilon == 4  # nothing was reset
    with pytest.raises(BudgetError):
        ledger.reserve(described(scale=Fraction(1, 1000)), promise(ledger), "more")


def test_publishing_again_changes_nothing(ledger: Ledger) -> None:
    spend(ledger, described())
    ledger.publish(COUNTIES, accept_weaker=True)
    before = ledger.events()
    again = ledger.publish(COUNTIES)
    assert not again.weaker
    assert again.before == again.after
    assert ledger.events() == before


def test_mandates_are_joined_over_time(ledger: Ledger) -> None:
    ledger.publish(COUNTIES)
    adults = published((count("age >= 18", by="county"), [4, 4, 8]))
    ledger.publish(adults)
    assert [s.label for s in ledger.mandates.statements] == [
        "Population by county",
        "Count of age >= 18 by county",
    ]
    assert ledger.mandates == COUNTIES.join(adults)
    # Given both, a release conditioned on them is priced; its loss is that of two people.
    spend(ledger, described("county", "sex", scale=HALF, support=ledger.mandates))
    assert ledger.spent().epsilon == 2


@pytest.mark.parametrize(
    "other",
    [
        published((total("county"), [5, 7, 8])),
        published((total("county").named("People", "statute"), [5, 7, 8])),
        published((margin("county"), [5, 6, 9])),
        published((total(), 20)),  # 5 + 7 + 9 = 21
        published((count("sex = 'f'", by="county"), [4, 8, 1])),  # more than live in county B
    ],
    ids=["same", "relabelled", "as margin", "sum", "part above whole"],
)
def test_other_figures_for_what_is_published_are_refused(ledger: Ledger, other: Invariants) -> None:
    ledger.publish(COUNTIES)
    before = ledger.events()
    with pytest.raises(MandateError, match=r"new (ledger|population)"):
        ledger.publish(other)
    assert ledger.events() == before


def test_what_cannot_be_published_is_refused_and_not_recorded(ledger: Ledger) -> None:
    with pytest.raises(MandateError, match="no figures"):
        ledger.publish(Invariants(SCHEMA, (total("county"),)))
    two_way = published((margin("county"), [5, 7, 9]), (margin("sex"), [10, 11]))
    with pytest.raises(StructureError):
        ledger.publish(two_way)
    assert [event.kind for event in ledger.events()] == ["open", "budget"]


def test_a_release_given_unpublished_or_other_figures_is_refused(ledger: Ledger) -> None:
    given = described("county", "sex", support=COUNTIES)
    with pytest.raises(GuaranteeError, match="Publish that figure first"):
        ledger.reserve(given, promise(ledger), "early")
    ledger.publish(published((total("county"), [6, 7, 9])))
    with pytest.raises(MandateError, match="other figures"):
        ledger.reserve(given, promise(ledger), "other")
    assert ledger.entries() == ()


MINORS_BY_SEX = count("age < 18", by="sex")
ADULTS_BY_COUNTY = count("age >= 18", by="county")


def test_joint_supremum_is_below_the_sum_where_releases_see_different_moves(ledger: Ledger) -> None:
    """Adults may only change sex, minors only county: nobody moves in both tables at once."""
    ledger.set_budget(Budget(epsilon=100))
    spend(ledger, described("sex", scale=Fraction(1)), "sex")
    spend(ledger, described("county", scale=Fraction(3, 2)), "county")
    mandates = published((MINORS_BY_SEX, [5, 6]), (ADULTS_BY_COUNTY, [7, 8, 9]))
    repricing = ledger.publish(mandates, accept_weaker=True)
    alone = [one.after.epsilon for one in repricing.releases]
    assert repricing.before.epsilon == 5
    assert alone == [4, 6]
    assert repricing.after.epsilon == 6 < sum(alone)


def brute_force_l1(n_minors: int, n_adults: int, weights: dict[str, Fraction]) -> Fraction:
    """Largest weighted change between two conforming databases that differ in at most 2 people.

    People are (county, sex, adult); minors-by-sex and adults-by-county are held fixed.
    """
    kinds = [(c, s, a) for c, s, a in product(range(3), range(2), (False, True))]
    best = Fraction(0)

    def held(people) -> list:
        return sorted((s if not a else 10 + c) for c, s, a in people)

    for old in product(kinds, repeat=2):
        if sum(a for *_, a in old) > n_adults or sum(not a for *_, a in old) > n_minors:
            continue
        for new in product(kinds, repeat=2):
            if held(old) != held(new):
                continue
            change = Fraction(0)
            for place, (axis, size) in enumerate((("county", 3), ("sex", 2))):
                moved = np.zeros(size, dtype=int)
                for was, now in zip(old, new, strict=True):
                    moved[was[place]] -= 1
                    moved[now[place]] += 1
                change += weights[axis] * int(np.abs(moved).sum())
            best = max(best, change)
    return best


def test_re_pricing_is_never_below_brute_force(ledger: Ledger) -> None:
    ledger.set_budget(Budget(epsilon=100))
    weights = {"sex": Fraction(1), "county": Fraction(3, 2)}
    for axis, weight in weights.items():
        spend(ledger, described(axis, scale=weight), axis)
    ledger.publish(
        published((MINORS_BY_SEX, [5, 6]), (ADULTS_BY_COUNTY, [7, 8, 9])), accept_weaker=True
    )
    # Adults' ages 18-64 and 65+ are one kind here: neither release shows age.
    assert ledger.spent().epsilon == brute_force_l1(11, 24, weights)


def test_gaussian_releases_are_re_priced_by_the_square(path: Path) -> None:
    ledger = Ledger.open(path, SCHEMA, budget=Budget(rho=1))
    spend(ledger, described("sex", family="discrete_gaussian", scale=Fraction(10)))
    repricing = ledger.publish(COUNTIES, accept_weaker=True)
    assert (repricing.before.rho, repricing.after.rho) == (Fraction(1, 10), Fraction(4, 10))
    assert not repricing.over_budget


# ---- history and faults -------------------------------------------------------------------------


def tamper(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        for (name,) in raw.execute(
            "SELECT name FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall():
            raw.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            raw.execute(statement)
        raw.commit()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET who = 'somebody else' WHERE id = 1",
        "UPDATE events SET payload = replace(payload, '1/2', '1/200') WHERE kind = 'reserve'",
        "UPDATE events SET at = '1999-01-01T00:00:00+00:00' WHERE id = 3",
        "UPDATE events SET kind = 'abandon' WHERE kind = 'commit'",
        "DELETE FROM events WHERE kind = 'draw'",
        "DELETE FROM events WHERE id = 1",
    ],
)
def test_altered_history_is_noticed(path: Path, ledger: Ledger, statement: str) -> None:
    spend(ledger, described())
    tamper(path)
    assert Ledger.open(path).spent().epsilon == 1  # without the triggers, untouched: still fine
    tamper(path, statement)
    with pytest.raises(LedgerError, match=r"altered at event \d+"):
        Ledger.open(path)
    with pytest.raises(LedgerError, match="altered"):
        ledger.reserve(described(), Guarantee.pure(1, under=ReplaceOne(SCHEMA)), "r")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE events SET who = 'x'",
        "DELETE FROM events",
        "INSERT OR REPLACE INTO events "
        "SELECT id, at, 'x', kind, release, payload, previous, digest FROM events WHERE id = 1",
        "INSERT INTO events "
        "SELECT 99, at, who, kind, release, payload, 'x', 'y' FROM events LIMIT 1",
    ],
)
def test_events_are_append_only(path: Path, ledger: Ledger, statement: str) -> None:
    with closing(sqlite3.connect(path)) as raw:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            raw.execute(statement)
        raw.commit()
    assert len(Ledger.open(path).events()) == 2


def test_a_clock_going_backwards_is_harmless(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Clock:
        years = iter((2040, 2039, 2001))

        @classmethod
        def now(cls, zone):
            return store_module_datetime(next(cls.years), 1, 1, tzinfo=zone)

    store_module_datetime = store_module.datetime
    monkeypatch.setattr(store_module, "datetime", Clock)
    spend(ledger, described())
    assert [event.id for event in ledger.events()] == [1, 2, 3, 4, 5]
    assert ledger.entries()[0].status == "committed"


def refused(where: object, *args, **kwargs) -> LedgerError:
    with pytest.raises(LedgerError) as caught:
        Ledger.open(where, *args, **kwargs)
    error = caught.value
    assert error.remedy
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__
    assert "sqlalche" not in str(error).lower()
    return error


def test_files_that_are_not_ledgers(tmp_path: Path) -> None:
    garbage, empty, other = tmp_path / "garbage", tmp_path / "empty", tmp_path / "other.sqlite"
    garbage.write_bytes(b"not a database at all, but long enough to be read as one." * 50)
    empty.touch()
    with closing(sqlite3.connect(other)) as raw:
        raw.execute("CREATE TABLE events (id INTEGER)")
        raw.execute("CREATE TABLE ledger (name TEXT)")
        raw.commit()
    contents = other.read_bytes()
    assert "not a ledger" in str(refused(garbage, SCHEMA))
    assert "empty file" in str(refused(empty, SCHEMA))  # a truncated ledger must not start afresh
    assert "not a ledger" in str(refused(other, SCHEMA))
    assert other.read_bytes() == contents
    refused(tmp_path, SCHEMA)


def test_truncated_ledger(path: Path, ledger: Ledger) -> None:
    for _ in range(2):
        spend(ledger, described())
    whole = path.read_bytes()
    for keep in (50, 100, 4096, len(whole) // 2, len(whole) - 4096, len(whole) - 10):
        path.write_bytes(whole[:keep])
        refused(path, SCHEMA)
    path.write_bytes(whole)
    assert Ledger.open(path).spent().epsilon == 2


def test_places_that_cannot_be_reached(tmp_path: Path) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("x")
    for where in (a_file / "ledger.sqlite", tmp_path / "absent" / "ledger.sqlite"):
        assert "cannot be reached" in str(refused(where, SCHEMA))
    assert "no ledger" in str(refused(tmp_path / "ledger.sqlite"))
    assert "no ledger" in str(refused(tmp_path / "ledger.sqlite", SCHEMA, create=False))
    assert "SQLite file" in str(refused(":memory:", SCHEMA))
    assert "SQLite file" in str(refused("postgresql://host/base", SCHEMA))
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]


def test_a_ledger_that_vanishes_is_not_started_afresh(path: Path, ledger: Ledger) -> None:
    path.unlink()
    with pytest.raises(LedgerError, match="cannot be reached"):
        ledger.set_budget(Budget(epsilon=9))
    assert not path.exists()


def test_newer_versions_are_left_alone(path: Path, ledger: Ledger) -> None:
    tamper(path, "UPDATE ledger SET version = 2")
    assert "Upgrade" in str(refused(path))


def test_unknown_events_are_not_skipped(path: Path, ledger: Ledger) -> None:
    with ledger._store.writing() as log:
        log.append("refund", "r", {})
    with pytest.raises(LedgerError):
        Ledger.open(path)


def test_locked_ledger(path: Path, ledger: Ledger) -> None:
    impatient = Ledger.open(path, timeout=0.05)
    with closing(sqlite3.connect(path, isolation_level=None)) as raw:
        raw.execute("BEGIN EXCLUSIVE")
        for call in (impatient.spent, lambda: impatient.set_budget(Budget(epsilon=9))):
            with pytest.raises(
                LedgerError, match=r"locked by another process for more than 0.05 s"
            ):
                call()
        raw.execute("ROLLBACK")
    assert impatient.budget == Budget(epsilon=2)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("SQLITE_FULL", "disk"),
        ("SQLITE_READONLY_DBMOVED", "may not be written"),
        ("SQLITE_IOERR_FSYNC", "failed"),
        ("SQLITE_BUSY_SNAPSHOT", "locked"),
        ("SQLITE_CORRUPT", "damaged"),
    ],
)
def test_faults_of_the_disk_are_told_with_a_remedy(path: Path, code: str, words: str) -> None:
    error = store_module._fault(path, 10.0, code)
    assert words in str(error)
    assert error.remedy


def test_disk_full_loses_nothing(path: Path, ledger: Ledger, monkeypatch) -> None:
    """A page limit makes SQLite itself report a full disk in the middle of a write."""
    spend(ledger, described())
    connect = type(ledger._store)._connect

    def small(self):
        connection = connect(self)
        connection.execute("PRAGMA max_page_count = 1")  # not below what is there already
        return connection

    before = ledger.events()
    with monkeypatch.context() as patch:
        patch.setattr(type(ledger._store), "_connect", small)
        full = Ledger.open(path)
        with pytest.raises(LedgerError, match="full"):
            full.set_budget(Budget(epsilon=Fraction(1), delta=Fraction(1, 10**4000)))
    assert Ledger.open(path).events() == before


def test_no_error_of_the_database_escapes_as_something_else(path: Path, ledger: Ledger) -> None:
    tamper(path, "DROP TABLE events")
    for call in (ledger.spent, lambda: ledger.set_budget(Budget(epsilon=1))):
        with pytest.raises(CongenialError):
            call()


def test_two_open_ledgers_see_each_other_and_a_restored_copy(path: Path, ledger: Ledger) -> None:
    other = Ledger.open(path)
    spend(ledger, described(), "mine")
    copy = path.read_bytes()
    spend(other, described(), "theirs")
    assert [entry.name for entry in ledger.entries()] == ["mine", "theirs"]
    assert ledger.spent() == other.spent() == Loss(epsilon=Fraction(2))
    path.write_bytes(copy)  # an older copy comes back: what it says counts, not what is remembered
    assert [entry.name for entry in ledger.entries()] == ["mine"]
    spend(ledger, described(), "instead")
    assert [entry.name for entry in other.entries()] == ["mine", "instead"]
