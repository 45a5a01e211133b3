"""Whole tables as proposals, where several tables were measured with Gaussian noise.

Given all measured sums the latent counts have a Gaussian law, kept to integers that are not
negative, that agree with the published figures, and times the weights of the model. A proposal
draws them one after the other, each from its exact law on 0, 1, 2, ... given those before, as if
nothing were known about those behind but their Gaussian law. Cells that figures determine come
last, the largest of their groups. How much too often or too rarely a table is proposed is then
known: by the product of the sums of weights that each step was divided by, and the weights of the
determined cells. Metropolis' rule for independent proposals (keep the new table with the ratio of
these weights, at most 1) makes the law of the chain the posterior, whatever the proposals are.

They are good ones because each factor of the model, and x >= 0, is stood for by a Gaussian factor
in the law of the counts behind (`_sites`), and because counts near 0 come first.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

from congenial.data.arrays import Floats, Ints
from congenial.inference.feasibility import MOST_WHOLE
from congenial.inference.latent_tables import FIXED, alternating
from congenial.inference.models.model import BoundModel
from congenial.inference.samplers import count_kernels
from congenial.inference.samplers.chains import Collapsed
from congenial.inference.samplers.given_sums import GroupedCells, groups_of

PILOT = 400  # proposals by which it is decided whether they are good ones
WORTH = 0.1  # of a pilot proposal, at least, in independent draws
BLOCK = 32  # counts that are drawn between two products of matrices
AHEAD = 128  # steps of the chains that are drawn at once
ROUNDS = 3
MOST_SPREAD = 1e10  # of variances times precisions: beyond it a sum is not measured


@dataclass(frozen=True)
class FreeCells:
    """Cells that are free, in the order in which they are drawn, and those that follow from them.

    determined = at_zero + shares @ free cells.
    """

    free: Ints
    determined: Ints
    shares: Floats = field(repr=False)
    at_zero: Floats = field(repr=False)

    @classmethod
    def of(cls, groups: GroupedCells, labels: Ints, size: Floats) -> FreeCells:
        """The largest cell of each group follows from the others, but for one group of each tie."""
        members = np.split(groups.order, groups.starts[1:-1]) if len(groups.totals) else []
        sums = [size[cells].sum() for cells in members]
        pivots, rows, start = [], [], []
        for part in np.unique(groups.part):
            tied = np.flatnonzero(groups.part == part)
            rest = tied[np.argmin([sums[g] for g in tied])] if len(tied) > 1 else None
            for group in (g for g in tied if g != rest):
                row, at = np.zeros(len(labels)), float(groups.totals[group])
                row[members[group]] = -1.0
                if rest is not None:
                    sign = groups.signs[group] * groups.signs[rest]
                    row[members[rest]] += sign
                    at -= sign * groups.totals[rest]
                pivot = members[group][np.argmax(size[members[group]])]
                row[pivot] = 0.0
                pivots.append(pivot)
                rows.append(row)
                start.append(at)
        determined = np.array(pivots, dtype=np.int64)
        moving = np.setdiff1d(np.flatnonzero(labels != FIXED), determined)
        free = moving[np.argsort(size[moving], kind="stable")]
        shares = np.array(rows).reshape(len(pivots), len(labels))[:, free]
        return cls(free, determined, shares, np.array(start))


class TableProposals(Collapsed):
    """Chains of whole tables, parameters integrated out."""

    def __init__(self, bound: BoundModel, chains: int, rng: np.random.Generator) -> None:
        super().__init__(bound, chains, rng)
        self.freedom = FreeCells.of(groups_of(bound), self.known.labels, self.fine.y)
        self.origin = self._latent[0].copy()
        precision, slope = self._measured()
        sites = self._sites(precision, slope)
        inside, pull = self._inside(precision, slope, sites)
        self.factor = _lower_factor(inside)
        free = self.freedom.free
        self.centre = self.origin[free] + np.linalg.solve(inside, pull)
        self.law = np.column_stack([self.origin, *sites, self.cells[:, 1]])
        self.words = "whole tables drawn from a Gaussian law of integers, kept by their weights"
        self.kept = self.tried = 0
        self._ready: list[tuple[Ints, Floats]] = []
        self._weights = np.full(chains, -np.inf)

    @classmethod
    def of(cls, bound: BoundModel, chains: int, rng: np.random.Generator) -> TableProposals | None:
        """None where the law is another one, or a pilot says that proposals would be bad."""
        observation = bound.observation
        levels, noise, conforming = observation.levels, observation.noise, observation.conforming
        if levels is None or not levels.squared or noise is None or noise.kind != "l2":
            return None
        if (
            observation.finer is not None
            or observation.cells > MOST_WHOLE
            or np.isfinite(bound.most).any()
        ):
            return None
        if any(alternating(tie.pattern) is None for tie in conforming.ties) or not len(
            conforming.moving
        ):
            return None
        try:
            sampler = cls(bound, chains, rng)
        except np.linalg.LinAlgError:  # some sum is in no measured table
            return None
        _, weights = sampler.propose(PILOT)
        if not np.isfinite(weights.max()):
            return None
        share = np.exp(weights - weights.max())
        return sampler if share.sum() ** 2 / (share**2).sum() >= WORTH * PILOT else None

    # ---- the Gaussian law ------------------------------------------------------------------------

    def _measured(self) -> tuple[Floats, Floats]:
        """Precision of all cells, and the slope of the log density at the origin."""
        levels, noise, x = self.levels, self.fine.noise, self.origin
        assert noise is not None
        precision = np.diag(2 * noise.scale)
        slope = 2 * noise.scale * (self.y - x) + np.log(self.cells[:, 0])
        gaps = levels.gaps(x[None])[0]
        for column in levels.above.T:
            rates = 2 * levels.rates[column]
            precision += np.where(column[:, None] == column, rates, 0.0)
            slope += rates * gaps[column]
        return precision, slope

    def _inside(self, precision: Floats, slope: Floats, sites: Any) -> tuple[Floats, Floats]:
        """Precision and slope of the free cells, those that follow from them included."""
        b, k = sites
        free, fixed, shares = self.freedom.free, self.freedom.determined, self.freedom.shares
        whole, lean = precision + np.diag(k), slope + b
        both = whole[np.ix_(free, fixed)] @ shares
        inside = whole[np.ix_(free, free)] + both + both.T
        inside += shares.T @ whole[np.ix_(fixed, fixed)] @ shares
        return inside, lean[free] + lean[fixed] @ shares

    def _sites(self, precision: Floats, slope: Floats) -> tuple[Floats, Floats]:
        """Slope and bend of a Gaussian factor for each cell, in place of the model's and x >= 0.

        Each has the mean and the variance that the true factor has beside all the others
        (expectation propagation, a few rounds). They make proposals good; they need not be right.
        """
        b, k = np.zeros((2, len(slope)))
        at = np.concatenate([self.freedom.free, self.freedom.determined])
        for _ in range(ROUNDS):
            inside, pull = self._inside(precision, slope, (b, k))
            covariance = np.linalg.inv(inside)
            shares = self.freedom.shares
            mean = covariance @ pull
            mean = np.concatenate([mean, shares @ mean])
            spread = np.einsum("ij,jk,ik->i", shares, covariance, shares, optimize=True)
            spread = np.concatenate([np.diag(covariance), spread])
            if not 0 < spread.min() <= spread.max() < MOST_SPREAD / np.diag(inside).max():
                raise np.linalg.LinAlgError
            firm = np.maximum(1 / spread - k[at], 1e-3 / spread)
            lean = (mean / spread - b[at]) / firm
            moments = count_kernels.count_moments(
                self.origin[at] + lean, firm**-0.5, self.cells[at, 1]
            )
            k[at] = np.maximum(1 / np.maximum(moments[:, 1], 1e-3) - firm, -0.2 * firm)
            b[at] = (moments[:, 0] - self.origin[at]) * (firm + k[at]) - firm * lean
        return b, k

    # ---- chains ----------------------------------------------------------------------------------

    def propose(self, draws: int) -> tuple[Ints, Floats]:
        """Tables, and the logarithm of how much more of each there should be."""
        free, fixed = self.freedom.free, self.freedom.determined
        away, weights = np.empty((len(free), draws)), np.zeros(draws)
        law = np.ascontiguousarray(self.law[free])
        for first in range(0, len(free), BLOCK):
            pull = self.factor[first : first + BLOCK, :first] @ away[:first]
            count_kernels.draw_block(
                self.rng, first, pull, self.factor, self.centre, law, away, weights
            )
        x = np.tile(self.origin, (draws, 1))
        x[:, free] = np.rint(away.T + self.centre)
        rest = x[:, free] @ self.freedom.shares.T + self.freedom.at_zero
        x[:, fixed] = np.rint(rest)
        return x, weights + self._log_determined(x[:, fixed])

    def _log_determined(self, x: Ints) -> Floats:
        """Log factors of the cells that follow from the others, over those in the Gaussian law."""
        origin, b, k, a = self.law[self.freedom.determined].T
        inside, t = np.maximum(x, 0), x - origin
        logs = gammaln(inside + a) - gammaln(inside + 1) - b * t + 0.5 * k * t * t
        return np.where(np.any(x < 0, axis=1), -np.inf, logs.sum(axis=1))

    def iterate(self, learn: bool) -> None:
        """A fresh table for every chain, kept with the ratio of the weights."""
        if not self._ready:
            x, weights = self.propose(AHEAD * self.chains)
            self._ready = list(zip(np.split(x, AHEAD), np.split(weights, AHEAD), strict=True))
        new, weights = self._ready.pop()
        with np.errstate(invalid="ignore"):
            gain = weights - self._weights
        keep = np.log(self.rng.random(self.chains)) < gain
        self._latent[keep], self._weights[keep] = new[keep], weights[keep]
        if not learn:
            self.kept, self.tried = self.kept + int(keep.sum()), self.tried + self.chains

    @property
    def acceptance(self) -> float:  # type: ignore[override]
        """Share of tables kept."""
        return self.kept / max(self.tried, 1)


def _lower_factor(precision: Floats) -> Floats:
    """R with R'R = precision, lower triangular: each row is about a count and those before it."""
    upper = np.linalg.cholesky(precision[::-1, ::-1])
    return np.ascontiguousarray(upper.T[::-1, ::-1])
