"""The benchmark beside other systems says why one is left out."""

from __future__ import annotations

import sys

from benchmarks.tables_peers import guarded, planned


def test_a_peer_that_is_not_installed_is_skipped_with_the_reason(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "resplan", None)
    told = guarded("resplan", lambda: planned([(0,)], 1.0))
    assert told["resplan"].startswith("skipped: ")
    assert "resplan" in told["resplan"].removeprefix("skipped: ")
