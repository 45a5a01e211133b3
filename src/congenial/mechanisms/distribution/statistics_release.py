"""StatisticsRelease: published statistics, the law of their noise, and what is promised."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from congenial.data.arguments import expect
from congenial.data.text_files import rows_csv
from congenial.errors import BundleError, InferenceError
from congenial.figures.figures import Figures
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.mechanisms.released import LEVEL, Interval, RecordRelease, check_level
from congenial.privacy.guarantee import Guarantee
from congenial.tables.intervals import interval_names

VALUES = "statistics.csv"
PERSONS = "persons.json"
COLUMNS = ("statistic", "value", "sd", *interval_names(LEVEL))
DIGITS = 6  # to which half-widths are written, rounded up
KNOWN_LAW = "the law of the noise is known and does not depend on the confidential data"


@dataclass(frozen=True)
class StatisticsRelease(RecordRelease):
    """A vector of statistics as published.

    `guarantee` is about the dataset as a whole; `person_guarantee` about one person's record, None
    when nothing is promised to persons.
    """

    kind: ClassVar[str] = "statistics"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (VALUES, "the statistics: name, value, standard deviation of the noise, 90 % interval"),
        (PERSONS, "what is promised to individual people; absent if nothing is"),
    )
    usage: ClassVar[tuple[str, ...]] = (
        'release.value("<statistic>")',
        'release.interval("<statistic>", 0.90)',
    )

    values: tuple[float, ...]
    person_guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        if len(self.values) != len(self.statistics):
            raise BundleError(
                f"release '{self.name}' has {len(self.values)} values for "
                f"{len(self.statistics)} statistics.",
                remedy="The bundle is damaged: get a new copy.",
            )

    @property
    def statistics(self) -> tuple[str, ...]:
        """Names of the statistics, in order."""
        return tuple(self.description.law["statistics"])

    @property
    def noise(self) -> VectorNoise:
        """The law of what was added."""
        return VectorNoise.from_dict(self.description.law)

    @property
    def grid(self) -> float:
        """The distance of the points that values are rounded to."""
        return float(self.description.law["grid"])

    def value(self, statistic: str) -> float:
        """One released statistic."""
        return self.values[self._at(statistic)]

    @property
    def persons(self) -> Guarantee | None:
        """What is promised to single persons, from the noise alone: `person_guarantee`."""
        return self.person_guarantee

    def estimate(self, statistic: str) -> float:
        """One released statistic: the true one with noise of mean zero."""
        return self.value(statistic)

    def interval(self, statistic: str, level: float = LEVEL) -> Interval:
        """Confidence interval for the true statistic of these data; coverage at least `level`."""
        expect(statistic, str, "the statistic", "Give its name.", InferenceError)
        check_level(level)
        at = self._at(statistic)
        value, half = self.values[at], self._half(at, level)
        return Interval(value, value - half, value + half, level, half == 0, KNOWN_LAW)

    def instead(self) -> str:
        """What can be asked of it."""
        return (
            f"Its statistics ({', '.join(self.statistics)}) have their intervals in {VALUES} and "
            "in release.interval(name)."
        )

    def _half(self, at: int, level: float) -> float:
        """Half of the width of an interval: of the noise, and of the grid values are rounded to."""
        return self.noise.interval(at, level) + self.grid / 2

    def _at(self, statistic: str) -> int:
        if statistic not in self.statistics:
            raise BundleError(
                f"the release has no statistic {statistic!r}.",
                remedy=f"Known: {', '.join(self.statistics)}.",
            )
        return self.statistics.index(statistic)

    def explain(self) -> str:
        """Both promises in words: the dataset's, then the persons'."""
        persons = "Individual people: this release promises nothing about them."
        if self.person_guarantee is not None:
            persons = f"About individual people. {self.person_guarantee.explain()}"
        return f"About the dataset as a whole. {self.guarantee.explain()}\n\n{persons}"

    def to_arrow(self) -> Any:
        """One row per statistic: name, value, standard deviation of its noise, 90 % interval."""
        import pyarrow as pa

        columns = zip(*self._rows(), strict=True)
        return pa.table(dict(zip(COLUMNS, map(pa.array, columns), strict=True)))

    def _rows(self) -> list[tuple[Any, ...]]:
        deviations = (self.noise.total_covariance.diagonal() ** 0.5).tolist()
        halves = [_upwards(self._half(at, LEVEL)) for at in range(len(self.values))]
        return [
            (name, value, sd, value - half, value + half)
            for name, value, sd, half in zip(
                self.statistics, self.values, deviations, halves, strict=True
            )
        ]

    def payload(self) -> dict[str, bytes]:
        """Files for a bundle besides the common ones."""
        files = {VALUES: rows_csv([COLUMNS, *self._rows()]).encode()}
        if self.person_guarantee is not None:
            files[PERSONS] = (json.dumps(self.person_guarantee.to_dict(), indent=1) + "\n").encode()
        return files

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Inverse of `payload`, given the common parts."""
        try:
            rows = list(csv.DictReader(io.StringIO(payload[VALUES].decode())))
            values = tuple(float(row["value"]) for row in rows)
            persons_file: dict[str, Any] = (
                json.loads(payload[PERSONS]) if PERSONS in payload else {}
            )
        except (KeyError, ValueError, UnicodeDecodeError):
            raise BundleError(
                f"the statistics of '{common['name']}' cannot be read.",
                remedy="Get a new copy of the bundle.",
            ) from None
        persons = None
        if persons_file:
            schema = common["description"].schema
            persons = Guarantee.from_dict(Figures(schema), persons_file)
        release = cls(**common, values=values, person_guarantee=persons)
        with np.errstate(all="ignore"):
            variances = (
                release.noise.total_covariance.diagonal()
            )  # refuses a law that cannot be read
        sound = np.isfinite(variances).all() and 0 <= release.grid < np.inf
        if not (sound and len(variances) == len(values) == len(release.statistics)):
            raise BundleError(
                f"the noise described in '{release.name}' is not possible.",
                remedy="Get a new copy of the bundle.",
            )
        return release


def _upwards(half: float) -> float:
    """A half-width rounded up to few digits, so that every machine writes the same.

    >>> _upwards(0.12345612), _upwards(2.0), _upwards(0.0)
    (0.123457, 2.0, 0.0)
    """
    rounded = float(f"{half:.{DIGITS}g}")
    step = 0.0 if half == 0 else 10.0 ** (math.floor(math.log10(half)) + 1 - DIGITS)
    return rounded if rounded >= half else float(f"{rounded + step:.{DIGITS}g}")
