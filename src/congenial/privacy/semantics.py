"""What a promise means for beliefs: before and after a release, and with or without one's record.

Prior to posterior (congenial-dp, Theorem 1.3): if no result is more than e^eps times as likely
under one dataset as under the other, the odds between the two change by at most e^eps. The paper's
version for one person's answer needs beliefs that are independent between people; under published
figures they cannot be, so it is stated for the two datasets the promise compares.

Posterior to posterior: the likelihoods of all datasets change by at most e^eps when the release is
read as if it came from the other dataset, so the odds of any statement, under any belief, differ by
at most e^(2 eps) (both the statement's and its opposite's weight may move).
"""

from __future__ import annotations

from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from math import exp
from typing import Literal

from congenial.privacy.tradeoff import Approximate, Pure, Tradeoff
from congenial.public.adjacency import Adjacency

Neighbourhood = Literal["intact", "disrupted", "destroyed"]

NEIGHBOURHOOD_WORDS: dict[Neighbourhood, str] = {
    "intact": "intact: one person's record can change on its own",
    "disrupted": "disrupted: other people's records must change along, so that the published "
    "figures hold",
    "destroyed": "destroyed: the published figures leave one table only, and any promise about the "
    "rest is empty",
}


def belief(prior: float, epsilon: Fraction | float) -> float:
    """The most a belief of `prior` can become: p e^eps / (1 - p + p e^eps).

    >>> round(belief(0.01, 1), 4)
    0.0267
    """
    grown = prior * exp(min(float(epsilon), 700.0))
    return grown / (1 - prior + grown)


def belief_words(tradeoff: Tradeoff, delta: float, prior: float = 0.01) -> str:
    """Both readings in words; for promises with a delta, except in that share of cases."""
    pure = isinstance(tradeoff, Pure)
    own = float(tradeoff.dlt) if isinstance(tradeoff, Approximate) else delta
    epsilon = tradeoff.eps if isinstance(tradeoff, Pure | Approximate) else tradeoff.epsilon(delta)
    if not pure:
        return (
            f"Read as beliefs: two datasets that must look alike are told apart with at most "
            f"{_percent(_advantage(float(epsilon), own))} more success than by guessing."
        )
    return (
        f"Read as beliefs: someone who weighs two such datasets against each other and gives one "
        f"of them {prior:.0%} before the release gives it at most "
        f"{_percent(belief(prior, epsilon))} after it. (Without published figures this holds for "
        "one person's answer too, if beliefs about different people are independent.) And whatever "
        "anybody believes, had the release been drawn from the other dataset, the odds of any "
        f"statement concluded from it would differ by at most a factor e^{2 * float(epsilon):.3g}."
    )


def neighbourhood(adjacency: Adjacency) -> Neighbourhood:
    """What the mandates leave of "one record differs" (congenial-dp, section 5.1)."""
    if adjacency.l1(adjacency.schema.names).value == 0:
        return "destroyed"
    return "intact" if adjacency.records == 1 else "disrupted"


def _advantage(epsilon: float, delta: float) -> float:
    """Largest advantage of a test between the two: tanh(eps / 2), enlarged by delta."""
    e = exp(min(epsilon, 700.0))
    return min(1.0, (e - 1 + 2 * delta) / (e + 1))


def _percent(value: float) -> str:
    """Per cent to three digits, rounded up."""
    return f"{float(Context(prec=3, rounding=ROUND_CEILING).plus(Decimal(100 * value))):g} %"
