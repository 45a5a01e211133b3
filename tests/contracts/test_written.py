"""What every registered mechanism draws can be written, rendered, read back and verified.

A law without words for the report, or a family that no picture knows, must come out here, and for
a plan in the rehearsal before the draw; never between draw and bundle.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from congenial.errors import StructureError
from congenial.kinds.kind import Offer
from congenial.mechanisms.measured_tables import MeasuredTables, release_table
from congenial.mechanisms.mechanism import REGISTRY, Mechanism
from congenial.publication import bundle
from congenial.publication.drawing import promised, rehearse
from congenial.publication.verification import SYSTEM, verify
from congenial.report import tables_report
from congenial.sampling.randomness import SeededRandomness
from tests.contracts.cases import cases

SEED = 20_261_116
CASES = list({(case.name, case.target): case for case in cases()}.values())
one_of_each = pytest.mark.parametrize("case", CASES, ids=str)


def ready(mechanism: Mechanism, draw: Callable[[], Any]) -> Offer:
    """A table that is ready to be drawn, without a plan around it."""
    made = MeasuredTables.of_one(mechanism)
    return Offer("made", made.description, made.guarantee, draw, made.made_up, tables_report.render)


def test_every_mechanism_is_written() -> None:
    assert {case.name for case in CASES} == set(REGISTRY)


@one_of_each
def test_bundle_report_and_verify(case: Any, tmp_path: Path) -> None:
    mechanism = case.mechanism
    rehearse(ready(mechanism, lambda: None))
    drawn = release_table(mechanism, case.universe.table, SeededRandomness(SEED), "made")
    promise = drawn.guarantee.explain()
    page = tables_report.render(drawn, promise)
    bundle.write(drawn, tmp_path / "made", promise, page).publish()
    assert [one.what for one in verify(tmp_path / "made") if not one.holds] == [SYSTEM]


@pytest.mark.parametrize("family", sorted({case.mechanism.family for case in CASES}))
def test_a_family_without_words_is_found_before_the_draw(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The negative control: the report of a family that it has no words for fails, in time."""
    mechanism = next(one.mechanism for one in CASES if one.mechanism.description.family == family)
    words = {name: what for name, what in tables_report.FAMILY_WORDS.items() if name != family}
    monkeypatch.setattr(tables_report, "FAMILY_WORDS", words)
    with pytest.raises(KeyError):
        rehearse(ready(mechanism, lambda: pytest.fail("drawn")))


def test_a_sampler_that_fails_is_found_before_the_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    mechanism = next(one.mechanism for one in CASES if one.mechanism.additive)

    def never(*_: object) -> None:
        raise StructureError("it cannot be drawn.")

    monkeypatch.setattr(type(mechanism), "noise", never)
    with pytest.raises(StructureError):
        rehearse(ready(mechanism, lambda: pytest.fail("drawn")))


def test_a_release_builds_its_mechanism_at_most_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A report asks for it dozens of times; what was just drawn knows what drew it."""
    drawn = MeasuredTables.of_one(CASES[0].mechanism).made_up()
    built = []
    usual = Mechanism.__post_init__
    monkeypatch.setattr(
        Mechanism, "__post_init__", lambda self: (built.append(self), usual(self))[0]
    )
    same = promised(drawn, replace(drawn.guarantee))  # the same promise, worked out again
    tables_report.render(same, drawn.guarantee.explain())
    assert not built
    tables_report.render(replace(drawn), drawn.guarantee.explain())  # as if it were read
    assert len(built) == 1
