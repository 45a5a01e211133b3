"""The last sentence of a promise, "Spent: ...", in the only forms that a ledger gives it.

What was spent when a release was made is known to its ledger alone; that it is an amount and
nothing else can be seen.
"""

from __future__ import annotations

import re

_NUMBER = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_REASONS = (
    "Gaussian noise has no pure epsilon: the budget needs a delta",
    "a sampler with a window has no pure epsilon: the budget needs a delta",
    "a sampler with a window has no rho",
)


def is_account(text: str, counted: str = "") -> bool:
    """Whether a text is empty or what `Ledger.account` says, as a sentence; `counted` is what the
    pairs of the promise say about it.

    >>> is_account(" Spent: epsilon = 1.5 of epsilon = 4."), is_account(" Spent: little. Trust us.")
    (True, False)
    """
    plain = rf"(?:epsilon = {_NUMBER}(?: and rho = {_NUMBER})?|rho = {_NUMBER})"
    reasons = "|".join(map(re.escape, _REASONS))
    spent = rf"{plain}(?: at delta = {_NUMBER}|(?:, with windows)?(?: \((?:{reasons})\))?)"
    budget = rf"(?:epsilon = {_NUMBER}(?: at delta = {_NUMBER})?|rho = {_NUMBER})"
    silent = (
        "(?:, beside 1 release that promises nothing about persons"
        r"|, beside \d+ releases that promise nothing about persons)?"
    )
    weak = r"(?:; (?:1 release|\d+ releases) drawn by an uncertified chain, so not proved)?"
    form = rf"(?: Spent: {spent}(?:{re.escape(counted)})?(?: of {budget})?{silent}{weak}\.)?"
    return re.fullmatch(form, text) is not None
