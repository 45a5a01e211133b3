"""What is published exactly: figures, their structure, and what they fix on a table.

`publish(table, *statements)` computes figures once; the result is public and everything else is
protected given it.

>>> from congenial.figures import count, total
>>> total(by="county").label, count("age >= 18").label
('Population by county', 'Count of age >= 18')
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.figures.figures import Figures, publish
    from congenial.figures.limits import Limits, conforming_tables, limits
    from congenial.figures.statements import (
        Statement,
        at_least,
        at_most,
        count,
        linear,
        margin,
        structural_zeros,
        total,
    )

__all__ = [
    "Figures",
    "Limits",
    "Statement",
    "at_least",
    "at_most",
    "conforming_tables",
    "count",
    "limits",
    "linear",
    "margin",
    "publish",
    "structural_zeros",
    "total",
]

load_on_first_use(__name__)
