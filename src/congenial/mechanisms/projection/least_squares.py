"""Nonnegative least squares onto the conforming tables, in real numbers.

argmin of ||m - y||_2 over { low <= R m <= high, lower <= m <= upper }: congenial-dp's NNL2, and the
first of TopDown's two stages. Groups of known total have a closed form (`levels`); other figures
are solved as a quadratic programme by Clarabel, in the displacement m - y, which stays small when
counts are large.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from congenial.errors import MandateError, StructureError
from congenial.mechanisms.projection.conforming_tables import FAR, ConformingTables
from congenial.mechanisms.projection.water_levels import Floats, real_levels


def least_squares(values: npt.ArrayLike, conforming: ConformingTables) -> Floats:
    """The conforming real table nearest to `values`, to about 1e-5 per cell.

    Groups of known total are exact to rounding. A cell that only just reaches its bound is the
    least exact; others are good to 1e-9 or better.

    >>> least_squares([5, -2, 1], ConformingTables.of([[1, 1, 1]], [3])).round(6).tolist()
    [3.0, 0.0, 0.0]
    """
    y = np.asarray(values, dtype=float).reshape(-1)
    if y.size != conforming.cells:
        raise StructureError(
            f"{y.size} values for {conforming.cells} cells.", remedy="Give one per cell."
        )
    totals = conforming.totals
    if totals is not None:
        return real_levels(
            conforming.atoms, y, totals.astype(float), conforming.lower, conforming.upper
        )
    return y + _displacement(y, conforming)


def _displacement(y: Floats, conforming: ConformingTables) -> Floats:
    import clarabel  # only projections under crossing figures need it

    rows = conforming.rows.astype(float)
    at = rows @ y
    equal = conforming.low == conforming.high
    below, above = conforming.low > -FAR, conforming.high < FAR
    identity = sp.identity(y.size, format="csr")
    floor, roof = conforming.lower > -FAR, conforming.upper < FAR
    # G d + s = h with s = 0 for equalities, s >= 0 for the rest
    G = sp.vstack(
        [
            rows[equal],
            -rows[below & ~equal],
            rows[above & ~equal],
            -identity[floor],
            identity[roof],
        ],
        format="csc",
    )
    h = np.concatenate(
        [
            (conforming.low - at)[equal],
            (at - conforming.low)[below & ~equal],
            (conforming.high - at)[above & ~equal],
            (y - conforming.lower)[floor],
            (conforming.upper - y)[roof],
        ]
    )
    equalities = int(equal.sum())
    cones: list[Any] = [
        clarabel.ZeroConeT(equalities),
        clarabel.NonnegativeConeT(h.size - equalities),
    ]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    # a cell that only just reaches its bound is off by the root of the gap
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-12
    settings.max_threads = 1
    solved = clarabel.DefaultSolver(
        identity.tocsc(), np.zeros(y.size), G, h, cones, settings
    ).solve()
    if str(solved.status) not in ("Solved", "AlmostSolved"):
        raise MandateError(
            "no table within the bounds agrees with the figures (the solver says "
            f"{solved.status}).",
            remedy="Correct or leave out a figure.",
        )
    return np.asarray(solved.x, dtype=float)
