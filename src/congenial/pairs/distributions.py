"""DistributionPairs: laws of a whole dataset's statistics that must look alike.

Not a relation between databases: each side is a scenario of how the dataset came about, as a law of
the statistics to be released (distribution-privacy, Definition 2.2). The promise holds over the
randomness of data and mechanism together, and only as far as the laws are right; it says nothing
about single persons.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import (
    INTEGER,
    PLAIN_NAMES,
    REAL,
    SEVERAL,
    TEXT,
    Rule,
    check_fields,
    listed,
    one_of,
    optional,
    pairs_of,
    takes,
)
from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.vector_statistics import Statistics
from congenial.errors import BundleError, StructureError
from congenial.figures.figures import Figures
from congenial.pairs.pairs import Pairs
from congenial.pairs.stated_laws import DiscreteLaw, GaussianLaw, VectorLaw

LAWS = listed(one_of(GaussianLaw, DiscreteLaw))
SINGULAR = 1e-10  # least eigenvalue of a correlation matrix, relative to its greatest


@dataclass(frozen=True)
class Origin:
    """Where the laws come from.

    kind: "given" by an expert; "fitted" as Gaussians to resampled subsets of modelling data;
    "empirical" laws of such subsets; "moments", exact means and covariances of such subsets.
    replications: subsets per scenario. apart: whether modelling and released data were found to
    have no record in common ("checked"), or that could not be checked ("assumed").
    """

    kind: Literal["given", "fitted", "empirical", "moments"] = "given"
    replications: int = 0
    apart: Literal["checked", "assumed", ""] = ""

    def __post_init__(self) -> None:
        if self.apart not in ("checked", "assumed", ""):
            raise StructureError(
                f"whether records are apart is {str(self.apart)[:40]!r}.",
                remedy="Give 'checked', 'assumed' or nothing.",
            )

    @property
    def words(self) -> str:
        """For an assumption of the promise."""
        if self.kind == "given":
            return "the distributions of the statistics are as stated"
        subsets = f"{self.replications:,} subsets of modelling data per scenario"
        origins = {
            "fitted": f"normal distributions fitted to {subsets}",
            "empirical": f"empirical distributions of {subsets}",
            "moments": "normal distributions with the moments of random subsets of modelling data",
        }[self.kind]
        return f"the statistics follow {origins}"


@dataclass(frozen=True)
class DistributionPairs(Pairs):
    """Pairs (i, j) of laws, in both orders; `statistics` names the components of the vector.

    `hidden` says what the pairs are about; it continues "two ways in which the whole dataset may
    have come about, ". `records`: the number of records, taken as public. `change` and `spacing`:
    what replacing one record moves each statistic at most, and the grid it lives on (`Statistics`);
    empty where unknown. Build with `given` or with `fit_pairs` of `mechanisms.distribution`.
    """

    metric = "pairs of distributions"
    subject = "for the whole dataset"
    side = "scenario"

    schema: Schema
    statistics: tuple[str, ...]
    laws: tuple[VectorLaw, ...]
    pairs: tuple[tuple[int, int], ...]
    hidden: str = ""
    origin: Origin = Origin()
    records: int | None = None
    change: tuple[float, ...] = ()
    spacing: tuple[float, ...] = ()
    definitions: tuple[Mapping[str, Any], ...] = ()

    composes = False  # two releases that hide a property each can reveal it together

    def __post_init__(self) -> None:
        self._check_types()
        self._check_pairs()
        for law in self.laws:
            if law.dimension != len(self.statistics):
                raise StructureError(
                    f"law {law.label!r} is about {law.dimension} statistics, not "
                    f"{len(self.statistics)}.",
                    remedy="Give one number per statistic.",
                )
            if isinstance(law, GaussianLaw):
                self._check_regular(law)
        for i, j in self.pairs:
            if self._same_law(self.laws[i], self.laws[j]):
                raise StructureError(
                    f"laws {self.laws[i].label!r} and {self.laws[j].label!r} are the same: the gap "
                    "is 0 and there is nothing to hide.",
                    remedy="Give two different laws.",
                )

    @classmethod
    @takes(
        StructureError,
        query=Statistics,
        laws=LAWS,
        pairs=optional(pairs_of(TEXT, TEXT)),
        records=optional(SEVERAL),
        hidden=TEXT,
        origin=optional(Origin),
    )
    def given(
        cls,
        query: Statistics,
        laws: Sequence[VectorLaw],
        pairs: Sequence[tuple[str, str]] | None = None,
        *,
        records: int | None = None,
        hidden: str = "",
        origin: Origin | None = None,
    ) -> DistributionPairs:
        """Laws of the statistics of `query`; pairs by label, or all of them."""
        at = {law.label: i for i, law in enumerate(laws)}
        if len(at) != len(laws):
            raise StructureError("two laws have the same label.", remedy="Give each its own label.")
        unknown = [label for pair in pairs or () for label in pair if label not in at]
        if unknown:
            raise StructureError(
                f"there is no law {unknown[0]!r}.", remedy=f"Known: {', '.join(at)}."
            )
        every = [(i, j) for i in range(len(laws)) for j in range(i + 1, len(laws))]
        chosen = every if pairs is None else [(at[first], at[other]) for first, other in pairs]
        return cls(
            query.schema,
            query.names,
            tuple(laws),
            tuple(chosen),
            hidden,
            origin or Origin(),
            records,
            () if records is None else tuple(query.change(records).tolist()),
            () if records is None else tuple(query.spacing(records).tolist()),
            tuple(part.to_dict() for part in query.parts),
        )

    def _check_types(self) -> None:
        rules: dict[str, Rule | type] = {
            "schema": Schema,
            "statistics": PLAIN_NAMES,
            "laws": LAWS,
            "pairs": pairs_of(INTEGER, INTEGER),
            "hidden": TEXT,
            "origin": Origin,
            "records": optional(SEVERAL),
            "change": listed(REAL),
            "spacing": listed(REAL),
        }
        check_fields(self, StructureError, **rules)

    def _check_pairs(self) -> None:
        if not self.statistics or not self.pairs:
            raise StructureError(
                "there is no statistic, or no pair of laws to hide.", remedy="Give at least one."
            )
        for i, j in self.pairs:
            if not (0 <= i < len(self.laws) and 0 <= j < len(self.laws)):
                raise StructureError(f"the pair ({i}, {j}) names a law that does not exist.")

    def _check_regular(self, law: GaussianLaw) -> None:
        """Refuse a singular covariance, naming the statistics that make it so."""
        deviation = np.sqrt(np.maximum(np.diag(law.covariance), 0))
        constant = [
            name for name, size in zip(self.statistics, deviation, strict=True) if size == 0
        ]
        if constant:
            raise StructureError(
                f"in law {law.label!r} the statistic {constant[0]!r} is constant.",
                remedy="Leave it out: it reveals either nothing or the property itself.",
            )
        correlation = law.covariance / np.outer(deviation, deviation)
        values, vectors = np.linalg.eigh(correlation)
        if values[0] <= SINGULAR * values[-1]:
            weight = np.abs(vectors[:, 0])
            involved = [
                name
                for name, size in zip(self.statistics, weight, strict=True)
                if size > 0.1 * weight.max()
            ]
            raise StructureError(
                f"in law {law.label!r} the covariance is singular: {', '.join(involved)} determine "
                "each other.",
                remedy="Leave one of them out.",
            )

    @staticmethod
    def _same_law(one: VectorLaw, other: VectorLaw) -> bool:
        if isinstance(one, DiscreteLaw) and isinstance(other, DiscreteLaw):
            mine, theirs = (set(zip(x.atoms, x.masses, strict=True)) for x in (one, other))
            return mine == theirs
        return type(one) is type(other) and replace(one, label=other.label) == other

    # ---- Pairs -------------------------------------------------------------------------------

    @property
    def words(self) -> str:
        """The pairs that must look alike, as a clause of the promise."""
        size = "" if self.records is None else f" of {self.records:,} records"
        hidden = self.hidden
        if not hidden:
            named = [
                f"{self.laws[i].label!r} and {self.laws[j].label!r}" for i, j in self.pairs[:4]
            ]
            more = f" or {len(self.pairs) - 4} further pairs" if len(self.pairs) > 4 else ""
            hidden = f"called {' or '.join(named)}{more}"
        return f"two ways in which the whole dataset{size} may have come about, {hidden}"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the laws are part of the promise and are published with it."""
        return {
            "metric": self.metric,
            "words": self.words,
            "statistics": list(self.statistics),
            "definitions": [dict(entry) for entry in self.definitions],
            "laws": [law.to_dict() for law in self.laws],
            "pairs": [list(pair) for pair in self.pairs],
            "hidden": self.hidden,
            "origin": {
                "kind": self.origin.kind,
                "replications": self.origin.replications,
                "apart": self.origin.apart,
            },
            "records": self.records,
            "change": [None if np.isinf(entry) else entry for entry in self.change],
            "spacing": list(self.spacing),
        }

    @classmethod
    def from_dict(cls, figures: Figures, data: Mapping[str, Any]) -> DistributionPairs:
        """Inverse of `to_dict`, given the schema."""
        try:
            return cls(
                figures.schema,
                tuple(data["statistics"]),
                tuple(VectorLaw.from_dict(entry) for entry in data["laws"]),
                tuple((int(i), int(j)) for i, j in data["pairs"]),
                data["hidden"],
                Origin(**data["origin"]),
                data["records"],
                tuple(np.inf if entry is None else float(entry) for entry in data["change"]),
                tuple(map(float, data["spacing"])),
                tuple(data["definitions"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"the pairs of distributions cannot be read ({type(error).__name__}).",
                remedy="Use the version of congenial named in the bundle.",
            ) from None

    # ---- what mechanisms need ------------------------------------------------------------------

    @property
    def dimension(self) -> int:
        """Number of statistics, m."""
        return len(self.statistics)

    @cached_property
    def differences(self) -> Floats:
        """Differences of means, one row per pair, each right to the last bit of a double."""
        return np.array([_difference(self.laws[i], self.laws[j]) for i, j in self.pairs])

    @property
    def gaussian(self) -> bool:
        """Whether every law is Gaussian."""
        return all(isinstance(law, GaussianLaw) for law in self.laws)

    @property
    def fitted(self) -> bool:
        """Whether the laws come from data and have a sampling error."""
        return self.origin.kind != "given"

    @cached_property
    def equal_covariances(self) -> bool:
        """Whether the two laws of every pair are Gaussian with the same covariance, exactly."""
        return self.gaussian and all(
            np.array_equal(self.laws[i].covariance, self.laws[j].covariance) for i, j in self.pairs
        )

    @cached_property
    def translations(self) -> bool:
        """Whether the two laws of every pair are translations of each other, exactly."""
        if self.gaussian:
            return self.equal_covariances
        for i, j in self.pairs:
            law, other = self.laws[i], self.laws[j]
            if not isinstance(law, DiscreteLaw) or not isinstance(other, DiscreteLaw):
                return False
            if not law.shifted_to(other):
                return False
        return True


def _difference(one: VectorLaw, other: VectorLaw) -> Floats:
    """Difference of the means; means far from 0 lose no digits."""
    if isinstance(one, DiscreteLaw) and isinstance(other, DiscreteLaw):
        exact = zip(one.exact_mean, other.exact_mean, strict=True)
        return np.array([float(mine - theirs) for mine, theirs in exact])
    return one.mean - other.mean
