"""docs/papers.md: every numbered statement of the five papers is there, and every place exists."""

from __future__ import annotations

import importlib
import importlib.util
import re
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from congenial.cli import app
from congenial.papers import catalogue
from congenial.papers import printed_pages as page
from congenial.papers.item import Study

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def writer() -> Any:
    spec = importlib.util.spec_from_file_location("papers_page", DOCS / "papers.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


TABLE = writer().read()


def numbered(kind: str, *numbers: Any) -> list[str]:
    return [f"{kind} {number}" for number in numbers]


# The numbering of each paper as printed.
PRINTED = {
    "semi-dp": [
        *numbered("Definition", 1, 3, 4, 5, 8, 10, 12, 13, 19, 20, 35, 38, 44),
        *numbered("Remark", 2, 14, 17, 22, 27, 33),
        *numbered("Proposition", 6, 7, 9, 11, 15, 21, 23, 24, 25, 26, 28, 30, 32),
        *numbered("Theorem", 16, 31, 37),
        *numbered("Corollary", 18),
        *numbered("Lemma", 29, 34, 36, 39, 40, 41, 42, 43, 45, 46, 47),
        *numbered("Example", *range(1, 9)),
        *numbered("Algorithm", *range(1, 7)),
        *numbered("Figure", 1, 2, 3),
    ],
    "congenial-dp": [
        *numbered("Definition", "1.1", "1.2", "1.4"),
        *numbered("Theorem", "1.3", "2.1", "A.1"),
        *numbered("Example", "4.1", "5.1", "5.2"),
        *numbered("Table", 1, 2),
        *numbered("Figure", 1, 2, 3),
        *numbered("Remark", "I", "II"),
        "Algorithm 1",
    ],
    "partially-private-data": [
        *numbered("Definition", 1, 2, 3),
        *numbered("Lemma", 4, 5, 6, 7, 8, 12, 14),
        *numbered("Theorem", 9, 10, 11, 15, 16, 17),
        *numbered("Example", 1, 2, 3, 4),
        *numbered("Figure", 1, 2, 3, 4),
        *numbered("Algorithm", 1, 2),
        "Corollary 13",
    ],
    "distribution-privacy": [
        *numbered("Definition", "2.1", "2.2", "3.1", "3.2", "4.1"),
        *numbered("Theorem", "3.1", "3.2", "3.3", *(f"4.{k}" for k in range(1, 8)), "A.1"),
        *numbered("Table", 1, 2, 3),
        *numbered("Figure", 1, 2, 3, 4, 5),
        *numbered("Corollary", "A.1", "A.2"),
        *numbered("Lemma", "A.1", "B.1"),
        "Example 2.1",
        "Algorithm 1",
    ],
    "pseudo-posterior": [
        *numbered("Definition", 1, 2, 3, 4),
        *numbered("Assumption", 1, 2, 3, 4, 5),
        *numbered("Theorem", 1, 2, 3),
        *numbered("Lemma", 1, 2, 3),
        *numbered("Table", 1, 2),
        *numbered("Figure", 1, 2, 3, 4, 5, 6, 7),
    ],
}


def places() -> list[str]:
    rows = chain.from_iterable(paper["statements"].values() for paper in TABLE.values())
    return sorted({place for row in rows for place in row.get("where", ())})


def importable(name: str) -> bool:
    """A module, or an attribute of one, or an attribute of a class."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[cut:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


def exists(place: str) -> bool:
    kind, _, name = place.partition(": ")
    if kind == "item":
        paper, _, item = name.partition(" ")
        return item in catalogue.items(paper)
    if kind == "name":
        return importable(name)
    if kind == "command":
        return name in get_command(app).commands  # type: ignore[attr-defined]
    if kind == "test":
        file, _, test = name.partition("::")
        return f"def {test}(" in (ROOT / file).read_text(encoding="utf-8")
    return kind == "page" and (DOCS / name).is_file()


@pytest.mark.parametrize("paper", PRINTED)
def test_every_numbered_statement_has_its_line(paper: str) -> None:
    assert set(PRINTED[paper]) <= set(TABLE[paper]["statements"])


def test_every_statement_has_a_place_or_a_reason() -> None:
    for paper in TABLE.values():
        for label, row in paper["statements"].items():
            assert row["says"], label
            assert bool(row.get("where")) != bool(row.get("why_not")), label


@pytest.mark.parametrize("place", places())
def test_every_place_exists(place: str) -> None:
    assert exists(place)


@pytest.mark.parametrize(
    "place",
    [
        "item: semi-dp figure-9",
        "name: congenial.mechanisms.NoSuchMechanism",
        "command: conjure",
        "test: tests/docs/test_papers_page.py::test_that_is_not_here",
        "page: nowhere.md",
        "rumour: somewhere",
    ],
)
def test_a_place_that_is_not_there_is_noticed(place: str) -> None:
    assert not exists(place)


def test_every_item_of_the_catalogue_answers_to_a_statement_or_is_ours() -> None:
    """An item is named in the table, or its source says that it is a study of ours."""
    named = {place.removeprefix("item: ") for place in places() if place.startswith("item: ")}
    for paper in catalogue.PAPERS:
        for name, item in catalogue.items(paper).items():
            assert f"{paper} {name}" in named or "our study" in item.source, f"{paper} {name}"


def test_the_page_is_written_from_the_table() -> None:
    assert (DOCS / "papers.md").read_text(encoding="utf-8") == writer().page(), (
        "docs/papers.md is not up to date: run `python docs/papers.py`."
    )


@pytest.mark.parametrize("paper", catalogue.PAPERS)
def test_the_page_of_a_paper_has_every_item(paper: str) -> None:
    text = (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    for name, item in catalogue.items(paper).items():
        assert f"## {name}: {item.title}\n" in text, name


@pytest.mark.parametrize("name", ["figure-4", "figure-5", "figure-6", "figure-7", "table-2"])
def test_studies_of_the_mixture_say_what_they_rest_on_and_how_well_it_is_known(name: str) -> None:
    """What they show converged; of what they do not show the worst functional is named."""
    text = (DOCS / "papers" / "pseudo-posterior.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {name}: ")[1].split("\n## ")[0]
    for shown in ("Its distribution function has", "at the record that attains it the chains have"):
        told = section.split(f"{shown} at least ")[1].splitlines()[0]
        draws, r_hat = re.match(r"(\d+) effective draws.*, R-hat at most ([\d.]+)", told).groups()  # type: ignore[union-attr]
        assert int(draws) >= 50
        assert float(r_hat) <= 1.1
    assert "which no figure shows and which may not have converged, the worst is" in section


EXACT = [  # items without draws, data or a reduced version
    (paper, name)
    for paper in catalogue.PAPERS
    for name, item in catalogue.items(paper).items()
    if not item.files and not item.reduced and name != "table-1"
]


@pytest.mark.parametrize(("paper", "name"), EXACT)
def test_numbers_on_the_pages_are_those_of_today(paper: str, name: str) -> None:
    """Run `congenial reproduce PAPER --page --out docs/papers` where this fails."""
    place = DOCS / "papers" / paper / f"{name}.svg"
    picture = f"{paper}/{name}.svg" if place.is_file() else None
    written = page.section(catalogue.run(paper, name, Study()), picture)
    assert written in (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8")
