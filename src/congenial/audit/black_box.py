"""Black-box audit: draw from a mechanism under two conforming neighbours and try to tell them
apart.

For each hostile pair (`neighbours`) half of the draws learn the event that is most telling: a set
of values of one of a few scores of the released table (log-likelihood ratio, distances to the two
true answers, values of single cells), sorted by how much more often it is seen under one side
(Neyman and Pearson on a histogram). The other half tests it: exact bounds on its probabilities
give lower bounds on epsilon, mu and rho (`bounds`) that hold, for all pairs and parameters at once,
but with probability `alpha`.

A lower bound above the promise is a proof that the promise is broken. A bound below it proves
nothing: it shows what this attack achieves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from congenial.audit.bounds import Aim, Cuts, Prover, clopper_pearson_bounds
from congenial.audit.exact_audit import stated
from congenial.audit.neighbours import HostilePair, hostile_pairs
from congenial.data.arguments import (
    CALL,
    NOT_NEGATIVE,
    SEVERAL,
    SHARE,
    either,
    listed,
    optional,
    takes,
)
from congenial.data.arrays import Floats, Ints
from congenial.errors import GuaranteeError, StructureError
from congenial.mechanisms.mechanism import Mechanism
from congenial.privacy.tradeoff import (
    Approximate,
    DiscreteTradeoff,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)
from congenial.sampling.randomness import Randomness, SystemRandomness

# ---- Event scores ----
# Scores of a released table that tell two true answers apart, and events learnt from them.
#
# A score is a number computed from a released table. Its values are put into at most `MOST_BINS`
# bins (single values where they are few), and an event is a set of bins: those in which the first
# half of the draws saw one side most often against the other.

MOST_BINS = 80
MOST_CELLS = 4  # whose values are scores of their own
LARGEST_DENSITY = 400  # cells of tables whose log density is computed for every draw

Score = tuple[str, Callable[[Any], Floats]]


def scores_of(mechanism: Mechanism, pair: HostilePair) -> list[Score]:
    """The scores for one pair; large where the first side is the likelier one, if they can."""
    left, right = mechanism.query(pair.left).reshape(-1), mechanism.query(pair.right).reshape(-1)
    at = np.flatnonzero(left != right)
    a, b = left[at], right[at]

    def flat(y: Any) -> Any:
        return y.reshape(len(y), -1)

    scores: list[Score] = [
        ("l1 distance", lambda y: _norm(flat(y)[:, at] - b, 1) - _norm(flat(y)[:, at] - a, 1)),
        ("l2 distance", lambda y: _norm(flat(y)[:, at] - b, 2) - _norm(flat(y)[:, at] - a, 2)),
        (
            "farthest cell",
            lambda y: np.abs(flat(y) - right).max(axis=1) - np.abs(flat(y) - left).max(axis=1),
        ),
    ]
    if not mechanism.description.continuous:
        scores += [
            (
                "cells as they are",
                lambda y: np.sum((flat(y)[:, at] == a) * 1.0 - (flat(y)[:, at] == b), axis=1),
            ),
            (
                "the table as it is",
                lambda y: 1.0 * np.all(flat(y) == left, 1) - np.all(flat(y) == right, 1),
            ),
        ]
    order = np.argsort(-np.abs(a - b), kind="stable")[:MOST_CELLS]
    for i in at[order].tolist():
        scores.append(("one cell's value", lambda y, i=i: flat(y)[:, i].astype(float)))  # type: ignore[misc]
    if left.size <= LARGEST_DENSITY:
        scores.append(("log density ratio", lambda y: _log_ratio(mechanism, pair, y)))
    return scores


def _norm(u: Any, power: int) -> Floats:
    return np.asarray(np.sum(np.abs(u).astype(float) ** power, axis=1))


def _log_ratio(mechanism: Mechanism, pair: HostilePair, y: Any) -> Floats:
    try:
        with np.errstate(invalid="ignore"):
            ratio = mechanism.log_density(y, pair.left) - mechanism.log_density(y, pair.right)
    except StructureError:  # the law is not computed for a table of this size
        return np.zeros(len(y))
    return np.asarray(np.clip(np.nan_to_num(ratio, nan=0.0, posinf=1e6, neginf=-1e6), -1e6, 1e6))


@dataclass(frozen=True, eq=False)
class LearntEvent:
    """Values of one score, bins in `order` from the most to the least telling, parted by `cuts`.

    `swapped`: the first bins are seen more often under the second side.
    """

    name: str
    score: int
    swapped: bool
    order: Ints
    cuts: Cuts


class Learner:
    """Learns events from draws of either side of one pair, and counts them in others."""

    def __init__(self, scores: Sequence[Score]) -> None:
        self.scores = scores
        self.events: dict[Aim, LearntEvent] = {}
        self._seen: tuple[list[Any], list[Any]] = ([], [])
        self._edges: list[Floats] = []
        self._counts: dict[int, Ints] = {}  # by score: (2, bins)

    def add(self, side: bool, drawn: Any) -> None:
        """Draws to learn from."""
        values = np.stack([score(drawn) for _, score in self.scores]).astype(np.float32)
        self._seen[side].append(values)

    def settle(self, aims: Sequence[Aim], prover: Prover) -> None:
        """Choose, for every aim, the event that would prove most."""
        left, right = (np.concatenate(part, axis=1) for part in self._seen)
        best: dict[Aim, float] = {}
        for k, (name, _) in enumerate(self.scores):
            edges = _edges(np.concatenate([left[k], right[k]]))
            self._edges.append(edges)
            counts = [_histogram(edges, values) for values in (left[k], right[k])]
            for swapped in (False, True):
                p, q = counts[::-1] if swapped else counts
                order = np.argsort(-(p + 0.5) / (q + 0.5), kind="stable")
                for aim in aims if len(order) > 1 else ():
                    value, cuts = prover.best(aim, p[order], q[order])
                    if value > best.get(aim, -1.0):
                        best[aim] = value
                        self.events[aim] = LearntEvent(name, k, swapped, order, cuts)
        for event in self.events.values():
            self._counts[event.score] = np.zeros((2, len(self._edges[event.score]) + 1), np.int64)
        self._seen = ([], [])

    def count(self, side: bool, drawn: Any) -> None:
        """Draws to test on."""
        for k, counts in self._counts.items():
            values = self.scores[k][1](drawn).astype(np.float32)
            counts[int(side)] += _histogram(self._edges[k], values)

    def tested(self, aim: Aim) -> tuple[Ints, Ints]:
        """How often the event's bins, in order, were seen in fresh draws: likelier side first."""
        event = self.events[aim]
        left, right = self._counts[event.score]
        p, q = (right, left) if event.swapped else (left, right)
        return p[event.order], q[event.order]


def _histogram(edges: Any, values: Any) -> Ints:
    return np.bincount(np.searchsorted(edges, values), minlength=len(edges) + 1)


def _edges(values: Floats) -> Floats:
    """Edges between distinct values where these are few, else between quantiles; tails are fine."""
    distinct = np.unique(values)
    if len(distinct) > MOST_BINS:
        tails = np.geomspace(1e-5, 0.05, 18)
        levels = np.concatenate([tails, np.linspace(0.06, 0.94, 40), 1 - tails])
        distinct = np.unique(np.quantile(values, levels, method="inverted_cdf"))
    # A value and the edge after it fall in the same bin: edges lie between neighbours.
    return np.asarray((distinct[:-1].astype(float) + distinct[1:]) / 2, dtype=np.float32)


ALPHA = 1e-6  # false-alarm rate of a whole audit
DRAWS = 1_000_000  # per pair
PAIRS = 6
DELTA = 1e-3  # where epsilon is bounded, for promises without a delta of their own
CURVE_LEVEL = 0.95  # of the band in the picture, all thresholds at once
FEWEST = 400  # draws per pair
_CHUNK = 4_000_000  # released cells held at once

Progress = Callable[[float], Any]
CurveRow = tuple[float, float, float, float, float]
CURVE_COLUMNS = ("1 - type I error", "promised", "measured", "low", "high")
CURVE_WORDS = (
    "A test that takes the first dataset for the second makes a type I error; the reverse is "
    "type II. The curve shows the type II error against 1 - the type I error: promised (no test "
    "can be below it), measured (an estimate) and its band. The promise is broken only where the "
    "whole band is below it."
)


@dataclass(frozen=True)
class Finding:
    """A lower bound on one parameter, proved by one event on one pair."""

    aim: Aim
    value: float
    score: str
    seen: float  # share of the draws of the likelier side with the event (rho: its first part)
    seen_under_the_other: float


@dataclass(frozen=True)
class PairFinding:
    """What was proved about one pair."""

    words: str
    findings: tuple[Finding, ...]

    def value(self, aim: Aim) -> float:
        """The lower bound on a parameter, 0 if none was looked for."""
        return max((f.value for f in self.findings if f.aim == aim), default=0.0)


@dataclass(frozen=True)
class BlackBoxAudit:
    """What the attack proves against what is promised.

    `curve`: rows (alpha, promised, measured, low, high) of the trade-off function of the most
    telling pair, with a simultaneous 95 % band; it is shown and decides nothing.
    """

    mechanism: str
    promised: Tradeoff
    delta: float
    draws: int
    alpha: float
    pairs: tuple[PairFinding, ...]
    curve: tuple[CurveRow, ...] = field(repr=False)

    def proved(self, aim: Aim) -> float:
        """The largest lower bound over the pairs."""
        return max(pair.value(aim) for pair in self.pairs)

    @cached_property
    def limits(self) -> dict[Aim, float]:
        """What the promise allows of each parameter that was looked for."""
        bounds: dict[Aim, float] = {"epsilon": self.promised.epsilon(self.delta)}
        parameter, value = stated(self.promised)
        if parameter == "mu":
            bounds["mu"] = value
        elif parameter == "rho":
            bounds["rho"] = value
        return bounds

    @property
    def violations(self) -> list[str]:
        """Where a lower bound is above the promise, in words."""
        at = f" at delta = {self.delta:g}" if self.delta else ""
        return [
            f"{aim} is at least {self.proved(aim):.4g}{at if aim == 'epsilon' else ''}, and "
            f"{limit:.4g} is promised"
            for aim, limit in self.limits.items()
            if self.proved(aim) > limit
        ]

    @property
    def violated(self) -> bool:
        """Whether the promise is broken."""
        return bool(self.violations)

    @property
    def words(self) -> str:
        """The result in a sentence or two."""
        pairs = "1 pair" if len(self.pairs) == 1 else f"{len(self.pairs)} pairs"
        tried = (
            f"{pairs} of datasets that agree with the figures, {self.draws:,} "
            f"draws each, false alarms at most {self.alpha:g} of the time"
        )
        if self.violated:
            return f"The promise is broken: {'; '.join(self.violations)} ({tried})."
        at = f" at delta = {self.delta:g}" if self.delta else ""
        limit = self.limits["epsilon"]
        allowed = f"{limit:.4g}" if math.isfinite(limit) else "none"
        return (
            "No attack does better than promised: it proves epsilon >= "
            f"{self.proved('epsilon'):.4g}{at}, and {allowed} is promised ({tried}). This is not "
            "a proof of privacy; the promise rests on its own proof."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        aims: tuple[Aim, ...] = ("epsilon", "mu", "rho")
        return {
            "mechanism": self.mechanism,
            "promised": self.promised.words,
            "delta": self.delta,
            "draws": self.draws,
            "false_alarm": self.alpha,
            "allowed": {a: v if math.isfinite(v) else None for a, v in self.limits.items()},
            "proved": {aim: self.proved(aim) for aim in aims if self._looked_for(aim)},
            "pairs": [
                {"pair": pair.words, "findings": [vars(f) for f in pair.findings]}
                for pair in self.pairs
            ],
            "curve": {
                "columns": list(CURVE_COLUMNS),
                "level": CURVE_LEVEL,
                "words": CURVE_WORDS,
                "rows": [list(row) for row in self.curve],
            },
            "violated": self.violated,
            "words": self.words,
        }

    def _looked_for(self, aim: Aim) -> bool:
        return any(f.aim == aim for pair in self.pairs for f in pair.findings)


@takes(
    GuaranteeError,
    mechanism=Mechanism,
    promised=optional(Tradeoff),
    pairs=either(SEVERAL, listed(HostilePair)),
    draws=SEVERAL,
    delta=optional(NOT_NEGATIVE),
    alpha=SHARE,
    randomness=optional(Randomness),
    progress=CALL,
)
def black_box(
    mechanism: Mechanism,
    promised: Tradeoff | None = None,
    *,
    pairs: int | Sequence[HostilePair] = PAIRS,
    draws: int = DRAWS,
    delta: float | None = None,
    alpha: float = ALPHA,
    randomness: Randomness | None = None,
    progress: Progress = lambda _: None,
) -> BlackBoxAudit:
    """Attack a table mechanism, against its own promise or another one (a bundle's, say).

    `draws` per pair: half of them under either side, of which half learn and half test. `pairs`:
    how many to look for, or the pairs. `delta`: where epsilon is bounded; by default that of the
    promise. `progress` is told which part (0 to 1) is done.
    """
    if draws < FEWEST:
        raise GuaranteeError(f"{draws} draws prove nothing.", remedy=f"Use {FEWEST} or more.")
    promised = mechanism.guarantee.tradeoff if promised is None else promised
    source = SystemRandomness() if randomness is None else randomness
    if isinstance(pairs, int):
        generator = np.random.Generator(np.random.PCG64(source.words(4).tolist()))
        chosen = hostile_pairs(mechanism.adjacency, mechanism.description.table, pairs, generator)
    else:
        chosen = list(pairs)
    if not chosen:
        raise GuaranteeError("there is no pair to attack.", remedy="Give pairs, or their number.")
    at = _delta_of(promised) if delta is None else delta
    aims: tuple[Aim, ...] = ("epsilon", "mu")
    if isinstance(promised, ZeroConcentrated):
        aims = (*aims, "rho")
    prover = Prover(draws // 4, alpha / (len(chosen) * len(aims)), at)
    attack = _Attack(mechanism, chosen, aims, prover, source)
    attack.learn(lambda part: progress(part / 2))
    attack.test(lambda part: progress(0.5 + part / 2))
    return BlackBoxAudit(
        mechanism.name, promised, at, draws, alpha, attack.findings(), attack.curve(promised)
    )


def _delta_of(promised: Tradeoff) -> float:
    if isinstance(promised, Approximate):
        return float(promised.dlt)
    return 0.0 if isinstance(promised, Pure) else DELTA


class _Attack:
    """The state of one audit: a learner for each pair, and what it learnt."""

    def __init__(
        self,
        mechanism: Mechanism,
        pairs: Sequence[HostilePair],
        aims: tuple[Aim, ...],
        prover: Prover,
        source: Randomness,
    ) -> None:
        self.mechanism, self.pairs, self.aims = mechanism, pairs, aims
        self.prover, self.source = prover, source
        self.learners = [Learner(scores_of(mechanism, pair)) for pair in pairs]
        # An additive mechanism that draws in the usual way adds the same noise to any table.
        self.shared = mechanism.additive and type(mechanism).draw is Mechanism.draw

    def learn(self, progress: Progress) -> None:
        """Find the most telling event for each parameter, by what it would prove."""
        for learner, side, drawn in self._draws(progress):
            learner.add(side, drawn)
        for learner in self.learners:
            learner.settle(self.aims, self.prover)

    def test(self, progress: Progress) -> None:
        """Count the learnt events in fresh draws."""
        for learner, side, drawn in self._draws(progress):
            learner.count(side, drawn)

    def _draws(self, progress: Progress) -> Iterator[tuple[Learner, bool, Any]]:
        """Released tables in chunks: as many as the prover counts, for each pair and side."""
        number, cells = self.prover.trials, int(np.prod(self.mechanism.shape, dtype=np.int64))
        step = max(1, min(number, _CHUNK // cells))
        for start in range(0, number, step):
            size = min(step, number - start)
            for side in (False, True):
                noise = self.mechanism.noise(self.source, size) if self.shared else None
                for pair, learner in zip(self.pairs, self.learners, strict=True):
                    truth = self.mechanism.query(pair.right if side else pair.left)
                    if noise is None:
                        yield learner, side, self.mechanism.draw(truth, self.source, size)
                    else:
                        yield learner, side, truth + noise
                progress((start + size * (1 + side) / 2) / number)

    def findings(self) -> tuple[PairFinding, ...]:
        """The bounds that hold."""
        attacks = []
        for pair, learner in zip(self.pairs, self.learners, strict=True):
            rows = []
            for aim, event in learner.events.items():
                p, q = learner.tested(aim)
                value = self.prover.proved(aim, p, q, event.cuts)
                first = slice(event.cuts[0])
                shares = (float(x[first].sum() / self.prover.trials) for x in (p, q))
                rows.append(Finding(aim, value, event.name, *shares))
            attacks.append(PairFinding(pair.words, tuple(rows)))
        return tuple(attacks)

    def _proved(self, learner: Learner) -> float:
        p, q = learner.tested("mu")
        return self.prover.proved("mu", p, q, learner.events["mu"].cuts)

    def curve(self, promised: Tradeoff) -> tuple[CurveRow, ...]:
        """The trade-off function of the learnt score on the pair that is told apart best."""
        settled = [learner for learner in self.learners if "mu" in learner.events]
        if not settled:
            return ()
        best = max(settled, key=self._proved)
        p, q = (np.cumsum(x)[:-1] for x in best.tested("mu"))
        tail = (1 - CURVE_LEVEL) / (4 * len(p))
        (p_low, p_high), (q_low, q_high) = (
            clopper_pearson_bounds(x, self.prover.trials, tail) for x in (p, q)
        )
        f = promised.piecewise() if isinstance(promised, ZeroConcentrated) else promised
        at = np.union1d(np.linspace(0, 1, 51), _kinks(f))
        columns = [
            at,
            f(at),
            _interpolated(at, q / self.prover.trials, p / self.prover.trials),
            _interpolated(at, q_low, p_high),
            _interpolated(at, q_high, p_low),
        ]
        return tuple((a, b, c, d, e) for a, b, c, d, e in np.stack(columns, axis=1).tolist())


def _kinks(promised: Tradeoff) -> Floats:
    """Where the promised line bends, e^eps / (1 + e^eps) for epsilon: between points of a grid it
    would be drawn too high. A line of many pieces is as good as smooth.
    """
    corners = promised.corners if isinstance(promised, DiscreteTradeoff) else ()
    return np.array([float(a) for a, _ in corners] if len(corners) <= 8 else [])


def _interpolated(alpha: Floats, q: Floats, p: Floats) -> Floats:
    """f(alpha) = 1 - p at alpha = 1 - q, linear between events; nothing and everything included."""
    x = np.concatenate([[0.0], (1 - q)[::-1], [1.0]])
    y = np.concatenate([[0.0], (1 - p)[::-1], [1.0]])
    order = np.argsort(x, kind="stable")
    return np.asarray(np.minimum(np.interp(alpha, x[order], y[order]), alpha))
