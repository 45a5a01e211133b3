"""Hostile values, and mutations of valid text, JSON and bytes."""

from __future__ import annotations

import copy
import re
from typing import Any

from hypothesis import strategies as st

# As they stand in a TOML or SQL-like text.
WORDS = (
    *("nan", "inf", "-inf", "-1", "0", "1", "-0.0", "1e400", "1e-400", "9" * 400, "0.1" + "0" * 99),
    *("1e999999999", "1e-999999999", "-1e999999999", "18446744073709551616", "2.5"),
    *("''", '""', "[]", "{}", "true", "false", "[[]]", "{ a = 1 }", '["a", "a"]', "1979-05-27"),
    *("'../../../x'", "'/dev/zero'", "'\\u0000'", '"\\u202e\\u0000"', "'postgresql://u:p@h/d'"),
    *("'spark:x'", "'https://example.org/x'", "'<script>alert(1)</script>'"),
    *("'%s%n{0}{x.__class__}'",),
    *("'__import__(\"os\")'", "'age'", "'county'", "age", "sex", "county", "'f'", "A"),
    *("and", "or", "not", "in", "between", "(", ")", "=", "!=", "<=", ">", ",", "[", "]", "{", "}"),
    *("release", "table", "epsilon", "rho", "mu", "delta", "publish", "total", "margin", "count"),
    *("by", "linear", "at_least", "structural_zeros", "statistics", "protect", "model", "theta"),
    *("scenarios", "believe", "distance", "given", "base_measure", "prior", "alpha", "loss"),
    *("levels", "edges", "integers", "top", "bottom", "within", "missing", "other", "levels_file"),
    *("\n", "#", "'", '"', "\\", "\t", "é", "\N{ZERO WIDTH JOINER}", "\N{FACE WITH TEARS OF JOY}"),
    "(" * 100,
    "not " * 100,
)

# As they stand in a JSON document.
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2**63, 2**64, -(2**63), 10**40, 0.5, -0.5, 1e308, float("nan")),
    *(1000, 10**6, 1e-300, "1/1000000", [[1, 2]], [1.5, "a"]),
    *(float("inf"), "", "0", "-1", "1/0", "1/3", "nan", "1e999999999", "1e-999999999", "x" * 3000),
    *("../../x", "/dev/zero", "\x00", "\ud800", "<script>", "release.json", "table.parquet"),
    *("double_geometric", "discrete_gaussian", "laplace", "table", "records", "county", "age"),
    *([], {}, [[]], [None], {"": ""}, [1, 2, 3], ["county"], ["age", "age"], {"a": {"b": []}}),
    *([0] * 500, {"levels": ["a"]}, {"integers": [0, 99_999]}, {"edges": [0, 1e300]}),
)

_TOKEN = re.compile(r"(\s+|[\[\](){}=,.\"']|[<>!]=?)")


@st.composite
def mutated_text(draw: Any, texts: tuple[str, ...], most: int = 4) -> str:
    """A valid text with a few of its words removed, repeated, swapped or replaced."""
    parts = [part for part in _TOKEN.split(draw(st.sampled_from(texts))) if part]
    for _ in range(draw(st.integers(1, most))):
        at = draw(st.integers(0, max(0, len(parts) - 1)))
        how = draw(st.sampled_from(("replace", "insert", "remove", "repeat", "swap", "any")))
        if not parts or how == "insert":
            parts.insert(at, draw(st.sampled_from(WORDS)))
        elif how == "replace":
            parts[at] = draw(st.sampled_from(WORDS))
        elif how == "any":
            parts[at] = draw(st.text(max_size=8))
        elif how == "remove":
            del parts[at : at + draw(st.integers(1, 6))]
        elif how == "repeat":
            parts[at:at] = parts[at : at + draw(st.integers(1, 12))]
        else:
            other = draw(st.integers(0, len(parts) - 1))
            parts[at], parts[other] = parts[other], parts[at]
    return "".join(parts)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Every node of a JSON document, by the keys that lead to it."""
    found = [path]
    if isinstance(tree, dict | list):
        for key, value in tree.items() if isinstance(tree, dict) else enumerate(tree):
            found += places(value, (*path, key))
    return found


@st.composite
def mutated_json(draw: Any, tree: Any, most: int = 3) -> Any:
    """A document with a few nodes replaced, removed, renamed or moved elsewhere."""
    tree = copy.deepcopy(tree)
    for _ in range(draw(st.integers(1, most))):
        found = places(tree)[1:]
        if not found:
            return draw(st.sampled_from(VALUES))
        *way, key = draw(st.sampled_from(found))
        node = tree
        for step in way:
            node = node[step]
        how = draw(st.sampled_from(("replace", "replace", "remove", "rename", "move")))
        if how == "replace":
            node[key] = copy.deepcopy(draw(st.sampled_from(VALUES)))
        elif how == "remove":
            del node[key]
        elif how == "rename" and isinstance(node, dict):
            node[draw(st.sampled_from(("", "x", "kind", "levels", "table")))] = node.pop(key)
        else:
            *other, last = draw(st.sampled_from(found))
            source = tree
            for step in (*other, last):
                source = source[step] if _has(source, step) else None
            node[key] = copy.deepcopy(source)
    return tree


def _has(node: Any, step: Any) -> bool:
    if isinstance(node, dict):
        return step in node
    return isinstance(node, list) and isinstance(step, int) and step < len(node)


@st.composite
def mutated_bytes(draw: Any, content: bytes) -> bytes:
    """Content that was cut, flipped or filled up."""
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, max(0, len(damaged) - 1)))
        how = draw(st.sampled_from(("flip", "cut", "fill", "insert")))
        if how == "cut":
            del damaged[at : at + draw(st.integers(1, 200))]
        elif how == "flip" and damaged:
            damaged[at] ^= draw(st.integers(1, 255))
        elif how == "fill":
            damaged[at : at + 8] = draw(st.sampled_from((b"\0" * 8, b"\xff" * 8)))
        else:
            damaged[at:at] = draw(st.binary(max_size=20))
    return bytes(damaged)
