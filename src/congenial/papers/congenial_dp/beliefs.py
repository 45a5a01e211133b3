"""Theorem 1.3, Definition 1.4, equations (5.1) and (5.2), and Example 5.2, by enumeration.

Three people with a bit each; the number of ones is released with double geometric noise, whose
sensitivity is 1 between databases that differ in one record. Noise beyond a window adds nothing:
outside the range of the counts every ratio is that of its end.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np

from congenial.papers.item import Study
from congenial.privacy.semantics import belief
from congenial.sampling.inversion import Floats

PEOPLE = 3
DATABASES = np.array(list(product((0, 1), repeat=PEOPLE)))
RESULTS = np.arange(-2, PEOPLE + 3)
ROUNDING = 1e-12


def likelihood(epsilon: float) -> Floats:
    """P(M(x) = y) up to a factor that depends on y alone: rows x, columns y."""
    return np.asarray(np.exp(-epsilon * np.abs(RESULTS - DATABASES.sum(axis=1)[:, None])))


def priors() -> dict[str, Floats]:
    """Beliefs about the three bits: independent ones, and two that tie people to each other."""
    ones = DATABASES.sum(axis=1)
    independent = 0.3**ones * 0.7 ** (PEOPLE - ones)
    alike = np.where(ones % PEOPLE == 0, 0.5, 0.0)
    leaning = np.where(ones % PEOPLE == 0, 0.45, 0.1 / 6)
    return {
        "independent, 30 % each": independent,
        "nearly the same answer": leaning,
        "the same answer": alike,
    }


def posterior_factors(prior: Floats, epsilon: float) -> Floats:
    """pi(x_1 = omega | y) / pi(x_1 = omega) for both answers and every result."""
    joint = prior[:, None] * likelihood(epsilon)
    rows = []
    for omega in (0, 1):
        has = DATABASES[:, 0] == omega
        rows.append(joint[has].sum(axis=0) / joint.sum(axis=0) / prior[has].sum())
    return np.array(rows)


def theorem13(study: Study) -> dict[str, Any]:  # noqa: ARG001 - nothing to vary
    """How far a release moves a belief about one person, for three priors."""
    rows = []
    for epsilon in (0.5, 1.0):
        for words, prior in priors().items():
            factors = posterior_factors(prior, epsilon)
            low, high = float(factors.min()), float(factors.max())
            inside = math.exp(-epsilon) - ROUNDING <= low and high <= math.exp(epsilon) + ROUNDING
            rows.append([words, epsilon, low, high, math.exp(epsilon), inside])
    return {
        "columns": ["prior", "epsilon", "least factor", "largest factor", "e^epsilon", "holds"],
        "rows": rows,
        "notes": [
            "Factor: posterior over prior of the first person's answer, over all results. Three "
            "people, the number of ones with double geometric noise.",
            "The theorem is stated for every prior. It needs beliefs that are independent between "
            "people: someone who thinks that all three answer alike learns from the others' noise "
            "too, up to e^(3 epsilon) in the odds. Where exact figures force other records to "
            "change with one, independent beliefs are not enough either: with one resident in each "
            "of n areas and exact totals the odds can move by e^(n epsilon / 2).",
            f"Sharper for a pure promise: a belief of 1 % becomes at most {belief(0.01, 1.0):.2%} "
            "at epsilon = 1 (`congenial.privacy.belief`), not 2.72 %.",
        ],
    }


def definition14(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """Towards epsilon = 0: beliefs stay, and every bounded event loses its probability."""
    prior, rows = priors()["independent, 30 % each"], []
    for epsilon in (1.0, 0.1, 0.01, 0.001):
        factors = posterior_factors(prior, epsilon)
        a = math.exp(-epsilon)
        within = 1 - 2 * a**11 / (1 + a)  # P(|U| <= 10) of double geometric noise
        rows.append([str(epsilon), float(np.abs(factors - 1).max()), within, within])
    rows.append(["0: suppression", 0.0, 0.0, 1.0])
    return {
        "columns": [
            "epsilon",
            "largest change of a belief, relative",
            "lower probability of -10 to 10",
            "upper probability of -10 to 10",
        ],
        "rows": rows,
        "notes": [
            "Count of nobody: the result is the noise. For epsilon > 0 the mechanism is a "
            "probability, lower and upper are one number, and it tends to 0 for every bounded "
            "event, while that of the whole line stays 1: there is no limiting probability.",
            "M_0 is the vacuous lower probability of (5.2): 0 below and 1 above for every event "
            "but the empty one and the whole line. Conditioning on it leaves every prior as it is, "
            "as (1.7) asks. In practice: nothing is released.",
        ],
    }


# ---- (5.1) ---------------------------------------------------------------------------------------


def neighbours(x: int) -> list[int]:
    """The database itself and those that differ in one record, by number."""
    away = np.abs(DATABASES - DATABASES[x]).sum(axis=1)
    return np.flatnonzero(away <= 1).tolist()


def odds_factor(prior: Floats, epsilon: float) -> float:
    """The largest change of the odds of any statement, when every database may have been replaced
    by a neighbour before the draw: over statements, results and replacements.
    """
    p = likelihood(epsilon)
    around = [p[neighbours(x)] for x in range(len(p))]
    most, least = (
        np.array([f(densities, axis=0) for densities in around]) for f in (np.max, np.min)
    )
    worst = 1.0
    for statement in product((False, True), repeat=len(p)):
        has = np.array(statement)
        if not prior[has].sum() or not prior[~has].sum():
            continue
        up = (prior[has] @ most[has]) / (prior[has] @ p[has])
        down = (prior[~has] @ least[~has]) / (prior[~has] @ p[~has])
        worst = max(worst, float((up / down).max()))
    return worst


def posterior_to_posterior(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """(5.1): odds after one and the same result, from the data and from a look-alike of them."""
    rows = []
    for epsilon in (0.5, 1.0):
        for words, prior in priors().items():
            factor, allowed = odds_factor(prior, epsilon), math.exp(2 * epsilon)
            rows.append([words, epsilon, factor, allowed, factor <= allowed + ROUNDING])
    return {
        "columns": ["prior", "epsilon", "largest change of odds", "e^(2 epsilon)", "holds"],
        "rows": rows,
        "notes": [
            "Every database is replaced by itself or a neighbour before the draw, in the way that "
            "changes the odds of a statement most; the largest over all 254 statements and all "
            "results. No independence of people is needed. Both the statement's weight and its "
            "opposite's may move, hence twice epsilon.",
            "The paper compares the posteriors of one person's answer given M(x) and M(x') in the "
            "same set; what the second means needs a rule such as this one.",
        ],
    }


# ---- Example 5.2 ---------------------------------------------------------------------------------

GROUP, LOW, HIGH, RECORDS = 10, 41, 50, 60


def example52(study: Study) -> dict[str, Any]:  # noqa: ARG001
    """ceil(sum / 10) with the mandate 41 <= sum <= 50: what conditioning leaves of the noise."""
    rows: list[list[Any]] = []
    for epsilon in (0.5, 1.0):
        answer = np.ceil(np.arange(RECORDS + 1) / GROUP)
        everywhere = float(np.abs(np.diff(answer)).max()) * epsilon
        allowed = answer[LOW : HIGH + 1]
        laws = _conditioned(allowed, np.unique(allowed), epsilon)
        loss = float(np.abs(np.diff(np.log(laws), axis=0)).max())
        rows.append(["all databases", epsilon, RECORDS + 1, len(np.unique(answer)), everywhere, 0])
        gamma = loss / epsilon - 1
        rows.append(["41 to 50 ones", epsilon, len(allowed), len(laws[0]), loss, gamma])
    return {
        "columns": ["universe", "epsilon", "numbers of ones", "possible answers", "loss", "gamma"],
        "rows": rows,
        "notes": [
            f"{RECORDS} people; neighbours differ in one record, so their numbers of ones in at "
            "most 1.",
            "The mandate fixes the answer, 5: the conditioned law is a point, loses nothing among "
            "conforming databases, and gamma = -1 as printed. Which of the ten numbers of ones is "
            "true is not in the release at all; that it is one of them follows from the mandate.",
        ],
    }


def _conditioned(truth: Floats, support: Floats, epsilon: float) -> Floats:
    """Double geometric laws given that the result is in `support`, one row for each true value."""
    weights = np.exp(-epsilon * np.abs(support - truth[:, None]))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))
