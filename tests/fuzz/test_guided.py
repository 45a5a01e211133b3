"""Fuzzing guided by coverage, where `atheris` is installed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

RUNS = 60_000
SEED = 1


@pytest.mark.audit
@pytest.mark.skipif(find_spec("atheris") is None, reason="needs atheris: see requirements/audit.in")
def test_guided_by_coverage(tmp_path: Path, attempt: Callable[..., None]) -> None:
    attempt("inputs", cases=RUNS)
    corpus, crashes = tmp_path / "corpus", tmp_path / "crashes"
    corpus.mkdir()
    crashes.mkdir()
    words = [
        *(sys.executable, "-m", "tests.fuzz.guided", f"-runs={RUNS}", f"-seed={SEED}"),
        *("-max_len=3000", "-timeout=20", "-rss_limit_mb=4096", f"-artifact_prefix={crashes}/"),
        str(corpus),
    ]
    done = subprocess.run(words, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    assert list(crashes.iterdir()) == []
    grown = len(list(corpus.iterdir()))
    print(f"{RUNS} runs, corpus of {grown} inputs")
    assert grown > 20  # it found its way to new code
