"""Pairs as bundles and ledgers have them: read by the name of their metric."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from congenial.errors import BundleError
from congenial.figures.figures import Figures
from congenial.pairs.adjacency import AddRemove, SemiAdjacent
from congenial.pairs.pairs import Pairs
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.pairs.several_rows import SeveralRows, TablesOfUnits


class KindOfPairs(Protocol):
    """A class of pairs that reads its own plain data."""

    def from_dict(self, figures: Figures, data: Mapping[str, Any], /) -> Pairs:
        """The pairs that `Pairs.to_dict` wrote."""

    def composes_as_written(self, data: Mapping[str, Any], /) -> bool:
        """Whether promises about them add up."""


KINDS: dict[str, KindOfPairs] = {
    "replace-one": SemiAdjacent,
    SensitiveValues.metric: SensitiveValues,
    AddRemove.metric: AddRemove,
    SeveralRows.metric: SeveralRows,
    TablesOfUnits.metric: TablesOfUnits,
    SecretPairs.metric: SecretPairs,
}


def _kind(metric: str) -> KindOfPairs | None:
    if metric == "pairs of distributions":
        from congenial.pairs.distributions import DistributionPairs  # with it, pyarrow

        return DistributionPairs
    return KINDS.get(metric)


def read_pairs(figures: Figures, data: Mapping[str, Any]) -> Pairs:
    """The pairs that `Pairs.to_dict` wrote, given the figures (with their schema) beside it."""
    kind = _kind(data["metric"])
    if kind is None:
        raise BundleError(
            f"this version of congenial does not know promises about {data['metric']!r}.",
            remedy="Use the version of congenial named in the bundle.",
        )
    return kind.from_dict(figures, data)


def stored_pairs_compose(data: Mapping[str, Any]) -> bool:
    """What the pairs that `Pairs.to_dict` wrote say of `composes`; False for an unknown kind."""
    kind = _kind(data["metric"])
    return kind is not None and kind.composes_as_written(data)
