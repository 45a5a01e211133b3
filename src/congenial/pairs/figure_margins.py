"""Exact figures as full margins: which partitions of the attributes are counted completely.

A count of some people, beside the number of all people, also counts the others: women per county
and everybody per county are the margin county x sex. Figures are turned into such margins one by
one, each with the help of those found before. Figures that are none (weighted sums, a single count
of a crossing, conditions that are no rectangle) are named in `others`; to leave them out can only
add pairs of look-alikes, so what follows from the margins alone is an upper bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from congenial.data.predicate import parse
from congenial.data.schema import Schema
from congenial.data.workload import Margin, Partition
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement


@dataclass(frozen=True)
class FigureMargins:
    """What exact figures count completely, over the attributes `names`.

    `margins`: none of them refines another. `others`: labels of figures that are no full margin.
    """

    names: tuple[str, ...]
    margins: tuple[Margin, ...]
    others: tuple[str, ...]

    def settle(self, table: Margin) -> bool:
        """Whether the figures tell every count of a table."""
        return any(margin.refines(table) for margin in self.margins)

    def cover(self, attribute: int, partition: Partition) -> bool:
        """Whether some margin counts an attribute at least as finely as `partition`."""
        return any(margin.partitions[attribute].refines(partition) for margin in self.margins)


@dataclass(frozen=True)
class _Rectangle:
    """A count by some axes of those inside a product of sets of levels: attribute -> two parts."""

    by: Margin
    parts: dict[int, Partition]

    def margin(self, without: int | None = None) -> Margin:
        """The axes crossed with the two parts of every conditioned attribute but one."""
        partitions = list(self.by.partitions)
        for attribute, part in self.parts.items():
            if attribute != without:
                partitions[attribute] = common_refinement(partitions[attribute], part)
        return Margin(tuple(partitions))


def common_refinement(first: Partition, second: Partition) -> Partition:
    """The coarsest partition that refines both.

    >>> common_refinement(Partition.of([0, 0, 1]), Partition.of([0, 1, 1])).blocks
    (0, 1, 2)
    """
    return canonical(first.array * second.size + second.array)


def canonical(labels: ArrayLike) -> Partition:
    """The partition of these labels, blocks numbered as they first appear."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    number = np.empty(len(first), dtype=np.int64)
    number[np.argsort(first)] = np.arange(len(first))
    return Partition.of(number[inverse.reshape(-1)])


def figure_margins(figures: Figures, names: Sequence[str], *, people_kept: bool) -> FigureMargins:
    """The full margins among the exact figures, over attributes that contain all they mention.

    `people_kept`: whether look-alike databases have the same number of people, which makes the
    total a figure by itself.
    """
    schema = figures.schema
    margins = [_margin_of(schema, names, ())] if people_kept else []
    open_ = {
        statement.label: _rectangle(schema, names, statement) for statement in figures.equalities
    }
    grown = True
    while grown:
        grown = False
        for label, figure in list(open_.items()):
            if figure is not None and _completed(figure, margins):
                margins.append(figure.margin())
                del open_[label]
                grown = True
    return FigureMargins(tuple(names), _finest(margins), tuple(open_))


def _completed(figure: _Rectangle, known: Sequence[Margin]) -> bool:
    """Whether the figure's full margin follows: all its coarser ones are known, or it has none."""
    needed = [figure.margin(without=attribute) for attribute in figure.parts]
    return all(any(margin.refines(coarser) for margin in known) for coarser in needed)


def _finest(margins: Sequence[Margin]) -> tuple[Margin, ...]:
    """Margins that no other one refines, each once."""
    finest: list[Margin] = []
    for margin in sorted(dict.fromkeys(margins), key=lambda one: -one.size):
        if not any(other.refines(margin) for other in finest):
            finest.append(margin)
    return tuple(finest)


def _rectangle(schema: Schema, names: Sequence[str], figure: Statement) -> _Rectangle | None:
    """The figure as a count inside a rectangle of levels; None if it is not."""
    if len(figure.terms) != 1:
        return None
    condition, _ = figure.terms[0]
    by = _margin_of(schema, names, figure.by)
    if not condition:
        return _Rectangle(by, {})
    predicate = parse(condition, schema)
    mask, parts = predicate.mask(), {}
    product = np.ones((), dtype=bool)
    for axis, name in enumerate(predicate.bases):
        inside = mask.any(axis=tuple(k for k in range(mask.ndim) if k != axis))
        product = np.multiply.outer(product, inside)
        if not inside.all():
            parts[list(names).index(name)] = canonical(inside)
    if not mask.any() or not np.array_equal(product, mask):
        return None
    return _Rectangle(by, parts)


def _margin_of(schema: Schema, names: Sequence[str], by: Sequence[str]) -> Margin:
    at = {axis.base: canonical(axis.of_base) for axis in schema.axes(by)}
    return Margin(
        tuple(at.get(name, Partition.whole(schema.attribute(name).size)) for name in names)
    )
