"""Base measures of the Wasserstein exponential mechanism on integer tables: what is known of y.

Naive: every integer table. Congenial: tables that agree with public figures (sums, signs, a part at
most its whole). Prior-congenial: these, weighted by a Dirichlet-multinomial law around the last
release. partially-private-data, section 4.2, with the correct pmf (the printed one sums to 2.08).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import (
    COUNT,
    EXACT_NUMBER,
    FLAG,
    INTEGER,
    Rule,
    check_fields,
    listed,
    optional,
    pairs_of,
    takes,
)
from congenial.data.arrays import Ints
from congenial.data.rational import fraction
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import FROZEN, Support, support
from congenial.pairs.stated_laws import rational

Kind = Literal["naive", "congenial", "prior-congenial"]
MOST_CELLS = 2**22
CELLS = Rule(
    f"a number of cells up to {MOST_CELLS:,}", lambda one: COUNT.holds(one) and one <= MOST_CELLS
)
TOTALS = pairs_of(listed(INTEGER), optional(INTEGER))
PARTS = pairs_of(INTEGER, INTEGER)
Total = tuple[tuple[int, ...], int | None]  # cells and their sum; None: not published yet


@dataclass(frozen=True)
class Base:
    """A base measure nu on tables of `cells` integers; everything in it is public.

    totals: disjoint groups of cells with their public sums. nonnegative: y >= 0. parts: pairs
    (part, whole), y_part <= y_whole; the whole is in a group, the part in none. shapes: the
    Dirichlet parameter of each cell, None for uniform; all cells of a group or none.
    """

    cells: int
    totals: tuple[Total, ...] = ()
    nonnegative: bool = False
    parts: tuple[tuple[int, int], ...] = ()
    shapes: tuple[Fraction | None, ...] = ()

    def __post_init__(self) -> None:
        shapes = listed(optional(EXACT_NUMBER))
        fields = {"cells": CELLS, "totals": TOTALS, "parts": PARTS, "shapes": shapes}
        check_fields(self, StructureError, **fields, nonnegative=FLAG)
        grouped = [i for group, _ in self.totals for i in group]
        if len(set(grouped)) != len(grouped):
            raise StructureError(
                "two public sums share a cell.",
                remedy="Give disjoint groups; crossing sums have mechanisms of their own.",
            )
        named = [*grouped, *(i for pair in self.parts for i in pair)]
        if self.cells < 1 or any(not 0 <= i < self.cells for i in named):
            raise StructureError(
                f"a cell number is not in 0 .. {self.cells - 1}.", remedy="Number the cells from 0."
            )
        self._check_parts(set(grouped))
        self._check_shapes()

    def _check_parts(self, grouped: set[int]) -> None:
        lower, upper = [p for p, _ in self.parts], [w for _, w in self.parts]
        if len(set(lower)) != len(lower) or len(set(upper)) != len(upper):
            raise StructureError(
                "a whole has two parts, or a part two wholes.",
                remedy="Give each part one whole, and each whole one part.",
            )
        if set(lower) & grouped or set(upper) - grouped or (self.parts and not self.nonnegative):
            raise StructureError(
                "a part must be a nonnegative count in no public sum, and its whole in one.",
                remedy="Only order constraints of this kind can be drawn exactly.",
            )

    def _check_shapes(self) -> None:
        if not self.shapes:
            object.__setattr__(self, "shapes", (None,) * self.cells)
        if len(self.shapes) != self.cells:
            raise StructureError(
                f"{len(self.shapes)} prior parameters for {self.cells} cells.",
                remedy="Give one per cell, None for none.",
            )
        weighted = {i for i, a in enumerate(self.shapes) if a is not None}
        whole = {i for group, _ in self.totals if weighted & set(group) for i in group}
        if weighted != whole or (weighted and not self.nonnegative):
            raise StructureError(
                "a Dirichlet-multinomial base needs nonnegative counts with a known total.",
                remedy="Give a parameter to every cell of a public sum, or to none.",
            )
        if any(a is not None and a <= 0 for a in self.shapes):
            raise StructureError(
                "a prior parameter is 0: the prior would exclude a group that had no case.",
                remedy="Use kappa > 0.",
            )

    @property
    def kind(self) -> Kind:
        """Which of the paper's three base measures."""
        if any(a is not None for a in self.shapes):
            return "prior-congenial"
        return "congenial" if self.totals or self.nonnegative or self.parts else "naive"

    def holds(self, table: Ints) -> bool:
        """Whether a table has the sums, signs and order that are public; sums to come count not."""
        right = all(
            total is None or int(table[list(group)].sum()) == total for group, total in self.totals
        )
        right &= not (self.nonnegative and bool((table < 0).any()))
        return right and all(table[part] <= table[whole] for part, whole in self.parts)

    @property
    def translation_invariant(self) -> bool:
        """Whether the measure is the same around every conforming table: sums only, uniform.

        The normaliser of a loss of y - T(x) is then one constant, by structure.
        """
        return not (self.nonnegative or self.parts) and self.kind != "prior-congenial"

    def normaliser_known(self, loss: str) -> bool:
        """Whether the normaliser is worked out (l1), or need not be because it is constant.

        It is where all cells are in sums, or none is; a part moves with its whole, and that is not.
        """
        if self.translation_invariant or loss != "l1":
            return self.translation_invariant
        grouped = sum(len(group) for group, _ in self.totals)
        return not self.parts and grouped in (0, self.cells)

    @property
    def fixes_number_only(self) -> bool:
        """Whether the sums fix no more than how many records there are: one, over all cells.

        Cells that are part of others count none again; a sum of 0 says which cells are impossible.
        """
        sums = [set(group) for group, total in self.totals if total != 0]
        empty = {i for group, total in self.totals if total == 0 for i in group}
        every = set(range(self.cells)) - {part for part, _ in self.parts}
        return not sums or (len(sums) == 1 and sums[0] | empty == every)

    @property
    def facts(self) -> tuple[str, ...]:
        """What is taken as public, in words; cells are numbered from 0."""
        sums = [
            f"the sum of values {_cells(group)}" + (f" is {total}" if total is not None else "")
            for group, total in self.totals
        ]
        wholes = [i for _, i in self.parts]
        parts = [i for i, _ in self.parts]
        order = f"values {_cells(parts)} are parts of values {_cells(wholes)}, in this order"
        return (*sums, *([order] if self.parts else []))

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "kind": self.kind,
            "cells": self.cells,
            "totals": [{"cells": list(group), "sum": value} for group, value in self.totals],
            "nonnegative": self.nonnegative,
            "parts": [list(pair) for pair in self.parts],
            "dirichlet": [None if a is None else str(a) for a in self.shapes],
        }

    @classmethod
    def from_dict(cls, data: Any) -> Base:
        """Inverse of `to_dict`."""
        return cls(
            int(data["cells"]),
            tuple((tuple(entry["cells"]), _sum(entry["sum"])) for entry in data["totals"]),
            bool(data["nonnegative"]),
            tuple((part, whole) for part, whole in data["parts"]),
            tuple(None if a is None else fraction(a) for a in data["dirichlet"]),
        )


def _sum(told: Any) -> int | None:
    """A sum as a bundle tells it; None where it is not told."""
    return None if told is None else int(told)


def _cells(numbers: Sequence[int]) -> str:
    """Numbers in words, runs shortened."""
    runs: list[list[int]] = []
    for i in numbers:
        if runs and runs[-1][-1] == i - 1:
            runs[-1].append(i)
        else:
            runs.append([i])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 2 else str(run)[1:-1] for run in runs)


def published_sums(known: Support) -> list[Total]:
    """The groups of cells whose sums are published; refused unless every cell is in one.

    Cells that the figures leave empty are groups of their own.
    """
    if known.ties or known.loose:
        structure = known.structure if known.ties else "a cell is in no published sum"
        raise StructureError(
            f"this base measure needs disjoint groups with a known sum ({structure}).",
            remedy="Publish the total, alone or by axes of the table, or use the naive base.",
        )
    labels = known.labels.reshape(-1)
    sums = [None] * known.groups if known.totals is None else [int(v) for v in known.totals]
    groups: list[Total] = [
        (tuple(np.flatnonzero(labels == group).tolist()), total) for group, total in enumerate(sums)
    ]
    return [*groups, *(((int(i),), 0) for i in np.flatnonzero(labels == FROZEN))]


def sums_published(base: Base, figures: Figures, table: Sequence[str]) -> bool:
    """Whether the sums of the base measure are those that published figures fix in a table."""
    table_support = support(figures, tuple(table))
    return not (table_support.ties or table_support.loose) and set(base.totals) == set(
        published_sums(table_support)
    )


def naive(cells: int) -> Base:
    """Uniform on all integer tables."""
    return Base(cells)


def congenial(
    cells: int,
    totals: Sequence[Total] = (),
    *,
    nonnegative: bool = True,
    parts: Sequence[tuple[int, int]] = (),
) -> Base:
    """Uniform on the integer tables that agree with the public figures."""
    return Base(cells, tuple(totals), nonnegative, tuple(parts))


@takes(StructureError, cells=CELLS, totals=TOTALS, previous=listed(INTEGER), parts=PARTS)
def prior_congenial(
    cells: int,
    totals: Sequence[Total],
    previous: Sequence[int],
    *,
    alpha: object,
    kappa: object,
    parts: Sequence[tuple[int, int]] = (),
) -> Base:
    """Dirichlet-multinomial around the last release: a_j = alpha (previous_j + kappa).

    nu(y) ~ prod_j Gamma(y_j + a_j) / (y_j! Gamma(a_j)) in each group. `previous` has one count per
    cell; cells in no group are not weighted. alpha > 0 says how much a previous count weighs, and
    kappa > 0 keeps cells open that were empty; the paper leaves both unstated.
    """
    strength, smoothing = rational(alpha), rational(kappa)
    if strength <= 0 or smoothing <= 0:
        raise StructureError(
            f"alpha = {strength} and kappa = {smoothing}: both must be positive.",
            remedy="alpha = 1, kappa = 1/2 is a start; choose without looking at the data.",
        )
    if len(previous) != cells:
        raise StructureError(
            f"{len(previous)} previous counts for {cells} cells.", remedy="Give one per cell."
        )
    grouped = {i for group, _ in totals for i in group}
    shapes = tuple(
        strength * (int(previous[i]) + smoothing) if i in grouped else None for i in range(cells)
    )
    return Base(cells, tuple(totals), True, tuple(parts), shapes)
