"""What a release says about a latent table: its values, their law, and what is public besides.

Everything here comes from the release alone. The law is one of two kinds: independent noise in
every cell (`noise`; conditioned on published sums or not, which for the latent table is the same
because the normaliser is constant; where it is not, `normaliser` works it out), or any density of
the mechanism (`density`), for example noise conditioned on counts >= 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from congenial.data.attribute import Axis
from congenial.data.table import Table
from congenial.errors import InferenceError
from congenial.inference.conforming import Conforming, refuse_unconnected
from congenial.inference.noise import Floats, Ints, Noise
from congenial.inference.normaliser import Normaliser
from congenial.mechanisms.additive import PlainContinuous, PlainDiscrete
from congenial.mechanisms.congenial import ConditionedAdditive
from congenial.mechanisms.release import Release, cell_index
from congenial.mechanisms.wasserstein.release import ValuesRelease
from congenial.privacy.description import Description, Family
from congenial.privacy.tradeoff import Pure
from congenial.public.adjacency import Adjacency
from congenial.public.invariants import Invariants
from congenial.public.support import FROZEN, LOOSE, support

MOST_KEPT = 200_000  # densities of tables remembered

Density = Callable[[Any], Floats]  # tables of shape (n, cells) -> log p(y | x), (n,)


@dataclass(frozen=True)
class Observation:
    """A released table (or vector) y, flat, and its law given the latent x.

    whole: the latent values are counts (0, 1, ...); otherwise real numbers. largest_change: bound
    on |log p(y | x) - log p(y | x')| when one record is replaced, inf where none is known.
    """

    y: Floats
    conforming: Conforming
    noise: Noise | None = None
    normaliser: Normaliser | None = field(default=None, repr=False)
    density: Density | None = field(default=None, repr=False)
    log_bound: float = math.inf
    whole: bool = True
    axes: tuple[Axis, ...] = ()
    published: Invariants | None = field(default=None, repr=False)
    largest_change: float = math.inf
    notes: tuple[str, ...] = ()

    @classmethod
    def of_values(
        cls, values: npt.ArrayLike, family: Family, scale: Fraction | float, whole: bool = True
    ) -> Observation:
        """Released numbers with independent noise of a family; `scale` as in a description.

        For values that do not come from a bundle: eps per cell for the l1 families, sigma squared
        for the Gaussian ones.
        """
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        noise = Noise.of_family(family, Fraction(scale), np.ones(len(y), dtype=np.int64))
        return cls(
            y,
            Conforming.anything(len(y)),
            noise,
            whole=whole,
            largest_change=2 * noise.largest_step,
        )

    @classmethod
    def of_density(
        cls,
        values: npt.ArrayLike,
        density: Density,
        *,
        log_bound: float = math.inf,
        largest_change: float = math.inf,
    ) -> Observation:
        """Released values with any density: `density(x)` gives log p(y | x) for each row of x.

        `log_bound` is at least the largest value of the density over x; rejection needs it.
        """
        y = np.atleast_1d(np.asarray(values, dtype=float)).reshape(-1)
        return cls(
            y,
            Conforming.anything(len(y)),
            density=density,
            log_bound=log_bound,
            largest_change=largest_change,
        )

    @property
    def cells(self) -> int:
        """Number of latent values."""
        return len(self.y)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the latent table."""
        return tuple(axis.size for axis in self.axes) or (self.cells,)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of its axes."""
        return tuple(axis.name for axis in self.axes) or ("cell",)

    @property
    def dims(self) -> tuple[tuple[str, tuple[str, ...]], ...]:
        """Axes with their levels."""
        if self.axes:
            return tuple((axis.name, axis.levels) for axis in self.axes)
        return (("cell", tuple(map(str, range(self.cells)))),)

    @cached_property
    def impossible(self) -> Any:
        """Cells that are empty by definition (structural zeros)."""
        zeros = () if self.published is None else self.published.zeros
        if self.published is None or not zeros:
            return np.zeros(self.cells, dtype=bool)
        rules = Invariants(self.published.schema, zeros, (None,) * len(zeros))
        return support(rules, self.names).labels.reshape(-1) == FROZEN

    def log_law(self, x: Any) -> Floats:
        """log p(y | x) for tables (n, cells), up to one constant; -inf where x is impossible."""
        x = np.asarray(x)
        if not self.whole:
            return self._log_density(x)
        found = np.full(len(x), -np.inf)
        possible = self.conforming.holds(x) & np.all(x >= 0, axis=-1)
        found[possible] = self._log_density(x[possible])
        return found

    def _log_density(self, x: Any) -> Floats:
        if self.density is not None:
            return self.density(x)
        assert self.noise is not None
        moving = self.conforming.moving
        weights = self.noise.at(moving).log_weight(self.y[moving] - x[:, moving])
        found = np.asarray(weights.sum(axis=-1))
        if self.normaliser is not None:
            found += self.normaliser.log_base - self.normaliser.log(x)
        return found

    @property
    def log_supremum(self) -> float:
        """At least sup over x of `log_law`: what the rejection sampler divides by.

        For additive noise the nearest counts >= 0 attain it (cells in no known sum), or weight zero
        noise bounds it.
        """
        if self.noise is None:
            return self.log_bound
        if self.normaliser is not None:
            return 0.0  # a probability
        moving = self.conforming.moving
        noise, y = self.noise.at(moving), self.y[moving]
        nearest = np.maximum(np.rint(y), 0) if self.whole else y
        free = self.conforming.labels[moving] == LOOSE
        return float(noise.log_weight(np.where(free, y - nearest, 0.0)).sum())

    def at(self, cell: int) -> Observation:
        """One cell on its own, where cells have nothing to do with each other."""
        assert self.noise is not None
        known = self.conforming
        alone = Conforming(known.labels[[cell]], known.known[[cell]], known.totals)
        return replace(
            self, y=self.y[[cell]], noise=self.noise.at([cell]), conforming=alone, axes=()
        )

    def given_totals(self, labels: Ints, totals: Ints) -> Observation:
        """The same with totals of parts known from elsewhere, such as the number of people."""
        if self.conforming.open and np.all(self.conforming.labels == LOOSE):
            return replace(self, conforming=Conforming.of_groups(labels, totals))
        known = self.conforming
        if not known.ties and np.all(known.labels[known.moving] >= 0):
            sums = np.zeros(len(totals), dtype=np.int64)
            np.add.at(sums, labels, known.start(self.y, np.full(self.cells, np.inf)))
            if np.array_equal(sums, totals):
                return self
        raise InferenceError(
            "the totals given to the model are not the published ones.",
            remedy="Leave them out: published totals are used by themselves.",
        )


def observe(
    release: Release | ValuesRelease | Observation,
    by: str | Sequence[str] | None = None,
    public: bool = True,
) -> Observation:
    """What a release says about the table over `by` (default: as released).

    `public` conditions on the published figures too (the paper's Z); without it only the released
    values are used, which is possible for mechanisms that do not contain the figures already.
    """
    if isinstance(release, Observation):
        return release
    if isinstance(release, ValuesRelease):
        return _of_values(release, by, public)
    _refuse_without_density(release)
    names = release.table if by is None else ((by,) if isinstance(by, str) else tuple(by))
    mechanism = release.mechanism
    plain = isinstance(mechanism, PlainDiscrete | PlainContinuous)
    if not public and not plain:
        raise InferenceError(
            f"'{mechanism.name}' draws tables that agree with the published figures: its values "
            "contain them, and they cannot be ignored.",
            remedy="Leave out public=False.",
        )
    axes = release.schema.axes(names)
    known = release.published if public else Invariants(release.schema)
    common: dict[str, Any] = {
        "axes": axes,
        "published": release.published,
        "notes": _notes(release),
        "conforming": Conforming.of_support(support(known, names)),
    }
    if not (plain or isinstance(mechanism, ConditionedAdditive)):
        return _of_mechanism(release, names, common)
    index = np.broadcast_to(cell_index(release.schema, release.table, names), release.values.shape)
    cells = math.prod(axis.size for axis in axes)
    y = np.zeros(cells)
    np.add.at(y, index.reshape(-1), np.asarray(release.drawn, dtype=float).reshape(-1))
    terms = _noisy_terms(release, index.reshape(-1), cells, plain)
    noise = Noise.of_family(release.description.family, release.description.scale, terms)
    return Observation(y, noise=noise, largest_change=2 * noise.largest_step, **common)


def _of_values(release: ValuesRelease, by: str | Sequence[str] | None, public: bool) -> Observation:
    """Counts released given public information: l1 noise with a normaliser, or an l2 density."""
    if not release.table:
        raise _no_density()
    names = release.table if by is None else ((by,) if isinstance(by, str) else tuple(by))
    if names != release.table or (not public and release.base.kind != "naive"):
        raise InferenceError(
            f"the law of '{release.description.mechanism}' is known for the released table, given "
            "the published figures.",
            remedy=f"Model the cells as released: by = {', '.join(release.table)}.",
        )
    known = release.published if public else Invariants(release.schema)
    y = release.counts.reshape(-1)
    change = 2 * release.description.law["factor"] * float(release.rate)
    common: dict[str, Any] = {
        "axes": release.schema.axes(names),
        "published": release.published,
        "notes": _notes(release),
        "conforming": Conforming.of_support(support(known, names)),
        "largest_change": change,
    }
    if release.loss == "l1":
        ones = np.ones(len(y), dtype=np.int64)
        noise = Noise.of_family("double_geometric", release.rate, ones)
        varies = not release.base.translation_invariant
        normaliser = Normaliser(release.base, y, release.rate) if varies else None
        return Observation(y.astype(float), noise=noise, normaliser=normaliser, **common)
    if not release.base.translation_invariant:
        raise InferenceError(
            f"the normaliser of the {release.loss} loss under a {release.base.kind} base measure "
            "is not worked out, and it changes with the true table.",
            remedy="Ask for loss = 'l1', or base_measure = 'naive'.",
        )
    rate = float(release.rate)

    def density(x: Any) -> Floats:
        return np.asarray(-rate * np.sqrt(((y - np.asarray(x)) ** 2.0).sum(axis=-1)))

    return Observation(y.astype(float), density=density, log_bound=0.0, **common)


def _notes(release: Release | ValuesRelease) -> tuple[str, ...]:
    """What a reader of the posterior should know about the release."""
    found = []
    if release.guarantee.basis == "uncertified chain":
        found.append("the release was drawn by a chain; the law of its limit is used")
    if release.published.bounds and not getattr(release.description, "nonnegative", False):
        found.append("published bounds are not used")
    return tuple(found)


def _refuse_without_density(release: Release) -> None:
    description = getattr(release, "description", None)
    if not isinstance(release, Release) or not isinstance(description, Description):
        raise _no_density()
    if description.post_processing == "project" and release.raw is None:
        raise InferenceError(
            "this bundle holds projected values only, and they have no density.",
            remedy="Ask for the values as drawn (count_as_drawn), which cost nothing more.",
        )


def _no_density() -> InferenceError:
    return InferenceError(
        "this release has no density: its law given the data is not in the bundle.",
        remedy="Only tables released by a mechanism with a known density can be used.",
    )


def _of_mechanism(release: Release, names: tuple[str, ...], common: dict[str, Any]) -> Observation:
    """Any mechanism through its own `log_density`, one table at a time."""
    if names != release.table:
        raise InferenceError(
            f"the law of '{release.description.mechanism}' is known for the released table only, "
            f"not for sums over {', '.join(n for n in release.table if n not in names) or 'it'}.",
            remedy=f"Model the cells as released: by = {', '.join(release.table)}.",
        )
    refuse_unconnected(release.description)
    mechanism, shape = release.mechanism, release.values.shape
    drawn = np.asarray(release.drawn)
    known: dict[bytes, float] = {}  # chains come back to the same tables, and a density is slow

    def density(x: Any) -> Floats:
        found = np.empty(len(x))
        for i, counts in enumerate(np.asarray(x, dtype=np.int64).reshape(-1, *shape)):
            key = counts.tobytes()
            if key not in known:
                if len(known) >= MOST_KEPT:
                    known.clear()
                table = Table(release.schema, release.table, counts)
                known[key] = float(mechanism.log_density(drawn, table))
            found[i] = known[key]
        return found

    return Observation(
        drawn.astype(float).reshape(-1),
        density=density,
        log_bound=0.0 if mechanism.normalised and not release.description.continuous else math.inf,
        largest_change=_change_of_one_record(release),
        **common,
    )


def _change_of_one_record(release: Release) -> float:
    """Bound on |log p(y | x) - log p(y | x')| for conforming tables that differ in one record.

    It is the promise's epsilon where that is pure and about replaced records; a record that is
    replaced is one removed and one added.
    """
    promise, pairs = release.guarantee.tradeoff, release.guarantee.adjacency
    if not isinstance(promise, Pure) or not isinstance(pairs, Adjacency):
        return math.inf
    steps = 1 if pairs.metric == "replace-one" else -(-2 // pairs.records)
    return steps * float(promise.eps)


def _noisy_terms(release: Release, index: Ints, cells: int, plain: bool) -> Ints:
    """Released cells with noise in each modelled cell.

    Under conditioning, a modelled cell may hold whole groups (no noise) and part of one more: then
    the noise of modelled cells is again independent noise given the groups' sums.
    """
    if plain:
        return np.bincount(index, minlength=cells)
    known = support(release.description.support, release.table)
    labels = known.labels.reshape(-1)
    groups = max(known.groups, 1)
    inside = labels >= 0
    pair, met = np.unique(index[inside] * groups + labels[inside], return_counts=True)
    cell, group = pair // groups, pair % groups
    split = met < known.sizes[group]
    split |= known.tied[group] if known.ties else False
    partial = np.bincount(cell[split], minlength=cells)
    loose = np.bincount(index[labels == LOOSE], minlength=cells)
    if np.any(partial > 1) or np.any((partial == 1) & (loose > 0)):
        raise InferenceError(
            "some of these sums mix parts of several groups of published total; the joint law of "
            "such sums is not built.",
            remedy=f"Model the cells as released: by = {', '.join(release.table)}.",
        )
    terms = loose
    np.add.at(terms, cell[split], met[split])
    return terms
