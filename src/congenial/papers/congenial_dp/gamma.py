"""What conditioning really costs: the exact gamma of Theorem 2.1 on small universes.

loss(s, s') = eps_cell ||s - s'||_1 + log Z(s')/Z(s), attained at m = s. The paper's gamma* (2.5)
takes the largest ratio of normalisers by itself, which need not occur with the largest distance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import permutations, product
from typing import Any, NamedTuple

import numpy as np

from congenial.papers.congenial_dp.example import ATOMS, EPS_CELL, TABLE1
from congenial.papers.item import Study
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.elimination import CrossingGroups
from congenial.sampling.inversion import Ints

EQUATIONS = [[1, 1, 1, 1], [1, 1, 0, 0], [0, 1, 0, 1]]  # of atom totals


class PairLoss(NamedTuple):
    """Exact loss, the part of it that is distance, and the largest log ratio of normalisers."""

    loss: float
    distance: float
    ratio: float

    def gamma(self, records: int, eps_cell: float) -> tuple[float, float]:
        """(exact gamma, the paper's gamma* of (2.5)), both with eps per person = 2 eps_cell."""
        budget = records * 2 * eps_cell
        return self.loss / budget - 1, max(self.ratio, 0.0) / budget


def exact_loss(tables: Any, eps_cell: float, records: int) -> PairLoss:
    """Loss of conditioning on a set of tables, over pairs at most `records` records apart."""
    far = np.abs(tables[:, None] - tables[None]).sum(axis=2)
    log_Z = np.log(np.exp(-eps_cell * far).sum(axis=1))
    near = (far <= 2 * records) & (far > 0)
    ratio = np.where(near, log_Z[None, :] - log_Z[:, None], -math.inf)  # [s, s']: Z(s')/Z(s)
    loss = eps_cell * far + ratio
    s, other = np.unravel_index(int(np.argmax(loss)), loss.shape)
    return PairLoss(float(loss.max()), float(eps_cell * far[s, other]), float(ratio.max()))


def two_bins(people: int) -> Ints:
    """All tables of two bins with this total."""
    first = np.arange(people + 1)
    return np.stack([first, people - first], axis=1)


def two_way_tables(rows: Sequence[int], columns: Sequence[int]) -> Ints:
    """All nonnegative tables with these margins, flat."""
    inner = [range(min(r, c) + 1) for r in rows[:-1] for c in columns[:-1]]
    found = []
    for cells in product(*inner):
        table = np.zeros((len(rows), len(columns)), dtype=np.int64)
        table[:-1, :-1] = np.array(cells).reshape(len(rows) - 1, len(columns) - 1)
        table[:-1, -1] = np.array(rows[:-1]) - table[:-1, :-1].sum(axis=1)
        table[-1] = np.array(columns) - table[:-1].sum(axis=0)
        if table.min() >= 0:
            found.append(table.reshape(-1))
    return np.array(found)


def normaliser(s: Ints, eps_cell: Fraction = EPS_CELL) -> float:
    """log Z(s) of the paper's table given its three figures and m >= 0."""
    return CrossingGroups(ATOMS, s, EQUATIONS, DoubleGeometric(eps_cell)).log_Z


def table1_loss(moves: Sequence[Ints]) -> float:
    """Largest loss of a move of Table 1, up or down: both (s, s + u) and (s + u, s)."""
    normalisers: dict[Any, float] = {}

    def log_Z(s: Ints) -> float:
        # cells of one atom are exchangeable: sorted, equal tables share a normaliser
        key = tuple(tuple(sorted(s[atom == ATOMS].tolist())) for atom in range(4))
        if key not in normalisers:
            normalisers[key] = normaliser(s, EPS_CELL)
        return normalisers[key]

    own = log_Z(TABLE1)
    return max(
        float(EPS_CELL) * float(np.abs(u).sum()) + abs(log_Z(TABLE1 + u) - own) for u in moves
    )


def moves_inside_atoms() -> list[Ints]:
    """One person of Table 1 moves inside an atom, one move of each kind."""
    kinds: dict[tuple[int, ...], Ints] = {}
    for i, j in product(range(46), repeat=2):
        if i != j and ATOMS[i] == ATOMS[j] and TABLE1[j] > 0:
            u = np.zeros(46, np.int64)
            u[i], u[j] = 1, -1
            kinds[int(ATOMS[i]), int(TABLE1[i]), int(TABLE1[j])] = u
    return list(kinds.values())


def sex_swaps() -> list[Ints]:
    """Two minors of Table 1 exchange sexes: the smallest move between atoms."""
    kinds = {}
    for females, males in product(permutations(range(4), 2), permutations(range(23, 27), 2)):
        cells = [*females, *males]
        u = np.zeros(46, np.int64)
        u[cells] = [1, -1, 1, -1]
        if (TABLE1 + u).min() >= 0:
            kinds[tuple(TABLE1[cells].tolist())] = u
    return list(kinds.values())


def run(study: Study) -> dict[str, Any]:
    """The item: exact loss, gamma and gamma* for small universes, and for Table 1."""
    cases = [(f"two bins, n = {n}", two_bins(n), e) for n in (1, 3, 10, 50) for e in (0.5, 1.0)]
    margins = (((2, 2), (2, 2)), ((10, 10), (10, 10)), ((2, 2, 2), (2, 2, 2)))
    cases += [(f"margins {r} x {c}", two_way_tables(r, c), 0.5) for r, c in margins]
    rows = []
    for name, tables, eps in cases:
        for records in (1, 2, 3):
            row = _row(name, tables, eps, records)
            rows += [row] if row else []
    if not study.quick:
        study.progress("normalisers of tables next to Table 1")
        inside, two = table1_loss(moves_inside_atoms()), table1_loss(sex_swaps())
        rows.append(
            ["Table 1, one person moves inside an atom", 0.5, 1, inside, 1.0, inside - 1, None]
        )
        rows.append(["Table 1, two minors exchange sexes", 0.5, 2, two, 2.0, two / 2 - 1, None])
    return {
        "columns": ["universe", "eps_cell", "records", "loss", "adjacency", "gamma", "gamma_star"],
        "rows": rows,
        "notes": [
            "eps per person is 2 eps_cell; loss is exact, by enumeration; adjacency is its first "
            "term, eps_cell times the distance.",
            "gamma = loss / (records x 2 eps_cell) - 1. The -0.5 printed for Example 4.1 is wrong: "
            "flipping one bit keeps the total, so neighbours are one record apart.",
        ],
    }


def _row(name: str, tables: Ints, eps: float, records: int) -> list[Any] | None:
    far = np.abs(tables[:, None] - tables[None]).sum(axis=2)
    if not np.any((far > 0) & (far <= 2 * records)):
        return None
    loss = exact_loss(tables, eps, records)
    return [name, eps, records, loss.loss, loss.distance, *loss.gamma(records, eps)]
