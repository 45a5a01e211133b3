"""Bundles: written once, read back equal, checked line by line, hostile ones refused."""

from __future__ import annotations

import csv
import json
import re
import shutil
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.data.text_files import rounded, table_csv
from congenial.errors import BundleError, CongenialError, GuaranteeError
from congenial.figures.figures import Figures, publish
from congenial.figures.statements import count, total
from congenial.kinds.registry import every_kind
from congenial.ledger.spent_and_left import guess_after_all
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.measured_tables import MeasuredTables, release_table
from congenial.mechanisms.tables_files import with_reliability
from congenial.mechanisms.tables_release import ERRORS
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.publication import bundle, verification
from congenial.publication.verification import verify
from congenial.report.page_data import packed, rows_of
from congenial.report.tables_report import render
from congenial.sampling.randomness import SeededRandomness

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["a", 'b, or "b"', "c"], "within": {"state": ["N", "N", "S"]}},
        "age": {"edges": [0, 18, 65], "top": "65+"},
    }
)
TABLE = Table(SCHEMA, SCHEMA.names, np.arange(9).reshape(3, 3) * 10)
MANDATED = SemiAdjacent(publish(TABLE, total(by="county"), count("age >= 18", by="county")))


def release_of(target, names=SCHEMA.names, whole=True):
    mechanism = calibrate("auto", target, names)
    return MeasuredTables.of_one(mechanism, whole).release(TABLE, name="ages")


def with_values(release, values):
    """The same release with another table as drawn."""
    return replace(release, drawn=(values,))


def law_of(index):
    """The law of the one table in release.json."""
    (law,) = index["description"]["measured"]
    return law


NOT_OURS = "report.html contains no unexpected text or pictures"
AGREES = "the noisy tables agree with the exact figures"
READS_BACK = "the data files have the expected form"
RELEASES = {
    "mandated": lambda: release_of(Guarantee.pure(1, MANDATED)),
    "as drawn": lambda: release_of(Guarantee.pure(1, MANDATED), whole=False),
    "coarser": lambda: release_of(Guarantee.pure("1/3", MANDATED), ("age", "state")),
    "zcdp": lambda: release_of(Guarantee.zero_concentrated("0.3", ReplaceOne(SCHEMA))),
    "real": lambda: release_of(Guarantee.gaussian(1, ReplaceOne(SCHEMA))),
    "real, mandated": lambda: release_of(Guarantee.gaussian(1, MANDATED)),
    "rows": lambda: release_of(Guarantee.pure(1, AddRemove(SCHEMA, 3)), ("age",)),
}


@pytest.fixture
def written(tmp_path):
    def write(release, name="out"):
        words = release.guarantee.explain()
        page = render(release, words)
        prepared = bundle.write(release, tmp_path / name, words, page)
        prepared.publish()
        return prepared

    return write


@pytest.mark.parametrize("make", RELEASES.values(), ids=RELEASES)
def test_what_is_read_is_what_was_written(make, written):
    release = make()
    prepared = written(release)
    again = bundle.read(prepared.folder)
    for name in ("drawn", "estimates", "counts", "deviations"):
        for one, other in zip(getattr(again, name), getattr(release, name), strict=True):
            assert (one is None and other is None) or np.array_equal(one, other), name
    assert again.description == release.description
    assert again.guarantee.to_dict() == release.guarantee.to_dict()
    assert again.published == release.published
    assert again.interval("age >= 65", 0.9) == release.interval("age >= 65", 0.9)
    checks = verify(prepared.folder, prepared.digest)
    assert [c.what for c in checks if not c.holds] == []


@pytest.mark.parametrize("kind", every_kind(), ids=lambda kind: kind.name)
def test_bundles_of_every_kind_are_read_by_its_class(kind):
    assert bundle._class_of(kind.name, {}) is kind.release_class


def test_tables_open_elsewhere(written):
    import duckdb

    release = RELEASES["mandated"]()
    (counts,) = release.counts
    folder = written(release).folder
    csv = duckdb.sql(f"SELECT sum(count) FROM read_csv('{folder}/table.csv')").fetchone()
    parquet = duckdb.sql(f"SELECT sum(count) FROM '{folder}/table.parquet'").fetchone()
    assert csv == parquet == (int(counts.sum()),)
    assert repr(release) == "TablesRelease('ages': county x age; epsilon = 1)"
    assert np.array_equal(release.margin(["age"]), release.margin("age"))
    assert release.intervals("age", 0.9).equals(release.intervals(["age"], 0.9))
    frame = release.to_pandas()
    assert list(frame.columns) == ["county", "age", "count", "estimate", *ERRORS]
    assert release.to_polars().height == 9
    assert release.margin("state").tolist() == [
        int(counts[:2].sum()),
        int(counts[2].sum()),
    ]


@pytest.mark.parametrize("make", RELEASES.values(), ids=RELEASES)
def test_files_say_how_far_counts_may_be_off(make, written):
    """As `interval` and the law have it, cell by cell."""
    release = make()
    with (written(release).folder / "table.csv").open() as file:
        rows = list(csv.DictReader(file))
    mechanism = release.only.mechanism
    cells = np.arange(len(rows)).reshape(mechanism.shape)
    for at, row in enumerate(rows):
        told = [f"{axis} = '{row[axis]}'" for axis in release.tables[0]]
        around = release.interval(" and ".join(told), 0.9)
        law = mechanism.error_law(cells == at)
        sd, *ends = (float(row[part]) for part in ERRORS)
        assert sd == pytest.approx(law.variance**0.5, rel=0.005)  # three significant digits
        assert ends == pytest.approx([around.low, around.high], rel=1e-12)


def test_counts_whose_error_depends_on_the_data_say_nothing_of_it(written):
    release = release_table(
        calibrate(
            "congenial_counts", Guarantee.pure(1, SemiAdjacent(publish(TABLE, total(by="county"))))
        ),
        TABLE,
        name="ages",
    )
    folder = written(release).folder
    assert (folder / "table.csv").read_text().startswith('"county","age","count"\n')
    assert [c.what for c in verify(folder) if not c.holds] == []


def _write_table(folder, table):
    import pyarrow.parquet as pq

    pq.write_table(table, folder / "table.parquet")
    columns = [name for name in table.column_names if name not in SCHEMA.names]
    limits = SCHEMA.about.reliability
    (folder / "table.csv").write_bytes(table_csv(rounded(with_reliability(table, columns, limits))))


def _forged_table(folder, table):
    _write_table(folder, table)
    edit(folder, "release.json", lambda d: _refresh(folder, d))
    return {c.what for c in verify(folder) if not c.holds}


@pytest.mark.parametrize("part", ERRORS)
@pytest.mark.parametrize("name", ["mandated", "crossing", "real"])
def test_forged_errors_are_noticed(written, name, part):
    import pyarrow as pa

    both = SemiAdjacent(publish(TABLE, total(by="county"), total(by="age")))
    release = release_of(Guarantee.pure(1, both)) if name == "crossing" else RELEASES[name]()
    folder = written(release).folder
    table = release.to_arrow()
    at = table.column_names.index(part)
    values = table[part].to_pylist()
    forged = table.set_column(at, part, pa.array([v * 2 + 9 for v in values], table[part].type))
    assert _forged_table(folder, table) == set()  # the control
    wrong = {"sd": "the standard deviations follow from the noise"}
    assert _forged_table(folder, forged) == {wrong.get(part, READS_BACK)}


def test_a_seeded_draw_fails_verification(written):
    release = release_table(
        calibrate("auto", Guarantee.pure(1, MANDATED), SCHEMA.names), TABLE, SeededRandomness(5)
    )
    folder = written(release).folder
    failed = [c.what for c in verify(folder) if not c.holds]
    assert failed == ["drawn from the system's randomness"]
    assert "NOT FOR PUBLICATION" in (folder / "README.txt").read_text()


def test_nothing_is_overwritten_and_nothing_half_written(written, tmp_path):
    written(RELEASES["mandated"]())
    with pytest.raises(BundleError, match="already exists"):
        written(RELEASES["mandated"]())
    (tmp_path / "file").write_text("")
    with pytest.raises(BundleError):
        bundle.write(RELEASES["mandated"](), tmp_path / "file" / "out", "", "")
    assert {path.name for path in tmp_path.iterdir()} == {"out", "file"}


def edit(folder, name, change):
    """Change a JSON file and every digest above it, as someone who knows the format would."""
    path = folder / name
    data = json.loads(path.read_text())
    change(data)
    path.write_bytes(bundle.as_json(data))
    if name != "release.json":
        index = json.loads((folder / "release.json").read_text())
        index["files"][name] = bundle.sha256(path.read_bytes())
        (folder / "release.json").write_bytes(bundle.as_json(index))
    (folder / "DIGEST.txt").write_text(bundle.sha256((folder / "release.json").read_bytes()))


def test_an_accident_is_noticed(written):
    folder = written(RELEASES["mandated"]()).folder
    with (folder / "table.csv").open("a") as file:
        file.write("x")
    (folder / "extra.txt").write_text("hello")
    failed = {c.what for c in verify(folder) if not c.holds}
    assert failed == {"table.csv is as released", "nothing was added"}


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        (
            "release.json",
            lambda d: d["guarantee"]["tradeoff"].update(epsilon="1/100"),
            "the promise follows from the description",
        ),
        (
            "published.json",
            lambda d: d["statements"][0]["values"].__setitem__(0, 31),
            "the bundle can be read",
        ),
    ],
)
def test_a_changed_claim_is_noticed_even_with_fresh_digests(written, name, change, what):
    prepared = written(RELEASES["mandated"]())
    edit(prepared.folder, name, change)
    failed = {c.what for c in verify(prepared.folder) if not c.holds}
    assert what in failed
    failed = {c.what for c in verify(prepared.folder, prepared.digest) if not c.holds}
    assert "release.json matches the digest you gave" in failed


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(format=99),
        lambda d: d["files"].update({"../../etc/passwd": "0"}),
        lambda d: d["files"].update({"/etc/passwd": "0"}),
        lambda d: d.pop("description"),
        lambda d: d["description"].update(version=7),
        lambda d: law_of(d).update(family="none"),
        lambda d: law_of(d)["parameter"].update(eps_cell="-1"),
        lambda d: law_of(d).update(table=["nowhere"]),
        lambda d: d["description"].update(tables=[["nowhere"]]),
        lambda d: d["guarantee"]["adjacency"].update(metric=3),
        lambda d: d.clear(),
    ],
)
def test_hostile_bundles_are_refused_by_our_own_errors(written, change):
    folder = written(RELEASES["mandated"]()).folder
    edit(folder, "release.json", change)
    try:
        held = all(check.holds for check in verify(folder))
    except CongenialError:
        held = False
    assert not held


@pytest.mark.parametrize("name", ["release.json", "schema.json", "published.json", "table.parquet"])
def test_garbage_is_refused(written, name):
    folder = written(RELEASES["mandated"]()).folder
    (folder / name).write_bytes(b"\x00\xff{" * 10)
    with pytest.raises(BundleError):
        bundle.read(folder)


def test_a_table_of_the_wrong_size_is_refused(written, tmp_path):
    small = written(RELEASES["coarser"](), "small").folder
    large = written(RELEASES["mandated"](), "large").folder
    shutil.copy(small / "table.parquet", large / "table.parquet")
    with pytest.raises(BundleError, match="columns"):
        bundle.read(large)


def test_labels_do_not_break_the_text_files(written):
    hostile = publish(TABLE, total(by="county").named('A "quoted",\nlabel', "law; §1"))
    release = release_of(Guarantee.pure(1, SemiAdjacent(hostile)))
    folder = written(replace(release, name="x")).folder
    rows = (folder / "published.csv").read_text()
    assert '"A ""quoted"",' in rows
    assert bundle.read(folder).description.only_law.scale == Fraction(1, 4)


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("name", ["count", "estimate", "high_90"])
@pytest.mark.parametrize("labelled", [True, False])
def test_attributes_named_like_columns_of_numbers(written, name, labelled, whole):
    """Or labelled so: with whole counts and without, what is written can be read."""
    levels = {"levels": ["1", "2"]}
    told = {"label": name, "labels": {"1": "women", "2": "men"}}
    schema = Schema.from_dict({"sex": levels | told} if labelled else {name: levels})
    mechanism = calibrate("auto", Guarantee.pure(1, ReplaceOne(schema)), schema.names)
    table = Table(schema, schema.names, [30, 40])
    folder = written(MeasuredTables.of_one(mechanism, whole).release(table)).folder
    assert [c.what for c in verify(folder) if not c.holds] == []
    assert (bundle.read(folder).counts[0] is not None) == whole


def test_what_can_be_worked_out_again_is_checked(written):
    """Every digest is fresh; the content disagrees with itself."""
    import pyarrow.parquet as pq

    counts = np.arange(9).reshape(3, 3) * 10
    counts[0] = 0
    table = Table(SCHEMA, SCHEMA.names, counts)
    target = Guarantee.pure(1, SemiAdjacent(publish(table, total(by="county"))))
    release = release_table(calibrate("auto", target, SCHEMA.names), table)

    def failed(change):
        folder = written(release, f"forged-{change.__name__}").folder
        change(folder)
        edit(folder, "release.json", lambda d: _refresh(folder, d))
        return {c.what for c in verify(folder) if not c.holds}

    def frozen(folder):
        moved = release.drawn[0].copy()
        moved[0, 0] += 7  # county a is published as empty
        pq.write_table(with_values(release, moved).to_arrow(), folder / "table.parquet")

    def labels(folder):
        pq.write_table(
            release.to_arrow().set_column(0, "county", [["c"] * 9]), folder / "table.parquet"
        )

    def text(folder):
        (folder / "table.csv").write_text("garbage")

    def words(folder):
        edit(
            folder, "release.json", lambda d: d.update(promise="No result is 1.01 times as likely")
        )

    def readme(folder):
        old = (folder / "README.txt").read_text()
        (folder / "README.txt").write_text(old.replace("epsilon = 1 ", "epsilon = 0.001 "))

    def more(folder):
        edit(folder, "release.json", lambda d: d.update(promise=d["promise"] + " And no risk."))

    def weaker(folder):
        edit(folder, "release.json", lambda d: d["guarantee"].update(basis="estimate"))

    def records(folder):
        edit(folder, "release.json", lambda d: d["guarantee"]["adjacency"].update(records=5))

    assert AGREES in failed(frozen)
    assert failed(labels) == {READS_BACK}
    assert failed(text) == {READS_BACK}
    stated = "README.txt and report.html state that promise"
    assert failed(words) == {"the promise in words matches the promise in numbers", stated}
    assert failed(more) == {"the promise in words matches the promise in numbers", stated}
    assert failed(readme) == {stated}
    assert "the promise follows from the description" in failed(weaker)
    assert "the stated comparison of datasets matches the exact figures" in failed(records)


@pytest.mark.parametrize("mandated", [False, True])
def test_values_off_the_grid_are_noticed(written, mandated):
    """Low-order bits in a real table, sums kept: nobody may hide anything there."""
    release = release_of(Guarantee.gaussian(1, MANDATED if mandated else ReplaceOne(SCHEMA)))
    folder = written(release).folder
    moved = release.drawn[0].copy()
    moved[0, 1:] += np.array([1, -1]) * release.description.only_law.grid / 2
    forged = with_values(release, moved).to_arrow()
    assert _forged_table(folder, forged) == {"the noisy values are multiples of the stated step"}


def _wrong_sums(release):
    """Other sums than those published, under figures that the law holds without their values."""
    silent = Figures(SCHEMA, MANDATED.figures.statements)
    law = replace(release.description.only_law, support=silent)
    moved = release.drawn[0].copy()
    moved[0, 0] += 17
    told = replace(release.description, measured=(law,))
    return replace(with_values(release, moved), description=told)


def test_sums_that_a_law_does_not_state(written):
    folder = written(_wrong_sums(RELEASES["as drawn"]())).folder
    assert AGREES in {c.what for c in verify(folder) if not c.holds}


# ---- one table, forged in its files and in release.json ------------------------------------------


def _without_counts(folder, table):
    _write_table(folder, table.drop_columns("count"))


def _with_counts(folder, table):
    counts = table["estimate"].to_numpy().clip(0)
    _write_table(folder, table.add_column(2, "count", [counts]))


def _swapped(one, other):
    """One column in the place of another, under the old names."""

    def change(folder, table):
        to = {one: other, other: one}
        moved = table.select([to.get(name, name) for name in table.column_names])
        _write_table(folder, moved.rename_columns(table.column_names))

    return change


def _reordered(folder, table):
    names = table.column_names
    _write_table(folder, table.select([*names[:2], *names[3:], names[2]]))


def _one_more(column):
    def change(folder, table):
        values = table[column].to_numpy().copy()
        values[-1] += 1
        at = table.column_names.index(column)
        _write_table(folder, table.set_column(at, column, [values]))

    return change


def _as_drawn_too(folder, table):
    _write_table(folder, table.append_column("count_as_drawn", table["estimate"]))


def _told(change):
    return lambda folder, _: edit(folder, "release.json", lambda d: change(d["description"]))


def _law_twice(told):
    told["measured"] = told["measured"] * 2


def _another_law(told):
    told["measured"] = [*told["measured"], {**told["measured"][0], "table": ["age"]}]


def _table_too(told):
    told["tables"] = [*told["tables"], ["age"]]


DESIGN = {"aim": "keep", "promise": "1", "parameters": ["1"], "alone": [1.0], "gap": 0.0}


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("mandated", _without_counts),
        ("as drawn", _with_counts),
        *((name, _swapped("low_90", "high_90")) for name in ("mandated", "as drawn", "real")),
        *((name, _swapped("estimate", "high_90")) for name in ("mandated", "as drawn")),
        ("mandated", _swapped("count", "low_90")),
        ("mandated", _reordered),
        *(("mandated", _one_more(one)) for one in ("count", "estimate", *ERRORS)),
        *(("as drawn", _one_more(one)) for one in ("estimate", *ERRORS)),
        ("mandated", _as_drawn_too),
        ("mandated", _told(lambda told: told.update(whole=False))),
        ("as drawn", _told(lambda told: told.update(whole=True))),
        ("real", _told(lambda told: told.update(whole=True))),
        ("mandated", _told(lambda told: told.update(keep=["age", "nowhere"]))),
        *((name, _told(lambda told: told.update(keep=["age"]))) for name in ("as drawn", "real")),
        ("mandated", _told(lambda told: told.update(design=DESIGN))),
        ("mandated", _told(lambda told: told.update(design={"aim": "keep"}))),
        ("mandated", _told(lambda told: told.update(parts="county"))),
        ("mandated", _told(_law_twice)),
        ("mandated", _told(_another_law)),
        ("mandated", _told(_table_too)),
        ("mandated", _told(lambda told: told.update(measured=[]))),
        ("mandated", _told(lambda told: told["measured"][0].update(nonnegative=True))),
        ("mandated", _told(lambda told: told["measured"][0].update(table=["age", "county"]))),
    ],
)
def test_forged_tables_are_noticed(written, name, change):
    """With digests, and the other file of the table, made to fit."""
    release = RELEASES[name]()
    folder = written(release).folder
    change(folder, release.to_arrow())
    edit(folder, "release.json", lambda d: _refresh(folder, d))
    assert {c.what for c in verify(folder) if not c.holds}
    with suppress(CongenialError):  # no Python error, whatever it says
        assert bundle.read(folder).margin("age").shape == (3,)


ROWS = re.compile(r'(?<=id="rows">)[^<]+')


@pytest.mark.parametrize("name", ["mandated", "as drawn", "real"])
def test_rows_of_the_report_are_written_anew(written, name):
    """A number changed, or none at all: `verify` writes and compares them by itself."""
    folder = written(RELEASES[name]()).folder
    page = (folder / "report.html").read_text()
    (block,) = ROWS.findall(page)
    data = rows_of(page)
    data["tables"][-1]["columns"]["base"][0] += 1
    for other in (packed(data), "", packed({})):
        (folder / "report.html").write_text(page.replace(block, other, 1))
        edit(folder, "release.json", lambda d: _refresh(folder, d))
        assert {c.what for c in verify(folder) if not c.holds} == {NOT_OURS}


def test_a_negative_error_of_the_sampler_buys_nothing(written):
    """It would be subtracted from the loss."""
    folder = written(release_of(Guarantee.pure(1, MANDATED))).folder
    with pytest.raises(GuaranteeError, match="negative sampling error"):
        replace(bundle.read(folder).description.only_law, log_ratio_error=Fraction(-1, 3))
    edit(folder, "release.json", lambda d: law_of(d)["numerics"].update({"H": "-99/200"}))
    with pytest.raises(CongenialError, match="negative sampling error"):
        bundle.read(folder)


def _refresh(folder, index):
    for name in index["files"]:
        index["files"][name] = bundle.sha256((folder / name).read_bytes())


def test_a_draw_below_zero_keeps_a_width():
    release = release_of(Guarantee.pure(1, MANDATED))
    low = with_values(release, np.full_like(release.drawn[0], -10_000))
    one = low.interval("county = 'a' and age >= 65", 0.9)
    assert one.low == 0 < one.high
    assert not one.exact
    assert release.interval("age >= 18", 0.9).exact


def test_documents_are_written_in_one_way() -> None:
    """Bytes, because digests are of bytes: another indent would be another bundle."""
    assert bundle.as_json({"a": ["ü", 1]}) == '{\n "a": [\n  "ü",\n  1\n ]\n}\n'.encode()


def test_words_are_those_of_their_promise() -> None:
    assumed = ("The promise leans on beliefs.", "one row each")
    promised = replace(Guarantee.pure(1, MANDATED), assumptions=assumed)
    now, words = promised.explain(), verification._in_words
    assert words(now, promised)
    spent = "epsilon = 1 of epsilon = 4"
    assert words(f"{now} Spent: {spent}.", promised)
    for several in (False, True):  # what all releases together, and the whole budget, come to
        told = f"{now} Spent: {spent}. {guess_after_all(spent, several)}"
        assert words(told, promised)
        assert "at most 99 times in 100" in told
        assert not words(told.replace("99 times", "75 times"), promised)
    assert not words(now.replace("on beliefs; one", "on beliefs.; one"), promised)
    assert not words(now.replace("one row", "two rows"), promised)
