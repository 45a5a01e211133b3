"""How far long work is: shares, and the time left at the pace of the step."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from congenial.data.advance import (
    OFTEN,
    Advance,
    StepClock,
    bytes_read,
    one_by_one,
    telling,
    watching,
)
from congenial.data.schema import Schema
from congenial.data.source import PlannedSource
from congenial.data.tabulate import Microdata


def test_time_left_is_told_from_the_pace_of_the_step() -> None:
    now = [0.0]
    clock = StepClock("starting", lambda: now[0])
    assert (str(clock), clock.seconds_left) == ("starting", None)
    now[0] = 7.0
    clock.take("reading the data")
    now[0] = 8.0
    clock.take(Advance("counting", 0.25, "5 of 20 rows"))
    assert clock.seconds_left == pytest.approx(
        3
    )  # a second for a quarter: the 7 before do not count
    assert str(clock) == "counting: 5 of 20 rows: 25%, about 3 s left"
    now[0] = 10.0
    clock.take(Advance("counting", 0.75, "15 of 20 rows"))
    assert clock.seconds_left == pytest.approx(1)
    clock.take(Advance("counting", 0.1))  # a second pass over the same records
    assert clock.seconds_left == 0
    now[0] = 11.0
    assert clock.seconds_left == pytest.approx(9)
    clock.take(Advance("drawing", 0.0))
    assert clock.seconds_left is None
    now[0] = 12.0
    clock.take(Advance("drawing", 0.004))
    assert clock.seconds_left is None  # 249 s, from a second of setting up
    now[0] = 22.0
    assert clock.seconds_left == pytest.approx(12 * 0.996 / 0.004)


def test_a_long_list_is_told_about_now_and_then_and_only_inside() -> None:
    told: list[str] = []
    with telling(told.append):
        assert list(one_by_one(range(1003), "writing")) == list(range(1003))
        inside = len(told)
    assert list(one_by_one(range(3), "writing")) == [0, 1, 2]  # nobody listens any more
    assert 100 < inside <= OFTEN
    assert len(told) == inside
    shares = [one.share for one in told if isinstance(one, Advance)]
    assert shares == sorted(shares)
    assert 0.9 < shares[-1] < 1


def test_what_runs_is_looked_at_and_no_longer_than_it_runs() -> None:
    told, enough = [], threading.Event()

    def tell(share: float) -> None:
        told.append(share)
        enough.set()

    shares = iter([None, 0.5, 0.75])
    with watching(lambda: next(shares, 0.9), tell):
        assert enough.wait(10)
    count = len(told)
    assert told[0] == 0.5
    assert not [one for one in threading.enumerate() if one.name == "progress"]
    assert len(told) == count


@pytest.mark.skipif(bytes_read() is None, reason="the system does not say what was read")
def test_a_count_of_a_csv_file_tells_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("congenial.data.advance.EVERY", 0.001)
    people = tmp_path / "people.csv"
    wide = "-" * 500  # it is told in shares of bytes, some megabytes at a time
    people.write_text("sex,note\n" + f"f,{wide}\nm,{wide}\n" * 40_000)
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    told: list[float] = []
    with Microdata.open(PlannedSource(people), schema) as data:
        with data.source.watched(told.append):
            data.tabulate(["sex"])
        assert told
        assert all(0 <= share <= 1 for share in told)
        assert len(set(told)) > 1
        after = len(told)
        data.tabulate(["sex"])
    assert len(told) == after
