"""Attempts to break the promises.

`exact_audit(mechanism, universe)` enumerates a small universe: no pair may lose more than is
promised. `black_box(mechanism)` draws from hostile pairs and proves a lower bound of the loss.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.audit.black_box import BlackBoxAudit, black_box
    from congenial.audit.bounds import Prover, clopper_pearson_bounds
    from congenial.audit.exact_audit import ExactAudit, audit_laws, exact_audit
    from congenial.audit.neighbours import HostilePair, hostile_pairs
    from congenial.audit.property_inference import (
        PropertyInference,
        allowed_accuracy,
        draw_shadows,
        property_inference,
    )
    from congenial.audit.universes import UNIVERSES, SmallUniverse, adjacent_pairs

__all__ = [
    "UNIVERSES",
    "BlackBoxAudit",
    "ExactAudit",
    "HostilePair",
    "PropertyInference",
    "Prover",
    "SmallUniverse",
    "adjacent_pairs",
    "allowed_accuracy",
    "audit_laws",
    "black_box",
    "clopper_pearson_bounds",
    "draw_shadows",
    "exact_audit",
    "hostile_pairs",
    "property_inference",
]

load_on_first_use(__name__)
