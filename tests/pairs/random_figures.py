"""Figures drawn at random, as nobody would choose them."""

from __future__ import annotations

import random

from congenial.data.schema import Schema
from congenial.figures.statements import Statement, count, linear, total


def condition(rng: random.Random, schema: Schema) -> str:
    """Some levels of some attributes."""
    parts = []
    for name in rng.sample(schema.names, rng.randint(1, len(schema.names))):
        known = schema.attribute(name).levels
        some = sorted(rng.sample(known, rng.randint(1, len(known) - 1)))
        parts.append(f"{name} in ({', '.join(map(repr, some))})")
    return " and ".join(parts)


def figures(rng: random.Random, schema: Schema) -> tuple[Statement, ...]:
    """One to four totals, counts and weighted sums."""
    found = []
    for _ in range(rng.randint(1, 4)):
        kind = rng.random()
        if kind < 0.3:
            axes = rng.randint(0, min(2, len(schema.names)))
            found.append(total(by=tuple(rng.sample(schema.names, axes))))
        elif kind < 0.8:
            found.append(count(condition(rng, schema)))
        else:
            weights = {condition(rng, schema): rng.randint(1, 3) for _ in range(2)}
            found.append(linear(weights))
    return tuple(dict.fromkeys(found))
