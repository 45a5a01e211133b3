"""Columns one after another: which model each has, given which earlier ones, on which levels.

Structural rules are kept because impossible levels are left out of a column's model in the contexts
where they are impossible. Published totals of the first column are kept by drawing given them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arguments import expect, texts
from congenial.data.arrays import Floats, Ints
from congenial.data.rational import fraction
from congenial.data.schema import Schema
from congenial.errors import FigureError, GuaranteeError, StructureError
from congenial.figures.cells import Cells
from congenial.figures.figures import Figures
from congenial.synthesis.column_kernels import ColumnKernel, SettledKernel, Weighting, kernel_of
from congenial.synthesis.models import MultinomialColumn, read_model
from congenial.synthesis.models.level_columns import numbers
from congenial.synthesis.record_model import Bools, LevelModel

LARGEST_CONTEXTS = 200_000

Codes = dict[str, Ints]  # level number of every record, by attribute


@dataclass(frozen=True)
class Column:
    """One synthesised column: `name` ~ model, given earlier or public axes.

    Without a model it is multinomial. `given` may name coarser axes. `share` is the part of M it
    gets, relative to the other columns. weighting: "record" (alpha(x) = min(1, M / osc(x))) or
    "scalar", one weight for all, the exponential mechanism. correct: allow in the likelihood for
    what the weights do to the law of the records (see `scores.score_table`).
    """

    name: str
    model: LevelModel = field(default_factory=MultinomialColumn)
    given: tuple[str, ...] = ()
    share: Fraction = Fraction(1)
    weighting: Weighting = "record"
    correct: bool = True

    def __post_init__(self) -> None:
        expect(self.name, str, "a column's name", "Give text.", GuaranteeError)
        object.__setattr__(self, "given", texts(self.given, "given", GuaranteeError))
        object.__setattr__(self, "share", Fraction(self.share))
        if self.share <= 0:
            raise GuaranteeError(
                f"column {self.name!r} has share {self.share}.", remedy="Give a positive share."
            )
        if self.weighting not in ("record", "scalar"):
            raise GuaranteeError(
                f"column {self.name!r}: weighting {self.weighting!r} is not known.",
                remedy='Use "record" or "scalar".',
            )

    @property
    def table(self) -> tuple[str, ...]:
        """Axes of the confidential table it is fitted to."""
        return (*self.given, self.name)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as a plan writes it."""
        return {
            "name": self.name,
            "model": self.model.to_dict(),
            "given": list(self.given),
            "share": str(self.share),
            "weighting": self.weighting,
            "correct": self.correct,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any] | str) -> Column:
        """Inverse of `to_dict`; a bare name is a multinomial column."""
        if isinstance(data, str):
            return cls(data)
        keys = ("name", "model", "given", "share", "weighting", "correct")
        for key in data:
            if key not in keys:
                raise GuaranteeError(
                    f"a synthesised column has no key {key!r}.",
                    remedy=f"Known: {', '.join(keys)}.",
                )
        if not isinstance(data.get("name"), str):
            raise GuaranteeError("a synthesised column has no name.", remedy="Give its name.")
        where = f"column {data['name']!r}"
        rest: dict[str, Any] = {key: data[key] for key in ("weighting", "correct") if key in data}
        if not isinstance(rest.get("correct", True), bool):
            raise GuaranteeError(
                f"{where}: correct is neither true nor false.", remedy="Give true or false."
            )
        if "model" in data:
            rest["model"] = read_model(data["model"], where)
        if "share" in data:
            rest["share"] = fraction(str(data["share"]))
        return cls(data["name"], given=tuple(data.get("given", ())), **rest)


def check_order(columns: Sequence[Column], public: Sequence[str], schema: Schema) -> None:
    """Names are attributes, each once, each given only what is public or comes before it."""
    if not columns:
        raise GuaranteeError("there is no column to synthesise.", remedy="Name at least one.")
    public_bases = {schema.attribute(name).name for name in public}
    for column in columns:
        attribute = schema.attribute(column.name)
        if attribute.size < 2:
            raise GuaranteeError(
                f"column {column.name!r} has only one category, so there is nothing to synthesise.",
                remedy="Leave it out, or give it more categories.",
            )
        if column.name in public_bases:
            raise GuaranteeError(
                f"column {column.name!r} is named twice, or is public.", remedy="Name it once."
            )
        for axis in schema.axes(column.given):
            if axis.base not in public_bases:
                raise GuaranteeError(
                    f"column {column.name!r} is given {axis.name!r}, which is neither public nor "
                    "synthesised before it.",
                    remedy="Change the order of the columns.",
                )
        if schema.size(column.given) > LARGEST_CONTEXTS:
            raise GuaranteeError(
                f"column {column.name!r} has {schema.size(column.given)} contexts, more than "
                f"{LARGEST_CONTEXTS}.",
                remedy="Give fewer or coarser axes.",
            )
        public_bases.add(column.name)


def build_kernels(
    columns: Sequence[Column],
    public: Sequence[str],
    figures: Figures,
    bound: Fraction,
    totals: FixedTotals | None = None,
) -> list[ColumnKernel]:
    """The kernels of all columns, M divided among them by their shares; nothing confidential.

    A first column that its totals settle gets none of M, and the others all of it.
    """
    names = [*public, *(column.name for column in columns)]
    allowed = [
        _allowed(column, names[:at], names, figures)
        for at, column in enumerate(columns, start=len(public) + 1)
    ]
    free = [at for at in range(len(columns)) if at or not settled(totals, allowed[0])]
    whole = sum((columns[at].share for at in free), Fraction(0))
    kernels: list[ColumnKernel] = []
    for at, (column, possible) in enumerate(zip(columns, allowed, strict=True)):
        kernel = kernel_of(
            column.model,
            attribute=figures.schema.attribute(column.name),
            allowed=possible,
            bound=bound * column.share / (whole if at in free else column.share),
            weighting=column.weighting,
            correct=column.correct,
            predictors=_predictors(column, figures.schema),
        )
        if at not in free:  # built all the same: a model that makes no sense is refused
            kernel = SettledKernel(column.model, kernel.attribute, possible, Fraction(0))
        kernels.append(kernel)
    return kernels


def settled(totals: FixedTotals | None, allowed: Bools) -> bool:
    """Whether published totals leave the first column no choice: one possible level per group.

    Its records are then a function of the figures and n, whatever a parameter would be.
    """
    return totals is not None and bool(np.bincount(totals.group[allowed[0]]).max() <= 1)


def _predictors(column: Column, schema: Schema) -> Floats | None:
    """The numbers of every context's parents, for a model that regresses on them."""
    if not column.model.shared:
        return None
    parents = [schema.attribute(name) for name in column.given]
    if not parents:
        return np.zeros((1, 0))
    axes = np.meshgrid(*(numbers(parent) for parent in parents), indexing="ij")
    return np.stack([axis.reshape(-1) for axis in axes], axis=1)


def _allowed(column: Column, known: Sequence[str], held: Sequence[str], figures: Figures) -> Bools:
    """Which levels are possible in each context, (contexts, levels).

    A rule is kept by the last of its columns, which must be given all the others in full. Columns
    that no file holds are left open: impossible is what is so for all their levels.
    """
    schema, names = figures.schema, column.table
    shape = tuple(axis.size for axis in schema.axes(names))
    allowed = np.ones(shape, dtype=bool)
    for rule in figures.zeros:
        cells = Cells(schema, (rule,))
        bases = [base for base in cells.bases if base in held]
        if column.name not in bases or any(base not in known for base in bases):
            continue
        mask = cells.touched((rule,)).reshape(cells.shape)
        mask = mask.all(axis=tuple(i for i, base in enumerate(cells.bases) if base not in held))
        missing = [base for base in bases if base not in names]
        if missing and mask.any():
            raise StructureError(
                f"'{rule.label}' ties {column.name!r} to {missing[0]!r}, which is not in its "
                "`given`.",
                remedy=f"Add {missing[0]!r} to what {column.name!r} is given.",
            )
        if not missing:
            allowed &= ~_spread(mask, bases, names)
    allowed = allowed.reshape(-1, shape[-1])
    if not allowed.any(axis=1).all():
        raise StructureError(
            f"in some context no category of {column.name!r} is possible.",
            remedy="State the impossible combination of the other columns as a rule of its own.",
        )
    return allowed


def _spread(mask: Any, seen: Sequence[str], names: Sequence[str]) -> Any:
    """A mask over `seen` as one that broadcasts over `names`."""
    order = [name for name in names if name in seen]
    moved = mask.transpose([list(seen).index(name) for name in order])
    sizes = iter(moved.shape)
    return moved.reshape([next(sizes) if name in seen else 1 for name in names])


@dataclass(frozen=True, eq=False)
class FixedTotals:
    """Published totals of the first column: the group of each level, and each group's figure.

    Group 0, if it has levels, is what is left of n. Figures are None until they are published.
    """

    group: Ints
    figures: Ints | None

    def sizes(self, n: int) -> Ints:
        """People in each group, group 0 first."""
        if self.figures is None:
            raise FigureError("the figures have no values yet.", remedy="Publish them first.")
        return np.concatenate([[n - int(self.figures.sum())], self.figures])


def shown(figures: Figures, names: Collection[str]) -> Figures:
    """The figures and bounds that a file with these columns shows, under their own labels.

    Those about a column that the file lacks are no part of it, except that a table of people by
    more columns than the file has fixes its margin over the ones it has.
    """
    schema, sums = figures.schema, []
    figures_of = figures.values or (None,) * len(figures.statements)
    for statement, figure in zip(figures.statements, figures_of, strict=True):
        if statement.relation == "zero":
            continue
        if set(Cells(schema, (statement,)).bases) <= set(names):
            sums.append((statement, figure))
            continue
        shown_axes = [schema.axis(axis).base in names for axis in statement.by]
        if statement.relation == "=" and statement.terms == (("", 1),) and any(shown_axes):
            axes = tuple(
                axis for axis, is_shown in zip(statement.by, shown_axes, strict=True) if is_shown
            )
            lost = tuple(at for at, is_shown in enumerate(shown_axes) if not is_shown)
            summed = None if figure is None else np.asarray(figure).sum(axis=lost)
            sums.append((replace(statement, by=axes), summed))
    values = tuple(figure for _, figure in sums)
    return Figures(schema, tuple(s for s, _ in sums), None if figures.values is None else values)


def fixed_totals(
    columns: Sequence[Column], public: Sequence[str], figures: Figures
) -> FixedTotals | None:
    """The published figures that drawing must respect; None if predictors keep them all.

    Figures about columns that the files do not have need not be kept; they only enter the price.
    """
    visible = shown(figures, {*public, *(column.name for column in columns)})
    statements = [
        s for s in visible.statements if set(Cells(visible.schema, (s,)).bases) - set(public)
    ]
    if not statements:
        return None
    bases = set(Cells(visible.schema, tuple(statements)).bases)
    bounded = any(s.relation != "=" for s in statements)
    if public or bounded or bases != {columns[0].name} or columns[0].given:
        raise StructureError(
            f"'{statements[0].label}' is published, and drawing these columns cannot keep it.",
            remedy="Publish totals of one column and synthesise it first, make all columns the "
            "figures mention public, or leave them out of the files.",
        )
    alone = Figures(visible.schema, tuple(statements))
    if visible.values is not None:
        pairs = zip(visible.statements, visible.values, strict=True)
        alone = Figures(
            visible.schema, tuple(statements), tuple(v for s, v in pairs if s in statements)
        )
    nested = alone.structure in ("laminar", "none")
    if not nested or (alone.values is not None and alone.atom_totals is None):
        raise StructureError(
            f"the totals published of {columns[0].name!r} leave the size of its groups open.",
            remedy="Publish nested totals.",
        )
    return FixedTotals(alone.atoms, alone.atom_totals)


def draw_levels(
    probabilities: Floats,
    contexts: Ints,
    generator: np.random.Generator,
    totals: FixedTotals | None,
    n: int,
) -> Ints:
    """A level for every record: from its context's law, or given the totals published."""
    codes = np.empty(n, dtype=np.int64)
    if totals is not None:
        drawn = [
            _choose(np.where(totals.group == group, probabilities[0], 0.0), int(size), generator)
            for group, size in enumerate(totals.sizes(n))
            if size
        ]
        codes[:] = np.concatenate(drawn)
        return generator.permutation(codes)
    for context in np.unique(contexts):
        at = np.flatnonzero(contexts == context)
        codes[at] = _choose(probabilities[context], len(at), generator)
    return codes


def _choose(weights: Floats, size: int, generator: np.random.Generator) -> Ints:
    return np.asarray(generator.choice(len(weights), size=size, p=weights / weights.sum()))


def contexts_of(column: Column, codes: Codes, schema: Schema, n: int) -> Ints:
    """Number of each record's context."""
    codes_found = np.zeros(n, dtype=np.int64)
    for axis in schema.axes(column.given):
        codes_found = codes_found * axis.size + axis.of_base[codes[axis.base]]
    return codes_found
