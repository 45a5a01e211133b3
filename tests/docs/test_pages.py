"""Links resolve, the site is built, and what the pages say about this repository is so."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import congenial
from tests.docs.pages import DOCS, PAGES, ROOT

TOP = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_is_built_without_dead_links(builder: ModuleType, tmp_path: Path) -> None:
    assert builder.build(DOCS, tmp_path / "site") == []
    for page in PAGES:
        out = tmp_path / "site" / page.relative_to(DOCS).with_suffix(".html")
        local = [one for one in re.findall(r'href="([^"]+)"', out.read_text()) if ":" not in one]
        assert local
        for link in local:
            assert (out.parent / link.split("#")[0]).is_file(), link
    assert (tmp_path / "site" / "images" / "demo.png").is_file()


def test_a_dead_link_is_noticed(builder: ModuleType, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text("# A\n\n[one](gone.md) [two](index.md#b) [good](index.md#a)\n")
    found = builder.build(docs, tmp_path / "site")
    assert [line.split(": ")[-1] for line in found] == ["gone.md", "index.md#b"]


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


def test_no_machine_or_registry_is_named() -> None:
    for page in (*TOP, *PAGES):
        assert not re.search(r"/(?:work|tmp|home|root)/|https?://", page.read_text()), page.name
