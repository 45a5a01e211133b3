"""What people see at a prompt: short texts, the members they call, pictures, frames."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import congenial as cg
from congenial.errors import GuaranteeError, PlanError, PredicateError
from congenial.inference import Posterior
from congenial.mechanisms import MeasuredTables
from tests.publication.test_saving import ledger_in

AREAS = [f"area {i}" for i in range(60)]
SCHEMA = cg.Schema.from_dict(
    {
        "area": {"levels": AREAS, "within": {"state": ["X"] * 30 + ["Y"] * 30}},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": list(range(0, 90, 5)), "top": "85+"},
    }
)
TABLE = cg.Table(SCHEMA, SCHEMA.names, np.arange(60 * 2 * 18).reshape(60, 2, 18))
PUBLIC = cg.publish(TABLE, cg.total(by="area"), cg.count("age >= 20", by="area"))
TARGET = cg.Guarantee.pure(1, under=cg.SemiAdjacent(PUBLIC))


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    mechanism = cg.calibrate("auto", TARGET)
    release = cg.release_table(mechanism, TABLE, cg.SeededRandomness(1), "ages")
    return {
        "release": release,
        "estimates": cg.estimate(release, "count(age >= 65) by area"),
        "posterior": Posterior({"rate": np.arange(800.0).reshape(2, 400)}, {"rate": ()}, "exact"),
        "ledger": ledger_in(tmp_path_factory.mktemp("ledger")),
        "several": cg.calibrate("auto", TARGET, tables=[["area", "sex"], ["age"]]),
        "plan": cg.Plan.parse(PLAN, Path()),
        "others": [SCHEMA, *SCHEMA.attributes, TABLE, PUBLIC, TARGET, TARGET.adjacency, mechanism],
        "descriptions": [mechanism.description, release.description, cg.SeededRandomness(1)],
        "pairs": [cg.ReplaceOne(SCHEMA), cg.AddRemove(SCHEMA, 2), cg.Budget(epsilon=1)],
    }


PLAN = """
data.source = "people.csv"
schema.sex.levels = ["f", "m"]
budget.epsilon = 4
[[release]]
name = "sex"
table = ["sex"]
epsilon = 1
"""


def test_texts_are_short_and_show_no_figure(objects: dict[str, Any]) -> None:
    for given in objects.values():
        for one in given if isinstance(given, list) else [given]:
            assert len(repr(one)) <= 300, one
            assert " object at 0x" not in repr(one)
    assert repr(cg.ReplaceOne(SCHEMA)) == "ReplaceOne(area, sex, age)"
    assert repr(PUBLIC) == "Figures(Population by area, Count of age >= 20 by area; published)"


def test_completion_shows_what_people_call(objects: dict[str, Any]) -> None:
    hidden = {"payload", "instead", "everything", "only", "prices", "model_dump", "construct"}
    for name in ("release", "plan", "ledger"):
        shown = {one for one in dir(objects[name]) if not one.startswith("_")}
        assert len(shown) <= 28, name
        assert not shown & hidden
    assert {"save", "plot", "interval", "to_pandas", "explain"} <= set(dir(objects["release"]))


def test_pictures_and_frames(objects: dict[str, Any], tmp_path: Path) -> None:
    release = objects["release"]
    pictures = [release.plot("sex"), objects["estimates"].plot(), objects["posterior"].plot()]
    assert [one.svg.count("<circle") for one in pictures] == [2, 40, 1]
    pictures[0].save(tmp_path / "sex.svg")
    assert (tmp_path / "sex.svg").read_text() == pictures[0]._repr_svg_()
    summary = objects["posterior"].summary()
    assert summary["mean"].tolist() == [399.5]


def test_several_tables_are_calibrated_at_the_top(objects: dict[str, Any]) -> None:
    several = objects["several"]
    assert isinstance(several, MeasuredTables)
    assert several.guarantee.tradeoff == TARGET.tradeoff
    with pytest.raises(PlanError, match="'auto'"):
        cg.calibrate("congenial", TARGET, tables=[["sex"]])


def test_slips_are_answered() -> None:
    with pytest.raises(PredicateError, match="Use one ="):
        cg.publish(TABLE, cg.count("sex == 'f'"))
    for name in ("pure", "zero_concentrated", "gaussian"):
        with pytest.raises(GuaranteeError, match="above 0"):
            getattr(cg.Guarantee, name)(0, under=cg.ReplaceOne(SCHEMA))
