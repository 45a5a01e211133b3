"""What a worker of a release by group runs: count, check and draw one slice (see `by_group`).

Apart from `by_group` so that a worker loads the samplers and little else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.errors import CongenialError, MandateError
from congenial.figures.support import FROZEN, Support
from congenial.figures.support_slices import SlicedLimits, SlicedSupport
from congenial.privacy.description import Family
from congenial.sampling.conditioned_counts import ConditionedCounts
from congenial.sampling.conditioned_noise import ConditionedNoise
from congenial.sampling.discrete import CellLaw, DoubleGeometric, cell_law
from congenial.sampling.inversion import Ints
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness
from congenial.sampling.tree.levels import noise_at_levels

REFUSALS = ("refusal", "what", "remedy")


@dataclass(frozen=True, eq=False)
class SliceLaw:
    """The law of every slice: public parameters only, so it may travel.

    `levels`: for noise at several levels, the sum of each level that cell j of slice g belongs to,
    and its rate. `limits`: where counts are drawn given that none is negative, their bounds.
    `chain`: whether ties are left to a chain.
    """

    family: Family
    scale: Fraction
    supports: SlicedSupport
    levels: tuple[tuple[Ints, Fraction], ...] | None = None
    limits: SlicedLimits | None = None
    chain: bool = False
    _laws: dict[bytes, IntegerLaw] = field(default_factory=dict, repr=False, init=False)

    @property
    def cells(self) -> int:
        """Cells of one slice."""
        return int(self.supports.labels.shape[1])

    @property
    def _cell(self) -> CellLaw:
        return cell_law(self.family, self.scale)

    def agrees(self, group: int, counts: Any) -> bool:
        """Whether the slice has its published sums, keeps its bounds, and has nobody in a frozen
        cell.
        """
        if not self.supports.of(group).agrees(counts):
            return False
        return self.limits is None or bool(self.limits.of(group).hold(counts))

    def given(self, group: int, counts: Any) -> ConditionedCounts:
        """The law of one slice's counts where none may be negative."""
        assert self.limits is not None
        cell, bounds = DoubleGeometric(self.scale), self.limits.of(group)
        return ConditionedCounts(cell, self.supports.of(group), counts, bounds)

    def draw(self, group: int, counts: Any, randomness: Randomness) -> Any:
        """What is released of one slice: its counts with noise, or counts around them."""
        if self.limits is not None:
            return self.given(group, counts).draw(randomness)
        y = counts.copy()
        free = np.arange(self.cells) if self.levels is None else self._free(group)
        if len(free):
            y[free] += self._noise(group).draw(randomness)
        return y

    def _noise(self, group: int) -> IntegerLaw:
        """The law of one slice's noise; slices of which the same is said share it."""
        known = self.supports.of(group)
        key = self._key(known, group)
        if key not in self._laws:
            if self.levels is None:
                self._laws[key] = ConditionedNoise(self._cell, known, self.chain)
            else:
                self._laws[key] = self._tree(known, group)
        return self._laws[key]

    def _key(self, known: Support, group: int) -> bytes:
        """What the noise of a slice depends on: everything but its published values."""
        ties = [text for kind in known.ties.kinds for text in (kind.pattern.equations, kind.groups)]
        levels = [labels[group] for labels, _ in self.levels or ()]
        return b"|".join(one.tobytes() for one in (known.labels, *ties, *levels))

    def _free(self, group: int) -> Any:
        return np.flatnonzero(self.supports.labels[group] != FROZEN)

    def _tree(self, known: Support, group: int) -> IntegerLaw:
        """Noise at several levels, on the cells that can vary."""
        free = self._free(group)
        levels = [(labels[group, free], rate) for labels, rate in self.levels or ()]
        fixed = [(known.labels[free], None)] if known.groups else []
        return noise_at_levels([*levels, *fixed], self.scale, len(free))


def stream(seed: int | None, group: int) -> Randomness:
    """The source of one slice's noise: the machine's own, or for tests one keyed by the group."""
    return SystemRandomness() if seed is None else SeededRandomness((seed << 64) + group)


def slice_worker(law: SliceLaw, seed: int | None) -> Callable[[Any], Any]:
    """The function a Spark task runs on the counts of one group (Arrow in, Arrow out)."""

    def work(rows: Any) -> Any:
        import pyarrow as pa

        group, counts = _counted(law, rows)
        y = law.draw(group, counts, stream(seed, group))
        return pa.table({"group": [group], "y": pa.array([y], pa.list_(pa.int64()))})

    return work


def slice_checker(law: SliceLaw) -> Callable[[Any], Any]:
    """The same before anything is drawn: why the counts of one group cannot be drawn around."""

    def work(rows: Any) -> Any:
        import pyarrow as pa

        refused = []
        try:
            law.given(*_counted(law, rows)).prepare()
        except CongenialError as reason:
            told = (type(reason).__name__, reason.what, reason.remedy)
            refused.append(dict(zip(REFUSALS, told, strict=True)))
        return pa.Table.from_pylist(refused, pa.schema([(name, pa.string()) for name in REFUSALS]))

    return work


def _counted(law: SliceLaw, rows: Any) -> tuple[int, Any]:
    """The group of some rows and its counts; refused where they are not those of the check."""
    group, cell = rows["g"][0].as_py(), rows["cell"].to_numpy()
    counts = np.zeros(law.cells, dtype=np.int64)
    np.add.at(counts, np.maximum(cell, 0), rows["n"].to_numpy())
    if group < 0 or np.any(cell < 0) or not law.agrees(group, counts):
        raise MandateError("the data changed after they were checked.")
    return group, counts
