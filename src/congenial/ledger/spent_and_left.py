"""What is spent of a budget and what is left, in words; what each release cost when it was made,
what it costs now, and what it would once a figure is published.

Figures published later leave fewer possible datasets and can make earlier releases more expensive,
and so can units that may have more rows. The budget counts what they cost now. A bundle's text
states what was promised then; where less holds now, the text is outdated.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NamedTuple

from congenial.errors import LedgerError
from congenial.ledger.budget import amount, beside, in_words
from congenial.ledger.counted_unit import CountedUnit
from congenial.ledger.refusals import ended
from congenial.ledger.repair import doubt
from congenial.ledger.state import Entry, LedgerState
from congenial.privacy.composition import Loss, added
from congenial.privacy.numbers import times_in_100
from congenial.privacy.tradeoff import Approximate, Pure, Tradeoff, ZeroConcentrated


class Preview(NamedTuple):
    """What a release would do to the total, without doing it.

    `before` and `after` are joint losses of everything counted, over the databases that agree with
    all published figures; `allowed` is whether the budget has room, always true without a budget.
    """

    before: Loss
    after: Loss
    allowed: bool


@dataclass(frozen=True)
class Priced:
    """One counted release and its own loss at two times: `then` and `now`, or before and after a
    publication. `ended`: figures published in between have ended its promise altogether.
    """

    entry: Entry
    then: Loss
    now: Loss
    ended: bool = False

    @property
    def weaker(self) -> bool:
        """Whether it promises less than before."""
        return grows(self.then, self.now)

    @property
    def outdated(self) -> bool:
        """Whether the text of its bundle no longer holds."""
        return self.weaker or self.ended


@dataclass(frozen=True)
class Repricing:
    """What a publication does to the promises made before: joint loss, and release by release."""

    before: Loss
    after: Loss
    releases: tuple[Priced, ...]
    over_budget: bool

    @property
    def weaker(self) -> bool:
        """Whether some promise became weaker."""
        return grows(self.before, self.after) or any(release.weaker for release in self.releases)


def reprice(old: LedgerState, new: LedgerState) -> Repricing:
    """Price everything that is counted over the old universe and over the new one."""
    releases = tuple(
        Priced(entry, old.price([entry.description]), new.price([entry.description]))
        for entry in old.counted
    )
    over = new.budget is not None and not new.budget.allows(new.spent)
    return Repricing(old.spent, new.spent, releases, over)


def too_weak(state: LedgerState, what: str, repricing: Repricing) -> LedgerError:
    """The refusal of a step, with what every promise was and would be."""
    each = "; ".join(
        f"'{release.entry.name}' {say(state, release.then)} -> {say(state, release.now)}"
        for release in repricing.releases
        if release.weaker
    )
    over = " That is beyond the budget." if repricing.over_budget else ""
    return LedgerError(
        f"{what} weakens what earlier releases promise: all together "
        f"{say(state, repricing.before)} before, {say(state, repricing.after)} after"
        f"{f' ({each})' if each else ''}.{over}",
        remedy="Use accept_weaker=True (--accept-weaker) if it must be done all the same.",
    )


def grows(before: Loss, after: Loss) -> bool:
    """Whether any part of the loss is larger than before."""
    return after.epsilon > before.epsilon or after.rho > before.rho


def footing(state: LedgerState) -> str:
    """What of the total is not known or not proved, as a clause to add; empty where all is."""
    return doubt(state.malformed) + _uncertified(state)


def _uncertified(state: LedgerState) -> str:
    weak = [e for e in state.counted if e.guarantee["basis"] == "uncertified chain"]
    if not weak:
        return ""
    releases = "1 release" if len(weak) == 1 else f"{len(weak)} releases"
    return f"; {releases} drawn by an uncertified chain, so not proved"


def account(state: LedgerState, for_what: str = "") -> str:
    """What is spent of the budget: "epsilon = 1 of epsilon = 4", and what must be said besides."""
    spent, budget = state.spent, state.budget
    if budget is None:
        return f"{amount(spent)}{for_what}{beside(spent)}{footing(state)}"
    return f"{budget.amount(spent)}{for_what} of {budget.words}{beside(spent)}{footing(state)}"


NO_LEDGER = "not counted, because no ledger records this release"
_AMOUNT = r"\d+(?:\.\d+)?(?:e[+-]?\d+)?"
_ONE_AMOUNT = re.compile(
    rf"(?:(?P<rho>rho)|epsilon) = (?P<value>{_AMOUNT})(?: at delta = (?P<delta>{_AMOUNT}))?"
)


def is_account(text: str, counted: str = "") -> bool:
    """Whether a text is `NO_LEDGER` or has the form of `account`; `counted` is what the pairs of
    a promise say.

    What was spent when a release was made is known to its ledger alone; that it is an amount and
    nothing else can be seen.

    >>> is_account("epsilon = 1.5 of epsilon = 4"), is_account("little. Trust us")
    (True, False)
    """
    reason = re.escape(" (Gaussian noise has no pure epsilon: the budget needs a delta)")
    plain = rf"(?:epsilon = {_AMOUNT}(?: and rho = {_AMOUNT})?|rho = {_AMOUNT})"
    spent = rf"{plain}(?: at delta = {_AMOUNT}|(?:, with windows)?(?:{reason})?)"
    budget = rf"(?:epsilon = {_AMOUNT}(?: at delta = {_AMOUNT})?|rho = {_AMOUNT})"
    silent = (
        "(?:, beside 1 release that promises nothing about persons"
        r"|, beside \d+ releases that promise nothing about persons)?"
    )
    weak = r"(?:; (?:1 release|\d+ releases) drawn by an uncertified chain, so not proved)?"
    form = rf"{spent}(?:{re.escape(counted)})?(?: of {budget})?{silent}{weak}"
    return text == NO_LEDGER or re.fullmatch(form, text) is not None


def guess_after_all(account: str, several: bool) -> str:
    """What an account means for the guess that a promise bounds: after the releases it counts,
    where there are several, and once all of its budget is spent.

    Empty where it is not one amount. Amounts are printed rounded up, so the bounds hold. A later
    release or budget changes nothing in it: it says which budget, and when.

    >>> guess_after_all("epsilon = 1.5", several=True)
    'After seeing all releases up to this one, the guess above would be right at most 82 times in \
100.'
    >>> guess_after_all("epsilon = 0.5 of epsilon = 2", several=False)
    'When this release was made, the budget for all releases was epsilon = 2: once all of it is \
spent, the guess above would be right at most 89 times in 100.'
    """
    spent, _, budget = account.partition(" of ")
    so_far, in_all = right_in_100(spent), right_in_100(budget) if budget else ""
    if so_far is None or in_all is None:
        return ""
    bounds = [("After seeing all releases up to this one", so_far)] if several else []
    if in_all:
        budget_then = f"When this release was made, the budget for all releases was {budget}"
        bounds.append((f"{budget_then}: once all of it is spent", in_all))
    rougher = " (a rough upper limit)" if spent.startswith("rho") else ""
    right = "the guess above would be right at most"
    said = [f"{when}, {right} {times} times in 100" for when, times in bounds]
    return f"{'. '.join(said)}{rougher}." if said else ""


def right_in_100(amount: str) -> str | None:
    """How often in 100 the guess between two equally likely answers is right at a total loss, at
    most; None where the text is not one amount.

    >>> right_in_100("rho = 0.5")
    '74'
    """
    match = _ONE_AMOUNT.fullmatch(amount)
    if match is None:
        return None
    value, delta = Fraction(match["value"]), match["delta"]
    tradeoff: Tradeoff = ZeroConcentrated(value) if match["rho"] else Pure(value)
    if delta:
        tradeoff = Approximate(value, float(delta))
    return times_in_100((1 + tradeoff.total_variation) / 2)


def left(state: LedgerState) -> str:
    """What the budget still allows, in words; unknown beside an event whose spending is."""
    if state.budget is None:
        return "not limited"
    unknown = any(event.counts != "nothing" for event in state.malformed)
    return "unknown" if unknown else state.budget.left(state.spent)


def say(state: LedgerState, loss: Loss) -> str:
    """A loss in the budget's unit, or as its trade-off function when there is no budget."""
    return in_words(loss) if state.budget is None else state.budget.say(loss)


@dataclass(frozen=True)
class Prices:
    """All counted releases in the order of reservation, and what they cost together now."""

    releases: tuple[Priced, ...]
    together: Loss

    @property
    def sum_then(self) -> Loss:
        """Each as when it was reserved, added up one by one."""
        return added([release.then for release in self.releases])

    @property
    def sum_now(self) -> Loss:
        """Each as it is now, added up one by one: at least what they cost together."""
        return added([release.now for release in self.releases])


def prices(state: LedgerState) -> Prices:
    """Every counted release, then and now."""
    past: dict[tuple[int, CountedUnit], LedgerState] = {}
    releases = []
    for entry in state.counted:
        figures = state.figures if entry.published is None else entry.published
        unit = entry.unit or state.unit
        then = replace(state, figures=figures, unit=unit)
        before = past.setdefault((id(figures), unit), then)  # its pairs are worked out once
        releases.append(_priced(entry, before, state))
    return Prices(tuple(releases), state.spent)


def _priced(entry: Entry, before: LedgerState, state: LedgerState) -> Priced:
    law = [entry.description]
    new = [s for s in state.figures.told if s not in before.figures.told]
    return Priced(entry, before.price(law), state.price(law), ended(state, entry.pairs, new))
