from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures import count, publish, structural_zeros, total
from congenial.mechanisms import MeasuredTables, TablesRelease, release_table
from congenial.mechanisms.calibrate import calibrate
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.report import page_data
from congenial.report import render as render_module
from congenial.report.accuracy import error_rows
from congenial.report.page import amount
from congenial.report.page_data import rows_of
from congenial.report.release_page import example_condition
from congenial.report.render import differences
from congenial.report.tables_report import MOST_MARGINS, SHORT, TableNumbers, render
from congenial.sampling.randomness import SeededRandomness, SystemRandomness
from tests.publication.reading import Reader, cells_of, words

EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
HOSTILE = "<script>alert('1')</script>\"&"


def people(schema: Schema, each: int = 40) -> Table:
    shape = tuple(len(schema.axis(name).levels) for name in schema.names)
    counts = np.random.default_rng(20201).poisson(each, shape)
    return Table(schema, schema.names, counts)


@cache
def demo(counties: int = 5, projected: bool = True, epsilon: str = "3/2") -> TablesRelease:
    """County x sex x age with population and voting age published, as in the demo."""
    schema = Schema.from_dict(
        {
            "county": {"levels": [f"County {i:02d}" for i in range(counties)]},
            "sex": {"levels": ["female", "male"]},
            "age": {"edges": EDGES, "top": "85+"},
        }
    )
    table = people(schema, each=6)
    figures = publish(
        table,
        replace(total(by="county"), label="Population", because="Statute 12"),
        replace(count("age >= 18", by="county"), label="Voting age"),
    )
    target = Guarantee.pure(epsilon, under=SemiAdjacent(figures))
    made = MeasuredTables.of_one(calibrate("auto", target, schema.names), whole=projected)
    return made.release_each([table], SeededRandomness(1), "demo")


@cache
def demo_page() -> str:
    return render(demo(), demo().guarantee.explain("epsilon = 1.5 of epsilon = 4"))


def plain(
    mechanism: str, target: Guarantee, schema: Schema, names: tuple[str, ...]
) -> TablesRelease:
    return release_table(
        calibrate(mechanism, target, names), people(schema), SeededRandomness(3), "plain"
    )


def test_page_is_offline_and_well_formed() -> None:
    page = demo_page()
    reader = Reader(page)
    assert not {"link", "iframe", "object", "embed", "base"} & set(reader.seen)
    files = {"table.csv", "table.parquet", "published.csv", "CITATION.cff"}
    assert {r for r in reader.references if not r.startswith("#")} == files
    bare = page.replace("http://www.w3.org/2000/svg", "")  # a name in the script, not an address
    assert not re.search(r"https?://|url\(|@import", bare)
    anchors = {r[1:] for r in reader.references if r.startswith("#")}
    assert all(f'id="{anchor}"' in page for anchor in anchors)
    assert len(anchors) == 6


def test_the_only_script_is_ours_and_evaluates_nothing() -> None:
    """The policy names its digest; what would run, parse or fetch text is not in it."""
    page = demo_page()
    assert Reader(page).seen.count("script") == 2  # the rows, which are data, and the script
    (code,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe-eval" not in policy
    words_of_code = (
        r"\beval\b|Function\(|innerHTML|outerHTML|insertAdjacent|fetch\(|XMLHttp|import\("
    )
    assert not re.search(words_of_code, code)
    assert "</" not in code
    assert len(page.encode()) < 300_000


def test_the_first_screen_has_an_exact_total_and_protected_numbers() -> None:
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", demo_page().split("</style>")[1]))
    total = f"{int(np.sum(np.asarray((demo().published.values or ())[0]))):,}"
    assert f"Population {total} exact" in text
    assert text.index("Protected") < text.index("Quote the count") < text.index("The noise is set")


def test_both_epsilons_are_shown_apart_and_right() -> None:
    release = demo()
    rows = {row[0]: row[1] for row in Reader(demo_page()).rows if len(row) == 2}
    law = release.only.description
    sensitivity = release.guarantee.adjacency.l1(law.table).value
    assert sensitivity == 4
    assert law.scale * sensitivity == 3 / 2
    assert rows["Per person (the promise)"] == "epsilon = 1.5"
    assert rows["Per cell (the noise)"] == "eps_cell = 0.375"
    assert rows["How they go together"] == "0.375 per cell × 4 = 1.5 per person"
    assert "at most 2 records (a* in the papers)" in words(demo_page())
    assert "one other (whom the exact figures can force to change with yours)" in words(demo_page())


def test_structure_and_promise_are_told() -> None:
    text = words(demo_page())
    assert "A table of 230 counts, county (5) × sex (2) × age (23), protected with" in text
    assert "10 groups of cells whose sum is known; 220 independent directions" in text
    assert demo().guarantee.explain("epsilon = 1.5 of epsilon = 4") in text
    for block in ("Domain", "Universe", "Adjacency", "Trade-off", "Parameters"):
        assert any(row[0].startswith(block) for row in Reader(demo_page()).rows)
    assert "facts about groups" in text
    assert demo().guarantee.citation in text


def test_published_figures_are_shown_with_label_and_ground() -> None:
    release, text = demo(), words(demo_page())
    assert "Population" in text
    assert "Ground: Statute 12." in text
    assert "Number of people with age >= 18, for each county" in text
    rows = [row for row in Reader(demo_page()).rows if len(row) == 2]
    for figures in release.published.values or ():
        assert figures is not None
        for i, figure in enumerate(figures.tolist()):
            assert [f"County {i:02d}", f"{figure:,}"] in rows


@pytest.mark.parametrize("projected", [True, False])
def test_rows_on_the_page_are_the_released_ones(projected: bool) -> None:
    release = demo(projected=projected)
    page = render(release, "promise")
    names = release.tables[0]
    for table in (names, *((name,) for name in names)):
        cells = release.intervals(table, 0.9).to_pylist()
        shown = cells_of(page, *table)
        assert [one["value"] for one in shown] == release.margin(*table).reshape(-1).tolist()
        for key in ("low", "high", "exact", "estimate", *table):
            assert [one[key] for one in shown] == [cell[key] for cell in cells]
        assert all(cell["exact"] for cell in cells) == (table == ("county",))
    assert release.prints(*names) == projected


def test_exact_means_no_noise_and_not_a_narrow_interval() -> None:
    release = demo(projected=False)
    drawn = np.array(release.drawn[0])
    drawn[0, 0, 0] = -10_000  # far below zero: its interval starts at zero and still has a width
    cell = cells_of(render(replace(release, drawn=(drawn,)), "promise"), *release.tables[0])[0]
    assert (cell["value"], cell["low"], cell["exact"]) == (-10_000, 0, False)
    assert cell["high"] > 0


def test_expected_error_table_is_that_of_accuracy() -> None:
    rows = Reader(demo_page()).rows
    for row in error_rows(demo().only.mechanism):
        name = f"each {row.what}" if row.sums > 1 else row.what
        within = "exact" if row.standard_deviation == 0 else amount(row.within)
        deviation = amount(round(row.standard_deviation, 2))
        assert [name, f"{row.sums:,}", deviation, within] in rows


def test_banner_only_when_not_publishable() -> None:
    assert "NOT FOR PUBLICATION" in demo_page()
    assert demo().randomness in words(demo_page())
    public = replace(demo(), publishable=True, randomness=SystemRandomness.label)
    page = render(public, "promise")
    assert "NOT FOR PUBLICATION" not in page
    assert 'class="banner"' not in page
    assert SystemRandomness.label in words(page)


def test_printed_counts_are_explained_only_when_there_are_any() -> None:
    assert "count and estimate" in demo_page()
    assert "Estimates may be negative" not in demo_page()
    page = render(demo(projected=False), "promise")
    assert "count and estimate" not in page
    assert "Estimates may be negative" in page


def test_everything_a_person_wrote_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_dict(
        {HOSTILE: {"levels": [HOSTILE, "b", "c"]}, "y.z[0]": {"levels": ["</td>", "'"]}}
    )
    table = people(schema)
    figure = replace(total(by=HOSTILE), label=f"L {HOSTILE}", because=f"G {HOSTILE}")
    target = Guarantee.pure(1, under=SemiAdjacent(publish(table, figure)))
    release = release_table(
        calibrate("auto", target, schema.names), table, SeededRandomness(4), HOSTILE
    )
    release = replace(release, randomness=f"R {HOSTILE}")
    page = render(release, f"promise {HOSTILE}")
    reader = Reader(page)
    assert "<script>alert" not in page
    assert reader.seen.count("script") == 2
    for lead in ("L", "G", "R", "promise"):
        assert f"{lead} {HOSTILE}" in words(page)
    assert [HOSTILE, f"{int(release.published.values[0][0]):,}"] in reader.rows
    release.interval(example_condition(release), 0.9)  # the example on the page can be run
    careless = render_module._environment().overlay(autoescape=False)
    monkeypatch.setattr(render_module, "_environment", lambda: careless)  # planted defect
    assert "<script>alert" in render(release, "promise")


def test_all_rows_of_a_large_table_are_in_the_page_and_few_as_markup() -> None:
    release = demo(counties=66)
    assert release.drawn[0].size == 3036
    page = render(release, "promise")
    assert len(page.encode()) < 200_000
    assert "All 3,036 rows are in table.csv." in words(page)
    assert len(cells_of(page, *release.tables[0])) == 3036
    assert sum(row[:1] == ["County 00"] and len(row) == 5 for row in Reader(page).rows) == 8


def test_tables_beyond_the_room_of_a_page_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_data.within_room, "__defaults__", (60,))
    page = render(demo(), "promise")
    assert [one["axes"] for one in rows_of(page)["tables"]] == [["county"], ["sex"], ["age"]]
    assert "has 230 rows, more than a page can carry: they are in table.csv" in words(page)


def test_pages_with_other_compression_are_equal_and_other_rows_are_not() -> None:
    """Compressors differ between machines; a number that is changed is noticed."""
    page = demo_page()
    text = json.dumps(rows_of(page), ensure_ascii=False, separators=(",", ":"))
    (block,) = re.findall(r'id="rows">([^<]+)', page)

    def with_rows(said: str) -> str:
        packed = base64.b64encode(gzip.compress(said.encode(), 1)).decode()
        return page.replace(block, packed)

    assert with_rows(text) != page
    assert differences(with_rows(text), page) == []
    assert differences(with_rows(text.replace('"base":[', '"base":[1', 1)), page) != []
    assert differences(with_rows(text + " "), page) != []
    assert differences(page.replace(block, "AAAA"), page) != []


@pytest.mark.parametrize(
    ("mechanism", "kind", "parameter", "scale"),
    [
        ("plain_geometric", "pure", 1, "eps_cell = 0.5"),
        ("plain_laplace", "pure", 1, "eps_cell = 0.5"),
        ("plain_discrete_gaussian", "zero_concentrated", "1/2", "sigma = 1.41421"),
        ("plain_gaussian", "gaussian", 1, "sigma = 1.41421"),
    ],
)
def test_plain_mechanisms_without_mandates(
    mechanism: str, kind: str, parameter: object, scale: str
) -> None:
    schema = Schema.from_dict({"region": {"levels": ["N", "E"]}, "size": {"integers": [1, 5]}})
    target = getattr(Guarantee, kind)(parameter, under=ReplaceOne(schema))
    release = plain(mechanism, target, schema, ("region",))
    page = render(release, "promise")
    text = words(page)
    assert len(cells_of(page, "region")) == 2
    assert "No figure was published exactly." in text
    assert "2 cells in no known sum" in text
    assert scale in text
    assert f"{release.guarantee.tradeoff.words} per person" in text
    assert "at most 1 record (a* in the papers)" in text


def test_rows_of_one_person_are_not_called_a_star() -> None:
    schema = Schema.from_dict({"region": {"levels": ["N", "E", "S"]}})
    target = Guarantee.pure(1, under=AddRemove(schema, 3))
    text = words(render(plain("auto", target, schema, ("region",)), "promise"))
    assert "a* in the papers" not in text
    assert "at most 3 rows." in text
    assert "eps_cell = 0.333334 (exactly 1/3)" in text
    assert "The number of people in the data is public" not in text


def test_statements_without_figures_are_told() -> None:
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "hh": {"integers": [1, 3]}})
    counts = np.array([[5, 9, 2], [4, 0, 7]])
    table = Table(schema, schema.names, counts)
    impossible = structural_zeros("sex = 'm' and hh = 2")
    figures = publish(table, total(by="sex"), impossible)
    target = Guarantee.pure(1, under=SemiAdjacent(figures))
    release = release_table(calibrate("auto", target, schema.names), table, SeededRandomness(5))
    text = words(render(release, "promise"))
    assert "zero by definition" in text
    assert "1 cell known to be zero" in text


def test_at_most_three_sums_are_shown_beside_a_table() -> None:
    """By axes of 2 to 40 levels."""
    sizes = {"one": 1, "a": 2, "long": SHORT + 1, "b": SHORT, "c": 3, "d": 2}
    schema = Schema.from_dict(
        {name: {"levels": [f"{name}{i}" for i in range(n)]} for name, n in sizes.items()}
    )
    assert MOST_MARGINS == 3
    assert margins(schema, tuple(sizes)) == ["a", "b", "c"]
    assert margins(schema, ("d", "long", "a")) == ["d", "a"]


def margins(schema: Schema, table: tuple[str, ...]) -> list[str]:
    """Axes whose sums the report of a table shows."""
    made = calibrate("auto", Guarantee.pure(1, ReplaceOne(schema)), table)
    values = np.zeros(made.shape, dtype=np.int64)
    release = TablesRelease.of_one(
        "many", made.description, made.guarantee, values, "made up", False
    )
    *sums, _ = rows_of(render(release, "promise"))["tables"]
    return [name for one in sums for name in one["axes"]]


def test_the_number_that_opens_the_page_is_not_chosen_by_noise() -> None:
    schema = Schema.from_dict({"ward": {"levels": ["north", "middle", "south"]}})

    def opening(counts: list[int]) -> str:
        base, flags = np.array(counts), np.array(["good"] * 3)
        numbers = TableNumbers(
            ("ward",), "", "people", False, "", base, True, base - 9, base + 9, flags, {}
        )
        shown = numbers.leading(schema)
        assert shown is not None
        return shown.label

    assert opening([20, 50, 30]) == "ward middle"  # far above the others
    assert opening([20, 50, 45]) == "ward north"  # any of two might be the largest
