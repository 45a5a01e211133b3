"""Bundles that are no tables, with claims made better and everything around them made to fit.

Digests are fresh, and the promise is rewritten wherever it is told, as a careful forger would.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from congenial import read, verify
from congenial.mechanisms.distribution import sampling_error
from congenial.mechanisms.record_release import FOLLOWS
from congenial.publication import workflow
from congenial.publication.bundle import as_json, sha256
from congenial.publication.plan import Plan
from congenial.publication.rerender import further_promise_of
from congenial.report import statistics_report
from congenial.report.given_public_report import CAPTIONS
from congenial.report.render import basis_of
from tests.kinds import test_given_public_plan as values_plan
from tests.kinds import test_statistics_plan as statistics_plan
from tests.kinds.test_partial_plan import PARTIAL
from tests.kinds.test_records_from_models_plan import write
from tests.plain_reports import plain_reports

AGREES = "the counts agree with every public figure"
STATED = "README.txt and report.html state that promise"
TOLD = "law and promise are told as they are read"
Change = Callable[[Any, Path], None]


@pytest.fixture(scope="module", autouse=True)
def quick() -> Iterator[None]:
    with plain_reports(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sampling_error, "DRAWS", 19)
        yield


def released(path: Path) -> Path:
    plan = Plan.load(path)
    if plan.statements:
        workflow.publish(plan)
    return workflow.release(plan, plan.release[0].name).folder


def make_values(folder: Path, *changes: tuple[str, str]) -> Path:
    values_plan.write_cases(folder)
    return released(values_plan.plan(folder, *changes))


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, quick: None) -> dict[str, Path]:
    place = tmp_path_factory.mktemp
    assumed = "scenarios = { distance = 1 }"
    congenial = (values_plan.PRIOR, 'base_measure = "congenial"')
    hospital = place("statistics")
    statistics_plan.write_patients(hospital / "patients.csv", 200, 0, seed=1)
    statistics_plan.write_patients(hospital / "modelling.csv", 3000, 100_000, seed=2)
    changes = ('persons = "not protected"', statistics_plan.PERSONS)
    fewer = ("replications = 200", 'replications = 60\nmechanism = "optimum"')
    return {
        "prior": make_values(place("prior")),
        "sums": make_values(place("sums"), congenial),
        "assumed": make_values(place("assumed"), (values_plan.BELIEF, assumed), congenial),
        "synthetic": released(write(place("synthetic"), PARTIAL)),
        "statistics": released(statistics_plan.plan(hospital, changes, fewer)),
    }


def failed(bundle: Path) -> set[str]:
    return {check.what for check in verify(bundle) if not check.holds}


def told(bundle: Path) -> list[str]:
    """The paragraphs that state a promise: the release's own, and the one about persons."""
    release = read(bundle)
    persons = further_promise_of(release)
    return [release.guarantee.explain(), "" if persons is None else persons.explain()]


def forged(bundle: Path, place: Path, change: Change) -> set[str]:
    copy = place / "forged"
    shutil.copytree(bundle, copy)
    before = told(copy)
    index = json.loads((copy / "release.json").read_text())
    change(index, copy)
    (copy / "release.json").write_bytes(as_json(index))
    for old, new in zip(before, told(copy), strict=True):
        index["promise"] = index["promise"].replace(old, new) if old else index["promise"]
        for name in ("README.txt", "report.html"):
            text = (copy / name).read_text()
            text = text.replace(old, new).replace(escape(old), escape(new)) if old else text
            (copy / name).write_text(text)
    index["files"] = {name: sha256((copy / name).read_bytes()) for name in index["files"]}
    (copy / "release.json").write_bytes(as_json(index))
    (copy / "DIGEST.txt").write_text(sha256((copy / "release.json").read_bytes()))
    return failed(copy)


def test_good_bundles_of_every_kind_verify(good: dict[str, Path]) -> None:
    assert {name: failed(bundle) for name, bundle in good.items()} == {name: set() for name in good}


# ---- counts given what is public -----------------------------------------------------------------


def ordinary(index: Any, _: Path) -> None:
    """As if one record changed the table by 1/50."""
    law, record = index["description"]["law"], index["description"]["per_record"]
    law["ordinary"] = "1/50"
    index["guarantee"]["tradeoff"]["epsilon"] = "1/100"
    record["epsilon"] = str(Fraction(record["epsilon"]) / 100)


def distance(index: Any, _: Path) -> None:
    index["description"]["law"]["delta_z"] = {"value": 0.03125, "measure": "l1"}
    index["guarantee"]["tradeoff"]["epsilon"] = "1/64"
    lines = index["guarantee"]["assumptions"]
    index["guarantee"]["assumptions"] = [line for line in lines if "Delta_z" not in line]


def theorem(index: Any, _: Path) -> None:
    index["guarantee"]["basis"] = "theorem"


def silence(index: Any, _: Path) -> None:
    index["guarantee"].update(assumptions=[], not_covered=[])


def level(index: Any, _: Path) -> None:
    level = index["guarantee"]["adjacency"]["level"]
    index["guarantee"]["adjacency"]["level"] = {"query": "database", "database": "query"}[level]


def sampler(index: Any, _: Path) -> None:
    index["description"]["law"]["sampler"] = "not certified: chain"


def sums(index: Any, bundle: Path) -> None:
    """The counts and the sum they were drawn given, but not the one that is published."""
    lines = (bundle / "values.csv").read_text().splitlines()
    label, count = lines[1].split(",")
    lines[1] = f"{label},{int(count) + 10}"
    (bundle / "values.csv").write_text("\n".join(lines) + "\n")
    index["description"]["law"]["base_measure"]["totals"][0]["sum"] += 10


def nobody(index: Any, bundle: Path) -> None:
    """The same, and no promise to persons that would need the sum to be published."""
    sums(index, bundle)
    index["description"].update(persons=False)
    index["description"]["per_record"]["epsilon"] = "0"
    index["description"]["support"]["statements"] = []


@pytest.mark.parametrize("kind", ["prior", "sums", "assumed"])
@pytest.mark.parametrize(
    "change", [ordinary, distance, silence, level, sampler, sums], ids=lambda one: one.__name__
)
def test_claims_about_counts(
    good: dict[str, Path], tmp_path: Path, kind: str, change: Change
) -> None:
    assert FOLLOWS in forged(good[kind], tmp_path, change)


def test_an_assumed_distance_stays_an_estimate(good: dict[str, Path], tmp_path: Path) -> None:
    assert FOLLOWS in forged(good["assumed"], tmp_path, theorem)


def test_counts_have_the_published_sum(good: dict[str, Path], tmp_path: Path) -> None:
    assert AGREES in forged(good["sums"], tmp_path, nobody)


# ---- records, statistics, words ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["synthetic", "statistics"])
def test_what_is_assumed_and_not_covered(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert FOLLOWS in forged(good[kind], tmp_path, silence)


def basis(index: Any, _: Path) -> None:
    said = index["guarantee"]["basis"]
    index["guarantee"]["basis"] = "estimate" if said == "theorem" else "theorem"


@pytest.mark.parametrize("kind", ["prior", "synthetic", "statistics"])
def test_the_footing(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert FOLLOWS in forged(good[kind], tmp_path, basis)


@pytest.mark.parametrize("word", ["the number of records", "sampling error", "same covariance"])
def test_sentences_of_statistics(good: dict[str, Path], tmp_path: Path, word: str) -> None:
    def change(index: Any, _: Path) -> None:
        lines = index["guarantee"]["assumptions"]
        kept = [line for line in lines if word not in line]
        assert len(kept) == len(lines) - 1
        index["guarantee"]["assumptions"] = kept

    assert FOLLOWS in forged(good["statistics"], tmp_path, change)


def test_what_one_record_changes_in_statistics(good: dict[str, Path], tmp_path: Path) -> None:
    """A tenth of it, and a tenth of mu for persons."""

    def change(index: Any, bundle: Path) -> None:
        pairs, record = index["guarantee"]["adjacency"], index["description"]["per_record"]
        pairs["change"] = [one / 10 for one in pairs["change"]]
        release = read(good["statistics"])
        from congenial.mechanisms.distribution.persons import person_promise
        from congenial.privacy.conversions import gdp_to_zcdp

        less = person_promise(release.noise, pairs["change"])
        assert less is not None
        record["rho"] = str(Fraction(gdp_to_zcdp(less.mu)))  # type: ignore[attr-defined]
        persons = json.loads((bundle / "persons.json").read_text())
        persons["tradeoff"] = less.to_dict()
        (bundle / "persons.json").write_text(json.dumps(persons, indent=1) + "\n")
        open_ = index["guarantee"]["not_covered"]
        old = release.person_guarantee.tradeoff.words
        index["guarantee"]["not_covered"] = [line.replace(old, less.words) for line in open_]

    found = forged(good["statistics"], tmp_path, change)
    assert "what persons are promised follows from the noise" in found


@pytest.mark.parametrize("kind", ["prior", "sums", "synthetic", "statistics"])
def test_a_sentence_added_to_a_report(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    def at_the_end(_: Any, bundle: Path) -> None:
        page = (bundle / "report.html").read_text()
        more = "<p>Correction: epsilon = 0.0001 for everybody.</p></body>"
        (bundle / "report.html").write_text(page.replace("</body>", more))

    assert forged(good[kind], tmp_path, at_the_end) == {"report.html says nothing else"}


@pytest.mark.parametrize("name", ["README.txt", "CITATION.cff"])
def test_a_sentence_added_to_a_text(good: dict[str, Path], tmp_path: Path, name: str) -> None:
    def change(_: Any, bundle: Path) -> None:
        with (bundle / name).open("a") as file:
            file.write("# In truth epsilon = 0.0001.\n")

    assert forged(good["sums"], tmp_path, change) == {f"{name} says nothing else"}


@pytest.mark.parametrize("kind", ["prior", "statistics"])
def test_what_a_report_promises_persons(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    persons = told(good[kind])[1]
    assert persons

    def change(_: Any, bundle: Path) -> None:
        page, less = (bundle / "report.html").read_text(), re.sub(r"\d", "0", persons)
        assert page.count(escape(persons)) == 1
        (bundle / "report.html").write_text(page.replace(escape(persons), escape(less)))

    assert forged(good[kind], tmp_path, change) == {STATED}


def test_a_report_of_another_version_is_read_for_its_promise(
    good: dict[str, Path], tmp_path: Path
) -> None:
    def change(index: Any, _: Path) -> None:
        index["software"] = "congenial 0.0.1"

    assert forged(good["sums"], tmp_path, change) == set()
    details = {check.what: check.detail for check in verify(tmp_path / "forged")}
    assert details[STATED] == "written by congenial 0.0.1: compared with its promise only"


def test_words_of_the_law_are_those_of_the_law(good: dict[str, Path], tmp_path: Path) -> None:
    def change(index: Any, _: Path) -> None:
        index["guarantee"]["domain"] = "records of nobody"

    assert forged(good["sums"], tmp_path, change) == {TOLD}


# ---- everything that is ours, to the letter ------------------------------------------------------

NOT_OURS = "report.html says nothing else"
PICTURE = "data:image/svg+xml;base64,PHN2Zy8+"
ADDED = {
    "heading": "<h2>Epsilon is 0.0001</h2>",
    "link": '<a href="https://example.org">correction</a>',
    "form": '<form action="https://example.org"><input name="password"></form>',
    "script": "<script>alert(1)</script>",
    "comment": "<!-- epsilon is 0.0001 -->",
    "style": '<p style="font-size:9em">',
}


def figure(caption: str, more: str = "", address: str = PICTURE) -> str:
    told = str(escape(caption))
    image = f'<img alt="{told}" src="{address}">'
    return f"<figure>{image}{more}<figcaption>{told}</figcaption></figure>"


CAPTION = {"sums": CAPTIONS[0], "prior": CAPTIONS[1], "statistics": statistics_report.CAPTION}
PLACE = {  # what follows the picture in its section
    "sums": ("counts", '<div class="wide">'),
    "prior": ("counts", '<div class="wide">'),
    "statistics": ("laws", "<p>Diagnosis"),
}


def pictured(kind: str, picture: str) -> Change:
    """The picture where the report has one."""

    def change(_: Any, bundle: Path) -> None:
        page, (name, follows) = (bundle / "report.html").read_text(), PLACE[kind]
        before, after = page.split(f'<section id="{name}">')
        after = after.replace(follows, f"{picture}\n{follows}", 1)
        (bundle / "report.html").write_text(f'{before}<section id="{name}">{after}')

    return change


@pytest.mark.parametrize("kind", sorted(CAPTION))
def test_a_picture_of_ours_is_accepted(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    assert forged(good[kind], tmp_path, pictured(kind, figure(CAPTION[kind]))) == set()


@pytest.mark.parametrize("what", sorted(ADDED))
@pytest.mark.parametrize("kind", sorted(CAPTION))
def test_what_is_put_beside_a_picture(
    good: dict[str, Path], tmp_path: Path, kind: str, what: str
) -> None:
    inside = pictured(kind, figure(CAPTION[kind], ADDED[what]))
    assert forged(good[kind], tmp_path, inside) == {NOT_OURS}


@pytest.mark.parametrize("what", sorted(ADDED))
@pytest.mark.parametrize("kind", ["prior", "statistics"])
def test_what_is_put_where_words_may_differ(
    good: dict[str, Path], tmp_path: Path, kind: str, what: str
) -> None:
    assert forged(good[kind], tmp_path, pictured(kind, ADDED[what])) == {NOT_OURS}


@pytest.mark.parametrize(
    "picture",
    [
        figure("Epsilon is 0.0001."),
        figure(CAPTIONS[0]) * 2,
        figure(CAPTIONS[0], address="https://example.org/a.svg"),
        figure(CAPTIONS[0], address="data:text/html;base64,PHN2Zy8+"),
        figure(CAPTIONS[0]).replace("<img", "<img onload=x"),
    ],
)
def test_pictures_that_are_not_ours(good: dict[str, Path], tmp_path: Path, picture: str) -> None:
    assert forged(good["sums"], tmp_path, pictured("sums", picture)) == {NOT_OURS}


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
        ("sums", "<h2>How to use it</h2>", "<h2>How to misuse it</h2>", "use"),
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


def fit_in_other_words(_: Any, bundle: Path) -> None:
    page = (bundle / "report.html").read_text()
    told = str(escape(basis_of(page)["fit"]))
    assert page.count(told) == 2
    (bundle / "report.html").write_text(page.replace(told, "none whatsoever"))


def test_the_error_of_the_fit_is_told_in_our_words(good: dict[str, Path], tmp_path: Path) -> None:
    assert forged(good["statistics"], tmp_path, fit_in_other_words) == {NOT_OURS}


def test_a_listed_file_more(good: dict[str, Path], tmp_path: Path) -> None:
    def change(index: Any, bundle: Path) -> None:
        (bundle / "notes.txt").write_text("epsilon is 0.0001")
        index["files"]["notes.txt"] = ""

    assert forged(good["sums"], tmp_path, change) == {
        "the bundle lists its own files and no others"
    }


@pytest.mark.parametrize(
    "told",
    ["yesterday", "2026-13-01T00:00:00+00:00", "2026-1-1T00:00:00+00:00", "2026-01-01", 7, None],
)
def test_when_it_was_made(good: dict[str, Path], tmp_path: Path, told: Any) -> None:
    found = forged(good["sums"], tmp_path, lambda index, _: index.update(created=told))
    assert found == {PLAIN}


PLAIN = "it says when it was made, and nothing it need not say"


def test_a_field_more(good: dict[str, Path], tmp_path: Path) -> None:
    found = forged(good["sums"], tmp_path, lambda index, _: index.update(note="epsilon is 0.0001"))
    assert found == {PLAIN}


@pytest.mark.parametrize(
    "more",
    [" Trust us, epsilon = 0.1.", ", which is little. Believe it", " and epsilon = 0 of all"],
)
def test_prose_after_what_was_spent(good: dict[str, Path], tmp_path: Path, more: str) -> None:
    def change(index: Any, bundle: Path) -> None:
        old = index["promise"]
        index["promise"] = old.rstrip(".") + more + "."
        for name in ("README.txt", "report.html"):
            text = (bundle / name).read_text()
            text = text.replace(old, index["promise"]).replace(
                escape(old), escape(index["promise"])
            )
            (bundle / name).write_text(text)

    found = forged(good["sums"], tmp_path, change)
    assert found == {"the promise in words is the one in numbers"}


@pytest.mark.parametrize("name", ["release.json", "DIGEST.txt", "values.csv"])
def test_links_in_place_of_files(good: dict[str, Path], tmp_path: Path, name: str) -> None:
    copy = tmp_path / "linked"
    shutil.copytree(good["sums"], copy)
    (copy / name).rename(tmp_path / name)
    (copy / name).symlink_to(tmp_path / name)
    assert failed(copy)


def test_a_key_twice(good: dict[str, Path], tmp_path: Path) -> None:
    copy = tmp_path / "twice"
    shutil.copytree(good["sums"], copy)
    text = (copy / "release.json").read_text()
    (copy / "release.json").write_text(text.replace("{", '{"promise": "epsilon is 0",', 1))
    (copy / "DIGEST.txt").write_text(sha256((copy / "release.json").read_bytes()) + "\n")
    assert failed(copy) == {"its documents are written as read"}
