"""A mean or a sum with noise on a public grid: given what is believed of the records, or for
anybody where the number of people is exact.

p(y | x) ~ exp(-epsilon |y - T(x)| / Delta_z) on the multiples of a public unit
(partially-private-data, Theorem 9 and Example 1; the normaliser is constant, so c = 1). Records are
independent, under any laws, or normal with public means. The number of records is public, and so
a sum is that number times the mean.

Numbers of independent records are cut at the bounds. Those of normal ones must not be: given a
public mean the others move against one answer, cut ones do not, and the mean moves further than
Delta_z. So the bounds must hold every number of the schema's column, and nothing is cut.

For anybody (`MeanOfEverybody`): two look-alikes differ in at most a* records, each of which moves a
sum by at most U - L, so noise of a* (U - L) / epsilon on the sum is enough: half of what gradients
need, whose normaliser moves with the data.

The statistic is rounded to the grid, which may move two values apart by one unit more, and the sum
of the records is rounded to a double: both are inside the promise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from congenial.data.arguments import COUNT, check_fields
from congenial.data.arrays import Floats, Ints
from congenial.data.attribute import REFUSE
from congenial.errors import DataError, GuaranteeError
from congenial.figures.support import support
from congenial.mechanisms.wasserstein.base_measure import naive
from congenial.mechanisms.wasserstein.estimate_spec import EstimateSpec
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.gradient_estimate import (
    EstimateRelease,
    refuse_another_number,
    refuse_nothing_left,
)
from congenial.mechanisms.wasserstein.secret_promise import promise, usable
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.scenarios import ConditionalNormal, IndependentRecords
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import rational
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import above
from congenial.privacy.tradeoff import Pure
from congenial.sampling.randomness import Randomness
from congenial.transport.delta_z import DistanceBound, delta_z

FINE = 1000  # units in Delta_z, at least: rounding costs a thousandth of the noise
LARGEST = 2**52  # grid points whose number is exact as a double
SUPPOSED = 1000  # people for whom errors are stated before their number is published
CITATION = "Dwork, McSherry, Nissim and Smith 2006; semi-dp for conforming databases"
CHOSEN = "the bounds of the records were chosen without the data"
UNCUT = "the belief is that the numbers are normal, without limits"


@dataclass(frozen=True, eq=False)
class MeanGivenPublic:
    """The mean or the sum of `people` records within public bounds, near the true one.

    Formal guarantee: epsilon given the public figures for whoever holds one of the beliefs of
    `pairs`; and, whatever is believed, `description.epsilon` for each replaced record. Edge cases:
    beliefs under which no record moves it (Delta_z = 0) are refused.
    """

    pairs: SecretPairs
    spec: EstimateSpec
    people: int
    epsilon: Fraction

    name = "wasserstein_exponential"

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, pairs=SecretPairs, spec=EstimateSpec, people=COUNT)
        object.__setattr__(self, "epsilon", rational(self.epsilon))
        if not self.spec.adds_up or self.people < 1:
            raise GuaranteeError(
                f"noise on a grid is for a mean or sum of 1 or more records, not for {self.people} "
                f"and '{self.spec.what}'.",
                remedy="Estimate a mean or a sum, or use GradientGivenPublic.",
            )
        for scenario in self.pairs.scenarios:
            self._refuse_other(scenario)
        self.spec.query(self.pairs.schema)  # refuses columns that are no numbers
        if self._largest > LARGEST * self.unit:
            raise GuaranteeError(
                "the bounds are too far from zero for this noise.",
                remedy="Use narrower bounds, or a smaller epsilon.",
            )
        _ = self.on_grid  # refuses an epsilon that cannot be used

    def _refuse_other(self, one: object) -> None:
        """Refuse beliefs about other records than these."""
        if isinstance(one, ConditionalNormal):
            right = one.n == self.people and one.diameter == self.width
            self._refuse_cut()
        else:
            right = isinstance(one, IndependentRecords) and one.secrets == "replace-one"
            right = right and self.pairs.level == "database"
        if not right:
            raise GuaranteeError(
                "the beliefs are not about the mean of these records within these bounds.",
                remedy="Name independent records at level 'database', or normal records of this "
                "number and width.",
            )

    def _refuse_cut(self) -> None:
        """Refuse bounds beyond which the schema has numbers, where these must not be cut."""
        low, high = self._ends
        column = self.pairs.schema.attribute(self.spec.response)
        whole = (column.low, column.high)
        ends: list[int | Fraction] = [end for end in whole if end is not None]
        if column.kind == "bins" and column.top is None and column.bottom is None:
            ends = [column.edges[0], column.edges[-1]]
        inside = len(ends) == 2 and all(low <= end <= high for end in ends)
        if not inside or column.other != REFUSE:
            raise GuaranteeError(
                f"normal records have no limits, but column {column.name!r} may have some outside "
                f"{self.spec.between}.",
                remedy="Let `between` hold all numbers of its levels (integers, or edges without "
                "top, bottom or other), or believe independent records.",
            )

    @property
    def cuts(self) -> bool:
        """Whether numbers beyond the bounds are cut; otherwise they are refused."""
        return not any(isinstance(scenario, ConditionalNormal) for scenario in self.pairs.scenarios)

    @property
    def _ends(self) -> tuple[Fraction, Fraction]:
        assert self.spec.between is not None
        low, high = self.spec.between
        return Fraction(low), Fraction(high)

    @property
    def width(self) -> Fraction:
        """How far two values of one record can be apart."""
        return self._ends[1] - self._ends[0]

    @property
    def _weight(self) -> Fraction:
        """What the number of one record is multiplied by."""
        return Fraction(1) if self.spec.what == "sum" else Fraction(1, self.people)

    @property
    def _largest(self) -> Fraction:
        return max(map(abs, self._ends)) * self.people * self._weight

    @cached_property
    def bound(self) -> DistanceBound:
        """Delta_z: of the statistic, or in records where these are independent."""
        distance = delta_z(self.pairs)
        if distance.measure == "records" or self.spec.what == "mean":
            return distance
        many = self.people  # beliefs are about the mean, and a sum moves so many times as far
        return replace(distance, value=above(Fraction(distance.value) * many), at_least=0.0)

    @property
    def distance(self) -> Fraction:
        """How far the law of the statistic moves with one answer."""
        distance = usable(self.bound)
        return distance * self.ordinary if self.bound.measure == "records" else distance

    @property
    def ordinary(self) -> Fraction:
        """How far one replaced record can move the statistic, whatever is believed."""
        return self.width * self._weight

    @cached_property
    def unit(self) -> Fraction:
        """The spacing of the grid: a power of ten, a thousandth of Delta_z or less."""
        target = self.distance / FINE
        unit = Fraction(10) ** math.floor(math.log10(target))
        while unit > target:
            unit /= 10
        while 10 * unit <= target:
            unit *= 10
        return unit

    def _reach(self, distance: Fraction) -> Fraction:
        """How many units apart two values can be on the grid that are this far apart."""
        rounded = self._largest * Fraction(1, 2**52)  # of two sums, half a unit in the last place
        return (distance + rounded) / self.unit + 1

    @cached_property
    def on_grid(self) -> WassersteinExponential:
        """The mechanism on whole numbers of units."""
        ordinary = self._reach(self.ordinary)
        bound = self.bound
        if bound.measure != "records":
            bound = replace(bound, value=above(self._reach(usable(bound))))
        return WassersteinExponential(
            self.pairs, bound, naive(1), self.epsilon, "l1", ordinary=ordinary
        )

    @cached_property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures; rounding to the grid is inside it."""
        records = self.bound.measure == "records"
        in_units = "records" if records else f"the {self.spec.what}'s units"
        assumptions = (
            f"Delta_z = {self.bound.value:g} in {in_units}, before rounding",
            f"the number of records, {self.people}, is public, and the released {self.spec.what} "
            f"is a multiple of {self.unit}",
            CHOSEN,
            *(() if self.cuts else (UNCUT,)),
        )
        ordinary = Fraction(1) if records else self.ordinary
        return promise(self.pairs, self.epsilon, self.bound, ordinary=ordinary, more=assumptions)

    @property
    def description(self) -> RecordDescription:
        """The law, and what one replaced record costs on any database."""
        law = {
            "estimate": self.spec.to_dict(),
            "people": self.people,
            "unit": str(self.unit),
            "rate": str(self.on_grid.rate),
            "delta_z": {"value": self.bound.value, "measure": self.bound.measure},
        }
        return replace(self.on_grid.description, law=law)

    @property
    def accuracy(self) -> str:
        """The mean size of the noise."""
        size = float(self.unit / self.on_grid.rate)
        return f"the released {self.spec.what} is off by {size:.3g} on average"

    @property
    def example(self) -> tuple[float, ...]:
        """Values of the same form that are about nobody: the least there can be."""
        low = self._ends[0] * self.people * self._weight
        return on_unit((round(low / self.unit),), self.unit)

    def check_data(self, numbers: Floats) -> None:
        """Refuse another number of records, before anything is spent."""
        self.rounded(numbers)

    def rounded(self, numbers: Floats) -> Ints:
        """The statistic as a number of units; refused for another number of records."""
        refuse_another_number(numbers, self.people)
        low, high = map(float, self._ends)
        if not self.cuts and np.any((numbers < low) | (numbers > high)):
            raise DataError(
                "a record's number is outside the bounds, and normal records have no limits.",
                remedy="Widen `between` and the column's range to all possible numbers.",
            )
        total = math.fsum(np.clip(numbers, low, high).reshape(-1))
        return np.array([round(Fraction(total) * self._weight / self.unit)], dtype=np.int64)

    def release(
        self, numbers: Floats, randomness: Randomness | None = None, name: str = "release"
    ) -> EstimateRelease:
        """Draw once: the only call that spends privacy. `numbers`: each record's."""
        drawn = self.on_grid.release(self.rounded(numbers), randomness, name)
        return EstimateRelease(
            name,
            self.description,
            self.guarantee,
            drawn.randomness,
            drawn.publishable,
            on_unit(drawn.values, self.unit),
        )


@dataclass(frozen=True, eq=False)
class MeanOfEverybody:
    """The mean or the sum of everybody's number, where the exact figures tell how many there are.

    Formal guarantee: epsilon between any two conforming databases of the adjacency: one replaced
    record costs epsilon / a*, on any database (`MeanGivenPublic`, independent records). Edge cases:
    nothing left to protect is refused; before the figures have values, the noise is that of
    `SUPPOSED` people and nothing can be drawn.
    """

    adjacency: SemiAdjacent
    spec: EstimateSpec
    epsilon: Fraction

    name = "grid_geometric"
    cuts = True

    def __post_init__(self) -> None:
        check_fields(self, GuaranteeError, adjacency=SemiAdjacent, spec=EstimateSpec)
        object.__setattr__(self, "epsilon", rational(self.epsilon))
        if not self.adjacency.figures.tells_people:
            raise GuaranteeError(
                "noise on the sum needs the number of people as an exact figure.",
                remedy="Publish it (total = true), or use GradientEstimate.",
            )
        refuse_nothing_left(self.adjacency)
        _ = self.per_record

    @cached_property
    def people(self) -> int | None:
        """The number of people, once the figures have values."""
        figures = self.adjacency.figures
        totals = None if figures.values is None else support(figures, ()).totals
        return None if totals is None else int(totals[0])

    @cached_property
    def per_record(self) -> MeanGivenPublic:
        """The mechanism for one replaced record, on any database."""
        schema = self.adjacency.schema
        pairs = SecretPairs(schema, (IndependentRecords("replace-one"),), level="database")
        share = self.epsilon / self.adjacency.records
        return MeanGivenPublic(pairs, self.spec, self.people or SUPPOSED, share)

    @property
    def unit(self) -> Fraction:
        """The spacing of the grid."""
        return self.per_record.unit

    @property
    def guarantee(self) -> Guarantee:
        """epsilon per person, given the published figures; rounding to the grid is inside it."""
        return Guarantee(self.adjacency, Pure(self.epsilon), "theorem", (CHOSEN,), (), CITATION)

    @property
    def description(self) -> RecordDescription:
        """The law, and what one replaced record costs."""
        inner = self.per_record.description
        law = {key: value for key, value in inner.law.items() if key != "delta_z"}
        return replace(inner, mechanism=self.name, law=law)

    @property
    def accuracy(self) -> str:
        """The mean size of the noise."""
        text = self.per_record.accuracy
        many = self.people is None and self.spec.what == "mean"
        return f"{text} for {SUPPOSED:,} records" if many else text

    @property
    def example(self) -> tuple[float, ...]:
        """Values of the same form that are about nobody: the least there can be."""
        return self.per_record.example

    def check_data(self, numbers: Floats) -> None:
        """Refuse another number of records, before anything is spent."""
        self.per_record.check_data(numbers)

    def release(
        self, numbers: Floats, randomness: Randomness | None = None, name: str = "release"
    ) -> EstimateRelease:
        """Draw once: the only call that spends privacy. `numbers`: each record's."""
        if self.people is None:
            raise GuaranteeError(
                "the number of people is not published yet.", remedy="Publish the figures first."
            )
        drawn = self.per_record.release(numbers, randomness, name)
        return replace(drawn, description=self.description, guarantee=self.guarantee)


def on_unit(units: Sequence[float], unit: Fraction) -> tuple[float, ...]:
    """Whole numbers of units as numbers."""
    return tuple(float(int(count) * unit) for count in units)
