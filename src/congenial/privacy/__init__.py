"""What is promised: trade-off functions, guarantees, and how they compose.

>>> from congenial.privacy import Pure
>>> Pure(1).words
'epsilon = 1'
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.privacy.accounting import Composition, compose
    from congenial.privacy.composition import Loss, joint_loss
    from congenial.privacy.conversion_table import Conversion, convert
    from congenial.privacy.description import Description
    from congenial.privacy.descriptions import (
        RecordDescription,
        TablesDescription,
        read_description,
    )
    from congenial.privacy.guarantee import Guarantee
    from congenial.privacy.normaliser import Conditions, Price, largest_eps_cell, normaliser_price
    from congenial.privacy.semantics import belief, neighbourhood
    from congenial.privacy.tradeoff import (
        Approximate,
        DiscreteTradeoff,
        Gaussian,
        GaussianDraw,
        PiecewiseLinear,
        Pure,
        Tradeoff,
        ZeroConcentrated,
        tradeoff_between,
    )

__all__ = [
    "Approximate",
    "Composition",
    "Conditions",
    "Conversion",
    "Description",
    "DiscreteTradeoff",
    "Gaussian",
    "GaussianDraw",
    "Guarantee",
    "Loss",
    "PiecewiseLinear",
    "Price",
    "Pure",
    "RecordDescription",
    "TablesDescription",
    "Tradeoff",
    "ZeroConcentrated",
    "belief",
    "compose",
    "convert",
    "joint_loss",
    "largest_eps_cell",
    "neighbourhood",
    "normaliser_price",
    "read_description",
    "tradeoff_between",
]

load_on_first_use(__name__)
