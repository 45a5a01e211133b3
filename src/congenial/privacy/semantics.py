"""How far a belief can move, and what exact figures leave of "one record differs".

Prior to posterior (congenial-dp, Theorem 1.3): if no result is more than e^eps times as likely
under one dataset as under the other, the odds between the two change by at most e^eps. The paper's
version for one person's answer needs beliefs that are independent between people and stay so given
the published figures. That holds where one record can change alone; elsewhere it fails, and
`Pairs.guesser` says for whom the bound holds (docs/explanation/what-is-promised).

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
from congenial.pairs.pairs import Adjacency

Neighbourhood = Literal["intact", "disrupted", "destroyed"]

NEIGHBOURHOOD_WORDS: dict[Neighbourhood, str] = {
    "intact": "can change alone",
    "disrupted": "cannot change alone: the exact figures force others to change too",
    "destroyed": "cannot change at all: the exact figures leave one table only, so nothing is left "
    "to protect",
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
            "a belief must be a probability, and epsilon must not be negative.",
            remedy="Give for example belief(0.01, 1).",
        )
    grown = prior * exp(min(float(min(epsilon, 700)), 700.0))
    return grown / (1 - prior + grown)


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
