"""What may stand beside what in one ledger; each case was an attack that once worked."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from congenial import Budget, CongenialError, Guarantee, Ledger, calibrate, release_table
from congenial.errors import BudgetError, FigureError, LedgerError
from congenial.figures import (
    Figures,
    Statement,
    at_least,
    at_most,
    count,
    publish,
    structural_zeros,
    total,
)
from congenial.ledger.refusals import SECRETS, WHOLE_DATASET
from congenial.mechanisms.calibrate import rebuild
from congenial.pairs import AddRemove, Pairs, ReplaceOne, SemiAdjacent, SensitiveValues
from congenial.privacy import Gaussian, Loss, Pure, RecordDescription
from congenial.privacy.tradeoff import Nothing
from tests.ledger.ledgers import COUNTIES, SCHEMA, described, published, spend


@dataclass(frozen=True)
class OfAKind(Pairs):
    """Pairs of some kind, as the ledger sees them: by what they write down."""

    kind: str
    level: str = "query"
    adds: bool = True
    schema = SCHEMA

    @property
    def composes(self) -> bool:
        return self.adds

    @property
    def metric(self) -> str:
        return self.kind

    @property
    def words(self) -> str:
        return "two states of the world"

    def to_dict(self) -> dict[str, Any]:
        return {"metric": self.kind, "level": self.level}


OTHER = RecordDescription("other", SCHEMA, {}, epsilon=Fraction(1, 10))


@dataclass(frozen=True)
class Made:
    """A release, as `record` needs it."""

    guarantee: Guarantee
    description: Any = OTHER
    name: str = "other"


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.open(tmp_path / "ledger.sqlite", SCHEMA, budget=Budget(epsilon=9))


def promise(kind: str, level: str = "query") -> Guarantee:
    return Guarantee.pure(1, under=OfAKind(kind, level))


@pytest.mark.parametrize(("kind", "level"), [(WHOLE_DATASET, ""), (SECRETS, "query")])
def test_a_promise_that_stands_alone_refuses_company_in_the_ledger_itself(
    ledger: Ledger, kind: str, level: str
) -> None:
    ledger.record(Made(promise(kind, level)))
    with pytest.raises(LedgerError, match="does not add up"):
        spend(ledger, described())
    with pytest.raises(BudgetError, match=r"does not add up.*counted as spent"):
        ledger.record(Made(Guarantee.pure(1, under=ReplaceOne(SCHEMA))))
    with pytest.raises(LedgerError):
        ledger.publish(published((total("county"), [5, 7, 9])))
    assert not ledger.figures.statements


@pytest.mark.parametrize("kind", [WHOLE_DATASET, SECRETS])
def test_it_does_not_join_others(ledger: Ledger, kind: str) -> None:
    spend(ledger, described())
    with pytest.raises(LedgerError, match="does not add up"):
        ledger.reserve(described(), promise(kind), "alone")


@pytest.mark.parametrize("kind", [WHOLE_DATASET, "a kind of tomorrow"])
def test_published_figures_refuse_what_does_not_count_them(ledger: Ledger, kind: str) -> None:
    """No release is there; the exact figures alone are more than such a promise knows of."""
    ledger.publish(COUNTIES)
    with pytest.raises(LedgerError, match="exact figures of these data are published"):
        ledger.reserve(described(), promise(kind), "alone")
    assert ledger.entries() == ()


def test_refusals_are_known_before_the_work(ledger: Ledger) -> None:
    """`refuse_company` says what `reserve` would, and writes nothing."""
    alone = promise(WHOLE_DATASET).adjacency.to_dict()
    ledger.refuse_promise(alone)
    spend(ledger, described())
    before = len(ledger.events())
    with pytest.raises(LedgerError, match="this ledger counts the release 'r'"):
        ledger.refuse_promise(alone)
    ledger.refuse_promise(ledger.adjacency.to_dict())  # the control: what adds up may come
    assert len(ledger.events()) == before


@pytest.mark.parametrize(
    "pairs", [OfAKind("a kind of tomorrow"), OfAKind("replace-one", adds=False)], ids=str
)
def test_a_kind_without_a_rule_is_refused_by_default(ledger: Ledger, pairs: OfAKind) -> None:
    """Pairs of an unknown kind, or that say themselves that they do not add, join nothing."""
    spend(ledger, described())
    with pytest.raises(LedgerError, match="does not add up"):
        ledger.reserve(described(), Guarantee.pure(1, under=pairs), "new")


def test_nothing_joins_a_kind_without_a_rule(ledger: Ledger) -> None:
    ledger.record(Made(promise("a kind of tomorrow")))
    with pytest.raises(LedgerError, match=r"'a kind of tomorrow', for which no rule.*not add up"):
        spend(ledger, described())


def test_stored_pairs_are_asked_whether_they_add(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kind that changes its rule is believed: the ledger has no list of its own."""
    spend(ledger, described())
    ledger.refuse_promise(ReplaceOne(SCHEMA).to_dict())
    monkeypatch.setattr(SemiAdjacent, "composes", False)
    with pytest.raises(LedgerError, match="does not add up"):
        ledger.refuse_promise(ReplaceOne(SCHEMA).to_dict())


def test_secrets_of_databases_add_up_and_are_void_given_more(ledger: Ledger) -> None:
    ledger.record(Made(promise(SECRETS, "database")))
    spend(ledger, described())
    figures = published((total("county"), [5, 7, 9]))
    with pytest.raises(LedgerError, match="void"):
        ledger.publish(figures)
    ledger.publish(figures, accept_weaker=True)


LATER = {
    "at most": at_most(count("sex = 'f'"), 11),
    "at least, fixing a cell": at_least(count("county = 'A' and sex = 'f'"), 5),
    "impossible": structural_zeros("county = 'A' and sex = 'm'"),
}


@pytest.mark.parametrize("statement", LATER.values(), ids=LATER)
@pytest.mark.parametrize("level", ["query", "database"])
def test_bounds_and_rules_make_secrets_void_too(
    ledger: Ledger, statement: Statement, level: str
) -> None:
    ledger.publish(COUNTIES)
    ledger.record(Made(promise(SECRETS, level)))
    later = Figures(SCHEMA, (statement,), (None,))
    with pytest.raises(LedgerError, match=r"'other' promises.*that promise is void"):
        ledger.publish(later)
    ledger.publish(later, accept_weaker=True)
    ledger.publish(later)  # nothing new


def of_values() -> Made:
    return Made(Guarantee.pure(1, under=SensitiveValues(COUNTIES, ("county",))))


@pytest.mark.parametrize(
    "later",
    [
        published((count("sex = 'f'", by="county"), [2, 3, 4])),
        Figures(SCHEMA, (at_most(count("sex = 'f'"), 11),), (None,)),
    ],
)
def test_a_promise_about_values_is_void_once_they_are_tied(ledger: Ledger, later: Figures) -> None:
    ledger.publish(COUNTIES)
    ledger.record(of_values())
    with pytest.raises(LedgerError, match=r"about one person's .*sex.* alone"):
        ledger.publish(later)
    ledger.publish(later, accept_weaker=True)
    with pytest.raises(BudgetError, match="can change alone"):
        ledger.record(of_values())  # nor is it promised afresh


def test_figures_of_public_columns_and_rules_leave_a_promise_about_values(ledger: Ledger) -> None:
    ledger.publish(COUNTIES)
    ledger.record(of_values())
    ledger.publish(Figures(SCHEMA, (at_least(count("county = 'A'"), 4),), (None,)))
    ledger.publish(Figures(SCHEMA, (LATER["impossible"],), (None,)))
    ledger.record(of_values())


# ---- figures that no dataset has ------------------------------------------------------------


@pytest.mark.parametrize(
    "second",
    [
        published((total("sex"), [12, 11])),  # 23 people after 21
        published((total(("sex", "age")), [[1, 2, 3], [4, 5, 7]])),
    ],
)
def test_contradictory_figures_never_empty_the_universe(ledger: Ledger, second: Figures) -> None:
    spend(ledger, described())
    ledger.publish(published((total("county"), [5, 7, 9])), accept_weaker=True)
    before = ledger.spent()
    with pytest.raises(FigureError, match="no dataset agrees"):
        ledger.publish(second, accept_weaker=True)
    assert ledger.spent() == before != Loss()


def test_figures_without_a_whole_table_are_no_universe() -> None:
    """2 a + 4 b = 3 has real solutions and no whole one: not a promise of zero."""
    from congenial.figures.statements import linear

    statement = linear({"sex = 'f'": 2, "sex = 'm'": 4})
    figures = Figures(SCHEMA, (statement,), (np.asarray(3),))
    with pytest.raises(CongenialError):
        SemiAdjacent(figures).l1(("sex",))


# ---- readings and footings ------------------------------------------------------------------


def test_a_promise_in_another_reading_is_not_counted(tmp_path: Path) -> None:
    from congenial.data.schema import Schema
    from congenial.data.table import Table

    schema = Schema.from_dict({"r": {"levels": ["1", "2"]}, "c": {"levels": ["x", "y"]}})
    table = Table(schema, ("r", "c"), np.array([[9, 7], [6, 8]]))
    first = publish(table, total(by="r"))
    ledger = Ledger.open(tmp_path / "l.sqlite", schema, budget=Budget(epsilon=4))
    ledger.publish(first)
    target = Guarantee.pure(1, under=SemiAdjacent(first, "existential"))
    release = release_table(calibrate("auto", target, ["r", "c"]), table, name="t")
    with pytest.raises(BudgetError, match=r"existential reading.*counted as spent"):
        ledger.record(release)
    assert ledger.spent().epsilon == 2  # what was drawn stays spent, at the robust price
    with pytest.raises(LedgerError, match="existential reading"):
        ledger.reserve(release.description, release.guarantee, "again", "")


def test_nothing_promised_is_not_a_perfect_promise(ledger: Ledger) -> None:
    silent = RecordDescription("statistics", SCHEMA, {}, persons=False)
    ledger.record(Made(promise(WHOLE_DATASET), silent))
    assert ledger.spent().tradeoff == Nothing()
    assert "epsilon = 0 of epsilon = 9, beside 1 release that promises" in ledger.account()


def test_what_a_chain_drew_is_named_beside_the_total(ledger: Ledger) -> None:
    target = Guarantee(ReplaceOne(SCHEMA), Pure(1), "uncertified chain")
    ledger.record(Made(target))
    assert "; 1 release drawn by an uncertified chain, so not proved" in ledger.spent_words()


def test_gaussian_and_pure_together_never_cost_more_than_apart() -> None:
    mu = Fraction(1, 2)
    both = Loss(epsilon=Fraction(7, 10), rho=mu**2 / 2)
    assert both.epsilon_at(1e-6) <= 0.7 + Gaussian(mu).epsilon(1e-6) + 1e-12


# ---- descriptions that contradict themselves --------------------------------------------------


@pytest.mark.parametrize("change", [{"family": "k_norm_3"}, {"nonnegative": True}])
def test_a_mechanism_refuses_the_law_of_another(change: dict[str, Any]) -> None:
    from dataclasses import replace

    public = published((total("county"), [5, 7, 9]), (total("sex"), [10, 11]))
    target = Guarantee.pure(1, under=SemiAdjacent(public))
    made = calibrate("congenial", target, ("county", "sex"))
    with pytest.raises(CongenialError, match="contradicts itself"):
        rebuild(replace(made.description, **change), made.adjacency)


def test_one_person_more_or_less_does_not_stand_beside_an_exact_figure(ledger: Ledger) -> None:
    """The number of people alone tells such datasets apart: the joint loss is infinite."""
    people = published((total(), 21))
    release = calibrate("auto", Guarantee.pure(1, under=AddRemove(SCHEMA)))
    ledger.refuse_release(release.description, release.guarantee, "rows")  # alone it stands
    ledger.publish(people)
    with pytest.raises(LedgerError, match="'Population' is published exactly"):
        ledger.reserve(release.description, release.guarantee, "rows")
    with pytest.raises(BudgetError, match="counted as spent"):
        ledger.record(Made(release.guarantee, release.description, "rows"))


def test_nor_an_exact_figure_beside_it(ledger: Ledger) -> None:
    people = published((total(), 21))
    release = calibrate("auto", Guarantee.pure(1, under=AddRemove(SCHEMA)))
    ledger.record(Made(release.guarantee, release.description, "rows"))
    with pytest.raises(LedgerError, match="one person more or less; once 'Population'"):
        ledger.publish(people)
    ledger.publish(people, accept_weaker=True)
