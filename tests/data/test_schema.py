from __future__ import annotations

import gc
import hashlib
import json
import pickle
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from congenial.data import schema as schema_module
from congenial.data.rational import exact, written
from congenial.data.schema import Attribute, Axis, Schema
from congenial.errors import SchemaError

PLAN = {
    "county": {
        "levels": ["A", "B", "C"],
        "within": {"state": ["PA", "PA", "NJ"], "region": ["E", "E", "E"]},
    },
    "sex": {"levels": ["female", "male"], "missing": "unknown", "other": "other"},
    "age": {"edges": [0, 5, 10, 15, 18, 20, 21], "top": "21+", "missing": "refuse"},
    "rate": {"edges": [0, 0.5, "1.25"], "bottom": "negative", "missing": "0-0.5"},
    "hh_size": {"integers": [1, 8], "within": {"big": ["no"] * 4 + ["yes"] * 4}},
}


def test_levels_of_every_kind() -> None:
    schema = Schema.from_dict(PLAN)
    levels = {name: schema.attribute(name).levels for name in schema.names}
    assert levels == {
        "county": ("A", "B", "C"),
        "sex": ("female", "male", "unknown", "other"),
        "age": ("0-4", "5-9", "10-14", "15-17", "18-19", "20", "21+"),
        "rate": ("negative", "0-0.5", "0.5-1.25"),
        "hh_size": tuple("12345678"),
    }
    assert schema.attribute("age").whole
    assert not schema.attribute("rate").whole
    assert schema.attribute("rate").edges == (0, Fraction(1, 2), Fraction(5, 4))
    assert schema.attribute("rate").intervals[0] == (None, 0)
    assert schema.attribute("age").intervals[-1] == (21, None)


def test_closed_bins_and_negative_edges() -> None:
    closed = Attribute("t", "bins", edges=(-10, -5, 0, 5))
    assert closed.levels == ("-10 to -6", "-5 to -1", "0 to 4")


def test_axes_sizes_and_coarser() -> None:
    schema = Schema.from_dict(PLAN)
    state = schema.axis("state")
    assert (state.name, state.base, state.levels) == ("state", "county", ("PA", "NJ"))
    assert state.of_base.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match="read-only"):
        state.of_base[0] = 1
    assert schema.size(["state", "sex", "age"]) == 2 * 4 * 7
    assert schema.size([]) == 1
    assert schema.axis("region").map_from(state).tolist() == [0, 0]
    assert schema.axis("state").map_from(schema.axis("county")).tolist() == [0, 0, 1]
    with pytest.raises(SchemaError, match="cannot be summed"):
        state.map_from(schema.axis("region"))
    with pytest.raises(SchemaError, match="'county' occurs more than once"):
        schema.axes(["county", "state"])
    assert schema.axis("state") == schema.axis("state")
    assert schema.axis("state") != schema.axis("county")
    assert len({schema.axis("state"), schema.axis("state")}) == 1


def test_appended_level_is_its_own_parent() -> None:
    spec = {"c": {"levels": ["A", "B"], "within": {"s": ["X", "X"]}, "missing": "unknown"}}
    axis = Schema.from_dict(spec).axis("s")
    assert axis.levels == ("X", "unknown")
    assert axis.of_base.tolist() == [0, 0, 1]


def test_round_trip_and_digest() -> None:
    schema = Schema.from_dict(PLAN)
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    assert again == schema
    assert again.digest == schema.digest
    assert len(schema.digest) == 64
    swapped = Schema(tuple(reversed(schema.attributes)))
    assert swapped.digest != schema.digest
    renamed = Schema.from_dict({**PLAN, "sex": {"levels": ["f", "m"]}})
    assert renamed.digest != schema.digest


def test_a_schema_is_public_and_travels() -> None:
    schema = Schema.from_dict(PLAN)
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema
    assert again.axis("state") == schema.axis("state")
    assert hash(again) == hash(schema)


def test_digest_is_pinned() -> None:
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    text = '[["sex",{"levels":["f","m"]}]]'
    assert schema.digest == hashlib.sha256(text.encode()).hexdigest()


def test_levels_file_is_inlined(tmp_path: Path) -> None:
    (tmp_path / "counties.csv").write_text(
        "county,state,region\n01001,AL,South\n01003,AL,South\n34001,NJ,East\n", encoding="utf-8"
    )
    schema = Schema.from_dict({"county": {"levels_file": "counties.csv"}}, tmp_path)
    assert schema.attribute("county").levels == ("01001", "01003", "34001")
    assert schema.axis("region").levels == ("South", "East")
    assert "levels_file" not in schema.to_dict()["county"]
    assert Schema.from_dict(schema.to_dict()) == schema


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (None, "cannot be read"),
        ("", "no categories"),
        ("county\n", "no categories"),
        ("county,state\nA\n", "row 2"),
        ("county,state,state\nA,x,y\n", "occurs more than once"),
        ('county\n"A\n', "not a CSV"),
        (b"county\n\xff\xfe\n", "not a CSV"),
        ("county\nA\nB\nA\n", "rows 2 and 4 of 'c.csv' have the same level"),
        ("county,state\nA,x\nB, \n", "row 3 of 'c.csv' has no text in column 2"),
    ],
)
def test_bad_levels_file(tmp_path: Path, content: str | bytes | None, match: str) -> None:
    if content is not None:
        raw = content if isinstance(content, bytes) else content.encode()
        (tmp_path / "c.csv").write_bytes(raw)
    with pytest.raises(SchemaError, match=match):
        Schema.from_dict({"county": {"levels_file": "c.csv"}}, tmp_path)


def test_a_file_of_labels(tmp_path: Path) -> None:
    """The second column is for readers; the population is the one of a file without it."""
    text = "code,name,chapter\nA00,Cholera,A\nA01,Typhoid fever,A\nB50,Malaria,B\n"
    (tmp_path / "icd.csv").write_text(text)
    spec = {"labels_file": "icd.csv", "missing": "none", "labels": {"B": "Chapter B"}}
    schema = Schema.from_dict({"icd": spec}, tmp_path)
    assert schema.attribute("icd").levels == ("A00", "A01", "B50", "none")
    assert schema.shown_levels("icd") == ("Cholera", "Typhoid fever", "Malaria", "none")
    assert schema.shown_levels("chapter") == ("A", "Chapter B", "none")
    assert Schema.from_dict(schema.to_dict()) == schema
    (tmp_path / "plain.csv").write_text("code,chapter\nA00,A\nA01,A\nB50,B\n")
    plain = Schema.from_dict({"icd": {"levels_file": "plain.csv", "missing": "none"}}, tmp_path)
    assert schema.digest == plain.digest


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("code\nSECRET\n", "has one column"),
        ("code,name\nSECRET,a\nb,\n", "row 3 of 'c.csv' has no label"),
        ("code,name\nSECRET,a\nb,SECRET\tx\n", "row 3 .* control characters"),
        ("code,name\na,SECRET\nb,x\nc,SECRET\n", "rows 2 and 4 .* have the same label"),
        ("code,name\nSECRET,x\nb,y\nSECRET,z\n", "rows 2 and 4 .* have the same level"),
        ("code,name\nSECRET,x\n ,y\n", "row 3 of 'c.csv' has no level"),
        ("code,name,p\nSECRET,x,y\nb,z,\n", "row 3 of 'c.csv' has no text in column 3"),
        ("code,name\nSECRET,x\nb\n", "row 3 of 'c.csv' has 1 fields, the header has 2"),
    ],
)
def test_a_file_of_labels_is_never_quoted(tmp_path: Path, content: str, match: str) -> None:
    (tmp_path / "c.csv").write_text(content)
    with pytest.raises(SchemaError, match=match) as caught:
        Schema.from_dict({"icd": {"labels_file": "c.csv"}}, tmp_path)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("plan", "match"),
    [
        ({}, "no attributes"),
        ([], "not a table"),
        ({"a": 3}, "not a table"),
        ({"a": {}}, "none of levels"),
        ({"a": {"levels": ["x"], "edges": [0, 1]}}, "levels and edges"),
        ({"a": {"level": ["x"]}}, "unknown key 'level'. Did you mean 'levels'"),
        ({"a": {"levels": "xy"}}, "not a list"),
        ({"a": {"levels": []}}, "no categories"),
        ({"a": {"levels": ["x", ""]}}, "not a name"),
        ({"a": {"levels": ["x", "y\n"]}}, "not a name"),
        ({"a": {"levels": ["x", "x"]}}, "level 'x' occurs more than once"),
        ({"a": {"levels": ["1", 1]}}, "occurs more than once"),
        ({"a": {"levels": [0.5]}}, "not text"),
        ({"a": {"levels": ["x"], "top": "y"}}, "no 'top'"),
        ({"a": {"edges": [0]}}, "fewer than two edges"),
        ({"a": {"edges": []}}, "fewer than two edges"),
        ({"a": {"edges": [0, 5, 5]}}, "edge 5 comes after 5"),
        ({"a": {"edges": [0, 5, 3]}}, "strictly increasing"),
        ({"a": {"edges": [0, float("nan")]}}, "not a finite number"),
        ({"a": {"edges": [0, float("inf")]}}, "not a finite number"),
        ({"a": {"edges": [0, True]}}, "not a finite number"),
        ({"a": {"edges": [0, "x"]}}, "not a finite number"),
        ({"a": {"edges": [0, "1/0"]}}, "not a finite number"),
        ({"a": {"edges": [0, "1e999999999"]}}, "not a finite number"),
        ({"a": {"edges": [0, "1e-999999"]}}, "not a finite number"),
        ({"a": {"edges": [0, Decimal("NaN")]}}, "not a finite number"),
        ({"a": {"edges": [0, "1/2/3"]}}, "not a finite number"),
        ({"a": {"edges": [0, 2**63]}}, "not a finite number"),
        ({"a": {"edges": [0, None]}}, "not a finite number"),
        ({"a": {"edges": [0, 5], "top": "0-4"}}, "occurs more than once"),
        ({"a": {"integers": [1]}}, "1 entries"),
        ({"a": {"integers": [1, 2.5]}}, "two whole numbers"),
        ({"a": {"integers": [True, 3]}}, "two whole numbers"),
        ({"a": {"integers": [5, 1]}}, "range 5 to 1"),
        ({"a": {"integers": [0, 10**9]}}, "at most"),
        ({"a": {"levels": ["x", "y"], "within": {"b": ["u"]}}}, "1 parents for the 2 categories"),
        ({"a": {"levels": ["x"], "within": ["u"]}}, "within is not a table"),
        ({"a": {"levels": ["x"], "within": {"a": ["u"]}}}, "'a' occurs more than once"),
        ({"a": {"levels": ["x"]}, "A": {"levels": ["x"]}}, "ignoring case"),
        (
            {"a": {"levels": ["x"], "within": {"b": ["u"]}}, "b": {"levels": ["x"]}},
            "'b' occurs more than once",
        ),
        ({"a": {"levels": ["x"], "missing": ""}}, "not a name"),
        ({"a": {"levels_file": 3}}, "not a file name"),
        ({"": {"levels": ["x"]}}, "not a name"),
    ],
)
def test_refusals(plan: object, match: str) -> None:
    with pytest.raises(SchemaError, match=match):
        Schema.from_dict(plan)  # type: ignore[arg-type]


def test_direct_construction_is_validated_too() -> None:
    with pytest.raises(SchemaError, match="unknown kind"):
        Attribute("a", "words")  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="follow from its numbers"):
        Attribute("a", "bins", levels=("x",), edges=(0, 1))
    with pytest.raises(SchemaError, match="does not reach"):
        Axis("s", "c", ("x", "y"), np.array([0, 0, 0]))


def test_unknown_names_offer_a_near_match() -> None:
    schema = Schema.from_dict(PLAN)
    with pytest.raises(SchemaError, match="Did you mean 'county'"):
        schema.attribute("County")
    with pytest.raises(SchemaError, match="Did you mean 'state'"):
        schema.axis("stat")
    with pytest.raises(SchemaError, match="no attribute 'state'"):
        schema.attribute("state")


@given(st.decimals(-1000, 1000, places=4))
@settings(max_examples=60, deadline=None)
def test_exact_numbers_round_trip(value: Decimal) -> None:
    number = exact(value, "x")
    assert number == Fraction(value)
    assert exact(written(number), "x") == number


def test_ratio_round_trip() -> None:
    assert exact(written(Fraction(-2, 7)), "x") == Fraction(-2, 7)


def test_schema_does_not_load_a_database() -> None:
    code = (
        "import sys, congenial.data.schema, congenial.data.predicate, congenial.data.table; "
        "bad = {'duckdb', 'pyarrow', 'scipy', 'numba', 'pandas'} & set(sys.modules); "
        "sys.exit(repr(bad) if bad else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_intervals_of_an_integer_range_are_those_of_bins() -> None:
    ages = Attribute("age", "integers", low=-2, high=3)
    bins = Attribute("age", "bins", edges=tuple(range(-2, 5)))
    assert list(ages.intervals) == list(bins.intervals)
    assert ages.intervals[-1] == bins.intervals[-1] == (3, 4)
    assert ages.intervals[1:3] == bins.intervals[1:3]
    assert ages.levels == bins.levels


def test_work_grows_with_the_number_of_edges_not_its_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whether all edges are whole takes a look at each of them, and so is asked once."""
    asked = []
    whole = Attribute.whole.fget
    monkeypatch.setattr(Attribute, "whole", property(lambda one: asked.append(1) or whole(one)))
    Schema((Attribute("x", "bins", edges=tuple(range(500))),))
    assert len(asked) == 1


@pytest.mark.parametrize("of_base", [[0, 1, 3], [0, 0, 2], [-1, 0, 1, 2], [[0, 1, 2]], []])
def test_an_axis_reaches_each_of_its_levels(of_base: list[int]) -> None:
    with pytest.raises(SchemaError, match="does not reach"):
        Axis("a", "b", ("x", "y", "z"), np.array(of_base, dtype=np.int64))


@pytest.mark.parametrize("label", ["", " ", "a\nb", None, 3])
def test_one_bad_label_among_many_is_named(label: object) -> None:
    levels = (*(f"level {i}" for i in range(300)), label)
    with pytest.raises(SchemaError, match="is not a name"):
        Attribute("x", "categorical", levels=levels)  # type: ignore[arg-type]


def test_whole_is_a_key_that_old_schemas_do_not_have() -> None:
    """Written only where it is set: digests of schemas without it stay what they were."""
    plain = {"age": {"edges": [0, 18, 65], "top": "65+"}}
    known = "65f0aa26bb8cea9bbe1fbf307ef91245c12d0a4908d011db587e3d0a9e01488b"
    assert Schema.from_dict(plain).digest == known
    assert Schema.from_dict({"age": plain["age"] | {"whole": False}}).digest == known
    whole = Schema.from_dict({"age": plain["age"] | {"whole": True}})
    assert whole.digest != known
    assert whole.to_dict() == {"age": plain["age"] | {"whole": True}}
    assert Schema.from_dict(whole.to_dict()) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
    integers = Schema.from_dict({"age": {"integers": [0, 9]}})
    assert integers.to_dict() == {"age": {"integers": [0, 9]}}
    assert pickle.loads(pickle.dumps(integers)) == integers


@pytest.mark.parametrize(
    ("spec", "why"),
    [
        ({"levels": ["a"], "whole": True}, "categorical and has no 'whole'"),
        ({"edges": [0, 0.5], "whole": True}, "edges that are not whole"),
        ({"edges": [0, 5], "whole": 1}, "neither true nor false"),
    ],
)
def test_whole_where_it_means_nothing(spec: dict[str, Any], why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        Schema.from_dict({"a": spec})


def test_a_schema_of_many_levels_is_kept_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plan, ledger and bundle of a nation have one; other words for readers are kept apart."""
    told = {"block": {"levels": list("abc"), "within": {"state": list("PPQ")}}}
    small = Schema.from_dict(told)
    assert Schema.from_dict(small.to_dict()) is not small
    monkeypatch.setattr(schema_module, "MANY", 3)
    one = Schema.from_dict(told)
    assert Schema.from_dict(json.loads(json.dumps(one.to_dict()))) is one
    other = Schema.from_dict({"block": told["block"] | {"label": "Block"}})
    assert other is not one
    assert other == one
    assert Schema.from_dict(other.to_dict()).shown("block") == "Block"
    in_use = len(schema_module._MANY_LEVELS)
    del one, other
    gc.collect()
    assert len(schema_module._MANY_LEVELS) == in_use - 2
