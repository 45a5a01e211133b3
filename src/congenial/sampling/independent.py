"""Independent noise in cells that no published sum touches."""

from __future__ import annotations

from typing import Any

import numpy as np

from congenial.sampling.discrete import CellLaw
from congenial.sampling.inversion import Ints
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness


class IndependentCells(IntegerLaw):
    """p(u) = prod_i w(u_i) / Z, all cells of one exact law."""

    log_ratio_error = 0.0
    mass_lost = 0.0

    def __init__(self, cell: CellLaw, cells: int) -> None:
        self.cell, self.cells = cell, cells

    @property
    def log_Z(self) -> float:
        """The normaliser of one cell, as often as there are cells; w(0) = 1."""
        return -self.cells * float(self.cell.log_pmf(0))

    def log_density(self, u: Any) -> Any:
        """Sum over cells of the log mass; u has shape (..., cells)."""
        return np.sum(self.cell.log_pmf(u), axis=-1)

    def draw_many(self, randomness: Randomness, n: int) -> Ints:
        """n independent exact draws, shape (n, cells)."""
        return self.cell.draw(randomness, n * self.cells).reshape(n, self.cells)
