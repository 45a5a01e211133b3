"""Bundles of strangers: forged, damaged or hostile ones are refused in words and do no harm."""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from congenial.cli import app
from congenial.errors import BundleError, CongenialError
from congenial.publication.bundle import DIGEST, INDEX, read, sha256
from congenial.publication.verification import verify
from tests.confidentiality.scenes import SCENES
from tests.fuzz.bundles import ask, forge, make, use
from tests.fuzz.conftest import accepted, cases
from tests.fuzz.hostile import VALUES, mutated_bytes, mutated_json, places
from tests.publication.forging import altered, written

DOCUMENTS = (INDEX, INDEX, "schema.json", "published.json", "persons.json")


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory, short_bootstrap: None) -> dict[str, Path]:
    return make(tmp_path_factory.mktemp("good"))


def attack(good: dict[str, Path], data: Any) -> None:
    """One forged bundle: a document or a file of it changed, its digests made to fit."""
    bundle = good[data.draw(st.sampled_from(sorted(good)))]
    inside = (file for file in bundle.rglob("*") if file.is_file() and file.name != DIGEST)
    files = sorted(file.relative_to(bundle).as_posix() for file in inside)
    if data.draw(st.booleans()):
        name = data.draw(st.sampled_from([name for name in DOCUMENTS if name in files]))
        tree = data.draw(mutated_json(json.loads((bundle / name).read_bytes())))
        content = json.dumps(tree).encode("utf-8", "surrogatepass")
    else:
        name = data.draw(st.sampled_from(files))
        content = data.draw(mutated_bytes((bundle / name).read_bytes()))
    with tempfile.TemporaryDirectory() as place:
        copy = Path(place) / "bundle"
        forge(bundle, copy, {name: content}, refit=data.draw(st.booleans()))
        before = {path.name: path.stat().st_size for path in copy.iterdir()}
        with accepted():
            use(copy)
        assert {path.name: path.stat().st_size for path in copy.iterdir()} == before
        assert os.listdir(place) == ["bundle"]  # noqa: PTH208 - nothing was written beside it


@given(st.data())
@cases(60)
def test_forged_bundles(good: dict[str, Path], data: Any) -> None:
    attack(good, data)


@pytest.mark.audit
@given(st.data())
@cases(12_000)
def test_many_forged_bundles(good: dict[str, Path], data: Any) -> None:
    attack(good, data)


@pytest.mark.audit
@pytest.mark.parametrize("kind", [scene.kind for scene in SCENES])
def test_every_place_of_every_document(
    good: dict[str, Path], tmp_path: Path, attempt: Callable[..., None], kind: str
) -> None:
    """Each node replaced by each hostile value: such a bundle is refused when it is read, or
    answers everything.
    """
    tried = 0
    for name in sorted({*DOCUMENTS}):
        if not (good[kind] / name).is_file():
            continue
        whole = json.loads((good[kind] / name).read_bytes())
        for path in _shown(whole):
            for value in VALUES:
                tree = deepcopy(whole)
                _at(tree, path[:-1])[path[-1]] = value
                content = json.dumps(tree).encode("utf-8", "surrogatepass")
                forge(good[kind], tmp_path / "copy", {name: content})
                with accepted():
                    ask(tmp_path / "copy")
                tried += 1
    assert tried > 1000
    attempt("inputs", cases=tried)


def _shown(tree: Any) -> list[tuple[Any, ...]]:
    """All places but digests, and of each list those at its beginning."""
    found = (path for path in places(tree)[1:] if path[0] != "files")
    return [path for path in found if not any(isinstance(at, int) and at > 3 for at in path)]


# ---- small lies, everything around them made to fit ----------------------------------------------


def lie(path: str, value: Any) -> Callable[[Any, Path], None]:
    """A change of one place of release.json; a function is applied to what is there."""

    def change(index: Any, _: Path) -> None:
        *outer, last = (int(one) if one.isdigit() else one for one in path.split("."))
        held = _at(index, outer)
        assert not isinstance(held, dict) or held.get(last) != value
        held[last] = value(held[last]) if callable(value) else value

    return change


def larger(number: float) -> float:
    return 1.01 * number + 1e-6


def spaced(text: str) -> str:
    return text + " "


FUTURE = "2999-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("kind", "path", "value"),
    [
        *((kind, "created", FUTURE) for kind in ("table", "tables", "records")),
        *((kind, "guarantee.stated_delta", 1e-3) for kind in ("table", "values", "tables")),
        *(("tables", f"description.design.{key}.0", larger) for key in ("alone", "mean_variances")),
        ("tables", "description.design.parameters.0", spaced),
        ("tables", "description.design.promise", spaced),
        ("table", "description.measured.0.parameter.eps_cell", spaced),
        *((kind, "description.whole", False) for kind in ("table", "tables", "parted")),
        *((kind, "description.keep", ["sex"]) for kind in ("table", "parted", "bounded")),
        *((kind, "description.design", {"aim": "keep"}) for kind in ("table", "bounded")),
        *((kind, "description.parts", "county") for kind in ("table", "tables")),
        *((kind, "description.mechanism", []) for kind in ("table", "tables", "parted")),
        *(("tables", f"description.design.objective.factors.{at}", larger) for at in (0, 1)),
        ("records", "description.law.pairs", 4),
        ("statistics", "guarantee.adjacency.spacing.0", larger),
        ("statistics", "guarantee.adjacency.origin.apart", spaced),
        *((kind, "software", "congenial 0.1.0") for kind in ("tables", "statistics", "records")),
    ],
)
def test_small_lies_are_noticed(
    good: dict[str, Path], tmp_path: Path, kind: str, path: str, value: Any
) -> None:
    assert altered(good[kind], tmp_path / "control", lambda *_: None) == set()
    assert altered(good[kind], tmp_path, lie(path, value))


@pytest.mark.parametrize(("key", "value"), [("model.steps", 3), ("correct", False)])
def test_settings_of_a_model_that_no_promise_rests_on_are_taken_over(
    good: dict[str, Path], tmp_path: Path, key: str, value: Any
) -> None:
    """Nothing in a bundle follows from them: docs/known-limits.md says so."""
    told = lie(f"description.law.columns.0.{key}", value)
    assert altered(good["synthetic"], tmp_path, told) == set()


def test_what_only_the_fit_needs_is_in_no_bundle(good: dict[str, Path]) -> None:
    laws = json.loads((good["statistics"] / INDEX).read_bytes())["guarantee"]["adjacency"]["laws"]
    assert [sorted(law) for law in laws] == [["covariance", "label", "mean"]] * len(laws)


# ---- particular attacks --------------------------------------------------------------------------


def forged(
    good: dict[str, Path], tmp_path: Path, change: Callable[[Any], None], kind: str = "table"
) -> Path:
    """A bundle whose release.json was changed."""
    index = json.loads((good[kind] / INDEX).read_bytes())
    change(index)
    copy = tmp_path / "forged"
    forge(good[kind], copy, {INDEX: json.dumps(index).encode()})
    return copy


@pytest.mark.parametrize(
    ("kind", "key", "value"),
    [
        *(("values", "base_measure", None), ("values", "rate", None), ("statistics", "grid", None)),
        *(("quantiles", "weights", None), ("records", "rho", None)),
        *(("statistics", "dither", [[0, 0]]), ("statistics", "family", "uniform")),
        *(("statistics", key, -1) for key in ("grid", "extra")),
        *(("statistics", key, [-1, -1]) for key in ("dither", "scales")),
    ],
)
def test_a_law_that_cannot_be_read_is_refused_when_it_is_read(
    good: dict[str, Path], tmp_path: Path, kind: str, key: str, value: Any
) -> None:
    """And not with a Python error when it is used."""
    change = {key: value}
    copy = forged(good, tmp_path, lambda index: index["description"]["law"].update(change), kind)
    with pytest.raises(BundleError):
        read(copy)


def test_half_a_character_is_no_text(good: dict[str, Path], tmp_path: Path) -> None:
    names = {"statistics": ["\ud800"]}
    copy = forged(
        good, tmp_path, lambda index: index["description"]["law"].update(names), "statistics"
    )
    _refuses(copy)


def test_a_forged_design_is_doubted_without_warnings(
    good: dict[str, Path], tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    def change(index: Any) -> None:
        index["description"]["design"]["parameters"][0] = 1e-300

    _doubts(forged(good, tmp_path, change, "tables"))
    assert not recwarn.list


@pytest.mark.parametrize("steps", [10**6, 10**12])
@pytest.mark.parametrize("kind", ["partial", "synthetic"])
def test_a_model_that_no_one_can_draw_from(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], kind: str, steps: int
) -> None:
    def change(index: Any) -> None:
        models = [one["model"] for one in index["description"]["law"]["columns"]]
        next(model for model in models if "steps" in model)["steps"] = steps

    in_time(_asked_and_doubted, forged(good, tmp_path, change, kind))


def _asked_and_doubted(bundle: Path) -> None:
    with accepted():
        ask(bundle)
    _doubts(bundle)


@pytest.mark.parametrize(
    "name", ["../../outside.txt", "/etc/hostname", "..", ".", "sub/file", "..\\x", "a\x00b"]
)
def test_paths_that_leave_the_bundle(good: dict[str, Path], tmp_path: Path, name: str) -> None:
    (tmp_path / "outside.txt").write_text("private")
    digest = sha256(b"private")
    copy = forged(good, tmp_path, lambda index: index["files"].update({name: digest}))
    _doubts(copy)


@pytest.mark.parametrize("name", ["schema.json", "table.parquet", INDEX, DIGEST, "published.csv"])
@pytest.mark.parametrize("target", ["/dev/zero", "fifo", "loop", "folder"])
def test_links_and_devices(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], name: str, target: str
) -> None:
    copy = tmp_path / "copy"
    forge(good["table"], copy, {})
    (copy / name).unlink()
    if target == "fifo":
        os.mkfifo(copy / name)
    elif target == "folder":
        (copy / name).mkdir()
    else:
        (copy / name).symlink_to(copy / name if target == "loop" else Path(target))
    in_time(_refuses if name in ("schema.json", "table.parquet", INDEX) else _doubts, copy)


def _refuses(bundle: Path) -> None:
    with pytest.raises(CongenialError):
        read(bundle)
    _doubts(bundle)


def _doubts(bundle: Path) -> None:
    try:
        assert not all(check.holds for check in verify(bundle))
    except CongenialError:
        return


def test_values_that_are_no_counts_say_so(good: dict[str, Path], tmp_path: Path) -> None:
    copy = forged(
        good, tmp_path, lambda index: index["description"]["law"].pop("base_measure"), "values"
    )
    release: Any = read(copy)
    for name in ("base", "rate", "loss", "counts"):
        with pytest.raises(BundleError, match="not counts"):
            getattr(release, name)


@pytest.mark.parametrize("kind", ["table", "values"])
def test_a_mechanism_whose_name_is_no_text(
    good: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    def change(index: Any) -> None:
        told = index["description"]
        (told["measured"][0] if kind == "table" else told)["mechanism"] = []

    _refuses(forged(good, tmp_path, change, kind))


@pytest.mark.parametrize("rate", [Fraction(1000), Fraction(10**10), Fraction(1, 10**16)])
@pytest.mark.parametrize("kind", ["table", "tables", "parted", "test"])
def test_noise_that_hides_nothing_or_everything(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], kind: str, rate: Fraction
) -> None:
    """Its variance was worked out with as many digits as the rate is large, or was 0."""

    def change(index: Any) -> None:
        law = index["description"]["measured"][0] if kind != "test" else index["description"]
        (name,) = law["parameter"]
        law["parameter"][name] = str(1 / rate**2 if name == "sigma_squared" else rate)

    in_time(_refuses, forged(good, tmp_path, change, kind))


@pytest.mark.parametrize(
    ("column", "value"),
    [("estimate", float("nan")), ("sd", float("inf")), ("estimate", 1e300), ("sd", None)],
)
def test_an_estimate_that_no_table_has(
    good: dict[str, Path], tmp_path: Path, column: str, value: Any
) -> None:
    """Until 0.2.0 it was read, and its interval failed with a Python error or was made up."""
    table = pq.read_table(good["tables"] / "table-3-sex.parquet")
    values = pa.array([value, *table[column].to_pylist()[1:]], pa.float64())
    changed = table.set_column(table.column_names.index(column), column, values)
    copy = tmp_path / "copy"
    forge(good["tables"], copy, {"table-3-sex.parquet": written(changed)})
    _refuses(copy)


def test_a_file_of_a_terabyte(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None]
) -> None:
    for name in ("table.parquet", "report.html", "schema.json", INDEX, DIGEST):
        copy = tmp_path / name
        forge(good["table"], copy, {})
        os.truncate(copy / name, 2**40)  # sparse: it takes no room on the disk
        in_time(_doubts, copy)


def test_a_small_file_with_a_huge_table(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None]
) -> None:
    """A Parquet file of a few kilobytes that unpacks to gigabytes: in a column nobody needs, in
    the counts, and in the labels.
    """
    table = pq.read_table(good["table"] / "table.parquet")
    heavy = pa.DictionaryArray.from_arrays(
        pa.array([0] * len(table), pa.int32()), pa.array(["x" * 2**24])
    )
    long = pa.table({"count": pa.array([0] * 500_000)})
    for at, bomb in enumerate(
        (
            table.append_column("more", heavy),
            table.set_column(0, table.column_names[0], heavy),
            pa.concat_tables([long] * 4),
        )
    ):
        file = tmp_path / "bomb.parquet"
        pq.write_table(bomb, file, compression="zstd")
        assert file.stat().st_size < 200_000
        copy = tmp_path / f"copy{at}"
        forge(good["table"], copy, {"table.parquet": file.read_bytes()})
        in_time(_doubts, copy)


@pytest.mark.parametrize(
    "schema",
    [
        {f"a{i}": {"integers": [0, 9_999_999]} for i in range(50)},
        {"a": {"integers": [0, 10**12]}},
        {f"a{i}": {"integers": [0, 2000]} for i in range(5)},
        pytest.param({"a": {"integers": [0, 8_999_999]}}, marks=pytest.mark.audit),
    ],
)
def test_a_schema_of_astronomical_size(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], schema: dict[str, Any]
) -> None:
    index = json.loads((good["table"] / INDEX).read_bytes())
    index["description"]["tables"] = [list(schema)]
    index["description"]["measured"][0]["table"] = list(schema)
    copy = tmp_path / "copy"
    changed = {"schema.json": json.dumps(schema).encode(), INDEX: json.dumps(index).encode()}
    forge(good["table"], copy, changed)
    in_time(_refuses, copy)


@pytest.mark.parametrize("text", ["1e999999999", "1e-999999999", "9" * 5000, "1/0", "nan"])
def test_numbers_that_would_take_for_ever(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], text: str
) -> None:
    def change(index: Any) -> None:
        index["description"]["measured"][0]["parameter"] = {"eps_cell": text}
        index["guarantee"]["tradeoff"]["epsilon"] = text

    in_time(_refuses, forged(good, tmp_path, change))


FOR_EVER = "1e999999999"


@pytest.mark.parametrize("key", ["parameters", "promise"])
def test_a_design_that_would_take_for_ever(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], key: str
) -> None:
    """Nothing but `verify` reads it."""

    def change(index: Any) -> None:
        told = index["description"]["design"]
        told[key] = [FOR_EVER] * len(told[key]) if isinstance(told[key], list) else FOR_EVER

    in_time(_doubts, forged(good, tmp_path, change, "tables"))


def test_earlier_counts_of_a_report_that_would_take_for_ever(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None]
) -> None:
    page = (good["values"] / "report.html").read_text()
    other, times = re.subn(r"(?<=alpha&#34;: &#34;)[^&]+", FOR_EVER, page)
    assert times == 1
    copy = tmp_path / "forged"
    forge(good["values"], copy, {"report.html": other.encode()})
    in_time(_doubts, copy)


@pytest.mark.audit
@pytest.mark.parametrize("kind", [scene.kind for scene in SCENES])
def test_every_number_of_every_kind_that_would_take_for_ever(
    good: dict[str, Path], tmp_path: Path, in_time: Callable[..., None], kind: str
) -> None:
    def put(index: Any, path: tuple[Any, ...]) -> None:
        _at(index, path[:-1])[path[-1]] = FOR_EVER

    whole = json.loads((good[kind] / INDEX).read_bytes())
    told = [path for path in places(whole) if re.fullmatch(r"-?[\d./]+", str(_at(whole, path)))]
    assert len(told) > 3
    for path in told:
        in_time(_doubts, forged(good, tmp_path, lambda index, path=path: put(index, path), kind))


def _at(tree: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        tree = tree[step]
    return tree


def test_a_wrong_digest_is_noticed_file_by_file(good: dict[str, Path], tmp_path: Path) -> None:
    for name in sorted(path.name for path in good["table"].iterdir() if path.name != DIGEST):
        copy = tmp_path / name
        content = bytearray((good["table"] / name).read_bytes())
        content[len(content) // 2] ^= 1
        forge(good["table"], copy, {name: bytes(content)}, refit=False)
        try:
            failed = [check.what for check in verify(copy) if not check.holds]
        except BundleError:
            failed = [f"{name} is refused"]
        assert any(name in what for what in failed), name


def test_a_stranger_does_not_drive_the_terminal(good: dict[str, Path], tmp_path: Path) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J"
    copy = forged(good, tmp_path, lambda index: index.update(promise=evil, name=evil))
    for command in ("explain", "verify"):
        result = CliRunner().invoke(app, [command, str(copy)])
        assert result.exit_code in (0, 1, 6)
        assert "\x1b" not in result.output + result.stderr
        assert "Traceback" not in result.output + result.stderr


def spin() -> None:
    while True:
        pass


def test_reading_takes_no_time(good: dict[str, Path]) -> None:
    """The watch itself works: a read that hangs would be noticed."""
    from tests.fuzz import conftest

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conftest, "WAITING", 0.05)
        with pytest.raises(conftest.Hang), accepted():
            time.sleep(5)
        patch.setattr(conftest, "LONGEST", 0.05)
        patch.setattr(conftest, "WAITING", 60.0)
        with pytest.raises(conftest.Hang), accepted():
            spin()
