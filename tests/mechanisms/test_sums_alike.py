"""Sums of cells that share a law of error are found together."""

from __future__ import annotations

import numpy as np

from congenial.mechanisms.error_laws import sums_alike

SEED = 20_261_116


def test_sums_that_meet_groups_in_the_same_way_are_alike() -> None:
    chance = np.random.default_rng(SEED)
    for sums in (1, 5, 60):
        parts = chance.integers(0, 4, size=sums)
        start = np.r_[0, np.cumsum(parts)]
        met = chance.integers(1, 3, size=(start[-1], 2))
        loose = chance.integers(0, 2, size=sums)
        expected: dict[object, list[int]] = {}
        for i in range(sums):
            key = (tuple(sorted(map(tuple, met[start[i] : start[i + 1]].tolist()))), int(loose[i]))
            expected.setdefault(key, []).append(i)
        found = [one.tolist() for one in sums_alike(start, met, loose)]
        assert sorted(found) == sorted(expected.values())
