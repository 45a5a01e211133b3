"""Examples 7 and 8, and the norm balls of section 4.2: the printed sensitivity set and the true
one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.papers.semi_dp.cones import table_cones
from congenial.papers.semi_dp.semi_figures import projection
from congenial.sampling.knorm_noise import Gauge

SHAPES = ((2, 2), (2, 3), (2, 4), (3, 3), (3, 4), (4, 4))


def example7(study: Study) -> dict[str, Any]:
    """Size of S and its sensitivities under A_2 and A_3."""
    rows = []
    for shape in SHAPES[:4] if study.quick else SHAPES:
        for records in (2, 3):
            s = Gauge(shape, records).generators.reshape(-1, shape[0] * shape[1])
            rows.append(
                [
                    f"{shape[0]} x {shape[1]}",
                    f"A_{records}",
                    len(s) + 1,
                    int(np.abs(s).sum(axis=1).max()),
                    int((s**2).sum(axis=1).max()),
                    int(np.abs(s).max()),
                    int(np.linalg.matrix_rank(s)),
                ]
            )
    return {
        "columns": ["table", "adjacency", "|S|", "Delta_1", "Delta_2^2", "Delta_inf", "rank"],
        "rows": rows,
        "notes": [
            "The paper's set under A_3 is the one listed under A_2: true for 2 x c. From 3 x 3 on "
            "a cycle through three rows and three columns keeps both margins at distance 3."
        ],
    }


def example8(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """The projection matrix P of a 2 x 2 table."""
    matrix = projection(2).apply(np.eye(4))
    return {
        "columns": ["x11", "x12", "x21", "x22"],
        "rows": [[float(v) for v in row] for row in np.round(matrix, 12)],
        "notes": ["P = u u^T with the unit vector u = (1, -1, -1, 1) / 2; Delta_2 = 2."],
    }


def balls(study: Study) -> dict[str, Any]:
    """Volume of K and E ||noise||^2 at epsilon = 1, exactly."""
    rows = []
    for shape in SHAPES[:4] if study.quick else SHAPES:
        for records in (2, 3):
            cones = table_cones(shape, records)
            rows.append(
                [
                    f"{shape[0]} x {shape[1]}",
                    f"A_{records}",
                    cones.dimension,
                    cones.volume,
                    str(cones.mean_square()),
                    float(cones.mean_square()),
                ]
            )
    return {
        "columns": ["table", "adjacency", "dimension", "volume of K", "E l2^2", "E l2^2, decimal"],
        "rows": rows,
        "notes": [
            "Volumes in orthonormal coordinates of the tables with zero margins; noise at "
            "epsilon = 1, divide by epsilon^2."
        ],
    }
