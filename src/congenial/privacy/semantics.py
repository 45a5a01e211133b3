"""What a promise means for beliefs: before and after a release, and with or without one's record.

Prior to posterior (congenial-dp, Theorem 1.3): if no result is more than e^eps times as likely
under one dataset as under the other, the odds between the two change by at most e^eps. The paper's
version for one person's answer needs beliefs that are independent between people; under published
figures they cannot be, so it is stated for the two datasets the promise compares.

Posterior to posterior: replace every dataset by a look-alike before the draw, and the likelihood of
one and the same result changes by at most e^eps for each of them. So the odds of any statement,
under any belief, differ by at most e^(2 eps): both the statement's and its opposite's weight may
move. Another draw is another result, and nothing bounds how far its odds are from these.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp
from typing import Literal

from congenial.data.arguments import NUMBER, expect
from congenial.errors import GuaranteeError
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number, percent
from congenial.privacy.tradeoff import Pure

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
    expect(prior, NUMBER, "prior", "Give a probability.", GuaranteeError)
    expect(epsilon, NUMBER, "epsilon", "Give a number.", GuaranteeError)
    if not 0 <= prior <= 1 or not epsilon >= 0:
        raise GuaranteeError(
            "a belief is a probability, and epsilon is not negative.",
            remedy="Give for example belief(0.01, 1).",
        )
    grown = prior * exp(min(float(min(epsilon, 700)), 700.0))
    return grown / (1 - prior + grown)


def belief_words(guarantee: Guarantee, prior: float = 0.01) -> str:
    """The promise as a change of belief; where it is not pure, as how often a guess is right.

    A guess at even odds is right at most (1 + TV) / 2 of the time, TV the largest total variation
    that the promise allows.
    """
    expect(guarantee, Guarantee, "the promise", "Give a Guarantee.", GuaranteeError)
    _ = belief(prior, 0)  # refuses what is no probability
    tradeoff, adjacency = guarantee.tradeoff, guarantee.adjacency
    if not isinstance(tradeoff, Pure):
        right = (1 + tradeoff.total_variation) / 2
        return (
            "Read as beliefs: someone who guesses from which of two such datasets the release was "
            f"drawn is right at most {percent(right)} of the time (50 % is chance)."
        )
    alone = adjacency.metric == "replace-one" and not adjacency.figures.statements
    person = (
        " This holds for one person's answer too, if beliefs about different people are "
        "independent."
        if alone
        else ""
    )
    return (
        f"Read as beliefs: someone who weighs two such datasets against each other and gives one "
        f"of them {prior:.0%} before the release gives it at most "
        f"{percent(belief(prior, tradeoff.eps))} after it.{person} And whatever anybody believes: "
        "if every dataset had been replaced by such a look-alike before the draw, the same result "
        "would give any statement odds that differ by at most a factor "
        f"e^{number(2 * tradeoff.eps)}."
    )


def neighbourhood(adjacency: Adjacency) -> Neighbourhood:
    """What the figures leave of "one record differs" (congenial-dp, section 5.1).

    "intact": two look-alikes can differ in one record; "disrupted": only in several at once, so
    that the promise is about groups; "destroyed": the figures leave one database, and there is
    nothing to promise.

    >>> from congenial import ReplaceOne, Schema, SemiAdjacent, Table, publish, total
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "ill": {"levels": ["no", "yes"]}})
    >>> by_sex = publish(Table(schema, ["sex", "ill"], [[5, 2], [4, 1]]), total(by="sex"))
    >>> neighbourhood(ReplaceOne(schema)), neighbourhood(SemiAdjacent(by_sex))
    ('intact', 'disrupted')
    """
    expect(adjacency, Adjacency, "the adjacency", "Give for example ReplaceOne(schema).")
    if adjacency.nothing_left:
        return "destroyed"
    return "intact" if adjacency.records == 1 else "disrupted"
