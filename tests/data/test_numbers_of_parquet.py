"""Columns of numbers become arrays without loading pandas, which takes half a second."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import congenial as cg
from congenial.data.engines.checked_parquet import numbers
from congenial.publication import bundle

READ = "import sys, congenial; congenial.read({!r}); print('pandas' in sys.modules, flush=True)"


@pytest.mark.parametrize("kind", [np.int64, np.float64])
def test_numbers_are_those_of_pyarrow(kind: type) -> None:
    values = np.array([3, -1, 2**40, 0, 7], dtype=kind)
    whole = pa.chunked_array([pa.array(values)])
    for column in (whole, whole.slice(2, 2), pa.chunked_array([values[:2], values[2:]])):
        found = numbers(column)
        assert found.dtype == kind
        assert found.tolist() == column.to_pylist()
        found[0] = 1  # nobody else's memory
        assert values[0] == 3
    assert numbers(whole.slice(0, 0)).size == 0


def test_missing_numbers_are_not_what_lies_in_memory() -> None:
    found = numbers(pa.chunked_array([pa.array([1, None, 3])]))
    assert np.isnan(found[1])


def test_a_bundle_is_read_without_pandas(tmp_path: Path) -> None:
    schema = cg.Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    made = cg.calibrate("auto", cg.Guarantee.pure(1, under=cg.ReplaceOne(schema)))
    drawn = cg.release_table(
        made, cg.Table(schema, ["sex"], [90, 110]), cg.SeededRandomness(1), name="sex"
    )
    bundle.write(drawn, tmp_path / "sex", "the promise", "the report").publish()
    code = READ.format(str(tmp_path / "sex"))
    # What it prints, not how it ends: a thread of pyarrow sometimes aborts when Python exits.
    told = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert told.stdout == "False\n", told.stderr
