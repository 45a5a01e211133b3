"""Ledger: what has been published and spent on one population, and what may still be.

One ledger is one population. It is a history of events; the state is what they add up to:

    open      schema, unit of protection, software version
    budget    what may be spent in all
    mandates  figures published exactly
    reserve   a release is promised its share: mechanism description, guarantee, plan digest
    draw      its noise is about to be drawn: spent from here on, whatever happens
    commit    it was published, with the digest of its bundle
    abandon   given up: refunded if nothing was drawn, otherwise spent all the same
    grant     somebody's role: none, reader, reviewer, releaser, publisher, owner
    require, propose, approve, refuse, withdraw
              whether plans need an approval, and what was said about them (see `approvals`)
    upgrade   its format was brought up to date
    repair    an owner voided an event that cannot be read (see `repair`)

Releases are priced together, over the databases that agree with everything published so far, by the
joint supremum (docs/explanation/ledger.md), so a later figure re-prices earlier releases. The
ledger reads descriptions and published figures only; nothing confidential ever reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from congenial._exports import Renamed
from congenial._notebook import grid
from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import BudgetError, CongenialError, LedgerError
from congenial.figures.invariants import Invariants
from congenial.ledger.approvals import Approvals, refuse_old, refuse_unapproved
from congenial.ledger.budget import Budget
from congenial.ledger.pricing import (
    Preview,
    Prices,
    Repricing,
    account,
    check_description,
    check_schema,
    footing,
    left,
    prices,
    refusal,
    reprice,
    say,
    too_weak,
)
from congenial.ledger.refusals import refuse_figures, refuse_release
from congenial.ledger.repair import Malformed, named, refuse_unknown, refuse_unread, void
from congenial.ledger.reservation import Recordable, Reservation, append_reserve
from congenial.ledger.roles import Role, check_grant, check_role
from congenial.ledger.state import (
    Entry,
    LedgerState,
    Unit,
    check_event,
    check_figures,
    check_step,
    fold,
    join_figures,
    opening,
    refuse_other,
)
from congenial.ledger.stores.store import VERSION, Event, Log, Store, Upgrade, store_at
from congenial.pairs.adjacency import Adjacency
from congenial.privacy.composition import Loss
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee

_SHOWN = 20  # releases that a notebook shows


class Ledger:
    """The history of one population; build one with `Ledger.open`.

    Every call reads the file again, so several processes may use one ledger; calls that write hold
    the write lock from the check of the budget to the end of the record.

    Guarantee: what has been spent is priced jointly, on the databases that look alike given all
    figures published so far; a release that would pass the budget is refused before it is drawn
    (`BudgetError`). What the ledger does not see, it cannot count.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    ...     ledger = Ledger.open(Path(folder) / "ledger.sqlite", schema, budget=Budget(epsilon=4))
    ...     ledger.spent().epsilon
    Fraction(0, 1)
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: tuple[Event, LedgerState] | None = None

    @classmethod
    def open(
        cls,
        where: str | Path,
        schema: Schema | None = None,
        *,
        adjacency: Unit | None = None,
        max_rows: int | None = None,
        budget: Budget | None = None,
        create: bool = True,
        timeout: float = 10.0,
        who: str | None = None,
    ) -> Ledger:
        """Open the ledger at `where` (a path, `sqlite:///path`, or `postgresql://user@host/base`),
        or start it.

        It is started when it is absent, `schema` is given and `create` is true: "replace-one"
        unless `adjacency` or `max_rows` say so; without a budget it counts but never refuses.
        Events are written in the name of `who`, by default the system's user; on PostgreSQL in that
        of the database user, or of a user whom the login is a member of. Format 1 is refused until
        `upgrade`; formats 2 and 3 are used as they are.

        Whatever is given must agree with an existing ledger: another schema or unit is another
        population, another budget is set with `set_budget`. Raises LedgerError otherwise, and for
        every fault of the file or server; waits at most `timeout` seconds for other processes.
        """
        store = store_at(where, timeout, who)
        expect(schema, (Schema, type(None)), "the schema", "Give a Schema.", LedgerError)
        expect(budget, (Budget, type(None)), "the budget", "Give a Budget.", LedgerError)
        if not store.exists():
            if schema is None or not create:
                raise LedgerError(
                    f"there is no ledger at '{store.where}'.",
                    remedy="Check the place; `congenial publish` or `release` starts one.",
                )
            first: list[tuple[str, Any]] = [("open", opening(schema, adjacency, max_rows))]
            if budget is not None:
                first.append(("budget", budget.to_dict()))
            store.create(first)
        store.check()
        ledger = cls(store)
        refuse_other(ledger._state(), ledger.where, schema, adjacency, max_rows, budget)
        return ledger

    @staticmethod
    def exists(where: str | Path, timeout: float = 10.0) -> bool:
        """Whether there is anything at `where`; LedgerError when that cannot be found out."""
        return store_at(where, timeout).exists()

    @staticmethod
    def upgrade(where: str | Path, timeout: float = 10.0, who: str | None = None) -> Upgrade:
        """Bring the ledger at `where` to the current format, and record that.

        The whole upgrade happens or none of it. A SQLite file is copied beside itself first; on a
        server it takes the user who owns the tables, and backups are the server's.
        """
        store = store_at(where, timeout, who)
        if not store.exists():
            raise LedgerError(f"there is no ledger at '{store.where}'.", remedy="Check the place.")
        before, backup = store.upgrade()
        return Upgrade(store.where, before, VERSION, backup)

    # ---- reading -----------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """The ledger's file, or its URL without any password."""
        return self._store.where

    @property
    def identity(self) -> str:
        """What tells this ledger from any other, wherever it is kept."""
        return self._state().identity

    @property
    def version(self) -> int:
        """The version of its format when it was opened."""
        return self._store.version

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

    mandates = Renamed("figures")

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

    def _repr_html_(self) -> str:
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

    # ---- writing -----------------------------------------------------------------------------

    @contextmanager
    def _writing(self, kind: str) -> Iterator[tuple[Log, LedgerState]]:
        """One write transaction and the state it starts from, for those whose role allows it."""
        with self._store.writing() as log:
            state = self._fold(log.events)
            check_role(state.roles, log.who, kind)
            log.check = lambda event: check_event(self._fold(log.events), event)
            yield log, state

    def grant(self, who: str, role: str) -> None:
        """Give `who` a role: none, reader, reviewer, releaser, publisher or owner (see `roles`).

        Until the first grant everybody who can write the ledger may do everything; whoever makes
        it becomes an owner by it. The last owner stays one.
        """
        expect(who, str, "who", "Give the name of a user.", LedgerError)
        expect(role, str, "the role", "Give its name.", LedgerError)
        with self._writing("grant") as (log, state):
            roles = dict(state.roles)
            if role == "reviewer":
                refuse_old(self.where, self.version)
            if not roles and who != log.who:
                roles[log.who] = "owner"
                log.append("grant", None, {"who": log.who, "role": "owner"})
            if roles.get(who) != check_grant(roles, who, role):
                log.append("grant", None, {"who": who, "role": role})

    def set_budget(self, budget: Budget) -> None:
        """Set or change the budget. Raising it is allowed and stays in the history."""
        expect(budget, Budget, "the budget", "Give for example Budget(epsilon=1).", LedgerError)
        with self._writing("budget") as (log, state):
            if state.budget != budget:
                log.append("budget", None, budget.to_dict())

    def repair(
        self, event: int, digest: str, because: str, *, nothing_drawn: bool = False
    ) -> Malformed:
        """Void an event that cannot be read, named by its number and digest; owners only.

        It counts as nothing where nothing can have been drawn or published by it, and otherwise as
        unknown, after which the budget allows nothing more. `nothing_drawn` is the owner's word
        that nothing was; it may be given later, for an event voided before.
        """
        with self._writing("repair") as (log, state):
            one = named(state, event, digest)
            void(log, one, because, nothing_drawn)
        return next(each for each in self.malformed() if each.id == event)

    def publish(
        self, invariants: Invariants, accept_weaker: bool = False, plan_digest: str = ""
    ) -> Repricing:
        """Record figures as published exactly, and re-price every counted release accordingly.

        If a promise becomes weaker, LedgerError shows before and after and nothing is recorded,
        unless `accept_weaker`. Publishing the same figures again changes nothing. Refused: other
        figures for a published statistic, figures no dataset has together, statements without
        figures, any beside a promise about the whole dataset, and any under add-remove, whose pairs
        do not keep figures.
        """
        expect(invariants, Invariants, "what is published", "Use publish(...).", LedgerError)
        with self._writing("mandates") as (log, state):
            refuse_unread(state)
            refuse_unapproved(state.approvals, plan_digest, log.who)
            check_schema(state, invariants.schema)
            if state.max_rows is not None and not state.figures_kept and invariants.told:
                raise LedgerError(
                    f"this ledger counts under {state.unit}: exact figures cannot be kept there.",
                    remedy="Use a ledger with adjacency 'replace-one' or 'several rows' to publish "
                    "exact figures.",
                )
            check_figures(invariants)
            refuse_figures(state, invariants, accept_weaker)
            joined = join_figures(state.figures, invariants)
            check_figures(joined)
            new = replace(state, figures=joined)
            repricing = reprice(state, new)
            if not set(invariants.told) <= set(state.figures.told):
                if repricing.weaker and not accept_weaker:
                    raise too_weak(state, invariants, repricing)
                payload = invariants.to_dict() | {"plan_digest": plan_digest}
                log.append("mandates", None, payload)
        return repricing

    def repriced_with(self, invariants: Invariants) -> Repricing:
        """What publishing these figures would do to the promises made; records nothing."""
        state = self._state()
        joined = join_figures(state.figures, invariants)
        return reprice(state, replace(state, figures=joined))

    def reserve(
        self, description: AnyDescription, guarantee: Guarantee, name: str, plan_digest: str = ""
    ) -> Reservation:
        """Give a release its share of the budget, checked against every counted release.

        Reserves nothing and raises BudgetError when the total would exceed the budget, LedgerError
        when the promise cannot stand beside those that are counted.
        """
        expect(guarantee, Guarantee, "the promise", "Give a Guarantee.", LedgerError)
        expect(name, str, "the name", "Give text.", LedgerError)
        with self._writing("reserve") as (log, state):
            refuse_unapproved(state.approvals, plan_digest, log.who)
            _refuse(state, description, guarantee, name)
            release = append_reserve(log, description, guarantee, name, plan_digest)
        return Reservation(self, release)

    def refuse(self, description: AnyDescription, guarantee: Guarantee, name: str) -> None:
        """Raise what `reserve` would raise now; writes nothing.

        `reserve` asks again; this is for those who have data to read before.
        """
        _refuse(self._state(), description, guarantee, name)

    def record(self, release: Recordable) -> str:
        """Record a release that was drawn in memory, and return its id.

        Beyond the budget, or beside promises it cannot stand beside, it is recorded as drawn and
        abandoned, since what was drawn stays spent, and BudgetError says that it must not be
        published. A release that cannot be priced (another schema, or given figures that are not
        published), or any where plans need an approval, is not recorded and must not be published.
        """
        if not all(hasattr(release, name) for name in ("description", "guarantee", "name")):
            kind = type(release).__name__
            raise LedgerError(f"{kind} is no release.", remedy="Give what was released.")
        with self._writing("reserve") as (log, state):
            why: CongenialError | None = refusal(state, release.description, release.name)
            refuse_unapproved(state.approvals, "", log.who)
            try:
                refuse_unknown(state)
                pairs = release.guarantee.adjacency
                refuse_release(state, pairs.to_dict(), pairs.composes)
            except LedgerError as error:
                why = error
            one = append_reserve(log, release.description, release.guarantee, release.name, "")
            log.append("draw", one, {})
            if why is None:
                log.append("commit", one, {"bundle_digest": ""})
            else:
                log.append("abandon", one, {})
        if why is not None:
            raise BudgetError(
                f"{why.what} It was drawn already, so it is counted as spent.",
                remedy="Do not publish it. Reserve before drawing, or record the next one earlier.",
            )
        return one

    def abandon(self, release: str) -> None:
        """Give up a pending release: refunded if nothing was drawn, spent for good otherwise."""
        self._step(release, "abandon")

    def _step(self, release: str, kind: str, payload: dict[str, Any] | None = None) -> None:
        with self._writing(kind) as (log, state):
            entry = state.entry(release)
            if kind == "draw":
                refuse_unknown(state)
                refuse_unapproved(state.approvals, entry.plan_digest, log.who, entry.who)
            check_step(entry, kind)
            log.append(kind, release, payload or {})


def _refuse(
    state: LedgerState, description: AnyDescription, guarantee: Guarantee, name: str
) -> None:
    """BudgetError or LedgerError for a release that cannot be counted beside the others."""
    refuse_unknown(state)
    pairs = guarantee.adjacency
    refuse_release(state, pairs.to_dict(), pairs.composes)
    why = refusal(state, description, name)
    if why is not None:
        raise why
