"""Coverage of every kind of estimate: sparse, dense; figures of any structure; epsilon, rho.

Releases of one table are drawn again and again; a row says how often the intervals held the truth,
over releases and counties, and how wide they are. The last rows are what people do by hand: two
intervals put together by quadrature, and an index with a plain bootstrap.

Run `python -m benchmarks estimates`; about three minutes. With BUNDLE=demo/bundles/sex-by-age in
the environment (from `congenial demo --out demo`) the whole command is timed, too.
"""

from __future__ import annotations

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
from congenial.inference.estimates.expression_language import parse_question
from congenial.inference.estimates.interval_cover import IntervalCover
from congenial.inference.estimates.quantities import Quantity
from congenial.inference.estimates.resolve import CellGroups, resolve
from congenial.inference.estimates.scaled_family import ScaledIndex
from congenial.inference.estimates.side_by_side import SideBySide
from congenial.inference.estimates.single_table_estimates import SingleTableEstimates
from congenial.mechanisms.drawn_table import DrawnTable
from congenial.publication.demo_population import EDGES, STATES

SEED = 20260401
LEVEL = 0.9
RELEASES = 200
SIMULATED = 1000
PEOPLE, LAWS = ("sparse", "dense"), ("epsilon", "rho")
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"]},
        "sex": {"levels": ["f", "m"]},
        "age": {"edges": [0, 18, 30, 45, 65, 85, 100]},
    }
)
AXES = ["county", "sex", "age"]
FIGURES: dict[str, list[Any]] = {
    "none": [],
    "nested": [cg.total(by="county")],
    "crossing": [
        cg.total(by="county"),
        cg.count("sex = 'f'", by="county"),
        cg.count("age >= 18", by="county"),
    ],
}
QUESTIONS = {
    "count": "count(age >= 65) by county",
    "weighted sum": "2 * count(sex = 'f' and age < 18) - 3 * count(age >= 65) by county",
    "difference": "count(sex = 'f' and age >= 65) - count(sex = 'm' and age >= 65) by county",
    "share": "share(sex = 'f' | age >= 65) by county",
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


@dataclass(frozen=True)
class World:
    """A true table, the figures published of it, and what protects the rest."""

    figures: str
    law: str  # "epsilon" or "rho"
    people: str  # "sparse" or "dense"

    @cached_property
    def table(self) -> cg.Table:
        rng = np.random.default_rng(SEED)
        mean = {"sparse": 4.0, "dense": 400.0}[self.people]
        shape = np.array([0.2, 0.18, 0.25, 0.2, 0.12, 0.05]) * 6
        tilt = np.linspace(0.8, 1.2, 6)
        means = mean * np.stack([shape * tilt, shape / tilt]) * np.array([0.5, 1, 2])[:, None, None]
        return cg.Table(SCHEMA, AXES, rng.poisson(means) + (self.people == "sparse"))

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
        """The counts of an earlier bundle: a fifth fewer, rounded."""
        return self.table.counts - self.table.counts // 5

    def releases(self, count: int) -> Iterator[SideBySide]:
        """Independent releases, each after an earlier one; they share the simulated noise that
        intervals are made of.
        """
        noise = [self.mechanism.noise(cg.SeededRandomness(SEED + i), count) for i in (2, 1)]
        kept: dict[int, Any] = {}
        for both in zip(self.earlier + noise[0], self.table.counts + noise[1], strict=True):
            found = tuple(self._estimates(one) for one in both)
            for one in found:
                vars(one)["_kept"] = kept
                vars(one.release)["mechanism"] = self.mechanism
            yield SideBySide(found)

    def quantity(self, beside: SideBySide, question: str) -> Quantity:
        """What is asked of the later release, or of both."""
        asked, source = parse_question(question), beside.tables[1]
        if not asked.compares:
            return resolve(asked, [CellGroups(source, source, asked.by)], None)
        places = zip(beside.tables, beside.starts, strict=False)
        sides = [CellGroups(beside, table, asked.by, start) for table, start in places]
        return resolve(asked, sides, None)

    def truth(self, question: str) -> Any:
        """What the question has as its answer on the confidential tables."""
        both = (self._estimates(one) for one in (self.earlier, self.table.counts))
        found = self.quantity(SideBySide(tuple(both)), question)
        return getattr(found, "_seen", found.values)


def covered(
    world: World, question: str, releases: int = RELEASES, level: float = LEVEL
) -> tuple[Any, Any]:
    """Which intervals hold the truth, and their widths: arrays (releases, counties)."""
    truth, cover = world.truth(question), IntervalCover.of_one(level)
    inside, width = [], []
    for source in world.releases(releases):
        ends = world.quantity(source, question).ends(cover)
        unknown = np.isnan(ends.low) | np.isnan(ends.high)
        slack = 1e-9 * (1 + np.abs(truth))
        inside.append(unknown | ((ends.low - slack <= truth) & (truth <= ends.high + slack)))
        width.append(np.asarray(ends.high) - ends.low)
    return np.array(inside), np.array(width)


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
    question = QUESTIONS["dissimilarity"]
    truth, inside = world.truth(question), []
    for source in world.releases(releases):
        found = world.quantity(source, question)
        assert isinstance(found, ScaledIndex)
        drawn = found.index(found._estimate + found._errors)
        low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
        inside.append((low <= truth) & (truth <= high))
    return np.array(inside)


def worlds() -> Iterator[World]:
    for people in PEOPLE:
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
    release = cg.calibrate("auto", promise, AXES).release(table, cg.SeededRandomness(SEED))
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


SMALLEST = {"releases": 1, "SIMULATED": 10, "PEOPLE": ("dense",), "LAWS": ("rho",)}
SMALLEST |= {"FIGURES": {"nested": FIGURES["nested"]}}


def run(releases: int = RELEASES) -> list[dict[str, Any]]:
    rows = speed()
    if "BUNDLE" in os.environ:
        rows += command(Path(os.environ["BUNDLE"]))
    for world in worlds():
        named = {"people": world.people, "law": world.law, "figures": world.figures}
        for kind, question in QUESTIONS.items():
            start = time.perf_counter()
            inside, width = covered(world, question, releases)
            seconds = time.perf_counter() - start
            finite = width[np.isfinite(width)]
            rows.append(
                {
                    "estimate": kind,
                    **named,
                    "covered": float(inside.mean()),
                    "width": float(np.median(finite)) if finite.size else np.inf,
                    "seconds": seconds,
                }
            )
        rows.append(
            {
                "estimate": "by hand: quadrature",
                **named,
                "covered": float(by_quadrature(world, releases).mean()),
            }
        )
        rows.append(
            {
                "estimate": "by hand: bootstrap of a dissimilarity",
                **named,
                "covered": float(plain_bootstrap(world, releases).mean()),
            }
        )
    return rows


if __name__ == "__main__":
    from benchmarks.__main__ import table

    print(table(run()))
