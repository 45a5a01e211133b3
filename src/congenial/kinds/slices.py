"""What a worker of a release by group runs: count, check and draw one slice (see `by_group`).

Apart from `by_group` so that a worker loads the samplers and little else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.errors import MandateError
from congenial.sampling.choice import TablePart, choose
from congenial.sampling.discrete import cell_law
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness


@dataclass(frozen=True)
class SliceLaw:
    """The law of every slice: public parameters only, so it may travel.

    `labels[g, j]` is the number of the published sum that cell j of slice g belongs to, counted
    within the slice, or -1; `loose[g, j]` says that the cell belongs to no published sum and has
    noise of its own. A cell that is neither is frozen: known to be zero. `totals[g]` are the
    published sums of slice g; None where they are not published yet.
    """

    family: str
    scale: Fraction
    labels: Any
    loose: Any
    totals: tuple[Any, ...] | None

    def agrees(self, group: int, counts: Any) -> bool:
        """Whether the slice has its published sums and nobody in a frozen cell."""
        labels, loose = self.labels[group], self.loose[group]
        inside = labels >= 0
        if np.any(counts[~inside & ~loose]):
            return False
        if self.totals is None:
            return True
        sums = np.zeros(len(self.totals[group]), dtype=np.int64)
        np.add.at(sums, labels[inside], counts[inside])
        return np.array_equal(sums, self.totals[group])

    def noise(self, group: int, randomness: Randomness) -> Any:
        """u for one slice: conditioned cells first, then loose ones, as in `Congenial.noise`."""
        labels, loose = self.labels[group], self.loose[group]
        u, law = np.zeros(labels.size, dtype=np.int64), cell_law(self.family, self.scale)
        if np.any(labels >= 0):
            u = choose(TablePart(law, labels)).law.draw(randomness)
        if np.any(loose):
            u[loose] = law.draw(randomness, int(np.sum(loose)))
        return u


def stream(seed: int | None, group: int) -> Randomness:
    """The source of one slice's noise: the machine's own, or for tests one keyed by the group."""
    return SystemRandomness() if seed is None else SeededRandomness((seed << 64) + group)


def slice_worker(law: SliceLaw, seed: int | None) -> Callable[[Any], Any]:
    """The function a Spark task runs on the counts of one group (Arrow in, Arrow out)."""

    def work(rows: Any) -> Any:
        import pyarrow as pa

        group, cell = rows["g"][0].as_py(), rows["cell"].to_numpy()
        counts = np.zeros(law.labels.shape[1], dtype=np.int64)
        np.add.at(counts, np.maximum(cell, 0), rows["n"].to_numpy())
        if group < 0 or np.any(cell < 0) or not law.agrees(group, counts):
            raise MandateError("the data changed after they were checked.")
        y = counts + law.noise(group, stream(seed, group))
        return pa.table({"group": [group], "y": pa.array([y], pa.list_(pa.int64()))})

    return work
