"""The protocol every mechanism follows, and the registry that puts each under the contract suite.

A mechanism is built from public inputs (adjacency and description), states its guarantee from those
alone, draws noise in one place, and knows the density of what it draws, so that sampler and density
check each other and an analyst can use the law.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self, TypeVar

import numpy as np

from congenial._notebook import facts
from congenial.data.arguments import expect, flags, texts
from congenial.data.table import Table
from congenial.errors import GuaranteeError, StructureError, UnansweredError, some_of
from congenial.figures.figures import Figures
from congenial.mechanisms.families import NoiseFamily
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import joint_loss
from congenial.privacy.description import Description, Family
from congenial.privacy.guarantee import IDEALISED, ROUNDED, Basis, Guarantee
from congenial.privacy.tradeoff import Tradeoff
from congenial.sampling.law import IntegerLaw
from congenial.sampling.randomness import Randomness


class ErrorLaw(Protocol):
    """Law of the noise in one released sum: public, so that it is known before and after the draw.

    The released sum give or take `interval(level)` covers the true one with at least that
    probability, over the draw of the noise; with more where the noise is of whole numbers.
    """

    @property
    def variance(self) -> float:
        """Variance of the noise."""

    def interval(self, level: float) -> float:
        """Smallest h with P(|noise| <= h) >= level."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A law of released tables y around phi(x), given by `description`.

    Most are additive: y = phi(x) + u, where the law of u does not depend on x.
    """

    adjacency: Adjacency
    description: Description

    name: ClassVar[str]
    noise_family: ClassVar[NoiseFamily]  # its row; fills in the next two
    family: ClassVar[Family]
    targets: ClassVar[tuple[type[Tradeoff], ...]]  # kinds of promise it can be calibrated to
    conditions: ClassVar[bool]  # whether it keeps figures by conditioning on them
    citation: ClassVar[str]
    basis: ClassVar[Basis] = "theorem"
    nonnegative: ClassVar[bool] = False  # whether it conditions on counts >= 0
    additive: ClassVar[bool] = True  # whether the error has one law, whatever the data are

    def __init_subclass__(cls) -> None:
        if "__repr__" not in vars(cls):
            cls.__repr__ = Mechanism.__repr__  # type: ignore[method-assign]  # not the dataclass's
        if "noise_family" in vars(cls):
            cls.family, cls.targets = cls.noise_family.name, cls.noise_family.targets

    def __post_init__(self) -> None:
        self._refuse_other_law()
        self.refuse_unfit()

    def _refuse_other_law(self) -> None:
        """Refuse a description that names this mechanism and describes another's law.

        Its promise would be worked out from a law it does not draw from.
        """
        law, cls = self.description, type(self)
        if (
            law.mechanism != cls.name
            or law.family not in cls.families()
            or law.nonnegative != cls.nonnegative
            or (not cls.conditions and (law.support.equalities or law.support.zeros))
        ):
            raise GuaranteeError(
                f"the description of '{law.mechanism}' contradicts itself: '{cls.name}' does not "
                "draw the noise that it states.",
                remedy="Do not use this bundle; get it from its publisher.",
            )

    @classmethod
    def families(cls) -> tuple[Family, ...]:
        """The families its law may be of."""
        return (cls.family,)

    def refuse_unfit(self) -> None:  # noqa: B027 - most have nothing to refuse
        """Refuse a structure that cannot be drawn, before anything is published or spent."""

    def __repr__(self) -> str:
        table = some_of(self.description.table)[:120]
        return f"{type(self).__name__}({table}; scale {self.description.scale})"

    def _repr_html_(self) -> str:
        promise = self.guarantee
        rows = (
            ("Table", " x ".join(self.description.table)),
            ("Noise", f"{self.description.family}, scale {float(self.description.scale):.6g}"),
            ("Published figures", "kept" if self.conditions else "not used"),
            ("Promise", f"{promise.tradeoff.words}; {promise.adjacency.words}"),
            ("Basis", promise.basis),
            ("Source", self.citation),
        )
        return facts(f"Mechanism '{self.name}'", rows)

    @classmethod
    def parameter_for(
        cls, target: Tradeoff, adjacency: Adjacency, table: tuple[str, ...]
    ) -> Fraction:
        """The rate or variance of the noise that meets the target, rounded towards more noise."""
        return cls.noise_family.parameter(target, adjacency, table)

    @classmethod
    def calibrate(cls, target: Guarantee, table: Sequence[str]) -> Self:
        """Build the mechanism that just meets the target on the table over `table`."""
        names = texts(table, "the table")
        adjacency = cls._fitting(target, names)
        parameter = cls.parameter_for(target.tradeoff, adjacency, names)
        support = adjacency.figures if cls.conditions else Figures(adjacency.schema)
        signs = cls.nonnegative
        law = Description(cls.name, names, cls.family, parameter, support, nonnegative=signs)
        law = replace(law, units=adjacency.counts_units)
        mechanism = cls(adjacency, law)
        return mechanism if mechanism.priced == law else cls(adjacency, mechanism.priced)

    @classmethod
    def _fitting(cls, target: Guarantee, names: tuple[str, ...]) -> Adjacency:
        """The target's adjacency; refused where this mechanism cannot meet such a target."""
        adjacency = adjacency_of(target, f"'{cls.name}' promises")
        if not isinstance(target.tradeoff, cls.targets):
            kinds = " or ".join(kind.__name__ for kind in cls.targets)
            raise GuaranteeError(
                f"'{cls.name}' cannot be calibrated to {target.tradeoff.words}.",
                remedy=f"It needs {kinds}; mechanism = 'auto' picks a mechanism that fits.",
            )
        if adjacency.l1(names).value == 0:
            raise StructureError(
                f"nothing is left to protect in the table over {', '.join(names)}: the published "
                "figures fix every cell.",
                remedy="Publish the table exactly, or leave out a figure.",
            )
        return adjacency

    @property
    @abstractmethod
    def sampler(self) -> str:
        """Which law draws it, and why, for people."""

    def laws(self, truth: Any = None) -> list[IntegerLaw]:  # noqa: ARG002
        """The laws of its independent parts, given phi(x) = truth; none for noise on the reals."""
        return []

    @property
    def sampler_error(self) -> Fraction:
        """H of the laws that draw it, from public parameters alone."""
        return Fraction(sum(law.log_ratio_error for law in self.laws()))

    @property
    def priced(self) -> Description:
        """The description with what its sampler costs, where less than that is stated."""
        law, error = self.description, self.sampler_error
        return law if error <= law.log_ratio_error else replace(law, log_ratio_error=error)

    @property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone; with what drawing it really costs, where
        an older description states less.
        """
        loss = joint_loss([self.priced], self.adjacency)
        assumptions = (IDEALISED + ROUNDED,) if self.description.continuous else ()
        return Guarantee(
            self.adjacency, loss.tradeoff, self.basis, assumptions, citation=self.citation
        )

    @property
    def figures(self) -> Figures:
        """The exact figures that the released values must agree with: none restricts a sum."""
        summed = self.description.magnitude is not None
        return self.description.support if summed else self.adjacency.figures

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the released table."""
        axes = self.adjacency.schema.axes(self.description.table)
        return tuple(len(axis.levels) for axis in axes)

    def check(self, table: Table) -> None:
        """Refuse data that do not agree with the published figures, before anything is drawn."""
        expect(table, Table, "the table", "Give what tabulate(data, schema) returns.")
        figures = self.adjacency.figures
        if figures.values is not None:
            figures.refuse_other_data(table)

    def query(self, table: Table) -> Any:
        """phi(x): the confidential table on the released axes."""
        return table.marginal(self.description.table).counts

    def draw(self, truth: Any, randomness: Randomness, draws: int) -> Any:
        """Independent draws of y given phi(x) = truth: array of shape (draws, *shape)."""
        return truth + self.noise(randomness, draws)

    def noise(self, randomness: Randomness, draws: int) -> Any:  # noqa: ARG002
        """Independent draws of u: array of shape (draws, *shape); additive mechanisms only."""
        raise StructureError(
            f"the noise of '{self.name}' depends on the data.", remedy="Use draw, or release."
        )

    @abstractmethod
    def log_density(self, y: Any, table: Table) -> Any:
        """log p(y | table), -inf off the support; y may have leading dimensions of its own."""

    @property
    def normalised(self) -> bool:
        """Whether `log_density` is complete; otherwise a constant, the same for every table and y,
        is left out.
        """
        return True

    @property
    def _cell_axes(self) -> tuple[int, ...]:
        """The dimensions of y that are cells, counted from the end."""
        return tuple(range(-len(self.shape), 0))

    def error_laws(self, index: Any, sums: int) -> list[ErrorLaw]:  # noqa: ARG002
        """Laws of the noise in several sums of cells; additive mechanisms only.

        `index` has the table's shape and names the sum (0 .. sums - 1) each cell belongs to, -1 for
        none.
        """
        raise UnansweredError(
            f"the error of '{self.name}' depends on the data, so it has no interval that always "
            "holds.",
            remedy="Use nonnegative = 'project' for intervals, or infer from the density.",
        )

    def different_error_laws(self, index: Any, sums: int) -> tuple[list[ErrorLaw], Any]:
        """The laws that `error_laws` gives, once each, and the number of each sum's."""
        each = self.error_laws(index, sums)
        laws = {id(law): law for law in each}
        number = {key: i for i, key in enumerate(laws)}
        return list(laws.values()), np.array([number[id(law)] for law in each], dtype=np.int64)

    def error_law(self, cells: Any) -> ErrorLaw:
        """Law of the noise in the sum over `cells` (boolean array of the table's shape)."""
        marked = flags(cells, self.shape, "the cells", StructureError)
        return self.error_laws(np.where(marked, 0, -1), 1)[0]


REGISTRY: dict[str, type[Mechanism]] = {}

M = TypeVar("M", bound=type[Mechanism])


def adjacency_of(target: Guarantee, who: str) -> Adjacency:
    """The databases a target is about; refused where it is about something else.

    who: what is calibrated, and its verb.
    """
    expect(target, Guarantee, "the target", "Give for example Guarantee.pure(1, under=...).")
    if not isinstance(target.adjacency, Adjacency):
        raise GuaranteeError(
            f"{who} something about pairs of datasets, but the target is about "
            f"{target.adjacency.metric}.",
            remedy="Give a target over AddRemove, ReplaceOne or SemiAdjacent.",
        )
    return target.adjacency


def register(mechanism: M) -> M:
    """Class decorator: enter a mechanism under its name; the contract suite then tests it.

    `calibrate(name, ...)`, plans and bundles know it from then on. A second mechanism of the same
    name is a TypeError: bundles name theirs.
    """
    if mechanism.name in REGISTRY:
        raise TypeError(f"two mechanisms are called '{mechanism.name}'")
    REGISTRY[mechanism.name] = mechanism
    return mechanism
