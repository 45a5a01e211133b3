"""The table of conversions: rows, their direction, and what is refused."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from congenial.errors import GuaranteeError
from congenial.privacy.conversion_table import convert
from congenial.privacy.conversions import pure_to_gdp
from congenial.privacy.tradeoff import (
    Approximate,
    Gaussian,
    Nothing,
    Pure,
    ZeroConcentrated,
    tradeoff_between,
)


def test_convert_rows() -> None:
    zcdp = convert(ZeroConcentrated(2.56), "epsilon", 1e-10, classical=True)
    assert [round(float(row.value), 5) for row in zcdp] == [17.15831, 17.11152, 17.91528]
    assert ["follows" in row.note for row in zcdp] == [True, False, True]
    assert zcdp[1].note == "for one release of discrete Gaussian noise"
    mu = convert(Approximate(1, 1e-6), "mu", classical=True)
    assert mu[0].value > mu[1].value  # exact calibration allows more
    assert all("enough" in row.note for row in mu)
    assert convert(Pure(1), "epsilon")[0].value == 1
    assert len(convert(Pure(1), "rho", classical=True)) == 2
    assert convert(Gaussian(1), "rho")[0].value == Fraction(1, 2)
    assert convert(Gaussian(1), "total variation")[0].value == pytest.approx(0.38292, abs=1e-5)
    assert len(convert(Gaussian(2), "epsilon", 1e-6, classical=True)) == 1  # textbook not valid
    pair = tradeoff_between([0.5, 0.5], [0.25, 0.75])
    assert convert(pair, "mu")[0].value == pytest.approx(pure_to_gdp(math.log(2)), rel=1e-9)


@pytest.mark.parametrize(
    ("source", "to", "delta"),
    [
        (ZeroConcentrated(1), "mu", None),
        (Gaussian(1), "epsilon", None),
        (Nothing(), "rho", None),
        (Pure(1), "bits", None),
    ],
)
def test_impossible_conversions_are_refused(source: object, to: str, delta: float | None) -> None:
    with pytest.raises(GuaranteeError) as error:
        convert(source, to, delta)  # type: ignore[arg-type]
    assert error.value.remedy
