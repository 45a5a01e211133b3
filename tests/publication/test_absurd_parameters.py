"""Parameters that nobody can mean are refused in words; the largest that is allowed works."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from congenial import Guarantee, Plan, Schema, Table, calibrate, release_table, verify
from congenial.cli import app
from congenial.errors import BundleError, GuaranteeError, PlanError
from congenial.pairs import AddRemove, Adjacency, ReplaceOne
from congenial.privacy.numbers import LARGEST_PARAMETER
from congenial.privacy.tradeoff import Pure
from congenial.publication import bundle

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
{promise}
[budget]
epsilon = 200000
delta = 1e-6
"""


def write(folder: Path, promise: str) -> Path:
    path = folder / "plan.toml"
    kind = "" if "model" in promise else 'table = ["sex", "area"]\n'
    path.write_text(PLAN.format(promise=kind + promise))
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
        'M = 501\n[release.model]\narea = "multinomial"',
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


SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "area": {"levels": ["a", "b", "c"]}})
PEOPLE = ReplaceOne(SCHEMA)
TARGETS = {
    "epsilon": lambda value: Guarantee.pure(value, PEOPLE),
    "epsilon with delta": lambda value: Guarantee.approximate(value, 1e-6, PEOPLE),
    "rho": lambda value: Guarantee.zero_concentrated(value, PEOPLE),
    "mu": lambda value: Guarantee.gaussian(value, PEOPLE),
    "made by hand": lambda value: calibrate("auto", Guarantee(PEOPLE, Pure(value)), SCHEMA.names),
}


@pytest.mark.parametrize("make", TARGETS.values(), ids=TARGETS)
@pytest.mark.parametrize("value", [501, 1e8, "1e18", 10**299, Fraction(1, 10**101), 1e-200])
def test_python_refuses_them_too(make: Callable[[Any], object], value: object) -> None:
    with pytest.raises(GuaranteeError, match=r"above 500|below 1e-100"):
        make(value)


@pytest.mark.parametrize("name", ["epsilon", "rho", "mu"])
@pytest.mark.parametrize("pairs", [PEOPLE, AddRemove(SCHEMA, 1)], ids=["replace", "add"])
def test_intervals_at_the_limit_are_without_warnings(name: str, pairs: Adjacency) -> None:
    """The ground of the limit: weights exp(-epsilon |k|) are positive numbers up to it."""
    assert math.exp(-LARGEST_PARAMETER) > 0 == math.exp(-1.5 * LARGEST_PARAMETER)
    made = {
        "epsilon": Guarantee.pure,
        "rho": Guarantee.zero_concentrated,
        "mu": Guarantee.gaussian,
    }[name]
    mechanism = calibrate("auto", made(LARGEST_PARAMETER, pairs), SCHEMA.names)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        law = mechanism.error_law([[True, False, False], [True, False, False]])
        assert law.interval(0.9) >= 0


def test_a_bundle_that_nobody_can_mean_is_refused(tmp_path: Path) -> None:
    table = Table(SCHEMA, SCHEMA.names, np.arange(6).reshape(2, 3))
    release = release_table(calibrate("auto", Guarantee.pure(2, PEOPLE), SCHEMA.names), table)
    bundle.write(release, tmp_path / "out", release.guarantee.explain(), "").publish()
    index = json.loads((tmp_path / "out" / "release.json").read_text())
    index["guarantee"]["tradeoff"]["epsilon"] = "100000000/1"
    index["description"]["measured"][0]["parameter"]["eps_cell"] = "500"
    content = bundle.as_json(index)
    (tmp_path / "out" / "release.json").write_bytes(content)
    (tmp_path / "out" / "DIGEST.txt").write_text(bundle.sha256(content) + "\n")
    with pytest.raises(BundleError, match="epsilon is above 500"):
        bundle.read(tmp_path / "out")
    failed = [one for one in verify(tmp_path / "out") if not one.holds]
    assert ["promise is not possible" in one.detail for one in failed] == [True]
