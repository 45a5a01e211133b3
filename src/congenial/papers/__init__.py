"""The tables and figures of the five papers, the studies on public data that go with them, and what
the papers define that no plan needs.

`congenial reproduce` runs the former. The names here are for readers of the papers: sensitivity
spaces and their hulls, subspace privacy and the order of composition (semi-dp), the chain as it is
printed (congenial-dp), further Wasserstein mechanisms and what projecting costs an analyst
(partially-private-data).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.papers.congenial_dp.printed_chain import PrintedChain
    from congenial.papers.projection_loss import (
        ProjectionLoss,
        poisson_rate,
        share_of_total,
        shares_of_total,
    )
    from congenial.papers.semi_dp.propositions import (
        CompositionOrders,
        Subspace,
        composition_orders,
        subspace,
    )
    from congenial.papers.sensitivity_spaces import (
        Hull,
        Sensitivity,
        Spaces,
        sensitivity,
        side_by_side,
    )
    from congenial.papers.wasserstein_variants import (
        FiniteRange,
        WassersteinReals,
        joint_promise,
    )

__all__ = [
    "CompositionOrders",
    "FiniteRange",
    "Hull",
    "PrintedChain",
    "ProjectionLoss",
    "Sensitivity",
    "Spaces",
    "Subspace",
    "WassersteinReals",
    "composition_orders",
    "joint_promise",
    "poisson_rate",
    "sensitivity",
    "share_of_total",
    "shares_of_total",
    "side_by_side",
    "subspace",
]

load_on_first_use(__name__)
