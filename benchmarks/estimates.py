"""Coverage of every kind of estimate where it is hard: small areas, empty cells, lone people.

Releases of one table are drawn again and again. A row pools one area over figures (none, nested,
crossing, structural zeros) and laws (epsilon = 1, rho = 0.1). Answers are counted apart by their
form: *determined* intervals, and those that are refused or say only what is possible (a note, no
bound, or all of the range). `covered` is about determined intervals: coverage given that one is
printed. An end that is not a number never holds the truth, and an interval for what does not exist
(a share of nobody) is wrong. The worst rows come first. The last rows are what people do by hand:
two intervals put together by quadrature, and an index with a plain bootstrap.

Run `python -m benchmarks estimates`; about five minutes. With BUNDLE=demo/bundles/sex-by-age in
the environment (from `congenial demo --out demo`) the whole command is timed, too.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import congenial as cg
from congenial.inference.estimates.cell_estimates import SideBySide, SingleTableEstimates
from congenial.inference.estimates.cell_groups import CellGroups
from congenial.inference.estimates.estimating import resolve
from congenial.inference.estimates.expression_language import parse_question
from congenial.inference.estimates.indices import dissimilarity, entropy, gini
from congenial.inference.estimates.quantities import IntervalCover, Quantity
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.publication.demo_population import EDGES, STATES

SEED = 20260401
LEVEL = 0.9
RELEASES = 60
SIMULATED = 1000
LAWS = ("epsilon", "rho")
AREAS = {"A": 2, "B": 9, "C": 40, "D": 200, "E": 1500, "F": 24_000}  # people
AGES = [0, 18, 30, 45, 65, 85, 100]
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": list(AREAS)},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": AGES},
    }
)
AXES = ["county", "sex", "age"]
_AGED = np.array([0.24, 0.18, 0.25, 0.2, 0.1, 0.03])
SHAPES = {  # shares of each sex and age; the oldest men are a structural zero
    "usual": np.stack([_AGED * 0.9, _AGED * 1.1]) / 2,
    "alike": np.ones((2, 6)) / 12,
    "one cell": np.stack([[0.002, 0.001, 0.985, 0.002, 0, 0.002], [0, 0.002, 0.004, 0, 0.002, 0]]),
}
FRESH = ("fresh 1", "fresh 2", "fresh 3")  # on which no rule of the estimates was chosen
FIGURES: dict[str, list[Any]] = {
    "none": [],
    "nested": [cg.total(by="county")],
    "crossing": [
        cg.total(by="county"),
        cg.count("sex = 'f'", by="county"),
        cg.count("age >= 18", by="county"),
    ],
    "zeros": [cg.total(by="county"), cg.structural_zeros("sex = 'm' and age >= 85")],
}
QUESTIONS = {
    "count": "count(age >= 65) by county",
    "weighted sum": "2 * count(sex = 'f' and age < 18) - 3 * count(age >= 65) by county",
    "difference": "count(sex = 'f' and age >= 65) - count(sex = 'm' and age >= 65) by county",
    "share": "share(sex = 'f' | age >= 65) by county",
    "share of most": "share(sex = 'f' | age < 65) by county",
    "ratio": "count(age < 18) / count(age >= 30) by county",
    "difference of shares": "share(sex = 'f' | age < 45) - share(sex = 'f' | age >= 45) by county",
    "ratio of shares": "share(sex = 'f' | age < 45) / share(sex = 'f' | age >= 45) by county",
    "median": "median(age) by county",
    "quantile": "quantile(age, .9 | sex = 'f') by county",
    "entropy": "entropy(age) by county",
    "gini": "gini(age) by county",
    "dissimilarity": "dissimilarity(sex by age) by county",
    "change between two bundles": "change(count(age >= 65)) by county",
    "growth between two bundles": "growth(count(age >= 30)) by county",
    "change of a share": "change(share(sex = 'f' | age >= 65)) by county",
}
WHOLE = {"share": (0, 1), "share of most": (0, 1), "dissimilarity": (0, 1)}
WHOLE |= {"difference of shares": (-1, 1), "change of a share": (-1, 1)}


@dataclass(frozen=True)
class World:
    """A true table, the figures published of it, and what protects the rest."""

    figures: str
    law: str  # "epsilon" or "rho"
    people: str  # one of SHAPES, or "fresh 1" and so on: drawn with another seed

    @property
    def seed(self) -> int:
        """Of its noise: no two worlds have the same, or their rows would fail together."""
        told = f"{self.figures}/{self.law}/{self.people}"
        return SEED + 10 * int.from_bytes(hashlib.sha256(told.encode()).digest()[:5], "big")

    @cached_property
    def table(self) -> cg.Table:
        fresh = self.people not in SHAPES
        rng = np.random.default_rng(self.seed if fresh else SEED)
        shares = rng.dirichlet(np.full(12, 0.4)).reshape(2, 6) if fresh else SHAPES[self.people]
        shares = shares.copy()
        shares[1, 5] = 0.0
        shares = shares.reshape(-1) / shares.sum()
        counts = [rng.multinomial(people, shares) for people in AREAS.values()]
        return cg.Table(SCHEMA, AXES, np.array(counts).reshape(len(AREAS), 2, 6))

    @cached_property
    def mechanism(self) -> Any:
        figures = FIGURES[self.figures]
        under: Any = cg.ReplaceOne(SCHEMA)
        if figures:
            under = cg.SemiAdjacent(cg.publish(self.table, *figures))
        promise = cg.Guarantee.pure(1, under=under)
        if self.law == "rho":
            promise = cg.Guarantee.zero_concentrated("0.1", under=under)
        return cg.calibrate("auto", promise, AXES)

    def _estimates(self, values: Any) -> SingleTableEstimates:
        law, promise = self.mechanism.description, self.mechanism.guarantee
        return SingleTableEstimates(DrawnTable("world", law, promise, values))

    @cached_property
    def earlier(self) -> Any:
        """The counts of an earlier bundle: the same (figures are published of it, too)."""
        return self.table.counts

    @cached_property
    def simulated(self) -> dict[int, Any]:
        """Tables of noise by stream, which all releases of this world are estimated with."""
        return {}

    def releases(self, count: int) -> Iterator[SideBySide]:
        """Independent releases, each after an earlier one; they share the simulated noise that
        intervals are made of.
        """
        noise = [self.mechanism.noise(cg.SeededRandomness(self.seed + i), count) for i in (2, 1)]
        for both in zip(self.earlier + noise[0], self.table.counts + noise[1], strict=True):
            tables = tuple(self._estimates(values) for values in both)
            for table in tables:
                vars(table)["_kept"] = self.simulated
                vars(table.release)["mechanism"] = self.mechanism
            yield SideBySide(tables)

    def quantity(self, beside: SideBySide, question: str) -> Quantity:
        """What is asked of the later release, or of both."""
        asked, source = parse_question(question), beside.tables[1]
        if not asked.compares:
            return resolve(asked, [[CellGroups(source, source, asked.by)]], None)
        places = zip(beside.tables, beside.starts, strict=False)
        sides = [[CellGroups(beside, table, asked.by, start)] for table, start in places]
        return resolve(asked, sides, None)

    def truth(self, question: str) -> Any:
        """What the question has as its answer on the confidential tables; nan where there is none.

        Indices have formulas of their own, because their estimates have a bias taken out.
        """
        counts = self.table.counts.astype(float)
        middles = np.convolve(AGES, [0.5, 0.5], "valid")
        formulas = {
            QUESTIONS["entropy"]: lambda: entropy(counts.sum(axis=1)),
            QUESTIONS["gini"]: lambda: gini(counts.sum(axis=1), middles),
            QUESTIONS["dissimilarity"]: lambda: dissimilarity(counts),
        }
        if question in formulas:
            return formulas[question]()
        both = (self._estimates(values) for values in (self.earlier, self.table.counts))
        return self.quantity(SideBySide(tuple(both)), question).values


@dataclass(frozen=True)
class Answers:
    """Of intervals (releases, areas): which are determined, which hold the truth, how wide."""

    determined: Any
    inside: Any
    width: Any

    @property
    def covered(self) -> Any:
        """For determined intervals, whether each holds the truth."""
        return self.inside[self.determined]


def answers(world: World, kind: str, releases: int = RELEASES, level: float = LEVEL) -> Answers:
    """The intervals of a kind of question, by form."""
    question = QUESTIONS.get(kind, kind)
    truth, cover = world.truth(question), IntervalCover.of_one(level)
    least, most = WHOLE.get(kind, (-np.inf, np.inf))
    slack = 1e-9 * (1 + np.abs(np.nan_to_num(truth)))
    rows = []
    for source in world.releases(releases):
        ends = world.quantity(source, question).ends(cover)
        noted = np.array([bool(note) for note in ends.notes])
        whole = (ends.low <= least) & (ends.high >= most)
        none = np.isnan(ends.low) | np.isnan(ends.high)
        inside = (ends.low - slack <= truth) & (truth <= ends.high + slack)
        rows.append((~(noted | whole | none), inside, np.asarray(ends.high) - ends.low))
    return Answers(*(np.array(part) for part in zip(*rows, strict=True)))


def by_quadrature(world: World, releases: int = RELEASES, level: float = LEVEL) -> Any:
    """Women less men in a county from their two intervals, as if their errors were independent."""
    parts = [f"count(sex = '{sex}' and age >= 18) by county" for sex in "fm"]
    cover = IntervalCover.of_one(level)
    truth = world.truth(parts[0]) - world.truth(parts[1])
    inside = []
    for source in world.releases(releases):
        each = [world.quantity(source, part) for part in parts]
        halves = [(one.ends(cover).high - one.values) for one in each]
        half = np.sqrt(halves[0] ** 2 + halves[1] ** 2)
        inside.append(np.abs(each[0].values - each[1].values - truth) <= half)
    return np.array(inside)


def plain_bootstrap(world: World, releases: int = RELEASES, level: float = LEVEL) -> Any:
    """A dissimilarity with the quantiles of its bootstrap, bias and all."""
    truth, inside = world.truth(QUESTIONS["dissimilarity"]), []
    for source in world.releases(releases):
        later = source.tables[1]
        assert isinstance(later, SingleTableEstimates)
        drawn = dissimilarity(later.cells.reshape(-1, 2, 6) + later.noise(0).reshape(-1, 6, 2, 6))
        low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        inside.append((low <= truth) & (truth <= high))
    return np.array(inside)


def worlds() -> Iterator[World]:
    for people in (*SHAPES, *FRESH):
        for law in LAWS:
            for figures in FIGURES:
                yield World(figures, law, people)


def speed() -> list[dict[str, Any]]:
    """Processor seconds for the demo's table: 24 counties x 2 x 23, figures that cross."""
    ages, names = EDGES, [name for group in STATES.values() for name in group]
    schema = cg.Schema.from_dict(
        {
            "county": {"levels": names},
            "sex": {"levels": ["female", "male"]},
            "age": {"edges": list(ages), "top": f"{ages[-1]}+"},
        }
    )
    table = cg.Table(schema, AXES, np.random.default_rng(SEED).poisson(270, (24, 2, 23)))
    figures = (cg.total(by="county"), cg.count("sex = 'female'", by="county"))
    public = cg.publish(table, *figures, cg.count("age >= 18", by="county"))
    promise = cg.Guarantee.pure(1, under=cg.SemiAdjacent(public))
    release = cg.release_table(
        cg.calibrate("auto", promise, AXES), table, cg.SeededRandomness(SEED)
    )
    asked = ["share(sex = 'female' | age >= 65) by county", "median(age) by county"]
    mechanism = release.only.mechanism
    _ = mechanism.noise(cg.SeededRandomness(1), 10)  # compiled kernels
    rows = []
    for what, work in (
        (
            f"{SIMULATED:,} simulated tables",
            lambda: mechanism.noise(cg.SeededRandomness(2), SIMULATED),
        ),
        ("24 shares and 24 medians, first time", lambda: release.estimate(asked)),
        ("24 shares and 24 medians, again", lambda: release.estimate(asked)),
        ("the same jointly", lambda: release.estimate(asked, jointly=True)),
    ):
        start = time.process_time()
        work()
        rows.append({"estimate": what, "seconds": time.process_time() - start})
    return rows


def command(bundle: Path, runs: int = 3) -> list[dict[str, Any]]:
    """Least processor seconds of the whole command on a bundle, start and end included."""
    program = [sys.executable, "-c", "from congenial.cli import main; main()", "estimate"]
    asked = ["--of", "share(sex = 'female' | age >= 65) by county", "--of", "median(age) by county"]
    spent = []
    for _ in range(runs):
        before = os.times()
        subprocess.run([*program, str(bundle), *asked], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        spent.append(sum(after[2:4]) - sum(before[2:4]))  # of children: user and system
    return [{"estimate": "the same from the command line, processor time", "seconds": min(spent)}]


SMALLEST = {"releases": 1, "SIMULATED": 10, "LAWS": ("rho",)}
SMALLEST |= {
    "FRESH": (),
    "FIGURES": {"nested": FIGURES["nested"]},
    "SHAPES": {"usual": SHAPES["usual"]},
}


def coverage(releases: int = RELEASES) -> list[dict[str, Any]]:
    """How often determined intervals hold the truth, the worst rows first."""
    pooled: dict[tuple[str, str, int], list[Any]] = {}
    for world in worlds():
        for kind in QUESTIONS:
            found = answers(world, kind, releases)
            for at, people in enumerate(AREAS.values()):
                row = found.determined[:, at], found.inside[:, at], found.width[:, at]
                pooled.setdefault((kind, world.people, people), []).append(row)
    rows = []
    for (kind, shape, people), parts in pooled.items():
        determined, inside, width = (np.concatenate(each) for each in zip(*parts, strict=True))
        rows.append(
            {
                "estimate": kind,
                "population": shape,
                "people": people,
                "determined": float(determined.mean()),
                "covered": float(inside[determined].mean()) if determined.any() else np.nan,
                "intervals": int(determined.sum()),
                "width": float(np.median(width[determined])) if determined.any() else np.nan,
            }
        )
    return sorted(rows, key=lambda row: (np.isnan(row["covered"]), row["covered"]))


def run(releases: int = RELEASES) -> list[dict[str, Any]]:
    rows = speed()
    if "BUNDLE" in os.environ:
        rows += command(Path(os.environ["BUNDLE"]))
    rows += coverage(releases)
    for world in worlds():
        named = {"population": world.people, "law": world.law, "figures": world.figures}
        for name, study in (("quadrature", by_quadrature), ("bootstrap", plain_bootstrap)):
            covered = float(study(world, releases).mean())
            rows.append({"estimate": f"by hand: {name}", **named, "covered": covered})
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
