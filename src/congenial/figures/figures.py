"""Figures: the published statistics A s = a (and bounds B s >= b) with their structure worked out.

What they leave of the people is `People`, what they fix on a released table is `Support`.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, Self, TypeVar, overload
from weakref import WeakValueDictionary

import numpy as np
import scipy.sparse as sp

from congenial.data.arguments import expect
from congenial.data.arrays import Ints
from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import FigureError, some_of
from congenial.figures import lattice
from congenial.figures.blocks import BlockKind
from congenial.figures.blocks import blocks as find_blocks
from congenial.figures.cells import Cells, first_places
from congenial.figures.statements import Statement, empty_cells, without_repeats

Structure = Literal["none", "laminar", "two-way", "one-way", "general"]
T = TypeVar("T")


class shared_property(cached_property[T]):
    """A cached property that the same statements over one schema share."""

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> T: ...

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> Self | T:
        """The value, worked out by the first of them that was asked for anything."""
        if instance is None:
            return self
        first = vars(instance).get(_FIRST)
        if first is None:
            first = _IN_USE.setdefault((id(instance.schema), instance.statements), instance)
            if first is not instance:
                vars(instance)[_FIRST] = first  # which lives as long as this one does
        value: T = super().__get__(first, owner)
        return value


_FIRST = "_first"
# A structure holds its schema: no other schema has its number while the structure is in use.
_IN_USE: WeakValueDictionary[tuple[int, tuple[Statement, ...]], Figures] = WeakValueDictionary()


@dataclass(frozen=True)
class Figures:
    """What is published exactly about a population: statements, and their values once published.

    `values[i]` holds statement i's figures as an array over its `by` axes; `values` is None while
    the plan is only being checked. Bounds and structural zeros carry no value. A statement given
    twice is kept once. `statements` count rows; those about units that own several rows are kept
    apart in `of_units`, where they count units (`Figures.of` sorts them, `told` has them all).

    Source: semi-dp, section 3 (invariants T(X) = t); congenial-dp, section 2 (A s = a, B s >= b).

    >>> from congenial import Schema, total
    >>> planned = Figures(Schema.from_dict({"sex": {"levels": ["f", "m"]}}), (total(by="sex"),))
    >>> planned.values is None
    True
    >>> planned.evaluate(Table(planned.schema, ["sex"], [14, 11])).values
    (array([14, 11]),)
    """

    schema: Schema
    statements: tuple[Statement, ...] = ()
    values: tuple[Ints | None, ...] | None = field(default=None, repr=False)
    of_units: Figures | None = None

    def __post_init__(self) -> None:
        expect(self.schema, Schema, "the schema", "Give a Schema.", FigureError)
        if self.values is not None:
            _check_figures(self.values)
        statements, values = without_repeats(self.statements, self.values)
        object.__setattr__(self, "statements", statements)
        object.__setattr__(self, "values", values)
        self._refuse_misplaced()
        for label, times in Counter(s.label for s in self.told).items():
            if times > 1:
                raise FigureError(
                    f"two figures are called '{label}'.", remedy="Give each its own name."
                )
        if self.values is not None:
            self._check_values(self.values)

    def _refuse_misplaced(self) -> None:
        if self.of_units is None and not any(statement.units for statement in self.statements):
            return
        refuse_misplaced(self)

    @classmethod
    def of(cls, schema: Schema, statements: Sequence[Statement]) -> Figures:
        """Statements about rows and about units, each in its place; without values."""
        marked = [
            statement
            for statement in statements
            if isinstance(statement, Statement) and statement.units
        ]
        rows = tuple(statement for statement in statements if statement not in marked)
        units = tuple(replace(statement, units=False) for statement in marked)
        return cls(schema, rows, None, cls(schema, units) if units else None)

    @property
    def of_rows(self) -> Figures:
        """The figures about rows alone."""
        return self if self.of_units is None else replace(self, of_units=None)

    @property
    def told(self) -> tuple[Statement, ...]:
        """Every statement, those about units after those about rows and marked as such."""
        if self.of_units is None:
            return self.statements
        marked = (replace(statement, units=True) for statement in self.of_units.statements)
        return (*self.statements, *marked)

    @property
    def told_values(self) -> tuple[Ints | None, ...]:
        """The values of `told`; None where there are none."""
        own = self.values or (None,) * len(self.statements)
        return own if self.of_units is None else (*own, *self.of_units.told_values)

    @property
    def known_total(self) -> int | None:
        """How many rows there are, where a figure counts all of them and its values are out.

        >>> from congenial import Schema, Table, publish, total
        >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
        >>> publish(Table(schema, ["sex"], [5, 4]), total(by="sex")).known_total
        9
        """
        for statement, values in zip(self.statements, self.values or (), strict=False):
            if statement.terms == (("", 1),) and values is not None:
                return int(values.sum())
        return None

    def __repr__(self) -> str:
        labels = some_of([statement.label[:60] for statement in self.statements])[:120]
        return f"Figures({labels or 'none'}; {'planned' if self.values is None else 'published'})"

    def _repr_html_(self) -> str:
        """What is published, without the figures themselves: they belong to `published.csv`."""
        from congenial._notebook import grid  # for notebooks alone

        rows = [
            (
                statement.label,
                statement.relation,
                ", ".join(statement.by),
                self.schema.size(statement.by),
                statement.because,
            )
            for statement in self.statements
        ]
        said = "with values" if self.values is not None else "values not computed"
        return grid(
            f"Published exactly: {len(rows)} statement{'s' if len(rows) != 1 else ''}, {said}",
            ("figure", "relation", "by", "numbers", "because"),
            rows,
        )

    # ---- structure, from the words alone -----------------------------------------------------
    #
    # The matrix is never built cell by cell. Statements only see the attributes they mention;
    # cells whose columns are equal are merged into *atoms*, and structure, rank and redundancy are
    # decided on atoms. No value is looked at, so what is worked out is the same for figures that
    # are planned, computed, read back from a ledger or joined to it, and is kept once for all of
    # them while one is in use: for a nation it is most of the memory and of the time.

    @shared_property
    def cells(self) -> Cells:
        """The cells the statements can see."""
        return Cells(self.schema, self.statements)

    @property
    def bases(self) -> tuple[str, ...]:
        """Attributes that some statement mentions, in schema order."""
        return self.cells.bases

    @property
    def equalities(self) -> tuple[Statement, ...]:
        """The statements published exactly."""
        return tuple(s for s in self.statements if s.relation == "=")

    @property
    def bounds(self) -> tuple[Statement, ...]:
        """The statements that only bound a statistic."""
        return tuple(s for s in self.statements if s.relation in (">=", "<="))

    @property
    def zeros(self) -> tuple[Statement, ...]:
        """The statements that say which cells are impossible."""
        return tuple(s for s in self.statements if s.relation == "zero")

    @cached_property
    def empty(self) -> tuple[Statement, ...]:
        """The cells of which published figures say that nobody is in them, as structural zeros:
        one statement for each figure that has a 0, the same whatever else is published.
        """
        pairs = zip(self.statements, self.values or (), strict=False)
        cells = [empty_cells(statement, values, self.schema) for statement, values in pairs]
        return tuple(each_cells for each_cells in cells if each_cells is not None)

    @shared_property
    def atoms(self) -> Ints:
        """Atom of each cell: cells with equal columns share one; -1 for impossible cells.

        Atom 0 is the *loose* one, touched by no equality statement; it may be empty.
        """
        cells, alike = self.cells, self.cells.alike((*self.equalities, *self.zeros))
        classes = cells.classes_at(self.equalities, alike.first)
        labels = np.where(cells.touched_at(self.equalities, alike.first), classes + 1, 0)
        if self.zeros:
            labels[cells.touched_at(self.zeros, alike.first)] = -1
        there = np.zeros(int(labels.max(initial=0)) + 1, dtype=bool)
        there[labels[labels > 0]] = True
        number = np.cumsum(there)[np.maximum(labels, 0)]
        numbered = np.where(labels > 0, number, labels).astype(np.int32)  # below LARGEST_DOMAIN
        return np.asarray(alike.over_cells(numbered))

    @shared_property
    def first_cells(self) -> Ints:
        """The first cell of each atom 0, 1, ...; -1 for the loose one where it is empty."""
        first = first_places(self.atoms)
        return first if len(first) else np.full(1, -1, dtype=np.int64)

    @shared_property
    def matrix(self) -> sp.csr_matrix:
        """Equality statements (rows, one per cell of `by`) on atoms 1, 2, ... (columns)."""
        return self.cells.matrix(self.equalities, self.first_cells[1:])

    @shared_property
    def rank(self) -> int:
        """Number of independent published figures."""
        return lattice.rank(self.matrix)

    @property
    def tells_total(self) -> bool:
        """Whether one of the figures is the number of people itself."""
        return any(statement.is_total for statement in self.statements)

    @shared_property
    def tells_people(self) -> bool:
        """Whether the figures, of whatever values, fix the number of people."""
        loose = self.first_cells[0] >= 0
        return bool(self.equalities) and not loose and lattice.tells_sum(self.matrix)

    @shared_property
    def structure(self) -> Structure:
        """What kind of set the figures are; each kind has its own exact mathematics.

        "laminar": every atom's total follows from what is published, so groups decouple (nested
        totals, and any other statements of full rank on their atoms). "two-way": what is left are
        tables of atoms of which both margins are published; "one-way": the same with more margins.
        """
        if not self.equalities:
            return "none"
        if self.rank == self.matrix.shape[1]:
            return "laminar"
        if any(kind.features is None for kind in self.blocks):
            return "general"
        two = all(len(kind.levels) == 2 for kind in self.blocks)
        return "two-way" if two else "one-way"

    @shared_property
    def blocks(self) -> tuple[BlockKind, ...]:
        """Groups of atoms whose totals are tied, when people are only moved and never added.

        Atom numbers are those of `atoms`, the loose atom 0 included: n is public.
        """
        if not self.equalities or self.rank == self.matrix.shape[1]:
            return ()  # every atom's total is known
        loose = int(self.first_cells[0] >= 0)
        matrix = self.matrix
        if loose:
            matrix = sp.hstack([sp.csr_matrix((matrix.shape[0], 1), dtype=np.int64), matrix])
            matrix = lattice.with_ones(matrix)
        return tuple(replace(kind, atoms=kind.atoms + 1 - loose) for kind in find_blocks(matrix))

    @shared_property
    def redundant(self) -> tuple[str, ...]:
        """Labels of statements that follow from those before them."""
        sizes = [self.schema.size(statement.by) for statement in self.equalities]
        ranks = lattice.ranks_of_first(self.matrix, np.cumsum(sizes))
        more = np.diff(ranks, prepend=0)
        named = zip(self.equalities, more, strict=True)
        return tuple(statement.label for statement, new in named if not new)

    # ---- values ----------------------------------------------------------------------------

    def evaluate(self, table: Table, units: Table | None = None) -> Figures:
        """The same statements with their values, computed from the confidential tables of rows and,
        where there are figures about them, of units.

        Raises FigureError, without a count, when the data break a structural zero or a bound.
        """
        values: list[Ints | None] = []
        for statement, figures in zip(self.statements, self._figures(table), strict=True):
            if not statement.allows(figures):
                bound = ", change the bound" if statement.relation in (">=", "<=") else ""
                raise FigureError(
                    f"the data contradict '{statement.label}'.",
                    remedy=f"Correct the data{bound} or leave out the figure.",
                )
            values.append(figures if statement.relation == "=" else None)
        return Figures(self.schema, self.statements, tuple(values), self._evaluate_units(units))

    def _evaluate_units(self, units: Table | None) -> Figures | None:
        if self.of_units is None:
            return None
        if units is None:
            raise FigureError(
                "figures about units need a table of units.",
                remedy="Give what Microdata.tabulate_units returns, as units=.",
            )
        return self.of_units.evaluate(units)

    def holds_for(self, table: Table, units: Table | None = None) -> bool:
        """Whether the table agrees with every published figure, bound and structural zero.

        Those about units are compared where a table of units is given.
        """
        if units is not None and self.of_units is not None and not self.of_units.holds_for(units):
            return False
        if not self.statements:
            return True
        if self.values is None:
            raise FigureError("the figures have no values yet.", remedy="Publish them first.")
        return all(
            statement.allows(fresh) and (published is None or np.array_equal(published, fresh))
            for statement, published, fresh in zip(
                self.statements, self.values, self._figures(table), strict=True
            )
        )

    def refuse_other_data(self, table: Table) -> None:
        """FigureError, without a number, where a table does not agree with what is published."""
        if not self.holds_for(table):
            raise FigureError(
                "the data do not agree with the published figures and rules.",
                remedy="Use the data from which the figures were computed.",
            )

    def _figures(self, table: Table) -> list[Ints]:
        """Each statement's sums over the confidential table, shaped by its axes."""
        counts = table.marginal(self.bases).counts.reshape(-1)
        return [self.cells.sums(statement, counts) for statement in self.statements]

    @cached_property
    def atom_totals(self) -> Ints | None:
        """People in each fixed atom (1, 2, ...), when values and a laminar structure give them."""
        if self.values is None or self.structure not in ("laminar", "none"):
            return None
        return lattice.atom_totals(self.matrix, self.flat_values)

    def level_totals(self, kind: BlockKind) -> list[Ints] | None:
        """People on each level of each feature (blocks x levels) of one-way blocks, once figures
        are published.

        These are margins, hence known although the atoms' own totals are not: any solution of the
        equations gives them. None without figures, or when n is needed and not published.
        """
        if self.values is None or kind.features is None or kind.atoms.min() == 0:
            return None
        x = self.some_solution[kind.atoms - 1]
        return [
            np.rint(x @ (level[:, np.newaxis] == np.arange(level.max() + 1))).astype(np.int64)
            for level in kind.features.T
        ]

    @cached_property
    def some_solution(self) -> Any:
        """Real atom totals (not those of the data) that agree with every published figure."""
        return lattice.solution(self.matrix, self.flat_values)

    @cached_property
    def flat_values(self) -> Ints:
        """All published figures, in the order of the matrix's rows."""
        assert self.values is not None
        flat = [v.reshape(-1) for v in self.values if v is not None]
        return np.concatenate(flat) if flat else np.zeros(0, dtype=np.int64)

    def _check_values(self, values: Sequence[Ints | None]) -> None:
        if len(values) != len(self.statements):
            raise FigureError(
                f"{len(self.statements)} figures came with {len(values)} values.",
                remedy="Publish them again.",
            )
        for statement, value in zip(self.statements, values, strict=True):
            shape = tuple(axis.size for axis in self.schema.axes(statement.by))
            statement.check_value(value, shape)

    # ---- contradictions --------------------------------------------------------------------

    @cached_property
    def clash(self) -> tuple[str, ...]:
        """Labels of a smallest set of statements that no table of counts satisfies; empty if none.

        Decided by linear programming over merged cells: bounds, structural zeros and, once they are
        known, published figures.
        """
        return smallest_clash(self)

    def refuse_clash(self) -> None:
        """Raise FigureError, naming the statements, when no table of counts satisfies them all."""
        if self.clash:
            raise FigureError(
                f"no table of counts satisfies {' and '.join(repr(label) for label in self.clash)}"
                f"{' together' if len(self.clash) > 1 else ''}.",
                remedy="Correct or leave out one of them.",
            )

    # ---- joining and writing ---------------------------------------------------------------

    def join(self, other: Figures) -> Figures:
        """Both sets of statements as one; a statement in both is kept once if its figures agree."""
        if other.schema.digest != self.schema.digest:
            raise FigureError(
                "figures with two different schemas cannot be combined.",
                remedy="Use one schema per population.",
            )
        statements, values = list(self.statements), list(self.values or ())
        for i, statement in enumerate(other.statements):
            theirs = None if other.values is None else other.values[i]
            if statement in statements:
                mine = values[statements.index(statement)] if values else None
                if mine is not None and theirs is not None and not np.array_equal(mine, theirs):
                    raise FigureError(
                        f"figure '{statement.label}' is already published with other values.",
                        remedy="If the data are of a new population, use a new ledger.",
                    )
                continue
            statements.append(statement)
            values.append(theirs)
        published = bool(statements) and all(
            figures.values is not None or not figures.statements for figures in (self, other)
        )
        units = self.of_units or other.of_units
        if self.of_units is not None and other.of_units is not None:
            units = self.of_units.join(other.of_units)
        joined = tuple(values) if published else None
        return Figures(self.schema, tuple(statements), joined, units)

    def implies(self, other: Figures) -> bool:
        """Whether every statement of `other` is among these, with the same figures."""
        mine = dict(zip(self.statements, self.to_dict()["statements"], strict=True))
        others = zip(other.statements, other.to_dict()["statements"], strict=True)
        if other.of_units is not None and not (
            self.of_units is not None and self.of_units.implies(other.of_units)
        ):
            return False
        return all(statement in mine and mine[statement] == figure for statement, figure in others)

    def to_dict(self) -> dict[str, Any]:
        """Plain data (statements and their published figures) for a bundle or a ledger."""
        figures = self.values or (None,) * len(self.statements)
        units = {} if self.of_units is None else {"of_units": self.of_units.to_dict()}
        return units | {
            "published": self.values is not None or not self.statements,
            "statements": [
                s.to_dict() | {"values": None if v is None else v.tolist()}
                for s, v in zip(self.statements, figures, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, schema: Schema, data: Mapping[str, Any]) -> Figures:
        """Inverse of `to_dict`."""
        statements = tuple(Statement.from_dict(s) for s in data["statements"])
        values = tuple(
            None if s["values"] is None else np.asarray(s["values"], dtype=np.int64)
            for s in data["statements"]
        )
        units = cls.from_dict(schema, data["of_units"]) if "of_units" in data else None
        read = cls(schema, statements, values if data["published"] else None, units)
        read.refuse_clash()
        return read

    @cached_property
    def digest(self) -> str:
        """Identity of the universe these figures leave: schema, statements and values."""
        text = json.dumps([self.schema.digest, self.to_dict()], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Figures) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def in_place(figures: Figures, units: bool) -> Figures:
    """Figures that a table was drawn given, beside those about rows: as they are, or, for a table
    of units, in their own place.
    """
    return Figures(figures.schema, (), None, figures) if units else figures


def _check_figures(values: object) -> None:
    expect(values, (tuple, list), "the figures", "Give one entry per figure.", FigureError)
    for figure in values:  # type: ignore[attr-defined]
        if figure is not None:
            expect(figure, (np.ndarray, np.generic), "a figure", "Give an array.", FigureError)


def publish(table: Table, *statements: Statement, units: Table | None = None) -> Figures:
    """Compute statistics exactly from the confidential table; they are public from here on.

    `units` is the table of units, for statements about units (`Microdata.tabulate_units`).

    CONFIDENTIAL input, public output: the figures carry no noise, and neither they nor what follows
    from them is protected. Nothing is recorded: `congenial publish` does that, in the ledger.
    Raises FigureError where the data break a bound or a structural zero.

    >>> from congenial import Schema, count, total
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65]}})
    >>> table = Table(schema, ["sex", "age"], [[5, 9], [4, 7]])
    >>> publish(table, total(by="sex"), count("age >= 18")).values
    (array([14, 11]), array(16))
    """
    expect(table, Table, "the table", "Give what tabulate(data, schema) returns.", FigureError)
    return Figures.of(table.schema, statements).evaluate(table, units)


# ---- clash --------------------------------------------------------------------------------------
#
# Which figures, bounds and structural zeros contradict one another.
#
# Exact arithmetic settles most cases; the others are decided by linear programming over merged
# cells.


def smallest_clash(figures: Figures) -> tuple[str, ...]:
    """Labels of a smallest set of statements that no table of counts satisfies; empty if none.

    Published values count once they are known. Statements are left out one by one as long as the
    others still contradict one another, so that each one named is needed.

    >>> from congenial import Schema, at_least, at_most, count, total
    >>> schema = Schema.from_dict({"ill": {"levels": ["no", "yes"]}})
    >>> few, many = at_most(total(), 3), at_least(count("ill = 'yes'"), 4)
    >>> len(smallest_clash(Figures(schema, (few, many))))
    2
    """
    if figures.of_units is not None and figures.of_units.clash:
        return figures.of_units.clash
    able = [s for s in figures.statements if s.relation != "=" or figures.values is not None]
    if not able or _agrees(figures) or _feasible(figures, able):
        return ()
    for statement in list(able):  # deletion filter: keep only what is needed to clash
        rest = [s for s in able if s is not statement]
        if not _feasible(figures, rest):
            able = rest
    return tuple(s.label for s in able)


def _agrees(figures: Figures) -> bool:
    """Whether exact arithmetic alone settles that some table has the published figures."""
    totals = figures.atom_totals
    return not figures.bounds and totals is not None and bool(np.all(totals >= 0))


def _feasible(figures: Figures, statements: Sequence[Statement]) -> bool:
    """Whether some table of nonnegative numbers satisfies these statements."""
    cells = figures.cells
    counted = [s for s in statements if s.relation != "zero"]
    first = cells.told_apart(statements)
    impossible = cells.touched_at([s for s in statements if s.relation == "zero"], first)
    places = first_places(np.where(impossible, -1, cells.classes_at(counted, first)))
    possible = first[places[places >= 0]]
    limits = [limits_of(figures, statement) for statement in counted]
    low, high = [np.zeros(0)], [np.zeros(0)]
    low += [least for least, _ in limits]
    high += [most for _, most in limits]
    matrix = cells.matrix(counted, possible)
    return lattice.feasible(matrix, np.concatenate(low), np.concatenate(high))


def limits_of(figures: Figures, statement: Statement) -> tuple[Any, Any]:
    """The least and the largest number that a figure or bound allows, for each of its rows."""
    numbers = _values_or_bound(figures, statement)
    low = np.full(len(numbers), -np.inf) if statement.relation == "<=" else numbers
    return low, np.full(len(numbers), np.inf) if statement.relation == ">=" else numbers


def _values_or_bound(figures: Figures, statement: Statement) -> Any:
    if statement.relation == "=":
        assert figures.values is not None
        numbers = figures.values[figures.statements.index(statement)]
        assert numbers is not None
        return numbers.reshape(-1).astype(float)
    return np.full(figures.schema.size(statement.by), float(statement.bound or 0))


# ---- unit statements ----------------------------------------------------------------------------
#
# Figures about units that own several rows (households, patients, firms), beside those about
# rows.
#
# They are statements like any others, over the same schema, but they count units: they may name
# only attributes that all rows of a unit share. `Figures` keeps them apart from figures about
# rows, so that no number of households is ever taken for a number of people.


def refuse_misplaced(figures: Figures) -> None:
    """FigureError where a statement about units is among those about rows, or names a row's."""
    for statement in figures.statements:
        if statement.units:
            raise FigureError(
                f"figure '{statement.label}' counts units, but the other figures count rows.",
                remedy="Use Figures.of(schema, statements), or publish(...).",
            )
    if figures.of_units is None:
        return
    if figures.of_units.of_units is not None or figures.of_units.schema != figures.schema:
        raise FigureError(
            "the figures about units have another schema than those about rows.",
            remedy="Use one schema for both.",
        )
    for statement in figures.of_units.statements:
        bases = Cells(figures.schema, (statement,)).bases
        for name in (base for base in bases if base not in figures.schema.of_units):
            raise FigureError(
                f"figure '{statement.label}' counts units by '{name}', in which the rows of one "
                "unit may differ.",
                remedy=f'Say of = "unit" in the schema of {name!r} if they share it, or count '
                "rows (leave units out).",
            )
