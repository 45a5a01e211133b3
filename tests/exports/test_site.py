"""A site of several bundles: what its first page says equals the bundles, and its search leads to
the rows of their files.
"""

from __future__ import annotations

import csv
import re
import shutil

import numpy as np
import pytest
from axe_playwright_python.sync_playwright import Axe

import congenial as cg
from congenial.errors import BundleError
from congenial.exports.site_of_bundles import write_site
from congenial.publication.verification import verify
from congenial.report.page_data import rows_of

SCHEMA = cg.Schema.from_dict(
    {
        "place": {"levels": ["Alder", "<b>Juniper</b>"]},
        "age": {"edges": [0, 18, 65], "top": "65+"},
        "$about": {"title": "People of two places", "quote": "second"},
    }
)
COUNTS = np.array([[900, 600, 300], [0, 5, 12]])


def saved(folder, name, randomness=None):
    table = cg.Table(SCHEMA, ["place", "age"], COUNTS)
    under = cg.SemiAdjacent(cg.publish(table, cg.total(by="place")))
    mechanism = cg.calibrate("auto", cg.Guarantee.pure(1, under=under))
    drawn = cg.release_table(mechanism, table, *([randomness] if randomness else []), name=name)
    drawn.save(folder / name)
    return folder / name


@pytest.fixture(scope="module")
def bundles(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bundles")
    return [saved(folder, "first"), saved(folder, "second")]


def test_a_site_has_the_bundles_and_their_rows(bundles, tmp_path):
    document = write_site(bundles, tmp_path / "site")
    assert document["releases"] == ["second", "first"]  # the one to quote comes first
    page = (tmp_path / "site" / "index.html").read_text()
    assert "<h1>People of two places</h1>" in page
    assert "<b>Juniper" not in page
    for bundle, release in zip(bundles[::-1], rows_of(page)["releases"], strict=True):
        assert release["report"] == f"{bundle.name}/report.html"
        assert (bundle / "DIGEST.txt").read_text().strip() in page
        assert all(check.holds for check in verify(tmp_path / "site" / bundle.name))
        table = next(one for one in release["tables"] if len(one["axes"]) == 2)
        with (bundle / "table.csv").open() as file:
            assert table["columns"]["base"] == [int(row["count"]) for row in csv.DictReader(file)]


@pytest.mark.parametrize("width", [390, 1280])
def test_the_search_leads_to_the_row_of_the_file(bundles, tmp_path, browser, width):
    """The words of a row find it, its number is the file's, and its link opens the same answer."""
    write_site(bundles, tmp_path / "site")
    with (bundles[1] / "table.csv").open() as file:
        row = next(one for one in csv.DictReader(file) if one["place"] == "Alder")
    context = browser.new_context(viewport={"width": width, "height": 800}, bypass_csp=True)
    page = context.new_page()
    page.goto((tmp_path / "site" / "index.html").as_uri())
    page.wait_for_selector("html[data-ready]")
    assert Axe().run(page).violations_count == 0
    page.fill("#search", f"alder {row['age']}")
    first = page.locator("#answer tbody tr").first
    first.wait_for()
    cells = first.locator("td").all_inner_texts()
    assert cells[:3] == ["Alder", row["age"], f"{int(row['count']):,}"]
    assert Axe().run(page).violations_count == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    first.locator("a").click()
    page.wait_for_selector("html[data-ready] #answer output")
    assert "/second/report.html#find?" in page.url
    assert page.locator("#answer output").inner_text() == f"{int(row['count']):,}"
    context.close()


def test_what_a_site_refuses(bundles, tmp_path):
    with pytest.raises(BundleError, match="same folder name"):
        write_site([bundles[0], bundles[0]], tmp_path / "site")
    with pytest.raises(BundleError, match="already exists"):
        write_site(bundles, tmp_path)
    seeded = saved(tmp_path, "seeded", cg.SeededRandomness(1))
    with pytest.raises(BundleError, match="does not verify: drawn from"):
        write_site([seeded], tmp_path / "site")
    table = bundles[0].parent / "changed" / "table.csv"
    shutil.copytree(bundles[0], table.parent)
    table.write_text(re.sub(r"\d", "7", table.read_text()))
    with pytest.raises(BundleError, match=r"does not verify: table\.csv"):
        write_site([table.parent], tmp_path / "site")
    assert not (tmp_path / "site").exists()
