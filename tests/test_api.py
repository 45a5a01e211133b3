"""The public names: few, all there, loaded on first use."""

from __future__ import annotations

import subprocess
import sys

import pytest

import congenial


def test_every_name_resolves_and_is_listed() -> None:
    for name in congenial.__all__:
        assert getattr(congenial, name) is not None
    assert dir(congenial) == congenial.__all__
    assert set(congenial._HOME) == {*congenial.__all__} - {"__version__"}


def test_the_list_stays_short_and_sorted() -> None:
    assert len(congenial.__all__) <= 30
    assert congenial.__all__ == sorted(congenial.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = congenial.Nonsense


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, congenial; print([m for m in ('numpy', 'rich') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
