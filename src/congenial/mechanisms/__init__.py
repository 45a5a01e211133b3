"""What is released: one family of mechanisms per file, all under one protocol.

`congenial.calibrate` builds a mechanism for a promise; `congenial.release_table`, or `release` of
other mechanisms, is the only call that spends privacy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.mechanisms.congenial import Congenial, CongenialCounts, CongenialGaussian
    from congenial.mechanisms.congenial_chain import CongenialChain
    from congenial.mechanisms.distribution.choose import calibrate_distribution
    from congenial.mechanisms.distribution.distribution_mechanism import with_model_error
    from congenial.mechanisms.distribution.fit import fit_pairs, moment_pairs
    from congenial.mechanisms.distribution.statistics_release import StatisticsRelease
    from congenial.mechanisms.drawn_table import DrawnTable
    from congenial.mechanisms.kernel_gaussian import KernelGaussian
    from congenial.mechanisms.knorm import KNorm
    from congenial.mechanisms.measured_tables import MeasuredTables, release_table
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
    from congenial.mechanisms.released import Interval, Released
    from congenial.mechanisms.tables_calibration import calibrate_tables
    from congenial.mechanisms.tables_release import TablesRelease
    from congenial.mechanisms.wasserstein.base_measure import prior_congenial
    from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
    from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
    from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
    from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
    from congenial.mechanisms.wasserstein.gradient_estimate import EstimateRelease, GradientEstimate

__all__ = [
    "Congenial",
    "CongenialChain",
    "CongenialCounts",
    "CongenialGaussian",
    "CongenialLargest",
    "CongenialLength",
    "DrawnTable",
    "ErrorLaw",
    "EstimateRelease",
    "EstimateSpec",
    "GradientEstimate",
    "Interval",
    "KNorm",
    "KernelGaussian",
    "MeasuredTables",
    "Mechanism",
    "PartedRelease",
    "PartedTables",
    "PlainDiscreteGaussian",
    "PlainGaussian",
    "PlainGeometric",
    "PlainLaplace",
    "Released",
    "StatisticsRelease",
    "TablesRelease",
    "ValuesRelease",
    "WassersteinExponential",
    "WassersteinGradient",
    "calibrate_distribution",
    "calibrate_tables",
    "fit_pairs",
    "moment_pairs",
    "prior_congenial",
    "register",
    "release_table",
    "with_model_error",
]

load_on_first_use(__name__)
