"""What each reading promises a person, in words: clauses of a guarantee, and of a refusal."""

from __future__ import annotations

from congenial.figures.invariants import Invariants
from congenial.pairs.a_star import Metric, Reach, Reading
from congenial.pairs.universe import RULE


def pairs_in_words(figures: Invariants, reading: Reading, metric: Metric, records: int) -> str:
    """The pairs that must look alike, as a clause after "take"."""
    kept = _agree_with(figures)
    if metric == "symmetric difference":
        return (
            f"any two datasets that agree with {kept} and differ in at most "
            f"{_counted(records, 'row')}, enough for any one person to be in it, with any answer "
            "the figures allow, or not"
        )
    if reading == "existential":
        return (
            f"any dataset that agrees with {kept}, any one person and any answer the figures allow "
            "that person, and of the datasets that agree and give the person this answer the one "
            f"that a stored rule picks ({RULE}; its table is at most {_counted(records, 'move')} "
            "away)"
        )
    people = "one person's record" if records == 1 else f"{records} people's records"
    if not figures.statements:
        return f"two datasets of the same size that differ in {people}"
    told = f"any two datasets that agree with {kept} and differ in at most {people}"
    if reading == "literal":
        return f"{told}, the literal reading, which may leave some people without a look-alike"
    return f"{told}, enough for any one person to be given any answer the figures allow"


def no_pairs_in_words(figures: Invariants) -> str:
    """The same where a* = 0."""
    return (
        f"any two datasets that agree with {_agree_with(figures)}: there is only one, so that "
        "nothing is left to protect"
    )


def left_out(reach: Reach, within: int) -> str:
    """What a number of records below a* would and would not protect."""
    kept = (
        "It would protect any two datasets that agree with the figures and differ in at most "
        f"{_counted(within, 'record')}."
    )
    if within < reach.distance.value:
        return (
            f"{kept} But somebody can be in a dataset where none within that distance gives them "
            "some answer the figures allow: that answer could be ruled out with certainty."
        )
    return (
        f"{kept} But differences of such datasets do not reach every direction in which datasets "
        "that agree with the figures differ: a release could tell some of them apart with "
        "certainty."
    )


def _agree_with(figures: Invariants) -> str:
    told = ["the published figures"] if figures.equalities else []
    told += ["the public bounds"] if figures.bounds else []
    told += ["what is impossible by definition"] if figures.zeros else []
    return " and ".join(told) or "each other in size"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
