"""Small made-up nations, and a release of one by parts put together again."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from congenial import Figures, ReplaceOne, Schema, SemiAdjacent, Table
from congenial.figures.statements import Statement
from congenial.mechanisms.parted_tables import PartedTables
from congenial.pairs.pairs import Adjacency
from congenial.sampling.randomness import key_of

CELLS = ("block", "sex", "age")
TABLES = (
    ("block", "sex", "age"),
    ("county", "sex"),
    ("county", "sex", "age"),
    ("state", "age"),
    ("state", "sex", "age"),
    ("sex", "age"),
    (),
)
SCALES = tuple(None if one is None else Fraction(one) for one in (9, 4, 5, 7, None, 3, 2))


def schema_of(counties: Any) -> Schema:
    """A nation with one block per entry, which is its county; three counties to a state."""
    county = [f"c{one}" for one in counties]
    state = [f"s{one // 3}" for one in counties]
    block = [f"b{at}" for at in range(len(county))]
    return Schema.from_dict(
        {
            "block": {"levels": block, "within": {"county": county, "state": state}},
            "sex": {"levels": ["f", "m"]},
            "age": {"integers": [0, 4]},
        }
    )


def nation(seed: int, blocks: int = 24) -> Table:
    """An unbalanced nation of three states, some blocks of which hold nobody."""
    rng = np.random.default_rng(seed)
    schema = schema_of(np.sort(np.append(rng.integers(0, 8, blocks - 1), 8)))
    people = rng.poisson(rng.gamma(0.7, 4, (blocks, 1, 1)), (blocks, 2, 5))
    people[rng.random(blocks) < 0.1] = 0
    return Table(schema, CELLS, people)


def adjacency_of(table: Table, figures: tuple[Statement, ...]) -> Adjacency:
    """Replace-one, given the figures."""
    if not figures:
        return ReplaceOne(table.schema)
    return SemiAdjacent(Figures(table.schema, figures).evaluate(table))


@dataclass
class Assembled:
    """A release by parts as full arrays: per table, None where it was not drawn."""

    drawn: list[Any]
    estimates: list[Any]
    deviations: list[Any]
    counts: list[Any]


def assembled(made: PartedTables, people: Table, secret: bytes = bytes(32)) -> Assembled:
    """Every step of a release by parts, one part after the other, in memory."""
    pieces = [made.part(number) for number in range(len(made.parts.labels))]
    out = Assembled(*([None] * len(made.tables) for _ in range(4)))
    ups, below, tops = [], [], []
    for number, piece in enumerate(pieces):
        cells = people.counts[made.parts.areas(number)]
        counts = Table(piece.schema, CELLS, cells)
        piece.check(counts)
        keys = {at: key_of(secret, f"{at} {number}") for at in piece.drawn}
        values = piece.draw(counts, keys)
        for at in piece.drawn:
            _place(made, out.drawn, at, number, values[at])
        ups.append(piece.estimator.upward(values))
        below.append(piece.estimator.below(ups[-1]))
        tops.append(counts.marginal([made.parts.parts, "sex", "age"]).counts[0])
    upper = made.upper
    top = Table(upper.schema, [made.parts.parts, "sex", "age"], np.stack(tops))
    values = upper.draw(top, {at: key_of(secret, f"{at} upper") for at in upper.drawn})
    for at in upper.drawn:
        out.drawn[made.tables.index(upper.tables[at])] = values[at]
    estimator = upper.above(below)
    found = estimator.settled(values)
    for at, names in enumerate(made.tables):
        if not made.parts.is_below(names):
            out.estimates[at] = found.estimates.table(names)
            out.deviations[at] = found.deviations(names)
            out.counts[at] = found.whole.table(names)
    for number, piece in enumerate(pieces):
        settled = piece.estimator.settled(ups[number], estimator.above(found, number))
        for at, names in enumerate(made.tables):
            if made.parts.is_below(names):
                _place(made, out.estimates, at, number, settled.estimates.table(names))
                _place(made, out.deviations, at, number, settled.deviations(names))
                _place(made, out.counts, at, number, settled.whole.table(names))
    return out


def _place(made: PartedTables, into: list[Any], at: int, number: int, values: Any) -> None:
    """Put a part's piece of a table where it belongs."""
    names = made.tables[at]
    area = made.parts.geographic(names)
    assert area is not None
    if into[at] is None:
        into[at] = np.zeros([made.schema.axis(name).size for name in names], values.dtype)
    seen = made.schema.axis(area).of_base[made.parts.areas(number)].tolist()
    index: list[Any] = [slice(None)] * len(names)
    index[names.index(area)] = list(dict.fromkeys(seen))
    into[at][tuple(index)] = values
