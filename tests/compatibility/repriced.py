"""Releases of 0.1.0 whose price is lower now, and nothing else: counts given their signs where the
price of a move among the cells of one sum became sharp (see CHANGELOG.md, 0.2.0, Privacy).

By fixture: the release, the noise that 0.1.0 chose for its epsilon, and what is said of it now.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from fractions import Fraction
from typing import Any


@dataclass(frozen=True)
class Repriced:
    """One release with its former noise, and the statements that follow from its sharper price."""

    release: str
    former_eps_cell: Fraction
    epsilon: str  # of all that is spent
    spent: str
    left: str
    promises: dict[tuple[str, str], str]  # by release and reading

    def chosen(self, *_: object) -> Fraction:
        """The noise that 0.1.0 chose, whatever is asked for."""
        return self.former_eps_cell


REPRICED = {
    "nested": Repriced(
        "conditioned",
        Fraction(617771171337, 4398046511104),
        "1871124363/500000000",
        "epsilon = 9.79973 at delta = 1e-06",
        "epsilon = 30.2002 at delta = 1e-06",
        {
            ("conditioned", "robust"): "epsilon = 0.992249",
            ("conditioned", "existential"): "epsilon = 0.496125",
            ("all together", "robust"): "rho = 4.21833 (zero-concentrated)",
            ("all together", "existential"): "rho = 1.53421 (zero-concentrated)",
        },
    )
}


def as_priced_now(name: str, said: dict[str, Any]) -> dict[str, Any]:
    """What 0.1.0 said of a fixture, with the prices named above in place of its own."""
    if name not in REPRICED:
        return said
    now, told = REPRICED[name], deepcopy(said)
    told["ledger"] |= {"spent": now.spent, "left": now.left}
    told["loss"] |= {"epsilon": now.epsilon}
    for row in told["reassess"]["rows"]:
        row["promise"] = now.promises.get((row["release"], row["reading"]), row["promise"])
    return told
