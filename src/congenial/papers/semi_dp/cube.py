"""Figure 1, and Algorithm 3: K-norm noise by rejection from a cube, with its acceptance."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.papers.semi_dp.cones import Cones, table_cones
from congenial.papers.semi_dp.propositions import coordinates
from congenial.sampling.canonical import uniform_doubles
from congenial.sampling.inversion import Floats
from congenial.sampling.randomness import Randomness, SeededRandomness


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
