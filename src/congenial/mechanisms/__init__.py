"""What is released: one family of mechanisms per file, all under one protocol.

`congenial.calibrate` builds a mechanism for a promise; `release(table)` is the only call that
spends privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.mechanisms.congenial import Congenial, CongenialCounts, CongenialGaussian
    from congenial.mechanisms.congenial_chain import CongenialChain
    from congenial.mechanisms.distribution.choose import calibrate_distribution
    from congenial.mechanisms.distribution.fit import fit_pairs, moment_pairs
    from congenial.mechanisms.distribution.model_checks import with_model_error
    from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
    from congenial.mechanisms.hierarchy import CongenialHierarchy
    from congenial.mechanisms.joint_tables import JointTables
    from congenial.mechanisms.kernel_gaussian import KernelGaussian
    from congenial.mechanisms.knorm import KNorm
    from congenial.mechanisms.mechanism import ErrorLaw, Mechanism, register
    from congenial.mechanisms.norm_noise import CongenialLargest, CongenialLength
    from congenial.mechanisms.parted_release import PartedRelease
    from congenial.mechanisms.parted_tables import PartedTables
    from congenial.mechanisms.plain import (
        PlainDiscreteGaussian,
        PlainGaussian,
        PlainGeometric,
        PlainLaplace,
    )
    from congenial.mechanisms.projection.projection import project
    from congenial.mechanisms.released import Interval, Released
    from congenial.mechanisms.table_release import Release
    from congenial.mechanisms.tables_calibration import calibrate_tables
    from congenial.mechanisms.tables_release import TablesRelease
    from congenial.mechanisms.wasserstein.base_measure import prior_congenial
    from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
    from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
    from congenial.mechanisms.wasserstein.finite_range import FiniteRange
    from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
    from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease, GradientEstimate
    from congenial.mechanisms.wasserstein.real_exponential import WassersteinReals
    from congenial.mechanisms.wasserstein.values_release import ValuesRelease

__all__ = [
    "Congenial",
    "CongenialChain",
    "CongenialCounts",
    "CongenialGaussian",
    "CongenialHierarchy",
    "CongenialLargest",
    "CongenialLength",
    "ErrorLaw",
    "EstimateRelease",
    "EstimateSpec",
    "FiniteRange",
    "GradientEstimate",
    "Interval",
    "JointTables",
    "KNorm",
    "KernelGaussian",
    "Mechanism",
    "PartedRelease",
    "PartedTables",
    "PlainDiscreteGaussian",
    "PlainGaussian",
    "PlainGeometric",
    "PlainLaplace",
    "Release",
    "Released",
    "StatisticsRelease",
    "TablesRelease",
    "ValuesRelease",
    "WassersteinExponential",
    "WassersteinGradient",
    "WassersteinReals",
    "calibrate_distribution",
    "calibrate_tables",
    "fit_pairs",
    "moment_pairs",
    "prior_congenial",
    "project",
    "register",
    "with_model_error",
]

_HOMES = {
    "Congenial": "mechanisms.congenial",
    "CongenialChain": "mechanisms.congenial_chain",
    "CongenialCounts": "mechanisms.congenial",
    "CongenialGaussian": "mechanisms.congenial",
    "CongenialHierarchy": "mechanisms.hierarchy",
    "CongenialLargest": "mechanisms.norm_noise",
    "CongenialLength": "mechanisms.norm_noise",
    "ErrorLaw": "mechanisms.mechanism",
    "EstimateRelease": "mechanisms.wasserstein.gradient_estimate",
    "EstimateSpec": "mechanisms.wasserstein.estimate_spec",
    "FiniteRange": "mechanisms.wasserstein.finite_range",
    "GradientEstimate": "mechanisms.wasserstein.gradient_estimate",
    "Interval": "mechanisms.released",
    "JointTables": "mechanisms.joint_tables",
    "KNorm": "mechanisms.knorm",
    "KernelGaussian": "mechanisms.kernel_gaussian",
    "Mechanism": "mechanisms.mechanism",
    "PlainDiscreteGaussian": "mechanisms.plain",
    "PlainGaussian": "mechanisms.plain",
    "PlainGeometric": "mechanisms.plain",
    "PlainLaplace": "mechanisms.plain",
    "Release": "mechanisms.table_release",
    "Released": "mechanisms.released",
    "StatisticsRelease": "mechanisms.distribution.statistics_release",
    "PartedRelease": "mechanisms.parted_release",
    "PartedTables": "mechanisms.parted_tables",
    "TablesRelease": "mechanisms.tables_release",
    "ValuesRelease": "mechanisms.wasserstein.values_release",
    "WassersteinExponential": "mechanisms.wasserstein.exponential",
    "WassersteinGradient": "mechanisms.wasserstein.gradient",
    "WassersteinReals": "mechanisms.wasserstein.real_exponential",
    "calibrate_distribution": "mechanisms.distribution.choose",
    "calibrate_tables": "mechanisms.tables_calibration",
    "fit_pairs": "mechanisms.distribution.fit",
    "moment_pairs": "mechanisms.distribution.fit",
    "prior_congenial": "mechanisms.wasserstein.base_measure",
    "project": "mechanisms.projection.projection",
    "register": "mechanisms.mechanism",
    "with_model_error": "mechanisms.distribution.model_checks",
}

load_on_first_use(__name__, _HOMES)
