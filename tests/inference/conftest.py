"""Shared by the tests of inference: the named false-alarm rate, and the seed in the output."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _say_the_seed(request: pytest.FixtureRequest) -> None:
    print(f"seed = {request.module.SEED}")
