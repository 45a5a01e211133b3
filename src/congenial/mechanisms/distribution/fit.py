"""Laws of the statistics from modelling data: subsets drawn so that a scenario holds.

For each scenario, `replications` subsets of n records are drawn without replacement, with exactly
the shares the scenario states; their statistics are a sample of the law, which is then taken as
Gaussian with that mean and covariance, or as it is (distribution-privacy, Appendix C.1). Modelling
data and released data must have no record in common; laws fitted to modelling data are published
with the promise, so they are a release about the people in it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import WHOLE, expect
from congenial.data.arrays import Floats
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Records, Statistics
from congenial.errors import DataError, StructureError
from congenial.pairs.distributions import DistributionPairs, Origin
from congenial.pairs.properties import Property, Scenario
from congenial.pairs.stated_laws import DiscreteLaw, GaussianLaw
from congenial.sampling.randomness import Randomness, SystemRandomness

MOST_USED = 0.95  # share of a group in one subset; above it the spread seen is too little to go by
MOST_REPLICATIONS = 10_000_000
LEAST_PER_STATISTIC = 4  # replications; fewer give a singular or wild covariance


@dataclass(frozen=True, eq=False)
class FittedLaws:
    """Fitted pairs, and the sampled statistics per scenario (modelling data, not for release)."""

    pairs: DistributionPairs
    samples: Mapping[str, Floats] = field(repr=False)

    def empirical(self) -> DistributionPairs:
        """The same pairs with the sampled laws themselves, for Wasserstein mechanisms."""
        laws = tuple(DiscreteLaw.of(law.label, self.samples[law.label]) for law in self.pairs.laws)
        origin = replace(self.pairs.origin, kind="empirical")
        return replace(self.pairs, laws=laws, origin=origin)


def fit_pairs(
    hide: Property,
    query: Statistics,
    modelling: Microdata | Records,
    *,
    records: int,
    replications: int = 1000,
    apart_from: Microdata | Records | None = None,
    randomness: Randomness | None = None,
) -> FittedLaws:
    """Fit a Gaussian law of `query` on n = `records` records to every scenario of `hide`.

    apart_from: the data to be released; refused if a record (by unit column, or by row of the same
    source) is in both. Without it, or without a unit column, that they are apart is assumed.
    """
    _check(hide, query, modelling, records)
    expect(replications, WHOLE, "replications", "Give a whole number.", StructureError)
    if replications > MOST_REPLICATIONS:
        raise StructureError(
            f"more than {MOST_REPLICATIONS:,} subsets are too many to draw.",
            remedy="1000 is usual.",
        )
    if replications < LEAST_PER_STATISTIC * (len(query.parts) + 1):
        raise StructureError(
            f"{replications} subsets are too few to fit {len(query.parts)} statistics.",
            remedy=f"Use at least {LEAST_PER_STATISTIC * (len(query.parts) + 1)}; 1000 is usual.",
        )
    source = _read(hide, query, modelling, records)
    apart = _apart(source, apart_from, modelling, query)
    generator = numpy_generator(randomness or SystemRandomness())
    samples, laws = {}, []
    for scenario in hide.scenarios:
        pools = groups(source, scenario)
        index = subsets(pools, scenario.sizes(records), replications, generator)
        drawn = source.vectors(index)
        samples[scenario.words] = drawn
        worth = _worth(pools, scenario.sizes(records), replications)
        covariance = np.cov(drawn.T, ddof=1)
        laws.append(GaussianLaw.of(scenario.words, drawn.mean(axis=0), covariance, worth))
    origin = Origin("fitted", replications, apart)
    return FittedLaws(_pairs(hide, query, laws, records, origin), samples)


def moment_pairs(
    hide: Property,
    query: Statistics,
    modelling: Microdata | Records,
    *,
    records: int,
    apart_from: Microdata | Records | None = None,
) -> DistributionPairs:
    """Gaussian laws with the exact mean and covariance of such subsets, nothing drawn.

    Means, counts and proportions only. A subset is a simple random sample of k_g records from each
    group g of N_g: mean sum k_g m_g / n, covariance sum k_g (1 - k_g/N_g) S_g / n^2 of averages.
    """
    _check(hide, query, modelling, records)
    if any(part.kind not in ("mean", "count", "proportion") for part in query.parts):
        raise StructureError(
            "the moments of quantiles and custom statistics have no closed form.",
            remedy="Use fit_pairs.",
        )
    source = _read(hide, query, modelling, records)
    apart = _apart(source, apart_from, modelling, query)
    scale = np.array([records if part.kind == "count" else 1.0 for part in query.parts])
    laws = []
    for scenario in hide.scenarios:
        mean, covariance = np.zeros(len(scale)), np.zeros((len(scale), len(scale)))
        pools = groups(source, scenario)
        for pool, size in zip(pools, scenario.sizes(records), strict=True):
            if not size:
                continue
            values = source.numbers[pool]
            mean += size * values.mean(axis=0) / records
            if len(pool) > 1:
                spread = np.atleast_2d(np.cov(values.T, ddof=1))
                covariance += size * (1 - size / len(pool)) * spread / records**2
        worth = _worth(pools, scenario.sizes(records), math.inf)
        spread = covariance * np.outer(scale, scale)
        laws.append(GaussianLaw.of(scenario.words, mean * scale, spread, worth))
    return _pairs(hide, query, laws, records, Origin("moments", 0, apart))


def _check(hide: object, query: object, modelling: object, records: object) -> None:
    """Refuse arguments of other types, such as a frame in place of opened records."""
    expect(hide, Property, "what is hidden", "Give what share(...) returns.", StructureError)
    expect(query, Statistics, "the query", "Give Statistics(schema, parts).", StructureError)
    remedy = "Give Microdata.open(frame, schema)."
    expect(modelling, (Microdata, Records), "the modelling data", remedy, StructureError)
    expect(records, WHOLE, "records", "Give a whole number.", StructureError)


def groups(source: Records, scenario: Scenario) -> list[NDArray[np.int64]]:
    """Positions of the records of each group, and of those in none; groups must be disjoint."""
    flags = np.array([source.flags[condition] for condition, _ in scenario.shares])
    if (flags.sum(axis=0) > 1).any():
        raise StructureError(
            "the groups of a scenario overlap: " + ", ".join(text for text, _ in scenario.shares),
            remedy="State shares of groups that have no record in common.",
        )
    return [np.flatnonzero(flag) for flag in (*flags, ~flags.any(axis=0))]


def subsets(
    pools: list[NDArray[np.int64]],
    sizes: tuple[int, ...],
    replications: int,
    generator: np.random.Generator,
) -> NDArray[np.int64]:
    """Random subsets with the given number of records from each pool, one row each."""
    parts = [
        pool[_without_replacement(len(pool), size, replications, generator)]
        for pool, size in zip(pools, sizes, strict=True)
        if size
    ]
    return np.concatenate(parts, axis=1)


def _without_replacement(
    population: int, size: int, rows: int, generator: np.random.Generator
) -> NDArray[np.int64]:
    """Rows of `size` distinct numbers below `population`, every set equally likely."""
    counts = np.empty((rows, size), dtype=np.int64)
    if size * size > 4 * population:  # repeats are likely: draw one by one
        for row in counts:
            row[:] = generator.choice(population, size, replace=False, shuffle=False)
        return counts
    left = np.arange(rows)
    while left.size:  # draw with repeats allowed, keep the rows that have none
        drawn = np.sort(generator.integers(population, size=(left.size, size)), axis=1)
        good = (drawn[:, 1:] != drawn[:, :-1]).all(axis=1)
        counts[left[good]] = drawn[good]
        left = left[~good]
    return counts


def numpy_generator(randomness: Randomness) -> np.random.Generator:
    """A generator keyed by the stream, for resampling; never for the noise of a release."""
    return np.random.Generator(np.random.Philox(key=randomness.words(2)))


def _worth(pools: list[NDArray[np.int64]], sizes: tuple[int, ...], replications: float) -> float:
    """Number of independent datasets the fitted mean is worth; 0 where that is not known.

    With f_g = k_g / N_g and A_g group g's part of the true covariance, subsets spread by
    C = sum (1 - f_g) A_g, and the mean of the file itself by sum f_g A_g <= max f / (1 - f) C.
    Together with the R subsets: Var(mean) <= C (1/R + f / (1 - f)).
    """
    used = max(size / len(pool) for pool, size in zip(pools, sizes, strict=True) if size)
    if used > MOST_USED:
        return 0.0
    return 1 / (1 / replications + used / (1 - used))


def _read(
    hide: Property, query: Statistics, modelling: Microdata | Records, records: int
) -> Records:
    """The modelling records, enough of them in every group."""
    if records < 2:
        raise StructureError(f"datasets of {records} records.", remedy="Give two or more.")
    source = modelling
    if isinstance(source, Microdata):
        source = query.records(source, hide.conditions)
    missing = [text for text in hide.conditions if text not in source.flags]
    if missing or source.parts != query.parts:
        raise DataError(
            "the modelling records were read for different statistics or conditions.",
            remedy="Read them with query.records(data, hide.conditions).",
        )
    for scenario in hide.scenarios:
        named = [f"with {condition}" for condition, _ in scenario.shares]
        others = [*named, f"without {' and '.join(text for text, _ in scenario.shares)}"]
        for pool, size, name in zip(
            groups(source, scenario), scenario.sizes(records), others, strict=True
        ):
            if size > len(pool):
                raise DataError(
                    f"the modelling data have too few records {name} to form a dataset of "
                    f"{records} in which {scenario.words}.",
                    remedy="Give more modelling data, fewer records, or a share the data can have.",
                )
    return source


def _apart(
    source: Records,
    released: Microdata | Records | None,
    modelling: Microdata | Records,
    query: Statistics,
) -> Literal["checked", "assumed"]:
    """ "checked" or "assumed"; DataError if a record is in both."""
    if released is None:
        return "assumed"
    if released is modelling:
        raise _overlap()
    other = released if isinstance(released, Records) else query.records(released)
    shared = source.overlaps(other)
    if shared:
        raise _overlap()
    return "assumed" if shared is None else "checked"


def _overlap() -> DataError:
    return DataError(
        "the modelling data and the released data have records in common.",
        remedy="Keep them separate: distributions fitted to released records would describe those "
        "people.",
    )


def _pairs(
    hide: Property, query: Statistics, laws: list[GaussianLaw], records: int, origin: Origin
) -> DistributionPairs:
    named = [(first.words, other.words) for first, other in hide.pairs]
    return DistributionPairs.given(
        query, laws, named, records=records, hidden=hide.words, origin=origin
    )
