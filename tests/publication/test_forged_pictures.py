"""Pictures and words in sections of a report that tell what no bundle holds."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from congenial import Budget, Ledger, read, verify
from congenial.kinds import statistics as statistics_kind
from congenial.kinds.given_public_document import CAPTIONS
from congenial.report.render import basis_of
from tests.kinds.test_given_public_plan import COUNTIES
from tests.publication.forging import NOT_OURS, Change, forged

pytestmark = pytest.mark.usefixtures("short_bootstrap")

PICTURE = "data:image/svg+xml;base64,PHN2Zy8+"
FIGURE = re.compile(r"<figure>.*?</figure>\n", re.DOTALL)
IMAGE = re.compile(r'(?<=src=")data:image/svg[^"]+')
CAPTION = {"sums": CAPTIONS[0], "prior": CAPTIONS[1], "statistics": statistics_kind.CAPTION}


def figure(caption: str, address: str = PICTURE) -> str:
    told = str(escape(caption))
    image = f'<img alt="{told}" src="{address}">'
    return f"<figure>{image}<figcaption>{told}</figcaption></figure>\n"


def replaced(pattern: re.Pattern[str], other: Callable[[str], str]) -> Change:
    """The one place of the report that a pattern finds, changed."""

    def change(_: Any, bundle: Path) -> None:
        page = (bundle / "report.html").read_text()
        page, times = pattern.subn(lambda found: other(found[0]), page)
        assert times == 1
        (bundle / "report.html").write_text(page)

    return change


@pytest.mark.parametrize(("kind", "circles", "diamonds"), [("prior", 4, 4), ("sums", 4, 0)])
def test_counts_are_drawn_and_earlier_ones(
    good: dict[str, Path], kind: str, circles: int, diamonds: int
) -> None:
    """Three counties, and a mark in the legend."""
    (address,) = IMAGE.findall((good[kind] / "report.html").read_text())
    svg = b64decode(address.partition(",")[2]).decode()
    assert (svg.count("<circle"), svg.count('fill="white"')) == (circles, diamonds)
    assert all(county in svg for county in COUNTIES)


@pytest.mark.parametrize("kind", sorted(CAPTION))
def test_a_picture_replaced_by_words(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    words = b'<svg xmlns="http://www.w3.org/2000/svg"><text y="20">Epsilon is 0.</text></svg>'
    address = f"data:image/svg+xml;base64,{b64encode(words).decode()}"
    assert forged(good[kind], tmp_path, replaced(IMAGE, lambda _: address)) == {NOT_OURS}


@pytest.mark.parametrize("kind", sorted(CAPTION))
def test_a_number_changed_inside_a_picture(
    good: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    def change(address: str) -> str:
        start, _, content = address.partition(",")
        svg, times = re.subn(rb"(?<=>)\d+(?=</text>)", b"7000", b64decode(content), count=1)
        assert times == 1
        return f"{start},{b64encode(svg).decode()}"

    assert forged(good[kind], tmp_path, replaced(IMAGE, change)) == {NOT_OURS}


@pytest.mark.parametrize("kind", sorted(CAPTION))
def test_a_picture_left_out(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert forged(good[kind], tmp_path, replaced(FIGURE, lambda _: "")) == {NOT_OURS}


@pytest.mark.parametrize(
    "picture",
    [
        figure("Epsilon is 0.0001."),
        figure(CAPTIONS[0]),
        figure(CAPTIONS[0], address="https://example.org/a.svg"),
        figure(CAPTIONS[0], address="data:text/html;base64,PHN2Zy8+"),
        figure(CAPTIONS[0]).replace("<img", "<img onload=x"),
    ],
)
def test_pictures_that_are_not_ours(good: dict[str, Path], tmp_path: Path, picture: str) -> None:
    assert forged(good["sums"], tmp_path, replaced(FIGURE, lambda _: picture)) == {NOT_OURS}
    twice = replaced(FIGURE, lambda own: own + picture)
    assert forged(good["sums"], tmp_path / "twice", twice) == {NOT_OURS}


def in_report(old: str, new: str, times: int = 1) -> Change:
    """Other words in the report."""

    def change(_: Any, bundle: Path) -> None:
        page = (bundle / "report.html").read_text()
        assert page.count(old) == times
        (bundle / "report.html").write_text(page.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("kind", "old", "new", "section"),
    [
        ("prior", "Released counts are draws, not the truth.", "Counts are exact.", "counts"),
        ("prior", '<th scope="row">Loss</th>', '<th scope="row">Gain</th>', "law"),
        ("statistics", "from public parameters alone", "from the data alone", "tried"),
        ("statistics", "Diagnosis of the fit: ", "Proof of the fit: ", "laws"),
        ("synthetic", "a record weighs less", "a record weighs nothing", "models"),
        ("sums", "<h2>How to use them</h2>", "<h2>How to misuse them</h2>", "use"),
        ("sums", "Written by congenial", "Certified by congenial", "what surrounds the sections"),
    ],
)
def test_words_are_ours_wherever_they_stand(
    good: dict[str, Path], tmp_path: Path, kind: str, old: str, new: str, section: str
) -> None:
    """Also in sections that tell what no bundle holds; `verify` says which section it is."""
    assert forged(good[kind], tmp_path, in_report(old, new)) == {NOT_OURS}
    (detail,) = (one.detail for one in verify(tmp_path / "forged") if one.what == NOT_OURS)
    assert detail == f"it differs in: {section}"


@pytest.mark.parametrize(
    "basis",
    ["[]", "{", "{}", "7", '{"file": "x.csv", "counts": [1], "alpha": "1", "kappa": "1"}'],
)
@pytest.mark.parametrize("kind", ["prior", "statistics"])
def test_a_basis_that_makes_no_sense(
    good: dict[str, Path], tmp_path: Path, kind: str, basis: str
) -> None:
    told = basis_of((good[kind] / "report.html").read_text())
    old = str(escape(json.dumps(told, ensure_ascii=False)))
    found = forged(good[kind], tmp_path, in_report(old, str(escape(basis))))
    assert found == {NOT_OURS}


def test_what_no_bundle_holds_is_told_in_the_head_and_in_the_text(
    good: dict[str, Path], tmp_path: Path
) -> None:
    old = str(escape(basis_of((good["statistics"] / "report.html").read_text())["diagnosis"]))
    everywhere = in_report(old, "normal", 2)
    assert forged(good["statistics"], tmp_path / "a", everywhere) == set()
    only = in_report(f"Diagnosis of the fit: {old}", "Diagnosis of the fit: normal")
    assert forged(good["statistics"], tmp_path / "b", only) == {NOT_OURS}


@pytest.mark.parametrize("kind", ["prior", "statistics"])
def test_what_only_the_page_holds_is_there_when_a_ledger_records_a_copy(
    good: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    release = read(good[kind])
    ledger = Ledger.open(
        tmp_path / "ledger.sqlite", release.schema, budget=Budget(epsilon=99, delta=1e-3)
    )
    if release.published.statements:
        ledger.publish(release.published)
    release.save(tmp_path / "copy", ledger)
    pages = [(folder / "report.html").read_text() for folder in (good[kind], tmp_path / "copy")]
    assert basis_of(pages[0]) == basis_of(pages[1]) is not None
    assert {one.what for one in verify(tmp_path / "copy") if not one.holds} == set()


def fit_in_other_words(_: Any, bundle: Path) -> None:
    page = (bundle / "report.html").read_text()
    told = str(escape(basis_of(page)["fit"]))
    assert page.count(told) == 2
    (bundle / "report.html").write_text(page.replace(told, "none whatsoever"))


def test_the_error_of_the_fit_is_told_in_our_words(good: dict[str, Path], tmp_path: Path) -> None:
    assert forged(good["statistics"], tmp_path, fit_in_other_words) == {NOT_OURS}
