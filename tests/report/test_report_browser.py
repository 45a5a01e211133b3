"""The report in a real browser, opened from a disk without a network: what a reader asks, sees,
sorts and searches equals the files, on a screen, a telephone and a dark screen.

Uses a Chromium that is on the machine, as the tests of the desk do; without one it skips.
"""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from congenial import Guarantee, Schema, SeededRandomness, Table, calibrate, publish, total
from congenial.data.about import WIDTH, About, MapShapes
from congenial.mechanisms import MeasuredTables, TablesRelease
from congenial.pairs import ReplaceOne, SemiAdjacent
from congenial.report.page_data import rows_of
from congenial.report.tables_report import render

HOSTILE = "<img src=x onerror=alert({})>\"'&</script><script>alert(1)</script>"
READY = "html[data-ready]"


@cache
def release() -> TablesRelease:
    """Place x sex x age with the population of places published; ages of some places are rare."""
    schema = Schema.from_dict(
        {
            "place": {"levels": [f"Place {i}" for i in range(7)]},
            "sex": {"levels": ["female", "male"]},
            "age": {"edges": [0, 5, 10, 20, 40], "top": "40+"},
        }
    )
    square = [((100 * i, 0), (100 * i + 90, 0), (100 * i + 90, 90), (100 * i, 0)) for i in range(7)]
    rings = {f"Place {i}": (ring,) for i, ring in enumerate(square)}
    schema = replace(schema, about=About(title="A count", map=MapShapes("place", WIDTH, rings)))
    counts = np.random.default_rng(3).poisson(300, (7, 2, 5))
    counts[6] = np.random.default_rng(4).poisson(0.5, (2, 5))
    table = Table(schema, schema.names, counts)
    target = Guarantee.pure("1/2", under=SemiAdjacent(publish(table, total(by="place"))))
    made = MeasuredTables.of_one(calibrate("auto", target, schema.names), whole=True)
    return made.release_each([table], SeededRandomness(5), "people")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("report")
    for name, content in release().payload().items():
        (found / name).write_bytes(content)
    (found / "report.html").write_text(render(release(), "promise"))
    return found


@pytest.fixture
def opened(browser: Browser, folder: Path) -> Iterator[Page]:
    with_page = visit(browser, folder / "report.html")
    yield next(with_page)
    list(with_page)


def visit(browser: Browser, file: Path, ask: str = "", **how: Any) -> Iterator[Page]:
    """A page that is opened and ready; what it complains about is an error."""
    context = browser.new_context(offline=True, **how)
    page = context.new_page()
    page.set_default_timeout(60_000)
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda said: complaints.append(said.text))
    page.on("dialog", lambda dialog: complaints.append(dialog.message))
    page.goto(f"{file.as_uri()}{ask}")
    page.wait_for_selector(READY, state="attached")
    yield page
    context.close()
    assert complaints == []


def listed() -> list[dict[str, str]]:
    """The CSV file of the release."""
    return list(csv.DictReader(io.StringIO(release().payload()["table.csv"].decode())))


def number(value: str) -> str:
    return f"{int(value):,}"


def test_answers_are_those_of_the_file(opened: Page) -> None:
    for row in listed()[::9]:
        for name in ("place", "sex", "age"):
            opened.select_option(f"#pick-{name}", row[name])
        said = opened.inner_text("#answer")
        if row["count"] == "0":
            assert f"Fewer than {number(str(int(row['high_90']) + 1))}" in said
            continue
        assert opened.inner_text("#answer output") == number(row["count"])
        assert f"between {number(row['low_90'])} and {number(row['high_90'])}" in said
        sentence = opened.inner_text("#sentence")
        age = re.sub(r"^(\d+)\+$", r"\1 or more", row["age"]).replace("-", " to ")
        assert f"place: {row['place']}, sex: {row['sex']}, age: {age})" in sentence


def test_a_link_opens_the_same_answer(browser: Browser, opened: Page, folder: Path) -> None:
    opened.select_option("#pick-place", "Place 3")
    opened.select_option("#pick-age", "10-19")
    ask = opened.get_attribute("#answer a", "href") or ""
    before = opened.inner_text("#answer")
    (again,) = (page.inner_text("#answer") for page in visit(browser, folder / "report.html", ask))
    assert again == before


def test_all_is_another_table(opened: Page) -> None:
    """Sums by an axis: the published population of a place is exact."""
    opened.select_option("#pick-table", "place")
    opened.select_option("#pick-place", "Place 2")
    told = int(np.asarray((release().published.values or ())[0])[2])
    assert opened.inner_text("#answer output") == f"{told:,}"
    assert "exact" in opened.inner_text("#answer")


def test_rows_sort_search_and_turn(opened: Page) -> None:
    rows = listed()
    opened.click("#table th button:text('count')")
    shown = [int(one.replace(",", "")) for one in column(opened, 4)]
    wanted = sorted((int(row["count"]) for row in rows), reverse=True)
    assert shown == wanted[:50]
    opened.click("#on")
    assert column(opened, 4) == [f"{one:,}" for one in wanted[50:]]
    opened.fill("#search", "male 20-39")  # and not "female"
    expect(opened.locator("#table tbody tr")).to_have_count(7)
    assert set(column(opened, 2)) == {"male"}
    assert opened.get_attribute("#table th:nth-child(4)", "aria-sort") == "descending"


def column(page: Page, at: int) -> Any:
    return page.locator(f"#table tbody td:nth-child({at})").all_inner_texts()


def titles(page: Page, of: str) -> Any:
    return page.locator(f"#chart svg {of} title").evaluate_all("all => all.map(x => x.textContent)")


def test_a_pyramid_has_the_numbers_of_the_file(opened: Page) -> None:
    """Bars as long as their counts, in one scale for both sides."""
    opened.select_option("#pick-place", "Place 1")
    opened.select_option("#pick-chart", "age: pyramid")
    rows = [row for row in listed() if row["place"] == "Place 1"]
    for at, sex in enumerate(("female", "male")):
        bars = opened.locator(f"#chart .bar.side-{at}")
        widths = bars.evaluate_all("all => all.map(x => Number(x.getAttribute('width')))")
        counts = [int(row["count"]) for row in rows if row["sex"] == sex]
        assert np.allclose(np.divide(widths, counts), np.divide(widths, counts).mean(), rtol=0.01)
        wanted = [
            f"{sex}, {row['age']}: {number(row['count'])}, {number(row['low_90'])} to "
            f"{number(row['high_90'])}"
            for row in rows
            if row["sex"] == sex
        ]
        assert titles(opened, f".side-{at}") == wanted


def test_lines_have_bands_and_a_scale_from_zero(opened: Page) -> None:
    opened.select_option("#pick-place", "Place 1")
    opened.select_option("#pick-chart", "age")
    assert opened.locator("#chart .band").count() == opened.locator("#chart .line").count() == 2
    heights = opened.locator("#chart circle").evaluate_all(
        "all => all.map(x => Number(x.getAttribute('cy')))"
    )
    counts = [int(row["count"]) for row in listed() if row["place"] == "Place 1"]
    slope, start = np.polyfit(counts, heights, 1)
    assert np.allclose(heights, start + slope * np.array(counts), atol=0.2)
    zero = opened.locator("#chart text").evaluate_all(
        "all => all.filter(x => x.textContent === '0').map(x => Number(x.getAttribute('y')))"
    )
    assert abs(start - (zero[0] - 4)) < 0.5


def test_a_map_shades_by_the_counts(opened: Page) -> None:
    opened.select_option("#pick-chart", "place: map")
    fills = opened.locator("#chart .area").evaluate_all(
        "all => Object.fromEntries(all.map(x => [x.dataset.level, x.getAttribute('fill')]))"
    )
    shown = [row for row in listed() if (row["sex"], row["age"]) == ("female", "0-4")]
    counts = {row["place"]: int(row["count"]) for row in shown}
    steps = ["#e3eef7", "#b3d0e8", "#74abd6", "#3a7fb8", "#0b4a80"]
    order = sorted(counts, key=counts.__getitem__)
    shades = [steps.index(fills[place]) for place in order]
    assert shades == sorted(shades)
    assert shades[0] == 0 < shades[-1] == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_cut_off_and_axe_has_no_complaint(
    browser: Browser, folder: Path, width: int, scheme: Any
) -> None:
    size: Any = {"width": width, "height": 844}
    how = {"viewport": size, "color_scheme": scheme, "bypass_csp": True}  # axe is a script, too
    for page in visit(browser, folder / "report.html", **how):
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        inside = "([...document.querySelectorAll('#table td, #answer p, .card')].every(x => "
        assert page.evaluate(f"{inside} x.getBoundingClientRect().right <= {width}))")
        letters = page.locator("#chart svg text").evaluate_all(
            "all => all.map(x => parseFloat(getComputedStyle(x).fontSize))"
        )
        assert min(letters) >= 11
        found = Axe().run(page)
        wrong = [(one["id"], one["nodes"][0]["html"]) for one in found.response["violations"]]
        assert wrong == []


def test_by_keyboard_only(opened: Page) -> None:
    """From the top of the page to a choice, and the answer follows."""
    before = opened.inner_text("#answer output")
    for _ in range(30):
        opened.keyboard.press("Tab")
        if opened.evaluate("document.activeElement.id") == "pick-age":
            break
    opened.keyboard.press("ArrowDown")
    expect(opened.locator("#answer output")).not_to_have_text(before)
    assert opened.evaluate("document.activeElement.id") == "pick-age"
    assert opened.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_without_scripts_and_on_paper(browser: Browser, folder: Path) -> None:
    context = browser.new_context(offline=True, java_script_enabled=False)
    page = context.new_page()
    page.goto((folder / "report.html").as_uri())
    assert page.locator(".card").count() == 3
    assert not page.locator("#search").is_visible()
    assert page.locator(".paper table").first.is_visible()
    context.close()
    for live in visit(browser, folder / "report.html"):
        live.emulate_media(media="print")
        assert live.locator(".paper table").first.is_visible()
        assert live.locator("#answer").is_visible()
        assert not live.locator("#table").is_visible()
        assert not live.locator("nav").is_visible()


def test_ten_thousand_hostile_labels_stay_text(browser: Browser, tmp_path: Path) -> None:
    levels = [HOSTILE.format(i) for i in range(10_000)]
    schema = Schema.from_dict({"x": {"levels": levels}})
    values = np.arange(10_000)
    made = calibrate("auto", Guarantee.pure(1, ReplaceOne(schema)), schema.names)
    drawn = TablesRelease.of_one(
        HOSTILE, made.description, made.guarantee, values, "made up", False
    )
    file = tmp_path / "report.html"
    file.write_text(render(drawn, "promise"))
    for page in visit(browser, file):
        page.fill("#search", "alert(9999)")
        expect(page.locator("#table tbody tr")).to_have_count(1)
        assert column(page, 1) == [levels[9999]]
        assert page.locator("main img, #chart img").count() == 0
        assert levels[0] in page.inner_text("#answer")


def test_300_000_rows_open_and_turn(browser: Browser, tmp_path: Path) -> None:
    """In 3 seconds of a browser's time on a free machine; the bound here allows for a busy one."""
    schema = Schema.from_dict(
        {
            "area": {"levels": [f"Area {i:05d}" for i in range(9_990)]},
            "group": {"levels": [f"g{i}" for i in range(30)]},
        }
    )
    values = np.random.default_rng(1).poisson(70, (9_990, 30))
    made = calibrate("auto", Guarantee.pure(1, ReplaceOne(schema)), schema.names)
    drawn = TablesRelease.of_one("large", made.description, made.guarantee, values, "-", False)
    text = render(drawn, "promise")
    assert len(rows_of(text)["tables"][-1]["columns"]["base"]) == 299_700
    block = re.findall(r'id="rows">([^<]+)', text)[0]
    assert len(text) - len(block) < 1_000_000
    file = tmp_path / "report.html"
    file.write_text(text)
    started = time.monotonic()
    for page in visit(browser, file):
        print(json.dumps({"seconds until ready": time.monotonic() - started, "bytes": len(text)}))
        assert time.monotonic() - started < 30
        page.click("#on")
        assert page.inner_text("#count") == "Rows 51 to 100 of 299,700"
