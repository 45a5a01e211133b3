"""Reports without pictures, for tests that make bundles but are not about reports."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from congenial.report import pictures


@contextmanager
def plain_reports() -> Iterator[None]:
    """Drawing pictures takes most of a release's time; tables alone are enough here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pictures, "available", lambda: False)
        yield
