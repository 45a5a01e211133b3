"""Bundles that are no tables, with claims made better and everything around them made to fit."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from congenial import read, verify
from congenial._version import __version__
from congenial.kinds.kind import FOLLOWS
from congenial.publication.verification import OURS
from tests.publication.forging import Change, failed, forged, told

AGREES = "the counts agree with every public figure"
STATED = "README.txt and report.html state that promise"
TOLD = "the stated noise and promise match the data files"


pytestmark = pytest.mark.usefixtures("short_bootstrap")


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
    assert "the promise to single persons follows from the noise" in found


@pytest.mark.parametrize("kind", ["prior", "statistics"])
def test_what_a_report_promises_persons(good: dict[str, Path], tmp_path: Path, kind: str) -> None:
    persons = told(good[kind])[1]
    assert persons

    def change(_: Any, bundle: Path) -> None:
        page, less = (bundle / "report.html").read_text(), re.sub(r"\d", "0", persons)
        assert page.count(escape(persons)) == 1
        (bundle / "report.html").write_text(page.replace(escape(persons), escape(less)))

    assert forged(good[kind], tmp_path, change) == {STATED}


@pytest.mark.parametrize("software", ["congenial 0.0.1", "congenial 0.1.0", "other 9", None])
@pytest.mark.parametrize("kind", ["sums", "statistics"])
def test_a_bundle_that_claims_another_version_fails(
    good: dict[str, Path], tmp_path: Path, kind: str, software: str | None
) -> None:
    def change(index: Any, bundle: Path) -> None:
        index["software"] = software
        page = (bundle / "report.html").read_text()
        (bundle / "report.html").write_text(page.replace("</body>", "<p>Safe.</p></body>"))

    assert forged(good[kind], tmp_path, change) == {OURS}
    (failed,) = [check for check in verify(tmp_path / "forged") if not check.holds]
    assert failed.detail == (
        f"it says '{software}', and this is congenial {__version__}: "
        "verify it with the version that wrote it"
    )


def test_words_of_the_law_are_those_of_the_law(good: dict[str, Path], tmp_path: Path) -> None:
    def change(index: Any, _: Path) -> None:
        index["guarantee"]["domain"] = "records of nobody"

    assert TOLD in forged(good["sums"], tmp_path, change)
