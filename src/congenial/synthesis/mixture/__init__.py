"""The paper's finite mixture of regressions, by a compiled Gibbs sampler; local mode only."""

from __future__ import annotations

from congenial.synthesis.mixture.chains import Diagnostics, Fit, Run
from congenial.synthesis.mixture.model import MixtureRegression, indicators, synthesize
from congenial.synthesis.mixture.parameters import Parameters, Prior

__all__ = [
    "Diagnostics",
    "Fit",
    "MixtureRegression",
    "Parameters",
    "Prior",
    "Run",
    "indicators",
    "synthesize",
]
