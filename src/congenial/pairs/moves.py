"""How far released tables move when at most so many people change their record: closed forms.

Under nested figures every difference u of look-alikes is a sum of moves of one person inside one
atom. Under other equalities it is a kernel vector of which the norm is known, and what is said is
an upper bound. docs/explanation/adjacency has the proofs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from congenial.figures.cells import stretches
from congenial.figures.figures import Figures
from congenial.figures.people import Crossing, People
from congenial.figures.support import images, key_of
from congenial.pairs.pairs import Supremum, Weighted


@dataclass(frozen=True, eq=False)
class Moves:
    """At most `moves` people change their record, all figures kept."""

    groups: People
    moves: int

    def joint_l1(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_1`.

        Nested figures: everybody makes the dearest move of their atom, twice the weights of tables
        that see it. Attained for one release and at most two moves, because moves can then be
        directed so that none cancel, or when all are made in one atom.
        """
        if not self.nested:
            total = sum((w * self._largest_norm(names) for names, w in releases), Fraction(0))
            return Supremum(total, len(releases) == 1 and self._attained(releases[0][0]))
        prices, of_atom = self._dearest(releases)
        value, sure = self._dearest_moves(prices, of_atom)
        first = int(np.argmin(of_atom))
        together = bool(self.groups.people[first] >= self.moves) and self._at_once(first, releases)
        alone = len(releases) == 1 and (self.moves <= 2 or together)
        return Supremum(value, sure and (alone or together))

    def joint_l2_squared(self, releases: Sequence[Weighted]) -> Supremum:
        """sup over u of `sum_i w_i ||phi_i u||_2^2`.

        Nested figures: m people make the same move, 2 m^2 times the weights; a bound if atoms are
        small.
        """
        if not self.nested:
            total = sum((w * self._largest_square(names) for names, w in releases), Fraction(0))
            exact = len(releases) == 1 and self._few and self._attained(releases[0][0])
            return Supremum(total, exact)
        prices, of_atom = self._dearest(releases)
        visible = np.array([price > 0 for price in prices])[of_atom]
        movers = int(min(self.moves, self.groups.people[visible].sum()))
        if movers == 0:
            return Supremum(Fraction(0), True)
        dearest = np.flatnonzero(of_atom == of_atom.min())
        best = int(dearest[np.argmax(self.groups.people[dearest])])
        alone = bool(self.groups.people[best] >= movers) and self._known(best)
        exact = alone and (len(releases) == 1 or self._at_once(best, releases))
        return Supremum(2 * movers**2 * prices[of_atom[best]], exact)

    def linf(self, names: tuple[str, ...]) -> Supremum:
        """sup over u of the largest entry of `phi u`, in absolute value.

        Under crossing margins that show one cell per atom: m people make room in one cell, and each
        of them can give up the levels of all features but one.
        """
        if self.nested:
            able = np.where(self._varies(names), self.groups.people, 0)
            alone = int(np.argmax(able))
            movers = int(min(self.moves, able.sum()))
            return Supremum(
                Fraction(movers), bool(able[alone] >= movers) and (not movers or self._known(alone))
            )
        half = self._largest_norm(names) // 2
        if not self._shown_apart(names):
            return Supremum(Fraction(half), False)
        if self.groups.figures.structure == "general":
            return Supremum(Fraction(max(half - 1, 0)), False)
        entry = half * (self.groups.margins - 1) // max(self.groups.margins, 1)
        return Supremum(Fraction(entry), self._few and self._attained(names))

    # ---- kernel vectors ----------------------------------------------------------------------

    @cached_property
    def nested(self) -> bool:
        """Whether every atom's total is known, so that people move inside atoms only."""
        return self.groups.figures.structure in ("none", "laminar")

    def _largest_norm(self, names: tuple[str, ...]) -> int:
        """Largest ||phi u||_1, where atom totals are only tied to each other.

        Where every atom shows a single released cell, u is a kernel vector of the figures. Those
        of two margins have a norm divisible by 4 unless three levels meet on both sides (hexagons);
        other kernels are taken to reach every even norm.
        """
        figures = self.groups.figures
        if np.any(self._varies(names) & (self.groups.people > 0)):
            return 2 * self.moves
        if figures.structure == "general":
            return 2 * self.moves if self.moves > 1 else 0
        return max(self._largest_norm_of(crossing) for crossing in self.groups.crossings)

    def _largest_norm_of(self, one: Crossing) -> int:
        """Largest norm of a kernel vector of the margins of one block of a kind; blocks add up no
        further.
        """
        return int(self._norms(one).max())

    def _norms(self, one: Crossing) -> Any:
        """Largest norm of a kernel vector of the margins, of each block."""
        fewest = np.where(one.shown >= 2, one.shown, np.iinfo(np.int64).max).min(axis=1)
        every = (one.margins > 2) | (fewest > 2)  # hexagons exist
        norms = np.where(every, 2 * self.moves, 4 * (self.moves // 2))
        return np.where((one.margins < 2) | (self.moves < 2), 0, norms)

    def _largest_square(self, names: tuple[str, ...]) -> int:
        """Largest ||phi u||_2^2: 2 m^2 for norm 2m, and less where atoms show one cell each.

        Then the largest entry up and the largest entry down have a sum of at most m, since some
        figure tells their atoms apart, so the square is at most m^2. Swaps and hexagons have
        entries of one only.
        """
        half = self._largest_norm(names) // 2
        if not self._shown_apart(names):
            return 2 * half**2
        return 2 * half if self._few else half**2

    @cached_property
    def _few(self) -> bool:
        """Whether swaps and hexagons between two margins are all there is."""
        return self.groups.figures.structure == "two-way" and self.moves <= 3

    def _attained(self, names: tuple[str, ...]) -> bool:
        """Whether the largest norm of a kernel vector of margins occurs between conforming tables.

        Norm 4 is a swap, norm 6 a hexagon, and further swaps can be added that cancel nothing.
        Three margins of two levels have a hexagon too: 2 (000) + (111) - (100) - (010) - (001).
        Everything happens on the largest levels; the people needed there are those who leave.
        """
        if self.groups.figures.structure == "general":
            return False
        if self._inside_one_atom(names):
            return True
        return self._shown_apart(names) and any(
            self._room(crossing) for crossing in self.groups.crossings
        )

    def _inside_one_atom(self, names: tuple[str, ...]) -> bool:
        """Whether all can make the same move inside one atom, which the table shows.

        An atom on levels l_1, l_2, ... of complete one-way margins can hold as many people as the
        smallest of these levels: pair them off, and the rest in any way.
        """
        varies, people = self._varies(names), self.groups.people
        if np.any(varies & np.isfinite(people) & (people >= self.moves)):
            return True
        for crossing in self.groups.crossings:
            block = crossing.block
            if crossing.totals is None or block.atoms.shape[1] != np.prod(block.levels):
                continue
            assert block.features is not None
            levels = zip(crossing.totals, block.features.T, strict=True)
            most = np.min([total[:, level] for total, level in levels], axis=0)
            if np.any(varies[block.atoms] & (most >= self.moves)):
                return True
        return False

    def _room(self, one: Crossing) -> bool:
        """Whether a block of this kind has the people that the largest kernel vector needs."""
        if one.totals is None:
            return False
        margins, norm = one.margins, self._norms(one)
        odd = norm % 4 > 0
        need = np.where((norm <= 6) & (margins == 2), 1, norm // 2)  # people on each level used
        wide = np.stack(
            [np.count_nonzero(level >= need[:, np.newaxis], axis=1) for level in one.totals]
        )
        changed = np.where(odd & (margins > 2), 3, 2)
        levels = np.where(odd & (margins <= 2), 3, 2)
        enough = (wide >= levels).sum(axis=0) >= changed
        largest = max(map(self._largest_norm_of, self.groups.crossings))
        return bool(np.any((wide.min(axis=0) >= 1) & enough & (norm == largest)))

    def _shown_apart(self, names: tuple[str, ...]) -> bool:
        """Whether every atom shows one released cell, no two atoms the same one, and figures are
        plain counts.

        Only then is phi u the kernel vector itself; cells of several atoms add up and can double.
        """
        figures = self.groups.figures
        if not np.all(figures.matrix.data == 1) or np.any(self._varies(names)):
            return False
        released = images(figures, names)
        first = np.full(
            released.keys, -1, dtype=np.int64
        )  # some atom that each released cell shows
        cells = figures.atoms >= 0
        first[released.key[cells]] = figures.atoms[cells]
        return bool(np.all(first[released.key[cells]] == figures.atoms[cells]))

    # ---- moves inside atoms ------------------------------------------------------------------

    def _known(self, atom: int) -> bool:
        """Whether the people this atom is said to have are sure to exist."""
        if np.isfinite(self.groups.people[atom]):
            return True
        only = np.count_nonzero(self.groups.people) == 1  # then everybody is in it
        return bool(only and self.moves == 1)

    def _dearest_moves(self, prices: list[Fraction], of_atom: Any) -> tuple[Fraction, bool]:
        """Twice the price of the dearest moves, and whether those who make them surely exist."""
        people = self.groups.people
        left, value, sure = self.moves, Fraction(0), True
        for rank, price in enumerate(prices):
            for atom in np.flatnonzero((of_atom == rank) & (people > 0)):
                if left == 0:
                    return value, sure
                movers = int(min(left, people[atom]))
                value += 2 * movers * price
                left -= movers
                sure = sure and (movers == 0 or self._known(int(atom)))
        return value, sure

    def _dearest(self, releases: Sequence[Weighted]) -> tuple[list[Fraction], Any]:
        """Weights of the releases in which some move inside an atom can be seen: all that occur,
        from large to small, and the place of each atom's among them.
        """
        people = self.groups.people > 0
        sees = np.stack([self._varies(names) & people for names, _ in releases], axis=1)
        patterns, of_atom = np.unique(sees, axis=0, return_inverse=True)
        weights = [w for _, w in releases]
        prices = [
            sum((w for w, visible in zip(weights, row, strict=True) if visible), Fraction(0))
            for row in patterns
        ]
        ranked = sorted(set(prices), reverse=True)
        place = np.array([ranked.index(price) for price in prices])
        return ranked, place[of_atom.reshape(-1)]

    def _varies(self, names: tuple[str, ...]) -> Any:
        """Which atoms show two or more different cells of the table over `names`."""
        return _shows_several(self.groups.figures, names)

    def _at_once(self, atom: int, releases: Sequence[Weighted]) -> bool:
        """Whether one move inside the atom is seen by every release that can see any (sufficient
        test).

        Attributes outside the figures can all change at once; of the cells inside, the first is
        compared with every other one.
        """
        figures = self.groups.figures
        cells = np.flatnonzero(figures.atoms == atom)
        together = np.ones(len(cells), dtype=bool)
        for names, _ in releases:
            released = images(figures, names)
            if self._varies(names)[atom] and released.other == 1:
                together &= released.key[cells] != released.key[cells[0]]
        return bool(np.any(together))


@lru_cache(maxsize=16)
def _shows_several(figures: Figures, names: tuple[str, ...]) -> Any:
    """Which atoms show two or more different cells of the table over `names`."""
    atoms, schema, first = figures.atoms, figures.schema, figures.first_cells
    inside = [name for name in names if schema.axis(name).base in figures.bases]
    others = schema.size([name for name in names if name not in inside])
    several = (first >= 0) & (others > 1)
    apart = schema.size(inside) == len(atoms)  # every cell of the figures shows cells of its own
    first_key = first if apart else key_of(figures, names, np.maximum(first, 0))
    for cells in stretches(len(atoms)):
        atom, key = atoms[cells], cells if apart else key_of(figures, names, cells)
        several[atom[(atom >= 0) & (key != first_key[atom])]] = True
    return several
