"""What the mandates fix on a released table: groups of cells whose sums are known, and free cells.

A table may leave out attributes the mandates mention (counts per county are mandated, sex by age is
released). Then a sum over released cells is known exactly when it is a sum of whole atoms: released
cells and atoms are joined into connected components, and each component's total is known.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from congenial.errors import StructureError
from congenial.public.invariants import Invariants
from congenial.public.lattice import Ints

FROZEN = -1  # the cell is known to be zero
LOOSE = -2  # no sum that contains the cell is mandated


@dataclass(frozen=True)
class Images:
    """How base cells map onto a released table, through the attributes both can see.

    `key` numbers, for each cell of the mandates' domain, the combination of released levels it
    shows; `other` is how many released cells share one key.
    """

    key: Ints
    keys: int
    other: int


def images(invariants: Invariants, names: tuple[str, ...]) -> Images:
    """Which part of the released table each cell of the mandates' domain falls in."""
    schema = invariants.schema
    key = np.zeros(invariants.cells.size, dtype=np.int64)
    keys = other = 1
    for name in names:
        axis = schema.axis(name)
        if axis.base in invariants.bases:
            key = key * len(axis.levels) + invariants.cells.spread((axis.base,), axis.of_base)
            keys *= len(axis.levels)
        else:
            other *= len(axis.levels)
    return Images(key, keys, other)


@dataclass(frozen=True)
class Support:
    """Partition of a released table's cells into groups of known total, frozen and loose cells.

    `labels` has the table's shape: a group number, FROZEN, or LOOSE. The noise of a conditioned
    mechanism sums to zero in each group and is zero on frozen cells; the set of conforming tables
    is a translate of that lattice, which is why conditioning on it has no normaliser price.
    """

    names: tuple[str, ...]
    labels: Ints = field(repr=False)
    totals: Ints | None = field(repr=False)

    @property
    def groups(self) -> int:
        """Number of groups of known total."""
        return int(self.labels.max(initial=-1)) + 1

    @cached_property
    def sizes(self) -> Ints:
        """Cells in each group."""
        flat = self.labels.reshape(-1)
        return np.bincount(flat[flat >= 0], minlength=self.groups).astype(np.int64)

    @cached_property
    def loose(self) -> int:
        """Cells that belong to no known sum."""
        return int(np.count_nonzero(self.labels == LOOSE))

    @property
    def degrees_of_freedom(self) -> int:
        """Independent directions in which conforming released tables differ."""
        return int(np.sum(np.maximum(self.sizes - 1, 0))) + self.loose

    def sums_agree(self, left: Ints, right: Ints) -> bool:
        """Whether two tables have equal group totals and agree on frozen cells."""
        difference = (left - right).reshape(-1)
        flat = self.labels.reshape(-1)
        sums = np.zeros(self.groups, dtype=np.int64)
        np.add.at(sums, flat[flat >= 0], difference[flat >= 0])
        return not np.any(sums) and not np.any(difference[flat == FROZEN])


def support(invariants: Invariants, names: tuple[str, ...]) -> Support:
    """The groups that laminar mandates fix on the table over `names`.

    Raises StructureError for mandates whose groups do not decouple, or that bound a statistic.
    """
    if invariants.structure not in ("none", "laminar"):
        raise StructureError(
            f"the mandates cross ({', '.join(s.label for s in invariants.equalities)}): neither "
            "nests in the other, and no mechanism for that is offered yet.",
            remedy="Publish nested figures, for example a count within each cell of another total.",
        )
    if invariants.bounds:
        raise StructureError(
            f"'{invariants.bounds[0].label}' only bounds a statistic; no exact mechanism keeps "
            "bounds.",
            remedy="Publish the statistic exactly, or drop the bound.",
        )
    schema = invariants.schema
    shape = tuple(len(schema.axis(name).levels) for name in names)
    seen = images(invariants, names)
    labels, totals = _components(invariants, seen)
    return Support(names, _over_table(invariants, names, shape, labels), totals)


def _components(invariants: Invariants, seen: Images) -> tuple[Ints, Ints | None]:
    """Label of each key (group, FROZEN or LOOSE) and the groups' totals."""
    known = invariants.atom_totals
    atoms = int(invariants.atoms.max(initial=0)) + 1
    people = None if known is None else np.concatenate([[1], known])  # the loose atom may hold some
    cells = invariants.atoms >= 0
    if people is not None:
        cells &= people[np.maximum(invariants.atoms, 0)] > 0
    pair = np.unique(seen.key[cells] * atoms + invariants.atoms[cells])
    key, atom = pair // atoms, pair % atoms
    graph = sp.coo_matrix(
        (np.ones(len(pair), dtype=np.int8), (key, seen.keys + atom)),
        shape=(seen.keys + atoms, seen.keys + atoms),
    )
    component = connected_components(graph, directed=False)[1].astype(np.int64)
    labels = np.full(seen.keys, FROZEN, dtype=np.int64)
    labels[key] = component[key]
    loose = component[seen.keys] if np.any(atom == 0) else -1
    fixed = (labels >= 0) & (labels != loose)
    present, numbered = np.unique(labels[fixed], return_inverse=True)
    labels[(labels == loose) & (labels >= 0)] = LOOSE
    labels[fixed] = numbered
    if people is None:
        return labels, None
    of_component = np.zeros(int(component.max(initial=0)) + 1, dtype=np.int64)
    used = np.unique(atom[atom > 0])
    np.add.at(of_component, component[seen.keys + used], people[used])
    return labels, of_component[present]


def _over_table(
    invariants: Invariants, names: tuple[str, ...], shape: tuple[int, ...], labels: Ints
) -> Ints:
    """Spread labels of keys over the released table's cells."""
    inside = [invariants.schema.axis(name).base in invariants.bases for name in names]
    keyed = tuple(size if own else 1 for size, own in zip(shape, inside, strict=True))
    return np.ascontiguousarray(np.broadcast_to(labels.reshape(keyed), shape))
