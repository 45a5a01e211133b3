"""Synthetic files: types, readers, rules, totals, promises, and what is refused."""

from __future__ import annotations

import csv
import io
import json
from fractions import Fraction

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from congenial import Guarantee, Schema, SeededRandomness, Table
from congenial.data.tabulate import Microdata
from congenial.errors import (
    BudgetError,
    BundleError,
    DataError,
    FigureError,
    GuaranteeError,
    StructureError,
)
from congenial.figures import Figures, count, margin, publish, structural_zeros
from congenial.pairs import AddRemove, ReplaceOne, SemiAdjacent, SensitiveValues
from congenial.privacy.composition import joint_loss
from congenial.publication import bundle
from congenial.synthesis.certified import FIXED, Synthesizer, SyntheticRelease
from congenial.synthesis.columns import Column
from congenial.synthesis.models import (
    LinearRegression,
    MultinomialColumn,
    NormalColumn,
    PoissonColumn,
    Spike,
)
from congenial.synthesis.record_model import Grid

SCHEMA = Schema.from_dict(
    {
        "region": {"levels": ["north, east", "NA", 'the "west"']},
        "age": {"edges": [0, 15, 30, 60], "top": "60+"},
        "status": {"levels": ["single", "married", "widowed"]},
        "kids": {"integers": [0, 6], "missing": "unknown"},
        "income": {"edges": [-50.5, 0, 0.5, 20, 100, 400], "top": "400+"},
    }
)
CHILD = structural_zeros("age < 15 and status != 'single'")
INCOME = Spike(
    NormalColumn(Grid(-2, 20, 12), Grid(1, 12, 6), "root"), "0 to 0.5", Grid(0.05, 0.4, 5)
)
KIDS = Spike(PoissonColumn(Grid(0.2, 4, 20)), "unknown", Grid(0.01, 0.3, 4))
COLUMNS = (
    Column("region"),
    Column("age", given=("region",)),
    Column("status", given=("age",)),
    Column("kids", KIDS, given=("status",)),
    Column("income", INCOME, given=("age",)),
)


def confidential(people: int = 300) -> Table:
    rng = np.random.default_rng(2)
    codes = [rng.integers(one.size, size=people) for one in SCHEMA.attributes]
    codes[2] = np.where(codes[1] == 0, 0, codes[2])
    shape = tuple(one.size for one in SCHEMA.attributes)
    flat = np.bincount(np.ravel_multi_index(tuple(codes), shape), minlength=int(np.prod(shape)))
    return Table(SCHEMA, SCHEMA.names, flat.reshape(shape))


@pytest.fixture(scope="module")
def table() -> Table:
    return confidential()


@pytest.fixture(scope="module")
def release(table) -> SyntheticRelease:
    adjacency = SemiAdjacent(publish(table, CHILD))
    synthesizer = Synthesizer(adjacency, COLUMNS, Fraction(1), copies=2)
    return synthesizer.release(table, SeededRandomness(5), "people")


def test_types_and_domain(release):
    arrow = release.to_arrow(1)
    assert arrow.num_rows == 300
    kinds = [str(field.type) for field in arrow.schema]
    assert kinds == ["string", "int64", "string", "int64", "double"]
    income = arrow["income"].to_numpy()
    assert income.min() >= -50.5
    assert income.max() <= 400
    kids = arrow["kids"].to_pylist()
    assert {k for k in kids if k is not None} <= set(range(7))
    assert None in kids


def test_structural_rules_are_kept(release):
    for copy in (1, 2):
        frame = release.to_pandas(copy)
        assert not ((frame["age"] < 15) & (frame["status"] != "single")).any()


def test_readers_find_the_same_records(release, tmp_path):
    payload = release.payload()
    assert sorted(payload) == [
        "dictionary.csv",
        "synthetic-1.csv",
        "synthetic-1.parquet",
        "synthetic-2.csv",
        "synthetic-2.parquet",
    ]
    for name, content in payload.items():
        (tmp_path / name).write_bytes(content)
    truth = release.to_arrow(2).to_pydict()
    sheet, columnar = tmp_path / "synthetic-2.csv", tmp_path / "synthetic-2.parquet"
    frame = pd.read_csv(sheet, keep_default_na=False, na_values={"kids": [""]})
    assert frame["region"].tolist() == truth["region"]
    assert frame["income"].tolist() == truth["income"]
    assert [None if pd.isna(k) else int(k) for k in frame["kids"]] == truth["kids"]
    with sheet.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["region"] for row in rows] == truth["region"]
    assert [row["kids"] for row in rows] == ["" if k is None else str(k) for k in truth["kids"]]
    for reader in (f"read_csv('{sheet}')", f"'{columnar}'"):
        found = duckdb.sql(f"SELECT * FROM {reader}").to_arrow_table().to_pydict()
        assert found == truth
    assert pq.read_table(columnar).to_pydict() == truth
    assert pd.read_parquet(columnar)["age"].dtype == "int64"


def test_data_dictionary(release):
    rows = list(csv.DictReader(io.StringIO(release.payload()["dictionary.csv"].decode())))
    assert {row["column"] for row in rows} == set(SCHEMA.names)
    by_level = {(row["column"], row["level"]): row for row in rows}
    top = by_level["age", "60+"]
    assert (top["type"], top["from"], top["below"]) == ("whole number", "60", "")
    assert "missing" in by_level["kids", "unknown"]["written_as"]
    assert by_level["income", "0 to 0.5"]["below"] == "0.5"


def test_payload_round_trip(release):
    again = SyntheticRelease.from_payload(
        name=release.name,
        description=release.description,
        guarantee=release.guarantee,
        randomness=release.randomness,
        publishable=release.publishable,
        payload=release.payload(),
    )
    assert again.copies == release.copies
    assert not again.publishable
    assert "people" in repr(again)
    assert "not for publication" in again._repr_html_()
    broken = release.payload() | {"synthetic-2.parquet": b"nothing"}
    for payload in ({}, broken):
        with pytest.raises(BundleError):
            SyntheticRelease.from_payload(
                name="x",
                description=release.description,
                guarantee=release.guarantee,
                randomness="",
                publishable=False,
                payload=payload,
            )
    with pytest.raises(BundleError, match="no copy 3"):
        release.to_arrow(3)


def test_a_bundle_holds_it(release, tmp_path):
    bundle.write(release, tmp_path / "people", release.guarantee.explain(), "").publish()
    again = bundle.read(tmp_path / "people")
    assert again.copies == release.copies
    assert again.description == release.description
    assert again.guarantee.to_dict() == release.guarantee.to_dict()
    readme = (tmp_path / "people" / "README.txt").read_text()
    assert "dictionary.csv" in readme
    assert "NOT FOR PUBLICATION" in readme


def test_the_ledger_counts_it():
    """2 M per copy and replaced record; a* records apart under published figures."""
    made = Synthesizer(ReplaceOne(SCHEMA), COLUMNS[:1], Fraction(1, 4), copies=3)
    assert joint_loss([made.description], ReplaceOne(SCHEMA)).epsilon == made.epsilon
    told = SemiAdjacent(publish(confidential(), margin("region")))
    assert joint_loss([made.description], told).epsilon == 3 * Fraction(1, 2) * told.records
    fixed = Synthesizer(AddRemove(SCHEMA, 2), COLUMNS[:1], Fraction(1, 4), records=50)
    assert joint_loss([fixed.description], AddRemove(SCHEMA, 2)).epsilon == fixed.epsilon


def test_description_rebuilds_the_synthesizer(release):
    law = json.loads(json.dumps(dict(release.description.law)))
    again = Synthesizer.from_dict(release.guarantee.adjacency, law)
    assert again.to_dict() == release.description.law
    assert again.columns == COLUMNS
    assert Column.from_dict("age") == Column("age")
    short = Synthesizer.from_dict(ReplaceOne(SCHEMA), {"columns": ["age"], "M": 0.5})
    assert short == Synthesizer(ReplaceOne(SCHEMA), (Column("age"),), Fraction(1, 2))


def test_the_promise_in_words(release):
    words = release.guarantee.explain()
    assert release.guarantee.basis == "theorem"
    assert FIXED in words
    assert "epsilon = 4 per person" in words
    assert "chosen by looking at the confidential data" in words


def test_records_and_tables_give_the_same_law(table):
    """Microdata are tabulated; the law depends on the counts alone."""
    cells = np.argwhere(table.marginal(["region", "age"]).counts)
    counts = table.marginal(["region", "age"]).counts[tuple(cells.T)]
    repeated = np.repeat(cells, counts, axis=0)
    schema = Schema(SCHEMA.attributes[:2])
    records = pa.table(
        {
            "region": [SCHEMA.attribute("region").levels[c] for c in repeated[:, 0]],
            "age": [[0, 15, 30, 60][c] for c in repeated[:, 1]],
        }
    )
    synthesizer = Synthesizer(ReplaceOne(schema), COLUMNS[:2], Fraction(1))
    with Microdata.open(records, schema) as opened:
        found = synthesizer.release(opened, SeededRandomness(3))
    small = Table(schema, schema.names, table.marginal(["region", "age"]).counts)
    assert found.copies == synthesizer.release(small, SeededRandomness(3)).copies
    bad = records.set_column(0, "region", pa.array(["south"] * records.num_rows))
    with Microdata.open(bad, schema) as opened, pytest.raises(DataError, match="not in the schema"):
        synthesizer.release(opened, SeededRandomness(3))


def test_published_totals_of_the_first_column_are_kept(table):
    exact = publish(table, CHILD, margin("region"))
    partial = publish(table, CHILD, count("region = 'NA'"))
    for published in (exact, partial):
        adjacency = SemiAdjacent(published)
        synthesizer = Synthesizer(adjacency, COLUMNS, Fraction(1))
        assert synthesizer.epsilon == 2 * adjacency.records == 4
        found = synthesizer.release(table, SeededRandomness(8)).to_pandas()
        levels = SCHEMA.attribute("region").levels
        truth = dict(zip(levels, table.marginal(["region"]).counts, strict=True))
        assert (found["region"] == "NA").sum() == truth["NA"]
        if published is exact:
            assert found["region"].value_counts().to_dict() == truth
    other = publish(confidential(299), CHILD, margin("region"))
    with pytest.raises(FigureError, match="do not agree"):
        Synthesizer(SemiAdjacent(other), COLUMNS, Fraction(1)).release(table, SeededRandomness(8))


def test_partial_synthesis_copies_the_public_columns(table):
    published = publish(table, margin("region", "age"))
    pairs = SensitiveValues(published, ("region", "age"))
    columns = (
        Column(
            "income",
            LinearRegression((Grid(-5, 15, 9), Grid(-0.2, 0.2, 9)), Grid(1, 9, 5), "root"),
            given=("age",),
        ),
    )
    synthesizer = Synthesizer(pairs, columns, Fraction(1), public=("region", "age"))
    found = synthesizer.release(table, SeededRandomness(8))
    assert found.to_arrow().column_names == ["region", "age", "income"]
    frame = found.to_pandas()
    cells = frame.groupby([frame["region"], np.digitize(frame["age"], [0, 15, 30, 60]) - 1]).size()
    counts = table.marginal(["region", "age"]).counts
    labels = SCHEMA.attribute("region").levels
    assert dict(cells.items()) == {(labels[i], j): counts[i, j] for i, j in np.argwhere(counts)}
    assert synthesizer.epsilon == 2
    told = found.guarantee.to_dict()["adjacency"]
    assert SensitiveValues.from_dict(published, told) == pairs
    assert "same region, age for everybody" in found.guarantee.explain()
    dearer = Synthesizer(SemiAdjacent(published), columns, Fraction(1), public=("region", "age"))
    assert dearer.epsilon == 4


def test_calibration_meets_the_target():
    target = Guarantee.pure(1, under=ReplaceOne(SCHEMA))
    assert Synthesizer.calibrate(target, COLUMNS[:1], copies=5).bound == Fraction(1, 10)
    rows = Guarantee.pure(1, under=AddRemove(SCHEMA, 2))
    made = Synthesizer.calibrate(rows, COLUMNS[:1], records=100)
    assert (made.bound, made.epsilon) == (Fraction(1, 2), 1)
    with pytest.raises(BudgetError, match="at most 3 copies"):
        Synthesizer.calibrate(target, COLUMNS[:1], copies=20, bound=Fraction(1, 6))
    with pytest.raises(BudgetError, match="smaller M"):
        Synthesizer.calibrate(target, COLUMNS[:1], bound=Fraction(3))
    with pytest.raises(GuaranteeError, match="without delta"):
        Synthesizer.calibrate(Guarantee.zero_concentrated(1, ReplaceOne(SCHEMA)), COLUMNS[:1])


def test_records_without_weight_are_counted_for_the_curator_only():
    schema = Schema.from_dict({"x": {"integers": [0, 9], "missing": "unknown"}})
    counts = np.array([5, 5, 5, 0, 0, 0, 0, 0, 0, 0, 7])
    table = Table(schema, ["x"], counts)
    synthesizer = Synthesizer(
        ReplaceOne(schema), (Column("x", PoissonColumn(Grid(1, 5, 9))),), Fraction(1)
    )
    assert synthesizer.weightless(table) == 7
    assert "unknown" not in str(synthesizer.to_dict())
    assert None not in synthesizer.release(table, SeededRandomness(1)).to_arrow()["x"].to_pylist()


TIED = structural_zeros("status = 'widowed' and income < 0")


@pytest.mark.parametrize(
    ("build", "error", "words"),
    [
        (lambda: Synthesizer(ReplaceOne(SCHEMA), (), 1), GuaranteeError, "no column"),
        (lambda: Synthesizer(ReplaceOne(SCHEMA), (Column("age"),), 0), GuaranteeError, "positive"),
        (
            lambda: Synthesizer(ReplaceOne(SCHEMA), (Column("age", given=("kids",)),), 1),
            GuaranteeError,
            "neither public nor",
        ),
        (
            lambda: Synthesizer(ReplaceOne(SCHEMA), (Column("age"), Column("age")), 1),
            GuaranteeError,
            "named twice",
        ),
        (
            lambda: Synthesizer(AddRemove(SCHEMA), (Column("age"),), 1),
            GuaranteeError,
            "would publish their number",
        ),
        (
            lambda: Synthesizer(ReplaceOne(SCHEMA), (Column("age"),), 1, public=("region",)),
            FigureError,
            "table is not published",
        ),
        (
            lambda: Synthesizer(SemiAdjacent(Figures(SCHEMA, (TIED,))), COLUMNS, 1),
            StructureError,
            "ties 'income' to 'status'",
        ),
        (
            lambda: Synthesizer(
                SemiAdjacent(publish(confidential(), margin("age"))),
                (Column("region"), Column("age")),
                1,
            ),
            StructureError,
            "cannot keep it",
        ),
        (
            lambda: Synthesizer(
                SemiAdjacent(publish(confidential(), margin("age"))), (Column("age"),), 1, records=9
            ),
            GuaranteeError,
            "cannot agree",
        ),
        (
            lambda: Synthesizer(
                ReplaceOne(SCHEMA), (Column("region", PoissonColumn(Grid(1, 2, 3))),), 1
            ),
            GuaranteeError,
            "infinite for every possible record",
        ),
        (
            lambda: Synthesizer(ReplaceOne(SCHEMA), (Column("age", weighting="best"),), 1),
            GuaranteeError,
            "not known",
        ),
        (
            lambda: Column.from_dict({"name": "age", "modell": "x"}),
            GuaranteeError,
            "no key 'modell'",
        ),
        (lambda: Column.from_dict({"model": "poisson"}), GuaranteeError, "no name"),
        (
            lambda: SensitiveValues(publish(confidential(), margin("age")), ("region",)),
            FigureError,
            "not public for each person",
        ),
    ],
)
def test_bad_input(build, error, words):
    with pytest.raises(error, match=words):
        build()


def test_one_level_is_no_column():
    schema = Schema.from_dict({"x": {"levels": ["only"]}, "y": {"levels": ["a", "b"]}})
    with pytest.raises(GuaranteeError, match="only one category"):
        Synthesizer(ReplaceOne(schema), (Column("x"),), 1)


def test_scalar_weights_need_a_bounded_domain():
    schema = Schema.from_dict({"x": {"integers": [0, 5], "missing": "unknown"}})
    column = Column("x", PoissonColumn(Grid(1, 5, 3)), weighting="scalar")
    with pytest.raises(GuaranteeError, match="finite oscillation for every"):
        Synthesizer(ReplaceOne(schema), (column,), 1)
    with pytest.raises(GuaranteeError, match="lattice, not a product"):
        Synthesizer(
            ReplaceOne(schema), (Column("x", Spike(MultinomialColumn(), "0", Grid(0.1, 0.2))),), 1
        )
