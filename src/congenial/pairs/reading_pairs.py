"""The kinds of pairs a guarantee can be about, by the name written in bundles and ledgers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from congenial.errors import BundleError
from congenial.figures.invariants import Invariants
from congenial.pairs.pairs import Pairs


class KindOfPairs(Protocol):
    """A class of pairs that reads its own plain data."""

    def from_dict(self, mandates: Invariants, data: Mapping[str, Any], /) -> Pairs:
        """The pairs that `Pairs.to_dict` wrote."""

    def composes_as_written(self, data: Mapping[str, Any], /) -> bool:
        """Whether promises about them add up."""


def _semi_adjacent() -> KindOfPairs:
    from congenial.pairs.adjacency import SemiAdjacent

    return SemiAdjacent


def _add_remove() -> KindOfPairs:
    from congenial.pairs.adjacency import AddRemove

    return AddRemove


def _sensitive_values() -> KindOfPairs:
    from congenial.pairs.sensitive_values import SensitiveValues

    return SensitiveValues


def _several_rows() -> KindOfPairs:
    from congenial.pairs.several_rows import SeveralRows

    return SeveralRows


def _secret_pairs() -> KindOfPairs:
    from congenial.pairs.secrets import SecretPairs

    return SecretPairs


def _distribution_pairs() -> KindOfPairs:
    from congenial.pairs.distributions import DistributionPairs

    return DistributionPairs


# metric -> its class, loaded when it is needed
_LOADERS: dict[str, Callable[[], KindOfPairs]] = {
    "replace-one": _semi_adjacent,
    "replace-one value": _sensitive_values,
    "symmetric difference": _add_remove,
    "rows of one unit": _several_rows,
    "secret pairs": _secret_pairs,
    "pairs of distributions": _distribution_pairs,
}


def read_pairs(figures: Invariants, data: Mapping[str, Any]) -> Pairs:
    """The pairs that `Pairs.to_dict` wrote, given the figures (with their schema) beside it."""
    metric = data["metric"]
    if metric not in _LOADERS:
        raise BundleError(
            f"this software does not know promises about {metric!r}.",
            remedy="Use the version of congenial named in the bundle.",
        )
    return _LOADERS[metric]().from_dict(figures, data)


def stored_pairs_compose(data: Mapping[str, Any]) -> bool:
    """What the pairs that `Pairs.to_dict` wrote say of `composes`; False for an unknown kind."""
    metric = data["metric"]
    return metric in _LOADERS and _LOADERS[metric]().composes_as_written(data)
