"""The cells of a single protected table: its values as drawn, and the law of its noise."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.advance import one_by_one
from congenial.data.schema import Schema
from congenial.errors import InferenceError
from congenial.figures.figures import Figures
from congenial.figures.support import FROZEN, LOOSE
from congenial.inference.estimates.cell_estimates import (
    DRAWS,
    SEED,
    Floats,
    ScaledLaw,
    Weights,
)
from congenial.mechanisms.congenial import Conditioned, IntegerNoise
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.mechanisms.kernel_gaussian import KernelGaussian, KernelProjection
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.plain import PlainContinuous
from congenial.sampling.randomness import SeededRandomness

REMEMBERED = 20_000_000  # numbers of simulated noise that are kept
BLOCK = 4_000_000  # numbers of simulated noise drawn at a time
PASS = 250_000  # numbers of it that are multiplied at a time: they stay in the cache
NOTHING = 1e-9  # a weight this small, after projection on what is free, is none
FILLED = 1 / 8  # share of weights other than zero from which they are multiplied as a full matrix


@dataclass(frozen=True, eq=False)
class SingleTableEstimates:
    """`CellEstimates` of a release of one table with additive noise."""

    release: DrawnTable

    def __post_init__(self) -> None:
        if not self.mechanism.additive:
            raise InferenceError(
                f"'{self.release.name}' was drawn by '{self.mechanism.name}', whose error depends "
                "on the confidential data, so it has no interval that always holds.",
                remedy="Use `congenial infer` with a model, or ask its publisher for a release "
                "with nonnegative = 'project'.",
            )

    @property
    def mechanism(self) -> Mechanism:
        """What drew the table."""
        return self.release.mechanism

    @property
    def name(self) -> str:
        """The release's name."""
        return self.release.name

    @property
    def schema(self) -> Schema:
        """What the cells mean."""
        return self.release.schema

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the table."""
        return self.release.table

    @property
    def published(self) -> Figures:
        """The figures published exactly."""
        return self.release.published

    @cached_property
    def cells(self) -> Floats:
        """The values as drawn, unbiased."""
        return np.asarray(self.release.values, dtype=np.float64).reshape(-1)

    # ---- simulation --------------------------------------------------------------------------

    def errors(self, weights: Weights, stream: int = 0) -> Floats:
        """Joint draws of the errors of linear combinations, (DRAWS, rows)."""
        touched: Any = np.unique(weights.indices)
        if len(touched) == weights.shape[1]:
            touched = slice(None)  # all of them, without a copy
        inside = weights[:, touched]
        full = inside.toarray().T if inside.nnz > FILLED * math.prod(inside.shape) else None
        found = np.empty((DRAWS, weights.shape[0]))
        for start, block in self._blocks(stream):
            noise = block[:, touched].astype(float)
            errors = noise @ full if full is not None else (inside @ noise.T).T
            found[start : start + len(block)] = errors
        return found

    @property
    def is_remembered(self) -> bool:
        """Whether simulated noise is kept for further questions."""
        return DRAWS * self.cells.size <= REMEMBERED

    def noise(self, stream: int) -> Any:
        """Simulated tables of noise, flat: (DRAWS, cells); the same every time."""
        if stream not in self._kept:
            kept = np.empty((DRAWS, self.cells.size), dtype=np.int16)
            for start, block in self._drawn(stream):
                kept = kept.astype(np.promote_types(kept.dtype, _narrowest(block)), copy=False)
                kept[start : start + len(block)] = block
            self._kept[stream] = kept
        return self._kept[stream]

    @cached_property
    def _kept(self) -> dict[int, Any]:
        return {}

    def _blocks(self, stream: int) -> Iterator[tuple[int, Any]]:
        """The same tables, some at a time, and the number of the first."""
        if not self.is_remembered:
            yield from self._drawn(stream)
            return
        noise, step = self.noise(stream), max(1, PASS // max(self.cells.size, 1))
        for start in range(0, DRAWS, step):
            yield start, noise[start : start + step]

    def _drawn(self, stream: int) -> Iterator[tuple[int, Any]]:
        source = SeededRandomness(SEED + stream)
        step = max(1, min(DRAWS, BLOCK // max(self.cells.size, 1)))
        for start in one_by_one(range(0, DRAWS, step), "simulating errors"):
            drawn = self.mechanism.noise(source, min(step, DRAWS - start))
            yield start, drawn.reshape(len(drawn), -1)

    def covariance(self, weights: Weights) -> Floats:
        """From the simulated errors; their mean is zero by symmetry."""
        errors = self.errors(weights)
        return np.asarray(errors.T @ errors / DRAWS)

    # ---- what is known about it --------------------------------------------------------------

    def known(self, weights: Weights) -> NDArray[np.bool_]:
        """Combinations that the conditioned noise leaves at zero."""
        if not isinstance(self.mechanism, Conditioned):
            return np.asarray(np.diff(weights.indptr) == 0)
        if _disjoint_sums(weights):
            return np.asarray(self.mechanism.support.fixes(_index(weights), weights.shape[0]))
        found = np.zeros(weights.shape[0], dtype=np.bool_)
        step = max(1, BLOCK // max(self.cells.size, 1))
        for start in range(0, len(found), step):
            rows = self._projection.apply(weights[start : start + step].toarray().astype(float))
            found[start : start + step] = np.abs(rows).max(axis=1, initial=0) < NOTHING
        return found

    @cached_property
    def _projection(self) -> KernelProjection:
        assert isinstance(self.mechanism, Conditioned)
        return KernelProjection(self.mechanism.support)

    def laws(self, weights: Weights) -> list[ScaledLaw | None]:
        """Laws of sums: all weights of one size, and one sign in each independent part."""
        size = [self._one_size(*_row(weights, i)) for i in range(weights.shape[0])]
        served = [i for i, one in enumerate(size) if one]
        laws: list[ScaledLaw | None] = [None] * len(size)
        if not served:
            return laws
        batches = [served] if _disjoint(weights[served]) else [[i] for i in served]
        for batch in one_by_one(batches, "working out laws of sums"):
            for i, law in zip(batch, self._laws_of(weights[batch]), strict=True):
                laws[i] = ScaledLaw(law, size[i])
        return laws

    def _laws_of(self, rows: Weights) -> list[Any]:
        index = _index(rows).reshape(self.mechanism.shape)
        return list(self.mechanism.error_laws(index, rows.shape[0]))

    def _one_size(self, cells: Any, values: Any) -> float:
        """The size of all weights of a row whose law is that of a sum; 0.0 where it is not."""
        sizes = np.abs(values)
        if not len(sizes) or np.ptp(sizes) > NOTHING * sizes.max():
            return 0.0
        positive = values > 0
        if positive.all() or not positive.any():
            return float(sizes[0])
        parts = self._parts
        if parts is None or np.intersect1d(parts[cells[positive]], parts[cells[~positive]]).size:
            return 0.0
        return float(sizes[0])  # every part is symmetric about zero: signs of parts do not matter

    @cached_property
    def _parts(self) -> Any:
        """For each cell, the independent part of the noise it belongs to; None where unknown."""
        if isinstance(self.mechanism, PlainContinuous):
            return np.arange(self.cells.size)
        if not isinstance(self.mechanism, IntegerNoise | KernelGaussian):
            return None
        support = self.mechanism.support
        labels = support.labels.reshape(-1)
        of_group = np.arange(support.groups)
        for tie in support.ties:
            of_group[tie.groups] = tie.groups[0]
        parts = np.where(labels >= 0, np.append(of_group, 0)[np.maximum(labels, 0)], -1)
        alone = (labels == LOOSE) | (labels == FROZEN)
        parts[alone] = support.groups + np.flatnonzero(alone)
        return parts


def _narrowest(drawn: Any) -> Any:
    """The type that holds numbers in the least memory."""
    if np.issubdtype(drawn.dtype, np.integer) and drawn.size:
        for narrow in (np.int16, np.int32):
            if np.iinfo(narrow).min <= drawn.min() and drawn.max() <= np.iinfo(narrow).max:
                return narrow
    return np.float64


def _row(weights: Weights, i: int) -> tuple[Any, Any]:
    """Places and values of a row's weights."""
    inside = slice(weights.indptr[i], weights.indptr[i + 1])
    return weights.indices[inside], weights.data[inside]


def _disjoint(weights: Weights) -> bool:
    """Whether no cell is in two combinations."""
    return bool(np.bincount(weights.indices, minlength=1).max() <= 1)


def _disjoint_sums(weights: Weights) -> bool:
    """Whether the combinations are plain sums of which no two have a cell in common."""
    return bool(np.all(weights.data == 1)) and _disjoint(weights)


def _index(weights: Weights) -> Any:
    """For each cell the combination it is in, -1 for none."""
    index = np.full(weights.shape[1], -1, dtype=np.int64)
    index[weights.indices] = np.repeat(np.arange(weights.shape[0]), np.diff(weights.indptr))
    return index
