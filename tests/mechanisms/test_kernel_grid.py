"""Real noise on a grid: published sums exact, the same results possible from every look-alike."""

from __future__ import annotations

import numpy as np
import pytest

from congenial import Guarantee, SeededRandomness, SemiAdjacent, Table
from congenial.errors import StructureError
from congenial.figures import count, linear, margin, publish, total
from congenial.figures.integers import kernel
from congenial.figures.support import FROZEN, support
from congenial.mechanisms import KernelGaussian, kernel_gaussian
from congenial.mechanisms.kernel_gaussian import KernelGrid, KernelProjection, short_basis
from tests.contracts.cases import UNIVERSES
from tests.worlds import levels

SEED = 77_113
STEP = 2.0**-11


def published(schema, *statements):
    rng = np.random.default_rng(SEED)
    shape = tuple(len(schema.axis(name).levels) for name in schema.names)
    return publish(Table(schema, schema.names, rng.integers(0, 9, shape)), *statements)


THREE = levels(a=4, b=3, c=5)
FIGURES = {
    "total": published(levels(a=7), total()),
    "a margin": published(THREE, margin("b")),
    "two margins": published(levels(a=6, b=4), margin("a"), margin("b")),
    "three margins": published(THREE, margin("a"), margin("b"), margin("c")),
    "all two-way margins": published(THREE, margin("a", "b"), margin("b", "c"), margin("a", "c")),
    "crossing groups": published(
        THREE, total(), count("a in ('0', '1')"),
        count("b in ('1', '2') and c = '0'"),
    ),
    "no total": published(
        THREE, count("a in ('0', '1')"), count("b = '1'")
    ),
}  # fmt: skip
SUPPORTS = [(label, support(of, of.schema.names)) for label, of in FIGURES.items()]
SUPPORTS += [(u.label, support(u.adjacency.figures, u.release)) for u in UNIVERSES if u.statements]
each = pytest.mark.parametrize(
    "known", [k for _, k in SUPPORTS], ids=[label for label, _ in SUPPORTS]
)


def broken(known, u):
    """How far published sums of tables u are from zero, at worst."""
    flat = known.labels.reshape(-1)
    sums = KernelProjection(known).sums(u)
    worst = [
        np.abs(sums[..., ~known.tied]).max(initial=0),
        np.abs(u[..., flat == FROZEN]).max(initial=0),
    ]
    worst += [np.abs(sums[..., tie.groups] @ tie.equations.T).max() for tie in known.ties]
    return max(worst)


def on_the_kernel(known, rng, n):
    return KernelProjection(known).apply(rng.normal(size=(n, known.labels.size)))


@each
def test_rounding_keeps_sums_and_moves_with_the_lattice(known):
    rng = np.random.default_rng(SEED)
    grid, v = KernelGrid(known, STEP), on_the_kernel(known, rng, 200)
    rounded = grid.apply(v)
    assert broken(known, rounded) == 0
    assert (np.mod(rounded, STEP) == 0).all()
    assert np.abs(rounded - v).max() <= 4 * STEP * max(1, known.labels.ndim)
    assert np.unique(rounded, axis=0).shape == rounded.shape or known.degrees_of_freedom < 2
    # whole tables of the kernel, some of them large: rounded noise of another size
    w = KernelGrid(known, 1.0).apply(50 * on_the_kernel(known, rng, 200))
    assert broken(known, w) == 0
    assert np.array_equal(grid.apply(v + w), rounded + w)
    assert np.array_equal(grid.apply(v + STEP * w), rounded + STEP * w)
    assert np.array_equal(KernelGrid(known, 1.0).apply(w), w)


@pytest.mark.parametrize("label", FIGURES)
def test_planted_cells_rounded_one_by_one_break_the_sums(label):
    known = dict(SUPPORTS)[label]
    v = on_the_kernel(known, np.random.default_rng(SEED), 20)
    assert broken(known, np.round(v / STEP) * STEP) >= STEP


def test_margins_of_a_large_table_need_no_basis(monkeypatch):
    """As quick as a running sum; other equations have a limit, and say so."""
    large = published(levels(a=90, b=70), margin("a"), margin("b"))
    known = support(large, ("a", "b"))
    rounded = KernelGrid(known, STEP).apply(on_the_kernel(known, np.random.default_rng(SEED), 3))
    assert broken(known, rounded) == 0
    monkeypatch.setattr(kernel_gaussian, "LARGEST_TIE", 20)
    with pytest.raises(StructureError, match="congenial_gaussian"):
        KernelGrid(support(FIGURES["all two-way margins"], ("a", "b", "c")), STEP)


def weighted(*weights, n=12):
    """A total and a weighted total of a table with one cell per weight; everybody somewhere."""
    schema = levels(a=len(weights))
    counts = np.full(len(weights), n // len(weights))
    by_level = {f"a = '{i}'": w for i, w in enumerate(weights) if w}
    return publish(Table(schema, ("a",), counts), total(), linear(by_level))


def test_large_weights_have_a_short_basis():
    """Planted: coordinates in the basis as found move cells ten times as far."""
    known = support(weighted(97, 89, 0, 45, 12, 3, n=60), ("a",))
    (tie,) = known.ties
    found = kernel(tie.equations)
    short = short_basis(tie.equations)
    assert not np.any(tie.equations @ short.T)
    volumes = [np.linalg.det(basis @ basis.T) for basis in (found.basis, short)]
    assert volumes[0] == pytest.approx(volumes[1])  # the same lattice
    v = on_the_kernel(known, np.random.default_rng(SEED), 4000)
    rough = np.round(v / STEP @ found.coordinates.T) @ found.basis * STEP
    smooth = KernelGrid(known, STEP)
    moved = smooth.apply(v) - v
    assert (rough - v).std() > 5 * moved.std()
    assert moved.std(axis=0).max() <= smooth.deviation * STEP  # as was said


def test_weights_that_rounding_would_show_are_refused():
    """One direction is left, and it is long: the grid would be visible beside the noise."""
    figures = weighted(1, 1000, 0, n=3600)
    target = Guarantee.gaussian(1, SemiAdjacent(figures))
    with pytest.raises(StructureError, match="rounding would show"):
        KernelGaussian.calibrate(target, ("a",))
    huge = np.random.default_rng(SEED).integers(2**60, 2**62, (3, 6))
    with pytest.raises(StructureError, match="beyond 64 bits"):
        short_basis(huge)


def too_fine(y):
    """Whether a result has bits that no sum of 1 and a normal draw in doubles has."""
    return np.mod(y, 2.0**-53) != 0


@pytest.mark.parametrize("mu", [3, "1/1000"])
def test_low_order_bits_say_nothing(mu, attempt):
    """One person: unrounded, a count with bits below 2^-53 is possible from 0 only."""
    schema = levels(a=3)
    tables = [Table(schema, ("a",), np.array(x)) for x in ([0, 1, 0], [1, 0, 0])]
    adjacency = SemiAdjacent(publish(tables[0], total()))
    mechanism = KernelGaussian.calibrate(Guarantee.gaussian(mu, adjacency), ("a",))
    step = mechanism.description.grid
    assert 1 / step == round(1 / step)
    assert f"multiples of 2^{int(np.log2(step))}" in mechanism.description.law
    assert mechanism.guarantee.assumptions[0].endswith(
        "values are rounded afterwards, which is free"
    )
    attempt("bits", draws=2 * 20_000)
    drawn = [
        mechanism.draw(mechanism.query(table), SeededRandomness(SEED + i), 20_000)
        for i, table in enumerate(tables)
    ]
    for values in drawn:
        assert (values.sum(axis=1) == 1).all()
        assert (np.mod(values, step) == 0).all()
        assert not too_fine(values).any()
    plain = mechanism.projection.apply(
        np.random.default_rng(SEED).normal(size=(20_000, 3))
        * float(mechanism.description.scale) ** 0.5
    )
    given_away = [too_fine(x + plain[:, 0]).mean() for x in (0, 1)]
    assert given_away[1] == 0
    assert given_away[0] > 0.1 or mu != 3
