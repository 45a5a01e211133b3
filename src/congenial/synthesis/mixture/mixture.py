"""The paper's synthesizer: a finite mixture of linear regressions for one sensitive column.

Savitsky, Williams and Hu, Appendix B, with three changes, each for a reason:

- *labels of synthetic records are drawn from pi*. The paper draws them from their full conditional,
  which uses the record's own y: the synthetic value then depends on the record other than through
  theta, and Lemma 1, on which its promise rests, does not apply;
- *one reading of "weighted"*. A mixture can be weighted in three ways: (sum_k pi_k N_k)^alpha, the
  label summed out first; sum_k pi_k^alpha N_k^alpha, the label part of the record; and
  sum_k pi_k N_k^alpha, the label a parameter with prior pi, which is what the paper's sampler does.
  The sampler, `weighted_log_likelihood` and `estimate` all use the last;
- *a least standard deviation*, without which the posterior is improper on rounded data (see
  `MixturePrior`).

A Gibbs chain is not an exact sample, so this model exists in local mode only: whatever is read off
it is a local estimate, not a guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from congenial.data.arguments import (
    NAMES,
    SEVERAL,
    TEXT,
    VECTOR,
    check_fields,
    either,
    listed,
    takes,
)
from congenial.data.arrays import Floats
from congenial.errors import DataError, GuaranteeError
from congenial.synthesis.local import LocalEstimate, synthesize_locally
from congenial.synthesis.mixture import gibbs_kernels
from congenial.synthesis.mixture.gibbs_chains import (
    MixtureFit,
    Run,
    compress,
    diagnose,
    functionals,
    refuse,
    sample,
)
from congenial.synthesis.mixture.parameters import MixturePrior, Parameters, log_prior
from congenial.synthesis.models.normal_columns import SCALES

LABELS = either(NAMES, VECTOR)


@dataclass(frozen=True)
class MixtureRegression:
    """T(y) ~ sum_k pi_k N(x' beta_k, sigma_k^2), the paper's prior on everything (`parameters`).

    Records are rows of numbers, predictors first and y last; a constant is added. Categories enter
    as indicators (`indicators`). scale: T, one of "identity", "log", "root", "asinh". components:
    K, larger than needed: the Dirichlet prior leaves the rest empty.

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> rows = np.column_stack([np.arange(40) % 2, rng.normal(size=40)])
    >>> model = MixtureRegression(3, run=Run(chains=2, warmup=200, r_hat=1.5, effective=10))
    >>> theta = model.posterior(rows, np.ones(40), 400, rng)
    >>> model.draw(theta[0], rows, rng).shape
    (40, 2)
    """

    components: int = 10
    scale: str = "identity"
    prior: MixturePrior = field(default_factory=MixturePrior)
    run: Run = field(default_factory=Run)

    def __post_init__(self) -> None:
        check_fields(
            self, GuaranteeError, components=SEVERAL, scale=TEXT, prior=MixturePrior, run=Run
        )
        if self.scale not in SCALES:
            raise GuaranteeError(
                f"scale {self.scale!r} is not known.", remedy=f"Use one of {', '.join(SCALES)}."
            )

    # ---- the protocol of a model -------------------------------------------------------------

    def posterior(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> Floats:
        """Draws of all parameters as rows; GuaranteeError with diagnostics without convergence."""
        return self.fit(records, weights, draws, generator).parameters.rows()[:draws]

    def log_likelihood(self, theta: Floats, records: Any) -> Floats:
        """log sum_k pi_k N(T(y) | x' beta_k, sigma_k), (draws, records): a density of T(y)."""
        return self.weighted_log_likelihood(theta, records, np.ones(len(records)))

    def log_prior(self, theta: Floats) -> Floats:
        """log prior density in (pi, beta, sigma, concentration, sd, correlation)."""
        size, K = theta.shape[1], self.components
        R = next((r for r in range(1, size) if 2 * K + K * r + 1 + r + r * (r - 1) // 2 >= size), 1)
        return log_prior(Parameters.from_rows(theta, K, R), self.prior)

    def draw(self, theta: Floats, records: Any, generator: np.random.Generator) -> Any:
        """Rows with the same predictors and a new y, their labels drawn from pi."""
        rows = np.array(records, dtype=float)
        design, _ = self._design(rows)
        p = Parameters.from_rows(theta[None, :], self.components, design.shape[1])
        pi = np.exp(p.log_pi[0])
        label = generator.choice(self.components, size=len(rows), p=pi / pi.sum())
        centre = np.einsum("nr,nr->n", design, p.beta[0][label])
        z = centre + p.sigma[0][label] * generator.standard_normal(len(rows))
        rows[:, -1] = SCALES[self.scale][1](z)
        return rows

    # ---- what a mixture has besides ----------------------------------------------------------

    def fit(
        self, records: Any, weights: Floats, draws: int, generator: np.random.Generator
    ) -> MixtureFit:
        """Draws of the weighted posterior with their diagnostics, refused without convergence.

        Records of weight 0, and those T cannot take (a nonpositive y under "log"), are left out:
        they say nothing about any parameter.
        """
        design, z = self._design(records)
        w = np.asarray(weights, dtype=float)
        _check_records(design, z, w)
        used = (w > 0) & np.isfinite(z)
        if not used.any():
            raise DataError(
                "no record has a weight above 0, so there is nothing to learn from.",
                remedy="Use a weighting that leaves some records their weight.",
            )
        design, z, w = design[used], z[used], w[used]
        self._refuse_improper(design, z, w)
        r = compress(design, z, w)
        K, R = self.components, design.shape[1]
        states, occupied = sample(r, K, R, self.prior, self.run, draws, generator)
        values, names = functionals(states, design, z)
        refuse(values, names, self.run)
        return MixtureFit(
            states, self.run.chains, occupied, diagnose(values, names, self.run.chains)
        )

    def weighted_log_likelihood(self, theta: Floats, records: Any, weights: Floats) -> Floats:
        """log sum_k pi_k N(T(y_i) | x_i' beta_k, sigma_k)^alpha_i, (draws, records).

        What record i contributes to the log of the weighted posterior of theta; not alpha_i times
        `log_likelihood`, which is another reading. 0 for a record of weight 0.
        """
        design, z = self._design(records)
        p = Parameters.from_rows(theta, self.components, design.shape[1])
        finite = np.isfinite(z)
        w = np.asarray(weights, dtype=float)
        r = compress(design, np.where(finite, z, 0.0), w)
        likelihood = np.asarray(gibbs_kernels.log_likelihood(r, p.log_pi, p.beta, p.sigma))
        likelihood[:, ~finite] = -np.inf
        likelihood[:, w == 0] = 0.0  # and not a rounding error of log sum_k pi_k
        return likelihood

    def estimate(self, theta: Floats, records: Any, weights: Floats) -> LocalEstimate:
        """The paper's Delta for draws of the weighted posterior: a local estimate, no guarantee."""
        size = self.weighted_log_likelihood(theta, records, weights)
        return LocalEstimate(
            delta=float(np.abs(size).max(initial=0.0)),
            draws=len(theta),
            records=len(weights),
            above_one=bool((size > 0).any()),
            downweighted=int((np.asarray(weights) < 1).sum()),
        )

    def _design(self, records: Any) -> tuple[Floats, Floats]:
        rows = np.asarray(records, dtype=float)
        if rows.ndim != 2 or not rows.size:
            raise DataError(
                f"records of shape {rows.shape} are not rows of predictors and a value.",
                remedy="Give a two-dimensional array, y in its last column.",
            )
        x = np.column_stack([np.ones(len(rows)), rows[:, :-1]])
        return x, np.asarray(SCALES[self.scale][0](rows[:, -1]), dtype=float)

    def _refuse_improper(self, design: Floats, z: Floats, w: Floats) -> None:
        if self.prior.least_sd > 0:
            return
        same = np.unique(np.column_stack([design, z]), axis=0, return_inverse=True)[1]
        level = np.unique(z, return_inverse=True)[1]
        repeated = np.bincount(same.reshape(-1), w).max(initial=0.0) >= 2
        heaped = np.bincount(level, w).max(initial=0.0) >= design.shape[1] + 1
        if repeated or heaped:
            raise GuaranteeError(
                "records repeat, so a component's standard deviation can shrink to 0 around them "
                "and the posterior is improper.",
                remedy="Give Prior(least_sd=...) of about the rounding of y on the model's scale.",
            )


def _check_records(design: Floats, z: Floats, w: Floats) -> None:
    """Raise DataError for what no model can be fitted to."""
    if w.shape != z.shape or not ((w >= 0) & (w <= 1)).all():
        raise DataError(
            "the weights are not one number in [0, 1] per record.", remedy="Cut them to [0, 1]."
        )
    if not np.isfinite(design).all() or np.isnan(z).any():
        raise DataError(
            "a predictor or y is missing or infinite.", remedy="Fill it in or leave the record out."
        )
    used = np.isfinite(z)
    flat = np.flatnonzero(np.ptp(design[:, 1:], axis=0) == 0)
    if used.sum() < 2 or np.ptp(z[used]) == 0 or flat.size:
        which = f"predictor {flat[0]}" if flat.size else "the sensitive column"
        raise DataError(f"{which} has no variation.", remedy="Leave the column out.")


@takes(DataError, columns=listed(LABELS), levels=listed(LABELS))
def indicators(columns: Any, levels: Any) -> Floats:
    """Indicator predictors of categorical columns: one for each level but the first.

    columns: one sequence of labels per column; levels: the labels each column may have, from the
    schema. A label that is not among them is refused.

    >>> indicators([["a", "c", "b"]], [("a", "b", "c")]).tolist()
    [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    if len(columns) != len(levels):
        raise DataError(
            f"{len(columns)} columns and the levels of {len(levels)}.",
            remedy="Give the levels of each column.",
        )
    parts = []
    for at, (column, levels_of) in enumerate(zip(columns, levels, strict=True)):
        hits = np.asarray(column)[:, None] == np.asarray(levels_of)[None, :]
        if not hits.any(axis=1).all():
            raise DataError(
                f"column {at} has a category that is not among its levels.",
                remedy="Declare every level in the schema.",
            )
        parts.append(hits[:, 1:].astype(float))
    return np.concatenate(parts, axis=1)


# `synthesize_locally` for the mixture: its weighted likelihood is not a power of the unweighted one
synthesize = partial(synthesize_locally, estimate_of=MixtureRegression.estimate)
