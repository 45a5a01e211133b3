"""What cannot be drawn is refused before the ledger counts anything, whatever kind it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from congenial import Congenial, CongenialError, Guarantee, Plan, SeededRandomness, Table, calibrate
from congenial.errors import BudgetError, BundleError, StructureError
from congenial.kinds import tables as tables_kind
from congenial.mechanisms import MeasuredTables, Mechanism, one_table
from congenial.mechanisms.one_table import OneTable, made_up_table
from congenial.publication import drawing, workflow
from congenial.publication.plan_ledger import open_ledger
from congenial.sampling.conditioned import ConditionedNoise
from congenial.tables import general_fit
from tests.confidentiality.scenes import BOUNDED, SYNTHETIC, TABLE, Scene, people

SEED = 20261116
BY_COUNTY = 'total = true, by = ["county"], because = "statute" }'
CROSSING = TABLE.replace(
    BY_COUNTY, BY_COUNTY + '\n"Sexes" = { total = true, by = ["sex"] }'
).replace('table = ["county", "sex", "age"]', 'table = ["county", "sex"]')
SOME_CHILDREN = '"Some children" = { count = "age < 18", at_least = 1, because = "statute" }'
PROJECTED = BOUNDED.replace('"condition"', '"project"')


def ready(folder: Path, text: str) -> Plan:
    """A plan with its figures published."""
    made = Plan.load(Scene("", text, lambda: people(120), ()).write(folder))
    workflow.publish(made)
    return made


def refused(plan: Plan) -> CongenialError:
    """Why a release is refused; nothing was reserved, drawn or written."""
    with pytest.raises(CongenialError) as caught:
        workflow.release(plan, "made", randomness=SeededRandomness(SEED))
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert ledger.entries() == ()
    assert not (plan.folder / "bundles").exists()
    return caught.value


def out_of_reach(*_: Any) -> Any:
    raise StructureError("the nearest whole table is out of reach.", remedy="Fewer figures.")


@pytest.mark.parametrize("text", [CROSSING, PROJECTED], ids=["crossing", "bounded"])
def test_a_projection_out_of_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    plan = ready(tmp_path, text)
    monkeypatch.setattr(one_table, "fit_to_targets", out_of_reach)
    monkeypatch.setattr(general_fit, "_nearest_totals", out_of_reach)
    assert "out of reach" in str(refused(plan))


def test_a_projection_is_rehearsed_without_the_data(tmp_path: Path) -> None:
    """On a table made up from the figures, which keeps them and the bounds."""
    for at, text in enumerate((CROSSING, PROJECTED)):
        plan = ready(tmp_path / str(at), text)
        figures = workflow.published_so_far(plan)
        names = plan.release[0].table
        target = Guarantee.pure(1, under=plan.adjacency(figures))
        mechanism = calibrate("auto", target, names)
        assert MeasuredTables.of_one(mechanism).estimator.why_no_counts == ""
        table = made_up_table(mechanism, SeededRandomness(SEED))
        assert table.min() >= 0
        made = Table(plan.schema, tuple(names), np.reshape(table, mechanism.shape))
        assert figures.holds_for(made)


def test_a_release_builds_its_mechanism_and_its_sampler_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rehearsals, report and projection use what the plan asked for; they build nothing again."""
    plan, built = ready(tmp_path, CROSSING), []
    for cls, method in ((Mechanism, "__post_init__"), (ConditionedNoise, "__init__")):
        monkeypatch.setattr(cls, method, counting(built, getattr(cls, method)))
    workflow.release(plan, "made", randomness=SeededRandomness(SEED))
    assert built == [Congenial, ConditionedNoise]


def counting(built: list[type], usual: Callable[..., None]) -> Callable[..., None]:
    """A constructor that notes whose it is."""

    def noted(made: Any, *given: Any) -> None:
        built.append(type(made))
        usual(made, *given)

    return noted


@pytest.mark.parametrize(
    "text",
    [BOUNDED, PROJECTED, PROJECTED.replace('"project"', '"no"').replace(SOME_CHILDREN, "")],
    ids=["condition", "bounds", "no"],
)
def test_sums_to_keep_that_no_counts_follow(tmp_path: Path, text: str) -> None:
    """They are fitted cell by cell, drawn as they are, or not printed: `keep` would say nothing."""
    plan = ready(tmp_path, text)
    assert workflow.check(plan).releases
    told = (plan.folder / "plan.toml").read_text()
    asked = Plan.parse(told.replace("nonnegative", 'keep = ["sex"]\nnonnegative'), plan.folder)
    assert "Leave out keep" in str(refused(asked))


def test_a_prior_too_sharp_for_an_exact_draw(tmp_path: Path) -> None:
    sharp = SYNTHETIC.replace(
        "age = { floor = 0.02 }", "age = { floor = 0.02, concentration = 1e10 }"
    )
    assert "too large for an exact draw" in str(refused(ready(tmp_path, sharp)))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("epsilon = 0.1", "epsilon = 1e-9"),
        lambda text: text.replace("epsilon = 0.1", "epsilon = 1e-18").replace("project", "no"),
    ],
    ids=["wide", "wider"],
)
def test_noise_too_wide_to_draw(tmp_path: Path, change: Callable[[str], str]) -> None:
    text = change(TABLE)
    assert text != TABLE
    assert isinstance(refused(ready(tmp_path, text)), CongenialError)


def test_what_fails_after_the_draw_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: without the rehearsal the same fault spends."""
    plan = ready(tmp_path, CROSSING.replace("epsilon = 0.1", "epsilon = 0.02"))
    monkeypatch.setattr(OneTable, "order", None)
    monkeypatch.setattr(OneTable, "_rehearse", lambda _: None)
    monkeypatch.setattr(drawing, "rehearse", lambda offer: offer)
    monkeypatch.setattr(general_fit, "_nearest_totals", out_of_reach)
    with pytest.raises(BundleError, match="out of reach"):
        workflow.release(plan, "made", randomness=SeededRandomness(SEED))
    ledger = open_ledger(plan, create=False)
    assert ledger is not None
    assert [entry.status for entry in ledger.entries()] == ["drawn"]


@pytest.mark.parametrize("asked", ["rho = 0.5", "epsilon = 3"])
@pytest.mark.parametrize("figures", [True, False], ids=["with a ledger", "without one"])
def test_what_the_budget_does_not_allow_is_refused_before_data_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str, figures: bool
) -> None:
    """Reading a nation takes minutes, and its price is known before."""
    text = TABLE.replace("epsilon = 0.1", asked).replace("delta = 1e-6\n", "")
    if not figures:
        text = text.replace(f'"Population" = {{ {BY_COUNTY}\n', "").replace("[publish]\n", "")
    plan = Plan.load(Scene("", text, lambda: people(120), ()).write(tmp_path))
    if figures:
        workflow.publish(plan)

    def read(*_: Any) -> Any:
        raise AssertionError("data were read")

    monkeypatch.setattr(tables_kind, "tabulate", read)
    with pytest.raises(BudgetError, match="budget"):
        workflow.release(plan, "made", randomness=SeededRandomness(SEED))
