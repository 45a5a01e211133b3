"""What each figure costs: the release as planned, beside the same release without that figure.

At equal noise, a figure that lets more records differ makes the promise weaker; at equal promise,
it takes more noise. Both are worked out from public inputs, one figure at a time, and for all of
them together. A figure can also make both numbers smaller: what it fixes needs no noise, and fewer
datasets agree with it, so that the promise is about less. That is no gain in privacy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from congenial.errors import CongenialError
from congenial.figures.figures import Figures
from congenial.figures.statements import Statement
from congenial.mechanisms.calibrate import calibrate
from congenial.mechanisms.mechanism import Mechanism
from congenial.pairs.adjacency import SemiAdjacent
from congenial.pairs.pairs import Adjacency
from congenial.pairs.several_rows import SeveralRows
from congenial.privacy.composition import conditions, joint_loss
from congenial.privacy.description import Description
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated
from congenial.report.accuracy import cell_deviation

ALL_TOGETHER = "all figures together"
LARGEST_TABLE = 5_000_000  # cells, beyond which plans with a figure less are not worked out


@dataclass(frozen=True)
class FigureCost:
    """One figure of one release, or all of them, with and without it.

    `loss`: what the same noise promises with the figure published, `loss_without` if it were not,
    both in the parameter of the promise. `deviation`, `deviation_without`: standard deviation of
    the noisiest cell, at equal promise. None where the release cannot be built without the figure,
    or where errors depend on the data. `told_by_others`: the other figures tell it as well, so that
    leaving it out alone changes nothing.
    """

    label: str
    loss: float
    loss_without: float | None
    deviation: float | None
    deviation_without: float | None
    told_by_others: bool = False

    @property
    def trivial(self) -> bool:
        """Whether publishing it changes nothing (congenial-dp, Example 5.1)."""
        same = self.loss == self.loss_without and self.deviation == self.deviation_without
        return same and self.deviation is not None


def figure_costs(mechanism: Mechanism) -> list[FigureCost]:
    """The cost of every figure and bound that could be left out, in the order of the plan."""
    told = _priced(mechanism)
    if not told or prod(mechanism.shape) > LARGEST_TABLE:
        return []
    deviation = cell_deviation(mechanism)
    return [_cost(mechanism, statement, deviation) for statement in told]


def _priced(mechanism: Mechanism) -> list[Statement]:
    """The figures and bounds that could be left out: not rules that are zero by definition, nor the
    number of people where records are replaced, which is public in any case.
    """
    replaced = mechanism.adjacency.metric == "replace-one"
    told = mechanism.adjacency.everything.told
    return [s for s in told if s.relation != "zero" and not (replaced and s.is_total)]


def cost_of_all(mechanism: Mechanism, costs: Sequence[FigureCost]) -> FigureCost | None:
    """The cost of all figures and bounds together; None where there is at most one.

    Costs of single figures do not add up: of two figures that tell the same, each looks free.
    `costs` are these.
    """
    if len(costs) < 2:
        return None
    none_left = _without(mechanism.adjacency.everything, _priced(mechanism))
    return _compared(mechanism, ALL_TOGETHER, none_left, costs[0].deviation)


def _cost(mechanism: Mechanism, statement: Statement, deviation: float | None) -> FigureCost:
    figures = mechanism.adjacency.everything
    others = _without(figures, [statement])
    found = _compared(mechanism, statement.label, others, deviation)
    figure = statement.relation == "="
    return replace(found, told_by_others=figure and _ranks(others) == _ranks(figures))


def _ranks(figures: Figures) -> tuple[int, int]:
    """Independent figures about rows and about units."""
    return figures.rank, 0 if figures.of_units is None else figures.of_units.rank


def _compared(
    mechanism: Mechanism, label: str, figures: Figures, deviation: float | None
) -> FigureCost:
    """The release as planned beside the same release under fewer figures."""
    tradeoff, description = mechanism.guarantee.tradeoff, mechanism.description
    loss = _parameter(tradeoff)
    try:
        adjacency = _given(mechanism.adjacency, figures)
        other = _alike(mechanism, Guarantee(adjacency, tradeoff))
        law = replace(description, support=adjacency.figures)
        before = _parameter(joint_loss([law], adjacency).tradeoff)
        if description.nonnegative:
            loss, before = _comparable(description, mechanism.adjacency, law, adjacency)
    except CongenialError:
        return FigureCost(label, loss, None, deviation, None)
    return FigureCost(label, loss, before, deviation, cell_deviation(other))


def _comparable(
    law: Description, pairs: Adjacency, other: Description, others: Adjacency
) -> tuple[float, float]:
    """Losses of counts with and without a figure: both enumerated, or both by the proved bound."""
    given, without = conditions(law, pairs), conditions(other, others)
    if given.enumerated is None or without.enumerated is None:
        given, without = (replace(one, enumerated=None) for one in (given, without))
    return float(given.loss(law.scale)), float(without.loss(other.scale))


def _alike(mechanism: Mechanism, target: Guarantee) -> Mechanism:
    """The same kind of mechanism for another target."""
    description = mechanism.description
    return calibrate(type(mechanism), target, description.table)


def _given(adjacency: Adjacency, figures: Figures) -> Adjacency:
    """The same unit of protection under other figures."""
    if isinstance(adjacency, SeveralRows):
        return replace(adjacency, published=figures)
    return SemiAdjacent(figures)


def _without(figures: Figures, left_out: Sequence[Statement]) -> Figures:
    units = figures.of_units
    if units is not None:
        units = _without(units, [replace(one, units=False) for one in left_out if one.units])
    kept = [i for i, s in enumerate(figures.statements) if s not in left_out]
    values = None if figures.values is None else tuple(figures.values[i] for i in kept)
    statements = tuple(figures.statements[i] for i in kept)
    none_left = units is None or not units.statements
    return Figures(figures.schema, statements, values, None if none_left else units)


def _parameter(tradeoff: Tradeoff) -> float:
    """The one number of a promise: epsilon, rho or mu."""
    if isinstance(tradeoff, ZeroConcentrated):
        return float(tradeoff.rho)
    if isinstance(tradeoff, Gaussian):
        return float(tradeoff.mu)
    return float(tradeoff.eps) if isinstance(tradeoff, Pure | Approximate) else float("nan")
