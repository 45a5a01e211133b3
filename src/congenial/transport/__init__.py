"""How far apart two laws are: the distance that noise has to cover, with a certificate.

`distance(left, right, delta=0)` compares two laws; `delta_z(pairs, query)` takes the worst over
pairs of secrets given public information.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.transport.certificates import (
        Certificate,
        Coupling,
        Distance,
        Dominance,
        ShiftedNormal,
        Translation,
        empirical,
    )
    from congenial.transport.delta_z import DistanceBound, conditioned_epsilon, delta_z
    from congenial.transport.wasserstein import distance

__all__ = [
    "Certificate",
    "Coupling",
    "Distance",
    "DistanceBound",
    "Dominance",
    "ShiftedNormal",
    "Translation",
    "conditioned_epsilon",
    "delta_z",
    "distance",
    "empirical",
]

load_on_first_use(__name__)
