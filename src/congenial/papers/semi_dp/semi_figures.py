"""Figures 2 and 3: the l2 distance of released two-way tables from the truth, margins published.

The paper's two models (equal and linearly rising cell probabilities, n = 500) only make the table;
additive noise does not see it, so both panels show the same laws.

Figure 1, and Algorithm 3: K-norm noise by rejection from a cube, with its acceptance.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arrays import Floats, Ints
from congenial.data.schema import Schema
from congenial.figures.figures import Figures
from congenial.figures.statements import margin
from congenial.figures.support import support
from congenial.mechanisms.kernel_gaussian import KernelProjection
from congenial.papers.item import Study
from congenial.papers.semi_dp.propositions import coordinates
from congenial.papers.semi_dp.real_knorm import Cones, KNormReal, NormNoise, table_cones
from congenial.sampling.canonical import CanonicalNormal, uniform_doubles
from congenial.sampling.knorm_noise import KNormNoise
from congenial.sampling.randomness import Randomness, SeededRandomness
from congenial.sampling.two_way_noise import TwoWayNoise

MODELS = ("I: equal cells", "II: rising cells")
PEOPLE, A_STAR = 500, 3
PRINTED = "K-norm, printed S (under-noised for k >= 3)"


@dataclass(frozen=True)
class Line:
    """One mechanism of a figure: its noise for k x k tables, and what it really promises."""

    name: str
    draw: Any  # (randomness, n) -> (n, k * k)
    expected: float  # root of E ||noise||^2, or E ||noise|| where that is closed
    promise: float  # the parameter that truly holds under A_3


def table(model: str, k: int, randomness: Randomness) -> Ints:
    """A multinomial table of 500 people in k x k cells."""
    weights = np.ones(k * k) if model == MODELS[0] else np.arange(1.0, k * k + 1)
    edges = np.cumsum(weights) / weights.sum()
    uniform = (randomness.words(PEOPLE) >> np.uint64(11)).astype(float) * 2.0**-53
    return np.bincount(np.searchsorted(edges, uniform, side="right"), minlength=k * k)


def projection(k: int) -> KernelProjection:
    """The projection on k x k tables with zero margins."""
    levels = [str(i) for i in range(k)]
    schema = Schema.from_dict({"a": {"levels": levels}, "b": {"levels": levels}})
    figures = Figures(schema, (margin("a"), margin("b")))
    return KernelProjection(support(figures, ("a", "b")))


def mean_length(d: int, sigma: float) -> float:
    """E ||N(0, sigma^2 I_d)||_2."""
    return sigma * math.sqrt(2) * math.exp(math.lgamma((d + 1) / 2) - math.lgamma(d / 2))


def gaussian_lines(k: int, mu: float) -> list[Line]:
    """The naive mechanism, Algorithm 1 as printed, and calibrated to the true Delta_2."""
    onto, d = projection(k), (k - 1) ** 2
    true = 6**0.5 if k >= 3 else 2.0

    def normal(sigma: float, projected: bool) -> Any:
        def draw(randomness: Randomness, n: int) -> Floats:
            noise = CanonicalNormal(1).draw(randomness, n * k * k).reshape(n, -1) * sigma
            return onto.apply(noise) if projected else noise

        return draw

    naive = A_STAR * 2**0.5 / mu
    return [
        Line("naive: a(t) sqrt(2) / mu", normal(naive, False), mean_length(k * k, naive), mu),
        Line(
            "Algorithm 1, printed Delta_2 = 2",
            normal(2 / mu, True),
            mean_length(d, 2 / mu),
            mu * true / 2,
        ),
        Line(
            "Algorithm 1, true Delta_2",
            normal(true / mu, True),
            mean_length(d, true / mu),
            mu,
        ),
    ]


def figure2(study: Study) -> dict[str, Any]:
    """Average l2 cost of Gaussian mechanisms, mu = 1, k = 2 .. 10, 30 replicates."""
    sizes = range(2, 5) if study.quick else range(2, 11)
    randomness, rows = SeededRandomness(study.seed), []
    for k in sizes:
        study.progress(f"k = {k}")
        for model in MODELS:
            for line in gaussian_lines(k, 1.0):
                rows.append([model, k, *_measured(line, model, k, randomness, 30)])
    return {
        "columns": ["model", "k", "mechanism", "average l2", "expected l2", "true mu"],
        "rows": rows,
        "notes": [
            "mu = 1, n = 500, 30 replicates each; A_3, as in the paper.",
            "true mu: what the mechanism promises under A_3. Algorithm 1 with the printed "
            "Delta_2 = 2 is 1.2247-GDP where k >= 3, because hexagons have l2 norm sqrt(6).",
            "The noise does not depend on the table: the two models differ by chance only.",
        ],
        "chart": _chart("k"),
    }


def knorm_lines(k: int, eps: Fraction) -> list[Line]:
    """The naive l1, l2, l_infinity mechanisms at eps / 3; K-norm with the true hull, and with the
    printed one at eps and at the eps that keeps its promise.
    """
    lines = []
    for norm, size in (("l1", 2.0), ("l2", 2**0.5), ("linf", 1.0)):
        noise = NormNoise(norm, k * k, size, float(eps) / A_STAR)  # type: ignore[arg-type]
        name = "l_infinity" if norm == "linf" else norm
        lines.append(Line(f"{name}, group privacy", noise.draw, noise.mean_square**0.5, float(eps)))
    noise_given_margins = TwoWayNoise((k, k), eps / (6 if k >= 3 else 4))
    lines.append(_whole("double geometric given the margins", noise_given_margins, float(eps)))
    lines.append(_knorm("K-norm, true S", k, eps, 3, float(eps)))
    lines.append(_knorm(PRINTED, k, eps, 2, float(eps) * (2 if k >= 3 else 1)))
    if k >= 3:
        lines.append(_knorm("K-norm, printed S at epsilon / 2", k, eps / 2, 2, float(eps)))
    return lines


def _knorm(name: str, k: int, eps: Fraction, records: int, promise: float) -> Line:
    """Real noise where the hull has been cut into cones, integer noise beyond."""
    if k <= 4:
        real = KNormReal.table((k, k), eps, records)

        def draw(randomness: Randomness, n: int) -> Floats:
            return real.draw_many(randomness, n).reshape(n, -1)

        return Line(name, draw, float(real.mean_square) ** 0.5, promise)
    return _whole(name, KNormNoise((k, k), eps, records=records), promise)


def _whole(name: str, noise: KNormNoise | TwoWayNoise, promise: float) -> Line:
    def draw(randomness: Randomness, n: int) -> Floats:
        return noise.draw_many(randomness, n).reshape(n, -1).astype(float)

    return Line(name, draw, math.nan, promise)


def figure3(study: Study) -> dict[str, Any]:
    """L2 cost of K-norm mechanisms: k = 2, 3 as printed and 4 .. 6 beyond, three epsilons."""
    sizes = range(2, 4) if study.quick else range(2, 7)
    levels = ["1"] if study.quick else ["1/10", "1/2", "1"]
    randomness, rows = SeededRandomness(study.seed), []
    for k in sizes:
        for level in levels:
            study.progress(f"k = {k}, epsilon = {level}")
            for line in knorm_lines(k, Fraction(level)):
                for model in MODELS:
                    measured = _measured(line, model, k, randomness, 30)
                    eps = float(Fraction(level))
                    rows.append([model, k, eps, *measured, f"{model}, epsilon = {eps:g}"])
    return {
        "columns": [
            *("model", "k", "epsilon", "mechanism", "average l2", "root mean square"),
            "true epsilon",
            "panel",
        ],
        "rows": rows,
        "notes": [
            "n = 500, 30 replicates each; A_3. k = 2 and 3 are the paper's"
            + ("" if study.quick else ", 4 to 6 are ours")
            + ". K-norm noise is real for k <= 4 and integer beyond. Double geometric noise given "
            "the margins (congenial) is ours, at the same promise.",
            "root mean square: the root of E ||noise||^2, in closed form; the average is below it.",
            "K-norm with the printed S (no hexagons) loses 2 epsilon under A_3 where k >= 3: it is "
            "under-noised, not better.",
        ],
        "chart": _chart("k") | {"facet": "panel", "y_log": True},
    }


def _measured(line: Line, model: str, k: int, randomness: Randomness, n: int) -> list[Any]:
    """Name, average ||M(X) - phi(X)||_2 over n replicates, expectation, promise."""
    truths = np.stack([table(model, k, randomness) for _ in range(n)])
    released = truths + line.draw(randomness, n)
    cost = float(np.linalg.norm(released - truths, axis=1).mean())
    expected = None if math.isnan(line.expected) else line.expected
    return [line.name, cost, expected, line.promise]


def _chart(x: str) -> dict[str, Any]:
    return {
        "kind": "line",
        "x": x,
        "y": "average l2",
        "by": "mechanism",
        "facet": "model",
        "x_title": "rows and columns of the table",
        "y_title": "average l2 distance",
    }


def swap(shape: tuple[int, int], i: int, j: int, k: int, l: int) -> Any:  # noqa: E741 - the paper's
    """v_ijkl: +1 at (i, j) and (k, l), -1 at (i, l) and (k, j); indices from 1."""
    table = np.zeros(shape, dtype=int)
    table[[i - 1, k - 1], [j - 1, l - 1]] = 1
    table[[i - 1, k - 1], [l - 1, j - 1]] = -1
    return table


def figure1(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """One swap in a table of 6 rows and 7 columns, as printed; its margins are 0."""
    table = swap((6, 7), 2, 2, 5, 6)
    rows = [[i + 1, j + 1, int(v)] for (i, j), v in np.ndenumerate(table)]
    return {
        "columns": ["row", "column", "change"],
        "rows": rows,
        "notes": [
            "The picture printed has 6 rows and 7 columns and its swap in rows 2 and 5, columns 2 "
            "and 6: i = 2, j = 2, k = 5, l = 6 in the formula. The caption says 7 x 6, l = 5, and "
            "exchanges k and l.",
            f"Row sums {table.sum(axis=1).tolist()}, column sums {table.sum(axis=0).tolist()}.",
            "From 3 x 3 on hexagons keep both margins too (item example-7).",
        ],
        "chart": {
            "kind": "cells",
            "x": "column",
            "y": "row",
            "value": "change",
            "width": 320,
            "height": 250,
        },
    }


class CubeRejection:
    """Algorithm 3 in one system of coordinates: a cube around the hull, and what it accepts.

    theta: the isomorphism, s rows; the cube is the smallest in these coordinates that holds K.
    """

    def __init__(self, cones: Cones, theta: Floats) -> None:
        self.cones, self.theta = cones, theta
        self.half = np.abs(cones.vectors @ theta.T).max(axis=0)  # c_1 .. c_s
        basis = cones.vectors[cones.corners[0]].astype(float)
        self._back = np.linalg.pinv(theta @ np.linalg.qr(basis.T)[0])
        self._onto = np.linalg.qr(basis.T)[0]

    @property
    def acceptance(self) -> float:
        """Volume of K over that of the cube, both in these coordinates."""
        stretch = 1 / abs(np.linalg.det(self._back))
        return float(self.cones.volume * stretch / np.prod(2 * self.half))

    def points(self, randomness: Randomness, n: int) -> Floats:
        """n uniform points of the cube, as tables."""
        s = len(self.half)
        uniform = 2 * uniform_doubles(randomness, n * s).reshape(n, s) - 1
        return np.asarray((uniform * self.half) @ self._back.T @ self._onto.T)

    def draw(self, randomness: Randomness, n: int, epsilon: float) -> tuple[Floats, int]:
        """Noise from n proposals, and how many of them were accepted."""
        proposed = self.points(randomness, n)
        accepted = proposed[self.cones.gauge(proposed) <= 1]
        d = self.cones.dimension
        logs = np.log(uniform_doubles(randomness, len(accepted) * (d + 1)))
        radius = -logs.reshape(len(accepted), d + 1).sum(axis=1) / epsilon
        return radius[:, None] * accepted, len(accepted)


def algorithm3(study: Study) -> dict[str, Any]:
    """Acceptance of Algorithm 3 by volume and by counting, and E l2^2 of its noise."""
    shapes = ((2, 2), (2, 3), (3, 3)) if study.quick else ((2, 2), (2, 3), (3, 3), (3, 4), (4, 4))
    n = 20_000 if study.quick else 100_000
    randomness, rows = SeededRandomness(study.seed), []
    for shape in shapes:
        for records in (2, 3):
            cones = table_cones(shape, records)
            for words, theta in coordinates(shape).items():
                cube = CubeRejection(cones, theta)
                noise, accepted = cube.draw(randomness, n, 1.0)
                square = float((noise**2).sum(axis=1).mean()) if accepted else math.nan
                rows.append(
                    [
                        f"{shape[0]} x {shape[1]}",
                        f"A_{records}",
                        words,
                        cube.acceptance,
                        accepted / n,
                        None if math.isnan(square) else square,
                        float(cones.mean_square()),
                    ]
                )
    return {
        "columns": [
            "table",
            "adjacency",
            "coordinates",
            "acceptance",
            "accepted",
            "E l2^2, drawn",
            "E l2^2, exact",
        ],
        "rows": rows,
        "notes": [
            f"{n:,} proposals each, epsilon = 1. The paper leaves the coordinates open; inner "
            "cells are the table without its last row and column. Acceptance falls quickly with "
            "the number of cells.",
            "The product draws from a cone of the hull and rejects nothing, or draws integer noise "
            "by thinning. The paper's own set is that of A_2; under A_3 hexagons belong to it.",
        ],
    }
