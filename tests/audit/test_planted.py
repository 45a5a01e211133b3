"""Every planted defect is caught, and what is right passes the same check."""

from __future__ import annotations

import pytest

from tests.audit.planted import PLANTED, SEED, WANTED

each = pytest.mark.parametrize("planted", PLANTED, ids=str)


@each
def test_it_is_caught(planted):
    print("seed", SEED)
    assert planted.caught(), f"{planted.name} went unnoticed {planted.check}"


@each
def test_what_is_right_passes_the_same_check(planted):
    print("seed", SEED)
    assert planted.sound(), f"the control of '{planted.name}' fails {planted.check}"


def test_the_list_is_whole():
    assert {one.name for one in PLANTED} == set(WANTED)


@pytest.mark.audit
def test_all_of_them(attempt):
    """The same in one test, for the table of the audit."""
    unnoticed = [str(one) for one in PLANTED if not one.caught()]
    refused = [str(one) for one in PLANTED if not one.sound()]
    attempt("planted", defects=len({one.name for one in PLANTED}))
    assert (unnoticed, refused) == ([], [])
