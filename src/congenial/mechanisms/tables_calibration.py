"""From a promise to tables measured together: which, and how precisely."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from congenial.data.arguments import NAMES, listed, optional, takes
from congenial.data.magnitude import Magnitude
from congenial.errors import GuaranteeError, StructureError
from congenial.mechanisms.measured_tables import MeasuredTables, noise_given
from congenial.mechanisms.mechanism import adjacency_of
from congenial.mechanisms.parted_tables import PartedTables
from congenial.pairs.difference_types import DifferenceTypes, difference_types
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import joint_loss
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Pure, Tradeoff, ZeroConcentrated
from congenial.tables.design import AIM, Aim, Design, Keep, Weighted, design
from congenial.tables.design_document import document, model_of, repeated
from congenial.tables.promise import Law, law_and_promise

LARGEST_TABLE = 10**8  # cells of one table that is drawn and written in one piece


@takes(target=Guarantee, tables=listed(NAMES), aim=optional(AIM), keep=NAMES)
def calibrate_tables(
    target: Guarantee,
    tables: Sequence[Sequence[str]],
    aim: Aim | None = None,
    keep: Sequence[str] = (),
    measures: Sequence[Magnitude | None] = (None,),
) -> MeasuredTables:
    """The mechanism that measures several tables under one promise, from public inputs only.

    `tables`: the axes of each, attributes or coarser names. `aim`: how error is shared (`Keep()`,
    `Even()`, `Largest()`, `Weighted(...)` of `congenial.tables`). `keep`: further partitions that
    printed whole counts follow. `measures`: what is measured of each table, a number to sum or
    None for counts of people, which come first; several share the promise by the aim.

    >>> from congenial import Guarantee, ReplaceOne, Schema
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [1, 5]}})
    >>> target = Guarantee.zero_concentrated("0.5", under=ReplaceOne(schema))
    >>> made = calibrate_tables(target, [["sex", "age"], ["age"]])
    >>> made.guarantee.tradeoff.words, len(made.mechanisms)
    ('rho = 0.5 (zero-concentrated)', 2)
    """
    asked = TablesProblem(adjacency_of(target, "several tables promise"), tables, measures)
    law, promise = _stated(target.tradeoff)
    aim = aim or Keep()
    optimum = design(asked.workload, asked.types, asked.model, promise, aim, law)
    return asked.mechanism(optimum, _told(aim), keep)


def _told(aim: Aim) -> str:
    """An aim as bundles tell it: in plain numbers, whatever kind was given."""
    if isinstance(aim, Weighted):
        aim = replace(aim, weights=tuple(map(float, aim.weights)), absolute=bool(aim.absolute))
    if isinstance(aim, Keep):
        aim = Keep(float(aim.factor))
    return str(aim)


def _stated(target: Tradeoff) -> tuple[Law, Fraction]:
    """The law that keeps a promise, and its parameter."""
    if isinstance(target, ZeroConcentrated):
        return law_and_promise(rho=Fraction(target.rho))
    if isinstance(target, Pure):
        return law_and_promise(epsilon=Fraction(target.eps))
    if isinstance(target, Approximate):
        return law_and_promise(epsilon=Fraction(target.eps), delta=Fraction(target.dlt))
    raise GuaranteeError(
        f"several tables cannot be calibrated to {target.words}.",
        remedy="Give epsilon, rho, or epsilon with delta.",
    )


class TablesProblem:
    """Tables under an adjacency: how far they move together, and how precise they would be."""

    def __init__(
        self,
        adjacency: Adjacency,
        tables: Sequence[Sequence[str]],
        measures: Sequence[Magnitude | None] = (None,),
    ) -> None:
        self.adjacency, self.measures = adjacency, tuple(measures)
        self.tables = tuple(tuple(names) for names in tables)
        _refuse_twice(self.tables)
        self.workload = repeated(adjacency.schema, self.tables, len(self.measures))
        numbers = [number for number in self.measures for _ in self.tables]
        self.types: DifferenceTypes = difference_types(adjacency, self.workload, numbers)
        if not any(any(row) for row in self.types.squares):
            raise StructureError(
                "nothing is left to protect: the published figures fix every table.",
                remedy="Publish the tables exactly, or name a finer one.",
            )
        noise = [noise_given(adjacency.figures, number) for number in self.measures]
        self.model = model_of(self.workload, noise, self.types, self.measures)

    def mechanism(
        self, found: Design, aim: str, keep: Sequence[str] = (), whole: bool = True
    ) -> MeasuredTables:
        """What draws a design; `aim` is how error was shared, in words."""
        self._refuse_huge()
        design, descriptions, size = document(found, self.model, aim), [], len(self.tables)
        for at, number in enumerate(self.measures):
            scales = found.scales[at * size : (at + 1) * size]
            if not any(scales):
                raise StructureError(
                    "nothing is left to protect of the counts: the published figures fix them.",
                    remedy="Leave out counts = true: means divide by the exact counts.",
                )
            parameters = (self.adjacency, self.tables, found.family, scales)
            signed = number is not None and number.lowest < 0  # printed as estimated
            tables = MeasuredTables.of(
                *parameters, keep, {} if at else design, whole and not signed, number
            )
            descriptions.append(tables.description)
        first, *beside = descriptions
        tables = MeasuredTables(self.adjacency, replace(first, beside=tuple(beside)))
        self._refuse_more(tables.description, found)
        return tables

    def parted(self, found: Design, aim: str, parts: str) -> PartedTables:
        """What draws the same design part by part."""
        parameters = (self.adjacency, self.workload.tables, found.family, found.scales)
        tables = PartedTables.of(*parameters, parts, document(found, self.model, aim))
        self._refuse_more(tables.description, found)
        return tables

    def _refuse_huge(self) -> None:
        """A table is drawn, estimated and written as a whole: refused before any cell is listed."""
        margins = self.workload.margins[: len(self.tables)]
        for names, margin in zip(self.tables, margins, strict=True):
            if margin.size > LARGEST_TABLE:
                raise StructureError(
                    f"the table over {', '.join(names)} has {margin.size:,} cells; the most for a "
                    f"table among several is {LARGEST_TABLE:,}.",
                    remedy="Name coarser tables, or release part by part (parts = 'state').",
                )

    def _refuse_more(self, description: TablesDescription, found: Design) -> None:
        """A promise that is weaker than was asked for is never made."""
        loss = joint_loss([description], self.adjacency)
        if max(loss.rho, loss.epsilon) > found.promise:
            raise GuaranteeError(
                f"these tables would promise {loss.tradeoff.words}, more than was asked for.",
                remedy="Leave out figures or tables, and report this to the makers of congenial.",
            )


def _refuse_twice(tables: Sequence[tuple[str, ...]]) -> None:
    """Refuse a table that is named twice, in any order of its columns: it would be drawn twice."""
    for at, names in enumerate(tables):
        if any(set(names) == set(other) for other in tables[:at]):
            raise StructureError(
                f"the table over {', '.join(names) or 'nothing'} is listed twice (the order of "
                "the columns does not matter).",
                remedy="Name it once.",
            )
