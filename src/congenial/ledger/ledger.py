"""Ledger: what has been published and spent on one population, and what may still be.

One ledger is one population. It is a history of events; the state is what they add up to:

    open      schema, unit of protection, software version
    budget    what may be spent in all
    unit      whose content is protected from here on: more than before (see `counted_unit`)
    mandates  figures published exactly
    reserve   a release is promised its share: mechanism description, guarantee, plan digest
    draw      its noise is about to be drawn: spent from here on, whatever happens
    commit    it was published, with the digest of its bundle
    abandon   given up: refunded if nothing was drawn, otherwise spent all the same
    grant     somebody's role: none, reader, reviewer, releaser, publisher, owner
    require, propose, approve, refuse, withdraw
              whether plans need an approval, and what was said about them (see `approvals`)
    repair    an owner voided an event that cannot be read (see `repair`)

Releases are priced together, over the databases that agree with everything published so far, by the
joint supremum (docs/explanation/ledger.md), so a later figure re-prices earlier releases. The
ledger reads descriptions and published figures only; nothing confidential ever reaches it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol
from uuid import uuid4

from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import BudgetError, CongenialError, LedgerError
from congenial.figures.figures import Figures
from congenial.ledger.approvals import (
    LONGEST_PLAN,
    Approvals,
    check_digest,
    check_reason,
    check_word,
    refuse_review,
    refuse_unapproved,
)
from congenial.ledger.budget import Budget
from congenial.ledger.counted_unit import CountedUnit, Unit
from congenial.ledger.reassessment import Promised
from congenial.ledger.refusals import (
    check_description,
    check_schema,
    over_budget,
    refuse_figures,
    refuse_guarantee,
    refuse_other_unit,
    refuse_promise,
    refuse_release,
)
from congenial.ledger.repair import (
    MalformedEvent,
    event_to_void,
    refuse_unknown,
    refuse_unread,
    void,
)
from congenial.ledger.roles import Role, check_grant, check_role
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
    too_weak,
)
from congenial.ledger.state import (
    Entry,
    LedgerState,
    check_event,
    check_figures,
    check_step,
    fold,
    join_figures,
    opening,
    refuse_other,
)
from congenial.ledger.stores import store_at
from congenial.ledger.stores.store import Event, Log, Store
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import Loss
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee

PATIENCE = 12  # times the usual wait, where giving up would leave a release spent or unrecorded
_SHOWN = 20  # releases that a notebook shows
_BEHIND = frozenset(  # what the house calls, hidden from completion
    [
        "account",
        "adjacency",
        "drawn_from",
        "events",
        "find",
        "identity",
        "malformed",
        "prices",
        "refuse_promise",
        "refuse_release",
        "refuse_unapproved",
        "repriced_with",
    ]
)


class Recordable(Promised, Protocol):
    """What `Ledger.record` needs of a release."""

    @property
    def name(self) -> str:
        """What the curator calls it."""


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
        self._last: tuple[Event, LedgerState] | None = None  # what was read before, and its end

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
        Events are written in the name of `who`, by default the system's user; on PostgreSQL always
        in that of the database user.

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

    # ---- what it says: every call reads the history again --------------------------------------

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
    def figures(self) -> Figures:
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
        """Which plans were proposed, what reviewers said, and whether approval is required."""
        return self._state().approvals

    def refuse_unapproved(self, plan_digest: str) -> None:
        """LedgerError where approval is required and this plan has none for its releaser.

        `publish` and `reserve` ask again; this is for those who have work to do before.
        """
        refuse_unapproved(self.approvals.plan(plan_digest), self.who)

    def events(self) -> tuple[Event, ...]:
        """The whole history, its chain of digests checked."""
        return self._store.read()

    def entries(self) -> tuple[Entry, ...]:
        """Every release, in the order of reservation, refunded ones included."""
        return self._state().entries

    def find(self, release: str) -> Entry | None:
        """The release with this id, if there is one."""
        return next((entry for entry in self.entries() if entry.id == release), None)

    def pending(self) -> tuple[Entry, ...]:
        """Releases reserved or drawn and neither committed nor abandoned."""
        return tuple(entry for entry in self.entries() if entry.pending)

    def drawn_from(self, plan_digest: str) -> tuple[str, ...]:
        """The names of releases that were drawn from a plan."""
        drawn = (entry for entry in self.entries() if entry.was_drawn)
        return tuple(entry.name for entry in drawn if entry.plan_digest == plan_digest)

    def malformed(self) -> tuple[MalformedEvent, ...]:
        """Events that cannot be read, those an owner has voided included."""
        return self._state().malformed

    def spent(self) -> Loss:
        """Joint loss of every counted release over the current universe.

        LedgerError while an event cannot be read: the total could be too little.
        """
        state = self._state()
        refuse_unread(state.malformed)
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
        refuse_unknown(state.malformed, limited=state.budget is not None)
        check_description(state, description)
        after = state.with_release(description)
        return Preview(state.spent, after, state.budget is None or state.budget.allows(after))

    def account(self, for_what: str = "") -> str:
        """What is spent of the budget, for the promise of a release: "epsilon = 1 of epsilon = 4".

        `for_what` follows the amount where it counts more than that promise is about.
        """
        return account(self._state(), for_what)

    def refuse_promise(self, adjacency: Mapping[str, Any]) -> None:
        """LedgerError if a promise about such pairs (as written) cannot stand beside the others.

        `reserve` and `record` ask again; this is for those who have work to do before.
        """
        refuse_promise(self._state(), adjacency)

    def refuse_release(
        self,
        description: AnyDescription,
        guarantee: Guarantee,
        name: str,
        beside: Figures | None = None,
    ) -> None:
        """Raise what `reserve` would raise now, or once figures `beside` are published; writes
        nothing.

        `reserve` asks again; this is for those who have data to read before.
        """
        state = self._state()
        if beside is not None:
            state = replace(state, figures=join_figures(state.figures, beside))
        refuse_release(state, description, guarantee, name)

    def repriced_with(self, figures: Figures) -> Repricing:
        """What publishing these figures would do to the promises made; records nothing."""
        state = self._state()
        joined = join_figures(state.figures, figures)
        return reprice(state, replace(state, figures=joined))

    def __repr__(self) -> str:
        name = Path(str(self.where).partition("?")[0]).name  # an address may hold a password
        return f"Ledger({name[-80:]!r})"

    def __dir__(self) -> list[str]:
        return [name for name in object.__dir__(self) if name not in _BEHIND]

    def _repr_html_(self) -> str:
        from congenial._notebook import grid  # for notebooks alone

        state = self._state()
        last_entries = state.entries[-_SHOWN:]
        rows = [(entry.name, entry.status, entry.at, entry.who) for entry in last_entries]
        earlier = len(state.entries) - len(last_entries)
        more = f"; {earlier} earlier" if earlier else ""
        title = f"Ledger {self.where}: {account(state)}{more}"
        return grid(title, ("release", "status", "at", "by"), rows)

    # ---- what is recorded ----------------------------------------------------------------------

    def grant(self, who: str, role: str) -> None:
        """Give `who` a role: none, reader, reviewer, releaser, publisher or owner (see `roles`).

        Until the first grant everybody who can write the ledger may do everything; whoever makes
        it becomes an owner by it. The last owner stays one.
        """
        expect(who, str, "who", "Give the name of a user.", LedgerError)
        expect(role, str, "the role", "Give its name.", LedgerError)
        with self._writing("grant") as (log, state):
            roles = dict(state.roles)
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

    def change_unit(
        self, adjacency: Unit, max_rows: int, *, accept_weaker: bool = False
    ) -> Repricing:
        """Count for another unit from here on, one that promises more; owners only.

        More rows per unit, or "several rows", whose look-alikes keep exact figures, in place of
        records that are replaced (where the figures tell the number of rows) or of rows that come
        and go. Every counted release is priced again over the new pairs by the joint supremum. If
        a promise becomes weaker, LedgerError shows before and after and nothing is recorded, unless
        `accept_weaker`.
        """
        expect(adjacency, str, "adjacency", "Give 'add-remove' or 'several rows'.", LedgerError)
        expect(max_rows, int, "max_rows", "Give a whole number, 1 or more.", LedgerError)
        new = CountedUnit.of(adjacency, max_rows)
        with self._writing("unit") as (log, state):
            refuse_unread(state.malformed)
            refuse_other_unit(state, new)
            repricing = reprice(state, replace(state, unit=new))
            if new != state.unit:
                if repricing.weaker and not accept_weaker:
                    raise too_weak(state, f"to count under {new.words}", repricing)
                log.append("unit", None, new.to_dict())
        return repricing

    def repair(
        self, event: int, digest: str, because: str, *, nothing_drawn: bool = False
    ) -> MalformedEvent:
        """Void an event that cannot be read, named by its number and digest; owners only.

        It counts as nothing where nothing can have been drawn or published by it, and otherwise as
        unknown, after which the budget allows nothing more. `nothing_drawn` is the owner's word
        that nothing was; it may be given later, for an event voided before.
        """
        with self._writing("repair") as (log, state):
            void(log, event_to_void(state.malformed, event, digest), because, nothing_drawn)
        return next(
            event_malformed for event_malformed in self.malformed() if event_malformed.id == event
        )

    def publish(
        self, figures: Figures, accept_weaker: bool = False, plan_digest: str = ""
    ) -> Repricing:
        """Record figures as published exactly, and re-price every counted release accordingly.

        If a promise becomes weaker, LedgerError shows before and after and nothing is recorded,
        unless `accept_weaker`. Publishing the same figures again changes nothing. Refused: other
        figures for a published statistic, figures no dataset has together, statements without
        figures, any beside a promise about the whole dataset, and any under add-remove, whose pairs
        do not keep figures.
        """
        expect(figures, Figures, "what is published", "Use publish(...).", LedgerError)
        with self._writing("mandates") as (log, state):
            refuse_unread(state.malformed)
            refuse_unapproved(state.approvals.plan(plan_digest), log.who)
            check_schema(state, figures.schema)
            if figures.told and not state.unit.figures_kept:
                keeps = CountedUnit("several rows", state.unit.max_rows)
                raise LedgerError(
                    f"this ledger counts under {state.unit.words}, which does not keep exact "
                    "figures.",
                    remedy=state.unit.remedy(keeps, self.where),
                )
            check_figures(figures, state.unit)
            refuse_figures(state, figures, accept_weaker)
            joined = join_figures(state.figures, figures)
            check_figures(joined, state.unit)
            new = replace(state, figures=joined)
            repricing = reprice(state, new)
            if not set(figures.told) <= set(state.figures.told):
                if repricing.weaker and not accept_weaker:
                    labels = "; ".join(statement.label for statement in figures.told)
                    raise too_weak(state, f"publishing {labels}", repricing)
                payload = figures.to_dict() | {"plan_digest": plan_digest}
                log.append("mandates", None, payload)
        return repricing

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
            refuse_unapproved(state.approvals.plan(plan_digest), log.who)
            refuse_release(state, description, guarantee, name)
            release = append_reserve(log, description, guarantee, name, plan_digest)
        return Reservation(self, release)

    def record(self, release: Recordable, *, pending: bool = False) -> str:
        """Record a release that was drawn in memory, and return its id; `pending`: as drawn, until
        a `Reservation` of that id commits its bundle (`congenial.save` does).

        Beyond the budget, or beside promises it cannot stand beside, it is recorded as drawn and
        abandoned, since what was drawn stays spent, and BudgetError says that it must not be
        published. A release that cannot be priced (another schema, or given figures that are not
        published), or any where plans need an approval, is not recorded and must not be published.
        """
        if not all(hasattr(release, name) for name in ("description", "guarantee", "name")):
            kind = type(release).__name__
            raise LedgerError(f"{kind} is not a release.", remedy="Give what was released.")
        drawn = (release.description, release.guarantee, release.name)
        why: CongenialError | None
        with self._writing("reserve") as (log, state):
            why = over_budget(state, release.description, release.name)
            refuse_unapproved(state.approvals.plan(""), log.who)
            try:
                refuse_guarantee(state, release.guarantee)
            except LedgerError as error:
                why = error
            entry = append_reserve(log, *drawn, "")
            log.append("draw", entry, {})
            if why is not None:
                log.append("abandon", entry, {})
            elif not pending:
                log.append("commit", entry, {"bundle_digest": ""})
        if why is not None:
            raise BudgetError(
                f"{why.what} It was drawn already, so it is counted as spent.",
                remedy="Do not publish it. Reserve before drawing, or record the next one earlier.",
            )
        return entry

    def abandon(self, release: str) -> None:
        """Give up a pending release: refunded if nothing was drawn, spent for good otherwise."""
        self._step(release, "abandon")

    # ---- approval of plans -------------------------------------------------------------------

    def require_approval(self, needed: bool = True) -> None:
        """Have only approved plans published and released from here on, or no longer; owners."""
        expect(needed, bool, "needed", "Give True or False.", LedgerError)
        with self._writing("require") as (log, state):
            if state.approvals.required != needed:
                log.append("require", None, {"approval": needed})

    def propose(
        self, plan_digest: str, text: str = "", files: Mapping[str, str] | None = None
    ) -> None:
        """Put a plan up for review; its text lets a reviewer see what changed since.

        A text that is too long for the ledger is left out: the digest stands for it.
        """
        check_digest(plan_digest)
        expect(text, str, "the plan's text", "Give text.", LedgerError)
        expect(files, (Mapping, type(None)), "the files", "Give Plan.file_digests.", LedgerError)
        with self._writing("propose") as (log, state):
            if log.who not in state.approvals.plan(plan_digest).proposers:
                text = text if len(text) <= LONGEST_PLAN else ""
                payload = {"plan_digest": plan_digest, "plan": text, "files": dict(files or {})}
                log.append("propose", None, payload)

    def review(self, plan_digest: str, word: str, because: str = "") -> None:
        """Approve or refuse a plan that somebody else proposed, or withdraw your last review.

        `word`: "approve", "refuse", which needs a reason, or "withdraw". What was drawn before
        stays drawn.
        """
        kind = check_word(word)
        check_digest(plan_digest)
        refuses = kind == "refuse"
        because = check_reason(because, "a refusal" if refuses else "a review", needed=refuses)
        with self._writing(kind) as (log, state):
            plan = state.approvals.plan(plan_digest)
            refuse_review(plan, log.who, kind)
            before = [(r.word, r.because) for r in plan.reviews if r.who == log.who]
            if before != [(kind, because)]:
                log.append(kind, None, {"plan_digest": plan_digest, "because": because})

    # ---- reading and writing the history -------------------------------------------------------

    def _state(self) -> LedgerState:
        return self._fold(self._store.read())

    def _fold(self, events: Sequence[Event]) -> LedgerState:
        """The state; what was read before is kept if the history still starts with it.

        A digest stands for all events up to its own, so comparing one is enough.
        """
        last, state = self._last or (events[0], None)
        if len(events) < last.id or events[last.id - 1] != last:
            state = None
        if state is None:
            state = fold(events)
        elif len(events) > last.id:
            state = fold(events[last.id :], state)
        self._last = (events[-1], state)
        return state

    @contextmanager
    def _writing(self, kind: str) -> Iterator[tuple[Log, LedgerState]]:
        """One write transaction and the state it starts from, for those whose role allows it."""
        with self._store.writing() as log:
            state = self._fold(log.events)
            check_role(state.roles, log.who, kind)
            log.check = lambda event: check_event(self._fold(log.events), event)
            yield log, state

    def _step(self, release: str, kind: str, payload: dict[str, Any] | None = None) -> None:
        with self._writing(kind) as (log, state):
            entry = state.entry(release)
            if kind == "draw":
                refuse_unknown(state.malformed, limited=state.budget is not None)
                plan = state.approvals.plan(entry.plan_digest)
                refuse_unapproved(plan, log.who, entry.who)
            check_step(entry, kind)
            log.append(kind, release, payload or {})


class Reservation:
    """A release's share of the budget, from promise to publication.

    Call `mark_drawn` before the noise is drawn and `commit` when the bundle is written. As a
    context manager it gives the share back when the block ends without a draw; after a draw the
    release stays spent, and pending until it is committed or abandoned.
    """

    def __init__(self, ledger: Ledger, release: str) -> None:
        self._ledger = ledger
        self._open = True
        self.id = release

    def mark_drawn(self) -> None:
        """Record that noise is about to be drawn; draw nothing if this raises.

        If it fails the share stays counted, so it waits for other writers longer than usual.
        """
        self._open = False
        try:
            with self._ledger._store.patient(PATIENCE):
                self._ledger._step(self.id, "draw")
        except LedgerError as error:
            raise type(error)(
                f"{error.what} Nothing was drawn now, but release {self.id} stays counted.",
                remedy=f"{error.remedy} `congenial ledger pending` lists it; `congenial ledger "
                "abandon` gives back what was not drawn.",
            ) from None

    def commit(self, bundle_digest: str) -> None:
        """Record that the release was published in the bundle with this digest.

        The bundle is out already, so it waits for other writers longer than usual.
        """
        with self._ledger._store.patient(PATIENCE):
            self._ledger._step(self.id, "commit", {"bundle_digest": bundle_digest})

    def __enter__(self) -> Reservation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._open:
            return
        if error is None:
            self._ledger.abandon(self.id)
        else:  # the first error is the one to see; a share not given back is merely counted
            with suppress(Exception):
                self._ledger.abandon(self.id)


def append_reserve(
    log: Log, description: AnyDescription, guarantee: Guarantee, name: str, plan_digest: str
) -> str:
    """Add the event that gives a release its share, and return the release's id."""
    release = uuid4().hex[:12]
    payload = {
        "name": name,
        "description": description.to_dict(),
        "guarantee": guarantee.to_dict(),
        "plan_digest": plan_digest,
    }
    log.append("reserve", release, payload)
    return release
