"""Tables measured under one promise, one or several, each with noise given the figures it shows.

One promise for all of them: the joint supremum over look-alike databases, rho = (1/2) sup_u sum_b
||T_b u||^2 / sigma_b^2 or epsilon = sup_u sum_b eps_b ||T_b u||_1 (`privacy.composition`), the same
that a ledger counts for releases drawn one by one. Estimates and whole counts are computed from the
draw and the figures alone, so they cost nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.data.magnitude import Magnitude
from congenial.data.table import Table
from congenial.errors import StructureError, some_of
from congenial.figures.figures import Figures
from congenial.mechanisms.calibrate import rebuild
from congenial.mechanisms.mechanism import Mechanism
from congenial.mechanisms.tables_release import TablesEstimator, TablesRelease, estimator_of
from congenial.pairs.pairs import Adjacency
from congenial.privacy.composition import joint_loss
from congenial.privacy.description import Description, Family
from congenial.privacy.descriptions import TablesDescription
from congenial.privacy.guarantee import Guarantee
from congenial.sampling.randomness import Randomness, SeededRandomness, SystemRandomness

CITATION = (
    "Canonne, Kamath, Steinke 2020, and Gong and Meng 2020 (congenial-dp), section 2, for each "
    "table's noise; their joint supremum over databases that agree with the figures"
)
_DRAWN_BY: dict[tuple[Family, bool], str] = {  # family, whether figures or zeros are kept
    ("discrete_gaussian", True): "congenial_gaussian",
    ("discrete_gaussian", False): "plain_discrete_gaussian",
    ("double_geometric", True): "congenial",
    ("double_geometric", False): "plain_geometric",
}


@dataclass(frozen=True)
class MeasuredTables:
    """Independent noise on one or several tables of the same people, given exact figures.

    Formal guarantee: the joint loss of all measured tables, as one release. Edge cases: a table
    that the figures tell is printed and not measured; cells that are impossible stay 0.
    """

    adjacency: Adjacency
    description: TablesDescription

    def __repr__(self) -> str:
        tables = some_of([" x ".join(names) or "total" for names in self.description.tables], "; ")
        return f"MeasuredTables({tables[:200]})"

    @classmethod
    def of(
        cls,
        adjacency: Adjacency,
        tables: Sequence[tuple[str, ...]],
        family: Family,
        scales: Sequence[Fraction | None],
        keep: Sequence[str] = (),
        design: dict[str, Any] | None = None,
        whole: bool = True,
        magnitude: Magnitude | None = None,
    ) -> MeasuredTables:
        """Tables with the scale of each one's noise (sigma^2, or eps per cell); None: no draw.

        `magnitude`: the number that they sum, in steps of which scales are; None: they count.
        """
        laws, noise = [], noise_given(adjacency.figures, magnitude)
        for names, scale in zip(tables, scales, strict=True):
            if scale is not None:
                law = described(noise, tuple(names), family, scale)
                law = replace(law, units=adjacency.counts_units, magnitude=magnitude)
                laws.append(_drawable(law, adjacency).priced)
        told_together = TablesDescription(
            tuple(laws), tuple(tables), tuple(keep), design or {}, whole=whole
        )
        return cls(adjacency, told_together)

    @classmethod
    def of_one(
        cls, mechanism: Mechanism, whole: bool = True, keep: Sequence[str] = ()
    ) -> MeasuredTables:
        """The one table that a mechanism draws; `whole`: whether whole counts are printed."""
        whole = whole and not mechanism.description.continuous
        table = mechanism.description.table
        description = TablesDescription(
            (mechanism.description,), (table,), tuple(keep), whole=whole
        )
        measured = cls(mechanism.adjacency, description)
        vars(measured)["mechanisms"] = (mechanism,)  # as the cached property would keep it
        return measured

    @cached_property
    def mechanisms(self) -> tuple[Mechanism, ...]:
        """What draws each measured table."""
        return tuple(_drawable(law, self.adjacency) for law in self.description.measured)

    @cached_property
    def beside(self) -> tuple[MeasuredTables, ...]:
        """What else is measured of the same tables, each as if it were released alone."""
        beside = tuple(MeasuredTables(self.adjacency, other) for other in self.description.beside)
        for other in beside:
            vars(other)["_counted"] = self
        return beside

    @property
    def measures(self) -> tuple[MeasuredTables, ...]:
        """All that is measured, this first."""
        return self, *self.beside

    @property
    def only(self) -> Mechanism | None:
        """What draws the one table that all printed ones are sums of; None where there is none."""
        return None if self.description.only_law is None else self.mechanisms[0]

    @cached_property
    def guarantee(self) -> Guarantee:
        """What is promised, from public parameters alone."""
        if self.only is not None and not self.beside:
            promised = self.only.guarantee
        else:
            promised = joint_guarantee(self.description, self.adjacency)
        numbers = [
            measure.magnitude
            for measure in self.description.measures
            if measure.magnitude is not None
        ]
        cut = tuple(cutting_words(magnitude, whose_number(self.adjacency)) for magnitude in numbers)
        return replace(promised, assumptions=(*promised.assumptions, *cut))

    @cached_property
    def estimator(self) -> TablesEstimator:
        """What all tables will say together."""
        return estimator_of(self.description, self.mechanisms, vars(self).get("_counted"))

    def check(self, table: Table) -> None:
        """Refuse people who do not agree with the published figures, before anything is drawn."""
        self.mechanisms[0].check(table)

    def release(
        self,
        table: Table,
        randomness: Randomness | None = None,
        name: str = "release",
        people: Table | None = None,
    ) -> TablesRelease:
        """Draw every measured table once: the only call that spends privacy.

        `people`: of tables of sums, the counts of the same people, which are compared with the
        figures.
        """
        self.check(table if people is None else people)
        return self.release_each([table] * len(self.mechanisms), randomness, name)

    def release_each(
        self, tables: Sequence[Table], randomness: Randomness | None = None, name: str = "release"
    ) -> TablesRelease:
        """The same from one table per measured table, where one for all is too large; after those
        of this measure, those of each one beside it.

        That they agree with the figures is for the caller to `check`.
        """
        source = SystemRandomness() if randomness is None else randomness
        expect(source, Randomness, "randomness", "Leave it out.")
        rest, truths = iter(tables), []
        for measure in self.measures:
            truths.append([mechanism.query(next(rest)) for mechanism in measure.mechanisms])
        return self._around(truths, source, name)

    def made_up(self, name: str = "rehearsal") -> TablesRelease:
        """A release of the same form around tables made up from public figures alone."""
        around = [measure._evenly() for measure in self.measures]
        if self.only is not None and not self.only.additive:
            return self._released(around, SeededRandomness(0), name)
        return self._around(around, SeededRandomness(0), name)

    def _evenly(self) -> list[Any]:
        tables = dict(zip(self.description.tables, self.estimator.made_up, strict=True))
        return [
            np.rint(tables[measured_table.table]).astype(np.int64)
            for measured_table in self.description.measured
        ]

    def _around(
        self, truths: Sequence[Sequence[Any]], source: Randomness, name: str
    ) -> TablesRelease:
        drawn = [
            [
                mechanism.draw(truth, source, 1)[0]
                for mechanism, truth in zip(measure.mechanisms, of_measure, strict=True)
            ]
            for measure, of_measure in zip(self.measures, truths, strict=True)
        ]
        return self._released(drawn, source, name)

    def _released(
        self, drawn: Sequence[Sequence[Any]], source: Randomness, name: str
    ) -> TablesRelease:
        common = (name, self.description, self.guarantee, source.label, source.publishable)
        beside = tuple(map(tuple, drawn[1:]))
        release = TablesRelease(*common, tuple(drawn[0]), drawn_beside=beside)
        self.lend(release)
        return release

    def lend(self, release: TablesRelease) -> None:
        """Give a release the estimators that were made ready here, as its properties would."""
        for measure, drawn_measure in zip(self.measures, release.measures, strict=True):
            vars(drawn_measure)["estimator"] = measure.estimator


def release_table(
    mechanism: Mechanism | MeasuredTables,
    table: Table,
    randomness: Randomness | None = None,
    name: str = "release",
) -> TablesRelease:
    """Draw what `calibrate` returned, one table or several, once: the call that spends privacy.

    What is promised is `mechanism.guarantee`. The people in `table` are compared with the published
    figures first; those who do not agree are a FigureError, and nothing is drawn. Leave
    `randomness` out, except in tests: what a seed draws can be subtracted again.

    >>> from congenial import ReplaceOne, Schema, calibrate
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    >>> mechanism = calibrate("auto", Guarantee.pure(1, under=ReplaceOne(schema)))
    >>> release = release_table(mechanism, Table(schema, ["sex"], [90, 110]), name="by sex")
    >>> release.drawn[0].shape
    (2,)
    """
    if isinstance(mechanism, MeasuredTables):
        return mechanism.release(table, randomness, name)
    expect(mechanism, Mechanism, "the mechanism", "Give what calibrate returns.")
    return MeasuredTables.of_one(mechanism).release(table, randomness, name)


def joint_guarantee(description: TablesDescription, adjacency: Adjacency) -> Guarantee:
    """What several tables promise together."""
    loss = joint_loss([description], adjacency)
    return Guarantee(adjacency, loss.tradeoff, citation=CITATION)


def noise_given(figures: Figures, magnitude: Magnitude | None) -> Figures:
    """The figures that noise is drawn given: of sums, only what says that a cell is empty."""
    if magnitude is None:
        return figures
    zeros = (*figures.zeros, *figures.empty)
    return Figures(figures.schema, zeros, None if figures.values is None else (None,) * len(zeros))


def whose_number(adjacency: Adjacency) -> str:
    """What has a number: a person, or a row where a person may have several."""
    several = adjacency.several_rows or (adjacency.any_rows and adjacency.records > 1)
    return "row" if several else "person"


def cutting_words(number: Magnitude, whose: str) -> str:
    """What the promise says of a number that is summed."""
    beyond = "a number beyond these bounds counts as the bound, and how many do is not published"
    return f"{number.words_of(whose)}; {beyond}"


def described(
    known: Figures, names: tuple[str, ...], family: Family, scale: Fraction
) -> Description:
    """The law of one table's noise given the figures."""
    name = _DRAWN_BY[family, bool(known.equalities or known.zeros)]
    return Description(name, names, family, scale, known)


def _drawable(told: Description, adjacency: Adjacency) -> Mechanism:
    """The mechanism of one table; a structure without a sampler is refused by the table's name."""
    try:
        return rebuild(told, adjacency)
    except StructureError as reason:
        raise cannot_be_drawn(told.table, reason) from None


def cannot_be_drawn(names: Sequence[str], reason: StructureError) -> StructureError:
    """The refusal of a table without a sampler, by its name."""
    what = f"the table over {', '.join(names)} cannot be drawn: {reason.what}"
    return StructureError(what, remedy=reason.remedy)
