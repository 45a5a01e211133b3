"""Small universes on which every registered mechanism is audited; a mechanism joins by
registering.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.errors import StructureError
from congenial.mechanisms.calibrate import REGISTRY
from congenial.mechanisms.protocol import Mechanism
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, ZeroConcentrated
from congenial.public.adjacency import AddRemove, Adjacency, ReplaceOne, SemiAdjacent
from congenial.public.invariants import publish
from congenial.public.statements import count, linear, margin, structural_zeros, total

THREE = Schema.from_dict({"x": {"levels": ["a", "b", "c"]}})
TWO_BY_THREE = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b", "c"]}})
TWO_BY_TWO = Schema.from_dict({"g": {"levels": ["p", "q"]}, "x": {"levels": ["a", "b"]}})
SEX_BY_AGE = Schema.from_dict(
    {"sex": {"levels": ["f", "m", "x"]}, "age": {"edges": [0, 18], "top": "18+"}}
)
AGES = Schema.from_dict({"age": {"edges": [0, 5, 18, 65], "top": "65+"}})


@dataclass(frozen=True)
class Universe:
    """A schema, a conforming table, mandates on it, and a released table."""

    label: str
    table: Table
    statements: tuple
    release: tuple[str, ...]
    max_rows: int | None = None

    @property
    def people(self) -> int:
        return self.table.total

    @property
    def adjacency(self) -> Adjacency:
        if self.max_rows is not None:
            return AddRemove(self.table.schema, self.max_rows)
        if not self.statements:
            return ReplaceOne(self.table.schema)
        return SemiAdjacent(publish(self.table, *self.statements))


def _table(schema: Schema, counts) -> Table:
    return Table(schema, schema.names, np.array(counts))


UNIVERSES = (
    Universe("no mandates", _table(THREE, [1, 0, 2]), (), ("x",)),
    Universe("several rows", _table(THREE, [1, 0, 2]), (), ("x",), max_rows=2),
    Universe("total", _table(THREE, [2, 0, 1]), (total(),), ("x",)),
    Universe("one person", _table(THREE, [0, 1, 0]), (total(),), ("x",)),
    Universe(
        "totals by group",
        _table(TWO_BY_THREE, [[1, 0, 0], [0, 1, 1]]),
        (total(by="g"),),
        ("g", "x"),
    ),
    Universe(
        "hidden group", _table(TWO_BY_THREE, [[1, 0, 0], [0, 1, 0]]), (total(by="g"),), ("x",)
    ),
    Universe("voting age", _table(AGES, [1, 0, 2, 0]), (total(), count("age >= 18")), ("age",)),
    Universe("one figure, rest loose", _table(AGES, [1, 1, 1, 0]), (count("age >= 18"),), ("age",)),
    Universe(
        "weighted",
        _table(AGES, [1, 0, 1, 0]),
        (linear({"age < 18": 2, "age >= 18": 3}), total()),
        ("age",),
    ),
    Universe(
        "impossible cells",
        _table(AGES, [0, 1, 1, 0]),
        (total(), structural_zeros("age < 5")),
        ("age",),
    ),
    Universe(
        "both margins", _table(TWO_BY_TWO, [[1, 1], [0, 1]]), (margin("g"), margin("x")), ("g", "x")
    ),
    Universe(
        "margins of 2 x 3",
        _table(TWO_BY_THREE, [[1, 0, 1], [0, 1, 0]]),
        (margin("g"), margin("x")),
        ("g", "x"),
    ),
    Universe(
        "crossing groups",
        _table(SEX_BY_AGE, [[1, 0], [0, 0], [0, 1]]),
        (total(), count("sex = 'f'"), count("age >= 18")),
        ("sex", "age"),
    ),
    Universe(
        "crossing, no total",
        _table(TWO_BY_TWO, [[1, 0], [1, 1]]),
        (count("g = 'p'"), count("x = 'a'")),
        ("g", "x"),
    ),
    Universe(
        "empty group", _table(TWO_BY_THREE, [[0, 0, 0], [2, 0, 0]]), (total(by="g"),), ("g", "x")
    ),
)

# Little noise: few outputs carry nearly all the mass, so that windows and draws are decisive.
TARGETS = {
    Pure: lambda under: Guarantee.pure(4, under),
    Approximate: lambda under: Guarantee.approximate(8, 1e-2, under),
    ZeroConcentrated: lambda under: Guarantee.zero_concentrated(6, under),
    Gaussian: lambda under: Guarantee.gaussian(3, under),
}


# What a mechanism may refuse; anything else it must serve.
CROSSING = ("both margins", "margins of 2 x 3", "crossing groups", "crossing, no total")
REFUSED = {("congenial_hierarchy", label) for label in CROSSING}
REFUSED |= {  # two-way tables of single cells only
    ("knorm", universe.label)
    for universe in UNIVERSES
    if universe.label not in ("both margins", "margins of 2 x 3")
}
REFUSED |= {  # a chain is for ties only: the rest has exact draws
    ("congenial_chain", universe.label) for universe in UNIVERSES if universe.label not in CROSSING
}


@dataclass(frozen=True)
class Case:
    mechanism: Mechanism
    universe: Universe
    target: str

    def __str__(self) -> str:
        return f"{self.mechanism.name}-{self.target}-{self.universe.label}".replace(" ", "_")


def cases() -> list[Case]:
    """Every registered mechanism, under every target it takes, on every universe it can serve."""
    found = []
    for mechanism in REGISTRY.values():
        for universe in UNIVERSES:
            mandated = bool(universe.statements)
            if mechanism.conditions != mandated and mechanism.conditions:
                continue
            for target in mechanism.targets:
                try:
                    aim = TARGETS[target](universe.adjacency)
                    built = mechanism.calibrate(aim, universe.release)
                except StructureError:
                    assert (mechanism.name, universe.label) in REFUSED
                    continue
                found.append(Case(built, universe, target.__name__))
    return found
