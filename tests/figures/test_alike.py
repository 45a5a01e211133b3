"""Areas that say the same share their structure, and only those: compared with working out each
matrix by itself, on universes where kinds of areas are mixed.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from congenial import Figures, Guarantee, SemiAdjacent, Table, calibrate, count, publish, total
from congenial.figures import lattice
from congenial.figures.blocks import blocks
from congenial.figures.lattice import kinds
from congenial.figures.support import support
from congenial.sampling.sums import Pmf
from tests.figures.one_by_one import areas, reduced, tied
from tests.worlds import levels

SEEDS = range(40)


def matrices(seed):
    """A matrix of mixed areas, without and with a row of ones over everything."""
    matrix = areas(np.random.default_rng(seed), 5)
    ones = np.ones((1, matrix.shape[1]), dtype=np.int64)
    return [matrix, np.vstack([matrix, ones])]


def put_together(found, shape):
    """The matrix that the kinds describe."""
    made = np.zeros(shape, dtype=np.int64)
    for one in found:
        for rows, columns in zip(one.rows, one.columns, strict=True):
            made[np.ix_(rows, columns)] = one.matrix.toarray()
    return made


@pytest.mark.parametrize("seed", SEEDS)
def test_kinds_are_the_matrix(seed):
    for matrix in matrices(seed):
        found = kinds(sp.csr_matrix(matrix))
        assert np.array_equal(put_together(found, matrix.shape), matrix)
        columns = np.concatenate([one.columns.reshape(-1) for one in found])
        assert np.array_equal(np.sort(columns), np.arange(matrix.shape[1]))
        said = {(one.matrix.shape, one.matrix.toarray().tobytes()) for one in found}
        assert len(said) == len(found)


def shared_wrongly(monkeypatch):
    """The planted defect: parts are of one kind if their sizes agree, whatever they say."""
    first = lattice.equal_lines

    def sizes_only(lines):
        return first(lines if lines.shape[1] == 3 else lines[:, :0])

    monkeypatch.setattr(lattice, "equal_lines", sizes_only)


def differing():
    """How many of the matrices, ranks and blocks are not what they are one by one."""
    wrong = 0
    for seed in SEEDS:
        for matrix in matrices(seed):
            sparse = sp.csr_matrix(matrix)
            same = np.array_equal(put_together(kinds(sparse), matrix.shape), matrix)
            same &= lattice.rank(sparse) == len(reduced(matrix)[1])
            same &= {
                tuple(line) for kind in blocks(sparse) for line in kind.atoms.tolist()
            } == tied(matrix)
            wrong += not same
    return wrong


def test_rank_and_blocks_are_those_of_the_whole(monkeypatch):
    assert differing() == 0
    shared_wrongly(monkeypatch)
    assert differing() > len(SEEDS) / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_solutions_and_kernels_are_those_of_the_whole(seed):
    rng = np.random.default_rng(seed)
    for matrix in matrices(seed):
        sparse = sp.csr_matrix(matrix)
        values = matrix @ rng.integers(0, 9, size=matrix.shape[1])
        x = lattice.solution(sparse, values)
        assert np.allclose(matrix @ x, values, atol=1e-6)
        moves = lattice.kernel_rows(sparse).toarray()
        rank = len(reduced(matrix)[1])
        assert not np.any(matrix @ moves.T)
        assert len(moves) == matrix.shape[1] - rank
        assert len(reduced(moves)[1]) == len(moves)
        if rank == matrix.shape[1]:
            assert np.array_equal(lattice.atom_totals(sparse, values), np.rint(x))


SCHEMA = levels(area=7, sex=2, age=3)


def mixed(rng):
    """People by area, sex and age: areas without anybody, without one sex, and full ones."""
    counts = rng.integers(0, 4, size=(7, 2, 3))
    counts[rng.integers(7)] = 0
    counts[rng.integers(7), 0] = 0
    counts[rng.integers(7), :, 1:] = 0
    return Table(SCHEMA, SCHEMA.names, counts)


def figures(rng):
    """Figures by area that nest or cross, and some for the whole."""
    some = [
        total(by="area"),
        count("sex = '0'", by="area"),
        count("age in ('1', '2')", by="area"),
        count("sex = '0' and age = '0'", by="area"),
        total(),
        count("age = '0'"),
    ]
    chosen = rng.permutation(len(some))[: int(rng.integers(1, 5))]
    return tuple(some[i] for i in sorted(chosen))


@pytest.mark.parametrize(
    "seed", [0, 1, 3, 4, 5, *(pytest.param(n, marks=pytest.mark.audit) for n in (2, *range(6, 25)))]
)
def test_a_promise_does_not_depend_on_the_order_of_areas(seed):
    """Areas in another order, so that others come first in their kind: the same promise, noise,
    a* and structure, published or not.
    """
    rng = np.random.default_rng(seed)
    table, statements = mixed(rng), figures(rng)
    turned = Table(SCHEMA, SCHEMA.names, table.counts[rng.permutation(7)])
    told = []
    for one in (publish(table, *statements), publish(turned, *statements)):
        told.append(described(one))
    told.append(described(Figures(SCHEMA, statements)))
    assert told[0] == told[1]
    assert told[0]["tied"] <= told[2]["tied"]


def described(public):
    """What the promise rests on."""
    pairs = SemiAdjacent(public)
    known = support(public, SCHEMA.names)
    found = {
        "a*": pairs.records,
        "structure": public.structure,
        "rank": public.rank,
        "l1": pairs.l1(SCHEMA.names).value,
        "l2": pairs.l2_squared(SCHEMA.names).value,
        "free": known.degrees_of_freedom,
        "tied": int(np.count_nonzero(known.tied)),
    }
    if found["l1"]:
        mechanism = calibrate("auto", Guarantee.pure(1, under=pairs), SCHEMA.names)
        laws, of_sum = mechanism.different_error_laws(np.arange(42).reshape(7, 2, 3), 42)
        found["scale"] = mechanism.description.scale
        known = [round(law.variance, 9) if isinstance(law, Pmf) else -1 for law in laws]
        found["errors"] = sorted(known[i] for i in of_sum)  # -1: simulated
    return found
