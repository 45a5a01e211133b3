"""Synthetic microdata from weighted posteriors: certified (proved) or local (an estimate).

`Synthesizer` is the default; its promise is a theorem because weights depend on one record alone,
Theta is finite and fixed in advance, and theta is drawn exactly. `synthesize_locally` is the
paper's own mechanism, whose epsilon is an estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.synthesis.adapters import NumpyroModel, log_likelihood_of
    from congenial.synthesis.certified import Synthesizer, SyntheticRelease, certified_law
    from congenial.synthesis.columns import Column
    from congenial.synthesis.combine import Combined, combine
    from congenial.synthesis.local import (
        LocalEstimate,
        LocalSynthesis,
        estimate,
        isolation,
        min_max,
        probabilistic,
        scalar,
        smooth,
        synthesize_locally,
        threshold,
        truncated,
        weight_spread,
    )
    from congenial.synthesis.mixture.gibbs_chains import Diagnostics, MixtureFit, Run
    from congenial.synthesis.mixture.mixture import MixtureRegression, indicators
    from congenial.synthesis.mixture.parameters import MixturePrior, Parameters
    from congenial.synthesis.models import read_model
    from congenial.synthesis.models.category_columns import MultinomialColumn, Spike
    from congenial.synthesis.models.count_columns import BinomialColumn, PoissonColumn
    from congenial.synthesis.models.normal_columns import LinearRegression, NormalColumn
    from congenial.synthesis.record_model import Grid, LevelModel, RecordModel
    from congenial.synthesis.risk_utility import (
        Measure,
        RecordRisk,
        record_risk,
        risk_utility_curve,
    )
    from congenial.synthesis.utility_report import UtilityReport, utility_report

__all__ = [
    "BinomialColumn",
    "Column",
    "Combined",
    "Diagnostics",
    "Grid",
    "LevelModel",
    "LinearRegression",
    "LocalEstimate",
    "LocalSynthesis",
    "Measure",
    "MixtureFit",
    "MixturePrior",
    "MixtureRegression",
    "MultinomialColumn",
    "NormalColumn",
    "NumpyroModel",
    "Parameters",
    "PoissonColumn",
    "RecordModel",
    "RecordRisk",
    "Run",
    "Spike",
    "Synthesizer",
    "SyntheticRelease",
    "UtilityReport",
    "certified_law",
    "combine",
    "estimate",
    "indicators",
    "isolation",
    "log_likelihood_of",
    "min_max",
    "probabilistic",
    "read_model",
    "record_risk",
    "risk_utility_curve",
    "scalar",
    "smooth",
    "synthesize_locally",
    "threshold",
    "truncated",
    "utility_report",
    "weight_spread",
]

load_on_first_use(__name__)
