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

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from congenial.data.arguments import expect
from congenial.data.schema import Schema
from congenial.errors import BudgetError, CongenialError, LedgerError
from congenial.figures.invariants import Invariants
from congenial.ledger.approvals import refuse_unapproved
from congenial.ledger.budget import Budget
from congenial.ledger.counted_unit import (
    CountedUnit,
    Unit,
    refuse_change,
)
from congenial.ledger.ledger_reading import LedgerReading
from congenial.ledger.refusals import (
    check_schema,
    refusal,
    refuse_beside,
    refuse_figures,
    refuse_release,
)
from congenial.ledger.repair import Malformed, named, refuse_unknown, refuse_unread, void
from congenial.ledger.reservation import Recordable, Reservation, append_reserve
from congenial.ledger.roles import check_grant, check_role
from congenial.ledger.spent_and_left import Repricing, reprice, too_weak
from congenial.ledger.state import (
    LedgerState,
    check_event,
    check_figures,
    check_step,
    join_figures,
    opening,
    refuse_other,
)
from congenial.ledger.stores.store import Log, store_at
from congenial.privacy.descriptions import AnyDescription
from congenial.privacy.guarantee import Guarantee


class Ledger(LedgerReading):
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
            refuse_unread(state)
            refuse_change(state, new)
            repricing = reprice(state, replace(state, unit=new))
            if new != state.unit:
                if repricing.weaker and not accept_weaker:
                    raise too_weak(state, f"to count under {new.words}", repricing)
                log.append("unit", None, new.to_dict())
        return repricing

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
            if invariants.told and not state.unit.figures_kept:
                keeps = CountedUnit("several rows", state.unit.max_rows)
                raise LedgerError(
                    f"this ledger counts under {state.unit.words}: exact figures cannot be kept "
                    "there.",
                    remedy=state.unit.way_to(keeps).replace("LEDGER", self.where),
                )
            check_figures(invariants, state.unit)
            refuse_figures(state, invariants, accept_weaker)
            joined = join_figures(state.figures, invariants)
            check_figures(joined, state.unit)
            new = replace(state, figures=joined)
            repricing = reprice(state, new)
            if not set(invariants.told) <= set(state.figures.told):
                if repricing.weaker and not accept_weaker:
                    labels = "; ".join(statement.label for statement in invariants.told)
                    raise too_weak(state, f"publishing {labels}", repricing)
                payload = invariants.to_dict() | {"plan_digest": plan_digest}
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
            refuse_unapproved(state.approvals, plan_digest, log.who)
            refuse_beside(state, description, guarantee, name)
            release = append_reserve(log, description, guarantee, name, plan_digest)
        return Reservation(self, release)

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
