"""What is ours in a bundle, to the letter: a word more, a letter other, in every kind of bundle.

A kind that is registered is tested here: give it a scene in tests/confidentiality/scenes.py.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from markupsafe import escape

from congenial import read
from congenial.kinds import registry
from congenial.kinds.kind import FOLLOWS
from congenial.publication.bundle import sha256
from congenial.publication.verification import SYSTEM
from tests.confidentiality.scenes import SCENES
from tests.fuzz.bundles import make
from tests.publication.forging import (
    ADDED,
    NOT_OURS,
    altered,
    failed,
    parquet_forgeries,
    text_forgeries,
)

PLAIN = "release.json states when the bundle was made and has no unexpected fields"
OTHERS = "release.json lists every file of the bundle and no others"
IN_WORDS = "the promise in words matches the promise in numbers"
WRITTEN = ("release.json", "DIGEST.txt", "report.html", "README.txt", "CITATION.cff")

pytestmark = pytest.mark.usefixtures("short_bootstrap")
every_kind = pytest.mark.parametrize("kind", [scene.kind for scene in SCENES])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, short_bootstrap: None) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("made"))


def test_every_kind_is_here_and_verifies(made: dict[str, Path]) -> None:
    assert {read(one).kind for one in made.values()} == {
        kind.name for kind in registry.every_kind()
    }
    assert {name: failed(bundle) for name, bundle in made.items()} == {name: set() for name in made}


# ---- words ---------------------------------------------------------------------------------------


def places(page: str) -> Iterator[int]:
    """Where something could be put: in every section, in every figure, and at the end."""
    for tag in ("<section[^>]*>", "</section>", "<figure[^>]*>", "</figcaption>", "<table[^>]*>"):
        yield from (found.end() for found in re.finditer(tag, page))
    yield page.index("</body>")


@every_kind
def test_what_is_put_into_a_report(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """Every addition at the end, and one of them, in turn, at each of all other places."""
    page = (made[kind] / "report.html").read_text()
    where = list(places(page))
    tried = [(where[-1], what) for what in ADDED]
    tried += [(at, list(ADDED)[n % len(ADDED)]) for n, at in enumerate(where[:-1])]
    assert len(where) > 4
    for at, what in tried:
        more = page[:at] + ADDED[what] + page[at:]
        found = altered(
            made[kind],
            tmp_path / f"{at}-{what}",
            lambda _, bundle, more=more: (bundle / "report.html").write_text(more),
        )
        assert NOT_OURS in found, (page[at - 60 : at], what)


@every_kind
@pytest.mark.parametrize("name", ["README.txt", "CITATION.cff"])
def test_a_sentence_added_to_a_text(
    made: dict[str, Path], tmp_path: Path, kind: str, name: str
) -> None:
    def change(_: Any, bundle: Path) -> None:
        with (bundle / name).open("a") as file:
            file.write("# In truth epsilon = 0.0001.\n")

    assert altered(made[kind], tmp_path, change) == {f"{name} contains no unexpected text"}


@every_kind
@pytest.mark.parametrize(
    "more",
    [
        " Trust us, epsilon = 0.1.",
        pytest.param(", which is little. Believe it", marks=pytest.mark.audit),
        pytest.param(" and epsilon = 0 of all", marks=pytest.mark.audit),
    ],
)
def test_prose_after_what_was_spent(
    made: dict[str, Path], tmp_path: Path, kind: str, more: str
) -> None:
    def change(index: Any, bundle: Path) -> None:
        old = index["promise"]
        index["promise"] = old.rstrip(".") + more + "."
        for name in ("README.txt", "report.html"):
            text = (bundle / name).read_text().replace(old, index["promise"])
            text = text.replace(escape(old), escape(index["promise"]))
            (bundle / name).write_text(text)

    assert altered(made[kind], tmp_path, change) == {IN_WORDS}


@every_kind
def test_another_source(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """It stands in the report and in CITATION.cff, where a forger would put it too."""

    def change(index: Any, _: Path) -> None:
        index["guarantee"]["citation"] = "epsilon is 0.0001 by a theorem of ours"

    assert FOLLOWS in altered(made[kind], tmp_path, change)


@pytest.mark.parametrize("place", ["name", "assumption"])
def test_lines_that_look_like_a_promise(made: dict[str, Path], tmp_path: Path, place: str) -> None:
    """A name of several lines would begin README.txt with a promise of its own."""
    lines = "people\n======\n\nWhat is promised\nEpsilon is 0.0001."

    def change(index: Any, _: Path) -> None:
        if place == "name":
            index["name"] = lines
        else:
            index["guarantee"]["assumptions"].append(lines)

    assert PLAIN in altered(made["table"], tmp_path, change)


# ---- release.json and what lies beside it --------------------------------------------------------


@every_kind
def test_a_listed_file_more(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    def change(index: Any, bundle: Path) -> None:
        (bundle / "notes.txt").write_text("epsilon is 0.0001")
        index["files"]["notes.txt"] = ""

    assert altered(made[kind], tmp_path, change) == {OTHERS}


@every_kind
@pytest.mark.parametrize(
    "told",
    [
        "2026-1-1T00:00:00+00:00",
        *(
            pytest.param(told, marks=pytest.mark.audit)
            for told in ("yesterday", "2026-13-01T00:00:00+00:00", "2026-01-01", 7, None)
        ),
    ],
)
def test_when_it_was_made(made: dict[str, Path], tmp_path: Path, kind: str, told: Any) -> None:
    found = altered(made[kind], tmp_path, lambda index, _: index.update(created=told))
    assert found == {PLAIN}


@every_kind
def test_where_the_bits_came_from(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    """Until 0.2.0 any words passed."""
    told = "operating system; epsilon is really 0.0001"
    found = altered(made[kind], tmp_path, lambda index, _: index.update(randomness=told))
    assert SYSTEM in found


@every_kind
@pytest.mark.parametrize(
    "told",
    [
        1.0,
        *(
            pytest.param(told, marks=pytest.mark.audit)
            for told in (0.0, -1.0, float("nan"), True, "1e-9", None)
        ),
    ],
)
def test_a_stated_delta_that_is_no_probability(
    made: dict[str, Path], tmp_path: Path, kind: str, told: Any
) -> None:
    """Pure promises do not use it, so that any value passed."""

    def change(index: Any, bundle: Path) -> None:
        index["guarantee"]["stated_delta"] = told

    assert altered(made[kind], tmp_path, change) == {"the bundle can be read"}


@every_kind
def test_a_field_more(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert PLAIN in altered(made[kind], tmp_path, lambda index, _: index.update(note="eps 0"))


@every_kind
def test_links_in_place_of_files(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    for file in made[kind].iterdir():
        copy = tmp_path / f"linked-{file.name}"
        shutil.copytree(made[kind], copy)
        (copy / file.name).rename(tmp_path / file.name)
        (copy / file.name).symlink_to(tmp_path / file.name)
        assert failed(copy), file.name


@every_kind
def test_a_key_twice(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    copy = tmp_path / "twice"
    shutil.copytree(made[kind], copy)
    text = (copy / "release.json").read_text()
    (copy / "release.json").write_text(text.replace("{", '{"promise": "epsilon is 0",', 1))
    (copy / "DIGEST.txt").write_text(sha256((copy / "release.json").read_bytes()) + "\n")
    assert failed(copy) == {"the JSON documents contain no unexpected text"}


@every_kind
def test_whole_numbers_of_release_json_in_other_types(
    made: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    """Each whole number with a point and each truth value as a number, one at a time."""
    index = json.loads((made[kind] / "release.json").read_text())
    told = ("description", "guarantee", "publishable", "bundle")
    text = json.dumps({key: index[key] for key in told})
    forms = [*re.finditer(r"(?<=[ \[])(-?\d+|true|false)(?=[,}\]])", text)]
    assert len(forms) > 2
    for n, number in enumerate(forms):
        form = {"true": "1", "false": "0"}.get(number[0], f"{number[0]}.0")
        other = json.loads(f"{text[: number.start()]}{form}{text[number.end() :]}")
        found = altered(
            made[kind], tmp_path / str(n), lambda told, _, other=other: told.update(other)
        )
        assert found, text[: number.end()][-60:]


# ---- files of values: other types, lying footers, other letters ----------------------------------


def forgeries(bundle: Path) -> Iterator[tuple[str, str, bytes]]:
    """Every file that is no page, in every forged form."""
    for file in sorted(bundle.rglob("*.*")):
        if file.name in WRITTEN:
            continue
        name = str(file.relative_to(bundle))
        content = file.read_bytes()
        if file.suffix == ".parquet":
            found = parquet_forgeries(pq.read_table(file))
        else:
            found = text_forgeries(file.name, content)
        yield from ((name, what, other) for what, other in found if other != content)


def accepted(bundle: Path, place: Path, tried: Any) -> list[str]:
    """The forgeries that `verify` lets pass."""
    passed = []
    for n, (name, what, content) in enumerate(tried):
        found = altered(
            bundle,
            place / str(n),
            lambda _, copy, name=name, content=content: (copy / name).write_bytes(content),
        )
        shutil.rmtree(place / str(n))
        if not found:
            passed.append(f"{name}: {what}")
    return passed


@every_kind
def test_one_forgery_of_each_sort(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    sorts = {(Path(one[0]).suffix, one[1].split()[-1]): one for one in forgeries(made[kind])}
    assert len(sorts) > 5
    assert accepted(made[kind], tmp_path, list(sorts.values())[:: 1 + len(sorts) // 8]) == []


@pytest.mark.audit
@every_kind
def test_every_forgery_of_every_file(made: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert accepted(made[kind], tmp_path, forgeries(made[kind])) == []
