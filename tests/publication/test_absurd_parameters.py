"""Parameters that nobody can mean are refused in words; the largest that is allowed works."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from congenial.cli import app
from congenial.errors import PlanError
from congenial.publication.plan import Plan

PLAN = """
[data]
source = "people.csv"
[schema]
sex = {{ levels = ["f", "m"] }}
area = {{ levels = ["a", "b", "c"] }}
[publish]
"People" = {{ total = true, by = ["sex"] }}
[[release]]
name = "made"
table = ["sex", "area"]
{promise}
[budget]
epsilon = 200000
delta = 1e-6
"""


def write(folder: Path, promise: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(PLAN.format(promise=promise))
    return path


@pytest.mark.parametrize(
    "promise",
    [
        "epsilon = 501",
        "epsilon = 1e8",
        "epsilon = 1e18",
        "epsilon = 1e299",
        "rho = 1e8",
        "mu = 1e8",
        "epsilon = 1e-101",
        "epsilon = 1\ndelta = 1e-200",
    ],
)
def test_what_nobody_can_mean_is_refused(tmp_path: Path, promise: str) -> None:
    with pytest.raises(PlanError, match=r"above 500|below 1e-100"):
        Plan.load(write(tmp_path, promise))


@pytest.mark.parametrize("promise", ["epsilon = 500", "rho = 500", "mu = 0.001"])
def test_the_largest_that_is_allowed_is_checked(tmp_path: Path, promise: str) -> None:
    result = CliRunner().invoke(app, ["check", str(write(tmp_path, promise))])
    assert result.exit_code in (0, 5), result.output
    assert "Traceback" not in result.output
