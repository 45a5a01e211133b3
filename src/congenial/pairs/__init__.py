"""What must look alike: pairs of databases, of secrets, of laws.

A guarantee is about pairs. `SemiAdjacent(published)` is the usual kind: databases that agree with
the published figures and differ in at most `records` people; its `l1`, `l2_squared` and `linf` say
how far tables of such a pair can be apart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.pairs.adjacency import AddRemove, ReplaceOne, SemiAdjacent
    from congenial.pairs.distributions import DistributionPairs
    from congenial.pairs.finite_scenarios import FiniteScenarios
    from congenial.pairs.pairs import Adjacency, Pairs
    from congenial.pairs.properties import Property, read_property, share, together
    from congenial.pairs.scenarios import (
        BoundedCounts,
        ConditionalNormal,
        DependentCounts,
        IndependentRecords,
        Scenarios,
        StatedLaws,
        k_anonymity,
        t_closeness,
    )
    from congenial.pairs.secrets import SecretPairs, may_add
    from congenial.pairs.sensitive_values import SensitiveValues
    from congenial.pairs.several_rows import SeveralRows
    from congenial.pairs.stated_laws import (
        DiscreteLaw,
        GaussianLaw,
        StatedBinomial,
        StatedContinuous,
        StatedDiscrete,
        StatedNormal,
        pmf,
        sample,
    )

__all__ = [
    "AddRemove",
    "Adjacency",
    "BoundedCounts",
    "ConditionalNormal",
    "DependentCounts",
    "DiscreteLaw",
    "DistributionPairs",
    "FiniteScenarios",
    "GaussianLaw",
    "IndependentRecords",
    "Pairs",
    "Property",
    "ReplaceOne",
    "Scenarios",
    "SecretPairs",
    "SemiAdjacent",
    "SensitiveValues",
    "SeveralRows",
    "StatedBinomial",
    "StatedContinuous",
    "StatedDiscrete",
    "StatedLaws",
    "StatedNormal",
    "k_anonymity",
    "may_add",
    "pmf",
    "read_property",
    "sample",
    "share",
    "t_closeness",
    "together",
]

load_on_first_use(__name__)
