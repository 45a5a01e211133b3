"""What an analyst may conclude: estimates, tests and posteriors from a release and nothing else.

`estimate(release, "share(sex = 'f' | age >= 65) by county")` gives estimates with intervals.

`infer(release, model)` takes a release (or a bundle read with `congenial.read`), a model, and gives
a posterior that accounts for the noise and uses the published figures. It never sees the table.

>>> from congenial.inference import Gamma, Observation, Poisson, infer
>>> noisy = Observation.of_values([3, 400], "double_geometric", 0.5)  # or a release
>>> posterior = infer(noisy, Poisson(prior=Gamma(1, 0.01)), draws=1000, seed=1)
>>> posterior.mean("rate").shape
(2,)
>>> low, high = posterior.interval("rate")
>>> bool(340 < low[1] < 400 < high[1] < 460)
True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from congenial._exports import load_on_first_use

if TYPE_CHECKING:
    from congenial.errors import InferenceError
    from congenial.inference.estimates.answers import Estimate, EstimateTable
    from congenial.inference.estimates.cell_estimates import (
        CellEstimates,
        ScaledLaw,
        cell_estimates,
    )
    from congenial.inference.estimates.estimating import estimate
    from congenial.inference.estimates.table_tests import (
        TableTest,
        equality_test,
        independence_test,
        trend_test,
    )
    from congenial.inference.hypothesis_tests import Family, OneSidedTest, one_sided, power
    from congenial.inference.inference import METHODS, Chain, infer
    from congenial.inference.models.counts import Binomial, NegativeBinomial, Poisson
    from congenial.inference.models.model import Model
    from congenial.inference.models.outcomes import Multinomial
    from congenial.inference.models.priors import Beta, Dirichlet, Gamma, GaussianPrior, HalfNormal
    from congenial.inference.models.priors import GaussianPrior as Gaussian
    from congenial.inference.models.real_statistics import normal_mean, normal_mean_variance
    from congenial.inference.models.regressions import Linear, Logistic, Normal
    from congenial.inference.naive import Coverage, coverage, naive
    from congenial.inference.observation import Observation
    from congenial.inference.observing import observe
    from congenial.inference.odds_ratio import ObservedOddsRatio, OddsRatioTest, odds_ratio_test
    from congenial.inference.odds_ratio_question import OddsRatioQuestion
    from congenial.inference.odds_ratio_release import (
        OddsRatioDecision,
        OddsRatioMechanism,
        OddsRatioRelease,
    )
    from congenial.inference.options import MODELS, infer_from_options
    from congenial.inference.posterior import Posterior
    from congenial.inference.projected import (
        ProjectionLoss,
        poisson_rate,
        share_of_total,
        shares_of_total,
    )
    from congenial.inference.samplers.importance import Proposal
    from congenial.sampling.canonical import canonical_noise

__all__ = [
    "METHODS",
    "MODELS",
    "Beta",
    "Binomial",
    "CellEstimates",
    "Chain",
    "Coverage",
    "Dirichlet",
    "Estimate",
    "EstimateTable",
    "Family",
    "Gamma",
    "Gaussian",
    "GaussianPrior",
    "HalfNormal",
    "InferenceError",
    "Linear",
    "Logistic",
    "Model",
    "Multinomial",
    "NegativeBinomial",
    "Normal",
    "Observation",
    "ObservedOddsRatio",
    "OddsRatioDecision",
    "OddsRatioMechanism",
    "OddsRatioQuestion",
    "OddsRatioRelease",
    "OddsRatioTest",
    "OneSidedTest",
    "Poisson",
    "Posterior",
    "ProjectionLoss",
    "Proposal",
    "ScaledLaw",
    "TableTest",
    "canonical_noise",
    "cell_estimates",
    "coverage",
    "equality_test",
    "estimate",
    "independence_test",
    "infer",
    "infer_from_options",
    "naive",
    "normal_mean",
    "normal_mean_variance",
    "observe",
    "odds_ratio_test",
    "one_sided",
    "poisson_rate",
    "power",
    "share_of_total",
    "shares_of_total",
    "trend_test",
]

_HOMES = {
    "METHODS": "inference.inference",
    "MODELS": "inference.options",
    "Beta": "inference.models.priors",
    "Binomial": "inference.models.counts",
    "CellEstimates": "inference.estimates.cell_estimates",
    "Chain": "inference.inference",
    "Coverage": "inference.naive",
    "Dirichlet": "inference.models.priors",
    "Estimate": "inference.estimates.answers",
    "EstimateTable": "inference.estimates.answers",
    "Family": "inference.hypothesis_tests",
    "Gamma": "inference.models.priors",
    "Gaussian": "inference.models.priors:GaussianPrior",
    "GaussianPrior": "inference.models.priors",
    "HalfNormal": "inference.models.priors",
    "InferenceError": "errors",
    "Linear": "inference.models.regressions",
    "Logistic": "inference.models.regressions",
    "Model": "inference.models.model",
    "Multinomial": "inference.models.outcomes",
    "NegativeBinomial": "inference.models.counts",
    "Normal": "inference.models.regressions",
    "Observation": "inference.observation",
    "ObservedOddsRatio": "inference.odds_ratio",
    "OddsRatioDecision": "inference.odds_ratio_release",
    "OddsRatioMechanism": "inference.odds_ratio_release",
    "OddsRatioQuestion": "inference.odds_ratio_question",
    "OddsRatioRelease": "inference.odds_ratio_release",
    "OddsRatioTest": "inference.odds_ratio",
    "OneSidedTest": "inference.hypothesis_tests",
    "Poisson": "inference.models.counts",
    "Posterior": "inference.posterior",
    "ProjectionLoss": "inference.projected",
    "Proposal": "inference.samplers.importance",
    "ScaledLaw": "inference.estimates.cell_estimates",
    "TableTest": "inference.estimates.table_tests",
    "canonical_noise": "sampling.canonical",
    "cell_estimates": "inference.estimates.cell_estimates",
    "coverage": "inference.naive",
    "equality_test": "inference.estimates.table_tests",
    "estimate": "inference.estimates.estimating",
    "independence_test": "inference.estimates.table_tests",
    "infer": "inference.inference",
    "infer_from_options": "inference.options",
    "naive": "inference.naive",
    "normal_mean": "inference.models.real_statistics",
    "normal_mean_variance": "inference.models.real_statistics",
    "observe": "inference.observing",
    "odds_ratio_test": "inference.odds_ratio",
    "one_sided": "inference.hypothesis_tests",
    "poisson_rate": "inference.projected",
    "power": "inference.hypothesis_tests",
    "share_of_total": "inference.projected",
    "shares_of_total": "inference.projected",
    "trend_test": "inference.estimates.table_tests",
}

load_on_first_use(__name__, _HOMES)
