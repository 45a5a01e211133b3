"""What counted events prove: exact lower bounds on epsilon, mu and rho.

An event that is seen with probability p under one database and q under a neighbour gives

    epsilon >= log((p - delta) / q)             for (epsilon, delta)
    mu      >= Phi^-1(p) - Phi^-1(q)            for G_mu

and a partition into events with probabilities p_j and q_j, for rho-zCDP and every order a > 1,

    rho     >= log(sum_j p_j^a q_j^(1-a)) / (a (a - 1)).

All three grow with p and fall with q, so lower bounds of p and upper bounds of q (Clopper and
Pearson, exact) make them lower bounds that hold with stated confidence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import (
    ARRAY,
    FINITE,
    NOT_NEGATIVE,
    SEVERAL,
    SHARE,
    check_fields,
    either,
    takes,
)
from congenial.data.arrays import Floats, Ints

Aim = Literal["epsilon", "mu", "rho"]

ORDERS = np.array([1.02, 1.05, 1.1, 1.2, 1.35, 1.6, 2.0, 3.0, 5.0, 9.0])
GROUPS = (2, 3, 4, 6, 8, 12, 18)  # parts a histogram is cut into for rho

Cuts = tuple[int, ...]


@takes(hits=either(ARRAY, FINITE), trials=SEVERAL, tail=SHARE)
def clopper_pearson_bounds(hits: Any, trials: int, tail: float) -> tuple[Floats, Floats]:
    """One-sided bounds of probabilities: each of the two fails with probability at most `tail`.

    >>> low, high = clopper_pearson_bounds([0, 5, 10], 10, 0.025)
    >>> np.round(low, 4).tolist(), np.round(high, 4).tolist()
    ([0.0, 0.1871, 0.6915], [0.3085, 0.8129, 1.0])
    """
    from scipy.special import betainccinv, betaincinv

    x = np.asarray(hits, dtype=float)
    low = np.where(x > 0, betaincinv(np.maximum(x, 1), trials - x + 1, tail), 0.0)
    high = np.where(x < trials, betainccinv(x + 1, np.maximum(trials - x, 1), tail), 1.0)
    return low, high


@dataclass(frozen=True)
class Prover:
    """Lower bounds from histograms of `trials` draws each, false with probability `tail` at most.

    A histogram has its bins sorted from the most to the least telling; `cuts` part them.
    """

    trials: int
    tail: float
    delta: float

    def __post_init__(self) -> None:
        check_fields(self, trials=SEVERAL, tail=SHARE, delta=NOT_NEGATIVE)

    def proved(self, aim: Aim, p: Ints, q: Ints, cuts: Cuts) -> float:
        """The lower bound from the parts that `cuts` make; for epsilon and mu, from the first."""
        parts = np.array([0, *cuts])
        if aim == "rho":
            return self._rho(np.add.reduceat(p, parts), np.add.reduceat(q, parts))
        return float(self._event(aim, p[: cuts[0]].sum()[None], q[: cuts[0]].sum()[None])[0])

    def best(self, aim: Aim, p: Ints, q: Ints) -> tuple[float, Cuts]:
        """The cuts that prove most, with what they prove of these very counts."""
        if aim != "rho":
            bound = self._event(aim, np.cumsum(p)[:-1], np.cumsum(q)[:-1])
            at = int(np.argmax(bound))
            return float(bound[at]), (at + 1,)
        single = self.best("mu", p, q)[1]
        options = {single, *(self._even(p, q, parts) for parts in GROUPS)} - {()}
        return max((self.proved("rho", p, q, cuts), cuts) for cuts in options)

    def _event(self, aim: Aim, p: Ints, q: Ints) -> Floats:
        from scipy.special import ndtri

        low = clopper_pearson_bounds(p, self.trials, self.tail / 2)[0]
        high = clopper_pearson_bounds(q, self.trials, self.tail / 2)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            if aim == "epsilon":
                bound = np.log(np.maximum(low - self.delta, 0.0) / high)
            else:
                bound = ndtri(low) - ndtri(high)
        return np.asarray(np.maximum(np.nan_to_num(bound, nan=0.0, neginf=0.0), 0.0))

    def _rho(self, p: Ints, q: Ints) -> float:
        """All parts at once; what the others leave bounds each from the other side too."""
        tail = self.tail / (4 * len(p))
        (p_low, p_high), (q_low, q_high) = (
            clopper_pearson_bounds(x, self.trials, tail) for x in (p, q)
        )
        p_low = np.maximum(p_low, 1 - (p_high.sum() - p_high))
        q_high = np.minimum(q_high, 1 - (q_low.sum() - q_low))
        positive = p_low > 0
        log_p, log_q = np.log(p_low[positive]), np.log(q_high[positive])
        terms = ORDERS[:, None] * log_p - (ORDERS[:, None] - 1) * log_q
        bound = np.logaddexp.reduce(terms, axis=1) / (ORDERS * (ORDERS - 1))
        return max(0.0, float(bound.max(initial=0.0)))

    def _even(self, p: Ints, q: Ints, parts: int) -> Cuts:
        """Cuts into parts of about equal share among the draws of both sides."""
        share = np.cumsum(p / max(1, p.sum()) + q / max(1, q.sum())) / 2
        at = np.searchsorted(share, np.arange(1, parts) / parts) + 1
        return tuple(sorted({int(k) for k in at if 0 < k < len(p)}))
