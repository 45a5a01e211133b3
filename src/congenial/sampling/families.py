"""The integer families by name: the law of one cell, and of cells given the sums of groups."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from congenial.errors import StructureError
from congenial.sampling.discrete import DiscreteGaussian, DoubleGeometric
from congenial.sampling.tree.laminar import GroupedNoise
from congenial.sampling.two_way.lattice_gaussian import GroupedGaussian


def cell_law(family: str, scale: Fraction) -> DoubleGeometric | DiscreteGaussian:
    """Noise of a cell on its own; `scale` is eps per cell, or sigma squared."""
    if family == "double_geometric":
        return DoubleGeometric(scale)
    if family == "discrete_gaussian":
        return DiscreteGaussian(scale)
    raise StructureError(f"'{family}' is not a law on the integers.")


def grouped_noise(family: str, labels: Any, scale: Fraction) -> GroupedNoise | GroupedGaussian:
    """Noise of cells given that each group (0, 1, ...; -1: no noise) sums to zero."""
    if family == "double_geometric":
        return GroupedNoise(labels, scale)
    if family == "discrete_gaussian":
        return GroupedGaussian(labels, scale)
    raise StructureError(f"'{family}' is not a law on the integers.")
