"""The experiments' data: Adult, split as in section 5.1, and the paper's mechanisms on it.

45,222 records without missing attributes: 10,000 auxiliary (attack), 10,000 testing, the rest for
modelling; five statistics of subsets of 100; a share of 0.5 - gap/2 or 0.5 + gap/2 to be hidden.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Records, Statistic, Statistics
from congenial.mechanisms.distribution import expected_value
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.fit import FittedLaws, fit_pairs, numpy_generator
from congenial.mechanisms.distribution.optimum import optimum_noise
from congenial.mechanisms.distribution.target import Target, classical_mu
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.properties import Property, share
from congenial.papers.item import Study
from congenial.sampling.randomness import SeededRandomness

FILE = "adult/adult.parquet"
RECORDS = 100
SPLIT = (10_000, 10_000)
PROPERTIES = {"income": "income = '>50K'", "work class": "workclass = 'Private'"}
DELTA = 0.001
NAMED = (  # every mechanism of the tables and figures: one colour each
    "ExpM (L)", "DirM (L)", "ExpM (G)", "EigM (G)", "DauM (G)", "optimum", "best that applies",
    "GroupDP (G)", "GroupDP (L)", "DP (G), one person",
)  # fmt: skip

SCHEMA = Schema.from_dict(
    {
        "age": {"integers": [17, 90]},
        "education_num": {"integers": [1, 16]},
        "marital_status": {"levels": ["Never-married", "other"], "other": "other"},
        "sex": {"levels": ["Female", "Male"]},
        "hours_per_week": {"integers": [1, 99]},
        "income": {"levels": ["<=50K", ">50K"]},
        "workclass": {"levels": ["Private", "other"], "other": "other"},
    }
)
QUERY = Statistics(
    SCHEMA,
    (
        Statistic.mean("age", name="average age"),
        Statistic.mean("education_num", name="average years of education"),
        Statistic.count("marital_status = 'Never-married'", name="never married"),
        Statistic.count("sex = 'Female'", name="female"),
        Statistic.mean("hours_per_week", name="average hours per week"),
    ),
)


@dataclass(frozen=True)
class Adult:
    """The three parts, and how many subsets the laws are fitted to."""

    auxiliary: Records
    testing: Records
    modelling: Records
    replications: int
    seed: int

    @classmethod
    def read(cls, study: Study) -> Adult:
        """Read, drop incomplete records and split at random."""
        import pyarrow.parquet as pq

        table = pq.read_table(study.file(FILE)).drop_null()
        with Microdata.open(table, SCHEMA) as data:
            records = QUERY.records(data, list(PROPERTIES.values()))
        order = numpy_generator(SeededRandomness(study.seed)).permutation(len(records))
        auxiliary, testing, modelling = records.split(SPLIT, order)
        return cls(auxiliary, testing, modelling, 200 if study.quick else 1000, study.seed)

    def hide(self, name: str, gap: str) -> Property:
        """The property with shares 0.5 - gap/2 and 0.5 + gap/2."""
        half = Fraction(gap) / 2
        ends = (Fraction(1, 2) - half, Fraction(1, 2) + half)
        return share(PROPERTIES[name], between=ends)

    def fit(self, name: str, gap: str) -> FittedLaws:
        """Laws fitted as in Appendix C.1."""
        return fit_pairs(
            self.hide(name, gap),
            QUERY,
            self.modelling,
            records=RECORDS,
            replications=self.replications,
            apart_from=self.testing,
            randomness=SeededRandomness(self.seed + 1),
        )


def _kappa(
    build: Callable[[DistributionPairs, float], VectorNoise],
) -> Callable[[DistributionPairs, float, float], VectorNoise]:
    return lambda pairs, epsilon, delta: build(pairs, classical_mu(epsilon, delta))


# The paper's mechanisms with its constant, valid or not; its Table 1.
PAPER: dict[str, Callable[[DistributionPairs, float, float], VectorNoise]] = {
    "ExpM (L)": lambda pairs, epsilon, _: expected_value.laplace_noise(pairs, epsilon),
    "DirM (L)": lambda pairs, epsilon, _: expected_value.directional_laplace_noise(pairs, epsilon),
    "ExpM (G)": _kappa(expected_value.gaussian_noise),
    "EigM (G)": _kappa(expected_value.eigenvector_noise),
    "DauM (G)": _kappa(expected_value.uncertain_direction_noise),
}


def optimum(pairs: DistributionPairs, epsilon: float, delta: float) -> VectorNoise:
    """The least noise, with the exact constant; none where the laws' own spread suffices."""
    return optimum_noise(pairs, Target(epsilon, delta).kappa * (1 - 2.0**-32))


def best(pairs: DistributionPairs, epsilon: float, delta: float) -> tuple[str, VectorNoise]:
    """The mechanism `calibrate_distribution` picks, by name."""
    choice = calibrate_distribution(pairs, epsilon, delta, confidence="off", dither=False)
    return choice.mechanism.name, choice.mechanism.noise


def group_noise(kind: str, epsilon: float, delta: float, people: int = RECORDS) -> VectorNoise:
    """Group differential privacy for `people` records at once (classical constant)."""
    reach = QUERY.change(RECORDS) * people
    if kind == "L":
        return VectorNoise.laplace(np.eye(len(reach)), float(reach.sum()) / epsilon)
    sigma = float(np.linalg.norm(reach)) / classical_mu(epsilon, delta)
    return VectorNoise.gaussian(sigma**2 * np.eye(len(reach)))


def drawn_errors(noise: VectorNoise, seed: int, repetitions: int) -> Floats:
    """L2 errors of independent releases; the error of additive noise does not see the data."""
    lengths: Any = np.linalg.norm(noise.draw(SeededRandomness(seed), repetitions), axis=1)
    return np.asarray(lengths)
