"""Every outcome of records from tables on a small universe, and its probability for each database.

The mechanism's own code runs; its two sources of secret chance, the noise of a table and the choice
of a pair, are replaced by every outcome they can have, in turn. A run on one database is a list of
such outcomes, whose probabilities follow from the law of the noise and from the scores that the run
computed. Records and fits must follow from the outcomes alone, whatever the database.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp

from congenial.data.table import Table
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.from_tables import maximum_entropy, records_run
from congenial.synthesis.from_tables.records_run import TableRecords, Truths

Axes = tuple[str, ...]


class Undecided(Exception):
    """A run came to an outcome that its script does not tell: about a table (None: about a
    choice), with these log probabilities.
    """

    def __init__(self, axes: Axes | None, logs: Any) -> None:
        super().__init__(axes)
        self.axes, self.logs = axes, logs


@dataclass
class Script:
    """The outcomes of one run, and how many of them have come."""

    outcomes: Sequence[int]
    at: int = 0

    def next(self, logs: Any, axes: Axes | None) -> int:
        """The outcome that is told; Undecided where none is."""
        if self.at == len(self.outcomes):
            raise Undecided(axes, logs)
        self.at += 1
        return self.outcomes[self.at - 1]


class Procedure:
    """A mechanism whose outcomes are told by a script; `window`: how far noise is followed."""

    def __init__(
        self, made: TableRecords, databases: Sequence[Table], window: int, patch: pytest.MonkeyPatch
    ) -> None:
        self.made, self.databases, self.window = made, databases, window
        self.script = Script(())
        self.truths = [made.fetch(one) for one in databases]
        self._options: dict[Axes, tuple[Any, dict[bytes, Any]]] = {}
        self._laws = {axes: made.law(axes) for axes in made.scales}
        self._fits: dict[Any, Any] = {}
        self._fit = records_run.fit
        patch.setattr(records_run, "choose", self._choose)
        patch.setattr(records_run, "fit", self._remembered)
        patch.setattr(TableRecords, "law", lambda _, axes: self._scripted(axes))

    # ---- what takes the place of chance --------------------------------------------------------

    def _choose(self, scores: Any, epsilon: Any, moves: int, _: Any) -> int:
        weights = np.array([float(epsilon * one / (2 * moves)) for one in scores])
        return self.script.next(weights - logsumexp(weights), None)

    def _scripted(self, axes: Axes) -> Any:
        law = self._laws.get(axes)
        if law is None:
            return None

        def draw(truth: Any, *_: Any) -> Any:
            tables, logs = self.noise(axes)
            return [tables[self.script.next(logs[truth.tobytes()], axes)]]

        return SimpleNamespace(draw=draw, description=law.description)

    def noise(self, axes: Axes) -> tuple[Any, dict[bytes, Any]]:
        """Tables near the databases', and their log probabilities for each true table."""
        if axes not in self._options:
            truths = {one[axes].tobytes(): one[axes] for one, _ in self.truths}
            base, law = next(iter(truths.values())), self._laws[axes]
            ends = np.array([one.reshape(-1) for one in truths.values()])
            low, high = ends.min(axis=0) - self.window, ends.max(axis=0) + self.window
            cells = [range(a, b + 1) for a, b in zip(low, high, strict=True)]
            tables = np.array(list(product(*cells))).reshape(-1, *base.shape)
            flat = Table(self.made.schema, list(axes), base)
            near = tables[np.isfinite(law.log_density(tables, flat))]
            self._options[axes] = (
                near,
                {
                    key: law.log_density(near, Table(self.made.schema, list(axes), one))
                    for key, one in truths.items()
                },
            )
        return self._options[axes]

    def _remembered(self, sizes: Any, targets: Any, people: Any, **more: Any) -> Any:
        """The fit itself; the same question twice is answered from memory."""
        start = more.get("start")
        key = (
            maximum_entropy.LAMBDA,
            people,
            more.get("steps"),
            None if start is None else start.weights.tobytes(),
            *((one.axes, one.values.tobytes(), one.deviation) for one in targets),
        )
        if key not in self._fits:
            self._fits[key] = self._fit(sizes, targets, people, **more)
        return self._fits[key]

    # ---- runs ----------------------------------------------------------------------------------

    def run(self, database: int, outcomes: Sequence[int]) -> Any:
        """The release of one database for these outcomes; Undecided where they are too few."""
        self.script = Script(outcomes)
        data: tuple[Truths, int] = self.truths[database]
        return self.made.release(data, SeededRandomness(7))

    def results(self, database: int, outcomes: Sequence[int]) -> tuple[Any, ...]:
        """Everything that such a run publishes."""
        release = self.run(database, outcomes)
        measured = [(one.axes, one.scale, one.values.tobytes()) for one in release.measured]
        return [one.to_pydict() for one in release.copies], measured, release.moved

    def ahead(self, outcomes: Sequence[int]) -> tuple[Axes | None, Any] | None:
        """What comes after these outcomes, with log probabilities by database; None: nothing."""
        found = self._next(0, outcomes)
        if found is None:
            return None
        if found.axes is not None:  # the law of a table needs no run
            logs = self.noise(found.axes)[1]
            return found.axes, np.array([logs[one[found.axes].tobytes()] for one, _ in self.truths])
        choices = [self._next(at, outcomes) for at in range(len(self.databases))]
        return None, np.array([one.logs for one in choices if one is not None])

    def _next(self, database: int, outcomes: Sequence[int]) -> Undecided | None:
        try:
            self.run(database, outcomes)
        except Undecided as found:
            return found
        return None

    def paths(self) -> Iterator[tuple[Any, Any]]:
        """For all outcomes before the last table: their log probabilities, and those of the table's
        outcomes, by database.
        """
        drawn, budget = sum(law is not None for law in self._laws.values()), self.made.budget
        steps = budget.rounds if budget.chooses else drawn - 1
        yield from self._paths((), np.zeros(len(self.databases)), steps)

    def _paths(self, outcomes: tuple[int, ...], so_far: Any, left: int) -> Iterator[Any]:
        """`left`: choices to come, or tables before the last one where nothing is chosen."""
        found = self.ahead(outcomes)
        if found is None:
            yield so_far, np.zeros((len(so_far), 1))
            return
        axes, logs = found
        if axes is not None and left == 0:
            yield so_far, logs
            return
        fewer = left - int((axes is None) == self.made.budget.chooses)
        for one in range(logs.shape[1]):
            yield from self._paths((*outcomes, one), so_far + logs[:, one], fewer)

    def divergences(self, alphas: Sequence[float]) -> Any:
        """D_alpha / alpha of everything that is measured and chosen, for every ordered pair of
        databases, for orders alpha above 1; a bound from below, because noise is cut off.
        """
        k = len(self.databases)
        sums = np.full((len(alphas), k, k), -np.inf)
        for head, last in self.paths():
            logs = head[:, None] + last
            for (i, alpha), a, b in product(enumerate(alphas), range(k), range(k)):
                path = logsumexp(alpha * logs[a] + (1 - alpha) * logs[b])
                sums[i, a, b] = np.logaddexp(sums[i, a, b], path)
        return np.array(
            [one / (alpha - 1) / alpha for one, alpha in zip(sums, alphas, strict=True)]
        )

    def largest_ratios(self) -> Any:
        """The largest log ratio of any outcome, for every ordered pair of databases."""
        k = len(self.databases)
        found = np.zeros((k, k))
        for head, last in self.paths():
            logs = head[:, None] + last
            found = np.maximum(found, (logs[:, None] - logs[None]).max(axis=2))
        return found
