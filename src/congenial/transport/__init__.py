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
        Dominance,
        ShiftedNormal,
        Translation,
    )
    from congenial.transport.delta_z import DistanceBound, conditioned_epsilon, delta_z
    from congenial.transport.distance import Distance, empirical
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

_HOMES = {
    "Certificate": "transport.certificates",
    "Coupling": "transport.certificates",
    "Distance": "transport.distance",
    "DistanceBound": "transport.delta_z",
    "Dominance": "transport.certificates",
    "ShiftedNormal": "transport.certificates",
    "Translation": "transport.certificates",
    "conditioned_epsilon": "transport.delta_z",
    "delta_z": "transport.delta_z",
    "distance": "transport.wasserstein",
    "empirical": "transport.distance",
}

load_on_first_use(__name__, _HOMES)
