"""What error was shared by, as releases say it: every aim of ours is taken for one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from congenial import Guarantee, ReplaceOne, Schema
from congenial.kinds.stated_aims import aim_holds
from congenial.mechanisms.tables_calibration import calibrate_tables
from congenial.tables import Even, Keep, Largest, Weighted

TABLES = (("sex", "age"), ("age",))
LIST: Any = [1, 1e-7]  # in place of a tuple


@pytest.mark.parametrize(
    "aim",
    [
        *(Keep(), Even(), Largest(), Keep(np.float64(1.25)), Keep(2)),
        *(Weighted((1, 2.5)), Weighted(LIST), Weighted(tuple(np.array([1.0, 3.0])), True)),
    ],
)
def test_aims_given_in_python_are_told_in_plain_numbers(aim: Any) -> None:
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [1, 5]}})
    target = Guarantee.zero_concentrated("0.5", under=ReplaceOne(schema))
    made = calibrate_tables(target, TABLES, aim=aim)
    assert aim_holds(made.description.design["aim"], TABLES, [1.0, 1.0])


@pytest.mark.parametrize(
    "aim",
    [
        *("best", "keep; epsilon is 0", "Weighted(weights=(), absolute=False)", "weights: sex = 1"),
        *("accuracy: 1", "accuracy: margin('sex') within 9 at 90%", "Weighted(weights=(nan,))"),
    ],
)
def test_other_words_are_not(aim: str) -> None:
    assert not aim_holds(aim, TABLES, [1.0, 1.0])
