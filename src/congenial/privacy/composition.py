"""What several releases promise together, over the databases that agree with everything published.

For releases with raw law ~ exp(-eps_i ||y - phi_i s||_1) on a translation-invariant support
the joint pure loss is sup over u in S of sum_i eps_i ||phi_i u||_1; for Gaussian laws the squared
distance adds the same way. Because the supremum is joint, it is never above the sum of single
suprema. Tables that sum a number are in the same supremum, over what look-alikes change in counts
and sums at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil, inf, isqrt, nextafter
from typing import TYPE_CHECKING, get_args

from congenial.data.arguments import expect
from congenial.errors import GuaranteeError
from congenial.pairs.difference_types import joint_norm
from congenial.pairs.pairs import ROWS_OF_ONE_UNIT, Adjacency, Supremum
from congenial.pairs.several_rows import SeveralRows, saved_together
from congenial.privacy.conversions import pure_to_zcdp
from congenial.privacy.description import HULLS, Description
from congenial.privacy.descriptions import AnyDescription, RecordDescription
from congenial.privacy.normaliser import Conditions
from congenial.privacy.numbers import above
from congenial.privacy.tradeoff import (
    Gaussian,
    GaussianDraw,
    Nothing,
    Pure,
    Tradeoff,
    ZeroConcentrated,
)

if TYPE_CHECKING:
    from congenial.pairs.difference_types import Measured

ZERO = Fraction(0)


@dataclass(frozen=True)
class Loss:
    """Joint loss of a set of releases, by kind: l1 laws, discrete and continuous Gaussian laws.

    `epsilon` counts the l1 laws with their numerics, `mass` the probability lost to windows; `rho`
    is sup sum ||phi_i u||^2 / (2 sigma_i^2) over all Gaussian laws. `discrete` says whether one of
    those is discrete, when the promise is zCDP and not G_mu; `one_draw`, whether all of rho is one
    release of discrete noise, fixed before it was drawn. `exact` is False where a supremum is only
    bounded.
    """

    epsilon: Fraction = ZERO
    rho: Fraction = ZERO
    discrete: bool = False
    one_draw: bool = False
    exact: bool = True
    silent: int = 0  # releases that promise nothing about persons

    @property
    def tradeoff(self) -> Tradeoff:
        """The promise as one trade-off function: none beside a release that promises nothing."""
        return Nothing() if self.silent else self._counted

    @property
    def _counted(self) -> Tradeoff:
        """The promise of the releases that have one."""
        if not self.rho:
            return Pure(self.epsilon)
        if not self.epsilon and not self.discrete:
            return Gaussian(_root_up(2 * self.rho))
        if self.one_draw and not self.epsilon:
            return GaussianDraw(self.rho)
        return ZeroConcentrated(self.rho + Fraction(pure_to_zcdp(self.epsilon)))

    def epsilon_at(self, delta: float) -> float:
        """The smallest epsilon we can prove at `delta`: exact for one kind, the better of two ways
        of adding unlike kinds (zCDP throughout, or pure loss on top of the Gaussian part's).

        Releases without a promise are not in it; whoever prints it names them beside it.
        """
        joint = self._counted.epsilon(delta)
        if self.rho and self.epsilon and delta > 0:
            gaussian = replace(self, epsilon=ZERO)._counted
            return min(joint, above(above(self.epsilon) + Fraction(gaussian.epsilon(delta))))
        return joint


def _root_up(square: Fraction) -> Fraction | float:
    """The square root: exact where it is rational, otherwise rounded up."""
    top, bottom = isqrt(square.numerator), isqrt(square.denominator)
    if top**2 == square.numerator and bottom**2 == square.denominator:
        return Fraction(top, bottom)
    return nextafter(nextafter(float(square), inf) ** 0.5, inf)


def joint_loss(descriptions: Sequence[AnyDescription], adjacency: Adjacency) -> Loss:
    """Price all releases at once over the adjacency's pairs.

    Raises GuaranteeError when a release was conditioned on figures that the adjacency does not fix:
    some pairs would then differ off the release's lattice and the loss is infinite.
    """
    expect(adjacency, Adjacency, "the adjacency", "Give for example ReplaceOne(schema).")
    expect(descriptions, Sequence, "the releases", "Give a list of descriptions.", GuaranteeError)
    for d in descriptions:
        expect(d, get_args(AnyDescription), "a release", "Give its description.", GuaranteeError)
    other = [d for d in descriptions if _of_units(d) != adjacency.counts_units]
    if other:
        same = [d for d in descriptions if _of_units(d) == adjacency.counts_units]
        apart = added([joint_loss(same, adjacency), joint_loss(other, _for_units(adjacency))])
        return _rows_and_units(apart, same, other, adjacency)
    laws = [law for d in descriptions for law in d.laws]
    for law in laws:
        stated = (*adjacency.figures.statements, *adjacency.figures.empty)
        for statement in law.support.statements:
            if statement not in stated:
                raise GuaranteeError(
                    f"a release was drawn to agree with '{statement.label}', which is not "
                    "published.",
                    remedy="Publish that figure first: the release reveals it.",
                )
    tables = [d for d in laws if isinstance(d, Description)]
    records = [d for d in laws if isinstance(d, RecordDescription)]
    for d in tables:
        _refuse_figures_of_number(d, adjacency)
    l2 = [(d.table, 1 / d.variance, d.magnitude) for d in tables if d.norm == "l2"]
    pure = _pure(tables, adjacency)
    square = _joint_norm(adjacency, l2, square=True) if l2 else None
    numerics = sum((2 * d.log_ratio_error for d in tables), ZERO)
    others = [_other_norm(d, adjacency) for d in tables if d.norm not in ("l1", "l2")]
    each = [_record_loss(d, adjacency) for d in records]
    return Loss(
        epsilon=(pure.value if pure else ZERO)
        + numerics
        + sum((loss.value for loss in others), ZERO)
        + sum((epsilon for epsilon, _ in each), ZERO),
        rho=(square.value / 2 if square else ZERO) + sum((rho for _, rho in each), ZERO),
        discrete=any(d.family == "discrete_gaussian" for d in tables) or any(r for _, r in each),
        one_draw=_one_draw(descriptions) and not any(rho for _, rho in each),
        exact=(pure is None or pure.exact)
        and (square is None or square.exact)
        and not records
        and (not others or (len(tables) == 1 and others[0].exact)),
        silent=sum(not d.persons for d in records),
    )


def _one_draw(descriptions: Sequence[AnyDescription]) -> bool:
    """Whether all Gaussian noise is exact, discrete and of one release: then its parameters were
    fixed together, and the bound of `gaussian_draw` holds for it.
    """
    gaussian = [
        [law for law in d.laws if isinstance(law, Description) and law.norm == "l2"]
        for d in descriptions
    ]
    drawn = [laws for laws in gaussian if laws]
    return len(drawn) == 1 and all(
        law.family == "discrete_gaussian" and not law.log_ratio_error for law in drawn[0]
    )


def refuse_unpriced(description: AnyDescription, adjacency: Adjacency) -> None:
    """GuaranteeError where a release has no price over pairs of this kind; works no price out."""
    if _of_units(description) != adjacency.counts_units:
        _for_units(adjacency)
    for law in description.laws:
        if isinstance(law, RecordDescription):
            _refuse_records(law, adjacency)


def _joint_norm(adjacency: Adjacency, tables: Sequence[Measured], *, square: bool) -> Supremum:
    """The joint supremum of tables that count people or sum a number."""
    if any(number is not None for *_, number in tables):
        return joint_norm(adjacency, tables, square=square)
    counts = [(names, weight) for names, weight, _ in tables]
    return (adjacency.joint_l2_squared if square else adjacency.joint_l1)(counts)


def _refuse_figures_of_number(description: Description, adjacency: Adjacency) -> None:
    """GuaranteeError where exact figures count people by the number that a table sums."""
    number = description.magnitude
    bases = [] if number is None else adjacency.everything.bases
    if number is not None and number.column in bases:
        raise GuaranteeError(
            f"exact figures count people by '{number.column}', whose sums are protected: no cost "
            "is proved for both together.",
            remedy=f"Leave out the figures about '{number.column}', or do not release its sums.",
        )


def _of_units(description: AnyDescription) -> bool:
    """Whether a release counts units that own several rows."""
    return not isinstance(description, RecordDescription) and description.units


def _for_units(adjacency: Adjacency) -> Adjacency:
    """The same pairs for tables of units; refused where units have one row each, or the other way
    round.
    """
    if adjacency.metric != ROWS_OF_ONE_UNIT:
        raise GuaranteeError(
            "tables of units need pairs with several rows per unit (SeveralRows), and other "
            "tables do not.",
            remedy="Use SeveralRows, which handles tables of rows and of units.",
        )
    of_units: Adjacency = adjacency.tables_of_units  # type: ignore[attr-defined]
    return of_units


def _rows_and_units(
    apart: Loss,
    rows: Sequence[AnyDescription],
    units: Sequence[AnyDescription],
    adjacency: Adjacency,
) -> Loss:
    """What both lose together: less than `apart`, by what no pair moves in both kinds.

    Laws without a supremum that is linear in their weights (signs, other norms) are not compared.
    """
    assert isinstance(adjacency, SeveralRows)  # `_for_units` refuses all others
    laws = [
        [law for d in kind for law in d.laws if isinstance(law, Description)]
        for kind in (rows, units)
    ]
    squares = [[(d.table, 1 / d.variance) for d in kind if d.norm == "l2"] for kind in laws]
    plain = [
        [term for d in kind if d.norm == "l1" and not d.nonnegative for term in d.terms]
        for kind in laws
    ]
    signed = any(d.nonnegative for kind in laws for d in kind)
    return replace(
        apart,
        epsilon=apart.epsilon
        - (ZERO if signed else saved_together(adjacency, *plain, square=False)),
        rho=apart.rho - saved_together(adjacency, *squares, square=True) / 2,
    )


def added(losses: Sequence[Loss]) -> Loss:
    """Losses added up part by part: at least what the releases lose together."""
    return Loss(
        epsilon=sum((loss.epsilon for loss in losses), ZERO),
        rho=sum((loss.rho for loss in losses), ZERO),
        discrete=any(loss.discrete for loss in losses),
        exact=all(loss.exact for loss in losses),
        silent=sum(loss.silent for loss in losses),
    )


def largest_change(description: Description, adjacency: Adjacency) -> Supremum:
    """How far look-alikes are apart in the norm the loss is counted in; squared for l2 and length.

    The loss of one release is this times its rate; for l2 over twice the variance, and for length
    the root of this times its rate squared.
    """
    names = description.table
    if description.norm == "gauge":
        return largest_gauge(adjacency, names, HULLS[description.family])
    if description.norm == "linf":
        return adjacency.linf(names)
    measured = (names, Fraction(1), description.magnitude)
    return _joint_norm(adjacency, [measured], square=description.norm != "l1")


def _other_norm(description: Description, adjacency: Adjacency) -> Supremum:
    """The loss of a law in the gauge, the length or the largest entry of a difference.

    By the triangle inequality |rate ||y - s|| - rate ||y - s'||| <= rate ||s - s'||, and the
    normaliser is the same for all conforming tables (semi-dp, Proposition 7, on a lattice).
    """
    most = largest_change(description, adjacency)
    loss = most.value * description.scale
    if description.norm == "length":
        loss = Fraction(_root_up(loss))
    return replace(most, value=loss)


def largest_gauge(adjacency: Adjacency, table: Sequence[str], hull: int) -> Supremum:
    """A bound of the gauge of the hull of swaps (2) or of swaps and hexagons (3) over the pairs.

    A two-way table with zero margins and l1 norm at most 2 a splits into circuits of half-lengths
    m_1, m_2, ... with sum at most a. A chord cuts a circuit of half-length m into one of
    half-length b and one of m - b + 1, so its gauge is at most ceil((m - 1) / (b - 1)); for b = 2
    and 3 one circuit of half-length a is the worst. Attained by a swap when a <= b.
    """
    a = moves(adjacency, table)
    return Supremum(Fraction(-(-(a - 1) // (hull - 1))), a <= hull)


def moves(adjacency: Adjacency, table: Sequence[str]) -> int:
    """Half the largest l1 norm of a table's difference when n is kept: records, or half the rows
    that come and go.
    """
    apart = adjacency.rows_apart(table)
    return apart // 2 if adjacency.metric == "symmetric difference" else apart


def _record_loss(description: RecordDescription, adjacency: Adjacency) -> tuple[Fraction, Fraction]:
    """Pure and zCDP loss of a release known by its loss per record, `adjacency.records` apart.

    Of units with several rows, where the figures tell the number of rows, tables differ as if so
    many rows were replaced: what a function of the rows alone loses.
    """
    _refuse_records(description, adjacency)
    several = adjacency.metric == ROWS_OF_ONE_UNIT
    a = adjacency.rows_apart(description.shown or ()) if several else adjacency.records
    if several or adjacency.metric == "replace-one":
        return a * description.epsilon, a**2 * description.rho
    return a * (description.added or ZERO), ZERO


def _refuse_records(description: RecordDescription, adjacency: Adjacency) -> None:
    """GuaranteeError where the loss per record says nothing of such pairs."""
    if adjacency.metric == ROWS_OF_ONE_UNIT:
        if description.shown is None or not adjacency.people_kept:  # type: ignore[attr-defined]
            raise GuaranteeError(
                f"'{description.mechanism}' makes no promise for units with several rows here.",
                remedy="Use a ledger with one row per person (replace-one).",
            )
        adjacency.schema.axes(description.shown)  # raises when an axis is unknown
    elif adjacency.metric != "replace-one" and description.added is None and description.persons:
        raise GuaranteeError(
            f"'{description.mechanism}' makes no promise for records added or removed.",
            remedy="Use a ledger with one row per person (replace-one).",
        )


def _pure(tables: Sequence[Description], adjacency: Adjacency) -> Supremum | None:
    """sup of the l1 laws' joint loss: adjacency prices together, and what signs and bounds add.

    Two bounds hold, and the smaller one counts: the joint adjacency price plus every largest
    log Z(s')/Z(s); or the joint adjacency price of the laws without signs plus, for each other
    release, its own largest log ratio (which enumeration may know exactly).
    """
    l1 = [d for d in tables if d.norm == "l1"]
    if not l1:
        return None
    terms = [(*term, d.magnitude) for d in l1 for term in d.terms]
    together = _joint_norm(adjacency, terms, square=False)
    signed = [(d, conditions(d, adjacency)) for d in l1 if d.nonnegative]
    if not signed:
        return together
    plain = [(*term, d.magnitude) for d in l1 if not d.nonnegative for term in d.terms]
    apart = _joint_norm(adjacency, plain, square=False).value if plain else ZERO
    value = min(
        together.value + sum((sign.normaliser(d.rate) for d, sign in signed), ZERO),
        apart + sum((sign.loss(d.rate) for d, sign in signed), ZERO),
    )
    # On a grid of 10^-9, upwards: the promise is a number people can read.
    rounded = Fraction(ceil(value * 10**9), 10**9)
    alone = len(l1) == 1 and getattr(adjacency, "reading", "robust") == "robust"
    attained = alone and signed[0][1].exact and adjacency.figures == signed[0][0].support
    return Supremum(rounded, attained, "enumeration" if attained else "closed form")


def conditions(description: Description, adjacency: Adjacency) -> Conditions:
    """What a release of counts was conditioned on, over the pairs of this adjacency."""
    distance = int(adjacency.l1(description.table).value)
    replaced = adjacency.metric == "replace-one"
    return Conditions.of(description.support, description.table, distance, replaced)
