"""A person with R gets the same numbers: every answer of the R package is compared with Python."""

from __future__ import annotations

import hashlib
import json
import math
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import congenial as cg
from congenial.data.text_files import neutral
from congenial.exports.export_formats import FORMATS
from congenial.exports.exported_tables import exported_bundle
from congenial.mechanisms import calibrate_tables
from congenial.mechanisms.measured_tables import MeasuredTables
from congenial.publication import bundle as bundles
from congenial.publication.bundle_texts import published_rows
from tests.plans import released

RSCRIPT = shutil.which("Rscript")
PACKAGE = Path(__file__).parents[2] / "r"
SEED = 20261117
LEVEL = 0.8
FILED = 0.9
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": ["=A&B", "Größe <1>", "'@x"], "within": {"state": ["X", "X", "Y"]}}
        | {"labels": {"=A&B": "A and B", "'@x": "-x"}},
        "sd": {"edges": [0, 10, 15, 20], "top": "20+"},
    }
)
AXES = ("county", "sd")
COUNTS = np.array([[90, 60, 30, 4], [0, 5, 12, 1], [300, 200, 100, 7]])
TABLE = cg.Table(SCHEMA, AXES, COUNTS)
TEXTS = (
    *("=1+1", "+5", "-5", "-5 to -1", "@x", "'=x", "''=x", "'quoted'", "O'Brien", "", " =x", "\t"),
    *(
        "＝x",
        "－1",
        "\u00a0=x",
        "\u2003+x",
        "-1e5",
        "-.5",
        "-5.",
        "'-5",
        "'-5 to 1",
        "\x1c=x",
        "\nx",
    ),
    *("-５", "\r", "'\n", "\u200b=x", "-5\n"),
)


def _nested(*figures: cg.Invariant) -> cg.Pairs:
    return cg.SemiAdjacent(cg.publish(TABLE, *figures))


def _cases() -> dict[str, Any]:
    """Mechanisms whose law the R package knows: by hand, so that each family is there."""
    free = cg.ReplaceOne(SCHEMA)
    by_county = replace(cg.total(by="county"), because="statute")
    named = {
        "plain_geometric": cg.Guarantee.pure(1, under=free),
        "plain_discrete_gaussian": cg.Guarantee.zero_concentrated("1/8", under=free),
        "plain_laplace": cg.Guarantee.pure("1/2", under=free),
        "plain_gaussian": cg.Guarantee.gaussian("1/2", under=free),
    }
    made = {name: cg.calibrate(name, target, AXES) for name, target in named.items()}
    under = _nested(by_county, cg.total(by="state"), cg.total())
    made["congenial"] = cg.calibrate("congenial", cg.Guarantee.pure(1, under=under), AXES)
    rho = cg.Guarantee.zero_concentrated("1/8", under=_nested(cg.total(by="state")))
    made["congenial_gaussian"] = cg.calibrate("congenial_gaussian", rho, AXES)
    return made


def _refused() -> dict[str, Any]:
    crossing = _nested(cg.total(by="county"), cg.total(by="sd"))
    return {"crossing": cg.calibrate("auto", cg.Guarantee.pure(1, under=crossing), AXES)}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A bundle for each mechanism, and one of several tables."""
    folder = tmp_path_factory.mktemp("bundles")
    drawn = {
        name: cg.release_table(mechanism, TABLE, cg.SeededRandomness(SEED), name=name)
        for name, mechanism in (_cases() | _refused()).items()
    }
    as_drawn = MeasuredTables.of_one(_cases()["congenial"], whole=False)
    drawn["as_drawn"] = as_drawn.release(TABLE, cg.SeededRandomness(SEED), name="as drawn")
    named = cg.Schema.from_dict({"count": {"levels": ["few", "many"]}})
    alone = cg.calibrate("auto", cg.Guarantee.pure(1, under=cg.ReplaceOne(named)))
    drawn["axis"] = MeasuredTables.of_one(alone, whole=False).release(
        cg.Table(named, ("count",), [30, 4]), cg.SeededRandomness(SEED), name="axis"
    )
    rho = cg.Guarantee.zero_concentrated("1/2", under=_nested(cg.total(by="county")))
    joint = calibrate_tables(rho, [["county", "sd"], ["state"], ["sd"]])
    drawn["tables"] = joint.release(TABLE, cg.SeededRandomness(SEED), name="tables")
    for name, release in drawn.items():
        bundles.write(release, folder / name, "the promise", "the report").publish()
    (folder / "given").mkdir()
    released(folder / "given", "given-public")
    return {name: folder / name for name in drawn} | {"values": folder / "given/bundles/naive"}


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package installed."""
    if RSCRIPT is None:
        pytest.skip("there is no Rscript on this machine (Debian: r-base-core, r-cran-jsonlite)")
    found = subprocess.run([RSCRIPT, "-e", "library(jsonlite)"], capture_output=True, check=False)
    if found.returncode:
        pytest.skip("R has no package jsonlite (Debian: r-cran-jsonlite)")
    folder = tmp_path_factory.mktemp("r")
    shutil.copytree(PACKAGE, folder / "source")
    install = ["CMD", "INSTALL", "--no-test-load", "-l", str(folder), str(folder / "source")]
    subprocess.run([Path(RSCRIPT).with_name("R"), *install], capture_output=True, check=True)
    return folder


def run_r(folder: Path, *words: object) -> None:
    """Run Rscript in a folder; it must succeed."""
    command = [str(RSCRIPT), *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(scope="module")
def answers(written: dict[str, Path], library: Path) -> dict[str, Any]:
    """Everything that R is asked, in one run of it."""
    asked, told = library / "asked.json", library / "answers.json"
    asked.write_text(json.dumps(_questions(written, library)))
    run_r(library, Path(__file__).with_name("answers.R"), library, asked, told)
    found: dict[str, Any] = json.loads(told.read_text())
    return found


def _questions(written: dict[str, Path], folder: Path) -> dict[str, Any]:
    flat = COUNTS.reshape(-1).tolist()
    other = [flat[0] + 2, flat[1] - 2, *flat[2:]]  # the same sums by county
    asked = {
        name: {"folder": str(path), "level": LEVEL, "counts": [flat, other]}
        | {"digest": (path / "DIGEST.txt").read_text()}
        for name, path in written.items()
    }
    records = [[1, 1], [3, 4], [3, 4], [2, 3]]
    dapper = [
        {"folder": str(written["plain_geometric"]), "records": records, "since_1_1": new}
        for new in (True, False)
    ]
    package = folder / "package"
    package.mkdir()
    for name, content in FORMATS["datapackage"].files(_exported(written["crossing"])).items():
        (package / name).write_bytes(content)
    return {
        "bundles": asked,
        "dapper": dapper,
        "packages": [str(package)],
        "verify": _damaged(written["congenial"], folder)
        | {"nothing": str(folder), "later": str(folder / "later")},
        "texts": [neutral(text) for text in TEXTS],
        "hashed": [0, 1, 55, 56, 63, 64, 65, 1000],
    }


def _exported(folder: Path) -> Any:
    return exported_bundle(cg.read(folder), bundles.read_index(folder), "digest", LEVEL)


def _damaged(sound: Path, folder: Path) -> dict[str, str]:
    """Copies with one thing wrong in each."""
    copies = {what: folder / what for what in ("sound", "changed", "added", "lost", "rewritten")}
    for copy in copies.values():
        shutil.copytree(sound, copy)
    table = copies["changed"] / "table.csv"
    table.write_text(table.read_text() + " ")
    (copies["added"] / "more.csv").write_text("1")
    (copies["lost"] / "schema.json").unlink()
    index = copies["rewritten"] / "release.json"
    index.write_text(index.read_text().replace("the promise", "another promise"))
    later = shutil.copytree(sound, folder / "later") / "release.json"
    later.write_text(later.read_text().replace('"bundle": 1', '"bundle": 2'))
    return {what: str(copy) for what, copy in copies.items()}


def column(table: dict[str, Any], name: str) -> list[Any]:
    found: list[Any] = table["columns"][table["names"].index(name)]
    return found


KNOWN = (*_cases(), "as_drawn")
ROUNDED = 0.005  # CSV files have three significant digits of a standard deviation


@pytest.mark.parametrize("name", KNOWN)
def test_estimates_and_intervals_of_cells(name: str, written: Any, answers: Any) -> None:
    told = answers["bundles"][name]["table"]
    expected = cg.read(written[name]).intervals(list(AXES), LEVEL).to_pydict()
    assert column(told, "county") == expected["county"]
    assert column(told, "sd (label)") == expected["sd"]
    assert told["names"][:3] == ["county", "county label", "sd (label)"]
    for part, name in (("estimate", "estimate"), ("low", "low_80"), ("high", "high_80")):
        assert column(told, name) == pytest.approx(expected[part], rel=1e-12), part


@pytest.mark.parametrize("name", [*KNOWN, "crossing"])
def test_tables_with_intervals_as_their_files_have_them(
    name: str, written: Any, answers: Any
) -> None:
    """Under any figures, crossing ones too, at the level of the files."""
    told = answers["bundles"][name]["filed"]
    release = cg.read(written[name])
    expected = release.intervals(list(AXES), FILED).to_pydict()
    assert column(told, "sd (label)") == expected["sd"]
    for part, name in (("estimate", "estimate"), ("low", "low_90"), ("high", "high_90")):
        assert column(told, name) == pytest.approx(expected[part], rel=1e-12), part
    assert column(told, "sd") == pytest.approx(
        release.deviations[0].reshape(-1).tolist(), rel=ROUNDED
    )


@pytest.mark.parametrize("name", KNOWN)
def test_standard_deviations(name: str, written: Any, answers: Any) -> None:
    (table,) = _exported(written[name]).tables
    expected = next(one.values for one in table.columns if one.name == "sd")
    assert column(answers["bundles"][name]["table"], "sd") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", KNOWN)
def test_log_densities_with_their_normaliser(name: str, written: Any, answers: Any) -> None:
    release = cg.read(written[name])
    other = COUNTS.copy()
    other[0, :2] += (2, -2)
    expected = [
        float(release.only.mechanism.log_density(release.drawn[0], cg.Table(SCHEMA, AXES, counts)))
        for counts in (COUNTS, other)
    ]
    assert answers["bundles"][name]["density"] == pytest.approx(expected, rel=1e-9)


ASKED = (
    "count(county != '=A&B' and sd != '20+')",
    "share(sd = '0-9' | county = '''@x')",
    "share(sd = '0-9' | county = 'Größe <1>')",
    "count(county = '''@x')",
    "median(sd | county = '''@x')",
)


@pytest.mark.parametrize("name", KNOWN)
def test_sums_shares_and_medians_by_simulation(name: str, written: Any, answers: Any) -> None:
    """As Python has them, up to the error of 10,000 simulated tables; a median by whole bins."""
    asked = answers["bundles"][name]["sums"]
    told = [dict(zip(one["names"], one["columns"], strict=True)) for one in asked]
    for mine, own in zip(told, cg.estimate(cg.read(written[name]), list(ASKED)), strict=True):
        low, high = mine["low_90"][0], mine["high_90"][0]
        if mine["value"][0] is None or mine["value"][0] == "NA":
            assert (low, high) == (0, 1)
            continue
        assert mine["value"][0] == pytest.approx(own.value, rel=1e-9)
        if own.of.startswith("median"):
            assert low <= own.low + 1e-9
            assert own.high <= high + 1e-9
            continue
        slack = 0.06 * (own.high - own.low) + (1 if own.of.startswith("count") else 0.005)
        assert (low, high) == pytest.approx((own.low, own.high), abs=slack), own.of


def test_several_tables(written: Any, answers: Any) -> None:
    told = answers["bundles"]["tables"]
    tables = _exported(written["tables"]).tables
    columns = {one.name: one.values for one in tables[0].columns}
    for part in ("low_80", "high_80"):
        assert column(told["table"], part) == list(columns[part]), part
    assert column(told["table"], "sd") == pytest.approx(list(columns["sd"]), rel=ROUNDED)
    pairs = zip(column(told["table"], "estimate"), columns["estimate"], strict=True)
    off = [abs(one - other) for one, other in pairs]
    assert all(a <= ROUNDED * sd for a, sd in zip(off, columns["sd"], strict=True))
    assert answers["bundles"]["tables"]["named"] == [True]
    assert told["files"] == ["table-1-county-sd.csv", "table-2-state.csv", "table-3-sd.csv"]
    assert "error" in answers["bundles"]["values"]["table"]


def test_an_axis_called_like_a_column_of_numbers(answers: Any, written: Any) -> None:
    """Without whole counts nothing else is called `count`, so the axis keeps its name."""
    told = answers["bundles"]["axis"]["table"]
    expected = cg.read(written["axis"]).intervals(["count"], LEVEL).to_pydict()
    assert told["names"] == ["count", "estimate", "sd", "low_80", "high_80", "reliability"]
    assert column(told, "count") == expected["count"] == ["few", "many"]
    for part, name in (("estimate", "estimate"), ("low", "low_80"), ("high", "high_80")):
        assert column(told, name) == expected[part], part


def test_what_has_no_law_in_r_is_refused_with_a_way_out(written: Any, answers: Any) -> None:
    for part in ("table", "density"):
        (why,) = answers["bundles"]["crossing"][part]["error"]
        assert "cross" in why
        assert "congenial export BUNDLE --to datapackage" in why
    ((package,),) = [list(one.values())[:1] for one in answers["packages"]]
    (table,) = _exported(written["crossing"]).tables
    for one in table.columns:
        told = column(package, one.name)
        assert told == (
            list(one.values) if one.meaning != "number" else pytest.approx(list(one.values))
        )


def test_digests(answers: Any) -> None:
    assert all(one["verified"] == [True] for one in answers["bundles"].values())
    assert "no bundle" in answers["verified"]["nothing"]["error"][0]
    assert "format that this package reads" in answers["verified"]["later"]["error"][0]
    failed = {
        what: [row["what"] for row in rows if not row["holds"]]
        for what, rows in answers["verified"].items()
        if what not in ("nothing", "later")
    }
    assert failed == {
        "sound": [],
        "changed": ["table.csv is as released"],
        "added": ["nothing was added"],
        "lost": ["schema.json is as released"],
        "rewritten": ["release.json matches DIGEST.txt"],
    }


def test_sha256_without_any_program(answers: Any) -> None:
    sizes = (0, 1, 55, 56, 63, 64, 65, 1000)
    contents = [bytes(i % 251 for i in range(1, size + 1)) for size in sizes]
    assert answers["digests"] == [hashlib.sha256(content).hexdigest() for content in contents]


def test_texts_of_csv_cells(answers: Any) -> None:
    assert answers["texts"] == list(TEXTS)


def test_published_figures_and_values_given_public_information(written: Any, answers: Any) -> None:
    told = answers["bundles"]["congenial"]["figures"]
    release = cg.read(written["congenial"])
    rows = published_rows(release.published)
    assert list(zip(*told["columns"], strict=True)) == [row[:4] for row in rows]
    values = cg.read(written["values"])
    assert column(answers["bundles"]["values"]["raw"], "count") == list(values.values)


def test_pieces_for_dapper(written: Any, answers: Any) -> None:
    new, old = answers["dapper"]
    assert new["names"][:4] == ["posterior_f", "latent_f", "mechanism_f", "statistic_f"]
    assert old["names"][:4] == ["post_f", "latent_f", "priv_f", "st_f"]
    counts = np.zeros(COUNTS.shape, dtype=int)
    np.add.at(counts, tuple(np.array([[0, 0], [2, 3], [2, 3], [1, 2]]).T), 1)
    release = cg.read(written["plain_geometric"])
    expected = release.only.mechanism.log_density(release.drawn[0], cg.Table(SCHEMA, AXES, counts))
    for told in (new, old):
        assert told["counts"] == counts.reshape(-1).tolist()
        assert told["density"] == pytest.approx([float(expected)], rel=1e-12)
        assert told["levels"]["county"] == list(SCHEMA.axis("county").levels)


def test_densities_of_one_cell(answers: Any) -> None:
    told = answers["densities"]
    x = np.arange(-3, 10)
    assert told["double_geometric"] == pytest.approx(stats.dlaplace(0.3).logpmf(x))
    weights = np.exp(-(np.arange(-200, 201) ** 2) / 5)
    assert told["discrete_gaussian"] == pytest.approx(-(x**2) / 5 - math.log(weights.sum()))
    real = stats.laplace(scale=1 / 0.3).logpdf([-1.5, 0, 7.25])
    assert told["laplace"] == pytest.approx(real)
    assert told["off"] == [0]


CHUNK = re.compile(r"^```(?:\{r\}|r)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MODEL_IS_USABLE = """
theta <- posterior_f(latent_f(rep(1 / cells, cells)), NULL)
records <- latent_f(theta)
counted <- function(i) pieces$model$statistic_f(records[i, ], pieces$sdp, i)
counts <- Reduce(`+`, lapply(seq_len(nrow(records)), counted))
stopifnot(length(theta) == cells, is.finite(pieces$model$mechanism_f(pieces$sdp, counts)))
"""


def test_the_vignette_and_the_page_run(library: Path, tmp_path: Path) -> None:
    schema = cg.Schema.from_dict(
        {"county": {"levels": ["A", "B", "C"]}, "age": {"edges": [0, 40], "top": "40+"}}
    )
    table = cg.Table(schema, ("county", "age"), COUNTS[:, :2])
    made = cg.calibrate("auto", cg.Guarantee.pure(1, under=cg.ReplaceOne(schema)))
    drawn = cg.release_table(made, table, cg.SeededRandomness(SEED), name="people")
    bundles.write(drawn, tmp_path / "bundles/people", "the promise", "the report").publish()
    (tmp_path / "package").mkdir()
    files = FORMATS["datapackage"].files(_exported(tmp_path / "bundles/people"))
    for name, content in files.items():
        (tmp_path / "package" / name).write_bytes(content)
    pages = PACKAGE / "vignettes/congenial.Rmd", PACKAGE.parent / "docs/how-to/use-r.md"
    vignette, page = ("\n".join(CHUNK.findall(one.read_text())) for one in pages)
    script = tmp_path / "chunks.R"
    script.write_text(f".libPaths('{library}')\n{page}\n{vignette}\n{MODEL_IS_USABLE}")
    assert script.read_text().count("library(congenial)") == 2
    run_r(tmp_path, script)


def test_the_package_declares_every_function_with_a_page() -> None:
    exported = set(
        re.findall(r"^export\((.*)\)$", (PACKAGE / "NAMESPACE").read_text(), re.MULTILINE)
    )
    pages = "".join(path.read_text() for path in (PACKAGE / "man").glob("*.Rd"))
    assert exported <= set(re.findall(r"\\alias\{(.*?)\}", pages))
    sources = "".join(path.read_text() for path in (PACKAGE / "R").glob("*.R"))
    assert all(f"\n{name} <- function(" in sources for name in exported)
