"""Small workloads with figures of every structure, and dense least squares as their oracle."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.workload import Workload
from congenial.figures.figures import Figures, publish
from congenial.figures.statements import Statement, count, linear, margin, structural_zeros, total
from congenial.tables.measurements import Measurements

SCHEMA = Schema.from_dict(
    {
        "district": {
            "levels": ["a", "b", "c", "d", "e", "f"],
            "within": {
                "county": ["1", "1", "1", "2", "2", "3"],
                "state": ["x", "x", "x", "y", "y", "y"],
                "urban": ["u", "r", "u", "r", "u", "u"],
            },
        },
        "race": {"levels": ["p", "q", "r"]},
        "age": {"edges": [0, 10, 18, 40, 65], "top": "65+", "within": {"adult": list("nnyyy")}},
    }
)
CELLS = ["district", "race", "age"]
TREE = [CELLS, ["district", "race"], ["county", "race", "age"], ["state", "race"], ["race"], []]
CLOSED, PASSES, GRADIENTS = "closed form", "two passes on a tree", "conjugate gradients"
FLAT = [["race", "district"], ["race"], ["district"], []]


@dataclass(frozen=True)
class Setting:
    name: str
    tables: list[list[str]]
    figures: tuple[Statement, ...]
    method: str
    unmeasured: tuple[int, ...] = ()


SETTINGS = [
    Setting("flat", FLAT, (), CLOSED),
    Setting("flat, margins", [CELLS, *FLAT], (margin("district"), margin("race")), CLOSED),
    Setting("flat, two-way", [CELLS, ["age", "race"]], (margin("race", "age"),), CLOSED),
    Setting("no finest", [["race", "age"], ["district", "race"]], (total(),), CLOSED),
    Setting("tree", TREE, (), PASSES),
    Setting("tree, totals", TREE, (total(by="county"),), PASSES),
    Setting("printed only", TREE, (total(by="county"),), PASSES, (1, 4)),
    Setting(
        "adults per district",
        TREE,
        (total(by="county"), count("age >= 18", by="district")),
        PASSES,
    ),
    Setting(
        "crossing counts",
        TREE,
        (
            total(by="district"),
            count("age >= 18", by="district"),
            count("race = 'p'", by="district"),
        ),
        PASSES,
    ),
    Setting(
        "margins above and below",
        TREE,
        (margin("race", "age"), margin("district"), margin("county", "adult")),
        PASSES,
    ),
    Setting(
        "weighted",
        TREE,
        (linear({"age >= 18": 2, "race = 'p'": 1}, by="district"), total()),
        PASSES,
    ),
    Setting("adult beside age", [*TREE, ["adult", "county"]], (total(by="county"),), PASSES),
    Setting("impossible", TREE, (total(), structural_zeros("race = 'q' and age < 10")), PASSES),
    Setting("off the spine", [*TREE, ["urban", "race"]], (total(by="county"),), PASSES),
    Setting(
        "one district",
        TREE,
        (count("district = 'b'", by="race"), total(by="county"), margin("race", "age")),
        PASSES,
    ),
    Setting(
        "sums only", [["county", "race", "adult"], ["state", "age"], ["age", "race"]], (), GRADIENTS
    ),
    Setting("totals by two ages", TREE, (margin("county", "adult"),), PASSES),
]


def confidential(seed: int = 0, schema: Schema = SCHEMA, zero: bool = True) -> Table:
    """Counts without anybody in race q under 10 (so that structural zeros hold)."""
    shape = [one.size for one in schema.attributes]
    counts = np.random.default_rng(seed).poisson(4.0, shape).astype(np.int64)
    if zero:
        counts[:, 1, 0] = 0
    return Table(schema, schema.names, counts)


def measurements(setting: Setting, seed: int = 0) -> tuple[Measurements, Table]:
    """The setting with precisions that differ, and the confidential table."""
    table = confidential(seed)
    known = publish(table, *setting.figures) if setting.figures else Figures(SCHEMA)
    rng = np.random.default_rng(seed + 1)
    precisions = rng.uniform(0.05, 2.0, len(setting.tables))
    precisions[list(setting.unmeasured)] = 0
    work = Workload.of(SCHEMA, setting.tables)
    return Measurements(work, tuple(precisions.tolist()), known), table


@dataclass(frozen=True)
class Dense:
    """Matrices over all cells of the schema, for the tables over SCHEMA's attributes."""

    maps: list[np.ndarray]
    figures: np.ndarray
    start: np.ndarray

    @property
    def kernel(self) -> np.ndarray:
        if not len(self.figures):
            return np.eye(self.figures.shape[1])
        _, sizes, rows = np.linalg.svd(self.figures)
        return rows[int((sizes > 1e-9).sum()) :].T

    def inverse(self, precisions) -> np.ndarray:
        """Covariance of the finest cells (pseudo-inverse of the information on the kernel)."""
        free = self.kernel
        pairs = zip(self.maps, precisions, strict=True)
        inside = sum(p * free.T @ m.T @ m @ free for m, p in pairs)
        return free @ np.linalg.pinv(inside, rcond=1e-11, hermitian=True) @ free.T

    def estimate(self, precisions, values) -> np.ndarray:
        """min sum_b p_b |y_b - T_b x|^2 over A x = t, by numpy's least squares on the kernel."""
        free = self.kernel
        rows = [np.sqrt(p) * m @ free for m, p in zip(self.maps, precisions, strict=True)]
        right = [
            np.sqrt(p) * (y - m @ self.start)
            for m, p, y in zip(self.maps, precisions, values, strict=True)
        ]
        inside = np.linalg.lstsq(np.vstack(rows), np.concatenate(right), rcond=1e-12)[0]
        return self.start + free @ inside


def dense(work: Measurements, table: Table) -> Dense:
    """The oracle, built cell by cell from the schema alone."""
    unit = np.eye(table.counts.size, dtype=np.int64)
    tables = [
        Table(table.schema, table.schema.names, one.reshape(table.counts.shape)) for one in unit
    ]
    maps = [
        np.array([one.marginal(names).counts.reshape(-1) for one in tables]).T.astype(float)
        for names in work.workload.tables
    ]
    figures = work.figures
    rows = [np.zeros((0, len(unit)))]
    for statement in (*figures.equalities, *figures.zeros):
        one = Figures(table.schema, (statement,))
        columns = np.array([one._figures(each)[0].reshape(-1) for each in tables]).T
        if statement.relation == "zero":
            columns = unit[columns[0] != 0]
        rows.append(columns.astype(float))
    return Dense(maps, np.vstack(rows), table.counts.reshape(-1).astype(float))
