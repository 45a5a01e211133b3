"""What K-norm is compared with: Gaussian noise on the kernel, projections, l1, l2, l_infinity."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from congenial import Schema, SeededRandomness, SemiAdjacent, Table, margin, publish, release_table
from congenial.errors import FigureError, GuaranteeError
from congenial.figures.support import support
from congenial.mechanisms.kernel_gaussian import KernelGaussian, KernelProjection
from congenial.papers.semi_dp.real_knorm import NormNoise
from congenial.privacy import Gaussian, Guarantee, Pure
from tests.contracts.cases import UNIVERSES

SEED = 51_006
ALPHA = 1e-6
MANDATED = [u for u in UNIVERSES if u.statements]
each = pytest.mark.parametrize("universe", MANDATED, ids=lambda u: u.label)


def gaussian(universe, mu=3):
    return KernelGaussian.calibrate(Guarantee.gaussian(mu, universe.adjacency), universe.release)


def constraint_rows(known):
    """Every published sum of a table as a row of a matrix, frozen cells too."""
    flat = known.labels.reshape(-1)
    cells = np.eye(flat.size)
    rows = [cells[flat == g].sum(axis=0) for g in np.flatnonzero(~known.tied)]
    for tie in known.ties:
        spread = np.stack([cells[flat == g].sum(axis=0) for g in tie.groups])
        rows += list(tie.equations @ spread)
    rows += list(cells[flat == -1])
    return np.array(rows).reshape(-1, flat.size)


@each
def test_projection_is_orthogonal_onto_the_kernel(universe):
    known = support(universe.adjacency.figures, universe.release)
    onto = KernelProjection(known)
    matrix = onto.apply(np.eye(known.labels.size))
    rows = constraint_rows(known)
    direct = np.eye(known.labels.size) - np.linalg.pinv(rows) @ rows
    assert np.allclose(matrix, direct, atol=1e-12)
    assert round(np.trace(matrix)) == onto.rank
    index = np.arange(known.labels.size) % 2  # the odd and the even cells
    sums = onto.squared_lengths(index, 2)
    for i in (0, 1):
        one = (index == i).astype(float)
        assert sums[i] == pytest.approx(one @ direct @ one, abs=1e-9)


@each
def test_gaussian_on_the_kernel(universe):
    """Published sums agree; the variance is sigma^2 per dimension; the pair loss is mu^2 / 2."""
    mechanism = gaussian(universe)
    assert mechanism.guarantee.tradeoff == Gaussian(3)
    assert any("idealised" in a for a in mechanism.guarantee.assumptions)
    n = 4000
    noise = mechanism.noise(SeededRandomness(SEED), n).reshape(n, -1)
    assert np.all(mechanism.projection.holds(noise))
    assert np.abs(noise @ constraint_rows(mechanism.support).T).max(initial=0) < 1e-9
    size = (noise**2).sum(axis=1) / float(mechanism.description.scale)
    rank = mechanism.projection.rank
    assert stats.kstest(size, stats.chi2(rank).cdf).pvalue > ALPHA
    assert stats.kstest(size * 1.25, stats.chi2(rank).cdf).pvalue < ALPHA
    release = release_table(mechanism, universe.table, SeededRandomness(SEED))
    assert release.drawn[0].shape == mechanism.shape
    table = universe.table
    other = Table(table.schema, table.names, table.counts + 1)
    with pytest.raises(FigureError):
        release_table(mechanism, other)


def test_density_off_the_kernel_and_errors():
    universe = next(u for u in MANDATED if u.label == "margins of 2 x 3")
    mechanism = gaussian(universe)
    truth = mechanism.query(universe.table).astype(float)
    off = truth.copy()
    off[0, 0] += 1
    assert mechanism.log_density(off, universe.table) == -np.inf
    row, cell = mechanism.error_laws(np.array([[0, 0, 0], [1, -1, -1]]), 2)
    assert row.variance == 0
    assert row.interval(0.9) == 0
    # (1 - 1/2)(1 - 1/3) of a cell's variance is left
    assert cell.variance == pytest.approx(float(mechanism.description.scale) / 3)
    with pytest.raises(GuaranteeError, match="nothing could be released"):
        gaussian(universe, 0)


def test_planted_printed_sensitivity():
    """Algorithm 1 with Delta_2 = 2 under A_3: 1.2247 mu for a hexagon."""
    three = ["0", "1", "2"]
    schema = Schema.from_dict({"a": {"levels": three}, "b": {"levels": three}})
    table = Table(schema, schema.names, np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1]]))
    adjacency = SemiAdjacent(publish(table, margin("a"), margin("b")))
    mechanism = KernelGaussian.calibrate(Guarantee.gaussian(1, adjacency), ("a", "b"))
    assert mechanism.description.scale == 6
    hexagon = np.array([[1, -1, 0], [0, 1, -1], [-1, 0, 1]])
    assert np.linalg.norm(hexagon) / 2 == pytest.approx(math.sqrt(6) / 2)  # sigma = 2 / mu
    assert np.linalg.norm(hexagon) / math.sqrt(6) == pytest.approx(1)


# --- baselines ------------------------------------------------------------------------------------


def norm_of(norm, v):
    return np.linalg.norm(v, ord={"l1": 1, "l2": 2, "linf": np.inf}[norm], axis=-1)


@pytest.mark.parametrize("norm", ["l1", "l2", "linf"])
def test_norm_noise(norm):
    noise = NormNoise(norm, 3, 2.0, 0.5)
    v = noise.draw(SeededRandomness(SEED), 20_000)
    law = stats.gamma(3, scale=4).cdf  # the norm is Gamma(d) whatever the norm
    assert stats.kstest(norm_of(norm, v), law).pvalue > ALPHA
    assert stats.kstest(0.8 * norm_of(norm, v), law).pvalue < ALPHA
    assert (v**2).sum(axis=1).mean() == pytest.approx(noise.mean_square, rel=0.05)
    assert noise.tradeoff == Pure(0.5)
    # log ratio of a shift by the sensitivity: at most epsilon, and attained
    rng = np.random.default_rng(SEED)
    shift = rng.normal(size=(4000, 3))
    shift *= 2.0 / norm_of(norm, shift)[:, None]
    ratio = noise.log_density(v[:4000]) - noise.log_density(v[:4000] - shift)
    assert ratio.max() <= 0.5 + 1e-9
    assert noise.log_density(0 * shift[0]) - noise.log_density(shift[0]) == pytest.approx(0.5)


def test_norm_noise_density_is_normalised():
    grid = np.linspace(-40, 40, 401)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    for norm in ("l1", "l2", "linf"):
        mass = np.exp(NormNoise(norm, 2, 1.0, 0.5).log_density(points)).sum() * 0.04
        assert mass == pytest.approx(1, abs=0.02)


def test_projected_noise_is_shorter_in_l2_only():
    """Proposition 26's remark holds for l2; ||P e_11||_1 = 16/9 on 3 x 3 tables (docs/errata)."""
    from congenial.papers.semi_dp.semi_figures import projection

    onto = projection(3)
    one = np.zeros(9)
    one[0] = 1
    image = onto.apply(one)
    assert np.abs(image).sum() == pytest.approx(16 / 9)
    assert np.linalg.norm(image) < 1
    v = NormNoise("l2", 9, 2**0.5, 1.0).draw(SeededRandomness(SEED), 500)
    assert np.all(np.linalg.norm(onto.apply(v), axis=1) <= np.linalg.norm(v, axis=1))


def test_norm_refusals():
    with pytest.raises(GuaranteeError, match="not known"):
        NormNoise("l3", 2, 1.0, 1.0)  # type: ignore[arg-type]
    for bad in ((0, 1.0, 1.0), (2, 0.0, 1.0), (2, 1.0, 0.0)):
        with pytest.raises(GuaranteeError, match="no noise"):
            NormNoise("l1", *bad)
