"""By which names pairs of columns are counted, so that one fit can hold them.

A fit holds a table of every clique of its tree (`junction_tree`), which must not have more than
`LARGEST_CLIQUE` cells. A column with a coarser name enters the tree twice, as itself and by that
name: pairs are about the latter, and only the two together are as large as the column is. A pair
that does not fit by the columns themselves is counted by the finest coarser names of the schema by
which it does; where there are none it is not measured, and gets no part of the promise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod

from congenial.data.schema import Schema
from congenial.errors import StructureError
from congenial.synthesis.from_tables.junction_tree import Axes, JunctionTree

LARGEST_CLIQUE = 200_000  # cells: what a fit in seconds can hold


@dataclass(frozen=True, eq=False)
class PairAxes:
    """The pairs of the columns `names`.

    `told`: coarser names that a plan asks for. `together`: columns that a figure or a rule mentions
    together, all of which the fit must hold as they are.

    >>> wide = {"integers": [1, 900], "within": {"b": ["x"] * 900}}
    >>> schema = Schema.from_dict({"a": {"integers": [1, 900]}, "c": wide})
    >>> PairAxes(schema, ("a", "c"), {}, ()).coarsened
    {('a', 'c'): ('a', 'b')}
    """

    schema: Schema
    names: Axes
    told: Mapping[str, str]
    together: tuple[Axes, ...]

    @property
    def all(self) -> tuple[Axes, ...]:
        """The axes of every pair that a fit can hold."""
        return tuple(axes for axes in self._by_columns.values() if axes)

    @property
    def coarsened(self) -> dict[Axes, Axes]:
        """Pairs that are counted by coarser names than the plan's, because no fit holds more."""
        asked = {pair: tuple(self.told.get(name, name) for name in pair) for pair in self._columns}
        axes = self._by_columns
        return {pair: axes[pair] for pair in axes if axes[pair] and axes[pair] != asked[pair]}

    @property
    def too_large(self) -> tuple[Axes, ...]:
        """Pairs that no fit can hold, by any name there is for their columns."""
        return tuple(pair for pair, axes in self._by_columns.items() if not axes)

    @cached_property
    def nodes(self) -> dict[str, int]:
        """Levels of what the tree is about: columns, and coarser names beside their columns."""
        return self._nodes(self.all)

    def fits(self, pairs: Sequence[Axes]) -> bool:
        """Whether one fit can hold these pairs together, and all figures."""
        nodes = self._nodes(pairs)
        if prod(nodes.values()) <= LARGEST_CLIQUE:
            return True
        links = [(self._base(name), name) for name in nodes if name not in self.names]
        homes = [tuple(n if n in nodes else self._base(n) for n in axes) for axes in pairs]
        try:
            JunctionTree.of(nodes, [*self.together, *links, *homes], largest=LARGEST_CLIQUE)
        except StructureError:
            return False
        return True

    def held_together(self, pairs: Sequence[Axes]) -> int:
        """How many of these pairs one fit can hold, taken in turn."""
        accepted: list[Axes] = []
        for axes in pairs:
            if self.fits([*accepted, axes]):
                accepted.append(axes)
        return len(accepted)

    @property
    def _columns(self) -> tuple[Axes, ...]:
        """Pairs of columns with two levels or more; others would say what one column says alone."""
        vary = [name for name in self.names if self.schema.attribute(name).size > 1]
        return tuple(combinations(vary, 2))

    @cached_property
    def _by_columns(self) -> dict[Axes, Axes]:
        """The axes that each pair of columns is counted by; none where no fit can hold them."""
        return {pair: self._finest(pair) for pair in self._columns}

    def _finest(self, pair: Axes) -> Axes:
        names = [
            (self.told[name],)
            if name in self.told
            else (name, *self.schema.attribute(name).coarser)
            for name in pair
        ]
        fitting = (axes for axes in product(*names) if self.fits([axes]))
        return max(fitting, key=self.schema.size, default=())

    def _nodes(self, pairs: Sequence[Axes]) -> dict[str, int]:
        """A column that figures tie to others is enough: its cells are in the tree anyway."""
        used = dict.fromkeys(name for axes in pairs for name in axes)
        tied = {name for axes in self.together if len(axes) > 1 for name in axes}
        coarser = [n for n in used if n not in self.names and self._base(n) not in tied]
        return {name: self.schema.axis(name).size for name in (*self.names, *coarser)}

    def _base(self, name: str) -> str:
        return self.schema.axis(name).base
