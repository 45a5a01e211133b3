from __future__ import annotations

import base64
import re
import sys
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from congenial.data.schema import Schema
from congenial.data.table import Table
from congenial.figures.invariants import publish
from congenial.figures.statements import count, structural_zeros, total
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.projection.projection import project
from congenial.mechanisms.tables_release import TablesRelease
from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
from congenial.privacy.guarantee import Guarantee
from congenial.report import pictures, views
from congenial.report import render as render_module
from congenial.report.accuracy import error_rows
from congenial.report.page import amount
from congenial.report.tables_report import render
from congenial.report.usage_section import example_condition
from congenial.sampling.randomness import SeededRandomness, SystemRandomness
from tests.publication.reading import Reader, words

EDGES = [0, 5, 10, 15, 18, 20, 21, 22, 25, 30, 35, 40, 45, 50, 55, 60, 62, 65, 67, 70, 75, 80, 85]
HOSTILE = "<script>alert('1')</script>\"&"


def people(schema: Schema, each: int = 40) -> Table:
    shape = tuple(len(schema.axis(name).levels) for name in schema.names)
    counts = np.random.default_rng(20201).poisson(each, shape)
    return Table(schema, schema.names, counts)


@cache
def demo(counties: int = 5, projected: bool = True, epsilon: str = "3/2") -> Release:
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
    release = calibrate("auto", target, schema.names).release(table, SeededRandomness(1), "demo")
    return project(release, SeededRandomness(2)) if projected else release


@cache
def demo_page() -> str:
    return render(demo(), demo().guarantee.explain("epsilon = 1.5 of epsilon = 4"))


def plain(mechanism: str, target: Guarantee, schema: Schema, names: tuple[str, ...]) -> Release:
    return calibrate(mechanism, target, names).release(people(schema), SeededRandomness(3), "plain")


@pytest.fixture
def tables_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave out the pictures, which take most of the time, where a test is about words."""
    monkeypatch.setattr(pictures, "available", lambda: False)


def test_page_is_offline_and_well_formed() -> None:
    reader = Reader(demo_page())
    assert "script" not in reader.seen
    assert not {"link", "iframe", "object", "embed", "form"} & set(reader.seen)
    assert all(r.startswith(("#", "data:image/svg+xml;base64,")) for r in reader.references)
    assert not re.search(r"https?://|//[a-z]|url\(|@import", demo_page().replace("base64,", ""))
    assert "default-src 'none'" in demo_page()
    anchors = {r[1:] for r in reader.references if r.startswith("#")}
    assert all(f'id="{anchor}"' in demo_page() for anchor in anchors)
    assert len(anchors) == 5


def test_pictures_load_nothing_and_have_alternatives() -> None:
    reader = Reader(demo_page())
    assert len(reader.images) == 6  # three margins, one pair, single cells, noise
    for image in reader.images:
        assert len(image["alt"] or "") > 20
        svg = base64.b64decode((image["src"] or "").split(",")[1]).decode()
        assert svg.startswith("<svg")
        assert "<script" not in svg
        assert not re.search(r"(href|src)=[\"']?http", svg)


def test_both_epsilons_are_shown_apart_and_right() -> None:
    release = demo()
    rows = {row[0]: row[1] for row in Reader(demo_page()).rows if len(row) == 2}
    sensitivity = release.guarantee.adjacency.l1(release.table).value
    assert sensitivity == 4
    assert release.description.scale * sensitivity == 3 / 2
    assert rows["Per person (the promise)"] == "epsilon = 1.5"
    assert rows["Per cell (the noise)"] == "eps_cell = 0.375"
    assert rows["How they go together"] == "0.375 per cell × 4 = 1.5 per person"
    assert "at most 2 records (a* in the papers)" in words(demo_page())
    assert "the one other person whose record would have to change with it" in words(demo_page())


def test_structure_and_promise_are_told() -> None:
    text = words(demo_page())
    assert "county (5) × sex (2) × age (23) = 230 cells" in text
    assert "10 groups of cells whose sum is known; 0 cells in no known sum" in text
    assert "0 cells known to be zero" in text
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
def test_values_in_tables_are_the_released_ones(projected: bool, tables_only: None) -> None:
    release = demo(projected=projected)
    rows = Reader(render(release, "promise")).rows
    cells = release.intervals(release.table, 0.9).slice(0, 200).to_pylist()
    for cell, value in zip(cells, release.values.reshape(-1).tolist(), strict=False):
        drawn = [f"{cell['estimate']:,}"] if projected else []
        shown = [cell["county"], cell["sex"], cell["age"], f"{value:,}", *drawn]
        assert [*shown, f"{cell['low']:,}", f"{cell['high']:,}", ""] in rows
    for name in release.table:
        margin = release.margin(name).tolist()
        for one, value in zip(release.intervals((name,), 0.9).to_pylist(), margin, strict=True):
            drawn = [f"{one['estimate']:,}"] if projected and release.prints(name) else []
            note = "exact" if name == "county" else ""
            ends = [f"{one['low']:,}", f"{one['high']:,}", note]
            assert [one[name], f"{value:,}", *drawn, *ends] in rows


def test_exact_means_no_noise_and_not_a_narrow_interval() -> None:
    release = demo(projected=False)
    drawn = np.array(release.values)
    drawn[0, 0, 0] = -10_000  # far below zero: its interval starts at zero and still has a width
    low = replace(release, values=drawn)
    cell = views.shown(low, release.table)[0]
    assert (cell.low, cell.exact) == (0, False)
    assert cell.high > 0
    assert all(one.exact for one in views.shown(release, ("county",)))
    assert not any(one.exact for one in views.shown(release, ("age",)))


def test_expected_error_table_is_that_of_accuracy() -> None:
    rows = Reader(demo_page()).rows
    for row in error_rows(demo().mechanism):
        name = f"each {row.what}" if row.sums > 1 else row.what
        within = "exact" if row.standard_deviation == 0 else amount(row.within)
        deviation = amount(round(row.standard_deviation, 2))
        assert [name, f"{row.sums:,}", deviation, within] in rows


def test_banner_only_when_not_publishable(tables_only: None) -> None:
    assert "NOT FOR PUBLICATION" in demo_page()
    assert demo().randomness in words(demo_page())
    public = replace(demo(), publishable=True, randomness=SystemRandomness.label)
    page = render(public, "promise")
    assert "NOT FOR PUBLICATION" not in page
    assert 'class="banner"' not in page
    assert SystemRandomness.label in words(page)


def test_projected_values_are_explained_only_when_there_are_any(tables_only: None) -> None:
    assert "count_as_drawn" in demo_page()
    page = render(demo(projected=False), "promise")
    assert "count_as_drawn" not in page
    assert "may be negative" in page


def test_everything_a_person_wrote_is_escaped(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = Schema.from_dict(
        {HOSTILE: {"levels": [HOSTILE, "b", "c"]}, "y.z[0]": {"levels": ["</td>", "'"]}}
    )
    table = people(schema)
    figure = replace(total(by=HOSTILE), label=f"L {HOSTILE}", because=f"G {HOSTILE}")
    target = Guarantee.pure(1, under=SemiAdjacent(publish(table, figure)))
    release = calibrate("auto", target, schema.names).release(table, SeededRandomness(4), HOSTILE)
    release = replace(release, randomness=f"R {HOSTILE}")
    page = render(release, f"promise {HOSTILE}")
    reader = Reader(page)
    assert "script" not in reader.seen
    assert "<script" not in page
    for lead in ("L", "G", "R", "promise"):
        assert f"{lead} {HOSTILE}" in words(page)
    assert [HOSTILE, f"{int(release.published.values[0][0]):,}"] in reader.rows
    release.interval(example_condition(release), 0.9)  # the example on the page can be run
    careless = render_module._environment().overlay(autoescape=False)
    monkeypatch.setattr(render_module, "_environment", lambda: careless)  # planted defect
    monkeypatch.setattr(pictures, "available", lambda: False)
    assert "<script" in render(release, "promise")


def test_without_the_extra_there_are_tables_and_a_hint(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("altair", "vl_convert"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, module, None)
            assert not pictures.available()
            page = render(demo(), "promise")
        reader = Reader(page)
        assert reader.images == []
        assert "congenial[report]" in page
        assert [row for row in reader.rows if row[0] == "85+"]
        assert "standard deviation" in words(page)
    assert pictures.available()
    assert "congenial[report]" not in demo_page()


def test_large_table_stays_small_and_refers_to_the_file() -> None:
    release = demo(counties=66)
    assert release.values.size == 3036
    page = render(release, "promise")
    assert len(page.encode()) < 1_500_000
    assert "All 3,036 rows are in table.csv." in words(page)
    assert "By county" not in words(page)  # 66 names do not fit a picture
    assert sum(row[:1] == ["County 00"] and len(row) == 8 for row in Reader(page).rows) <= 8 + 46


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
    assert len(Reader(page).images) == 2
    noise = views.cell_noise(release)
    step = 1 if noise.whole else noise.at[1] - noise.at[0]
    assert noise.whole == ("discrete" in mechanism or "geometric" in mechanism)
    assert noise.weight.sum() * step == pytest.approx(1, abs=0.01)
    assert "No figure was published exactly." in text
    assert "2 cells in no known sum" in text
    assert scale in text
    assert f"{release.guarantee.tradeoff.words} per person" in text
    assert "at most 1 record (a* in the papers)" in text


@pytest.mark.parametrize("names", [("region",), ("code",), ("region", "code")])
def test_odd_shapes_render(names: tuple[str, ...]) -> None:
    schema = Schema.from_dict({"region": {"levels": list("NESWC")}, "code": {"integers": [1, 60]}})
    target = Guarantee.pure(1, under=ReplaceOne(schema))
    release = plain("auto", target, schema, names)
    reader = Reader(render(release, "promise"))
    pictured = {("region",): 2, ("code",): 1, ("region", "code"): 3}
    assert len(reader.images) == pictured[names]


def test_rows_of_one_person_are_not_called_a_star(tables_only: None) -> None:
    schema = Schema.from_dict({"region": {"levels": ["N", "E", "S"]}})
    target = Guarantee.pure(1, under=AddRemove(schema, 3))
    text = words(render(plain("auto", target, schema, ("region",)), "promise"))
    assert "a* in the papers" not in text
    assert "at most 3 rows." in text
    assert "eps_cell = 0.333334 (exactly 1/3)" in text
    assert "The number of people in the data is public" not in text


def test_statements_without_figures_are_told(tables_only: None) -> None:
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "hh": {"integers": [1, 3]}})
    counts = np.array([[5, 9, 2], [4, 0, 7]])
    table = Table(schema, schema.names, counts)
    impossible = structural_zeros("sex = 'm' and hh = 2")
    figures = publish(table, total(by="sex"), impossible)
    target = Guarantee.pure(1, under=SemiAdjacent(figures))
    release = calibrate("auto", target, schema.names).release(table, SeededRandomness(5))
    text = words(render(release, "promise"))
    assert "zero by definition" in text
    assert "1 cell known to be zero" in text


def test_noise_law_is_that_of_the_mechanism() -> None:
    release = demo()
    noise = views.cell_noise(release)
    draws = release.mechanism.noise(SeededRandomness(6), 400)[..., 5:]  # adults: largest groups
    assert noise.whole
    assert noise.weight.sum() == pytest.approx(1, abs=0.01)
    assert np.var(draws) == pytest.approx(noise.standard_deviation**2, rel=0.05)
    laws = error_rows(release.mechanism, 0.90)[-1]
    assert noise.half_width == laws.within


def test_view_holds_the_other_axis_at_the_median() -> None:
    release = demo()
    piece = views.view(release)
    assert piece is not None
    assert (piece.rows, piece.panels) == ("age", "sex")
    ((name, level),) = piece.held
    totals = release.margin(name)
    assert np.count_nonzero(totals < totals[level]) == 2  # of five
    rows, kinds = views.piece_of(release, piece)
    for i, one in enumerate(rows):
        age, sex = one.labels
        at = release.schema.axis("sex").levels.index(sex)
        assert one.drawn == release.drawn[level, at, release.schema.axis("age").levels.index(age)]
        assert i // 2 == release.schema.axis("age").levels.index(age)
    sums: dict[str, int] = {}
    for one, kind in zip(rows, kinds, strict=True):
        sums[kind] = sums.get(kind, 0) + int(one.drawn)
    assert len(sums) == 2
    for kind, value in sums.items():  # what the legend claims
        assert kind.endswith(f"sum published exactly: {value:,}")


def test_many_published_sums_share_a_colour_and_free_cells_keep_theirs() -> None:
    schema = Schema.from_dict({"region": {"levels": list("NESWCD")}, "size": {"integers": [1, 4]}})
    table = people(schema)
    target = Guarantee.pure(1, under=SemiAdjacent(publish(table, count("size <= 2", by="region"))))
    release = calibrate("auto", target, schema.names).release(table, SeededRandomness(7))
    kinds = views._membership(release, np.arange(24))
    assert kinds == [*["part of a published sum"] * 2, *[views.NO_SUM] * 2] * 6
    few = views._membership(release, np.arange(8))
    assert few[0] != few[4]
    assert few[0].startswith("2 cells; sum published exactly")
    assert set(views._membership(release, np.array([0, 2]))) == {
        "part of a larger published sum",
        views.NO_SUM,
    }


def test_cells_of_crossing_figures_have_the_colour_of_their_atom() -> None:
    schema = Schema.from_dict(
        {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 5, 18, 65], "top": "65+"}}
    )
    table = people(schema)
    told = (
        total().named("All"),
        count("sex = 'f'").named("Female"),
        count("age >= 18").named("Adults"),
    )
    target = Guarantee.pure(1, under=SemiAdjacent(publish(table, *told)))
    release = calibrate("auto", target, schema.names).release(table, SeededRandomness(7))
    kinds = views._membership(release, np.arange(8))
    names = ["All, Female", "All, Female, Adults", "All", "All, Adults"]
    assert kinds == [f"counted in: {name}" for name in names for _ in range(2)]


def test_at_most_three_margins_have_pictures() -> None:
    """Of axes that can be labelled: 2 to 40 levels."""
    sizes = {"one": 1, "a": 2, "long": 41, "b": 40, "c": 3, "d": 2}
    schema = Schema.from_dict(
        {name: {"levels": [f"{name}{i}" for i in range(n)]} for name, n in sizes.items()}
    )
    assert views.one_way(released(schema, tuple(sizes))) == ["a", "b", "c"]
    assert views.one_way(released(schema, ("d", "long", "a"))) == ["d", "a"]


def released(schema: Schema, table: tuple[str, ...]) -> Release:
    made = calibrate("auto", Guarantee.pure(1, ReplaceOne(schema)), table)
    values = np.zeros(made.shape, dtype=np.int64)
    return Release("many", made.description, made.guarantee, values, "made up", False)
