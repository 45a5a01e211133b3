"""What error was shared by, as releases say it: every aim of ours is taken for one."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from congenial import Guarantee, ReplaceOne, Schema, SemiAdjacent
from congenial.figures.figures import Figures
from congenial.figures.statements import total
from congenial.kinds.tables_verification import aim_holds, objective_holds
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.tables import Even, Keep, Largest, Weighted

TABLES = (("sex", "age"), ("age",))
SCHEMA = Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"integers": [1, 5]}, "job": {"levels": list("abc")}}
)
LIST: Any = [1, 1e-7]  # in place of a tuple


@pytest.mark.parametrize(
    "aim",
    [
        *(Keep(), Even(), Largest(), Keep(np.float64(1.25)), Keep(2)),
        *(Weighted((1, 2.5)), Weighted(LIST), Weighted(tuple(np.array([1.0, 3.0])), True)),
    ],
)
def test_aims_given_in_python_are_told_in_plain_numbers(aim: Any) -> None:
    target = Guarantee.zero_concentrated("0.5", under=ReplaceOne(SCHEMA))
    made = calibrate_tables(target, TABLES, aim=aim)
    assert aim_holds(made.description.design["aim"], TABLES, [1.0, 1.0])
    assert objective_holds(made.description.design, TABLES)


FIGURES = Figures(SCHEMA, [total(by="sex")], [np.array([40, 60])])
ASKED = {
    "rho": Guarantee.zero_concentrated("0.5", under=ReplaceOne(SCHEMA)),
    "epsilon": Guarantee.pure("0.7", under=ReplaceOne(SCHEMA)),
    "figures": Guarantee.zero_concentrated("0.5", under=SemiAdjacent(FIGURES)),
}


@pytest.mark.parametrize("tables", [TABLES, (("sex", "age"), ("age", "job")), (*TABLES, ("sex",))])
@pytest.mark.parametrize("asked", sorted(ASKED))
@pytest.mark.parametrize("aim", [Keep(), Even(), Largest(), (3, 1, 2), (3, 1, 2, True)])
def test_what_is_made_small_follows_from_the_aim(aim: Any, asked: str, tables: Any) -> None:
    """Whatever the law; a factor that is 1 % larger does not."""
    if isinstance(aim, tuple):
        aim = Weighted(aim[: len(tables)], absolute=len(aim) > 3)
    design = calibrate_tables(ASKED[asked], tables, aim=aim).description.design
    assert objective_holds(design, tables)
    for at in range(len(tables)):
        forged = deepcopy(design)
        forged["objective"]["factors"][at] *= 1.01
        forged["objective"]["factors"][at] += 1e-6
        assert not objective_holds(forged, tables)


@pytest.mark.parametrize("aim", ["even", "largest", "weights: age = 2", "Largest()"])
def test_another_aim_makes_other_errors_small(aim: str) -> None:
    design = calibrate_tables(ASKED["rho"], TABLES, Weighted((1, 3))).description.design
    assert objective_holds(design, TABLES)
    assert not objective_holds({**design, "aim": aim}, TABLES)
    assert objective_holds({**design, "aim": "weights: age = 3"}, TABLES)


@pytest.mark.parametrize(
    "aim",
    [
        *("best", "keep; epsilon is 0", "Weighted(weights=(), absolute=False)", "weights: sex = 1"),
        *("accuracy: 1", "accuracy: margin('sex') within 9 at 90%", "Weighted(weights=(nan,))"),
    ],
)
def test_other_words_are_not(aim: str) -> None:
    assert not aim_holds(aim, TABLES, [1.0, 1.0])
