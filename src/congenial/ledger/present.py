"""What each release of a ledger cost when it was made, and what it costs now.

Figures published later shrink the universe and can make earlier releases dearer. The budget counts
what they cost now. A bundle's text states what was promised then; where less holds now, the text is
outdated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from congenial.ledger.compatibility import ended
from congenial.ledger.pricing import grows
from congenial.ledger.state import Entry, LedgerState
from congenial.privacy.composition import Loss


@dataclass(frozen=True)
class Priced:
    """One counted release: its own loss when it was reserved, and over the current universe."""

    entry: Entry
    then: Loss
    now: Loss
    outdated: bool


@dataclass(frozen=True)
class Prices:
    """All counted releases in the order of reservation, and what they cost together now."""

    releases: tuple[Priced, ...]
    together: Loss

    @property
    def sum_then(self) -> Loss:
        """Each as when it was reserved, added up one by one."""
        return total([one.then for one in self.releases])

    @property
    def sum_now(self) -> Loss:
        """Each as it is now, added up one by one: at least what they cost together."""
        return total([one.now for one in self.releases])


def prices(state: LedgerState) -> Prices:
    """Every counted release, then and now."""
    past: dict[int, LedgerState] = {}
    found = []
    for entry in state.counted:
        figures = state.mandates if entry.published is None else entry.published
        before = past.setdefault(id(figures), replace(state, mandates=figures))
        found.append(_priced(entry, before, state))
    return Prices(tuple(found), state.spent)


def _priced(entry: Entry, before: LedgerState, state: LedgerState) -> Priced:
    law = [entry.description]
    then, now = before.price(law), state.price(law)
    weaker = grows(then, now)
    reading = entry.pairs.get("reading")
    if reading not in (None, "robust") and not weaker:
        weaker = grows(before.price(law, reading), state.price(law, reading))
    new = [s for s in state.mandates.statements if s not in before.mandates.statements]
    return Priced(entry, then, now, weaker or ended(state, entry.pairs, new))


def total(losses: Sequence[Loss]) -> Loss:
    """Losses added up part by part."""
    return Loss(
        epsilon=sum((one.epsilon for one in losses), Fraction(0)),
        rho=sum((one.rho for one in losses), Fraction(0)),
        discrete=any(one.discrete for one in losses),
        mass=sum((one.mass for one in losses), Fraction(0)),
        exact=all(one.exact for one in losses),
        silent=sum(one.silent for one in losses),
    )
