"""What a ledger tells: its state, what is spent and left, and what would be refused.

Nothing here writes; every call reads the history again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from congenial.data.schema import Schema
from congenial.figures.invariants import Invariants
from congenial.ledger.approvals import Approvals, refuse_unapproved
from congenial.ledger.budget import Budget
from congenial.ledger.counted_unit import CountedUnit
from congenial.ledger.refusals import check_description, refuse_beside, refuse_release
from congenial.ledger.repair import Malformed, refuse_unknown, refuse_unread
from congenial.ledger.roles import Role
from congenial.ledger.spent_and_left import (
    Preview,
    Prices,
    Repricing,
    account,
    footing,
    left,
    prices,
    reprice,
    say,
)
from congenial.ledger.state import Entry, LedgerState, fold, join_figures
from congenial.ledger.stores.store import Event, Store
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.composition import Loss
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee

_SHOWN = 20  # releases that a notebook shows


class LedgerReading:
    """The half of a `Ledger` that only reads."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[Event, LedgerState] | None = None

    @property
    def where(self) -> str:
        """The ledger's file, or its URL without any password."""
        return self._store.where

    @property
    def identity(self) -> str:
        """What tells this ledger from any other, wherever it is kept."""
        return self._state().identity

    @property
    def who(self) -> str:
        """In whose name this process writes to the ledger."""
        return self._store.writer()

    @property
    def schema(self) -> Schema:
        """What a record of this population is."""
        return self._state().schema

    @property
    def budget(self) -> Budget | None:
        """What may be spent in all; None when nothing is ever refused."""
        return self._state().budget

    @property
    def figures(self) -> Invariants:
        """Everything published exactly so far."""
        return self._state().figures

    @property
    def unit(self) -> CountedUnit:
        """Whose content is protected: one record, or the rows of a unit."""
        return self._state().unit

    @property
    def adjacency(self) -> Adjacency:
        """The pairs of databases every release is priced over now."""
        return self._state().adjacency

    @property
    def roles(self) -> dict[str, Role]:
        """Who was granted which role; empty while everybody who can write may do everything."""
        return dict(self._state().roles)

    @property
    def approvals(self) -> Approvals:
        """Which plans were proposed, what was said about them, and whether that is required."""
        return self._state().approvals

    def refuse_unapproved(self, plan_digest: str) -> None:
        """LedgerError where approval is required and this plan has none for its releaser.

        `publish` and `reserve` ask again; this is for those who have work to do before.
        """
        refuse_unapproved(self.approvals, plan_digest, self.who)

    def events(self) -> tuple[Event, ...]:
        """The whole history, its chain of digests checked."""
        return self._store.read()

    def entries(self) -> tuple[Entry, ...]:
        """Every release, in the order of reservation, refunded ones included."""
        return self._state().entries

    def pending(self) -> tuple[Entry, ...]:
        """Releases reserved or drawn and neither committed nor abandoned."""
        return tuple(entry for entry in self.entries() if entry.pending)

    def malformed(self) -> tuple[Malformed, ...]:
        """Events that cannot be read, those an owner has voided included."""
        return self._state().malformed

    def spent(self) -> Loss:
        """Joint loss of every counted release over the current universe.

        LedgerError while an event cannot be read: the total could be too little.
        """
        state = self._state()
        refuse_unread(state)
        return state.spent

    def spent_words(self) -> str:
        """What is spent, in the budget's unit: "epsilon = 1.5", and what of it is not proved."""
        state = self._state()
        return say(state, state.spent) + footing(state)

    def prices(self) -> Prices:
        """Every counted release: its own loss when it was reserved, and now."""
        return prices(self._state())

    def left_words(self) -> str:
        """What the budget still allows, in words."""
        return left(self._state())

    def preview(self, description: AnyDescription) -> Preview:
        """What one more release would cost, and whether the budget allows it; writes nothing."""
        state = self._state()
        refuse_unknown(state)
        check_description(state, description)
        after = state.with_release(description)
        return Preview(state.spent, after, state.budget is None or state.budget.allows(after))

    def account(self, for_what: str = "") -> str:
        """What is spent of the budget, for the promise of a release: "epsilon = 1 of epsilon = 4".

        `for_what` follows the amount where it counts more than that promise is about.
        """
        return account(self._state(), for_what)

    def refuse_company(self, adjacency: Mapping[str, Any]) -> None:
        """LedgerError if a promise about such pairs (as written) cannot stand beside the others.

        `reserve` and `record` ask again; this is for those who have work to do before.
        """
        refuse_release(self._state(), adjacency)

    def refuse(
        self,
        description: AnyDescription,
        guarantee: Guarantee,
        name: str,
        beside: Invariants | None = None,
    ) -> None:
        """Raise what `reserve` would raise now, or once figures `beside` are published; writes
        nothing.

        `reserve` asks again; this is for those who have data to read before.
        """
        state = self._state()
        if beside is not None:
            state = replace(state, figures=join_figures(state.figures, beside))
        refuse_beside(state, description, guarantee, name)

    def repriced_with(self, invariants: Invariants) -> Repricing:
        """What publishing these figures would do to the promises made; records nothing."""
        state = self._state()
        joined = join_figures(state.figures, invariants)
        return reprice(state, replace(state, figures=joined))

    def _repr_html_(self) -> str:
        from congenial._notebook import grid  # for notebooks alone

        state = self._state()
        rows = [(one.name, one.status, one.at, one.who) for one in state.entries[-_SHOWN:]]
        left = len(state.entries) - len(rows)
        title = f"Ledger {self.where}: {account(state)}" + (f"; {left} earlier" if left else "")
        return grid(title, ("release", "status", "at", "by"), rows)

    def _state(self) -> LedgerState:
        return self._fold(self._store.read())

    def _fold(self, events: Sequence[Event]) -> LedgerState:
        """The state; what was read before is kept if the history still starts with it.

        A digest stands for all events up to its own, so comparing one is enough.
        """
        last, state = self._known or (events[0], None)
        if len(events) < last.id or events[last.id - 1] != last:
            state = None
        if state is None:
            state = fold(events)
        elif len(events) > last.id:
            state = fold(events[last.id :], state)
        self._known = (events[-1], state)
        return state
