"""Double geometric noise at every node of a hierarchy, some nodes mandated, as a tree of sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from congenial.errors import StructureError
from congenial.sampling.discrete import DoubleGeometric
from congenial.sampling.inversion import Ints, positive_rational
from congenial.sampling.tree.cells_and_sums import NestedSums, NoisyCells
from congenial.sampling.tree.tilts import NO_BOUND
from congenial.sampling.tree.tree_of_sums import TreeOfSums


def hierarchical_noise(
    parents: npt.ArrayLike,
    rates: Sequence[Fraction | int],
    rate_of: npt.ArrayLike,
    mandated: npt.ArrayLike,
) -> TreeOfSums:
    """p(u) ~ prod over nodes v of exp(-eps_v |x_v|), given x_v = 0 at mandated nodes.

    parents: for each node its parent, or -1 for a root; a node without children is a leaf. x_v is
    the sum of u over the leaves below v, and eps_v = rates[rate_of[v]], a rational >= 0, above 0 at
    leaves. Noise is one integer per leaf. The sums of the tree are the other nodes, the deepest
    first.

    >>> from congenial.sampling.randomness import SeededRandomness
    >>> nodes = [-1, 0, 0, 1, 1, 1, 2, 2]  # a root over two nodes over three and two leaves
    >>> noise = hierarchical_noise(nodes, [0, 1], [0, 1, 1, 1, 1, 1, 1, 1], [True] + [False] * 7)
    >>> int(noise.draw(SeededRandomness(1)).sum())
    0
    """
    above = np.array(parents, dtype=np.int64).reshape(-1)
    which = np.array(rate_of, dtype=np.int64).reshape(-1)
    zero = np.array(mandated, dtype=bool).reshape(-1)
    eps = [Fraction(0) if r == 0 else positive_rational("eps", r) for r in rates]
    depths = _checked_depths(above, which, zero, len(eps))
    is_leaf = np.ones(above.size, dtype=bool)
    is_leaf[above[above >= 0]] = False
    leaves = np.flatnonzero(is_leaf)
    if any(eps[r] == 0 for r in np.unique(which[leaves]).tolist()):
        raise StructureError("a leaf has eps = 0.", remedy="Give every leaf an eps above 0.")
    # a leaf that is a root: a cell of half the rate whose sum, itself, has the other half
    alone = is_leaf & (above < 0) & ~zero
    kept = np.flatnonzero(~is_leaf | alone)
    kept = kept[np.argsort(-depths[kept], kind="stable")]
    number = np.full(above.size + 1, -1)  # the last entry serves "no parent"
    number[kept] = np.arange(kept.size)
    holder = np.where(alone, np.arange(above.size), above)[leaves]
    sums = replace(
        NestedSums.fixing(np.where(zero[leaves], -1, number[holder]), kept.size),
        parent=number[above[kept]],
        fixed=zero[kept],
        rate=[eps[which[v]] / (2 if alone[v] else 1) for v in kept.tolist()],
    )
    return TreeOfSums(_leaves(eps, which[leaves], alone[leaves]), sums)


def _leaves(eps: Sequence[Fraction], rate_of: Ints, halved: npt.NDArray[np.bool_]) -> NoisyCells:
    """Unbounded cells around zero, of a law for each rate, and for half of it."""
    positive = [r for r in eps if r > 0]
    laws = [DoubleGeometric(r / share) for share in (1, 2) for r in positive]
    kind = (np.cumsum([r > 0 for r in eps]) - 1)[rate_of] + len(positive) * halved
    nothing = np.zeros(rate_of.size, dtype=np.int64)
    return NoisyCells(nothing, laws, kind, nothing - NO_BOUND, nothing + NO_BOUND)


def _checked_depths(
    parents: Ints, rate_of: Ints, mandated: npt.NDArray[np.bool_], rates: int
) -> Ints:
    n = parents.size
    sound = n > 0 and rate_of.size == n and mandated.size == n
    sound = sound and bool(np.all((parents >= -1) & (parents < n)))
    if not sound or np.any((rate_of < 0) | (rate_of >= rates)):
        raise StructureError(
            "parents, rate_of and mandated do not describe one forest.",
            remedy="Give one entry per node; parents are node numbers or -1.",
        )
    depths = np.zeros(n, dtype=np.int64)
    above = parents.copy()
    for _ in range(n + 1):
        inside = above >= 0
        if not inside.any():
            return depths
        depths[inside] += 1
        above[inside] = parents[above[inside]]
    raise StructureError("the parents form a cycle.", remedy="Give a forest.")
