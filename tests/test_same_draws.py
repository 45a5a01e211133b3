"""Noise of the operating system is the same in every run of a test, and another in each test."""

from __future__ import annotations

import os

import pytest

from congenial.errors import RandomnessError
from congenial.sampling.randomness import SystemRandomness
from tests.children import FORK, start
from tests.same_draws import SameKeys

FIRST = 6584960856291972010  # the first word of the next test


def test_this_test_always_draws_this() -> None:
    source = SystemRandomness()
    assert source.publishable
    assert source.word() == FIRST
    assert source.words(5000)[-1] != source.word()  # a block has a key of its own


def test_another_test_draws_something_else() -> None:
    assert SystemRandomness().word() != FIRST


def test_keys_are_those_of_a_name() -> None:
    one, again, other = SameKeys("one"), SameKeys("one"), SameKeys("other")
    drawn = [one(32), one(32), other(32), other(32)]
    assert drawn[:2] == [again(32), again(32)]
    assert len(set(drawn)) == 4
    assert {len(key) for key in drawn} == {32}


def test_a_forked_process_repeats_nothing() -> None:
    keys, answer = SameKeys("one"), FORK.SimpleQueue()
    child = start(lambda: answer.put(keys(32)))
    assert answer.get() != keys(32)
    child.join()


@pytest.mark.parametrize("urandom", [lambda n: b"short", lambda n: 1 / 0])
def test_a_failing_generator_is_noticed(urandom, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", urandom)
    with pytest.raises((RandomnessError, ZeroDivisionError)):
        SystemRandomness().word()
