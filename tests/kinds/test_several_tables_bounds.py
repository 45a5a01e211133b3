"""Several tables with public bounds: priced over databases that keep them, kept by whole counts."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import congenial
from congenial.data.workload import Workload
from congenial.figures.invariants import Invariants
from congenial.figures.statements import at_least, at_most, count, margin, total
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.difference_types import difference_types
from congenial.publication.verification import verify
from congenial.tables import whole_general
from congenial.tables.promise import joint_epsilon, joint_rho
from tests.commands import refused, run
from tests.kinds.several_tables_plan import written
from tests.pairs.test_difference_types import schema_of
from tests.tables.brute import by_figures, cells_of, figures_of, maximal_types

pytestmark = pytest.mark.usefixtures("without_pictures")

BOUNDS = """
[publish.old]
count = "age = 'old'"
at_least = 60
by = ["county"]
[publish.women]
count = "sex = 'f' and age = 'young'"
at_most = 45
by = ["county"]
[[release]]
"""


def bounded(folder: Path) -> Path:
    plan = written(folder)
    plan.write_text(plan.read_text().replace("[[release]]", BOUNDS))
    return plan


def test_printed_counts_keep_public_bounds(tmp_path: Path) -> None:
    path = bounded(tmp_path)
    run("publish", path)
    told = run("check", path, "--json")["releases"][0]
    assert told["whole_counts"] is None
    assert told["types"]["footing"] == "upper bound"
    run("release", path)
    bundle = tmp_path / "bundles" / "people"
    release = congenial.read(bundle)
    counts = release.margin("county", "sex", "age")
    assert counts.sum(axis=1)[:, 3].min() >= 60
    assert counts[:, 0, 1].max() <= 45
    assert all(check.holds for check in verify(bundle))


def test_bounds_that_nothing_printed_would_keep_are_refused(tmp_path: Path, monkeypatch) -> None:
    path = bounded(tmp_path)
    run("publish", path)
    monkeypatch.setattr(whole_general, "LARGEST", 10)
    monkeypatch.setattr("congenial.tables.whole_counts.LARGEST", 10)
    told = refused(path)
    assert "only whole counts keep bounds" in told
    assert "leave the bound out" in told
    refused(path, "release")
    assert not (tmp_path / "bundles").exists()
    assert run("ledger", "show", path, "--json")["spent"] == "rho = 0"


SCHEMA = schema_of(x=2, y=3)
FIGURES = (
    (total(), at_least(count("y = 'y0'"), 2)),
    (margin("x"), at_most(count("y = 'y0'"), 1)),
    (margin("x"), at_most(count("x = 'x0' and y = 'y1'"), 1), at_least(count("y = 'y2'"), 1)),
)


@pytest.mark.parametrize("statements", FIGURES)
def test_a_joint_promise_under_bounds_is_never_below_the_enumerated_loss(statements) -> None:
    assert not any(below_enumerated(statements, SemiAdjacent(Invariants(SCHEMA, statements))))


def test_planted_a_promise_that_forgets_the_bounds_is_too_low() -> None:
    """Where a bound keeps a person's record from changing alone, more people must change."""
    statements = FIGURES[0]
    forgetful = SemiAdjacent(Invariants(SCHEMA, statements[:1]))
    assert any(below_enumerated(statements, forgetful))


def below_enumerated(statements, adjacency: SemiAdjacent) -> list[bool]:
    """For every value of the figures and some parameters, whether the loss is above the promise."""
    work = Workload.of(SCHEMA, [["x", "y"], ["y"], ["x"]])
    records = SemiAdjacent(Invariants(SCHEMA, statements)).records
    found, below = difference_types(adjacency, work), []
    equalities = tuple(one for one in statements if one.relation == "=")
    for databases in by_figures(SCHEMA, equalities, 3).values():
        inside = [one for one in databases if keeps(statements, one)]
        squares, absolutes = maximal_types(SCHEMA, work.tables, inside, records)
        for p in ((1, 1, 1), (5, 1, 0), (1, 2, 7)):
            shares = [Fraction(value, 7) for value in p]
            below.append(2 * joint_rho(found, shares).value < worst(squares, shares))
            below.append(joint_epsilon(found, shares).value < worst(absolutes, shares))
    assert len(below) >= 6
    return below


def worst(vectors, shares) -> Fraction:
    sums = (sum(c * v for c, v in zip(row, shares, strict=True)) for row in vectors)
    return max(sums, default=Fraction(0))


def keeps(statements, chosen) -> bool:
    """Whether a list of records, as numbers of cells, keeps every bound."""
    people = [cells_of(SCHEMA)[i] for i in chosen]
    for one in (one for one in statements if one.relation != "="):
        counted = dict(figures_of(SCHEMA, (one,), people)[0]).get((), 0)
        if counted < one.bound if one.relation == ">=" else counted > one.bound:
            return False
    return True
