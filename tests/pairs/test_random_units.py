"""Random universes of units: numbers and joint sensitivities against all their databases.

Units have one or two attributes of their own and a size; tables of rows and several tables of units
are asked for at once; `max_rows` is raised; and units with too many rows are cut.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from congenial import Schema, count, margin, total
from congenial.data.schema import Unit
from congenial.data.source import PlannedSource, UnitFile
from congenial.data.tabulate import Microdata
from congenial.errors import StructureError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement, of_units
from congenial.pairs.pairs import Supremum
from congenial.pairs.several_rows import SeveralRows, saved_together
from tests.pairs.units import Units

SEED = 20261119
LARGEST, FEW = 1500, 150  # datasets of a universe, and of those checked in every run
Names = tuple[str, ...]
Weights = list[tuple[Names, Fraction]]


@dataclass(frozen=True)
class Universe:
    """Attributes without the size, figures, and how many units with how many rows."""

    columns: dict[str, Any]
    statements: tuple[Statement, ...]
    number: int
    most: int

    @property
    def pairs(self) -> SeveralRows:
        return self.with_rows(self.most)

    def with_rows(self, most: int) -> SeveralRows:
        sized = self.columns | {"size": {"integers": [1, most], "of": "unit size"}}
        figures = Figures.of(Schema.from_dict(sized), self.statements)
        return SeveralRows(figures, most, never_empty=True)

    def truth(self, most: int | None = None) -> Units:
        plain = Schema.from_dict(self.columns)
        figures = Figures.of(plain, self.statements)
        return Units(plain, figures, self.number, most or self.most, least=1)

    @property
    def of_units(self) -> Names:
        return tuple(name for name in self.columns if name != "x")


def drawn(rng: np.random.Generator) -> Universe:
    """A universe at random, of every shape that a proof covers and some that none does."""
    parents = [str(i) for i in rng.integers(0, 2, 2)]
    columns: dict[str, Any] = {"block": {"levels": ["1", "2"], "of": "unit"}}
    columns["block"]["within"] = {"state": parents}
    if rng.random() < 0.5:
        columns["tenure"] = {"levels": ["own", "rent"], "of": "unit"}
    columns["x"] = {"levels": ["A", "B"][: int(rng.integers(1, 3))]}
    rows = [(total(),), (margin("x"),), (total(by="block"),), (total(by="state"),)]
    units: list[tuple[Statement, ...]] = [
        (total(),),
        (total(by="block"),),
        (total(by="state"),),
        (count("block = '1'"),),
    ]
    if "tenure" in columns:
        units += [(margin("block"), margin("tenure")), (total(by=("block", "tenure")),)]
    told = units[rng.integers(len(units))]
    statements = rows[rng.integers(len(rows))] + tuple(of_units(one) for one in told)
    return Universe(columns, statements, int(rng.integers(2, 5)), int(rng.integers(2, 4)))


def universes(wanted: int, seed: int, largest: int = LARGEST) -> list[Universe]:
    """So many that are small enough to list and not refused."""
    rng = np.random.default_rng(seed)
    found: list[Universe] = []
    while len(found) < wanted:
        one = drawn(rng)
        if len(one.truth().contents) ** one.number > largest:
            continue
        try:
            one.pairs.units  # noqa: B018 - worked out when asked for
        except StructureError:
            continue
        found.append(one)
    return found


def tables(one: Universe, truth: Units) -> dict[tuple[str, Names], Any]:
    """Every table asked for, of rows ("rows") or units ("units"), for all datasets."""
    names = tuple(one.columns)
    shape = [truth.schema.attribute(name).size for name in names]
    cells = truth.tables.reshape(-1, *shape)
    own = [truth.schema.attribute(name).size for name in one.of_units]
    sizes = np.zeros((len(truth.datasets), int(np.prod(own)) * (truth.most + 1)), np.int64)
    sizes[:, : truth.counts_of_counts.shape[1]] = truth.counts_of_counts
    by_size = sizes.reshape(-1, *own, truth.most + 1)
    classes = tuple(range(1, len(own) + 1))
    found = {
        ("rows", ("x",)): cells.sum(axis=classes),
        ("rows", names): cells,
        ("units", one.of_units): by_size.sum(axis=-1),
        ("units", ("block",)): by_size.sum(axis=(*classes[1:], len(own) + 1)),
        ("units", ("size",)): by_size.sum(axis=classes),
        ("units", (*one.of_units, "size")): by_size,
    }
    return {key: table.reshape(len(table), -1) for key, table in found.items()}


def moved(truth: Units, shown: list[Any], apart: tuple[int, int, int]) -> tuple[Any, int]:
    """l1 and squared l2 norms of all tables for all look-alikes; cases that none reaches."""
    norms, missing = [np.zeros((1, len(shown), 2), dtype=np.int64)], 0
    for group in truth.groups():
        first = truth.datasets[group][:, 0]
        for k, near in truth.look_alikes(group, *apart):
            missing += len(np.unique(first)) - len(np.unique(first[near]))
            u = [table[group[near]] - table[group[k]] for table in shown]
            both = [np.stack([np.abs(v).sum(axis=1), (v * v).sum(axis=1)], axis=1) for v in u]
            norms.append(np.unique(np.stack(both, axis=1), axis=0))
    return np.unique(np.concatenate(norms), axis=0), missing


def hold(found: Supremum, worst: Fraction) -> None:
    """Never below what some databases show, and equal where it is called exact."""
    assert worst <= found.value
    assert worst == found.value or not found.exact


def joint(pairs: SeveralRows, asked: Weights, square: bool) -> Supremum:
    return (pairs.joint_l2_squared if square else pairs.joint_l1)(asked)


def check_norms(
    pairs: SeveralRows, keys: list[tuple[str, Names]], norms: Any, rng: np.random.Generator
) -> None:
    """Each table, several of one kind, and both kinds at once, with weights at random."""
    weight = [Fraction(int(w), 4) for w in rng.integers(1, 12, len(keys))]
    for square in (False, True):
        seen = norms[:, :, int(square)]
        kinds: dict[str, Weights] = {"rows": [], "units": []}
        for at, (kind, names) in enumerate(keys):
            of = pairs if kind == "rows" else pairs.tables_of_units
            hold(joint(of, [(names, Fraction(1))], square), Fraction(int(seen[:, at].max())))
            kinds[kind].append((names, weight[at]))
        for kind, asked in kinds.items():
            of = pairs if kind == "rows" else pairs.tables_of_units
            own = [i for i, (one, _) in enumerate(keys) if one == kind]
            worst = max(sum(weight[i] * int(row[i]) for i in own) for row in seen)
            hold(joint(of, asked, square), Fraction(worst))
        x, size = keys.index(("rows", ("x",))), keys.index(("units", ("size",)))
        rows: Weights = [(("x",), weight[x])]
        units: Weights = [(("size",), weight[size])]
        both = joint(pairs, rows, square).value
        both += joint(pairs.tables_of_units, units, square).value
        both -= saved_together(pairs, rows, units, square=square)
        assert max(weight[x] * int(r[x]) + weight[size] * int(r[size]) for r in seen) <= both


def check(one: Universe, rng: np.random.Generator, largest: int = LARGEST) -> None:
    """A universe as it is, and with one more row in a unit where that is small enough."""
    for most in (one.most, one.most + 1):
        truth, pairs = one.truth(most), one.with_rows(most)
        if len(truth.contents) ** one.number > largest:
            continue
        shown = tables(one, truth)
        norms, missing = moved(
            truth, list(shown.values()), (pairs.units, pairs.slots, pairs.records)
        )
        assert missing == 0, (one.statements, most)
        check_norms(pairs, list(shown), norms, rng)
    raised = one.with_rows(one.most + 1)
    assert raised.units >= one.pairs.units
    assert raised.slots >= one.pairs.slots


def test_random_universes() -> None:
    rng = np.random.default_rng(SEED)
    for one in universes(3, SEED, FEW):
        check(one, rng, FEW)


@pytest.mark.audit
def test_two_hundred_random_universes() -> None:
    rng = np.random.default_rng(SEED + 1)
    for one in universes(200, SEED + 1):
        check(one, rng)


def test_planted_the_numbers_of_fewer_rows_are_exceeded() -> None:
    """`max_rows` raised and prices left as they were: some databases show more."""
    for one in universes(20, SEED):
        truth, before = one.truth(one.most + 1), one.pairs
        if len(truth.contents) ** one.number > LARGEST or len(one.columns["x"]["levels"]) < 2:
            continue
        after = one.with_rows(one.most + 1)
        shown = tables(one, truth)
        apart = (after.units, after.slots, after.records)
        norms, _ = moved(truth, [shown["rows", ("x",)]], apart)
        if int(norms[:, 0, 0].max()) > before.l1(["x"]).value:
            return
    pytest.fail("no universe showed it")


# ---- units in a file of their own ---------------------------------------------------------------


def check_two_files(one: Universe, rng: np.random.Generator, folder: Path) -> None:
    """A dataset of the universe as rows and homes: counted to the tables that were enumerated."""
    truth, names = one.truth(), tuple(one.columns)
    at = int(rng.integers(len(truth.datasets)))
    shape = [truth.schema.attribute(name).size for name in names]
    labels = [truth.schema.attribute(name).levels for name in names]
    homes, rows = [",".join(("home", *one.of_units))], ["home,x"]
    for home, content in enumerate(truth.datasets[at]):
        cells = np.repeat(np.arange(int(np.prod(shape))), truth.contents[content])
        codes = np.array(np.unravel_index(cells, shape)).T
        said = [[labels[i][code] for i, code in enumerate(row)] for row in codes]
        homes.append(f"{home},{','.join(said[0][:-1])}")
        rows += [f"{home},{row[-1]}" for row in said]
    (folder / "homes.csv").write_text("\n".join(homes) + "\n")
    (folder / "rows.csv").write_text("\n".join(rows) + "\n")
    source = PlannedSource(folder / "rows.csv", units=UnitFile(folder / "homes.csv", "home", True))
    with Microdata.open(source, one.pairs.schema, Unit("home", one.most)) as data:
        for (kind, axes), expected in tables(one, truth).items():
            counted = data.tabulate(axes) if kind == "rows" else data.tabulate_units(axes)
            found = np.asarray(counted.counts)
            if "size" in axes:  # no unit without rows
                expected = expected.reshape(len(expected), *found.shape[:-1], -1)[..., 1:]
            assert np.array_equal(found.reshape(-1), expected[at].reshape(-1))


def test_units_in_a_file_of_their_own_make_the_same_tables(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED)
    for one in universes(2, SEED, FEW):
        check_two_files(one, rng, tmp_path)


@pytest.mark.audit
def test_units_in_files_of_their_own_of_two_hundred_universes(tmp_path: Path) -> None:
    rng = np.random.default_rng(SEED + 1)
    for one in universes(200, SEED + 1):
        check_two_files(one, rng, tmp_path)


# ---- units that are cut ------------------------------------------------------------------------


def _cut(rows: tuple[int, ...], most: int) -> tuple[int, ...]:
    return tuple(sorted(rows)[:most])


def _slots(x: tuple[int, ...], y: tuple[int, ...], cells: int) -> int:
    apart = np.bincount(x, minlength=cells) - np.bincount(y, minlength=cells)
    return int(max(np.maximum(apart, 0).sum(), np.maximum(-apart, 0).sum()))


def check_cut(rng: np.random.Generator) -> None:
    """Databases of units with up to two rows too many, cut: figures and price of the rest."""
    cells, most, number = int(rng.integers(1, 3)), 2, 2 + int(rng.integers(0, 2))
    figures = [(total(),), (total(), margin("x")), ()][rng.integers(3)]
    schema = Schema.from_dict({"x": {"levels": ["A", "B"][:cells]}})
    pairs = SeveralRows(Figures(schema, figures), most)
    contents = [c for n in range(5) for c in combinations_with_replacement(range(cells), n)]
    apart = np.array([[_slots(x, y, cells) for y in contents] for x in contents])
    kept = [np.bincount(_cut(one, most), minlength=cells) for one in contents]
    data = np.array(list(product(range(len(contents)), repeat=number)))
    if len(data) > LARGEST:
        data = data[rng.choice(len(data), LARGEST, replace=False)]
    table = np.array(kept)[data].sum(axis=1)
    told = table if len(figures) == 2 else table.sum(axis=1, keepdims=True) * bool(figures)
    for at in range(0, len(data), 7):
        near = (data != data[at]).sum(axis=1) <= pairs.units
        near &= apart[data, data[at]].sum(axis=1) <= pairs.slots  # of the whole data
        near &= (told == told[at]).all(axis=1)
        u = table[near] - table[at]
        assert np.abs(u).sum(axis=1).max() <= pairs.l1(["x"]).value
        assert (u * u).sum(axis=1).max() <= pairs.l2_squared(["x"]).value


def test_cut_units_of_random_universes() -> None:
    rng = np.random.default_rng(SEED)
    for _ in range(3):
        check_cut(rng)


@pytest.mark.audit
def test_cut_units_of_two_hundred_random_universes() -> None:
    rng = np.random.default_rng(SEED + 1)
    for _ in range(200):
        check_cut(rng)
