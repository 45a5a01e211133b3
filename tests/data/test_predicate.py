from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from congenial.data.predicate import MAX_COMPARISONS, MAX_DEPTH, MAX_LENGTH, parse
from congenial.data.schema import Schema
from congenial.errors import PredicateError

SCHEMA = Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "O'Neil"], "within": {"state": ["PA", "PA", "NJ"]}},
        "sex": {"levels": ["female", "male"]},
        "age": {"edges": [0, 5, 10, 18, 21], "top": "21+", "missing": "unknown"},
        "rate": {"edges": [0, 0.5, 2], "bottom": "low"},
        "size": {"integers": [1, 4], "other": "more"},
        "odd name": {"levels": ["1", "and"]},
    }
)
AGES = ("0-4", "5-9", "10-17", "18-20", "21+", "unknown")


def ages(text: str) -> list[str]:
    predicate = parse(text, SCHEMA)
    assert predicate.bases == ("age",)
    return [label for label, holds in zip(AGES, predicate.mask(), strict=True) if holds]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("age >= 18", ["18-20", "21+"]),
        ("AGE".lower() + " > 17", ["18-20", "21+"]),
        ("age < 10", ["0-4", "5-9"]),
        ("age <= 9", ["0-4", "5-9"]),
        ("age between 5 and 9", ["5-9"]),
        ("age Not Between 5 AND 9", ["0-4", "10-17", "18-20", "21+", "unknown"]),
        ("age >= 21", ["21+"]),
        ("age < 0", []),
        ("age >= -3", ["0-4", "5-9", "10-17", "18-20", "21+"]),
        ("not age >= 18", ["0-4", "5-9", "10-17", "unknown"]),
        ("not not age >= 18", ["18-20", "21+"]),
        ("age = 'unknown'", ["unknown"]),
        ("age <> 'unknown'", ["0-4", "5-9", "10-17", "18-20", "21+"]),
        ("age in ('0-4', '21+')", ["0-4", "21+"]),
        ("age not in ('0-4', '21+')", ["5-9", "10-17", "18-20", "unknown"]),
        ("\"age\" = '0-4' or (age >= 21)", ["0-4", "21+"]),
    ],
)
def test_one_attribute(text: str, expected: list[str]) -> None:
    assert ages(text) == expected


def test_integers_and_other_edges() -> None:
    assert parse("size = 2", SCHEMA).mask().tolist() == [False, True, False, False, False]
    assert parse("size != 2", SCHEMA).mask().tolist() == [True, False, True, True, False]
    assert parse("size in (1, 4, 'more')", SCHEMA).mask().tolist() == [
        True,
        False,
        False,
        True,
        True,
    ]
    assert parse("size > 9", SCHEMA).mask().tolist() == [False] * 5
    assert parse("rate < 0.5", SCHEMA).mask().tolist() == [True, True, False]
    assert parse("rate >= 0.50", SCHEMA).mask().tolist() == [False, False, True]
    assert parse("rate <= 2", SCHEMA).mask().tolist() == [True, True, True]


def test_several_attributes_in_schema_order() -> None:
    predicate = parse("age >= 18 and sex = 'female' and state = 'PA'", SCHEMA)
    assert predicate.bases == ("county", "sex", "age")
    mask = predicate.mask()
    assert mask.shape == (3, 2, 6)
    expected = np.zeros((3, 2, 6), dtype=bool)
    expected[:2, 0, 3:5] = True
    assert np.array_equal(mask, expected)
    assert not mask.flags.writeable


def test_quoting_and_precedence() -> None:
    assert parse("county = 'O''Neil'", SCHEMA).mask().tolist() == [False, False, True]
    assert parse("\"odd name\" = 'and'", SCHEMA).mask().tolist() == [False, True]
    plain = parse("sex = 'male' or sex = 'female' and county = 'A'", SCHEMA).mask()
    grouped = parse("sex = 'male' or (sex = 'female' and county = 'A')", SCHEMA).mask()
    assert np.array_equal(plain, grouped)
    assert not np.array_equal(
        plain, parse("(sex = 'male' or sex = 'female') and county = 'A'", SCHEMA).mask()
    )


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("age >= 16", "cuts the class '10-17'.*starts at 10 and ends before 18.*edge 10 or 18"),
        ("age < 30", "cuts the class '21\\+'.*has no upper edge.*edge 21"),
        ("age = 5", "cuts the class '5-9'"),
        ("age between 5 and 8", "cuts the class '5-9'"),
        ("age <= 10", "cuts the class '10-17'"),
        ("rate <= 0.5", "cuts the class '0.5-2'"),
        ("rate > 0", "cuts the class '0-0.5'"),
        ("rate < -1", "cuts the class 'low'.*has no lower edge"),
        ("rate = 1", "cuts"),
        ("age >= 17.5", "whole numbers only. Use 17 or 18"),
        ("age between 9 and 5", "smaller number first"),
        ("sex = 1", "text, not numbers"),
        ("state > 3", "text, not numbers"),
        ("sex = 'femal'", "Did you mean 'female'"),
        ("sex < 'male'", "categories have no order"),
        ("agee >= 18", "Did you mean 'age'"),
        ("", "a name"),
        ("age", "a comparison"),
        ("age >=", "a number or 'text'"),
        ("age >= 18 sex = 'male'", "'and', 'or' or the end"),
        ("(age >= 18", "'\\)'"),
        ("age >= 18)", "the end"),
        ("age in ()", "a number or 'text'"),
        ("age in 5", "'\\('"),
        ("age not = 5", "'in' or 'between'"),
        ("age between 'a' and 5", "a number"),
        ("age == 18", "Use one ="),
        ("age >= 1e9", "cannot be read"),
        ("age >= 0x10", "cannot be read"),
        ("age >= 18; drop table x", "cannot be read"),
        ("__import__('os')", "no attribute"),
        ("age >= " + "9" * 5000, "cannot be read"),
        ("sex = 'male", "cannot be read"),
        ("18 <= age", "a name"),
    ],
)
def test_refusals(text: str, match: str) -> None:
    with pytest.raises(PredicateError, match=match):
        parse(text, SCHEMA)


def test_not_text() -> None:
    with pytest.raises(PredicateError, match="not text"):
        parse(None, SCHEMA)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    [
        "(" * 100_000,
        "(" * (MAX_DEPTH + 1) + "age >= 18" + ")" * (MAX_DEPTH + 1),
        "not " * 40_000,
        "not (" * 30_000,
        "age >= 18 or " * (MAX_COMPARISONS + 1) + "age >= 18",
        "x" * (MAX_LENGTH + 1),
        "'" * 100_001,
        '"' * 100_000,
        " " * 100_000 + "#",
        "sex in (" + "'male'," * 20_000,
    ],
)
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(PredicateError):
        parse(text, SCHEMA)


def test_deep_but_allowed() -> None:
    assert ages("(" * MAX_DEPTH + "age >= 18" + ")" * MAX_DEPTH) == ["18-20", "21+"]


def test_long_lists() -> None:
    levels = [f"c{i}" for i in range(20_000)]
    schema = Schema.from_dict({"c": {"levels": levels}, "n": {"integers": [1, 20_000]}})
    chosen = ", ".join(f"'{level}'" for level in levels[:15_000])
    assert parse(f"c in ({chosen})", schema).mask().sum() == 15_000
    numbers = ", ".join(str(i) for i in range(1, 15_001))
    assert parse(f"n in ({numbers})", schema).mask().sum() == 15_000


def test_too_many_cells() -> None:
    schema = Schema.from_dict({c: {"integers": [1, 2000]} for c in "abc"})
    with pytest.raises(PredicateError, match="cells"):
        parse("a = 1 or b = 1 or c = 1", schema)


# Against Python's own evaluation, over one representative record per combination of levels.
RECORDS = {
    "sex": {"female": "female", "male": "male"},
    "age": {"0-4": 3, "5-9": 9, "10-17": 10, "18-20": 20, "21+": 64, "unknown": None},
    "size": {"1": 1, "2": 2, "3": 3, "4": 4, "more": None},
}


def compare(name: str, symbol: str, value: int):
    operations = {
        "<": lambda x: x < value,
        "<=": lambda x: x <= value,
        ">": lambda x: x > value,
        ">=": lambda x: x >= value,
    }
    return (
        f"{name} {symbol} {value}",
        lambda r: r[name] is not None and operations[symbol](r[name]),
    )


def random_condition(rng: random.Random, depth: int):
    """A condition as text, and as a Python function of a record."""
    kind = rng.choice(["leaf", "leaf", "and", "or", "not"]) if depth else "leaf"
    if kind == "not":
        text, holds = random_condition(rng, depth - 1)
        return f"not ({text})", lambda r: not holds(r)
    if kind in ("and", "or"):
        (left, f), (right, g) = (random_condition(rng, depth - 1) for _ in range(2))
        if kind == "and":
            return f"({left}) and ({right})", lambda r: f(r) and g(r)
        return f"{left} or {right}", lambda r: f(r) or g(r)
    name = rng.choice(["sex", "age", "size"])
    if name == "sex":
        return "sex = 'male'", lambda r: r["sex"] == "male"
    if name == "size" and rng.random() < 0.3:
        low, high = sorted(rng.choices(range(6), k=2))
        return (
            f"size between {low} and {high}",
            lambda r: r["size"] is not None and low <= r["size"] <= high,
        )
    edge = rng.choice([0, 5, 10, 18, 21]) if name == "age" else rng.randint(-1, 6)
    symbol = rng.choice(["<", "<=", ">", ">="])
    return compare(name, symbol, edge - (name == "age" and symbol in ("<=", ">")))


@pytest.mark.parametrize("seed", range(40))
def test_against_python(seed: int) -> None:
    print("seed", seed)
    text, holds = random_condition(random.Random(seed), 4)
    predicate = parse(text, SCHEMA)
    labels = [SCHEMA.attribute(base).levels for base in predicate.bases]
    for index in itertools.product(*(range(len(one)) for one in labels)):
        record = {"sex": "female", "age": 3, "size": 1}
        for base, code, level in zip(predicate.bases, index, labels, strict=True):
            record[base] = RECORDS[base][level[code]]
        assert predicate.mask()[index] == holds(record), (text, record)
