"""What every kind shares between reading the data and drawing: `offer` of the base class."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from congenial import Figures, Plan, SeededRandomness, count
from congenial.data.tabulate import Microdata
from congenial.errors import FigureError
from congenial.kinds import registry
from congenial.kinds.kind import Kind
from congenial.publication import workflow
from congenial.publication.drawing import carry_out, rehearse
from congenial.publication.plan_ledger import exact_figures, open_ledger, opened_or_made
from tests.confidentiality.scenes import SCENES, Scene
from tests.kinds.toy import HowMany

SEED = 20_261_119
SCENE = pytest.mark.parametrize(
    "scene",
    [one for one in SCENES if one.kind != "parted"],
    ids=lambda scene: scene.kind,
)


class Prepared:
    """A plan of one kind whose figures are published, and what its release is built of."""

    def __init__(self, scene: Scene, folder: Path) -> None:
        self.plan = Plan.load(scene.write(folder))
        if self.plan.statements:
            workflow.publish(self.plan)
        self.section = self.plan.release[0]
        self.kind = registry.of_section(self.section)
        self.figures = exact_figures(self.plan, open_ledger(self.plan, create=False))
        self.built = self.kind.build(self.plan, self.section, self.figures)

    def offer(self, steps: list[Any]) -> Any:
        common = (self.plan, self.section, self.built, self.figures)
        return self.kind.offer(*common, SeededRandomness(SEED), steps.append)

    def ledger(self, *statements: Any) -> Any:
        """Stands for a ledger in which these are published too."""
        if not statements:
            return SimpleNamespace(figures=self.figures)
        schema = self.plan.schema
        with Microdata.open(self.plan.source, schema, self.plan.unit) as data:
            table = data.tabulate(schema.names)
        further = Figures(schema, statements).evaluate(table)
        return SimpleNamespace(figures=self.figures.join(further))


@pytest.fixture
def prepared(scene: Scene, tmp_path: Path) -> Prepared:
    return Prepared(scene, tmp_path)


@pytest.mark.parametrize("kind", [*registry.every_kind(), HowMany()], ids=lambda kind: kind.name)
def test_a_kind_says_only_what_differs(kind: Kind[Any]) -> None:
    assert type(kind).offer is Kind.offer
    assert type(kind).holds is Kind.holds


@SCENE
def test_an_offer_is_what_check_says(prepared: Prepared) -> None:
    """The same promise, in the plan's words; what is drawn and what is made up have its law."""
    steps: list[Any] = []
    checked = prepared.kind.check(prepared.plan, prepared.section, prepared.figures)
    with prepared.offer(steps) as offer:
        assert offer.name == prepared.section.name
        assert offer.guarantee.to_dict() == checked.guarantee.to_dict()
        assert offer.draw is not None
        drawn, made_up = offer.draw(), offer.rehearsal()
    assert steps[0] == "reading the data"
    assert type(drawn) is type(made_up) is prepared.kind.release_class
    assert drawn.description.to_dict() == made_up.description.to_dict()
    assert drawn.description.to_dict() == offer.description.to_dict()


@SCENE
def test_a_figure_published_meanwhile_is_noticed(prepared: Prepared) -> None:
    """Also by a kind that cannot be built under it: what was built does not hold any more."""
    with prepared.offer([]) as offer:
        assert offer.holds(prepared.ledger())
        assert not offer.holds(prepared.ledger(count("age < 18")))


@SCENE
def test_nothing_is_drawn_after_it(
    prepared: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The whole way: the share that was reserved is free again, and the remedy is to run again."""
    drawn: list[Any] = []
    monkeypatch.setattr(Kind, "holds", lambda *_: False)
    with prepared.offer([]) as ready:
        offer = replace(rehearse(ready), draw=lambda: drawn.append(ready))
        plan, folder = prepared.plan, tmp_path / "bundle"
        ledger = opened_or_made(plan, open_ledger(plan, create=False))
        with pytest.raises(FigureError, match="was being prepared") as refused:
            carry_out(plan, offer, folder, ledger, print)
    assert refused.value.remedy == "Run the release again; nothing was drawn."
    assert (drawn, [entry.was_drawn for entry in ledger.entries()]) == ([], [False])
    assert not folder.exists()


def test_what_is_built_alike_holds_whatever_was_published() -> None:
    """Equal mechanisms make equal promises; the negative control builds another one."""

    class Alike(HowMany):
        def build(self, plan: Any, section: Any, figures: Any) -> Any:
            return min(figures, 2)

    common = (cast(Any, None), cast(Any, None))
    assert Alike().holds(*common, built=2, figures=cast(Any, 2), now=cast(Any, 3))
    assert not Alike().holds(*common, built=2, figures=cast(Any, 2), now=cast(Any, 1))
