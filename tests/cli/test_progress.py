"""Commands that read bundles tell how far they are, with shares that a time left follows from."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from congenial.data.advance import Advance, telling

AGAIN = "computing the report again"
COMMANDS = {
    "verify": ((), {"comparing files with their digests", AGAIN}),
    "explain": ((), {"comparing files with their digests", AGAIN}),
    "export": (
        ("--to", "xlsx"),
        {"writing sheet 'detail'", "writing sheet 'published'"},
    ),
    "estimate": (
        ("--of", "share(sex = 'f' | age >= 65) by county", "--of", "count() by sex"),
        {"simulating errors", "working out intervals", "working out laws of sums"},
    ),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_tells_its_share(
    command: str,
    run: Callable[..., Any],
    finished: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []

    @contextmanager
    def working(_: str) -> Iterator[Callable[[str], None]]:
        with telling(told.append):
            yield told.append

    monkeypatch.setattr(importlib.import_module(f"congenial.cli.{command}"), "working", working)
    words, steps = COMMANDS[command]
    out = ("--out", tmp_path / "out") if command == "export" else ()
    run(command, finished.parent / "bundles" / "detail", *words, *out)
    shares = [one for one in told if isinstance(one, Advance)]
    assert steps <= {one.step for one in shares}
    for step in steps:
        mine = [one.share for one in shares if one.step == step]
        assert mine[0] == 0
        assert all(0 <= share < 1 for share in mine)
    assert any(one.share > 0 for one in shares)
