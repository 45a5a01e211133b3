from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from congenial import AddRemove, Budget, Guarantee, Ledger, ReplaceOne, Schema, SemiAdjacent
from congenial.errors import BudgetError, FigureError, GuaranteeError, LedgerError
from congenial.figures import Figures, count, margin, total
from congenial.privacy import Description, Loss
from tests.ledger.ledgers import COUNTIES, HALF, NONE, SCHEMA, described, promise, published, spend


@pytest.fixture
def ledger(place: str) -> Ledger:
    return Ledger.open(place, SCHEMA, budget=Budget(epsilon=2))


# ---- opening -----------------------------------------------------------------------------------


def test_opens_again_with_what_it_was_given(place: str) -> None:
    Ledger.open(place, SCHEMA, budget=Budget(epsilon=2))
    again = Ledger.open(place, SCHEMA, budget=Budget(epsilon=2))
    assert again.schema == SCHEMA
    assert again.schema.names == ("county", "sex", "age")
    assert again.budget == Budget(epsilon=2)
    assert again.spent() == Loss()
    assert again.spent_words() == "epsilon = 0"
    assert [event.kind for event in again.events()] == ["open", "budget"]
    assert promise(again).adjacency.same(ReplaceOne(SCHEMA))


def test_refuses_another_population(place: str, ledger: Ledger) -> None:
    other = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "county": {"levels": ["A", "B"]}})
    with pytest.raises(LedgerError, match=r"another schema.*new population"):
        Ledger.open(place, other)
    with pytest.raises(LedgerError, match=r"unit replace-one.*new ledger"):
        Ledger.open(place, SCHEMA, max_rows=3)
    with pytest.raises(LedgerError, match="ledger budget"):
        Ledger.open(place, SCHEMA, budget=Budget(epsilon=3))
    foreign = Description("plain", ("sex",), "laplace", HALF, Figures(other))
    with pytest.raises(LedgerError, match="another schema"):
        ledger.reserve(foreign, promise(ledger), "foreign")
    with pytest.raises(LedgerError, match="another schema"):
        ledger.publish(Figures(other, (total(),), (np.asarray(4),)))


def test_unit_add_remove_prices_rows_and_refuses_mandates(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA, max_rows=3, budget=Budget(epsilon=4))
    assert Ledger.open(place, adjacency="add-remove", max_rows=3).adjacency == AddRemove(SCHEMA, 3)
    with pytest.raises(LedgerError, match="max_rows = 3"):
        Ledger.open(place, adjacency="replace-one")
    spend(ledger, described("county", "sex"))
    assert ledger.spent() == Loss(epsilon=Fraction(3, 2))
    with pytest.raises(LedgerError, match="congenial ledger unit"):
        ledger.publish(COUNTIES)
    with pytest.raises(GuaranteeError):
        ledger.reserve(described(support=COUNTIES), promise(ledger), "given counties")


@pytest.mark.parametrize(
    "unit", [{"adjacency": "both"}, {"adjacency": "replace-one", "max_rows": 2}]
)
def test_unknown_units_are_refused_and_nothing_is_created(place: str, unit) -> None:
    with pytest.raises(LedgerError):
        Ledger.open(place, SCHEMA, **unit)
    assert not Ledger.exists(place)


def test_budget_changes_are_explicit_and_recorded(ledger: Ledger) -> None:
    ledger.set_budget(Budget(epsilon=2))
    ledger.set_budget(Budget(epsilon=3))
    assert ledger.budget == Budget(epsilon=3)
    assert [event.kind for event in ledger.events()] == ["open", "budget", "budget"]


def test_without_a_budget_it_counts_and_never_refuses(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA)
    for _ in range(3):
        spend(ledger, described(scale=Fraction(50)))
    assert ledger.spent().epsilon == 300
    assert ledger.spent_words() == "epsilon = 300"


# ---- reserve, draw, commit -----------------------------------------------------------------------


def test_lifecycle(place: str, ledger: Ledger) -> None:
    reservation = ledger.reserve(described(), promise(ledger), "sex", plan_digest="p")
    assert [(e.name, e.status) for e in ledger.pending()] == [("sex", "reserved")]
    assert ledger.spent().epsilon == 1  # a reservation counts at once
    reservation.mark_drawn()
    assert ledger.pending()[0].status == "drawn"
    reservation.commit("bundle")
    (entry,) = Ledger.open(place).entries()
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


# ---- figures and re-pricing ------------------------------------------------------------------


def test_publishing_counties_doubles_what_earlier_releases_cost(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA, budget=Budget(epsilon=3))
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
    assert [(r.entry.name, r.then.epsilon, r.now.epsilon) for r in repricing.releases] == [
        ("sex", 1, 2),
        ("age", 1, 2),
    ]
    assert repricing.over_budget
    assert repricing.weaker
    assert ledger.adjacency == SemiAdjacent(COUNTIES)
    assert ledger.adjacency.records == 2
    assert Ledger.open(place).spent().epsilon == 4  # nothing was reset
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
    assert [s.label for s in ledger.figures.statements] == [
        "Population by county",
        "Count of age >= 18 by county",
    ]
    assert ledger.figures == COUNTIES.join(adults)
    # Given both, a release conditioned on them is priced; its loss is that of two people.
    spend(ledger, described("county", "sex", scale=HALF, support=ledger.figures))
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
def test_other_figures_for_what_is_published_are_refused(ledger: Ledger, other: Figures) -> None:
    ledger.publish(COUNTIES)
    before = ledger.events()
    with pytest.raises(FigureError, match=r"new (ledger|population)"):
        ledger.publish(other)
    assert ledger.events() == before


def test_what_cannot_be_published_is_refused_and_not_recorded(ledger: Ledger) -> None:
    with pytest.raises(FigureError, match="no values"):
        ledger.publish(Figures(SCHEMA, (total("county"),)))
    assert [event.kind for event in ledger.events()] == ["open", "budget"]


def test_a_release_given_unpublished_or_other_figures_is_refused(ledger: Ledger) -> None:
    given = described("county", "sex", support=COUNTIES)
    with pytest.raises(GuaranteeError, match="Publish that figure first"):
        ledger.reserve(given, promise(ledger), "early")
    ledger.publish(published((total("county"), [6, 7, 9])))
    with pytest.raises(FigureError, match="other values"):
        ledger.reserve(given, promise(ledger), "other")
    assert ledger.entries() == ()


MINORS_BY_SEX = count("age < 18", by="sex")
ADULTS_BY_COUNTY = count("age >= 18", by="county")


def test_joint_supremum_is_below_the_sum_where_releases_see_different_moves(ledger: Ledger) -> None:
    """Adults may only change sex, minors only county: nobody moves in both tables at once."""
    ledger.set_budget(Budget(epsilon=100))
    spend(ledger, described("sex", scale=Fraction(1)), "sex")
    spend(ledger, described("county", scale=Fraction(3, 2)), "county")
    figures = published((MINORS_BY_SEX, [5, 6]), (ADULTS_BY_COUNTY, [7, 8, 9]))
    repricing = ledger.publish(figures, accept_weaker=True)
    alone = [one.now.epsilon for one in repricing.releases]
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


def test_gaussian_releases_are_re_priced_by_the_square(place: str) -> None:
    ledger = Ledger.open(place, SCHEMA, budget=Budget(rho=1))
    spend(ledger, described("sex", family="discrete_gaussian", scale=Fraction(10)))
    repricing = ledger.publish(COUNTIES, accept_weaker=True)
    assert (repricing.before.rho, repricing.after.rho) == (Fraction(1, 10), Fraction(4, 10))
    assert not repricing.over_budget
