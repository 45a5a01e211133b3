"""Releases by group on Spark: one law, one draw per group, whatever the cluster does."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from congenial.data.engines.spark_source import quiet
from congenial.data.schema import Schema, Unit
from congenial.data.tabulate import Microdata, tabulate
from congenial.errors import DataError, MandateError, RandomnessError, StructureError
from congenial.figures.invariants import publish
from congenial.figures.statements import at_most, count, total
from congenial.figures.support import LOOSE
from congenial.kinds import by_group
from congenial.kinds.by_group import ByGroup
from congenial.kinds.slices import stream
from congenial.mechanisms.congenial import Congenial, CongenialCounts, CongenialGaussian
from congenial.mechanisms.hierarchy import CongenialHierarchy
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.plain import PlainDiscreteGaussian, PlainLaplace
from congenial.pairs.adjacency import ReplaceOne, SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import SystemRandomness

SEED = 5_071
SCHEMA = Schema.from_dict(
    {
        "sex": {"levels": ["f", "m"]},
        "county": {"levels": ["A", "B", "C", "nobody here"]},
        "age": {"edges": [0, 5, 18], "top": "18+"},
        "job": {"levels": ["yes", "no"]},
    }
)
NAMES = ("sex", "county", "age")


def people(n: int = 200) -> pa.Table:
    rng = np.random.default_rng(SEED)
    print("seed", SEED)
    pick = lambda values: [values[i] for i in rng.integers(0, len(values), n)]  # noqa: E731
    return pa.table(
        {
            "id": list(range(n)),
            "sex": pick(["f", "m"]),
            "county": pick(["A", "B", "B", "C"]),
            "age": pick([1, 7, 30]),
            "job": pick(["yes", "no"]),
        }
    )


PEOPLE = people()
TABLE = tabulate(PEOPLE, SCHEMA)
MANDATED = (
    total(by=["county"]),
    count("age >= 18 and job = 'yes'", by=["county"]),
)


def promised(*statements: Any) -> SemiAdjacent:
    return SemiAdjacent(publish(TABLE, *statements))


def congenial(*statements: Any) -> Mechanism:
    return Congenial.calibrate(Guarantee.pure(Fraction(1), promised(*statements)), NAMES)


MECHANISM = congenial(total(by=["county"]), count("age >= 18", by=["county"]))
GAUSS = PlainDiscreteGaussian.calibrate(
    Guarantee.zero_concentrated(Fraction(1, 2), ReplaceOne(SCHEMA)), NAMES
)


def opened(spark: Any, table: pa.Table = PEOPLE, partitions: int = 2) -> Microdata:
    frame = quiet(lambda: spark.createDataFrame(table)).repartition(partitions)
    return Microdata.open(frame, SCHEMA, Unit("id"))


def here(groups: ByGroup, seed: int) -> Any:
    """The same draw without Spark, slice by slice."""
    counts = groups._lines(TABLE.marginal(NAMES).counts.reshape(-1))
    slices = [groups.law.draw(g, row, stream(seed, g)) for g, row in enumerate(counts)]
    return groups.assemble(slices)


@pytest.mark.parametrize("partitions", [1, 5])
def test_bit_for_bit_whatever_the_partitions(spark: Any, partitions: int) -> None:
    groups = ByGroup(MECHANISM, opened(spark, partitions=partitions), ("county",))
    groups.check()
    release = groups.release("by county", seed=SEED)
    assert np.array_equal(release.values, here(groups, SEED))
    assert np.isfinite(MECHANISM.log_density(release.values, TABLE))
    assert not release.publishable
    assert not np.array_equal(release.values, TABLE.marginal(NAMES).counts)


def test_plain_noise_and_two_axes(spark: Any) -> None:
    groups = ByGroup(GAUSS, opened(spark), ("county", "sex"))
    release = groups.release(seed=SEED)
    assert np.array_equal(release.values, here(groups, SEED))


CROSSING = (
    total(by=["county"]),
    count("sex = 'f'", by=["county"]),
    count("age >= 18 and job = 'yes'", by=["county"]),
    count("age >= 18", by=["county"]),
)
BOUND = at_most(count("age < 5", by=["county"]), 60)
LEVELS = [("county",), ("sex", "county")]


@pytest.mark.parametrize(
    "made",
    [
        lambda: congenial(*CROSSING),
        lambda: CongenialGaussian.calibrate(
            Guarantee.zero_concentrated(Fraction(1, 2), promised(*CROSSING)), NAMES
        ),
        lambda: CongenialHierarchy.calibrate(
            Guarantee.pure(Fraction(1), promised(total(by=["county"]))), NAMES, LEVELS
        ),
        lambda: CongenialCounts.calibrate(
            Guarantee.pure(Fraction(1), promised(total(by=["county"]), BOUND)), NAMES
        ),
    ],
    ids=["crossing", "crossing with rho", "levels", "counts"],
)
def test_whatever_stays_inside_a_group(spark: Any, made: Any) -> None:
    """The same draws as in one place slice by slice, and figures that the table does not show are
    checked before anything is drawn.
    """
    mechanism = made()
    groups = ByGroup(mechanism, opened(spark), ("county",))
    groups.check()
    release = groups.release("by county", seed=SEED)
    assert np.array_equal(release.values, here(groups, SEED))
    assert np.isfinite(mechanism.log_density(release.values, TABLE))
    with pytest.raises(MandateError, match="do not agree"):
        ByGroup(mechanism, opened(spark, PEOPLE.slice(1)), ("county",)).check()


def test_a_bound_is_checked_without_telling_the_sum(spark: Any) -> None:
    few = at_most(count("age < 5 and job = 'yes'", by=["county"]), 60)  # unseen by the table
    mechanism = congenial(total(by=["county"]), few)
    ByGroup(mechanism, opened(spark), ("county",)).check()
    young = [row | {"age": 1, "job": "yes"} for row in PEOPLE.to_pylist()]
    table = pa.Table.from_pylist(young, schema=PEOPLE.schema)
    with pytest.raises(MandateError, match="do not agree"):
        ByGroup(mechanism, opened(spark, table), ("county",)).check()


def test_published_draw(spark: Any) -> None:
    groups = ByGroup(MECHANISM, opened(spark), ("county",))
    release = groups.release("by county")
    assert release.publishable
    assert release.randomness == SystemRandomness().label
    assert release.description == MECHANISM.description
    assert np.isfinite(MECHANISM.log_density(release.values, TABLE))
    truth = TABLE.marginal(["county"]).counts
    assert np.array_equal(release.margin("county"), truth)
    assert not np.array_equal(release.values, groups.release("again").values)


def test_slices_are_the_whole_law(spark: Any) -> None:
    """Sums within slices are the sums of the table, so the product over slices is its law."""
    groups = ByGroup(MECHANISM, opened(spark), ("county",))
    local = groups.assemble(groups.law.supports.labels)
    whole = MECHANISM.support.labels  # type: ignore[attr-defined]
    at = groups._slice.reshape(whole.shape)
    assert np.array_equal(local < 0, whole < 0)
    assert np.array_equal(local == LOOSE, whole == LOOSE)
    inside = whole >= 0
    pairs = {
        (w, g, one) for w, g, one in zip(whole[inside], at[inside], local[inside], strict=True)
    }
    assert len(pairs) == len({w for w, _, _ in pairs}) == len({(g, one) for _, g, one in pairs})
    # Negative control: a sum across counties is not a product and is refused.
    with pytest.raises(StructureError, match="runs across the groups of county"):
        ByGroup(congenial(total()), opened(spark), ("county",))


def test_refused_structures(spark: Any) -> None:
    data = opened(spark)
    for by in ((), ("job",), ("nobody",)):
        with pytest.raises(StructureError, match="does not name axes"):
            ByGroup(MECHANISM, data, by)
    smooth = PlainLaplace.calibrate(Guarantee.pure(Fraction(1), ReplaceOne(SCHEMA)), NAMES)
    with pytest.raises(StructureError, match="real numbers"):
        ByGroup(smooth, data, ("county",))
    with pytest.raises(DataError, match="on Spark only"):
        ByGroup(MECHANISM, Microdata.open(PEOPLE, SCHEMA), ("county",))


def test_speculation_is_refused(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    groups = ByGroup(MECHANISM, opened(spark), ("county",))
    monkeypatch.setattr(by_group, "_SPECULATION", "spark.sql.test.speculation")
    spark.conf.set("spark.sql.test.speculation", "true")
    with pytest.raises(RandomnessError, match="speculative execution is on"):
        groups.release()
    spark.conf.unset("spark.sql.test.speculation")


def changed(column: str, value: Any) -> pa.Table:
    values = PEOPLE[column].to_pylist()
    values[0] = value
    return PEOPLE.set_column(PEOPLE.column_names.index(column), column, [values])


@pytest.mark.parametrize(
    ("table", "error", "words"),
    [
        (changed("sex", "S3CR3T"), DataError, "column 'sex' has levels that are not in"),
        (changed("sex", None), DataError, "column 'sex' has missing values"),
        (changed("id", 1), DataError, "unit column 'id' has more than 1 row"),
        (PEOPLE.slice(0, 0), DataError, "no records"),
        (PEOPLE.slice(1), MandateError, "do not agree with the published figures"),
    ],
)
def test_checked_before_anything_is_spent(
    spark: Any, table: pa.Table, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        ByGroup(MECHANISM, opened(spark, table), ("county",)).check()
    assert "S3CR3T" not in str(caught.value)


def test_figures_the_table_does_not_show_are_checked_too(spark: Any) -> None:
    mechanism = congenial(*MANDATED)
    ByGroup(mechanism, opened(spark), ("county",)).check()
    table = pa.Table.from_pylist(
        [row | {"job": "no"} for row in PEOPLE.to_pylist()], schema=PEOPLE.schema
    )
    with pytest.raises(MandateError, match="do not agree"):
        ByGroup(mechanism, opened(spark, table), ("county",)).check()


def test_data_that_changed_after_the_check(spark: Any) -> None:
    groups = ByGroup(MECHANISM, opened(spark, changed("sex", "S3CR3T")), ("county",))
    with pytest.raises(DataError, match="nothing was published") as caught:
        groups.release()
    assert "S3CR3T" not in str(caught.value)
    assert caught.value.__context__ is None


def test_each_slice_is_checked_again_where_it_is_drawn(spark: Any) -> None:
    groups = ByGroup(MECHANISM, opened(spark), ("county",))
    counts = groups._lines(TABLE.marginal(NAMES).counts.reshape(-1))
    assert all(groups.law.agrees(g, row) for g, row in enumerate(counts))
    moved = np.roll(counts, 1, axis=0)
    assert not any(groups.law.agrees(g, row) for g, row in enumerate(moved))


def failing_worker(folder: Path, make: Any) -> Any:
    """A worker whose first attempt at every task draws, notes what it drew, and then fails."""

    def factory(law: Any, seed: int | None) -> Any:
        work = make(law, seed)

        def attempt(rows: Any) -> Any:
            from pyspark import TaskContext

            drawn = work(rows)
            context = TaskContext.get()
            number = 0 if context is None else context.attemptNumber()
            group = drawn["group"][0].as_py()
            (folder / f"{group}-{number}").write_text(str(drawn["y"][0].as_py()))
            if number == 0:
                raise RuntimeError("this machine is gone")
            return drawn

        return attempt

    return factory


def test_a_task_that_fails_after_its_draw(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(by_group, "slice_worker", failing_worker(tmp_path, by_group.slice_worker))
    groups = ByGroup(MECHANISM, opened(spark), ("county",))
    release = groups.release()
    first = {file.name: file.read_text() for file in tmp_path.glob("*-0")}
    final = [eval((tmp_path / f"{g}-1").read_text()) for g in range(groups.groups)]
    assert first
    assert np.array_equal(release.values, groups.assemble(final))
    # The draws that were lost are other draws: nothing of them is in the release.
    assert any(str(final[int(name.split("-")[0])]) != text for name, text in first.items())
    cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
