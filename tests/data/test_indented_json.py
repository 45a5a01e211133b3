"""JSON with one item on a line: what the standard library writes, byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from congenial.data.text_files import indented

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
KEYS = st.text(max_size=3) | st.integers(0, 9) | st.booleans() | st.none()
DOCUMENTS = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_leaves=12,
)


@given(DOCUMENTS, st.booleans())
def test_as_the_standard_library_writes_it(document: Any, ascii_only: bool) -> None:
    told = "".join(indented(document, ensure_ascii=ascii_only))
    assert told == json.dumps(document, indent=1, ensure_ascii=ascii_only)


@pytest.mark.parametrize("document", [[], {}, [[]], [{}], {"a": []}, [1, [2, "x,\n [y]"], None]])
def test_lists_that_are_empty_or_mixed(document: Any) -> None:
    assert "".join(indented(document)) == json.dumps(document, indent=1)


def test_a_long_list_is_one_piece() -> None:
    areas = [f"é{number}" for number in range(1000)]
    pieces = list(indented({"areas": areas}))
    assert len(pieces) < 8
    assert "".join(pieces) == json.dumps({"areas": areas}, indent=1)
