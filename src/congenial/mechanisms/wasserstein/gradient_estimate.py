"""Means, quantiles and regressions by the K-norm gradient mechanism: for anybody, over databases
that agree with the published figures; or given what is believed of the records.

One replaced record costs r (`WassersteinGradient` with Delta_z = 1 record, on any database), so a
conforming pair of a* records costs at most a* r (group privacy): r = epsilon / a*.
partially-private-data, Theorem 10; Reimherr and Awan 2019.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from congenial.data.arguments import COUNT, EXACT, check_fields
from congenial.data.arrays import Floats
from congenial.data.rational import fraction
from congenial.data.text_files import rows_csv
from congenial.errors import BundleError, CongenialError, DataError, GuaranteeError
from congenial.mechanisms.released import RecordRelease
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
from congenial.mechanisms.wasserstein.secret_promise import both_promises, person_promise
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.scenarios import IndependentRecords
from congenial.pairs.secrets import SecretPairs
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.semantics import neighbourhood
from congenial.privacy.tradeoff import Pure
from congenial.sampling.randomness import Randomness
from congenial.transport.delta_z import DistanceBound

VALUES = "estimate.csv"
CHOSEN = "bounds of the records, and the grid, were chosen without the data"
CITATION = "partially-private-data, Theorem 10; Reimherr and Awan 2019"


class ByGradient(ABC):
    """An estimate on a public grid, drawn by the K-norm gradient mechanism."""

    spec: EstimateSpec
    cuts: ClassVar[bool] = True  # whether numbers beyond their bounds are cut

    @property
    @abstractmethod
    def per_record(self) -> WassersteinGradient:
        """The mechanism, calibrated to how many records may differ."""

    @property
    @abstractmethod
    def guarantee(self) -> Guarantee:
        """The whole promise."""

    @property
    @abstractmethod
    def description(self) -> RecordDescription:
        """The law, and what one replaced record costs."""

    @property
    def accuracy(self) -> str:
        """The size of the error as far as it is known without the data."""
        rate, spec = self.per_record.rate, self.spec
        if spec.what == "quantile":
            return f"the rank of the released value is off by {1 / rate:.3g} on average"
        if spec.what == "mean":
            assert spec.between is not None
            side = spec.between[1] - spec.between[0]
            at = {n: side / (rate * n) for n in (1_000, 10_000)}
            errors = ", ".join(f"{error:.3g} for {n:,} records" for n, error in at.items())
            return f"the released mean is off by {errors} on average"
        return "the error falls like 1 / n; how fast depends on how the features are spread"

    @property
    def example(self) -> tuple[float, ...]:
        """Values of the same form that are about nobody: the lowest corner of the range."""
        return self.spec.statistic.box.low

    def check_data(self, numbers: Floats) -> None:
        """Refuse what numerics cannot do, before anything is spent."""
        self.per_record.check_data(self.data(numbers))

    def data(self, numbers: Floats) -> Floats:
        """What the statistic takes, from each record's numbers."""
        return self.spec.data(numbers)

    def release(
        self, numbers: Floats, randomness: Randomness | None = None, name: str = "release"
    ) -> EstimateRelease:
        """Draw once: the only call that spends privacy. `numbers`: each record's, as `query` has
        them.
        """
        drawn = self.per_record.release(self.data(numbers), randomness, name)
        return EstimateRelease(
            name,
            self.description,
            self.guarantee,
            drawn.randomness,
            drawn.publishable,
            tuple(map(float, drawn.values)),
        )


@dataclass(frozen=True, eq=False)
class GradientEstimate(ByGradient):
    """An estimate near its best value, on a public grid; pure epsilon per person.

    Formal guarantee: epsilon between any two conforming databases of the adjacency, numerics
    included. Edge cases: nothing left to protect (a* = 0) is refused, as is one row of several per
    person. The number of records is public.
    """

    adjacency: SemiAdjacent
    spec: EstimateSpec
    epsilon: Fraction

    name = "k_norm_gradient"

    def __post_init__(self) -> None:
        if not isinstance(self.adjacency, SemiAdjacent):
            raise GuaranteeError(
                "an estimate needs one record per person.", remedy="Leave out max_rows."
            )
        check_fields(self, GuaranteeError, spec=EstimateSpec, epsilon=EXACT)
        refuse_nothing_left(self.adjacency)
        self.spec.query(self.adjacency.schema)  # refuses columns that are no numbers
        _ = self.spec.statistic  # refuses a sum

    @cached_property
    def per_record(self) -> WassersteinGradient:
        """The mechanism for one replaced record, on any database."""
        schema = self.adjacency.schema
        pairs = SecretPairs(schema, (IndependentRecords("replace-one"),), level="database")
        share = self.epsilon / self.adjacency.records
        return WassersteinGradient.calibrate(pairs, share, self.spec.statistic, self.spec.points)

    @property
    def guarantee(self) -> Guarantee:
        """epsilon per person, given the published figures."""
        assumptions = (CHOSEN,)
        return Guarantee(self.adjacency, Pure(self.epsilon), "theorem", assumptions, (), CITATION)

    @property
    def description(self) -> RecordDescription:
        """The law, and what one replaced record costs."""
        inner = self.per_record.description
        law = {"estimate": self.spec.to_dict(), **inner.law}
        return replace(inner, mechanism=self.name, law=law)


@dataclass(frozen=True, eq=False)
class GradientGivenPublic(ByGradient):
    """A quantile or a regression of `people` records, given what is believed of them.

    Formal guarantee: epsilon given the public figures for whoever holds one of the beliefs of
    `pairs`, numerics included; and, whatever is believed, `description.epsilon` for each replaced
    record. Edge cases: beliefs about the law of a statistic are refused, since gradients are
    bounded by how many records differ. A sum and a mean are `MeanGivenPublic`.
    """

    pairs: SecretPairs
    spec: EstimateSpec
    people: int
    epsilon: Fraction

    name = "wasserstein_gradient"

    def __post_init__(self) -> None:
        fields = {"pairs": SecretPairs, "spec": EstimateSpec}
        check_fields(self, GuaranteeError, **fields, people=COUNT, epsilon=EXACT)
        if self.spec.adds_up or self.people < 1:
            raise GuaranteeError(
                f"gradients given public information are for a quantile or regression of 1 or more "
                f"records, not for {self.people} and '{self.spec.what}'.",
                remedy="Use MeanGivenPublic for a mean or a sum: it has half the noise.",
            )
        if self.pairs.level != "database" or self.pairs.secrets != "replace-one":
            raise GuaranteeError(
                "how much a quantile or a regression moves is bounded by the number of replaced "
                "records, but these beliefs are about something else.",
                remedy="Name beliefs about replaced records at level 'database', such as "
                "independent records.",
            )
        self.spec.query(self.pairs.schema)  # refuses columns that are no numbers
        _ = self.per_record  # refuses an epsilon or a distance that cannot be used

    @cached_property
    def per_record(self) -> WassersteinGradient:
        """The mechanism, calibrated to how many records one answer moves."""
        return WassersteinGradient.calibrate(
            self.pairs, self.epsilon, self.spec.statistic, self.spec.points
        )

    @property
    def bound(self) -> DistanceBound:
        """Delta_z, in records."""
        return self.per_record.bound

    @property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures, numerics included."""
        inner = self.per_record.guarantee
        public = f"the number of records, {self.people}, is public"
        return replace(inner, assumptions=(*inner.assumptions, public), citation=CITATION)

    @property
    def description(self) -> RecordDescription:
        """The law, and what one replaced record costs on any database."""
        inner = self.per_record.description
        law = {"estimate": self.spec.to_dict(), "people": self.people, **inner.law}
        return replace(inner, law=law)

    def data(self, numbers: Floats) -> Floats:
        """What the statistic takes; refused for another number of records."""
        refuse_another_number(numbers, self.people)
        return super().data(numbers)


def refuse_nothing_left(adjacency: SemiAdjacent) -> None:
    """Refuse figures that leave one database."""
    if neighbourhood(adjacency) == "destroyed":
        raise GuaranteeError(
            "nothing is left to protect: the published figures fix every cell.",
            remedy="Publish the estimate exactly, or leave out a figure.",
        )


def refuse_another_number(numbers: Floats, people: int) -> None:
    """Refuse data of another number of records than the public one, without saying which."""
    if len(numbers) != people:
        raise DataError(
            f"scenarios are about {people} people, but the data have a different number.",
            remedy="Give the published number.",
        )


@dataclass(frozen=True)
class EstimateRelease(RecordRelease):
    """A released estimate: one number, or the coefficients of a regression.

    A draw on a public grid, near the value that fits these data best; `spec` says of what, and
    within which public bounds. It is about the data, not about a population they may be a sample
    of, and has no interval (`interval` refuses): the law of its error depends on the data, but for
    a mean or a sum of a public number of records: its noise is double geometric on the grid.
    """

    kind: ClassVar[str] = "estimate"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (VALUES, "the estimate: name and value, one row each"),
    )
    usage: ClassVar[tuple[str, ...]] = ("release.values", "release.spec.names")

    values: tuple[float, ...]

    @cached_property
    def spec(self) -> EstimateSpec:
        """What was estimated, with its public bounds."""
        return EstimateSpec.read(self.description.law["estimate"])

    @cached_property
    def persons(self) -> Guarantee | None:
        """What is promised without any assumption about beliefs."""
        if isinstance(self.guarantee.adjacency, SecretPairs):
            return person_promise(self.description, self.published)
        return self.guarantee

    def explain(self) -> str:
        """Its promise; given public information, the one to anybody as well."""
        if self.persons is None or self.persons is self.guarantee:
            return self.guarantee.explain()
        return both_promises(self.guarantee, self.persons)

    @property
    def on_grid(self) -> bool:
        """Whether the values lie on the public grid."""
        if "unit" in self.description.law:
            unit = fraction(self.description.law["unit"])
            return all(v == float(round(Fraction(v) / unit) * unit) for v in self.values)
        grid = self.description.law["grid"]
        axes = [
            np.linspace(low, high, grid["points"])
            for low, high in zip(grid["low"], grid["high"], strict=True)
        ]
        return all(value in axis for value, axis in zip(self.values, axes, strict=True))

    def to_arrow(self) -> Any:
        """Names and values as an Arrow table."""
        import pyarrow as pa

        return pa.table({"what": list(self.spec.names), "value": list(self.values)})

    def payload(self) -> dict[str, bytes]:
        """Files for a bundle besides the common ones."""
        rows = zip(self.spec.names, self.values, strict=True)
        return {VALUES: rows_csv([["what", "value"], *rows]).encode()}

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Inverse of `payload`, given the common parts."""
        try:
            rows = list(csv.DictReader(io.StringIO(payload[VALUES].decode())))
            release = cls(**common, values=tuple(float(row["value"]) for row in rows))
            if [row["what"] for row in rows] != list(release.spec.names):
                raise ValueError
        except (KeyError, TypeError, ValueError, CongenialError):
            raise BundleError(
                f"the estimate of '{common['name']}' cannot be read.",
                remedy="Get a new copy of the bundle.",
            ) from None
        return release
