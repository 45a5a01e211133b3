"""What published figures do to promises: by distance, for mechanisms that did not know of them, and
for old releases.

semi-dp, Propositions 11 and 15. A mechanism with a promise f on all databases promises f composed d
times between two conforming ones that differ in d records; a mechanism whose law is known promises
what `joint_loss` finds over the differences that can occur, which is never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Protocol

import numpy as np

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.ledger.state import Entry
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, Supremum
from congenial.privacy.accounting import tensor
from congenial.privacy.composition import joint_loss
from congenial.privacy.descriptions import AnyDescription, RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure, Tradeoff


def by_distance(promise: Tradeoff, records: int) -> Tradeoff:
    """What a promise for one record leaves between two databases that differ in some (Prop 11).

    >>> from congenial.privacy.tradeoff import ZeroConcentrated
    >>> by_distance(ZeroConcentrated("2.56"), 2).words
    'rho = 10.24 (zero-concentrated)'
    """
    return promise.group(records) if records else Pure(0)


def suppose(
    published: Figures,
    *statements: Statement,
    values: Sequence[Any] | None = None,
) -> Figures:
    """The figures, and what an adversary is supposed to know besides (section 7), as one.

    Side information of the form "so many people are ..." is one more figure. Without its values,
    everything is bounded for all values.
    """
    expect(published, Figures, "what is published", "Use publish(...).", GuaranteeError)
    if values is None:
        return replace(published, values=None).join(Figures(published.schema, statements))
    figures = tuple(np.asarray(value, dtype=np.int64) for value in values)
    return published.join(Figures(published.schema, statements, figures))


# ---- old releases, new figures -----------------------------------------------------------------


class Promised(Protocol):
    """Whatever has a law and a promise: a release, or the mechanism itself."""

    @property
    def description(self) -> AnyDescription:
        """The law."""

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""


@dataclass(frozen=True)
class PresentPromise:
    """What a release promises given the figures, in one reading."""

    records: Supremum
    tradeoff: Tradeoff
    exact: bool


@dataclass(frozen=True)
class Reassessed:
    """One release, or all together: what was advertised, and what holds in each reading.

    Nothing was advertised for all together.
    """

    name: str
    advertised: Tradeoff | None
    robust: PresentPromise
    existential: PresentPromise

    def rows(self, delta: float | None = None) -> Iterator[dict[str, Any]]:
        """Plain rows: advertised, robust, existential; with epsilon at `delta` if asked."""
        for reading, records, promise in (
            ("advertised", None, self.advertised),
            ("robust", self.robust.records, self.robust.tradeoff),
            ("existential", self.existential.records, self.existential.tradeoff),
        ):
            if promise is None:
                continue
            row: dict[str, Any] = {
                "release": self.name,
                "reading": reading,
                "records": None if records is None else int(records.value),
                "footing": None if records is None else f"{records.footing}, by {records.by}",
                "promise": promise.words,
            }
            yield row if delta is None else row | {"epsilon": promise.epsilon(delta)}


@dataclass(frozen=True)
class EarlierRelease:
    """A release: its law, the promise it was published with, and how its pairs differ.

    `of` takes it from a bundle or a mechanism, `recorded` from a ledger. Where only the promise of
    a release is known, give `reassess` that instead: it has no law to price anew, and is composed
    a* times.
    """

    law: AnyDescription
    advertised: Tradeoff
    metric: str = "replace-one"

    @classmethod
    def of(cls, release: Promised) -> EarlierRelease:
        """A release, a bundle that was read, or the mechanism itself."""
        promise = release.guarantee
        return cls(release.description, promise.tradeoff, promise.adjacency.metric)

    @classmethod
    def recorded(cls, entry: Entry) -> EarlierRelease:
        """A release as a ledger has it."""
        advertised = Tradeoff.from_dict(entry.guarantee["tradeoff"])
        return cls(entry.description, advertised, entry.pairs["metric"])


Earlier = (
    EarlierRelease | Tradeoff
)  # a release, or only what was advertised for one replaced record
TOGETHER = "all together"


def reassess(releases: Mapping[str, Earlier], figures: Figures) -> list[Reassessed]:
    """What old releases promise now, given these figures; no data are needed.

    A release known by its law is priced over the differences that can occur; one known only by its
    advertised promise for one replaced record gets f composed a times. The last row is all of them
    together: the joint supremum of the former, put together with the latter. A release that
    promises nothing about persons leaves no promise.

    >>> from congenial import Schema, total
    >>> from congenial.privacy.tradeoff import ZeroConcentrated
    >>> schema = Schema.from_dict({"state": {"levels": ["A", "B"]}, "age": {"integers": [0, 99]}})
    >>> old = {"persons": ZeroConcentrated("2.56")}
    >>> for row in reassess(old, Figures(schema, (total(by="state"),)))[0].rows(1e-10):
    ...     print(row["reading"], row["records"], row["promise"])
    advertised None rho = 2.56 (zero-concentrated)
    robust 2 rho = 10.24 (zero-concentrated)
    existential 1 rho = 2.56 (zero-concentrated)
    """
    expect(figures, Figures, "what is published", "Use publish(...).", GuaranteeError)
    expect(releases, Mapping, "the releases", "Give promises by name.", GuaranteeError)
    if not releases:
        raise GuaranteeError("there is no release to reassess.", remedy="Name at least one.")
    for name, release in releases.items():
        expect(
            release,
            (EarlierRelease, Tradeoff),
            "a release",
            "Give EarlierRelease or a promise.",
            GuaranteeError,
        )
        if isinstance(release, EarlierRelease):
            _refuse_other(name, release, figures)
            if release.law.support.statements:
                figures = figures.join(release.law.support)
    readings = SemiAdjacent(figures), SemiAdjacent(figures, "existential")
    rows = [_reassessed(name, [release], readings) for name, release in releases.items()]
    if len(releases) > 1:
        rows.append(_reassessed(TOGETHER, list(releases.values()), readings))
    return rows


def _refuse_other(name: str, release: EarlierRelease, figures: Figures) -> None:
    """Refuse a release of other records than the figures are about, or of another unit."""
    if release.law.support.schema.digest != figures.schema.digest:
        raise GuaranteeError(
            f"'{name}' was released over another schema than the plan's.",
            remedy="Reassess it with a plan that has its schema.",
        )
    if release.metric in ("symmetric difference", ROWS_OF_ONE_UNIT):
        raise GuaranteeError(
            f"'{name}' protects people with several rows (max_rows); its promise for one replaced "
            "record is not known.",
            remedy="Leave it out, or release with one row per person.",
        )


def _reassessed(
    name: str, releases: list[Earlier], readings: tuple[SemiAdjacent, SemiAdjacent]
) -> Reassessed:
    advertised = None
    if name != TOGETHER:
        first = releases[0]
        advertised = first if isinstance(first, Tradeoff) else first.advertised
    return Reassessed(name, advertised, *(_priced(releases, r, readings[0]) for r in readings))


def _priced(
    releases: list[Earlier], adjacency: SemiAdjacent, robust: SemiAdjacent
) -> PresentPromise:
    """Joint loss of what has a law, put together with the composed promises of the rest.

    Nearby tables mean nothing to a release that sees more of a record than its cell: it is priced
    as in the robust reading.
    """
    laws = [release.law for release in releases if isinstance(release, EarlierRelease)]
    if any(isinstance(law, RecordDescription) for law in laws):
        adjacency = robust
    bare = [release for release in releases if isinstance(release, Tradeoff)]
    promises = [by_distance(promise, adjacency.records) for promise in bare]
    loss = joint_loss(laws, adjacency)
    parts = [loss.tradeoff, *promises] if laws else promises
    records = adjacency.a_star
    return PresentPromise(records, reduce(tensor, parts), loss.exact and records.exact)
