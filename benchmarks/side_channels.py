"""Time, memory and random words of a release as functions of the confidential table.

Each row compares two tables that agree with every published figure and are as unlike as they can
be: everybody in one cell, and everybody spread out. Times are of the processor. Runs alternate, so
that drift of the machine hits both; the ratio is that of medians with a 95 % bootstrap interval. An
interval that holds 1 says that nothing was seen at this number of runs. "words" are the random
words taken from equal seeds: equal numbers mean that the work is a function of the noise alone.

Run `python benchmarks/side_channels.py`; it takes about a minute.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.figures import publish
from congenial.figures.statements import margin, total
from congenial.mechanisms.congenial import Congenial, CongenialCounts, CongenialGaussian
from congenial.mechanisms.knorm import KNorm
from congenial.mechanisms.measured_tables import release_table
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.plain import PlainDiscreteGaussian, PlainGeometric, PlainLaplace
from congenial.pairs.adjacency import ReplaceOne, SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SeededRandomness, Words

RUNS = 40
SEED = 3
Pair = tuple[Table, Table]


class Counted(SeededRandomness):
    """A seeded stream that counts the words taken."""

    taken = 0

    def words(self, n: int) -> Words:
        self.taken += n
        return super().words(n)


def pair(groups: int, levels: int, people: int) -> Pair:
    """Equal totals by group: all in the first level, or spread over all of them."""
    schema = Schema.from_dict(
        {
            "g": {"levels": [f"g{i}" for i in range(groups)]},
            "x": {"levels": [f"x{i}" for i in range(levels)]},
        }
    )
    one = np.zeros((groups, levels), dtype=np.int64)
    one[:, 0] = people
    other = np.full((groups, levels), people // levels, dtype=np.int64)
    other[:, 0] += people - people // levels * levels
    return Table(schema, ("g", "x"), one), Table(schema, ("g", "x"), other)


def square(size: int, people: int) -> Pair:
    """Equal margins: all on the diagonal, or spread evenly."""
    levels = [str(i) for i in range(size)]
    schema = Schema.from_dict({"g": {"levels": levels}, "x": {"levels": [f"x{i}" for i in levels]}})
    one = np.eye(size, dtype=np.int64) * people * size
    return tuple(  # type: ignore[return-value]
        Table(schema, ("g", "x"), counts) for counts in (one, np.full_like(one, people))
    )


def cases() -> Iterator[tuple[str, Mechanism, Pair, bool]]:
    """Label, mechanism, two tables, and whether whole counts are fitted."""
    free = pair(6, 8, 4_000)
    alone = ReplaceOne(free[0].schema)
    given = SemiAdjacent(publish(free[0], total(by="g")))
    margins = square(3, 300)
    crossing = SemiAdjacent(publish(margins[0], margin("g"), margin("x")))

    def built(kind: type[Mechanism], under: Adjacency, **target: Any) -> Mechanism:
        (name, value) = next(iter(target.items()))
        make = {"epsilon": Guarantee.pure, "rho": Guarantee.zero_concentrated}[name]
        return kind.calibrate(make(value, under), ("g", "x"))

    half, tenth = Fraction(1, 2), Fraction(1, 10)
    yield "plain_geometric", built(PlainGeometric, alone, epsilon=half), free, False
    yield "plain_discrete_gaussian", built(PlainDiscreteGaussian, alone, rho=tenth), free, False
    yield "plain_laplace", built(PlainLaplace, alone, epsilon=half), free, False
    yield "congenial", built(Congenial, given, epsilon=half), free, False
    yield "congenial, whole counts", built(Congenial, given, epsilon=half), free, True
    yield "congenial_gaussian", built(CongenialGaussian, given, rho=tenth), free, False
    yield "congenial_counts", built(CongenialCounts, given, epsilon=half), free, False
    yield "congenial, both margins", built(Congenial, crossing, epsilon=half), margins, False
    small = square(3, 2)
    tight = SemiAdjacent(publish(small[0], margin("g"), margin("x")))
    counts = built(CongenialCounts, tight, epsilon=Fraction(4))
    yield "congenial_counts, both margins", counts, small, False
    yield "knorm, both margins", built(KNorm, crossing, epsilon=half), margins, False


def ratio(times: NDArray[np.float64], rng: np.random.Generator) -> tuple[float, float, float]:
    """Ratio of medians of two rows, and its 95 % bootstrap interval."""
    runs = times.shape[1]
    picks = rng.integers(0, runs, (2000, runs))
    found = np.median(times[0][picks], axis=1) / np.median(times[1][picks], axis=1)
    low, high = np.quantile(found, (0.025, 0.975))
    return float(np.median(times[0]) / np.median(times[1])), float(low), float(high)


def measure(release: Callable[[Table, Counted], Any], tables: Pair) -> dict[str, Any]:
    """Time, memory and words of releases from two tables, in turns."""
    times = np.empty((2, RUNS))
    words, peaks = np.empty((2, RUNS)), [0, 0]
    for run in range(-3, RUNS):  # three to warm up
        for side in (0, 1) if run % 2 else (1, 0):
            randomness = Counted(SEED + run + 3)
            start = time.thread_time()
            release(tables[side], randomness)
            if run >= 0:
                times[side, run] = time.thread_time() - start
                words[side, run] = randomness.taken
    for side in (0, 1):
        tracemalloc.start()
        release(tables[side], Counted(SEED))
        peaks[side] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    found, low, high = ratio(times, np.random.default_rng(SEED))
    return {
        "time ratio": found,
        "95 % from": low,
        "to": high,
        "memory ratio": peaks[0] / peaks[1],
        "words ratio": float(words[0].mean() / max(1.0, words[1].mean())),
        "same words": bool((words[0] == words[1]).all()),
        "ms": float(np.median(times) * 1e3),
    }


SMALLEST = {"RUNS": 2}


def run() -> list[dict[str, Any]]:
    """The rows of the comparison."""
    rows = []
    for label, mechanism, tables, whole in cases():

        def release(
            table: Table, randomness: Counted, m: Mechanism = mechanism, w: bool = whole
        ) -> Any:
            found = release_table(m, table, randomness)
            return found.counts if w else found

        rows.append({"release": label, **measure(release, tables)})
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
