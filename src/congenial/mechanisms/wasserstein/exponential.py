"""The Wasserstein exponential mechanism on integer tables.

p(y | x) ~ nu_z(y) exp(-epsilon loss(y, T(x)) / (c sigma)), sigma the largest change of the loss
over tables Delta_z apart (partially-private-data, Theorem 9). c = 2 in general: the normaliser may
change as much as the loss. c = 1 where it cannot: a loss of y - T(x), and a base measure that is
the same around every conforming table. Under signs or a prior the factor is needed (J = 3: a loss
of 1.326 without it at epsilon = 1), and it stays.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from congenial.data.arguments import expect
from congenial.data.arrays import Ints
from congenial.data.rational import fraction
from congenial.errors import GuaranteeError
from congenial.mechanisms.wasserstein.base_measure import Base, sums_published
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease
from congenial.mechanisms.wasserstein.l2_chain import LABEL, L2Chain
from congenial.mechanisms.wasserstein.secret_promise import EXACT, assumed_delta, promise, usable
from congenial.mechanisms.wasserstein.table_law import TableLaw
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.scenarios import Conditionals, IndependentRecords, Query, StatedLaws
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import rational
from congenial.privacy.descriptions import RecordDescription
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.numbers import number
from congenial.privacy.tradeoff import Pure
from congenial.sampling.randomness import Randomness, SystemRandomness
from congenial.transport.certificates import Distance, Norm
from congenial.transport.delta_z import DistanceBound, delta_z, meaning

Loss = Literal["l1", "l2", "squared l2"]
LOSSES: tuple[Loss, ...] = ("l1", "l2", "squared l2")
ROOT_2 = Fraction(math.isqrt(2 * 10**24) + 1, 10**12)  # above the square root of 2
# what one replaced record changes in a table of counts, in the norm of the loss
ORDINARY: dict[Loss, Fraction] = {"l1": Fraction(2), "l2": ROOT_2, "squared l2": Fraction(2)}


@dataclass(frozen=True, eq=False)
class WassersteinExponential:
    """Integer tables around T(x); build it with `calibrate` or `assuming`.

    ordinary: the ordinary sensitivity, which is how much one replaced record changes T(x) in the
    norm of the loss (l1 for the squared loss): a Delta_z in records is a multiple of it, and one
    below it is said to be. table: the axes of T(x), where it is a table of counts of the schema;
    then nothing below what one record changes in such a table is taken for it, and the sums of the
    base measure must be those that published figures fix. Without a table nobody can look: the sums
    are taken as known to everybody, and the promise says so among the public figures.

    Edge cases: the squared loss changes without bound on unbounded tables, so it needs a base in
    which every cell has a public sum and a sign; its sigma grows with the largest sum.
    """

    pairs: SecretPairs
    bound: DistanceBound
    base: Base
    epsilon: Fraction
    loss: Loss = "l1"
    ordinary: Fraction | None = None
    table: tuple[str, ...] = ()

    name = "wasserstein_exponential"

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", rational(self.epsilon))
        if self.ordinary is not None:
            object.__setattr__(self, "ordinary", rational(self.ordinary))
        if self.epsilon <= 0:
            raise GuaranteeError(f"epsilon = {self.epsilon} is not positive.")
        if self.loss not in LOSSES:
            raise GuaranteeError(
                f"loss '{self.loss}' is not known.", remedy=f"Use one of {', '.join(LOSSES)}."
            )
        self._check_cells()
        self._check_records()
        self._check_sums()
        _ = self.sigma  # refuses a bound that cannot be used

    def _check_cells(self) -> None:
        """Refuse a table of another size than the base measure."""
        if not self.table:
            return
        cells = math.prod(axis.size for axis in self.pairs.schema.axes(self.table))
        if cells != self.base.cells:
            raise GuaranteeError(
                f"the table over {', '.join(self.table)} has {cells} cells and the base measure "
                f"{self.base.cells}.",
                remedy="Give a base measure of the cells of the table, in their order.",
            )

    def _check_records(self) -> None:
        """Refuse a bound of another level, and less than one record changes in a table."""
        if self.bound.level != self.pairs.level:
            raise GuaranteeError(
                f"Delta_z at level '{self.bound.level}' cannot be used for pairs at level "
                f"'{self.pairs.level}'.",
                remedy="Use the same level for both.",
            )
        losses = [(self.ordinary, 2)]
        for scenario in self.pairs.scenarios:
            if isinstance(scenario, IndependentRecords):
                losses.append((scenario.sensitivity, 1 if scenario.secrets == "presence" else 2))
        for value, least in losses:
            if not self.table or value is None:
                continue
            if (value**2 if self.loss == "l2" else value) < least:
                change = ORDINARY[self.loss] if least == 2 else 1
                raise GuaranteeError(
                    f"one record is stated to change the table by {number(value)}, but it changes "
                    f"a table of counts by {number(change)} under the {self.loss} loss.",
                    remedy="Give that number.",
                )

    def _check_sums(self) -> None:
        """Refuse sums and orders that are not public; name those that are taken as public."""
        if self.table:
            if self.base.parts or (self.base.totals and not self._sums_published):
                what = "parts and wholes" if self.base.parts else "sums"
                raise GuaranteeError(
                    f"the base measure fixes {what} of the table over {', '.join(self.table)} that "
                    "are not those that published figures fix; what a release fixes is revealed.",
                    remedy="Publish them and take published_sums(support(figures, table)); or take "
                    "the naive base.",
                )
            return
        free = [scenario for scenario in self.pairs.scenarios if not scenario.conditioned]
        number_only = self.base.fixes_number_only and self.pairs.secrets == "replace-one"
        if free and self.base.totals and not number_only:
            raise GuaranteeError(
                f"scenarios of kind '{free[0].kind}' cannot be used with the sums in the base "
                "measure: given these sums, records are not independent.",
                remedy="Use one sum over all cells, the number of records; or laws that are stated "
                "given the sums.",
            )
        public = (*self.pairs.given, *self.base.facts)
        object.__setattr__(self, "pairs", replace(self.pairs, given=tuple(dict.fromkeys(public))))

    @classmethod
    def calibrate(
        cls,
        pairs: SecretPairs,
        epsilon: object,
        base: Base,
        *,
        loss: Loss = "l1",
        query: Query | None = None,
        ordinary: object | None = None,
        table: str | Sequence[str] = (),
    ) -> WassersteinExponential:
        """Compute Delta_z of the scenarios in the norm of the loss, and build the mechanism.

        Databases of finite scenarios that do not have the sums of the base measure are refused.
        With a `table`, `ordinary` is what one record changes in it unless stated.
        """
        expect(loss, str, "loss", "Use 'l1' or 'l2'.", GuaranteeError)
        expect(base, Base, "the base measure", "Use naive(...) or congenial(...).", GuaranteeError)
        _check_databases(pairs, base, query)
        bound = delta_z(pairs, query, norm="l2" if loss == "l2" else "l1")
        axes = (table,) if isinstance(table, str) else tuple(table)
        if axes and ordinary is None:
            ordinary = ORDINARY.get(loss)
        return cls(pairs, bound, base, epsilon, loss, ordinary, axes)  # type: ignore[arg-type]

    @classmethod
    def assuming(
        cls, pairs: SecretPairs, delta: object, epsilon: object, base: Base, *, loss: Loss = "l1"
    ) -> WassersteinExponential:
        """With a Delta_z that is assumed, in the norm of the loss; the promise is an estimate."""
        bound = assumed_delta(delta, "l2" if loss == "l2" else "l1")
        return cls(pairs, bound, base, epsilon, loss)  # type: ignore[arg-type]

    # ---- calibration ---------------------------------------------------------------------------

    @property
    def sigma(self) -> Fraction:
        """The largest change of the loss over tables Delta_z apart."""
        distance = usable(self.bound)
        if self.bound.measure == "records":
            if self.ordinary is None:
                raise GuaranteeError(
                    "Delta_z is in records, but the effect of one record is not stated.",
                    remedy="Give ordinary: 2 for a table of counts under the l1 loss.",
                )
            distance *= self.ordinary
        elif self.bound.measure not in ("l1", "l2" if self.loss == "l2" else "l1"):
            raise GuaranteeError(
                f"Delta_z in {self.bound.measure} does not bound the {self.loss} loss.",
                remedy="Compute delta_z in the norm of the loss.",
            )
        return self._change(distance)

    def _change(self, distance: Fraction) -> Fraction:
        """The largest change of the loss over tables this far apart.

        |x - y|^2 - |x' - y|^2 is a sum of (x - x') (x + x' - 2 y), so it grows with the sums.
        """
        return distance if self.loss != "squared l2" else 2 * self._largest_sum * distance

    @property
    def _largest_sum(self) -> int:
        """How large y, x and x' can be: the sums bound |2 y - x - x'| by twice it."""
        grouped = {i for group, _ in self.base.totals for i in group}
        covered = grouped | {part for part, _ in self.base.parts}
        if not self.base.nonnegative or len(covered) < self.base.cells:
            raise GuaranteeError(
                "the squared loss can change without limit with this base measure.",
                remedy="Use loss 'l1', or a base with signs and public sums of all cells.",
            )
        sums = [total for _, total in self.base.totals if total is not None]
        if len(sums) < len(self.base.totals):
            raise GuaranteeError(
                "the squared loss depends on the sums, and they are not published yet.",
                remedy="Publish them first, or use loss 'l1'.",
            )
        return max(1, *sums)

    @property
    def factor(self) -> int:
        """c: 1 where the normaliser is constant by structure, 2 otherwise."""
        return 1 if self.base.translation_invariant and self.loss != "squared l2" else 2

    @property
    def rate(self) -> Fraction:
        """epsilon / (c sigma), the rate at which the density falls with the loss."""
        return self.epsilon / (self.factor * self.sigma)

    # ---- promise -------------------------------------------------------------------------------

    @property
    def certified(self) -> bool:
        """Whether draws are exact; the l2 loss is drawn by a chain."""
        return self.loss != "l2"

    @cached_property
    def guarantee(self) -> Guarantee:
        """epsilon given the public figures."""
        records = self.bound.measure == "records"
        unit = "in records" if records else f"in {self.bound.measure}"
        assumptions = [f"the loss is {self.loss}, and Delta_z = {self.bound.value:g} {unit}"]
        if self.base.kind == "prior-congenial":
            assumptions.append("the prior's counts, alpha and kappa were chosen without these data")
        if self.base.nonnegative and not self.table:
            assumptions.append("the values are counts: none is below 0")
        if (
            self.base.totals
            and not self.table
            and not all(s.conditioned for s in self.pairs.scenarios)
        ):
            assumptions.append("the sum in the base measure counts every record once")
        return promise(
            self.pairs,
            self.epsilon,
            self.bound,
            ordinary=Fraction(1) if records else self.ordinary,
            chain=not self.certified,
            more=tuple(assumptions),
        )

    @property
    def words(self) -> str:
        """The promise as statements about beliefs."""
        return meaning(self.epsilon)

    @property
    def description(self) -> RecordDescription:
        """The law, and what one replaced record does to it between databases that T(x) may be of.

        The loss over tables one record apart is `factor * rate` times how much the loss function
        changes over tables `ordinary` apart. Sums in the base measure confine y, so they must be
        published figures of the table: then databases that agree with them are the only ones there
        are.
        """
        law = {
            "table": list(self.table),
            "loss": self.loss,
            "rate": str(self.rate),
            "factor": self.factor,
            "delta_z": {"value": self.bound.value, "measure": self.bound.measure},
            "ordinary": None if self.ordinary is None else str(self.ordinary),
            "base_measure": self.base.to_dict(),
            "sampler": EXACT if self.certified else LABEL,
        }
        loss = Fraction(0)
        if self.ordinary is not None and (not self.base.totals or self._sums_published):
            loss = self.factor * self.rate * self._change(self.ordinary)
        return RecordDescription(
            self.name,
            self.pairs.schema,
            law,
            epsilon=loss,
            persons=bool(loss),
            given=self.pairs.figures if self.base.totals and self._sums_published else None,
        )

    @cached_property
    def _sums_published(self) -> bool:
        """Whether the sums of the base measure are those that published figures fix."""
        return bool(self.table) and sums_published(self.base, self.pairs.figures, self.table)

    # ---- law -----------------------------------------------------------------------------------

    def law(self, truth: npt.ArrayLike) -> TableLaw | L2Chain:
        """p(. | T(x) = truth)."""
        if self.loss == "l2":
            return L2Chain(self.base, truth, self.rate)
        return TableLaw(self.base, truth, self.rate, self.loss == "squared l2")

    def draw(self, truth: npt.ArrayLike, randomness: Randomness, draws: int) -> Ints:
        """Draws of y given T(x), shape (draws, cells): independent, but for the l2 loss."""
        return self.law(truth).draw_many(randomness, draws)

    def log_density(self, y: npt.ArrayLike, truth: npt.ArrayLike) -> Any:
        """log p(y | T(x) = truth); for the l2 loss up to a constant, which may depend on x."""
        return self.law(truth).log_density(y)

    def release(
        self, truth: npt.ArrayLike, randomness: Randomness | None = None, name: str = "release"
    ) -> ValuesRelease:
        """Draw once: the only call that spends privacy."""
        source = SystemRandomness() if randomness is None else randomness
        values = self.draw(truth, source, 1)[0]
        return ValuesRelease(
            name,
            self.description,
            self.guarantee,
            source.label,
            source.publishable,
            tuple(int(v) for v in values),
        )


def _check_databases(pairs: SecretPairs, base: Base, query: Query | None) -> None:
    """Refuse beliefs in databases that do not agree with what the base measure takes as public."""
    if query is None:
        return
    for scenario in pairs.scenarios:
        if isinstance(scenario, FiniteScenarios):
            for row in scenario.possible:
                value = np.atleast_1d(np.asarray(query(row), dtype=np.int64))
                if value.size != base.cells or not base.holds(value):
                    raise GuaranteeError(
                        f"a scenario of kind '{scenario.kind}' believes in a database whose "
                        "statistic does not have the sums, signs and number of cells of the base "
                        "measure.",
                        remedy="Condition the scenarios on the public figures (`given`), or take "
                        "a base without them.",
                    )


# ---- from a bundle -------------------------------------------------------------------------------


def rebuild(
    description: RecordDescription, guarantee: Guarantee
) -> Iterator[WassersteinExponential]:
    """Each mechanism that the law of a bundle may be of: one per way in which Delta_z may have been
    found.

    Every number is worked out again. Where Delta_z was assumed it stays assumed, which makes the
    promise an estimate; where the laws it rests on are not written down (stated laws, of which a
    bundle keeps words and a digest, and the query of a finite table) it is as stated.
    """
    law, pairs, promised = description.law, guarantee.adjacency, guarantee.tradeoff
    if not isinstance(pairs, SecretPairs) or not isinstance(promised, Pure):
        return
    ordinary = None if law["ordinary"] is None else fraction(law["ordinary"])
    base, epsilon = Base.from_dict(law["base_measure"]), Fraction(promised.eps)
    for bound in _bounds(pairs, law, guarantee):
        try:
            mechanism = WassersteinExponential(
                pairs, bound, base, epsilon, law["loss"], ordinary, tuple(law["table"])
            )
        except GuaranteeError:
            continue
        yield mechanism


def _bounds(pairs: SecretPairs, law: Any, guarantee: Guarantee) -> Iterator[DistanceBound]:
    value, measure = float(law["delta_z"]["value"]), law["delta_z"]["measure"]
    norm: Norm = "l2" if measure == "l2" else "l1"
    try:
        yield delta_z(pairs, norm=norm)
    except GuaranteeError:
        if any(_unwritten(scenario, pairs.level) for scenario in pairs.scenarios):
            yield _as_stated(value, measure, pairs, guarantee)
    if measure == norm:
        yield assumed_delta(value, norm)


def _unwritten(scenarios: Any, level: str) -> bool:
    """Whether a bundle holds a digest of the laws, or no query, instead of what Delta_z is of."""
    if isinstance(scenarios, StatedLaws):
        return bool(scenarios.digest)
    return isinstance(scenarios, FiniteScenarios) and level == "query"


def _as_stated(
    value: float, measure: str, pairs: SecretPairs, guarantee: Guarantee
) -> DistanceBound:
    norm: Norm = "l2" if measure == "l2" else "l1"
    distance = Distance(value, value, Fraction(0), norm)
    worst = Conditionals("", "")
    return DistanceBound(
        value, value, guarantee.basis, pairs.level, measure, Fraction(0), worst, distance
    )
