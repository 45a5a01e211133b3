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
    )
    from congenial.inference.estimates.combined_estimates import cell_estimates
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
    from congenial.inference.models.regressions import (
        Linear,
        Logistic,
        Normal,
    )
    from congenial.inference.naive import Coverage, coverage, naive
    from congenial.inference.observation import Observation, observe
    from congenial.inference.odds_ratio import (
        ObservedOddsRatio,
        OddsRatioQuestion,
        OddsRatioTest,
        odds_ratio_test,
    )
    from congenial.inference.odds_ratio_release import (
        OddsRatioDecision,
        OddsRatioMechanism,
        OddsRatioRelease,
    )
    from congenial.inference.options import MODELS, infer_from_options
    from congenial.inference.posterior import Posterior
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
    "observe",
    "odds_ratio_test",
    "one_sided",
    "power",
    "trend_test",
]

load_on_first_use(__name__)
