"""Scores of a released table that tell two true answers apart, and events learnt from them.

A score is a number computed from a released table. Its values are put into at most `MOST_BINS` bins
(single values where they are few), and an event is a set of bins: those in which the first half of
the draws saw one side most often against the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.audit.bounds import Aim, Cuts, Prover
from congenial.audit.neighbours import HostilePair
from congenial.errors import StructureError
from congenial.mechanisms.mechanism import Mechanism
from congenial.sampling.inversion import Floats, Ints

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

    found: list[Score] = [
        ("l1 distance", lambda y: _norm(flat(y)[:, at] - b, 1) - _norm(flat(y)[:, at] - a, 1)),
        ("l2 distance", lambda y: _norm(flat(y)[:, at] - b, 2) - _norm(flat(y)[:, at] - a, 2)),
        (
            "farthest cell",
            lambda y: np.abs(flat(y) - right).max(axis=1) - np.abs(flat(y) - left).max(axis=1),
        ),
    ]
    if not mechanism.description.continuous:
        found += [
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
        found.append(("one cell's value", lambda y, i=i: flat(y)[:, i].astype(float)))  # type: ignore[misc]
    if left.size <= LARGEST_DENSITY:
        found.append(("log density ratio", lambda y: _log_ratio(mechanism, pair, y)))
    return found


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
