"""What is spent: one ledger per population.

`Ledger.open(path, schema, budget=...)` opens or begins one; `reserve` a share, draw, `commit`.
`reassess` says what an earlier release promises now that more has been published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.ledger.approvals import Approvals, PlanStanding
    from congenial.ledger.budget import Budget
    from congenial.ledger.ledger import Ledger, Reservation
    from congenial.ledger.reassessment import EarlierRelease, Reassessed, reassess, suppose
    from congenial.ledger.spent_and_left import Preview
    from congenial.ledger.state import Entry

__all__ = [
    "Approvals",
    "Budget",
    "EarlierRelease",
    "Entry",
    "Ledger",
    "PlanStanding",
    "Preview",
    "Reassessed",
    "Reservation",
    "reassess",
    "suppose",
]

load_on_first_use(__name__)
