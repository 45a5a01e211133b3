"""A machine dies in the middle of a release by group (`make audit`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.engines.conftest import need_java

SCRIPT = "tests.engines.kill_worker"
CONNECT = """
import sys
import pyarrow as pa
from pyspark.sql import SparkSession
from congenial.data.schema import Schema
from congenial.data.tabulate import tabulate

spark = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(spark).__module__
schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
print(tabulate(f"spark:{sys.argv[1]}", schema).counts.tolist())
spark.stop()
"""


def run(command: list[str]) -> str:
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, env=environment, timeout=1_200
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    return done.stdout.strip().splitlines()[-1]


@pytest.mark.audit
def test_killed_after_its_draw(tmp_path: Path) -> None:
    """Group 3 was drawn, its executor died, it was drawn again: one of the draws is published."""
    pytest.importorskip("pyspark", reason="needs the extra 'spark'")
    need_java()
    found = json.loads(run(["-m", SCRIPT, str(tmp_path)]))
    assert found["kept"]
    assert len(found["drawn"]["3"]) >= 2
    for group, published in enumerate(found["published"]):
        assert found["drawn"][str(group)].count(published) == 1
    # The lost draw is not the published one.
    assert found["published"][3] in found["drawn"]["3"]
    assert len({str(draw) for draw in found["drawn"]["3"]}) == len(found["drawn"]["3"])


@pytest.mark.audit
def test_spark_connect(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="needs the extra 'spark' with Spark Connect")
    need_java()
    (tmp_path / "a.csv").write_text("sex\nf\nm\nf\n", encoding="utf-8")
    assert run(["-c", CONNECT, str(tmp_path / "a.csv")]) == "[2, 1]"
