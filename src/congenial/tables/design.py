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

import numpy as np
from numpy.typing import NDArray

from congenial.data.argument_rules import (
    COUNT,
    EXACT,
    FINITE,
    TEXT,
    Rule,
    one_of,
    optional,
    takes,
)
from congenial.data.workload import Workload
from congenial.errors import PlanError, StructureError
from congenial.figures.figures import Figures
from congenial.figures.support import support
from congenial.pairs.difference_types import DifferenceTypes
from congenial.tables.aims import LargestRatio, Objective, PowerMean
from congenial.tables.certificate import DesignCertificate, certify
from congenial.tables.information import Floats, VarianceModel
from congenial.tables.keep import alone, even_shares, finest_tables, given_finest, kept_shares
from congenial.tables.measurements import Measurements
from congenial.tables.noise_variance import Family, noise_variance
from congenial.tables.optimise import Problem, solve
from congenial.tables.promise import Law, joint_epsilon, joint_rho

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
        """The noise's parameter for each table: sigma^2, or eps; None where nothing is drawn."""
        invert = self.law == "gaussian"
        return tuple((1 / p if invert else p) if p else None for p in self.parameters)

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
            f"no other split of the noise over these tables has an error smaller by {above:g} % "
            "(independent noise of equal size in all cells of a table, at the price used)"
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
    margins = [margin for margin, one in zip(workload.margins, problem.open, strict=True) if one]
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
