"""The procedure of records from tables: choose tables, measure them, fit, write whole records.

Columns that ask for it are cut into bins at private quantiles. All one-way tables are measured
first. Then, round by round, a pair of columns that the fit so far
gets most wrong is chosen (`choose`) and measured with exact integer noise given the figures
it shows. A distribution of maximum entropy is fitted to all measurements, keeping every figure, and
whole records are made of it that keep them too. Fit and records use nothing but what was measured.

What a replaced record costs is in `measuring_budget`. Look-alikes that differ in a records cost a^2
times as much rho, or a times as much epsilon, because tables and scores then move by 2 a.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from math import prod
from statistics import median
from typing import Any, ClassVar, Self

import numpy as np

from congenial.data.arrays import Ints
from congenial.data.schema import Schema
from congenial.errors import GuaranteeError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.mechanism import Mechanism
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import Loss, joint_loss
from congenial.privacy.description import Description
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.synthesis.from_tables.column_rules import ColumnRules, values_by
from congenial.synthesis.from_tables.figure_targets import KeptFigures
from congenial.synthesis.from_tables.junction_tree import Axes
from congenial.synthesis.from_tables.measuring_budget import (
    FAMILY,
    GRID,
    ROUNDS_PER_COLUMN,
    Law,
    MeasuringBudget,
)
from congenial.synthesis.from_tables.pair_axes import PairAxes
from congenial.synthesis.from_tables.private_quantiles import Cuts, binned_schema
from congenial.synthesis.record_files import (
    records_table,
)

# ---- Of what records from tables are made: people, or rows of units that own several ----
# Everything they are made from is a function of the table of rows, whoever a row belongs to.
# Where the figures tell the number of rows, the tables of look-alike datasets differ as if so
# many rows were replaced (`pairs/several_rows`), so that the loss per replaced row is all that is
# needed. Records say nothing about which rows belong to one unit.


def rows_apart(pairs: Adjacency | SensitiveValues, names: Axes) -> int:
    """How many replaced rows the tables of look-alikes over these columns are apart."""
    return pairs.rows_apart(names) if isinstance(pairs, Adjacency) else pairs.records


def refuse_unknown_number(pairs: Adjacency | SensitiveValues, names: Axes) -> None:
    """Refuse pairs for which the number of records is not public, and what is no column of rows."""
    number_is_public = isinstance(pairs, SensitiveValues) or pairs.metric == "replace-one"
    if not number_is_public and not (isinstance(pairs, SeveralRows) and pairs.people_kept):
        raise GuaranteeError(
            "records from tables are as many as there are rows, so the number of rows must be "
            f"public; the promise is about {pairs.metric}.",
            remedy='Publish it ("Rows" = { total = true } under [publish]), or use one row per '
            "person (unit without max_rows).",
        )
    for name in names:
        if name in pairs.schema.sizes:
            raise StructureError(
                f"{name!r} is the number of rows of a unit, and a record is one row.",
                remedy="Leave it out of the columns to synthesise.",
            )


MOST_LEVELS = 5_000  # of one column
CITATION = {
    "gaussian": "McKenna et al. 2022 (adaptive choice of tables), Canonne, Kamath, Steinke 2020 "
    "(noise), Cesar and Rogers 2021 (choice)",
    "geometric": "McKenna et al. 2022 (adaptive choice of tables), Ghosh, Roughgarden, "
    "Sundararajan 2009 (noise), McSherry and Talwar 2007 (choice)",
}
FIXED = "the columns, the number of rounds and all shares of the promise were fixed beforehand"
MECHANISMS = {  # with figures to keep, and without
    "gaussian": ("congenial_gaussian", "plain_discrete_gaussian"),
    "geometric": ("congenial", "plain_geometric"),
}


@dataclass(frozen=True)
class RecordsProcedure:
    """How records are made from tables measured under one promise, by public parameters alone.

    `names`: columns, in the order of the schema. `budget`: what a replaced record may cost, all
    measurements and choices together, and how that is shared. `copies` sets of `records` records
    (None: as many as there are people) are written; they cost nothing more. `rules`: how columns
    are cut into bins and written. `cuts`: where columns were cut, once that is drawn; before, bins
    of equal numbers of levels stand in for theirs.

    Assumptions: n is public: records are replaced, or the figures tell the number of rows of units
    that own several. Guarantee: over look-alikes a records apart a^2 rho, or a epsilon; where
    figures are about public columns only, one person's other values may be what is protected
    (`SensitiveValues`), and a is 1. Edge cases: a table that the figures settle is not measured; a
    pair that no exact sampler draws is no candidate.
    """

    adjacency: Adjacency | SensitiveValues
    names: Axes
    budget: MeasuringBudget
    copies: int = 1
    records: int | None = None
    rules: ColumnRules = field(default_factory=ColumnRules)
    cuts: tuple[tuple[str, Cuts], ...] = ()

    name: ClassVar[str] = "records_from_tables"

    def __post_init__(self) -> None:
        refuse_unknown_number(self.adjacency, self.names)
        if not self.names or len(set(self.names)) != len(self.names):
            raise GuaranteeError(
                "synthesise needs columns, each named once.",
                remedy="Name the columns to synthesise.",
            )
        self.rules.refuse(self.adjacency.figures, self.names)
        for name in self.names:
            size = self.schema.attribute(name).size
            if size > MOST_LEVELS:
                raise StructureError(
                    f"column {name!r} has {size} categories, more than {MOST_LEVELS}.",
                    remedy="Give it edges in the schema, or quantiles if it has numbers.",
                )
        self._refuse_other_numbers()

    @property
    def several_rows(self) -> bool:
        """Whether a record is one of several rows of a unit."""
        return isinstance(self.adjacency, SeveralRows)

    def _refuse_other_numbers(self) -> None:
        """Figures count everybody: another number of records cannot keep them."""
        if self.copies < 1 or (self.records is not None and self.records < 1):
            raise GuaranteeError(
                "there must be one copy and one record at least.", remedy="Use 1 or more."
            )
        equalities = self.kept.seen.equalities
        if self.records is not None and equalities:
            raise StructureError(
                f"{self.records} records cannot keep '{equalities[0].label}', which counts all "
                "people.",
                remedy="Leave out `records`: there are then as many records as people.",
            )

    @classmethod
    def calibrate(
        cls,
        adjacency: Adjacency | SensitiveValues,
        names: Sequence[str],
        rho: Fraction | None = None,
        rounds: int | None = None,
        *,
        epsilon: Fraction | None = None,
        weights: Mapping[str, Fraction] | None = None,
        rules: ColumnRules | None = None,
    ) -> Self:
        """The mechanism whose promise over `adjacency` is rho, or pure epsilon.

        `rounds`: by default two a column, or one for pure epsilon. `weights`: columns that matter
        more than others, whose weight is 1. What figures settle gets no share of the promise.
        """
        for name in (*names, *(weights or {})):
            adjacency.schema.attribute(name)  # raises when it is unknown
        if (rho is None) == (epsilon is None):
            raise GuaranteeError(
                "the promise must be rho or epsilon, not both.", remedy="State one of them."
            )
        ordered = tuple(name for name in adjacency.schema.names if name in set(names))
        law: Law = "gaussian" if epsilon is None else "geometric"
        shares = tuple(Fraction((weights or {}).get(name, 1)) for name in ordered)
        rules = ColumnRules() if rules is None else rules
        whole = Fraction(rho if rho is not None else epsilon or 0)
        all_of_it = MeasuringBudget(law, whole, shares, (True,) * len(ordered), 0, 0, rules.steps)
        draft = cls(adjacency, ordered, all_of_it, rules=rules)
        apart = rows_apart(adjacency, ordered)
        amount = whole / (apart**2 if law == "gaussian" else apart)
        pairs = draft.open_pairs
        wanted = ROUNDS_PER_COLUMN[law] * len(ordered) if rounds is None else rounds
        budget = replace(
            all_of_it,
            amount=Fraction(int(amount * GRID), GRID),
            counted=tuple(not draft.settled((name,)) for name in ordered),
            rounds=wanted if wanted < len(pairs) else draft.pair_axes.held_together(pairs),
            pairs=len(pairs),
        )
        return replace(draft, budget=budget)

    # ---- what is public ----------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """What a record is, by the levels that are counted: a cut column has its bins."""
        return self.figures.schema

    @cached_property
    def figures(self) -> Figures:
        """What is published, over the levels that are counted."""
        figures = self.adjacency.figures.of_rows
        if not self.rules.quantiles:
            return figures
        cuts = dict(self.cuts) or self.rules.evenly(figures.schema)
        counted = binned_schema(figures.schema, self.rules.quantiles, cuts)
        return Figures(counted, figures.statements, figures.values)

    @cached_property
    def counted_adjacency(self) -> Adjacency:
        """The look-alikes over the levels that are counted: what noise is drawn over."""
        own = self.adjacency
        if isinstance(own, Adjacency) and not self.several_rows and not self.rules.quantiles:
            return own
        return SemiAdjacent(self.figures)

    @property
    def sizes(self) -> dict[str, int]:
        """Levels of every column."""
        return {name: self.schema.attribute(name).size for name in self.names}

    @cached_property
    def pair_axes(self) -> PairAxes:
        """By which names pairs of columns are counted."""
        axes = tuple(self.kept.axes(statement) for statement in self.kept.statements)
        return PairAxes(self.schema, self.names, self.rules.in_pairs, axes)

    @property
    def pairs(self) -> tuple[Axes, ...]:
        """Pairs of columns that a fit can hold, by the names they are counted by in pairs."""
        return self.pair_axes.all

    @property
    def open_pairs(self) -> tuple[Axes, ...]:
        """Those that the figures do not settle."""
        return tuple(axes for axes in self.pairs if not self.settled(axes))

    def shape(self, axes: Axes) -> tuple[int, ...]:
        """Levels of the axes of a table."""
        return tuple(self.schema.axis(name).size for name in axes)

    def bases(self, axes: Axes) -> Axes:
        """The columns that the axes of a table belong to."""
        return tuple(self.schema.axis(name).base for name in axes)

    @cached_property
    def kept(self) -> KeptFigures:
        """The figures that records keep."""
        return KeptFigures(self.figures, self.names)

    @property
    def not_kept(self) -> list[str]:
        """Figures about columns that the records do not have."""
        labels = {statement.label for statement in self.kept.statements}
        figures = self.adjacency.figures
        statements = [*figures.equalities, *figures.zeros, *figures.told[len(figures.statements) :]]
        return [statement.label for statement in statements if statement.label not in labels]

    @cached_property
    def scales(self) -> dict[Axes, Fraction]:
        """The variance or rate of every table that may be measured."""
        columns = zip(self.names, self.budget.column_scales, strict=True)
        scales: dict[Axes, Fraction] = {(name,): scale for name, scale in columns if scale}
        if self.budget.rounds:
            scales |= dict.fromkeys(self.open_pairs, self.budget.pair_scale)
        return scales

    def weight_of(self, axes: Axes) -> Fraction:
        """How much it matters that a table is wrong, at most 1: that of its heaviest column."""
        weights = dict(zip(self.names, self.budget.weights, strict=True))
        return max(weights[name] for name in self.bases(axes)) / max(weights.values())

    @property
    def description(self) -> RecordDescription:
        """The procedure as plain data, and what replacing one record does to it."""
        figures, spent = self.adjacency.figures.of_rows, self.budget.spent
        return RecordDescription(
            mechanism=self.name,
            schema=self.adjacency.schema,
            law=self.to_dict(),
            epsilon=spent if self.budget.law == "geometric" else Fraction(0),
            rho=spent if self.budget.law == "gaussian" else Fraction(0),
            given=figures if figures.equalities or figures.zeros else None,
            shown=self.names if self.several_rows else None,
        )

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        source, pairs, description = CITATION[self.budget.law], self.adjacency, self.description
        if isinstance(pairs, SensitiveValues):  # one record differs, as in one replacement
            loss = Loss(
                epsilon=description.epsilon, rho=description.rho, discrete=description.rho > 0
            )
        else:
            loss = joint_loss([description], pairs)
        return Guarantee(self.adjacency, loss.tradeoff, "theorem", (FIXED,), citation=source)

    def to_dict(self) -> dict[str, Any]:
        """The law as plain data."""
        return {
            **self.budget.to_dict(self.names),
            **({"copies": self.copies} if self.copies > 1 else {}),
            **({} if self.records is None else {"records": self.records}),
            **self.rules.to_dict(),
            "numerics": {"H": "0"},
        }

    @classmethod
    def from_dict(cls, adjacency: Adjacency | SensitiveValues, data: Mapping[str, Any]) -> Self:
        """Inverse of `to_dict`, given the adjacency."""
        budget, names = MeasuringBudget.from_dict(data), tuple(data["columns"])
        rules = ColumnRules.from_dict(data)
        return cls(adjacency, names, budget, data.get("copies", 1), data.get("records"), rules)

    def settled(self, axes: Axes) -> bool:
        """Whether the figures fix every cell of a table, so that nothing is left to measure."""
        figures, cells = self.figures, prod(self.shape(axes))
        if cells == 1 or not (figures.equalities or figures.zeros):
            return cells == 1  # everybody, whose number is public
        return bool(support(figures, axes).fixes(np.arange(cells), cells).all())

    def table_description(self, axes: Axes, scale: Fraction) -> Description:
        """The law of one table, with noise of this variance or rate."""
        figures, (with_figures, plain) = self.figures, MECHANISMS[self.budget.law]
        name = with_figures if figures.equalities or figures.zeros else plain
        return Description(name, axes, FAMILY[self.budget.law], scale, figures)

    def law(self, axes: Axes) -> Mechanism | None:
        """What draws one table; None where the figures settle it or no exact sampler is known."""
        if axes not in self.scales:
            return None
        try:
            mechanism = rebuild(
                self.table_description(axes, self.scales[axes]), self.counted_adjacency
            )
        except StructureError:
            if len(axes) == 1:
                raise
            return None
        return None if mechanism.sampler_error else mechanism

    def written(self, columns: Mapping[str, Ints], generator: np.random.Generator) -> Any:
        """Records by their levels as an Arrow table, with numbers inside bins."""
        tails = {tail.name: tail for tail in self.rules.tails}
        return records_table(self.schema, self.names, columns, generator, values_by(tails))


# ---- How far measured tables will be off, before any data are read ----
# A table of k cells with noise z is off by sum |z| / 2 records: so many would have to move for it
# to be right. Its mean follows from the law of the noise alone. Figures that are kept and the
# fit, which combines all tables, leave less; pairs that are not measured have an error of their
# own, which depends on the data.

WEAK = 10  # a table is weak where noise misplaces more than one in so many people


@dataclass(frozen=True)
class PredictedError:
    """One table: its cells, the standard deviation of a count, records misplaced by the noise."""

    axes: Axes
    cells: int
    deviation: float
    misplaced: float

    @property
    def needed(self) -> int:
        """People for whom the noise misplaces a tenth."""
        return round(WEAK * self.misplaced)

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "table": list(self.axes),
            "cells": self.cells,
            "deviation": self.deviation,
            "misplaced": self.misplaced,
        }


def predicted_errors(made: RecordsProcedure) -> list[PredictedError]:
    """Every table that may be measured, columns first; those that figures settle are not."""
    return [
        _predicted(made.budget, axes, prod(made.shape(axes)), scale)
        for axes, scale in made.scales.items()
    ]


def _predicted(budget: MeasuringBudget, axes: Axes, cells: int, scale: Fraction) -> PredictedError:
    misplaced = budget.absolute(scale) * cells / 2
    return PredictedError(axes, cells, budget.deviation(scale), misplaced)


def needed_people(errors: list[PredictedError]) -> int | None:
    """People for whom the noise of a pair of median size misplaces a tenth; None without pairs."""
    pairs = [error.needed for error in errors if len(error.axes) == 2]
    return round(median(pairs)) if pairs else None
