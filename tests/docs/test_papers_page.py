"""docs/papers.md: every numbered statement of the five papers is there, and every place exists."""

from __future__ import annotations

import importlib
import re
from contextlib import suppress
from itertools import chain
from typing import Any

import pytest
from typer.main import get_command

from congenial.cli import app
from congenial.papers import catalogue
from congenial.papers import printed_pages as page
from congenial.papers.item import Study
from tests.docs.pages import DOCS, ROOT, hooks

TABLE = hooks().papers()
ERRATA = "page: errata.md"


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


def public(place: str) -> bool:
    """An item, a command, or a name that its package offers in `__all__` (and what belongs to it).

    A module without `__all__` offers nothing: it may be renamed without a word.
    """
    kind, _, name = place.partition(": ")
    if kind in ("item", "command"):
        return True
    parts = name.split(".")
    for cut in range(len(parts) - 1, 0, -1) if kind == "name" else ():
        with suppress(ModuleNotFoundError):
            package = importlib.import_module(".".join(parts[:cut]))
            return parts[cut] in getattr(package, "__all__", ())
    return False


@pytest.mark.parametrize("paper", PRINTED)
def test_every_statement_has_a_public_path(paper: str) -> None:
    """Somebody who reads the page can run or import it; names beside it are public too."""
    for label, row in TABLE[paper]["statements"].items():
        where = row.get("where")
        assert where is None or any(map(public, where)), f"{label} has no public path"
        hidden = [one for one in where or () if one.startswith("name: ") and not public(one)]
        assert not hidden, f"{label} names what is private: {hidden}"


def test_a_private_name_is_not_a_public_path() -> None:
    assert public("name: congenial.papers.Sensitivity.hull")
    assert not public("name: congenial.papers.sensitivity_spaces.Hull")
    assert not public("page: errata.md")


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


KINDS = "Definition|Proposition|Theorem|Corollary|Lemma|Example|Remark|Algorithm|Figure|Table|"
KINDS += "Section|Assumption|Appendix|Eq"
NUMBER = r"(?:[A-Z]\.\d+|[A-Z]\b|\d+(?:\.\d+)*|I{1,2}\b)"
LABELS = re.compile(rf"({KINDS})s? ({NUMBER}(?:(?:, | and |, and ){NUMBER})*)", re.IGNORECASE)


def statements_in(text: str) -> set[str]:
    """Statements named in a text: "Examples 4.1, 5.1" are two."""
    named = [(k, re.findall(NUMBER, numbers)) for k, numbers in LABELS.findall(text)]
    return {f"{kind.capitalize()} {n}" for kind, numbers in named for n in numbers} | {
        f"({n})" for n in re.findall(r"\((\d\.\d)\)", text)
    }


def test_statements_are_found_in_a_text() -> None:
    text = "as printed (Examples 4.1, 5.1), Algorithms 2 and 3, section 4.2, (2.5), Theorem A.1"
    found = {"Example 4.1", "Example 5.1", "Algorithm 2", "Algorithm 3", "Section 4.2", "(2.5)"}
    assert statements_in(text) == found | {"Theorem A.1"}


def errata(paper: str) -> set[str]:
    """Statements with an erratum: those named in the first column of the paper's table."""
    text = (DOCS / "errata.md").read_text(encoding="utf-8")
    part = text.split(f"\n## {paper}\n")[1].split("\n## ")[0]
    cells = [line.split(" | ")[0] for line in part.splitlines() if line.startswith("| ")]
    return set().union(*map(statements_in, cells))


@pytest.mark.parametrize("paper", PRINTED)
def test_every_erratum_named_on_a_page_exists(paper: str) -> None:
    """In papers.md a link to the errata; on the page of a paper a reason, or a source."""
    named = {k for k, row in TABLE[paper]["statements"].items() if ERRATA in row.get("where", ())}
    numbers = [n for item in page.table()[paper].values() for n in item.get("numbers", ())]
    for one in numbers:
        if one.get("why", "").startswith("erratum"):
            named |= statements_in(one["at"])
    for item in catalogue.items(paper).values():
        if "erratum" in item.source or "errata" in item.source:
            named |= statements_in(item.source)
    assert named - {"Example (section 4.3)"} <= errata(paper), sorted(named - errata(paper))


def test_every_item_of_the_catalogue_answers_to_a_statement_or_is_ours() -> None:
    """An item is named in the table, or its source says that it is a study of ours."""
    named = {place.removeprefix("item: ") for place in places() if place.startswith("item: ")}
    for paper in catalogue.PAPERS:
        for name, item in catalogue.items(paper).items():
            assert f"{paper} {name}" in named or "our study" in item.source, f"{paper} {name}"


def test_the_page_is_written_from_the_table() -> None:
    page = (DOCS / "papers.md").read_text(encoding="utf-8")
    written = hooks().on_page_markdown(page)
    assert hooks().STATEMENTS in page
    for paper, labels in PRINTED.items():
        told = written.split(f"\n## {paper}\n")[1].split("\n## ")[0]
        assert all(f"\n| {label} | " in told for label in labels), paper


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


def shown(paper: str, item: str) -> list[list[str]]:
    """The rows of an item's own table on the page of its paper."""
    text = (DOCS / "papers" / f"{paper}.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {item}: ")[1].split("\n## ")[0]
    lines = section.split("| --- |")[-1].splitlines()[1:]
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    assert "Reduced" not in section, f"{item}: ship a full run"
    return rows


def test_synthesizers_are_shown_by_a_full_run_and_in_the_papers_order() -> None:
    """Figures 5 to 7: DPweighted is nearer to the data than EMweighted and Countweighted are; a
    run of a twelfth of the records had EMweighted before it.
    """
    for item in ("figure-4", "table-2"):
        assert shown("pseudo-posterior", item)
    for item in ("figure-5", "figure-6"):
        middle = {row[0]: float(row[3]) for row in shown("pseudo-posterior", item)}
        away = {name: abs(value - middle["Data"]) for name, value in middle.items()}
        assert away["Unweighted"] < away["DPweighted"]
        assert 2 * away["DPweighted"] < min(away["EMweighted"], away["Countweighted"])
    assert away["EMweighted"] < away["Countweighted"]  # of the 90th percentile, as in the paper
    rows = shown("pseudo-posterior", "figure-7")
    middle7 = {(row[0], row[1]): float(row[4]) for row in rows}
    settings = {place for place, name in middle7 if name == "EMweighted"}
    assert len(settings) >= 3  # the page shows the first rows
    for place in settings:
        assert middle7["Data", "Data"] < middle7[place, "DPweighted"] < middle7[place, "EMweighted"]


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
