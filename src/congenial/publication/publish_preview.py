"""What publishing would make public, for the curator alone, before it is done.

CONFIDENTIAL until it is published: the figures, and which of them are about few people or say that
a whole group is alike. Nothing is recorded; nothing is written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np

from congenial.data.table import Table
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.ledger.spent_and_left import Repricing


@dataclass(frozen=True)
class PublishWarning:
    """CONFIDENTIAL: figures of one statement that say much about few.

    "few people": the figure counts at least one person and fewer than the threshold. "all alike":
    nobody or everybody of a group that has people meets the condition, so that the figure tells the
    answer of each of them. `where` names the first of these groups.
    """

    label: str
    kind: Literal["few people", "all alike"]
    groups: int
    of: int
    where: tuple[tuple[str, ...], ...]

    @property
    def words(self) -> str:
        """In a sentence."""
        share = f"{self.groups:,} of {self.of:,} figures"
        if self.kind == "few people":
            return f"'{self.label}': {share} are about fewer people than the threshold."
        return (
            f"'{self.label}': {share} show that everybody in a group, or nobody, meets the "
            "condition: they reveal each person's answer."
        )


@dataclass(frozen=True)
class PublishPreview:
    """CONFIDENTIAL: what would be public, what of it is new, what it would do to earlier promises.

    `repricing` is None where there is no ledger yet.
    """

    figures: Figures
    new: tuple[Statement, ...]
    warnings: tuple[PublishWarning, ...]
    repricing: Repricing | None


def warnings(figures: Figures, table: Table, fewer_than: int) -> tuple[PublishWarning, ...]:
    """Figures about fewer than so many people, and those that tell a whole group's answer."""
    found: list[PublishWarning | None] = []
    for statement, values in zip(figures.told, figures.told_values, strict=True):
        if values is None:
            continue
        shaped = np.asarray(values).reshape(-1)
        levels = [axis.levels for axis in figures.schema.axes(statement.by)]
        groups = list(product(*levels))
        if all(weight == 1 for _, weight in statement.terms):
            few = (shaped > 0) & (shaped < fewer_than)
            found.append(_warning(statement, "few people", few, groups))
        if statement.units:
            continue
        people = table.marginal(statement.by).counts.reshape(-1)
        alike = _alike(statement, shaped, people)
        found.append(_warning(statement, "all alike", alike, groups))
    return tuple(one for one in found if one is not None)


def _alike(statement: Statement, values: Any, people: Any) -> Any:
    """Groups with people in them of which nobody or everybody meets the one condition."""
    if len(statement.terms) != 1 or not statement.terms[0][0]:
        return np.zeros(len(values), dtype=bool)
    weight = statement.terms[0][1]
    return (people > 0) & ((values == 0) | (values == weight * people))


def _warning(
    statement: Statement,
    kind: Literal["few people", "all alike"],
    flags: Any,
    groups: Sequence[tuple[str, ...]],
) -> PublishWarning | None:
    at = np.flatnonzero(flags)
    if not at.size:
        return None
    where = tuple(groups[i] for i in at[:5])
    return PublishWarning(statement.label, kind, int(at.size), len(groups), where)
