"""Certified mode on the same column: income on public bins, given age and earner status.

Partial synthesis as in the paper: age and earner status are public, income is protected. A
multinomial for each of their combinations, on bins fixed without the data. At M = Delta it promises
by proof, for every dataset, what the paper's mechanism estimates for one: epsilon = 2 M per copy.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from congenial.data.schema import Schema
from congenial.data.tabulate import tabulate
from congenial.figures.figures import publish
from congenial.figures.statements import margin
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.papers.pseudo_posterior.expenditure import LEVELS, Sample
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.record_model import Floats

PUBLIC = ("age", "earner")
EDGES = (
    -100_000, 0, 1, *range(5_000, 60_001, 5_000), *range(70_000, 120_001, 10_000),
    *range(140_000, 200_001, 20_000), 300_000, 500_000, 2_000_000,
)  # fmt: skip
SCHEMA = Schema.from_dict(
    {
        **{name: {"levels": list(LEVELS[name])} for name in PUBLIC},
        "family_income": {"edges": list(EDGES)},
    }
)


def certified_copies(sample: Sample, delta: float, copies: int, seed: int) -> tuple[Floats, ...]:
    """Synthetic incomes at M = delta (rounded down), epsilon = 2 M for each copy: a theorem."""
    income = np.rint(sample.income).astype(np.int64)
    data = pa.table({**{name: sample.columns[name] for name in PUBLIC}, "family_income": income})
    table = tabulate(data, SCHEMA)
    pairs = SensitiveValues(publish(table, margin(*PUBLIC)), PUBLIC)
    bound = Fraction(int(delta * 1000), 1000)
    columns = (Column("family_income", given=PUBLIC),)
    synthesizer = Synthesizer(pairs, columns, bound, copies=copies, public=PUBLIC)
    release = synthesizer.release(table, SeededRandomness(seed))
    return tuple(
        np.asarray(release.to_arrow(at + 1)["family_income"], dtype=float) for at in range(copies)
    )
