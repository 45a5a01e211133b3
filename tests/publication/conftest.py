"""What tests of releases share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.plain_reports import plain_reports


@pytest.fixture
def without_pictures() -> Iterator[None]:
    """Reports with tables alone; name it in `usefixtures` where pictures are not the point."""
    with plain_reports():
        yield
