"""Counts given their signs that 0.1.0 released: the promise it stated still follows."""

from __future__ import annotations

import pytest

from congenial.mechanisms.record_release import FOLLOWS
from congenial.publication.verification import verify
from tests.compatibility.test_written_by_0_1_0 import NAMES, said, unpacked
from tests.plain_reports import plain_reports

__all__ = ["unpacked"]  # a fixture

CONDITIONED = [name for name in NAMES if any("conditioned" in one for one in said(name)["bundles"])]


@pytest.mark.parametrize("name", CONDITIONED)
def test_the_promise_of_conditioned_counts_follows(unpacked, name):
    for bundle in said(name)["bundles"]:
        if "conditioned" not in bundle:
            continue
        with plain_reports():
            lines = {one.what: one for one in verify(unpacked(name) / "bundles" / bundle)}
        assert lines[FOLLOWS].holds, lines[FOLLOWS].detail


def test_there_are_such_bundles():
    assert len(CONDITIONED) > 2
