"""Example 2.1: hide the share of low income earners to within an absolute error, on a count whose
law is known exactly.

The worked example of section 4.3, and what noise along one direction is worth on a grid.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.audit.property_inference import Shadows, accuracies, summary
from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.vector_statistics import Statistic, Statistics
from congenial.mechanisms.distribution.choose import KINDS, calibrate_distribution
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.properties import Scenario, share, together
from congenial.pairs.stated_laws import GaussianLaw, pmf
from congenial.papers.distribution_privacy.adult import DELTA, PAPER, QUERY, RECORDS, Adult
from congenial.papers.distribution_privacy.distribution_tables import shadows_of
from congenial.papers.item import Study
from congenial.sampling.randomness import SeededRandomness
from congenial.transport.wasserstein import distance

TENANTS = 20
RENTS = (Fraction(7, 10), Fraction(2, 5))  # chance of a tenant, of low income and of other income
SHARES = tuple(Fraction(k, 10) for k in range(11))
LOW = "income = 'low'"


def _binomial(n: int, p: Fraction) -> list[Fraction]:
    """Exact probabilities of 0 .. n successes."""
    masses = [Fraction(1)]
    for _ in range(n):
        shifted = [Fraction(0), *masses]
        masses = [(1 - p) * a + p * b for a, b in zip([*masses, Fraction(0)], shifted, strict=True)]
    return masses


def tenants(low: int) -> list[Fraction]:
    """The law of the number of tenants among 20 records of which `low` have a low income."""
    parts = (_binomial(low, RENTS[0]), _binomial(TENANTS - low, RENTS[1]))
    first, other = (np.array(part, dtype=object) for part in parts)
    return list(np.convolve(first, other))


def reach(pairs: Sequence[tuple[Scenario, Scenario]], delta: Fraction) -> float:
    """The largest W over pairs of scenarios."""
    points = list(range(TENANTS + 1))
    laws = [
        [pmf(points, tenants(hidden_group.sizes(TENANTS)[0])) for hidden_group in pair]
        for pair in pairs
    ]
    return max(float(distance(a, b, delta=delta).value) for a, b in laws)


def example21(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """Pairs of shares at most k apart, and the noise that hides which of them holds."""
    hidden = {
        f"share of low income, k = {float(k):g}": share(LOW, values=SHARES, gap=k)
        for k in (Fraction(1, 10), Fraction(1, 5), Fraction(3, 10))
    }
    wide = share(LOW, between=(Fraction(1, 5), Fraction(4, 5)))
    hidden["two properties together"] = together(
        share(LOW, values=SHARES[:6], gap=Fraction(1, 10)), wide
    )
    rows = [
        [words, len(pair.pairs), reach(pair.pairs, Fraction(0)), reach(pair.pairs, Fraction(1, 10))]
        for words, pair in hidden.items()
    ]
    return {
        "columns": ["hidden", "pairs", "W_inf = scale at epsilon = 1", "W at delta = 0.1"],
        "rows": rows,
        "notes": [
            f"{TENANTS} records; a record is a tenant with chance 0.7 at low income and 0.4 "
            "otherwise; released: the number of tenants. Shares 0, 0.1, ..., 1.",
            "Psi holds every pair of shares at most k apart, in both orders. Several properties "
            "are hidden together by taking the pairs of all of them.",
            "A tenth of the mass left out, delta = 0.1, shortens the way at most by a step.",
        ],
    }


COVARIANCE = [[22, -6], [-6, 13]]


def example_pairs() -> DistributionPairs:
    """The two laws of the example."""
    schema = Schema.from_dict({"x": {"edges": [0, 1000]}, "y": {"edges": [0, 1000]}})
    query = Statistics(schema, (Statistic.mean("x"), Statistic.mean("y")))
    laws = [
        GaussianLaw.of("theta 1", [100, 101], COVARIANCE),
        GaussianLaw.of("theta 2", [99, 102], COVARIANCE),
    ]
    return DistributionPairs.given(query, laws)


def example(study: Study) -> dict[str, Any]:  # noqa: ARG001 - needs no data and no draw
    """Noise of every mechanism in the example, with the classical and the exact constant."""
    rows: list[list[Any]] = []
    for constant in ("classical", "exact"):
        choice = calibrate_distribution(example_pairs(), 1, DELTA, constant=constant)
        for candidate in choice.candidates:
            noise = None if candidate.mechanism is None else candidate.mechanism.noise
            trace = 0.0 if noise is None else float(np.trace(noise.covariance))
            variances = (
                ""
                if noise is None
                else ", ".join(f"{abs(x):.2f}" for x in np.linalg.eigvalsh(noise.covariance))
            )
            row = [
                constant,
                KINDS[candidate.name].shorthand,
                trace,
                variances,
                candidate.error,
                candidate.reason,
            ]
            rows.append(row)
    return {
        "columns": ["constant", "mechanism", "trace", "variances", "expected l2 error", "why not"],
        "rows": rows,
        "notes": [
            "epsilon = 1, delta = 0.001. The paper finds 28.52 in both directions (ExpM) and 18.52 "
            "and 3.52 (EigM); with the exact constant the laws' own spread suffices.",
        ],
    }


def strip(values: Floats, direction: Floats, spacing: Floats) -> Floats:
    """Take noise along one direction off statistics on a grid: try every whole value of the
    largest count and keep the one for which the others are on their grids too.
    """
    units, unit_direction = values / spacing, direction / spacing
    counts = np.flatnonzero(spacing == 1)
    lead = counts[int(np.argmax(np.abs(direction[counts])))]
    whole = np.arange(RECORDS + 1)
    steps = (units[:, lead, None] - whole) / unit_direction[lead]
    back = units[:, None, :] - steps[..., None] * unit_direction
    away = np.abs(back - np.round(back)).sum(axis=2)
    chosen = np.argmin(away, axis=1)
    nearest: Floats = np.round(back[np.arange(len(values)), chosen]) * spacing
    return nearest


def grid(study: Study) -> dict[str, Any]:
    """Noise along one direction is no noise on a grid, unless it is dithered."""
    adult = Adult.read(study)
    pairs = adult.fit("income", "0.1").pairs
    shadows, rows = shadows_of(adult, study), []
    spacing = QUERY.spacing(RECORDS)
    for epsilon in (0.2, 1.0):
        for name in ("DirM (L)", "DauM (G)"):
            noise = PAPER[name](pairs, epsilon, DELTA)
            direction = noise.directions[:, 0]
            for treated, law in (("as in the paper", noise), ("dithered", noise.dithered(spacing))):
                row: list[Any] = [name, epsilon, treated]
                for attack in (None, lambda y, v=direction: strip(y, v, spacing)):
                    accuracy = _accuracy(shadows, law, attack, study)
                    row += [accuracy.value, accuracy.low, accuracy.high]
                rows.append([*row, law.mean_square() ** 0.5])
    return {
        "columns": [
            "mechanism", "epsilon", "release", "plain_attack", "plain_low", "plain_high",
            "after_stripping", "stripped_low", "stripped_high", "root_mean_square",
        ],
        "rows": rows,
        "notes": [
            "counts and averages of whole numbers live on a grid, so the laws are no Gaussians and "
            "no translations: someone who knows the grid finds the one point of it from which the "
            "noise can have come, and the attack is as good as without a mechanism.",
            "uniform noise over one step of the grid closes this; the product adds it by default "
            "where noise does not reach every direction.",
        ],
    }  # fmt: skip


def _accuracy(shadows: Shadows, noise: VectorNoise, attack: Any, study: Study) -> Any:
    randomness = SeededRandomness(study.seed + 3)

    def protect(values: Floats) -> Floats:
        released = values + noise.draw(randomness, len(values))
        return released if attack is None else attack(released)

    return summary(accuracies(shadows, protect), shadows.test.shape[1])
