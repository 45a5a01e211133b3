"""The state of a ledger as the fold of its events: population, budget, figures, releases."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from congenial._version import __version__
from congenial.data.schema import Schema
from congenial.errors import CongenialError, FigureError, LedgerError
from congenial.figures.figures import Figures, in_place
from congenial.figures.unit_clash import refuse_unmet
from congenial.ledger import approvals as approval
from congenial.ledger.approvals import Approvals, written_text
from congenial.ledger.budget import Budget
from congenial.ledger.counted_unit import CountedUnit, Unit, opening_unit
from congenial.ledger.repair import MalformedEvent, voided
from congenial.ledger.roles import Role, check_grant
from congenial.pairs.a_star import Reading
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import Loss, joint_loss, refuse_unpriced
from congenial.privacy.descriptions import AnyDescription, read_description
from congenial.privacy.tradeoff import Tradeoff

if TYPE_CHECKING:
    from congenial.ledger.stores.store import Event

Status = Literal["reserved", "drawn", "committed", "cancelled", "abandoned"]

# The only ways a release moves on. "cancelled" had not been drawn and is refunded; "abandoned" had.
STEPS: dict[tuple[Status, str], Status] = {
    ("reserved", "draw"): "drawn",
    ("reserved", "abandon"): "cancelled",
    ("drawn", "commit"): "committed",
    ("drawn", "abandon"): "abandoned",
}
# What a release counts as if noise may have been drawn although no step allowed it.
_IF_DRAWN: dict[Status, Status] = {"reserved": "drawn", "cancelled": "abandoned"}
VALUES = "replace-one value"  # pairs about single values of a person
RELEASE_EVENTS = ("reserve", "draw", "commit", "abandon")
_NEXT = {
    "reserved": "Mark it as drawn first, or abandon it.",
    "drawn": "Commit it or abandon it; a second draw needs its own reservation.",
    "committed": "It is published and stays spent.",
    "cancelled": "Reserve it again.",
    "abandoned": "It stays spent; reserve a new release.",
}


@dataclass(frozen=True)
class Entry:
    """One release as the ledger knows it; `guarantee` is what was promised when it was reserved.

    `status` goes from reserved to drawn to committed, or to cancelled (nothing was drawn: refunded)
    or abandoned (drawn and not published: spent). What it costs now follows from `description` and
    everything published since; `Ledger.prices` compares both. `published`, `unit`: the exact
    figures, and whose content was protected, when it was reserved.
    """

    id: str
    name: str
    at: str
    who: str
    status: Status
    description: AnyDescription = field(repr=False)
    guarantee: dict[str, Any] = field(repr=False)
    plan_digest: str = ""
    bundle_digest: str = ""
    published: Figures | None = field(default=None, repr=False)  # when it was reserved
    unit: CountedUnit | None = field(default=None, repr=False)  # when it was reserved

    @property
    def pairs(self) -> dict[str, Any]:
        """What its promise is about, as written."""
        pairs: dict[str, Any] = self.guarantee["adjacency"]
        return pairs

    @property
    def counted(self) -> bool:
        """Whether it is spent: all but those given up before anything was drawn."""
        return self.status != "cancelled"

    @property
    def was_drawn(self) -> bool:
        """Whether its noise may have been drawn; a reservation is no draw."""
        return self.status not in ("reserved", "cancelled")

    @property
    def pending(self) -> bool:
        """Whether its run has not ended, or was interrupted."""
        return self.status in ("reserved", "drawn")


@dataclass(frozen=True)
class LedgerState:
    """What the events add up to."""

    schema: Schema
    unit: CountedUnit
    figures: Figures
    budget: Budget | None = None
    entries: tuple[Entry, ...] = ()
    roles: dict[str, Role] = field(default_factory=dict)
    malformed: tuple[MalformedEvent, ...] = ()
    identity: str = ""  # digest of the first event
    approvals: Approvals = field(default_factory=Approvals)

    @cached_property
    def adjacency(self) -> Adjacency:
        """The pairs everything is priced over: databases that agree with all published figures."""
        return self.unit.adjacency(self.figures)

    @property
    def counted(self) -> tuple[Entry, ...]:
        """The releases that are spent."""
        return tuple(entry for entry in self.entries if entry.counted)

    @cached_property
    def spent(self) -> Loss:
        """Joint loss of all counted releases."""
        return self.price([entry.description for entry in self.counted])

    def price(self, descriptions: Sequence[AnyDescription]) -> Loss:
        """Joint loss of some releases over the current universe."""
        return joint_loss(descriptions, self.adjacency)

    def with_release(self, description: AnyDescription) -> Loss:
        """Joint loss of all counted releases and one more."""
        return self.price([*(entry.description for entry in self.counted), description])

    def entry(self, release: str) -> Entry:
        """The release with this id."""
        for entry in self.entries:
            if entry.id == release:
                return entry
        raise LedgerError(
            f"there is no release '{release}' in this ledger.",
            remedy="List the releases, and name one by its id.",
        )


def opening(schema: Schema, unit: Unit | None, max_rows: int | None) -> dict[str, Any]:
    """Payload of the first event; the unit and the schema check their own values."""
    return {
        "software": __version__,
        "schema": schema.to_dict(),
        "adjacency": opening_unit(schema, unit, max_rows),
    }


def refuse_other(
    state: LedgerState,
    where: str,
    schema: Schema | None,
    unit: Unit | None,
    max_rows: int | None,
    budget: Budget | None,
) -> None:
    """Refuse a request that differs from what the ledger at `where` was opened with."""
    if schema is not None and schema.digest != state.schema.digest:
        raise LedgerError(
            f"'{where}' was opened with another schema.",
            remedy="Keep that schema for what it counts. If nothing was published or drawn, "
            "delete the ledger; a new population needs a new one.",
        )
    asked = CountedUnit.of(unit, max_rows)
    if (unit is not None or max_rows is not None) and asked != state.unit:
        raise LedgerError(
            f"'{where}' counts under the unit {state.unit.words}; the request is for "
            f"{asked.words}.",
            remedy=state.unit.remedy(asked, where),
        )
    if budget is not None and budget != state.budget:
        now = state.budget.words if state.budget else "not set"
        raise LedgerError(
            f"the budget in '{where}' is {now}; the plan says {budget.words}.",
            remedy="Write the same under [budget], or change the ledger's: "
            "`congenial ledger budget` records it.",
        )


def check_step(entry: Entry, kind: str) -> None:
    """Refuse a step that the release's status does not allow."""
    if (entry.status, kind) not in STEPS:
        raise LedgerError(
            f"release '{entry.name}' ({entry.id}) is {entry.status}: no '{kind}' applies.",
            remedy=_NEXT[entry.status],
        )


def join_figures(published: Figures, new: Figures) -> Figures:
    """All figures as one set; FigureError when two of them contradict each other."""
    if not published.told:
        return new
    joined = published.join(new)
    if joined.values is None:
        return joined
    figures: dict[Any, Any] = {}
    for statement, value in zip(joined.statements, joined.values, strict=True):
        if value is None:
            continue
        # The same statistic under another label is still the same statistic.
        first = figures.setdefault((statement.terms, statement.by), (statement.label, value))
        if not np.array_equal(first[1], value):
            raise FigureError(
                f"'{first[0]}' and '{statement.label}' are the same statistic with other figures.",
                remedy="The data changed since: use a new ledger for a new population.",
            )
    return joined


def check_figures(figures: Figures, unit: CountedUnit) -> None:
    """FigureError when no dataset of such units agrees with the published figures.

    Beside an empty universe every release would cost nothing.
    """
    units = figures.of_units
    if figures.values is None or (units is not None and units.values is None):
        raise FigureError("the figures have no values yet.", remedy="Publish them first.")
    if figures.clash:
        labels = "; ".join(figures.clash)
        raise FigureError(
            f"no dataset agrees with all published figures ({labels}).",
            remedy="Compute them from one dataset; a new population needs a new ledger.",
        )
    if unit.max_rows is not None:
        refuse_unmet(figures, unit.max_rows)


# Whatever reading a payload that somebody made up can raise.
_UNREADABLE = (
    CongenialError,
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def fold(events: Iterable[Event], state: LedgerState | None = None) -> LedgerState:
    """Read a history, or what follows `state`.

    An event that is not understood is listed under `malformed` and passed over; LedgerError if it
    is the first one, which says what population this is.
    """
    releases = {} if state is None else {entry.id: entry for entry in state.entries}
    for event in events:
        try:
            if state is not None and event.kind in RELEASE_EVENTS:
                _follow(releases, state, event)
            else:
                state = _opened(event) if state is None else _after(state, event)
        except _UNREADABLE:
            if state is None:
                raise LedgerError(
                    f"event {event.id} ('{event.kind}') of the ledger cannot be read.",
                    remedy="Use the version of congenial that wrote it, or restore a good copy.",
                ) from None
            state = _passed_over(state, releases, event)
    if state is None:
        raise LedgerError("the ledger has no events.", remedy="Restore the last good copy.")
    return replace(state, entries=tuple(releases.values()))


def check_event(state: LedgerState, event: Event) -> None:
    """LedgerError when an event could not be read after it was written."""
    if len(fold([event], state).malformed) > len(state.malformed):
        raise LedgerError(
            f"this '{event.kind}' could not be read back from the ledger; it was not written.",
            remedy="Report this with the plan: the program wrote what it does not understand.",
        )


def _passed_over(state: LedgerState, releases: dict[str, Entry], event: Event) -> LedgerState:
    """The state behind an event that cannot be read; a release it may have drawn is counted."""
    entry = releases.get(str(event.release)) if event.kind in RELEASE_EVENTS else None
    if entry is not None and event.kind in ("draw", "commit"):
        releases[entry.id] = replace(entry, status=_IF_DRAWN.get(entry.status, entry.status))
    fields = (event.id, event.kind, event.digest, event.release, event.who, event.at)
    malformed = MalformedEvent(*fields, known_release=entry is not None)
    return replace(state, malformed=(*state.malformed, malformed))


def _opened(event: Event) -> LedgerState:
    payload = event.payload
    schema = Schema.from_dict(payload["schema"])
    unit = CountedUnit.from_dict(payload["adjacency"])
    return LedgerState(schema, unit, Figures(schema), identity=event.digest)


def _after(state: LedgerState, event: Event) -> LedgerState:
    payload = event.payload
    if event.kind == "budget":
        return replace(state, budget=Budget.from_dict(payload))
    if event.kind == "unit":
        return replace(state, unit=state.unit.changed(payload))
    if event.kind == "mandates":
        return replace(state, figures=_published(state, payload))
    if event.kind == "grant":
        who = payload["who"]
        role = check_grant(state.roles, who, payload["role"])
        return replace(state, roles=state.roles | {who: role})
    if event.kind in approval.KINDS:
        return replace(state, approvals=approval.after_event(state.approvals, event))
    if event.kind == "repair":
        return replace(state, malformed=voided(state.malformed, payload))
    raise ValueError(event.kind)


def _published(state: LedgerState, payload: dict[str, Any]) -> Figures:
    """All figures behind an event that adds some, if releases have a price given them."""
    joined = join_figures(state.figures, Figures.from_dict(state.schema, payload))
    if joined.told and not state.unit.figures_kept:
        raise ValueError(state.unit.words)
    if joined.of_units is not None:
        state.unit.adjacency(joined)  # raises where no proof covers figures about units
    if state.figures.told:
        joined.refuse_clash()
    return joined


def _follow(releases: dict[str, Entry], state: LedgerState, event: Event) -> None:
    """Add a release, or move it on; releases keep the order of their reservation."""
    payload, release = event.payload, written_text(event.release)
    if event.kind == "reserve":
        if not release or release in releases:
            raise ValueError(release)
        releases[release] = _reserved(state, event, payload)
        return
    old = releases[release]
    releases[release] = replace(
        old,
        status=STEPS[old.status, event.kind],
        bundle_digest=written_text(payload.get("bundle_digest", old.bundle_digest)),
    )


def drawn_given(description: AnyDescription) -> Figures:
    """The figures a release was drawn given, those about units in their place."""
    return in_place(description.support, getattr(description, "units", False))


def _reserved(state: LedgerState, event: Event, payload: dict[str, Any]) -> Entry:
    description = read_description(state.schema, payload["description"])
    if not set(drawn_given(description).told) <= {*state.figures.told, *state.figures.empty}:
        raise ValueError("noise given figures that are not published has no price")
    if state.unit.max_rows is not None:
        refuse_unpriced(description, state.adjacency)
    elif getattr(description, "units", False):
        raise ValueError("a table of units has no price where a record is a unit")
    return Entry(
        id=written_text(event.release),
        name=written_text(payload["name"]),
        at=event.at,
        who=event.who,
        status="reserved",
        description=description,
        guarantee=_promised(payload["guarantee"]),
        plan_digest=written_text(payload["plan_digest"]),
        published=state.figures,
        unit=state.unit,
    )


def _promised(guarantee: dict[str, Any]) -> dict[str, Any]:
    """What was promised, if later readers can say it; the price is that of the robust reading."""
    Tradeoff.from_dict(guarantee["tradeoff"])
    written_text(guarantee["basis"])
    pairs = guarantee["adjacency"]
    written_text(pairs["metric"])
    if pairs.get("reading") not in (None, *get_args(Reading)):
        raise ValueError(pairs["reading"])
    for name in pairs["public"] if pairs["metric"] == VALUES else ():
        written_text(name)
    return guarantee
