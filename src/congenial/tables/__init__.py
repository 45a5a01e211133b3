"""Several tables of one population at once: which, how precisely, and what they say together.

`Workload` names the tables, `design` says how precisely each is measured under one promise
(`joint_rho`, `joint_epsilon`), `estimate` puts all measurements and exact figures together,
`Covariance` says how far estimates may be off, and `fit_whole_counts` makes whole counts of them
whose sums are the tables. `congenial.mechanisms.calibrate_tables` draws them, and so does a plan
with `tables`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.data.workload import Margin, Partition, Workload
    from congenial.pairs.difference_types import difference_types
    from congenial.tables.covariance import Covariance
    from congenial.tables.design import (
        Design,
        Even,
        Keep,
        Largest,
        Weighted,
        design,
        design_for_accuracy,
    )
    from congenial.tables.linear_estimates import Estimates, estimate
    from congenial.tables.measurements import Measurements
    from congenial.tables.promise import joint_epsilon, joint_rho, law_and_promise
    from congenial.tables.whole_counts import WholeCounts, fit_whole_counts, rehearse

__all__ = [
    "Covariance",
    "Design",
    "Estimates",
    "Even",
    "Keep",
    "Largest",
    "Margin",
    "Measurements",
    "Partition",
    "Weighted",
    "WholeCounts",
    "Workload",
    "design",
    "design_for_accuracy",
    "difference_types",
    "estimate",
    "fit_whole_counts",
    "joint_epsilon",
    "joint_rho",
    "law_and_promise",
    "rehearse",
]

load_on_first_use(__name__)
