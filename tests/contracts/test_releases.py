"""What every kind of release offers its reader. A kind that is registered is tested here: give it
an example in EXAMPLES.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from congenial import CongenialError, Guarantee, Plan, TablesRelease, read, verify
from congenial.errors import BundleError, InferenceError, UnansweredError
from congenial.kinds import registry
from congenial.mechanisms import Interval, PartedRelease, Released, StatisticsRelease, ValuesRelease
from congenial.mechanisms.released import LEVEL
from congenial.publication import workflow
from congenial.publication.bundle import write
from congenial.synthesis.certified import SyntheticRelease
from tests.kinds.nation_plan import written as nation_plan
from tests.kinds.several_tables_plan import written as several_plan
from tests.kinds.test_estimate_plan import PLAN as ESTIMATE_PLAN
from tests.kinds.test_table_records_plan import written as records_plan
from tests.kinds.test_two_by_two_plan import PLAN as TEST_PLAN
from tests.kinds.test_two_by_two_plan import write_people
from tests.plans import released


@dataclass(frozen=True)
class Example:
    """A bundle of one kind: what can be asked of it, what its law refuses, and rows it has."""

    file: str
    bundle: str
    rows: int
    answers: tuple[str, ...] = ()
    refuses: tuple[str, ...] = ()
    protects_persons: bool = True


EXAMPLES: dict[str, tuple[Example, ...]] = {
    "tables": (
        Example("plain", "auto", 18, ("sex = 'f'", "sex = 'm' and age < 18")),
        Example("nested", "projected", 18, ("county = 'A'", "sex = 'f'")),
        Example("nested", "conditioned", 18, ("county = 'A'",), ("sex = 'f'",)),
        Example("several", "people", 24, ("county = 'Adams'", "age = 'old'")),
        Example(
            "nation", "nation", 240, ("state = 's0' and sex = 'f' and age = 1",), ("block = 'b1'",)
        ),
    ),
    "values": (
        Example("given-public", "sums", 3, refuses=("county = 'A'",)),
        Example("given-public", "naive", 6, refuses=("county = 'A'",)),
    ),
    "estimate": (Example("estimated", "age", 1, refuses=("age < 18",)),),
    "records from tables": (
        Example(
            "records", "people", 900, ("job = 'b'",), ("sex = 'f' and income < 1 and job = 'a'",)
        ),
    ),
    "odds ratio test": (Example("tested", "smoking", 14),),
    "statistics": (
        Example("statistics-persons", "quarter", 2),
        Example("statistics-optimum", "quarter", 2, protects_persons=False),
    ),
    "synthetic records": (
        Example("synthetic", "people", 40, refuses=("region = 'north'",)),
        Example("synthetic-plain", "people", 20, refuses=("region = 'north'",)),
    ),
}


def make_several(folder: Path) -> None:
    """Several tables."""
    plan = Plan.load(several_plan(folder))
    workflow.publish(plan)
    workflow.release(plan, "people")


def make_estimate(folder: Path) -> None:
    """The mean of a few ages."""
    rows = [f"{i},f,{i % 90},{i % 40}" for i in range(200)]
    (folder / "people.csv").write_text("\n".join(["id,sex,age,hours", *rows]) + "\n")
    (folder / "plan.toml").write_text(ESTIMATE_PLAN)
    workflow.release(Plan.load(folder / "plan.toml"), "age")


def make_test(folder: Path) -> None:
    """A test of an odds ratio."""
    write_people(folder)
    (folder / "plan.toml").write_text(TEST_PLAN)
    plan = Plan.load(folder / "plan.toml")
    workflow.publish(plan)
    workflow.release(plan, "smoking")


def make_records(folder: Path) -> None:
    """Records from tables."""
    plan = records_plan(folder)
    workflow.publish(plan)
    workflow.release(plan, "people")


def make_nation(folder: Path) -> None:
    """A small nation by parts."""
    plan = Plan.load(nation_plan(folder))
    workflow.publish(plan)
    workflow.release(plan, "nation")


MADE: dict[str, Callable[[Path], None]] = {
    "several": make_several,
    "nation": make_nation,
    "estimated": make_estimate,
    "tested": make_test,
    "records": make_records,
}
CASES = [(kind, one) for kind, several in EXAMPLES.items() for one in several]
each_release = pytest.mark.parametrize(
    ("kind", "example"), CASES, ids=[f"{kind}-{one.file}-{one.bundle}" for kind, one in CASES]
)
Folder = Callable[[Example], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    place = tmp_path_factory.mktemp("bundles")

    def of(example: Example) -> Path:
        where = place / example.file
        if not where.exists():
            where.mkdir()
            MADE.get(example.file, lambda place: released(place, example.file))(where)
        return where / "bundles" / example.bundle

    return of


def test_every_kind_has_an_example() -> None:
    assert {kind.name for kind in registry.every_kind()} == set(EXAMPLES)


@each_release
def test_it_is_read_as_what_it_is(folder: Folder, kind: str, example: Example) -> None:
    release = read(folder(example))
    nation = example.file == "nation"
    own = PartedRelease if nation else registry.by_name(kind).release_class
    assert isinstance(release, Released)
    assert type(release) is own
    assert release.kind == kind
    assert type(read(folder(example), own)) is own
    assert type(read(folder(example), Released)) is own
    other = next(one.release_class for one in registry.every_kind() if one.name != kind)
    with pytest.raises(BundleError, match=f"not as {other.__name__}.*{own.__name__}"):
        read(folder(example), other)


@each_release
def test_save_is_the_inverse_of_read(
    folder: Folder, kind: str, example: Example, tmp_path: Path
) -> None:
    where = folder(example)
    digest = read(where).save(tmp_path / "copy")
    assert digest == (where / "DIGEST.txt").read_text().strip()
    assert digest == read(tmp_path / "copy").save(tmp_path / "again")
    assert all(check.holds for check in verify(tmp_path / "copy", digest))
    with pytest.raises(BundleError, match="already exists"):
        read(where).save(tmp_path / "copy")


@each_release
def test_it_leaves_for_other_tools(folder: Folder, kind: str, example: Example) -> None:
    release = read(folder(example))
    arrow, pandas, polars = release.to_arrow(), release.to_pandas(), release.to_polars()
    assert arrow.num_rows == len(pandas) == polars.height == example.rows
    assert arrow.column_names == list(pandas.columns) == polars.columns
    assert polars.to_arrow().to_pydict() == arrow.to_pydict()


@each_release
def test_it_explains_all_of_its_promises(folder: Folder, kind: str, example: Example) -> None:
    release = read(folder(example))
    assert release.guarantee.explain() in release.explain()
    assert (release.persons is not None) == example.protects_persons
    if release.persons is not None:
        assert isinstance(release.persons, Guarantee)
        assert release.persons.explain() in release.explain()


def _value(release: Released, what: str) -> float:
    """The value that an estimate gives; tables take expressions."""
    if release.kind in ("tables", "records from tables"):
        return float(release.estimate(f"count({what})")[0].value)
    return float(release.estimate(what))


@each_release
def test_it_answers_what_its_law_allows(folder: Folder, kind: str, example: Example) -> None:
    release = read(folder(example))
    names = release.statistics if isinstance(release, StatisticsRelease) else ()
    for what in (*example.answers, *names):
        found = release.interval(what)
        assert isinstance(found, Interval)
        assert found == release.interval(what, LEVEL)
        assert found.level == LEVEL
        if isinstance(release, PartedRelease):  # printed, from the draws of all parts
            names = dict(re.findall(r"(\w+) = '?(\w+)'?", what))
            rows = release.to_arrow(*names).to_pylist()
            assert found.estimate == next(r for r in rows if names.items() <= r.items())["estimate"]
        elif not isinstance(release, TablesRelease) or release.has_errors:
            assert found.estimate == pytest.approx(_value(release, what))
        counts = kind == "tables"
        # ends of counts are cut to what can be, nobody or everybody; a draw need not lie there
        known = release.published.values if release.published.statements else None
        most = np.inf if known is None else int(known[0].sum())
        centre = min(max(0, found.estimate), most) if counts else found.estimate
        assert found.low <= centre <= found.high
        assert found.exact == (found.low == found.high)
        narrow = release.interval(what, 0.5)
        assert narrow.high - narrow.low <= found.high - found.low
        for level in (0, 1, -0.5, 95):
            with pytest.raises(InferenceError, match="between 0 and 1"):
                release.interval(what, level)


@each_release
def test_what_its_law_does_not_allow_is_refused(
    folder: Folder, kind: str, example: Example
) -> None:
    release, counts = read(folder(example)), kind in ("tables", "records from tables")
    for what in example.refuses:
        for ask in (release.estimate, release.interval):
            with pytest.raises(InferenceError) as refusal:
                ask(f"count({what})" if counts and ask == release.estimate else what)
            assert refusal.value.remedy
    with pytest.raises(CongenialError):
        release.interval("no such thing")


@each_release
def test_it_is_written_and_read_again(
    folder: Folder, kind: str, example: Example, tmp_path: Path
) -> None:
    release = read(folder(example))
    promise = release.guarantee.explain()
    write(release, tmp_path / "again", promise, "the report").publish()
    again = read(tmp_path / "again", type(release))
    assert again.to_arrow().equals(release.to_arrow())
    assert again.explain() == release.explain()


def test_what_is_refused_can_be_had_as_the_remedy_says(folder: Folder) -> None:
    values = read(folder(EXAMPLES["values"][0]), ValuesRelease)
    assert values.counts.sum() == sum(values.to_arrow()["count"].to_pylist())
    several = read(folder(EXAMPLES["synthetic records"][0]), SyntheticRelease)
    with pytest.raises(UnansweredError, match="combine"):
        several.interval("region = 'north'")
    shares = several.combine(lambda frame: ((frame.iloc[:, 0] == frame.iloc[0, 0]).mean(), 0.01))
    low, high = shares.interval(0.95)
    assert low < shares.estimate < high


def test_a_sum_that_is_published_is_answered_by_counts_given_public_information(
    folder: Folder,
) -> None:
    sums = read(folder(EXAMPLES["values"][0]), ValuesRelease)
    everybody = " or ".join(f"county = '{level}'" for level in sums.schema.axis("county").levels)
    found = sums.interval(everybody)
    assert found.exact
    assert found.low == found.high == found.estimate == sums.counts.sum()


def test_printed_counts_are_estimated_as_drawn(folder: Folder) -> None:
    release = read(folder(EXAMPLES["tables"][1]), TablesRelease)
    whats = [f"sex = '{s}' and county = '{c}'" for s in "fm" for c in "ABC"]
    assert sum(_value(release, what) for what in whats) == release.drawn[0].sum()


def test_older_code_still_catches_a_refusal_as_it_did() -> None:
    from congenial.errors import StructureError

    assert issubclass(UnansweredError, StructureError)
    assert issubclass(UnansweredError, InferenceError)
