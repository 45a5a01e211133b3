"""Released counts or numbers, their law, and what is promised given the public figures."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import prod
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from congenial.data.arrays import Ints
from congenial.data.rational import fraction
from congenial.data.table import select
from congenial.data.text_files import rows_csv
from congenial.errors import BundleError
from congenial.figures.support import support
from congenial.mechanisms.cell_labels import label_names
from congenial.mechanisms.released import LEVEL, Interval, RecordRelease, check_level
from congenial.mechanisms.wasserstein.base_measure import Base, sums_published
from congenial.mechanisms.wasserstein.l2_chain import L2Chain
from congenial.mechanisms.wasserstein.secret_promise import both_promises, person_promise
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.privacy.guarantee import Guarantee

VALUES = "values.csv"


@dataclass(frozen=True)
class ValuesRelease(RecordRelease):
    """Values as published: a table of counts, counts in the order of the base measure's cells, or
    coordinates.

    Drawn around the true ones with noise that depends on how far public information lets laws
    differ (Delta_z). Its guarantee is about secret pairs given that information; what it promises
    without any assumption about beliefs is `persons`.
    """

    kind: ClassVar[str] = "values"
    contents: ClassVar[tuple[tuple[str, str], ...]] = (
        (VALUES, "the released counts, one row per cell of the table"),
    )

    values: tuple[int | float, ...]

    @property
    def usage(self) -> tuple[str, ...]:
        """What to do with it in Python, for README.txt."""
        if not self.density_known:
            return ("release.values",)
        return (
            "release.counts",
            "from congenial.inference import Poisson, infer",
            'infer(release, Poisson()).summary(0.95)  # or: congenial infer "<this folder>"',
        )

    @property
    def density_known(self) -> bool:
        """Whether p(y | x) is worked out as a function of x, which inference needs.

        Counts of no table have it too: their sums are among what the promise takes as public.
        """
        if "base_measure" not in self.description.law:
            return False
        if not self.base.normaliser_known(self.loss):
            return False
        if not self.table:
            return all(total is not None for _, total in self.base.totals)
        return not self.base.totals or sums_published(self.base, self.published, self.table)

    @property
    def table(self) -> tuple[str, ...]:
        """The axes of the released table; none for other values."""
        return tuple(self.description.law.get("table", ()))

    @property
    def counts(self) -> Ints:
        """The released counts, an array with one dimension per axis of the table."""
        self._refuse_no_counts()
        shape = tuple(axis.size for axis in self.schema.axes(self.table)) or (len(self.values),)
        return np.array(self.values, dtype=np.int64).reshape(shape)

    @cached_property
    def base(self) -> Base:
        """The base measure of the law."""
        self._refuse_no_counts()
        return Base.from_dict(self.description.law["base_measure"])

    @property
    def rate(self) -> Fraction:
        """At which the density falls with the loss."""
        self._refuse_no_counts()
        return fraction(self.description.law["rate"])

    @property
    def loss(self) -> str:
        """Which loss: l1, l2 or squared l2."""
        self._refuse_no_counts()
        return str(self.description.law["loss"])

    def _refuse_no_counts(self) -> None:
        if "base_measure" not in self.description.law:
            raise BundleError("these values are not counts.", remedy="Use release.values.")

    def law(self, truth: npt.ArrayLike) -> TableLaw | L2Chain:
        """p(. | T(x) = truth), from the bundle alone."""
        if self.loss == "l2":
            return L2Chain(self.base, truth, self.rate)
        return TableLaw(self.base, truth, self.rate, self.loss == "squared l2")

    @cached_property
    def persons(self) -> Guarantee | None:
        """What is promised without any assumption about beliefs."""
        return person_promise(self.description, self.published)

    def explain(self) -> str:
        """Both promises; a basis says where the values were not drawn exactly."""
        if self.persons is not None:
            return both_promises(self.guarantee, self.persons)
        return (
            f"Given what is public. {self.guarantee.explain()}\n\nWithout those beliefs this "
            "release promises nothing about individual people."
        )

    def estimate(self, condition: str) -> float:
        """The number of people who meet a condition, where published figures fix it."""
        return self.interval(condition).estimate

    def interval(self, condition: str, level: float = LEVEL) -> Interval:
        """An interval for the number of people who meet a condition, where published figures fix
        it: it has no width. The error of other counts depends on the true table, so that no
        interval holds for all of them.
        """
        check_level(level)
        if not self.table or not self.base.totals:
            raise self._unanswered(condition)
        cells = select(condition, self.schema, self.table)
        table_support = support(self.published, self.table)
        if not table_support.fixes(np.where(cells, 0, -1), 1)[0]:
            raise self._unanswered(condition)
        value = int(self.counts[cells].sum())
        return Interval(value, value, value, level, exact=True)

    def instead(self) -> str:
        """What can be asked of it."""
        if not self.density_known:
            return (
                "Use release.values for the released values; release.description describes the "
                "noise."
            )
        return (
            "Use release.counts for the released counts, and `congenial infer` or "
            "congenial.infer(release, model) for intervals."
        )

    @property
    def agrees(self) -> bool:
        """The sums and signs of the base measure, and those that published figures fix.

        A base without sums does not claim to keep any.
        """
        right = self.base.holds(self.counts.reshape(-1))
        if not self.table or not self.base.totals:
            return right
        return right and bool(support(self.published, self.table).agrees(self.counts))

    def to_arrow(self) -> Any:
        """One row per cell with its labels and `count`; numbered values where there is no table."""
        import pyarrow as pa

        header, rows = self._rows()
        return pa.table(
            {name: pa.array([row[at] for row in rows]) for at, name in enumerate(header)}
        )

    def payload(self) -> dict[str, bytes]:
        """Files for a bundle besides the common ones."""
        header, rows = self._rows()
        return {VALUES: rows_csv([header, *rows]).encode()}

    def _rows(self) -> tuple[list[str], list[list[Any]]]:
        """The names of the columns, and the labels and value of each cell."""
        axes = self.schema.axes(self.table)
        header = [*label_names(self.table, ["count"]), "count"] if axes else ["number", "value"]
        cells: Any = product(*(axis.levels for axis in axes))
        if not axes:
            cells = ((number,) for number in range(len(self.values)))
        return header, [[*cell, value] for cell, value in zip(cells, self.values, strict=True)]

    @classmethod
    def from_payload(cls, *, payload: Mapping[str, bytes], **common: Any) -> Self:
        """Inverse of `payload`, given the common parts."""
        law, schema = common["description"].law, common["description"].schema
        whole = "base_measure" in law
        try:
            rows = list(csv.reader(io.StringIO(payload[VALUES].decode())))[1:]
            values = tuple(int(row[-1]) if whole else float(row[-1]) for row in rows)
            axes = schema.axes(law.get("table", ()))
            if axes and len(values) != prod(axis.size for axis in axes):
                raise ValueError
        except (KeyError, IndexError, ValueError):
            raise BundleError(
                f"the values of '{common['name']}' cannot be read.",
                remedy="Get a new copy of the bundle.",
            ) from None
        release = cls(**common, values=values)
        if whole:
            _ = (
                release.counts,
                release.base,
                release.rate,
                release.loss,
            )  # a law that cannot be read
        return release
