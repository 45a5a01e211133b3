"""What noise given group sums has in common, whatever its law: cells, groups, and the lattice."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.inversion import Floats, Ints
from congenial.sampling.law import IntegerLaw


class Groups(IntegerLaw):
    """Independent noise on cells, given that each group of cells sums to zero.

    labels: for each cell the number of its group, 0, 1, 2, ... (every number used), or -1 for a
    cell that is not free and gets no noise; a group of one cell gets 0. Draws are exact.
    """

    log_ratio_error = 0.0

    def __init__(self, labels: npt.ArrayLike) -> None:
        self.labels = checked_labels(labels)
        self.sizes: Ints = np.bincount(self.labels[self.labels >= 0]).astype(np.int64)
        if np.any(self.sizes == 0):
            raise StructureError(
                f"group {int(np.argmin(self.sizes))} has no cell.",
                remedy="Number the groups 0, 1, 2, ... without gaps.",
            )

    @classmethod
    def of_sizes(cls, sizes: npt.ArrayLike, parameter: Fraction | int) -> Self:
        """Groups of the given sizes, in order: sizes (8, 38) are cells 0..7 and 8..45."""
        counts = np.asarray(sizes, dtype=np.int64)
        return cls(np.repeat(np.arange(counts.size), counts), parameter)  # type: ignore[call-arg]

    @property
    def cells(self) -> int:
        """Number of cells, free or not."""
        return int(self.labels.size)

    @abstractmethod
    def _log_normaliser(self, k: int) -> float:
        """log Z_k of one group of k cells."""

    @abstractmethod
    def _log_weight(self, noise: Ints) -> Floats:
        """Log weight of each noise vector, cells in the last dimension."""

    @cached_property
    def log_Z(self) -> float:
        """Sum over groups of log Z_k."""
        sizes, times = np.unique(self.sizes, return_counts=True)
        return math.fsum(
            t * self._log_normaliser(int(k)) for k, t in zip(sizes, times, strict=True)
        )

    def log_density(self, u: npt.ArrayLike) -> Any:
        """log p(u), or -inf if a group sum or a fixed cell is not zero.

        u has shape (..., cells); the result has the leading shape, a plain number for one vector.
        """
        noise = np.asarray(u, dtype=np.int64)
        if noise.shape[-1:] != (self.cells,):
            raise StructureError(
                f"noise has {noise.shape[-1:]} cells, the groups have {self.cells}.",
                remedy="Give one value per cell.",
            )
        free = self.labels >= 0
        sums = np.zeros((self.sizes.size, *noise.shape[:-1]), dtype=np.int64)
        np.add.at(sums, self.labels[free], np.moveaxis(noise[..., free], -1, 0))
        inside = ~np.any(sums, axis=0) & ~np.any(noise[..., ~free], axis=-1)
        return np.where(inside, self._log_weight(noise) - self.log_Z, -np.inf)[()]


def checked_labels(labels: npt.ArrayLike) -> Ints:
    """Labels as a flat read-only array, refused when they are not group numbers."""
    given = np.asarray(labels).reshape(-1)
    if given.size == 0 or not np.issubdtype(given.dtype, np.integer) or int(given.min()) < -1:
        raise StructureError(
            "group labels must be integers >= -1, at least one.",
            remedy="Number the groups 0, 1, 2, ... and mark cells without noise by -1.",
        )
    fixed = given.astype(np.int64)
    fixed.flags.writeable = False
    return fixed
