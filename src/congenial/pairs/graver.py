"""Graver bases of small merged matrices: the moves into which every difference of two conforming
tables splits without cancellation.

Every whole u with M u = 0 is a sum of Graver elements g that agree with u in sign, so each step
from a conforming table s towards another stays between the two: it is nonnegative and, if M says
so, keeps every bound. That gives bounds on distances which hold for every value of the figures.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from congenial.figures.integers import kernel
from congenial.figures.lattice import Ints

MOST_ELEMENTS = 2_000  # up to sign, those on the way included
MOST_COLUMNS = 64


def graver(matrix: Any, most: int = MOST_ELEMENTS) -> Ints | None:
    """The Graver basis, one of each pair +-g per row; None if that takes too long.

    Pottier's completion: sums of two elements are reduced by smaller ones that agree with them in
    sign; what does not vanish is new. At the end, elements that another one fits into are dropped.

    >>> rows = np.array([[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1], [1, 0, 0, 1, 0, 0],
    ...                  [0, 1, 0, 0, 1, 0], [0, 0, 1, 0, 0, 1]])
    >>> len(graver(rows))  # 2 x 3 tables with both margins: swaps
    3
    """
    if matrix.shape[1] > MOST_COLUMNS:
        return None
    basis = kernel(matrix.toarray() if sp.issparse(matrix) else matrix).basis
    if len(basis) <= 1:
        return basis
    from congenial.pairs.graver_kernels import complete

    found = complete(basis, most)
    return _minimal(found) if len(found) else None


def _minimal(rows: Ints) -> Ints:
    """Those into which no other one fits."""
    up, down = np.maximum(rows, 0), np.maximum(-rows, 0)
    kept = []
    for i in range(len(rows)):
        fits = np.all((up <= up[i]) & (down <= down[i]), axis=1)
        fits |= np.all((up <= down[i]) & (down <= up[i]), axis=1)
        fits[i] = False
        if not fits.any():
            kept.append(i)
    return rows[kept]
