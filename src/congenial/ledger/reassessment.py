"""What published figures do to promises: by distance, for mechanisms that did not know of them, for
several releases, and for old ones.

semi-dp, Propositions 11, 15 and 21 and Definition 10 (corrected: C is the row space of the
figures). A mechanism with a promise f on all databases promises f composed d times between two
conforming ones that differ in d records; a mechanism whose law is known promises what `joint_loss`
finds over the differences that can occur, which is never less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from math import inf, nextafter, sqrt
from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.invariants import Invariants
from congenial.figures.statements import Statement
from congenial.figures.support import FROZEN, Support, support
from congenial.ledger.reservation import Promised
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, Supremum
from congenial.privacy.columns_error import with_sampler_error
from congenial.privacy.composition import joint_loss
from congenial.privacy.descriptions import AnyDescription, RecordDescription
from congenial.privacy.tradeoff import Pure, Tradeoff

LARGEST_PROJECTION = 2_000  # cells


def by_distance(promise: Tradeoff, records: int) -> Tradeoff:
    """What a promise for one record leaves between two databases that differ in some (Prop 11).

    >>> from congenial.privacy.tradeoff import ZeroConcentrated
    >>> by_distance(ZeroConcentrated("2.56"), 2).words
    'rho = 10.24 (zero-concentrated)'
    """
    return promise.group(records) if records else Pure(0)


@dataclass(frozen=True)
class Together:
    """Several releases under published figures, counted in two ways (Proposition 21).

    `semi_first`: each promise is composed a times, then all are put together; `composition_first`:
    the other way round, which is never better.
    """

    semi_first: Tradeoff
    composition_first: Tradeoff


def together(promises: Sequence[Tradeoff], records: int) -> Together:
    """Both ways to count releases that are known by their promise for one record only.

    Pure promises are composed as functions here: `by_distance` would give the tightest pure promise
    instead, which is weaker between its ends.
    """
    if not promises:
        return Together(Pure(0), Pure(0))
    whole = [f.piecewise() if isinstance(f, Pure) else f for f in promises]
    return Together(
        reduce(Tradeoff.tensor, [by_distance(f, records) for f in whole]),
        by_distance(reduce(Tradeoff.tensor, whole), records),
    )


def suppose(
    published: Invariants,
    *statements: Statement,
    values: Sequence[Any] | None = None,
) -> Invariants:
    """The figures, and what an adversary is supposed to know besides (section 7), as one.

    Side information of the form "so many people are ..." is one more figure. Without its values,
    everything is bounded for all values.
    """
    expect(published, Invariants, "what is published", "Use publish(...).", GuaranteeError)
    if values is None:
        return replace(published, values=None).join(Invariants(published.schema, statements))
    known = tuple(np.asarray(v, dtype=np.int64) for v in values)
    return published.join(Invariants(published.schema, statements, known))


# ---- subspace differential privacy, for comparison ---------------------------------------------


@dataclass(frozen=True)
class Subspace:
    """Delta_2 of a table outside the row space of the figures, one record replaced anywhere, and
    Delta_2 squared between look-alikes that agree with the figures.

    Gaussian noise of standard deviation sigma has mu = projected / sigma in the first reading and
    sqrt(semi) / sigma in the second.
    """

    projected: float
    semi: Supremum

    @property
    def words(self) -> str:
        """Why the first number is no promise."""
        return (
            f"Subspace differential privacy would count Delta_2 = {self.projected:.4f}; between "
            f"datasets that agree with the figures it is {sqrt(self.semi.value):.4f}. The first "
            "also compares datasets of which at most one agrees with the published figures: "
            "everybody can see which, so that they look alike in the rest protects nobody. And it "
            "does not compare those that agree and differ in more than one record."
        )


def subspace(adjacency: SemiAdjacent, names: Sequence[str]) -> Subspace:
    """Subspace differential privacy of Gaussian noise (Definition 10, corrected) beside ours.

    sup over replaced records of ||P (e_c - e_c')||_2, with P the projection off the row space of
    the figures on the released table.
    """
    known = support(adjacency.figures, tuple(names))
    size = known.labels.size
    if size > LARGEST_PROJECTION:
        raise StructureError(
            f"a table of {size} cells is too large for the projection of subspace privacy.",
            remedy=f"Compare on at most {LARGEST_PROJECTION} cells.",
        )
    rows = _row_space(known)
    projection = np.eye(size) - np.linalg.pinv(rows) @ rows
    diagonal = np.diag(projection)
    squares = diagonal[:, None] + diagonal[None, :] - 2 * projection
    projected = nextafter(sqrt(max(0.0, float(squares.max()))) * (1 + 1e-9), inf)
    return Subspace(projected, adjacency.l2_squared(tuple(names)))


def _row_space(known: Support) -> Any:
    """Sums of released cells that the figures fix, as rows."""
    flat = known.labels.reshape(-1)
    groups = (flat[None, :] == np.arange(known.groups)[:, None]).astype(float)
    ties = [tie.equations @ groups[tie.groups] for tie in known.ties]
    frozen = np.eye(len(flat))[flat == FROZEN]
    return np.vstack([groups[~known.tied], *ties, frozen])


# ---- old releases, new figures -----------------------------------------------------------------


@dataclass(frozen=True)
class Now:
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
    robust: Now
    existential: Now

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
class Old:
    """An old release: its law, the promise it was published with, and how its pairs differ.

    `Old.of` takes it from a bundle or a mechanism. Where only the promise of a release is known,
    give `reassess` that instead: it has no law to price anew, and is composed a* times.
    """

    law: AnyDescription
    advertised: Tradeoff
    metric: str = "replace-one"

    @classmethod
    def of(cls, release: Promised) -> Old:
        """A release, a bundle that was read, or the mechanism itself."""
        promise = release.guarantee
        return cls(release.description, promise.tradeoff, promise.adjacency.metric)


Known = Old | Tradeoff  # a release, or only what was advertised for one replaced record
TOGETHER = "all together"


def reassess(releases: Mapping[str, Known], figures: Invariants) -> list[Reassessed]:
    """What old releases promise now, given these figures; no data are needed.

    A release known by its law is priced over the differences that can occur; one known only by its
    advertised promise for one replaced record gets f composed a times. The last row is all of them
    together: the joint supremum of the former, put together with the latter. A release that
    promises nothing about persons leaves no promise.

    >>> from congenial import Schema, total
    >>> from congenial.privacy.tradeoff import ZeroConcentrated
    >>> schema = Schema.from_dict({"state": {"levels": ["A", "B"]}, "age": {"integers": [0, 99]}})
    >>> old = {"persons": ZeroConcentrated("2.56")}
    >>> for row in reassess(old, Invariants(schema, (total(by="state"),)))[0].rows(1e-10):
    ...     print(row["reading"], row["records"], row["promise"])
    advertised None rho = 2.56 (zero-concentrated)
    robust 2 rho = 10.24 (zero-concentrated)
    existential 1 rho = 2.56 (zero-concentrated)
    """
    expect(figures, Invariants, "what is published", "Use publish(...).", GuaranteeError)
    expect(releases, Mapping, "the releases", "Give promises by name.", GuaranteeError)
    if not releases:
        raise GuaranteeError("there is no release to reassess.", remedy="Name at least one.")
    for name, known in releases.items():
        expect(known, (Old, Tradeoff), "a release", "Give Old or a promise.", GuaranteeError)
        if isinstance(known, Old):
            _refuse_other(name, known, figures)
            if known.law.support.statements:
                figures = figures.join(known.law.support)
    readings = SemiAdjacent(figures), SemiAdjacent(figures, "existential")
    found = [_reassessed(name, [known], readings) for name, known in releases.items()]
    if len(releases) > 1:
        found.append(_reassessed(TOGETHER, list(releases.values()), readings))
    return found


def _refuse_other(name: str, known: Old, figures: Invariants) -> None:
    """Refuse a release of other records than the figures are about, or of another unit."""
    if known.law.support.schema.digest != figures.schema.digest:
        raise GuaranteeError(
            f"'{name}' was released over another schema than the plan's.",
            remedy="Reassess it with a plan that has its schema.",
        )
    if known.metric in ("symmetric difference", ROWS_OF_ONE_UNIT):
        raise GuaranteeError(
            f"'{name}' protects people with several rows (max_rows); its promise for one replaced "
            "record is not known.",
            remedy="Leave it out, or release with one row per person.",
        )


def _reassessed(
    name: str, known: list[Known], readings: tuple[SemiAdjacent, SemiAdjacent]
) -> Reassessed:
    advertised = None
    if name != TOGETHER:
        first = known[0]
        advertised = first if isinstance(first, Tradeoff) else first.advertised
    return Reassessed(name, advertised, *(_priced(known, r, readings[0]) for r in readings))


def _priced(known: list[Known], adjacency: SemiAdjacent, robust: SemiAdjacent) -> Now:
    """Joint loss of what has a law, put together with the composed promises of the rest.

    Nearby tables mean nothing to a release that sees more of a record than its cell: it is priced
    as in the robust reading.
    """
    laws = [k.law for k in known if isinstance(k, Old)]
    if any(isinstance(law, RecordDescription) for law in laws):
        adjacency = robust
    promises = [by_distance(k, adjacency.records) for k in known if isinstance(k, Tradeoff)]
    loss = joint_loss([with_sampler_error(law) for law in laws], adjacency)
    parts = [loss.tradeoff, *promises] if laws else promises
    records = adjacency.a_star
    return Now(records, reduce(Tradeoff.tensor, parts), loss.exact and records.exact)
