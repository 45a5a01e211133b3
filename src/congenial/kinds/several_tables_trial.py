"""What to expect of printed counts, tried on people made up from the public figures alone.

Whole counts depend on the data through their signs, so their error has no law that holds for every
table. It is tried instead: made-up people are spread over the cells as evenly as the figures allow,
the tables are drawn from them with the noise of the plan, fitted and compared. Nothing is read of
the confidential data.

A few draws of a small table are few numbers, which by chance may lie far from what their standard
deviation says. Printed counts and estimates share that chance. So draws only tell how much larger
or smaller the error of printed counts is, and the standard deviation of the estimates is known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from congenial.mechanisms.joint_tables import JointTables
from congenial.sampling.randomness import SeededRandomness
from congenial.tables.intervals import ends
from congenial.tables.joint_estimator import Answer
from congenial.tables.linear_estimates import in_order

DRAWS = 3
LARGEST = 2_000_000  # cells of which a trial is quick
LEVEL = 0.9


@dataclass(frozen=True)
class PrintedTrial:
    """Per table: root mean square error of printed counts, and their share inside intervals; no
    numbers (NaN) for a table without printed counts.
    """

    errors: tuple[float, ...]
    inside: tuple[float, ...]


def try_printed(made: JointTables) -> PrintedTrial | None:
    """The trial; None where no whole counts are printed, or it would take long."""
    made_up = made.estimator.rehearsal
    if isinstance(made_up, str) or made.estimator.measurements.size > LARGEST:
        return None
    people = made_up.cells
    tables = made.description.tables
    squares, inside = np.zeros((2, len(tables))), np.zeros(len(tables))
    for draw in range(DRAWS):
        answered = _drawn(made, people, SeededRandomness(draw + 1))
        for at, names in enumerate(tables):
            counts, truth = answered.counts[at], _table(made, people, names)
            if counts is None:
                squares[0, at] = inside[at] = np.nan
                continue
            low, high = ends(answered.estimates[at], made.estimator.deviations(names).values, LEVEL)
            pair = (counts, answered.estimates[at])
            squares[:, at] += [float(np.mean((values - truth) ** 2)) / DRAWS for values in pair]
            inside[at] += float(np.mean((low <= counts) & (counts <= high))) / DRAWS
    errors = (_error(made, names, *squares[:, at]) for at, names in enumerate(tables))
    return PrintedTrial(tuple(errors), tuple(inside.tolist()))


def _error(made: JointTables, names: tuple[str, ...], printed: float, estimated: float) -> float:
    """Root mean square error of printed counts: that of the estimates, and what the fit changed.

    `printed`, `estimated`: mean squares in the draws. Rounding adds to a mean square; counts that
    cannot be negative are better by a factor.
    """
    variance = float(np.mean(made.estimator.deviations(names).values ** 2))
    if printed >= estimated:
        return float(np.sqrt(variance + printed - estimated))
    return float(np.sqrt(variance * printed / estimated))


def _table(made: JointTables, cells: Any, names: tuple[str, ...]) -> Any:
    """A table of made-up people."""
    work = made.estimator.measurements
    return in_order(work.margin(names).totals(cells), names, work)


def _drawn(made: JointTables, cells: Any, source: SeededRandomness) -> Answer:
    values = {
        one.description.table: one.draw(_table(made, cells, one.description.table), source, 1)[0]
        for one in made.mechanisms
    }
    return made.estimator.answer([values.get(names) for names in made.description.tables])
