"""Many tied atoms: an order is found at once, the law does not depend on it, and what is out of
reach is refused at once with a remedy that works.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from congenial.errors import StructureError
from congenial.figures.blocks import margins
from congenial.publication import workflow
from congenial.publication.plan import Plan
from congenial.sampling import joining_order, proposed_noise
from congenial.sampling.choice import TablePart, choose
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.joining_order import components

SEED = 20261117  # nothing here is drawn


def equations(columns: int) -> list[list[int]]:
    """Both margins of 2 x columns atoms."""
    return margins(np.array(list(np.ndindex(2, columns)))).tolist()


def sparse(rows: list[list[int]]) -> list[dict[int, int]]:
    return [{a: v for a, v in enumerate(row) if v} for row in rows]


def log_Z(columns: int) -> float | None:
    joining_order.joining_order.cache_clear()
    cells = np.repeat(np.arange(2 * columns), 2)
    law = DoubleGeometric(Fraction(2))
    zeros = np.zeros(len(cells), dtype=np.int64)
    return CrossingGroups(cells, zeros, equations(columns), law, None).log_Z


@pytest.mark.parametrize("columns", [3, 5, 7])
def test_the_law_does_not_depend_on_the_order(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setattr(joining_order, "_FEW", 0)
    at_once = log_Z(columns)
    monkeypatch.setattr(joining_order, "_FEW", 2 * columns)
    step_by_step = log_Z(columns)
    joining_order.joining_order.cache_clear()
    assert at_once == pytest.approx(step_by_step, rel=1e-12)


@pytest.mark.parametrize("columns", [8, 20, 31])
def test_column_by_column(columns: int) -> None:
    (part,) = components(sparse(equations(columns)), 2 * columns)
    sizes = joining_order._dimensions(tuple(map(tuple, part.rows)), part.order)
    assert max(sizes) == 2
    assert sizes[0] == sizes[-1] == 0
    matrix = np.array(part.rows)[:, list(part.order)]
    rank = np.linalg.matrix_rank
    counted = [
        rank(matrix[:, :j]) + rank(matrix[:, j:]) - len(matrix)
        for j in range(0, 2 * columns + 1, 7)
    ]
    assert counted == sizes[::7]
    assert all(abs(one - other) <= 1 for one, other in pairwise(sizes))


PLAN = """
[data]
source = "people.parquet"
[schema]
block = {{ levels_file = "blocks.csv" }}
age = {{ edges = [0, 5, 18, 65], top = "65+" }}
[publish]
"Population" = {{ total = true, by = ["{total}"] }}
{more}"Voting age" = {{ count = "age >= 18", by = ["tract"] }}
[[release]]
name = "made"
table = ["block", "age"]
epsilon = 1.0
[budget]
ledger = "ledger.sqlite"
epsilon = 4.0
"""


def planned(folder: Path, total: str, more: str = "") -> Plan:
    """Two tracts of 40 and 43 blocks."""
    blocks = [f"{t}-{i},{t}" for t, size in (("t", 40), ("u", 43)) for i in range(size)]
    (folder / "blocks.csv").write_text("\n".join(["block,tract", *blocks]) + "\n")
    (folder / "plan.toml").write_text(PLAN.format(total=total, more=more))
    return Plan.load(folder / "plan.toml")


def test_totals_by_block_and_voting_age_by_tract(tmp_path: Path) -> None:
    with pytest.raises(StructureError, match=r"totals of [0-9]+ groups of people") as caught:
        workflow.check(planned(tmp_path, "block"))
    assert "by the finer ones too, or all by the coarser" in caught.value.remedy
    finer = '"Voting age by block" = { count = "age >= 18", by = ["block"] }\n'
    workflow.check(planned(tmp_path, "block", finer))
    workflow.check(planned(tmp_path, "tract"))


def test_many_free_totals_are_refused_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Totals by block and adults by tract, 140 blocks a tract: decided by the equations alone."""
    for built in ("_given_totals", "_totals"):
        monkeypatch.setattr(CrossingGroups, built, property(lambda _: pytest.fail("built")))
    monkeypatch.setattr(proposed_noise, "_squares", lambda _: pytest.fail("searched"))
    blocks = 140
    rows = [[int(a // 2 == block) for a in range(2 * blocks)] for block in range(blocks)]
    rows.append([a % 2 for a in range(2 * blocks)])
    part = TablePart(DoubleGeometric(Fraction(1)), np.repeat(np.arange(2 * blocks), 3), rows)
    with pytest.raises(StructureError, match="280 groups of people and leave 139 of them free"):
        choose(part)


@pytest.mark.parametrize("columns", [7, 33])
def test_the_form_of_many_atoms_is_that_of_few(
    monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    """Sparse and dense elimination give the same components: the reduced form is unique."""
    rows = [*sparse(equations(columns)), {0: 2, 3: -1}]
    found = components(rows, 2 * columns + 1)
    monkeypatch.setattr(joining_order, "_MOST_TRIED", 0 if columns == 7 else 100)
    other = components(rows, 2 * columns + 1)
    assert [vars(one) for one in found] == [vars(one) for one in other]
