"""Universe: the databases among which a promise holds, what each reading promises a person there in
words, and their enumeration when they are few.

Enumeration is for checking claims, not for production: every number the product prints about
privacy is compared with it on small universes. So is the stored rule of the existential reading,
which says what database stands in for "you had answer y": of all conforming tables in which
somebody has the answer the nearest to the true one, and of those the one that comes first when
counts are read in the order of the schema. The person takes that place and others keep theirs as
far as they can. Two promises may be added only if they use the same rule: with different ones, two
losses of 0 can hide a joint loss.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from math import comb

import numpy as np

from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.pairs.a_star import Metric, Reach, Reading

RULE = "nearest table, first in the order of the schema"
LARGEST_ENUMERATION = 200_000  # tables, before the figures select among them


@dataclass(frozen=True)
class Universe:
    """All databases of n people over the schema, or those that conform to published figures."""

    figures: Figures

    @property
    def words(self) -> str:
        """In words, for a guarantee."""
        figures = "; ".join(s.label for s in self.figures.equalities)
        zeros = "; ".join(s.label for s in self.figures.zeros)
        words = "all datasets over the schema"
        if figures:
            words = f"all datasets that agree with the published figures ({figures})"
        bounds = "; ".join(f"{s.label} {s.limit}" for s in self.figures.bounds)
        if bounds:
            words += f"{' and' if figures else ' that'} keep the public bounds ({bounds})"
        return f"{words}, without what is impossible by definition ({zeros})" if zeros else words

    def tables(self, n: int) -> Iterator[Table]:
        """Every table of n people over the whole schema that agrees with the published figures."""
        schema = self.figures.schema
        cells = schema.size(schema.names)
        if comb(n + cells - 1, n) > LARGEST_ENUMERATION:
            raise StructureError(
                f"{n} people in {cells} cells form {comb(n + cells - 1, n)} tables, more than "
                f"{LARGEST_ENUMERATION}.",
                remedy="Enumerate a smaller universe.",
            )
        shape = tuple(len(schema.axis(name).levels) for name in schema.names)
        for people in combinations_with_replacement(range(cells), n):
            counts = np.bincount(np.asarray(people, dtype=np.int64), minlength=cells)
            table = Table(schema, schema.names, counts.reshape(shape).astype(np.int64))
            if self.figures.values is None or self.figures.holds_for(table):
                yield table


def selected(figures: Figures, table: Table, answer: tuple[int, ...]) -> Table:
    """The table that stands in when somebody is given `answer` (a cell, as level numbers).

    `table` is over the whole schema and agrees with the figures. Under nested figures somebody of
    the answer's atom moves there; otherwise all conforming tables are listed. Refused where they
    are too many, or where no conforming table has the answer.
    """
    if table.counts[answer] > 0:
        return table
    if figures.structure in ("none", "laminar") and not figures.bounds:
        return _moved(figures, table, answer)
    best: tuple[int, list[int]] | None = None
    for other in Universe(figures).tables(int(table.counts.sum())):
        if other.counts[answer] > 0:
            distance = int(np.abs(other.counts - table.counts).sum())
            candidate = (distance, other.counts.reshape(-1).tolist())
            best = candidate if best is None else min(best, candidate)
    if best is None:
        raise _impossible()
    counts = np.array(best[1], dtype=np.int64).reshape(table.counts.shape)
    return Table(table.schema, table.names, counts)


def _moved(figures: Figures, table: Table, answer: tuple[int, ...]) -> Table:
    """Somebody of the same atom, in the first cell that has anybody, moves."""
    names = table.schema.names
    shape = [table.schema.attribute(n).size if n in figures.bases else 1 for n in names]
    atoms = np.broadcast_to(figures.atoms.reshape(shape), table.counts.shape)
    there = np.flatnonzero((atoms == atoms[answer]) & (table.counts > 0))
    if atoms[answer] < 0 or not len(there):
        raise _impossible()
    counts = table.counts.copy()
    counts.reshape(-1)[there[0]] -= 1
    counts[answer] += 1
    return Table(table.schema, names, counts)


def _impossible() -> StructureError:
    return StructureError(
        "with the published figures nobody can have this answer.",
        remedy="Ask about a possible answer.",
    )


def pairs_in_words(figures: Figures, reading: Reading, metric: Metric, records: int) -> str:
    """The pairs that must look alike, as a clause after "the protection compares"."""
    agreed = _agree_with(figures)
    if metric == "symmetric difference":
        agree = f"agree with {agreed} and " if figures.statements else ""
        return f"datasets that {agree}differ in at most {_counted(records, 'row')} added or removed"
    if reading == "existential":
        return (
            f"a dataset that agrees with {agreed} and one that a stored rule picks for a person "
            "and an answer, among the datasets that agree and give the person this answer "
            f"({RULE}; its table is at most {_counted(records, 'move')} away)"
        )
    people = "one person's record" if records == 1 else f"{records} people's records"
    if all(statement.is_total for statement in figures.statements):
        return f"two datasets of the same size that differ in {people}"
    words = f"datasets that agree with {agreed} and differ in at most {people}"
    if reading == "literal":
        return f"{words}, the literal reading, under which nothing may be compared for some people"
    return words


def guesser_in_words(records: int) -> str:
    """Whose guess a promise about `records` replaced records bounds, after "someone".

    With one record, datasets form a product, so that independent beliefs stay independent.
    """
    others = {
        1: ", or believes that yours is independent of them",
        2: " and at most one other (whom the exact figures can force to change with yours)",
    }.get(
        records,
        f" and at most {records - 1} others (whom the exact figures can force to change with "
        "yours)",
    )
    thinks = "thinks two possible answers of yours equally likely"
    return f"knows every record except yours{others}, and {thinks}"


def no_pairs_in_words(figures: Figures) -> str:
    """The same where a* = 0."""
    return (
        f"datasets that agree with {_agree_with(figures)} and differ in one person's record; "
        "only one table of counts agrees, so nothing but numbers that are summed is left to protect"
    )


def left_out(reach: Reach, within: int) -> str:
    """What a number of records below a* would and would not protect."""
    protected = (
        "It would protect any two datasets that agree with the figures and differ in at most "
        f"{_counted(within, 'record')}."
    )
    if within < reach.distance.value:
        return (
            f"{protected} But for somebody, no dataset within that distance may have an answer "
            "that the figures allow: that answer could be ruled out with certainty."
        )
    return (
        f"{protected} But some datasets that agree with the figures differ in ways that such small "
        "differences never add up to: a release could distinguish them with certainty."
    )


def _agree_with(figures: Figures) -> str:
    parts = ["the exact figures"] if figures.equalities else []
    parts += ["the public bounds"] if figures.bounds else []
    parts += ["what is impossible by definition"] if figures.zeros else []
    return " and ".join(parts) or "each other in size"


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
