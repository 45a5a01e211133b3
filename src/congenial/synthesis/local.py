"""Local mode: the paper's own mechanism. Its epsilon is an estimate, not a guarantee.

Savitsky, Williams and Hu weight records by risks read off posterior draws and read epsilon off the
draws of the weighted posterior (sections 3 and 4). Why that is no guarantee (see the errata):

- the maximum over draws is a lower bound of the supremum over Theta, and grows with their number;
- the weights depend on all records (min-max scaling), so replacing one record changes all weights;
- densities above 1 need 4 Delta instead of 2 Delta (appendix A.3), and |log p| depends on units.

Everything here is labelled so, and a `Guarantee` made from it has the basis "estimate". The paper's
further figures (Definition 4, Assumption 4, section 4.5, appendix A.4) are computed as it states
them, for those who compare.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from congenial.data.arguments import (
    ARRAY,
    CALL,
    FINITE,
    NAMES,
    NOT_NEGATIVE,
    POSITIVE,
    SEVERAL,
    VECTOR,
    either,
    optional,
    takes,
)
from congenial.data.arrays import Floats, Ints
from congenial.errors import DataError, GuaranteeError
from congenial.pairs.pairs import Adjacency
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Pure
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.synthesis.column_kernels import ColumnKernel, GridKernel, SettledKernel
from congenial.synthesis.models.category_columns import MultinomialColumn
from congenial.synthesis.record_model import Bools, RecordModel, generator_of

GROUPS = optional(either(NAMES, VECTOR))
LABEL = "local estimate, not a guarantee"

Weighting = Callable[[Floats], Floats]  # risks of all records -> weights of all records


def risks(log_likelihood: Floats) -> Floats:
    """f_i = max over draws of |log p(x_i | theta_s)|; infinite where it is not finite."""
    size = np.abs(log_likelihood)
    return np.asarray(np.where(np.isfinite(size), size, np.inf).max(axis=0))


def min_max(c: float = 1.0, g: float = 0.0) -> Weighting:
    """alpha_i = c (1 - scaled risk) + g, cut to [0, 1] (equation 10); 0 for an infinite risk.

    >>> min_max()(np.array([2.0, 3.0, 4.0])).tolist()
    [1.0, 0.5, 0.0]
    """

    def weigh(risk: Floats) -> Floats:
        finite = np.isfinite(risk)
        low, high = risk[finite].min(initial=np.inf), risk[finite].max(initial=-np.inf)
        if not high > low:
            raise DataError(
                "all records have the same risk, so weights cannot be scaled.",
                remedy="Use another weighting, or a column that varies.",
            )
        scaled = (np.where(finite, risk, high) - low) / (high - low)
        return np.where(finite, np.clip(c * (1 - scaled) + g, 0.0, 1.0), 0.0)

    return weigh


@takes(DataError, weighting=CALL, M=POSITIVE)
def truncated(weighting: Weighting, M: float) -> Weighting:
    """Another weighting's weights, set to 0 where weight times risk exceeds M (section 4.4).

    >>> truncated(smooth, 0.6)(np.array([1.0, 3.0])).tolist()  # 3 / 4 > 0.6
    [0.5, 0.0]
    """

    def weigh(risk: Floats) -> Floats:
        weights = weighting(risk)
        pressed = np.where(weights > 0, weights * np.where(weights > 0, risk, 0.0), 0.0)
        return np.where(pressed > M, 0.0, weights)

    return weigh


def threshold(limit: float) -> Weighting:
    """1 below the limit, 0 at and above it (Assumption 2's first example).

    >>> threshold(3)(np.array([2.0, 3.0])).tolist()
    [1.0, 0.0]
    """
    return lambda risk: np.where(risk < limit, 1.0, 0.0)


@takes(DataError, risk=ARRAY)
def smooth(risk: Floats) -> Floats:
    """1 / (1 + risk), and 0 for an infinite risk (Assumption 2's second example).

    >>> smooth(np.array([0.0, 1.0, np.inf])).tolist()
    [1.0, 0.5, 0.0]
    """
    return np.asarray(1.0 / (1.0 + np.asarray(risk)))


def scalar(epsilon: float) -> Weighting:
    """One weight for all, min(1, epsilon / (2 max risk)): the exponential mechanism with a local
    sensitivity (equation 13). Not differentially private either; `kernels` has the one that is.

    The largest risk is taken over the data at hand, so that the weight itself tells something about
    them. 0 where a risk is infinite.

    >>> import numpy as np
    >>> scalar(1.0)(np.array([0.5, 2.0])).tolist()
    [0.25, 0.25]
    """

    def weigh(risk: Floats) -> Floats:
        highest = float(risk.max())
        return np.full(
            risk.shape, 0.0 if math.isinf(highest) else min(1.0, epsilon / (2 * highest))
        )

    return weigh


@takes(DataError, values=VECTOR, radius=NOT_NEGATIVE, groups=GROUPS, c=FINITE, g=FINITE)
def isolation(
    values: Floats, radius: float, groups: Any = None, c: float = 1.0, g: float = 0.0
) -> Floats:
    """Count weights of Hu, Savitsky and Williams: risk = share of a record's group that lies
    further than radius * |value| from its value; alpha = c (1 - risk) + g, cut to [0, 1].

    `groups` names what an intruder knows of each record (default: nothing, one group).
    """
    values = np.asarray(values, dtype=float)
    keys = np.zeros(len(values), dtype=np.int64) if groups is None else np.asarray(groups)
    if len(keys) != len(values):
        raise DataError(
            f"{len(keys)} groups of {len(values)} values.", remedy="Name one for each record."
        )
    risk = np.empty(len(values))
    for key in np.unique(keys):
        at = np.flatnonzero(keys == key)
        ordered, reach = np.sort(values[at]), radius * np.abs(values[at])
        inside = np.searchsorted(ordered, values[at] + reach, side="right")
        inside = inside - np.searchsorted(ordered, values[at] - reach, side="left")
        risk[at] = 1 - inside / len(at)
    return np.asarray(np.clip(c * (1 - risk) + g, 0.0, 1.0))


@dataclass(frozen=True)
class LocalEstimate:
    """What the paper reports for one dataset: Delta and what it derives from it. CONFIDENTIAL.

    delta: max over draws and records of |alpha_i log p(x_i | theta_s)|. above_one: whether some
    density exceeded 1, so that Lemma 2 needs twice as much. downweighted: records with weight below
    1 (n_A of Assumption 4).
    """

    delta: float
    draws: int
    records: int
    above_one: bool
    downweighted: int

    label = LABEL

    @property
    def epsilon(self) -> float:
        """2 Delta, or 4 Delta with densities above 1 (Lemma 2 with appendix A.3), for one copy."""
        return (4 if self.above_one else 2) * self.delta

    def exceeded(self, confidence: float = 0.95) -> float:
        """With this confidence, the posterior mass where a record's |alpha log p| exceeds Delta is
        at most 1 - (1 - confidence)^(1/S), for S independent draws.

        >>> LocalEstimate(1.0, 1000, 50, False, 3).exceeded()
        0.0029912495450953314
        """
        return float(1 - (1 - confidence) ** (1 / self.draws))

    @property
    def safety_factor(self) -> float:
        """Section 4.5: the upper end of (1, 1.05), or of (1.05, 1.10) below 1,000 records."""
        return 1.05 if self.records >= 1000 else 1.10

    @property
    def safe_epsilon(self) -> float:
        """epsilon times the safety factor, as section 4.5 suggests."""
        return self.epsilon * self.safety_factor

    @property
    def downweighted_share(self) -> float:
        """n_A / n."""
        return self.downweighted / self.records

    @property
    def downweighted_rate(self) -> float:
        """n_A / sqrt(n), which Assumption 4 asks to stay bounded as n grows."""
        return self.downweighted / math.sqrt(self.records)

    def inflated_delta(self, spread: float) -> float:
        """Appendix A.4: Delta (1 + 2 n C) for weights that depend on other records by a relative
        spread C (see `weight_spread`)."""
        return self.delta * (1 + 2 * self.records * spread)

    def guarantee(self, adjacency: Adjacency, copies: int = 1) -> Guarantee:
        """The estimate in the form of a guarantee, its basis saying that it is none."""
        if not math.isfinite(self.epsilon):
            raise GuaranteeError("Delta is infinite.", remedy="Give such records weight 0.")
        epsilon = Fraction(math.ceil(self.epsilon * copies * 10**6), 10**6)
        return Guarantee(
            adjacency,
            Pure(epsilon),
            "estimate",
            (
                f"{LABEL}: read off {self.draws} posterior draws for this dataset alone",
                f"with 95 % confidence posterior mass of up to {self.exceeded():.2g} exceeds it",
            ),
            (
                "other datasets, for which the number differs",
                "the weights, which depend on all records",
            ),
            "Savitsky, Williams and Hu, sections 3 and 4",
        )


def estimate(log_likelihood: Floats, weights: Floats) -> LocalEstimate:
    """The local estimate from log p(x_i | theta_s) at draws of the weighted posterior.

    log_likelihood: one row per draw, one column per record. Delta is a maximum over these draws:
    more draws make it larger.

    >>> found = estimate(np.array([[-1.0, -3.0], [-2.0, -2.0]]), np.array([1.0, 0.5]))
    >>> found.delta, found.epsilon, found.downweighted
    (2.0, 4.0, 1)
    """
    used = weights > 0
    weighted = np.abs(np.where(used, log_likelihood, 0.0) * np.where(used, weights, 0.0))
    delta = float(np.where(np.isnan(weighted), np.inf, weighted).max(initial=0.0))
    return LocalEstimate(
        delta,
        len(log_likelihood),
        len(weights),
        bool((np.where(used, log_likelihood, -1.0) > 0).any()),
        int((weights < 1).sum()),
    )


@takes(DataError, weights=VECTOR, reference=VECTOR)
def weight_spread(weights: Floats, reference: Floats) -> float:
    """C of Assumption 5: max |1 - alpha*_i / alpha_i| against weights that see the record alone.

    weights: alpha*, which see all records. reference: alpha. Records whose reference is 0 are left
    out; infinite where such a record has a positive weight.
    """
    weights, reference = np.asarray(weights, dtype=float), np.asarray(reference, dtype=float)
    if weights.shape != reference.shape:
        raise DataError(
            f"{len(weights)} weights, and {len(reference)} to compare them with.",
            remedy="Give two for each record.",
        )
    used: Bools = reference > 0
    if (weights[~used] > 0).any():
        return math.inf
    return float(np.abs(1 - weights[used] / reference[used]).max(initial=0.0))


@dataclass(frozen=True)
class ProbabilisticEstimate:
    """Definition 4 by simulation: the share of datasets whose 2 Delta exceeds epsilon."""

    epsilon: float
    datasets: int
    exceeding: int

    label = LABEL

    @property
    def delta(self) -> float:
        """The observed share."""
        return self.exceeding / self.datasets

    def upper(self, confidence: float = 0.95) -> float:
        """Exact (Clopper-Pearson) upper confidence bound of the share under the simulating law."""
        from scipy.stats import beta

        if self.exceeding == self.datasets:
            return 1.0
        return float(beta.ppf(confidence, self.exceeding + 1, self.datasets - self.exceeding))


@takes(DataError, deltas=ARRAY, epsilon=NOT_NEGATIVE)
def probabilistic(deltas: Floats, epsilon: float) -> ProbabilisticEstimate:
    """Definition 4 for Deltas of datasets simulated from one law; says nothing about other laws.

    >>> probabilistic(np.array([0.4, 0.6, 0.7, 0.2]), epsilon=1.0).delta
    0.5
    """
    exceeding = int((2 * np.asarray(deltas) > epsilon).sum())
    return ProbabilisticEstimate(epsilon, len(deltas), exceeding)


@dataclass(frozen=True, eq=False)
class LocalSynthesis:
    """A run of the paper's mechanism. CONFIDENTIAL but for `copies`, which nothing protects.

    estimate: Delta and what follows from it, an estimate for this dataset and no promise. risk:
    f_i of `risks`, from the first, unweighted fit. weights: alpha_i made of them. theta: draws of
    the weighted posterior.
    """

    estimate: LocalEstimate
    weights: Floats = field(repr=False)
    risk: Floats = field(repr=False)
    theta: Floats = field(repr=False)
    copies: tuple[Any, ...] = field(repr=False)

    label = LABEL


@takes(
    DataError,
    model=RecordModel,
    records=ARRAY,
    weighting=either(CALL, VECTOR),
    draws=SEVERAL,
    copies=SEVERAL,
    randomness=optional(Randomness),
    estimate_of=optional(CALL),
)
def synthesize_locally(
    model: RecordModel,
    records: Any,
    weighting: Weighting | Floats,
    *,
    draws: int = 1000,
    copies: int = 1,
    randomness: Randomness | None = None,
    estimate_of: Callable[[Any, Floats, Any, Floats], LocalEstimate] | None = None,
) -> LocalSynthesis:
    """Section 3's three steps: weights from the unweighted posterior, Delta from the weighted one,
    synthetic records from `copies` of its draws. `weighting` may also be the weights themselves.

    A weighted likelihood that is not a power of the unweighted one needs an estimate of its own:
    estimate_of(model, theta, records, weights).
    """
    if estimate_of is None and hasattr(model, "weighted_log_likelihood"):
        raise GuaranteeError(
            f"{type(model).__name__} weights its likelihood in a way of its own.",
            remedy="Use congenial.synthesis.mixture.synthesize.",
        )
    if not callable(weighting) and len(weighting) != len(records):
        raise DataError(
            f"{len(weighting)} weights for {len(records)} records.", remedy="Give one for each."
        )
    if copies > draws:
        raise GuaranteeError(f"{copies} copies need as many draws.", remedy="Raise draws.")
    generator = generator_of(SystemRandomness() if randomness is None else randomness)
    unweighted = model.posterior(records, np.ones(len(records)), draws, generator)
    risk = risks(model.log_likelihood(unweighted, records))
    weights = weighting(risk) if callable(weighting) else np.asarray(weighting, dtype=float)
    theta = model.posterior(records, weights, draws, generator)
    if estimate_of is None:
        epsilon = estimate(model.log_likelihood(theta, records), weights)
    else:
        epsilon = estimate_of(model, theta, records, weights)
    chosen = generator.choice(draws, size=copies, replace=False)
    synthetic = tuple(model.draw(theta[at], records, generator) for at in chosen)
    return LocalSynthesis(epsilon, weights, risk, theta, synthetic)


# ---- Local levels ----
# The paper's local mechanism for columns on schema levels, to compare with the certified one.
#
# Posterior draws are made in doubles on the same Theta; weights are min-max over all records. The
# epsilon is an estimate for this dataset (`local.LABEL`). A record's log likelihood is the sum
# over columns, so the Deltas of several columns add up.


def draw_locally(
    kernels: Sequence[ColumnKernel],
    counts: Sequence[Ints],
    setting: dict[str, float],
    draws: int,
    replicates: int,
    generator: np.random.Generator,
) -> tuple[list[list[Floats]], float]:
    """Laws of the levels by replicate and column, each (contexts, levels), and 2 sum of Delta."""
    weigh = min_max(setting["c"], setting["g"])
    laws: list[list[Floats]] = [[] for _ in range(replicates)]
    delta = 0.0
    for kernel, table in zip(kernels, counts, strict=True):
        if isinstance(kernel, SettledKernel):
            for law in laws:
                law.append(kernel.probabilities([]))
            continue
        weights, likelihood = _weighted(kernel, table, weigh, draws, generator)
        occupied = table > 0
        delta += estimate(likelihood[:, occupied], weights[occupied]).delta
        for at, row in enumerate(generator.choice(draws, size=replicates)):
            laws[at].append(np.exp(likelihood[row]))
    return laws, 2 * delta


@dataclass(frozen=True)
class LocalColumn:
    """CONFIDENTIAL: the paper's weights and estimate for one column of these data."""

    records: int
    downweighted: int
    sum_of_weights: float
    least_weight: float
    delta: float
    epsilon: float


def local_column(
    kernel: ColumnKernel, table: Ints, draws: int, generator: np.random.Generator
) -> LocalColumn:
    """Min-max weights (c = 1, g = 0) of one column's records, and the local estimate they give.

    Records of one level share a weight, so everything is counted by level.
    """
    weights, likelihood = _weighted(kernel, table, min_max(), draws, generator)
    occupied = table > 0
    estimated = estimate(likelihood[:, occupied], weights[occupied])
    return LocalColumn(
        int(table.sum()),
        int(table[occupied & (weights < 1)].sum()),
        float((table * weights).sum()),
        float(weights[occupied].min()),
        estimated.delta,
        estimated.epsilon,
    )


def _weighted(
    kernel: ColumnKernel,
    table: Ints,
    weigh: Weighting,
    draws: int,
    generator: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Weights by context and level from the unweighted posterior, and log laws at draws of the
    weighted one.
    """
    occupied = table > 0
    risk = risks(_log_laws(kernel, table.astype(float), draws, generator)[:, occupied])
    weights = np.zeros(table.shape)
    weights[occupied] = weigh(risk)
    return weights, _log_laws(kernel, table * weights, draws, generator)


def _log_laws(
    kernel: ColumnKernel, weighted: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    """log P(level | context, theta_s) at posterior draws, (draws, contexts, levels)."""
    if isinstance(kernel, GridKernel):
        return _on_grid(kernel, weighted, draws, generator)
    assert isinstance(kernel.model, MultinomialColumn)
    drawn = np.full((draws, *weighted.shape), -np.inf)
    for at, (row, allowed) in enumerate(zip(weighted, kernel.allowed, strict=True)):
        prior = kernel.model.per_level(int(allowed.sum()))
        p = generator.dirichlet(prior + row[allowed], size=draws)
        drawn[:, at, allowed] = np.log(np.maximum(p, 1e-300))
    return drawn


def _on_grid(
    kernel: GridKernel, weighted: Floats, draws: int, generator: np.random.Generator
) -> Floats:
    drawn = np.empty((draws, *weighted.shape))
    tables: list[Any] = [kernel.log_table(at) for at in range(kernel.contexts)]
    scores = [
        np.where(row > 0, table, 0.0) @ row for table, row in zip(tables, weighted, strict=True)
    ]
    shared = np.sum(scores, axis=0)
    for at, table in enumerate(tables):
        log_w = kernel.log_prior + (shared if kernel.model.shared else scores[at])
        if at == 0 or not kernel.model.shared:
            p = np.exp(log_w - log_w.max())
            chosen = generator.choice(len(p), size=draws, p=p / p.sum())
        drawn[:, at] = table[chosen]
    return drawn
