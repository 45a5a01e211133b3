"""The kinds of pairs a guarantee can be about, by the name written in bundles and ledgers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, cast

from congenial.errors import BundleError
from congenial.figures.invariants import Invariants
from congenial.pairs.pairs import Pairs

# metric -> module and class; a class is loaded when it is needed and reads its own plain data
_HOME = {
    "replace-one": ("adjacency", "SemiAdjacent"),
    "replace-one value": ("sensitive_values", "SensitiveValues"),
    "symmetric difference": ("adjacency", "AddRemove"),
    "rows of one unit": ("several_rows", "SeveralRows"),
    "secret pairs": ("secrets", "SecretPairs"),
    "pairs of distributions": ("distributions", "DistributionPairs"),
}


def read_pairs(mandates: Invariants, data: Mapping[str, Any]) -> Pairs:
    """The pairs that `Pairs.to_dict` wrote, given the mandates (with their schema) beside it."""
    metric = data["metric"]
    if metric not in _HOME:
        raise BundleError(
            f"this software does not know promises about {metric!r}.",
            remedy="Use the version of congenial named in the bundle.",
        )
    return cast(Pairs, _kind(metric).from_dict(mandates, data))  # type: ignore[attr-defined]


def stored_pairs_compose(data: Mapping[str, Any]) -> bool:
    """What the pairs that `Pairs.to_dict` wrote say of `composes`; False for an unknown kind."""
    return data["metric"] in _HOME and _kind(data["metric"]).composes_as_written(data)


def _kind(metric: str) -> type[Pairs]:
    module, name = _HOME[metric]
    return cast(type[Pairs], getattr(import_module(f"congenial.pairs.{module}"), name))
