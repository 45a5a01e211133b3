"""The paper's finite mixture of regressions, by a compiled Gibbs sampler; local mode only."""

from __future__ import annotations

from congenial.synthesis.mixture.gibbs_chains import Diagnostics, MixtureFit, Run
from congenial.synthesis.mixture.mixture import MixtureRegression, indicators, synthesize
from congenial.synthesis.mixture.parameters import MixturePrior, Parameters

__all__ = [
    "Diagnostics",
    "MixtureFit",
    "MixturePrior",
    "MixtureRegression",
    "Parameters",
    "Run",
    "indicators",
    "synthesize",
]
