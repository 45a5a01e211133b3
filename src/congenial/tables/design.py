"""How precisely each of several tables is measured: the best use of one promise.

Precisions p_b under C p <= 2 rho (C: the maximal difference types), or parameters eps_b of double
geometric noise under C eps <= epsilon. Everything here is a function of schema, figures and what
was asked for, never of the data. Parameters are rounded towards more noise, and that they keep the
promise is checked in rational arithmetic.

Aims: `Keep` (default), the finest tables stay about as good as a release of them alone, no other
table gets worse, and all share evenly what the few per cent of precision thus freed can buy;
`Even`, a geometric mean of all variances with the finest tables at most 1.78 times as wide as
alone; `Weighted`, a weighted sum; `Largest`, the largest relative error. `design_for_accuracy`
finds the least promise that meets stated variances.

From a promise to estimates, whatever it is stated in:

    law, promise = law_and_promise(rho=rho, epsilon=epsilon, delta=delta)
    designed = design(workload, types, model, promise, aim, law)
    work = designed.measurements(figures)               # precisions of the noise given the figures
    deviations = Covariance(work, designed.family)      # before anything is drawn
    ... draw table b with noise of `designed.family`, parameter `designed.scales[b]`; None: do not
    estimates = estimate(work, values)

Pure epsilon: information grows with eps_b^2, so the problem is not convex. The parameters are the
best of a search from several starts, without a certificate, and `words` says so. `variances` count
2 / eps_b^2 per cell, which bounds the noise under any figures (`noise_variance`); `Covariance`
states the smaller ones that the figures of each table give.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import comb
from typing import Any

import numpy as np
from numpy.typing import NDArray

from congenial.data.arguments import (
    COUNT,
    EXACT,
    FINITE,
    TEXT,
    Rule,
    one_of,
    optional,
    takes,
)
from congenial.data.arrays import Floats
from congenial.data.workload import Workload
from congenial.errors import PlanError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.pairs.difference_types import DifferenceTypes
from congenial.tables.aims import LargestRatio, Objective, PowerMean
from congenial.tables.information import Information, VarianceModel
from congenial.tables.joint_estimator import JointEstimator
from congenial.tables.measurements import Measurements
from congenial.tables.noise_variance import Family, noise_variance
from congenial.tables.optimise import DesignCertificate, Problem, certify, solve
from congenial.tables.promise import Law, joint_epsilon, joint_rho

# ---- Aims that hold the finest tables at a stated error: the default, and `even` ----
# Default: finest tables about as good as alone, no other table worse, the rest evenly. The
# precisions make a mean of the tables' relative variances small (of an order near 0, almost a
# geometric mean: every table counts by percentages of its own error). Its shares are found so
# that the finest tables end at a stated multiple of their standard deviation alone, and that no
# coarser table is worse than its sums in that single release: shares of tables that still are
# grow. Whatever the shares are, the design is the best for them, with a certificate.
#
# With pure epsilon, information grows with the square of a parameter: a few per cent of the
# promise buy nothing for tables of few cells per block, which may then be as much worse as the
# finest, and no share of a mean leads to such a design. So the finest tables are given what they
# need, and the others the rest (`given_finest`).
#
# Even: the geometric mean of variances decides how much wider than alone the finest tables
# become, at most `EVEN` times. Given that, the others share what is left by a geometric mean in
# which a table counts once for each pair of attributes that it crosses, at least once: tables of
# few attributes are sums of others and gain from them.

Flags = NDArray[np.bool_]
SHARE_ROUNDS = 8  # in which shares of tables beyond their limit grow
WIDTH = 0.01  # of the bracket of the share of the finest tables, relative to what the others have
SHARES_NEAR = 1e-3  # tolerance while shares are sought
BETTER = 0.985  # largest variance of a coarser table, relative to the single release
ORDER = 0.2  # of the mean of relative variances
EVEN = 1.78  # how much larger than alone `even` lets the standard deviation of the finest tables be
GROWTH = 8.0  # power of the excess by which the weight of a coarser table grows


def finest_tables(workload: Workload, problem: Problem) -> Flags:
    """Open tables that no other table refines."""
    margins = workload.margins
    coarser = [
        any(other.refines(margin) and not margin.refines(other) for other in margins)
        for margin in margins
    ]
    return np.asarray(problem.open & ~np.array(coarser))


def alone(problem: Problem, finest: Flags) -> Floats:
    """All of the promise on the one finest table, or shared by the finest ones, evenly."""
    most = problem.types.max(axis=0)
    here = finest[problem.open]
    x = np.where(here, 1 / most, 1e-9 * (1 / most).min())
    if here.sum() > 1:
        shared = PowerMean.geometric(finest / finest.sum())
        x = solve(replace(problem, objective=shared), x)
    return np.asarray(x / (problem.types @ x).max())


def kept_shares(problem: Problem, finest: Flags, factor: float) -> PowerMean:
    """The mean whose best design has the finest tables at `factor` times alone."""
    coarser = problem.open & ~finest
    if not coarser.any():
        return PowerMean.geometric(finest / finest.sum())
    x = alone(problem, finest)
    single = np.where(problem.open, problem.variances(x), 1)
    limits = np.where(finest, factor**2, BETTER) * single
    mean = PowerMean(problem.open.astype(float), problem.open / single, ORDER)
    search = _Search(replace(problem, tolerance=SHARES_NEAR), mean, finest, factor**2, problem.open)
    low, high = 0.0, 1.0
    for _ in range(SHARE_ROUNDS):
        share, x = search.share_of_finest(x, low, high)
        excess = np.where(problem.open, problem.variances(x), 0) / limits
        if not search.grow(np.minimum(excess, 1.3)):
            break
        low, high = max(0.0, share - 0.05), min(1.0, share + 0.05)
    return search.shared(share)


def even_shares(workload: Workload, problem: Problem, finest: Flags) -> PowerMean:
    """The geometric mean whose best design has the finest tables as wide as `even` lets them be."""
    equally = PowerMean.geometric(problem.open / problem.open.sum())
    if not (problem.open & ~finest).any():
        return equally
    start = solve(replace(problem, objective=equally, tolerance=SHARES_NEAR))
    single = np.where(problem.open, problem.variances(alone(problem, finest)), 1)
    ratios = PowerMean(finest / finest.sum(), problem.open / single, 0.0)
    limit = min(EVEN**2, ratios.value(problem.variances(start)))
    crossed = [max(1, comb(len(names), 2)) for names in workload.tables]
    weights = np.where(problem.open, crossed, 0)
    search = _Search(replace(problem, tolerance=SHARES_NEAR), ratios, finest, limit, weights)
    share, _ = search.share_of_finest(start, 0.0, 1.0)
    return search.shared(share)


@dataclass(frozen=True, eq=False)
class _Given:
    """Variances given precisions that some tables have already."""

    model: VarianceModel
    given: Floats

    def variances(self, precisions: Floats) -> Floats:
        """Mean variance of the cells of each table."""
        return self.model.variances(self.given + precisions)

    def gains(self, precisions: Floats, weights: Floats) -> Floats:
        """-d/dp_c of sum_b weights_b V_b, for each table c."""
        return self.model.gains(self.given + precisions, weights)


def given_finest(problem: Problem, finest: Flags, factor: float) -> Floats:
    """Parameters with 1 / `factor` of those alone on the finest tables, the rest on the others."""
    here = finest[problem.open]
    precisions = np.where(here, alone(problem, finest) / factor, 0)
    coarser = problem.open & ~finest
    if not coarser.any():
        return precisions * factor
    left = 1 - problem.types @ precisions
    rest = Problem(
        _Given(problem.model, problem.precisions(precisions)),
        problem.types[:, ~here] / left[:, None],
        coarser,
        PowerMean.geometric(coarser / coarser.sum()),
        problem.squared,
    )
    shares = precisions.copy()
    shares[~here] = solve(rest)
    return shares


class _Search:
    """Weights inside the finest and inside the other tables, and the share of the finest."""

    def __init__(
        self, problem: Problem, mean: PowerMean, finest: Flags, limit: float, weights: NDArray[Any]
    ) -> None:
        self.problem, self.mean, self.finest, self.limit = problem, mean, finest, limit
        self.weights = weights.astype(float)

    def shared(self, share: float) -> PowerMean:
        """The mean with this share of the finest tables."""
        inside = np.where(self.finest, self.weights, 0)
        others = self.weights - inside
        shares = share * inside / inside.sum() + (1 - share) * others / others.sum()
        return replace(self.mean, shares=shares)

    def share_of_finest(self, start: Floats, low: float, high: float) -> tuple[float, Floats]:
        """By bisection: the larger the share, the smaller the finest tables' variances."""
        finest = replace(self.mean, shares=self.finest / self.finest.sum(), order=0.0)
        x, factor_found, best = start, high, start
        while high - low > WIDTH * (1 - low):
            middle = (low + high) / 2
            tried = replace(self.problem, objective=self.shared(middle))
            x = solve(tried, np.maximum(x, 1e-4 * x.max()))
            if finest.value(self.problem.variances(x)) > self.limit:
                low = middle
            else:
                high = factor_found = middle
                best = x
        return min(factor_found, 1 - WIDTH), best

    def grow(self, excess: Floats) -> bool:
        """Let weights of tables beyond their limit grow; whether any weight changed much.

        A finest table answers to its own weight alone, so all of them come to the same excess; a
        coarser table mostly rests on finer ones, and its weight has to grow faster.
        """
        faster = np.maximum(1, self.weights * excess**GROWTH)
        grown = np.where(self.finest, self.weights * excess, faster)
        grown = np.where(self.problem.open, grown, 0)
        changed = not np.allclose(grown, self.weights, rtol=0.02)
        self.weights = grown
        return changed


BITS = 32  # of a parameter
KEPT = 1.045  # how much larger than alone the standard deviation of the finest tables may be
NEGLIGIBLE = 1e-4  # share of the promise below which a table may be left out
UNCHANGED = 1e-8  # relative error that leaving it out may add
NO_CERTIFICATE = "search, no certificate: with pure epsilon the problem is not convex"


@dataclass(frozen=True)
class Keep:
    """Finest tables at about `factor` times their standard deviation alone; the others evenly.

    With one finest table the factor is kept; several keep it as a mean, and each nearly.
    """

    factor: float = KEPT


@dataclass(frozen=True)
class Even:
    """A geometric mean of all tables' variances: every table counts by percentages of its own.

    With Gaussian noise the finest tables are at most 1.78 times as wide as alone, and each other
    one counts once per pair of attributes that it crosses, at least once (`even_shares`). With pure
    epsilon every table counts once.
    """


@dataclass(frozen=True)
class Weighted:
    """A weighted sum of variances, each relative to the single release unless `absolute`.

    `weights`: one per table, all of them positive.
    """

    weights: tuple[float, ...]
    absolute: bool = False


@dataclass(frozen=True)
class Largest:
    """The largest standard deviation relative to the single release.

    The worst table becomes as good as can be; tables that are not the worst get what is left.
    """


Aim = Keep | Even | Weighted | Largest
AIM = one_of(Keep, Even, Weighted, Largest)
VARIANCES = Rule("a model of variances", lambda one: callable(getattr(one, "variances", None)))
LIMITS = Rule(
    "variances by the number of a table",
    lambda one: (
        isinstance(one, Mapping)
        and all(COUNT.holds(table) and FINITE.holds(limit) for table, limit in one.items())
    ),
)


@dataclass(frozen=True)
class Design:
    """Noise parameters of each table, what they promise and how near the best they are.

    `parameters`: precisions 1 / sigma_b^2, or eps_b; 0 for a table that the figures tell.
    `variances` and `single`: mean variance of the cells of each table under this design, and from
    a release of the finest table alone (of the finest tables, evenly, if there are several).
    """

    workload: Workload
    types: DifferenceTypes
    law: Law
    parameters: tuple[Fraction, ...]
    promise: Fraction
    variances: tuple[float, ...]
    single: tuple[float, ...]
    objective: Objective
    certificate: DesignCertificate | None

    @cached_property
    def relative_errors(self) -> tuple[float, ...]:
        """Standard deviations relative to the single release; 1 where both are 0."""
        pairs = zip(self.variances, self.single, strict=True)
        return tuple(float(np.sqrt(v / s)) if s else 1.0 for v, s in pairs)

    @property
    def family(self) -> Family:
        """The law of the noise, as samplers and covariances name it."""
        return "discrete_gaussian" if self.law == "gaussian" else "double_geometric"

    @cached_property
    def scales(self) -> tuple[Fraction | None, ...]:
        """The noise's parameter for each table: sigma^2, or eps; None where nothing is drawn.

        Parameters are in the units of the types; noise is in steps of the number, for sums.
        """
        square = self.law == "gaussian"
        units = self.types.units or (1,) * len(self.parameters)
        return tuple(
            None if not p else unit**2 / p if square else p / unit
            for p, unit in zip(self.parameters, units, strict=True)
        )

    def measurements(self, figures: Figures) -> Measurements:
        """The tables with the precision of their noise given exact figures."""
        pairs = zip(self.workload.tables, self.scales, strict=True)
        precisions = (
            1 / noise_variance(self.family, scale, support(figures, names)).value if scale else 0.0
            for names, scale in pairs
        )
        return Measurements(self.workload, tuple(precisions), figures)

    @property
    def words(self) -> str:
        """How good the design is among its class."""
        if self.certificate is None:
            return NO_CERTIFICATE
        gap = max(100 * (1 - self.certificate.share), 1e-4)  # of the error, in per cent
        above = 10.0 ** math.ceil(math.log10(gap))
        return (
            "no other way to divide the noise over these tables makes the error more than "
            f"{above:g} % smaller (with equal, independent noise in all cells of a table, at the "
            "price used)"
        )

    def feasible(self) -> bool:
        """Whether the parameters keep the promise, in rational arithmetic."""
        return loss_of(self.types, self.law, self.parameters) <= self.promise

    def single_again(self, model: VarianceModel) -> tuple[float, ...]:
        """`single`, worked out anew from a model of variances."""
        problem = _problem(model, self.types, self.law, self.objective)
        return _single(self.workload, problem, self.promise)

    def certified_share(self, model: VarianceModel) -> float:
        """The certificate's share, worked out anew from a model of variances; 0 without one."""
        if self.certificate is None or not self.feasible():
            return 0.0
        problem = _problem(model, self.types, self.law, self.objective)
        limit = 2 * float(self.promise)
        x = np.array([float(value) for value in self.parameters])[problem.open] / limit
        return self.certificate.recomputed(problem, x)


def loss_of(types: DifferenceTypes, law: Law, parameters: Sequence[Fraction]) -> Fraction:
    """rho or epsilon of noise parameters."""
    priced = joint_rho if law == "gaussian" else joint_epsilon
    return priced(types, parameters).value


@takes(
    PlanError,
    workload=Workload,
    types=DifferenceTypes,
    model=VARIANCES,
    promise=EXACT,
    aim=optional(AIM),
    law=TEXT,
)
def design(
    workload: Workload,
    types: DifferenceTypes,
    model: VarianceModel,
    promise: Fraction,
    aim: Aim | None = None,
    law: Law = "gaussian",
) -> Design:
    """The best parameters for an aim under rho = `promise` ("gaussian") or epsilon ("geometric").

    `promise.law_and_promise` turns epsilon with delta into rho.
    """
    problem = _problem(model, types, law, _evenly(types, law))
    aim = aim or Keep()
    if isinstance(aim, Keep) and problem.squared:
        x = given_finest(problem, finest_tables(workload, problem), aim.factor)
        return _designed(workload, types, problem, promise, x)
    objective = _objective(workload, problem, aim)
    return _designed(workload, types, replace(problem, objective=objective), promise)


@takes(workload=Workload, types=DifferenceTypes, model=VARIANCES, limits=LIMITS, law=TEXT)
def design_for_accuracy(
    workload: Workload,
    types: DifferenceTypes,
    model: VarianceModel,
    limits: Mapping[int, float],
    law: Law = "gaussian",
) -> Design:
    """The least promise that keeps the variance of tables (by number) below stated limits.

    Smallest rho (or epsilon) under which some precisions p with C p <= 2 rho have
    V_b(p) <= limits[b] for every table b asked about, V_b the mean variance of its cells' best
    estimates. Variances scale as V(t p) = V(p) / t, so one convex problem, max_b V_b / limits[b]
    under C p <= 1, tells it. The promise is rounded up, so the limits hold. For geometric noise
    that problem is not convex: the limits hold, and that no smaller epsilon would do is not proved.
    Tables that the figures tell need nothing. PlanError for a limit that is not above 0, and where
    the figures tell all tables asked about.

    >>> from congenial import ReplaceOne, Schema
    >>> from congenial.pairs.difference_types import difference_types
    >>> from congenial.tables.information import Information
    >>> schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 2]}})
    >>> work = Workload.of(schema, [["sex", "age"], ["sex"]])
    >>> types = difference_types(ReplaceOne(schema), work)
    >>> model = Information.of(work, Figures(schema))
    >>> found = design_for_accuracy(work, types, model, {0: 4.0, 1: 1.0})
    >>> all(a <= b for a, b in zip(found.variances, (4.0, 1.0))), found.feasible()
    (True, True)
    """
    factors = np.zeros(len(types.tables))
    for table, limit in limits.items():
        if not limit > 0:
            raise PlanError(
                f"table {list(types.tables[table])} is asked for with a variance of {limit}.",
                remedy="Publish it exactly, or ask for more than 0.",
            )
        factors[table] = 1 / limit
    open_ = _open(types, law)
    factors[~open_] = 0
    if not factors.any():
        raise PlanError(
            "the figures tell every table for which an accuracy is asked.",
            remedy="Ask for a table that the figures leave open.",
        )
    problem = _problem(model, types, law, LargestRatio(factors))
    x = solve(problem)
    needed = problem.value(x) if law == "gaussian" else np.sqrt(problem.value(x))
    promise = _up(needed / 2 if law == "gaussian" else needed)
    return _designed(workload, types, problem, promise, x)


def _designed(
    workload: Workload,
    types: DifferenceTypes,
    problem: Problem,
    promise: Fraction,
    x: Floats | None = None,
) -> Design:
    x = _without_negligible(workload, problem, solve(problem) if x is None else x)
    law: Law = "geometric" if problem.squared else "gaussian"
    scale = float(promise) * (1 if problem.squared else 2)
    parameters = _rational(types, law, problem, x * scale, promise)
    exact = np.array([float(value) for value in parameters])[problem.open]
    certificate = None if problem.squared else certify(problem, exact / scale)
    return Design(
        workload,
        types,
        law,
        parameters,
        promise,
        tuple(problem.variances(exact).tolist()),
        _single(workload, problem, promise),
        problem.objective,
        certificate,
    )


def _single(workload: Workload, problem: Problem, promise: Fraction) -> tuple[float, ...]:
    """Variances from a release of the finest tables alone, under the same promise."""
    scale = float(promise) * (1 if problem.squared else 2)
    x = alone(problem, finest_tables(workload, problem)) * scale
    return tuple(problem.model.variances(problem.precisions(x)).tolist())


def _without_negligible(workload: Workload, problem: Problem, x: Floats) -> Floats:
    """The same without tables that cost next to nothing and add next to nothing: no draw of them.

    Only tables that are sums of another measured one, so that everything stays determined.
    """
    margins = [
        margin for margin, is_open in zip(workload.margins, problem.open, strict=True) if is_open
    ]
    for b in np.flatnonzero((problem.types * x).max(axis=0) < NEGLIGIBLE):
        rest = [c for c in np.flatnonzero(x) if c != b]
        if any(margins[c].refines(margins[b]) for c in rest):
            trial = np.where(np.arange(len(x)) == b, 0.0, x)
            if problem.value(trial) <= problem.value(x) * (1 + UNCHANGED):
                x = trial
    return x


# ---- problems ------------------------------------------------------------------------------------


def _norms(types: DifferenceTypes, law: Law) -> NDArray[np.float64]:
    return np.array(types.squares if law == "gaussian" else types.absolutes, dtype=float)


def _open(types: DifferenceTypes, law: Law) -> NDArray[np.bool_]:
    """Tables that some pair of look-alikes moves."""
    return np.asarray(_norms(types, law).any(axis=0))


def _problem(
    model: VarianceModel, types: DifferenceTypes, law: Law, objective: Objective
) -> Problem:
    open_ = _open(types, law)
    if not open_.any():
        raise StructureError(
            "the figures tell every table: nothing is left to measure.",
            remedy="Publish the tables exactly, or name a finer one.",
        )
    return Problem(model, _norms(types, law)[:, open_], open_, objective, law == "geometric")


def _evenly(types: DifferenceTypes, law: Law) -> PowerMean:
    """Equal shares of all open tables."""
    open_ = _open(types, law)
    return PowerMean.geometric(open_ / max(1, int(np.sum(open_))))


def _objective(workload: Workload, problem: Problem, aim: Aim) -> Objective:
    if isinstance(aim, Keep):
        return kept_shares(problem, finest_tables(workload, problem), aim.factor)
    if isinstance(aim, Even):
        if problem.squared:
            return problem.objective
        return even_shares(workload, problem, finest_tables(workload, problem))
    single = problem.variances(alone(problem, finest_tables(workload, problem)))
    relative = np.where(problem.open, 1 / np.where(problem.open, single, 1), 0)
    if isinstance(aim, Largest):
        return LargestRatio(relative)
    return PowerMean.total(_weights(aim, problem) * (1 if aim.absolute else relative))


def _weights(aim: Weighted, problem: Problem) -> Floats:
    weights = np.array(aim.weights, dtype=float)
    if len(weights) != len(problem.open):
        raise PlanError(
            f"{len(weights)} weights for {len(problem.open)} tables.", remedy="Give one per table."
        )
    if not np.all(np.isfinite(weights) & (weights > 0)):
        wrong = int(np.argmin(np.isfinite(weights) & (weights > 0)))
        raise PlanError(
            f"the weight of table {wrong + 1} is {weights[wrong]:g}, and must be positive.",
            remedy="Leave out a table that does not count, or give it a small weight.",
        )
    return np.where(problem.open, weights, 0)


# ---- rational parameters -------------------------------------------------------------------------


def _rational(
    types: DifferenceTypes, law: Law, problem: Problem, x: Floats, promise: Fraction
) -> tuple[Fraction, ...]:
    """The parameters as fractions of few bits, none larger than what keeps the promise."""
    whole = np.zeros(len(problem.open))
    whole[problem.open] = x
    exact = [Fraction(float(value)) for value in whole]
    factor = promise / loss_of(types, law, exact)
    return tuple(_down(value * factor) for value in exact)


def _down(value: Fraction) -> Fraction:
    """The largest fraction of BITS bits that is at most `value`.

    >>> _down(Fraction(1, 3)) <= Fraction(1, 3), _down(Fraction(3, 4))
    (True, Fraction(3, 4))
    """
    if value <= 0:
        return Fraction(0)
    shift = BITS - (value.numerator.bit_length() - value.denominator.bit_length())
    power = Fraction(2) ** shift
    return Fraction(int(value * power)) / power


def _up(value: float) -> Fraction:
    """A fraction of few bits a little above a positive number."""
    return _down(Fraction(float(value)) * (1 + Fraction(1, 2**24)))


# ---- Design for cells ----
# The least promise that is found under which every cell of some tables is as precise as asked.
#
# A design knows the mean variance of each table's cells (`design_for_accuracy`); cells of unequal
# areas differ. So the limits of the means are lowered by what the worst cell exceeds its mean, a
# few times, and what still is too much in the end is met by more of everything: for Gaussian
# noise, a factor of the precisions. Double geometric noise varies less than the 2 / eps^2 of a
# design, so the least factor of its parameters is found by halving.

ROUNDS = 4
LOOSER = 4.0  # by which a limit that is met easily is relaxed in a round
NEAR = 1e-3  # of the least factor, where it is found by halving
ENOUGH = 1.001  # excess of a variance that is met by more of everything


def design_for_cells(
    workload: Workload,
    types: DifferenceTypes,
    model: Information,
    limits: Mapping[int, float],
    figures: Figures,
    law: Law = "gaussian",
) -> Design:
    """A design whose worst cell of table b has a variance of at most `limits[b]`."""
    aims, tried = dict(limits), []
    for _ in range(ROUNDS):
        least = design_for_accuracy(workload, types, model, aims, law)
        excess = _excess(least, limits, figures)
        if law == "geometric":  # a design knows bounds of variances only: they may be far apart
            tried.append(_least(least, limits, figures))
            aims = {b: aim / max(excess[b], 1 / LOOSER) for b, aim in aims.items()}
        elif max(excess.values()) <= ENOUGH:
            break
        else:
            aims = {b: aim / max(1.0, excess[b]) for b, aim in aims.items()}
    if tried:
        return min(tried, key=lambda one: one.promise)
    return _more(least, max(1.0, *_excess(least, limits, figures).values()))


def _least(found: Design, limits: Mapping[int, float], figures: Figures) -> Design:
    """The same with the least multiple of its parameters that meets the limits, nearly."""

    def enough(factor: float) -> bool:
        return max(_excess(_more(found, factor), limits, figures).values()) <= 1

    high = 1.0
    while not enough(high):
        high *= 2
    low = high / 2
    while enough(low):
        low, high = low / 2, low
    while high > low * (1 + NEAR):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return _more(found, high)


def _excess(found: Design, limits: Mapping[int, float], figures: Figures) -> dict[int, float]:
    """Worst variance of each table, relative to its limit."""
    together = JointEstimator(found.workload, found.family, found.scales, figures)
    tables = found.workload.tables
    return {
        b: float(together.deviations(tables[b]).values.max(initial=0.0)) ** 2 / limit
        for b, limit in limits.items()
    }


def _more(found: Design, factor: float) -> Design:
    """The same with parameters and promise that much larger; variances fall as a design counts."""
    if factor == 1:
        return found
    up = Fraction(int(factor * 2**BITS) + 1, 2**BITS)
    less = float(up) ** (1 if found.law == "gaussian" else 2)
    return replace(
        found,
        parameters=tuple(value * up for value in found.parameters),
        promise=found.promise * up,
        variances=tuple(value / less for value in found.variances),
        single=tuple(value / less for value in found.single),
    )
