"""The section of a report with every figure that was published exactly: the same for all kinds."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from congenial.figures.statements import Statement
from congenial.mechanisms.released import Released
from congenial.report.page import LARGEST_TABLE, PageColumn, PageTable, folded_table


@dataclass(frozen=True)
class ExactFigure:
    """A figure that was published exactly: its label, what it counts, and its values if any."""

    label: str
    words: str
    values: PageTable | None


@dataclass(frozen=True)
class ExactSection:
    """All figures, and whether the number of people is public besides them."""

    figures: tuple[ExactFigure, ...]
    people: bool


def exact_section(release: Released) -> ExactSection:
    """What a release published exactly."""
    public, pairs = release.everything, release.guarantee.adjacency
    told = zip(public.told, public.told_values, strict=True)
    figures = (_figure(release, *one) for one in told)
    replaced = getattr(pairs, "secrets", pairs.metric) == "replace-one"
    return ExactSection(tuple(figures), replaced and not public.tells_total)


def _figure(release: Released, statement: Statement, values: Any) -> ExactFigure:
    ground = f" Ground: {statement.because}." if statement.because else ""
    told = f"{_counted(statement)}.{ground}"
    if values is None:
        return ExactFigure(statement.label, told, None)
    schema = release.schema
    shown_levels = [schema.shown_levels(name) for name in statement.by]
    kept = islice(np.ndindex(*values.shape), LARGEST_TABLE)
    rows = [
        [*(levels[i] for levels, i in zip(shown_levels, at, strict=True)), int(values[at])]
        for at in kept
    ]
    columns = [
        *(PageColumn(schema.shown(name)) for name in statement.by),
        PageColumn("published value", number=True),
    ]
    shown = folded_table(columns, rows, values.size, "published.csv")
    return ExactFigure(statement.label, told, shown)


def _counted(statement: Statement) -> str:
    """What a statement says, in words."""
    terms = []
    for condition, weight in statement.terms:
        counted = "units" if statement.units else "people"
        who = f"{counted} with {condition}" if condition else counted
        terms.append(who if weight == 1 else f"{weight} × {who}")
    what = f"Number of {' + '.join(terms)}"
    if statement.by:
        what += f", for each {' × '.join(statement.by)}"
    if statement.relation == "zero":
        return f"{what}: zero by definition"
    return f"{what}: {statement.limit}, a public bound" if statement.limit else what
