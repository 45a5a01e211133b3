"""Sixteen processes that release from one population at once, each from plan to bundle."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from congenial.data.table import Table
from congenial.ledger.ledger import Ledger
from tests.children import start
from tests.crash.population import EACH, Population, compete, wait_for

WRITERS = 16


@pytest.mark.parametrize(
    ("place", "whole", "tries", "allowed"),
    [
        ("sqlite", False, 1, 7),
        ("postgresql", False, 1, 7),
        pytest.param("sqlite", True, 8, 90, marks=pytest.mark.audit),
        pytest.param("postgresql", True, 8, 90, marks=pytest.mark.audit),
    ],
    indirect=["place"],
)
def test_sixteen_writers_spend_the_budget_and_no_more(
    populate: Callable[..., Population],
    attempt: Callable[..., None],
    place: str,
    whole: bool,
    tries: int,
    allowed: int,
) -> None:
    attempt("writers", writers=WRITERS)
    population = populate(place, allowed)
    release = population.release if whole else population.quick_release
    running = [start(compete, release, f"w{i}", tries) for i in range(WRITERS)]
    wait_for(running, lambda: len(population.ledger.events()))
    assert [process.exitcode for process in running] == [0] * WRITERS
    assert population.judge() == []
    statuses = [entry.status for entry in population.ledger.entries() if entry.counted]
    assert statuses == ["committed"] * allowed == ["committed"] * population.draws
    assert population.ledger.spent().epsilon == allowed * EACH


def publish_own(population: Population, number: int, table: Table) -> None:
    """Record figures of one's own, all at once with others."""
    figures = population.plan("first", number + 2).figures.evaluate(table)
    Ledger.open(population.place, timeout=120).publish(figures)


@pytest.mark.parametrize(
    "place",
    [
        pytest.param("sqlite", marks=pytest.mark.audit),
        pytest.param("postgresql", marks=pytest.mark.audit),
    ],
    indirect=True,
)
def test_sixteen_publishers_lose_no_figure(
    populate: Callable[..., Population], attempt: Callable[..., None], place: str
) -> None:
    attempt("writers", writers=WRITERS)
    population = populate(place, allowed=1)
    _, table = population.ready
    running = [start(publish_own, population, i, table) for i in range(WRITERS)]
    wait_for(running, lambda: len(population.ledger.events()))
    assert [process.exitcode for process in running] == [0] * WRITERS
    assert population.judge() == []
    assert len(set(population.ledger.figures.statements)) == WRITERS + 1
