"""Runs of the program with everything they leave behind, temporary files and logs included."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from tests.confidentiality.scan import told


@dataclass
class Watch:
    """Runs commands, and keeps what they print, log and leave in temporary folders."""

    temporary: Path
    log: pytest.LogCaptureFixture
    texts: list[str] = field(default_factory=list)
    codes: list[int] = field(default_factory=list)

    def run(self, *words: object) -> int:
        """Run the program, and return its exit code."""
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = CliRunner().invoke(app, [str(word) for word in words])
        self.texts += [result.stdout, result.stderr, *(str(one.message) for one in warned)]
        if result.exception is not None:
            self.texts.append(repr(result.exception))
        self.codes.append(result.exit_code)
        return result.exit_code

    def everything(self, *folders: Path) -> str:
        """What was printed and logged, what is in folders, and what is left in temporary ones."""
        logged = tuple(record.getMessage() for record in self.log.records)
        return told(*folders, self.temporary, texts=(*self.texts, *logged))


@pytest.fixture
def watch(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    attempt: Callable[..., None],
) -> Iterator[Watch]:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setenv("TMPDIR", str(temporary))
    caplog.set_level(logging.DEBUG)
    made = Watch(temporary, caplog)
    yield made
    files = sum(len(found) for _, _, found in os.walk(tmp_path))  # some vanish meanwhile
    attempt("markers", runs=len(made.codes), files=files + len(made.texts))
    logging.captureWarnings(False)


Run = Callable[..., int]
