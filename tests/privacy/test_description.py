"""Descriptions of a release's law are read as written, or not at all."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from congenial.data.schema import Schema
from congenial.errors import BundleError, GuaranteeError
from congenial.figures.figures import Figures
from congenial.privacy.description import LAWS, NORMS, Description, Family, _norm
from congenial.privacy.descriptions import RecordDescription, read_description

SCHEMA = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
NAMES: dict[Family, str] = {
    "double_geometric": "eps_cell",
    "laplace": "eps_cell",
    "discrete_gaussian": "sigma_squared",
    "gaussian": "sigma_squared",
    "k_norm_2": "epsilon",
}


def written(family: Family) -> dict[str, Any]:
    made = Description("made", ("sex",), family, Fraction(3, 7), Figures(SCHEMA))
    return made.to_dict()


@pytest.mark.parametrize("family", NAMES)
def test_the_parameter_is_read_under_its_name(family: Family) -> None:
    told = written(family)
    assert told["parameter"] == {NAMES[family]: "3/7"}
    assert read_description(SCHEMA, told).to_dict() == told


@pytest.mark.parametrize("family", NAMES)
@pytest.mark.parametrize(
    "change",
    [
        lambda told, name: {**told, "rho": "1/1000"},  # a second number for a reader to believe
        lambda told, name: {"sd": told[name]},
        lambda told, name: {},
    ],
    ids=["one more", "another", "none"],
)
def test_any_other_parameter_is_refused(family: Family, change: Any) -> None:
    told = written(family)
    name = NAMES[family]
    told["parameter"] = change(told["parameter"], name)
    with pytest.raises(BundleError, match=f"has exactly one parameter, '{name}'"):
        Description.from_dict(SCHEMA, told)


def test_a_release_that_states_no_loss_is_refused_unless_it_promises_none() -> None:
    with pytest.raises(GuaranteeError, match="does not state what it costs per record"):
        RecordDescription("a mechanism", SCHEMA, {})
    assert not RecordDescription("a mechanism", SCHEMA, {}, persons=False).epsilon


@pytest.mark.parametrize("added", [None, Fraction(1, 3)])
def test_what_an_added_record_costs_is_read_as_written(added: Fraction | None) -> None:
    made = RecordDescription("a mechanism", SCHEMA, {}, Fraction(1, 2), added=added)
    again = read_description(SCHEMA, made.to_dict())
    assert isinstance(again, RecordDescription)
    assert (again.epsilon, again.added) == (Fraction(1, 2), added)


def test_a_family_without_a_norm_is_refused_and_not_taken_for_another() -> None:
    assert set(NORMS) == set(LAWS)
    with pytest.raises(BundleError, match="'triangular' is not known"):
        _norm("triangular")
