"""Links resolve, the site is built, and what the pages say about this repository is so."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from runpy import run_path

import pytest

import congenial
from tests.docs.pages import DOCS, PAGES, ROOT, blocks, dead_links

TOP = [
    ROOT / name
    for name in (
        "README.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
    )
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it: strict, so that what it warns of is an error."""
    pytest.importorskip("mkdocs", reason="the development set is not installed")
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def build(config: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", config, "-d"]
    return subprocess.run([*command, folder], capture_output=True, text=True, timeout=240)


def test_every_page_is_on_the_site_and_its_links_lead_somewhere(site: Path) -> None:
    for page in PAGES:
        out = site / page.relative_to(DOCS).with_suffix(".html")
        local = [one for one in re.findall(r'href="([^"]+)"', out.read_text()) if ":" not in one]
        assert local
        for link in local:
            assert (out.parent / link.split("#")[0]).exists(), f"{out.name}: {link}"
    assert (site / "images" / "sums.svg").is_file()


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        assert not re.findall(r'(?:src|href)="(?:https?:)?//[^"]*"', page.read_text()), page.name
    assert (site / "search" / "search_index.js").is_file()  # search without a server


@pytest.mark.parametrize("page", sorted((DOCS / "reference" / "api").glob("*.md")), ids=str)
def test_every_public_name_has_its_place_and_its_examples(page: Path, site: Path) -> None:
    """A class on a page of its own, everything else on the page of its package."""
    package = import_module(page.read_text().splitlines()[0].removeprefix("# "))
    written = site / page.relative_to(DOCS).with_suffix(".html")
    text = written.read_text()
    there = {one.split(".")[-1] for one in re.findall(r'id="(congenial\.[\w.]+)"', text)}
    for name in {*package.__all__} - {"__version__"}:
        thing = getattr(package, name)
        own = written.with_suffix("") / f"{name}.html"
        assert own.is_file() if isinstance(thing, type) else name in there, name
        if isinstance(thing, type):
            shown = own.read_text()
            assert f"{page.stem}/{name}.html" in text
            assert "<blockquote" not in shown
            blocks = len(re.findall(r'<span class="gp">&gt;&gt;&gt; </span>', shown))
            assert blocks >= (thing.__doc__ or "").count(">>>"), name
    assert "<blockquote" not in text


def test_a_dead_link_stops_the_site(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs", reason="the development set is not installed")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("# A\n\n[one](gone.md)\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: A\n")
    assert build(tmp_path / "mkdocs.yml", tmp_path / "site").returncode != 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_links_work_where_no_site_is_built(page: Path) -> None:
    assert dead_links(page, DOCS) == []


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "index.md"
    page.write_text("# A\n\n[one](gone.md) [two](index.md#b) [good](index.md#a)\n")
    assert dead_links(page, tmp_path) == ["gone.md", "index.md#b"]


@pytest.mark.parametrize("page", TOP, ids=lambda page: page.name)
def test_links_of_the_top_pages(page: Path) -> None:
    for link in re.findall(r"\]\(([^)]+)\)", page.read_text()):
        if ":" not in link:
            assert (ROOT / link.split("#")[0]).is_file(), link


def test_every_page_is_reachable_from_the_index() -> None:
    seen, todo = set(), [DOCS / "index.md"]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        for link in re.findall(r"\]\(([^)#]+\.md)", page.read_text()):
            todo.append((page.parent / link).resolve())
    assert seen == set(PAGES)


def test_the_index_and_the_navigation_list_every_page() -> None:
    """One link from the index, and a place on the site; decisions and packages have lists of their
    own.
    """
    listed = set(re.findall(r"\]\(([^)#]+\.md)\)", (DOCS / "index.md").read_text()))
    navigation = (ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    placed = re.findall(r"([\w/-]+\.md)$", navigation, re.MULTILINE)
    names = {str(page.relative_to(DOCS)) for page in PAGES}
    apart = {one for one in names if one.startswith("reference/api/") or re.match(r"adr/\d", one)}
    assert names - apart - {"index.md"} - listed == set()
    assert listed <= names
    assert sorted(placed) == sorted(names)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_table_has_a_header(page: Path) -> None:
    """A blank line inside a table leaves rows that no site shows as a table."""
    for part in page.read_text().split("\n\n"):
        rows = part.strip().splitlines()
        assert not rows[0].startswith("| ") or set(rows[1]) <= set("|-: "), rows[0]


GUIDES = sorted([*(DOCS / "tutorial").glob("*.md"), *(DOCS / "how-to").glob("*.md")])


FOLDERS = ("tutorial", "how-to", "reference", "explanation")


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.parent.name in FOLDERS], ids=lambda page: page.stem
)
def test_a_page_says_what_it_is_for_and_ends_with_the_next_step(page: Path) -> None:
    title, first = page.read_text().split("\n\n")[:2]
    assert title.startswith("# ")
    assert re.search(r"\b(?:page|you)\b|desk", first), "its first lines say what it is for"
    end = page.read_text().rstrip().rpartition("Next")[2]
    assert 0 < len(end.splitlines()) <= 6, "its last lines say what comes next"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_imports_public_names_only(page: Path) -> None:
    for block in blocks(page):
        for node in ast.walk(ast.parse(block.text)) if block.language == "python" else ():
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("congenial"):
                public = getattr(import_module(str(node.module)), "__all__", ())
                assert {name.name for name in node.names} <= set(public), node.module


@pytest.mark.parametrize("page", GUIDES, ids=lambda page: page.stem)
def test_a_piece_of_a_plan_is_valid_toml(page: Path) -> None:
    for block in blocks(page):
        if block.language == "toml":
            tomllib.loads(block.text)


def test_pages_that_messages_name_exist() -> None:
    named = re.compile(r"docs/((?:how-to|tutorial|explanation|reference)/[\w-]+)")
    for file in (ROOT / "src").rglob("*.py"):
        for name in named.findall(file.read_text()):
            assert (DOCS / f"{name}.md").is_file(), f"{file.name}: docs/{name}"


def test_commands_for_make_exist() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in (*TOP, *PAGES):
        for name in re.findall(r"`make (\w+)|^make (\w+) +#", page.read_text(), re.MULTILINE):
            assert set(name) - {""} <= targets, f"{page.name}: make {name}"


def test_every_version_says_what_it_promises() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text()
    versions = re.split(r"^## ", changelog, flags=re.MULTILINE)[1:]
    assert all("### Privacy" in version for version in versions)
    assert f"## [{congenial.__version__}]" in changelog


def test_tests_that_are_named_exist() -> None:
    for name in ("errata.md", "explanation/adjacency.md", "explanation/exact-sampling.md"):
        for file, test in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (DOCS / name).read_text()):
            assert f"def {test}(" in (ROOT / file).read_text(), f"{name}: {file}::{test}"


def test_files_that_are_named_exist() -> None:
    for page in (*TOP, *PAGES):
        for name in re.findall(r"`((?:src|tests|docs|requirements)/[\w./-]+)`", page.read_text()):
            assert (ROOT / name).exists(), f"{page.name}: {name}"


def test_modules_that_are_named_exist() -> None:
    rooms = "|".join(path.name for path in (ROOT / "src/congenial").iterdir() if path.is_dir())
    for page in (*TOP, *PAGES):
        if page.name == "CHANGELOG.md":
            continue
        for name in re.findall(rf"`((?:{rooms})/[a-z_/]+\.py)`", page.read_text()):
            assert (ROOT / "src/congenial" / name).exists(), f"{page.name}: {name}"


def test_no_machine_or_registry_is_named() -> None:
    for page in (*TOP, *PAGES):
        assert not re.search(r"/(?:work|tmp|home|root)/|https?://", page.read_text()), page.name


def test_the_picture_of_what_is_promised_is_the_one_drawn() -> None:
    drawn = run_path(str(DOCS / "odds.py"))["picture"]()
    assert (DOCS / "images" / "odds.svg").read_text(encoding="utf-8") == drawn
