"""Every mechanism on every small universe it can serve: the rows of the exact audit.

A table mechanism joins by registering; what is not a table is listed in `laws`.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from congenial.audit.exact_audit import MOST_OUTPUTS, ExactAudit, Verdict, audit_laws, exact_audit
from congenial.audit.universes import FURTHER, UNIVERSES, SmallUniverse
from congenial.data.arrays import Floats, Ints
from congenial.data.schema import Schema
from congenial.data.vector_statistics import Statistic, Statistics
from congenial.errors import StructureError
from congenial.mechanisms import calibrate as _registering  # noqa: F401 - fills the registry
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.transported_noise import wasserstein_noise
from congenial.mechanisms.mechanism import REGISTRY, Mechanism
from congenial.mechanisms.wasserstein.base_measure import Base, congenial, naive, prior_congenial
from congenial.mechanisms.wasserstein.convex_statistics import Box, Mean, Quantile
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.gradient import WassersteinGradient
from congenial.pairs.distributions import DistributionPairs
from congenial.pairs.finite_scenarios import FiniteScenarios
from congenial.pairs.pairs import Adjacency
from congenial.pairs.scenarios import Conditionals, DependentCounts, Query
from congenial.pairs.secrets import SecretPairs
from congenial.pairs.stated_laws import DiscreteLaw, GaussianLaw, StatedBinomial
from congenial.privacy.guarantee import Guarantee
from congenial.privacy.tradeoff import Approximate, Gaussian, Pure, Tradeoff, ZeroConcentrated
from congenial.synthesis.column_kernels import kernel_of
from congenial.synthesis.models import NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid

# ---- Exact audits of what is not a table of counts: synthetic records, values given public ----
# information, statistics that hide a property.
#
# Each entry of `LAWS` enumerates a small case: all pairs that must look alike, and the exact law
# of what is released under either side of each.

ANSWER = Schema.from_dict({"answer": {"levels": ["no", "yes"]}})
AMOUNTS = Schema.from_dict({"x": {"edges": [0, 1, 2, 4, 50, 1_000_000], "top": "many"}})
M = Fraction(1, 2)

LawCase = tuple[str, str, Callable[[], ExactAudit]]  # mechanism, universe, how to audit it


# ---- synthetic records ---------------------------------------------------------------------------


def synthesis(model: Any, *, replaced: bool, people: int = 3) -> ExactAudit:
    """All databases of up to `people` records, one replaced (2M) or added (M)."""
    attribute = AMOUNTS.attribute("x")
    allowed = np.ones((1, attribute.size), dtype=bool)
    kernel = kernel_of(model, attribute=attribute, allowed=allowed, bound=M)

    def databases(n: int) -> list[Ints]:
        cells = combinations_with_replacement(range(attribute.size), n)
        return [np.bincount(np.array(c, dtype=np.int64), minlength=attribute.size) for c in cells]

    laws: dict[bytes, Floats] = {}

    def law(table: Ints) -> Floats:
        key = table.tobytes()
        if key not in laws:
            laws[key] = kernel.laws(table[None, :])[0].log_probabilities
        return laws[key]

    def pairs() -> Iterator[tuple[Floats, Floats]]:
        for n in range(1, people + 1):
            for s in databases(n):
                for t in databases(n if replaced else n - 1):
                    if np.abs(s - t).sum() == (2 if replaced else 1):
                        yield law(s), law(t)
                        if not replaced:  # a replaced record is met in both orders anyway
                            yield law(t), law(s)

    return audit_laws(Pure(2 * M if replaced else M), pairs())


# ---- given public information --------------------------------------------------------------------


def _people() -> SecretPairs:
    """Three people, two beliefs about their answers."""
    beliefs = {"fair": [[1, 1, 1]] * 3, "skew": [[8, 1, 1], [1, 3, 2], [1, 1, 4]]}
    return SecretPairs(ANSWER, (FiniteScenarios.independent(beliefs),))


def _correlated() -> SecretPairs:
    """Two people who nearly always answer alike."""
    rows = list(itertools.product((0, 1), repeat=2))
    return SecretPairs(ANSWER, (FiniteScenarios.of(rows, {"alike": [9, 1, 1, 9]}),))


def _histogram(x: Any) -> tuple[int, ...]:
    return tuple(sum(v == k for v in x) for k in range(3))


def _total(x: Any) -> int:
    return int(sum(x))


def _mixed(law: Any, log_density: Callable[[tuple[int, ...]], Floats]) -> Floats:
    """log density of the release when the answer itself is random."""
    law = law.tabulated() if isinstance(law, StatedBinomial) else law
    points = np.asarray(law.points).reshape(len(law.points), -1).astype(int)
    densities = np.array([log_density(tuple(row)) for row in points.tolist()])
    logs = densities + np.asarray(law.log_masses())[:, None]
    top = logs.max(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(top + np.log(np.exp(logs - top).sum(axis=0)))


def wasserstein(
    pairs: SecretPairs, base: Base, points: Sequence[tuple[int, ...]], query: Query | None = None
) -> ExactAudit:
    """Every pair of beliefs about one person, and every output in the window."""
    mechanism = WassersteinExponential.calibrate(pairs, 1, base, query=query)
    densities: dict[tuple[int, ...], Floats] = {}

    def density(truth: tuple[int, ...]) -> Floats:
        if truth not in densities:
            densities[truth] = np.asarray(mechanism.log_density(points, truth))
        return densities[truth]

    return audit_laws(mechanism.guarantee.tradeoff, _laws(pairs.conditionals(query), density))


def gradient(statistic: Any) -> ExactAudit:
    """A statistic of three people whose answers stand for 0, 0.3 and 1, on a grid of 41 points."""
    beliefs = {"a": [[2, 1, 1]] * 3, "b": [[1, 1, 8]] * 3}
    pairs = SecretPairs(ANSWER, (FiniteScenarios.independent(beliefs),), level="database")
    mechanism = WassersteinGradient.calibrate(pairs, 1, statistic, 41)
    values = np.array([0.0, 0.3, 1.0])

    def density(rows: tuple[int, ...]) -> Floats:
        return mechanism.log_density(values[list(rows)])

    return audit_laws(mechanism.guarantee.tradeoff, _laws(pairs.conditionals(), density))


def _laws(
    beliefs: Iterable[Conditionals], density: Callable[[tuple[int, ...]], Floats]
) -> Iterator[tuple[Floats, Floats]]:
    """What is released given one secret and given the other, in both orders."""
    for pair in beliefs:
        left, right = _mixed(pair.left, density), _mixed(pair.right, density)
        yield left, right
        yield right, left


# ---- statistics that hide a property -------------------------------------------------------------


def _statistics(size: int) -> Statistics:
    schema = Schema.from_dict({name: {"edges": [0, 1000]} for name in "ab"})
    return Statistics(schema, tuple(Statistic.mean(name) for name in "ab"[:size]))


def transported(points: list[tuple[list[int], list[float]]], epsilon: float) -> ExactAudit:
    """Laplace noise on laws on the line, at every output where the ratio can be extreme.

    Between two neighbouring points of the laws the ratio of the released densities is a monotone
    function of y, and beyond the last point it is constant: its extremes are at the points.
    """
    laws = [DiscreteLaw.of(f"law {i}", at, masses) for i, (at, masses) in enumerate(points)]
    pairs = DistributionPairs.given(_statistics(1), laws)
    scale = float(wasserstein_noise(pairs, epsilon).scales[0])
    at = np.unique(np.concatenate([law.points[:, 0] for law in laws]))

    def density(law: DiscreteLaw) -> Floats:
        kernel = np.exp(-np.abs(at[:, None] - law.points[:, 0]) / scale) / (2 * scale)
        return np.asarray(np.log(kernel @ law.probabilities))

    both = [(density(laws[i]), density(laws[j])) for i, j in pairs.pairs]
    ordered = [*both, *((q, p) for p, q in both)]
    return audit_laws(Pure(epsilon), ordered, normalised=False)


def gaussian_statistics(epsilon: float, delta: float) -> ExactAudit:
    """The least Gaussian noise between two normal laws of one covariance, in closed form.

    What is released is N(mean, Sigma + S) under either law, so its trade-off function is G_mu with
    mu^2 = d' (Sigma + S)^{-1} d.
    """
    covariance = [[22, -6], [-6, 13]]
    means = ([100, 101], [97, 106])
    laws = [GaussianLaw.of(f"law {i}", mean, covariance) for i, mean in enumerate(means)]
    pairs = DistributionPairs.given(_statistics(2), laws)
    mechanism = calibrate_distribution(pairs, epsilon, delta, mechanism="optimum").mechanism
    d = np.subtract(*means)
    total = np.array(covariance) + mechanism.noise.total_covariance
    mu = math.sqrt(float(d @ np.linalg.solve(total, d)))
    delta_there = Gaussian(mu).delta(epsilon)
    promised = mechanism.guarantee.tradeoff
    return ExactAudit(
        promised, "delta", delta_there, math.inf, 2, 0, True, (epsilon,), (delta_there,)
    )


# ---- the list ------------------------------------------------------------------------------------

_LINE = [(v,) for v in range(-60, 70)]
_SIMPLEX = [p for p in itertools.product(range(4), repeat=3) if sum(p) == 3]
_PLANE = [p for p in itertools.product(range(-9, 13), repeat=3) if sum(p) == 3]
_SUM = [((0, 1, 2), 3)]
_UNIT = Box((0.0,), (1.0,))
_SKEWED = [
    ([0, 1, 2, 4, 9], [0.5, 0.2, 0.2, 0.06, 0.04]),
    ([0, 1, 2, 4, 9], [0.3, 0.3, 0.25, 0.1, 0.05]),
]
_DEPENDENT = SecretPairs(ANSWER, (DependentCounts(4, Fraction(1, 4), Fraction(3, 4)),))

LAWS: tuple[LawCase, ...] = (
    (
        "pseudo-posterior",
        "Poisson, one record replaced",
        lambda: synthesis(PoissonColumn(Grid(0.5, 30, 9, "log")), replaced=True),
    ),
    (
        "pseudo-posterior",
        "Poisson, one row added",
        lambda: synthesis(PoissonColumn(Grid(0.5, 30, 9, "log")), replaced=False),
    ),
    (
        "pseudo-posterior",
        "normal, one record replaced",
        lambda: synthesis(
            NormalColumn(Grid(0, 20, 4), Grid(1, 30, 3, "log")), replaced=True, people=2
        ),
    ),
    (
        "wasserstein_exponential",
        "a count of dependent people",
        lambda: wasserstein(_DEPENDENT, naive(1), _LINE),
    ),
    (
        "wasserstein_exponential",
        "a count that is not negative",
        lambda: wasserstein(_DEPENDENT, congenial(1), [p for p in _LINE if p[0] >= 0]),
    ),
    (
        "wasserstein_exponential",
        "two people who answer alike",
        lambda: wasserstein(_correlated(), naive(1), _LINE, _total),
    ),
    (
        "wasserstein_exponential",
        "a table of known sum",
        lambda: wasserstein(_people(), Base(3, tuple(_SUM)), _PLANE, _histogram),
    ),
    (
        "wasserstein_exponential",
        "a table of known sum and signs",
        lambda: wasserstein(_people(), congenial(3, _SUM), _SIMPLEX, _histogram),
    ),
    (
        "wasserstein_exponential",
        "a table given last year's",
        lambda: wasserstein(
            _people(),
            prior_congenial(3, _SUM, [4, 0, 1], alpha="1/2", kappa="1/2"),
            _SIMPLEX,
            _histogram,
        ),
    ),
    ("wasserstein_gradient", "a mean", lambda: gradient(Mean(_UNIT))),
    ("wasserstein_gradient", "a median", lambda: gradient(Quantile(_UNIT))),
    ("wasserstein", "two laws on the line", lambda: transported(_SKEWED, 1.0)),
    (
        "wasserstein",
        "two laws, one moved",
        lambda: transported([([0, 1], [0.5, 0.5]), ([3, 4], [0.5, 0.5])], 1.0),
    ),
    ("optimum", "two normal laws", lambda: gaussian_statistics(1.0, 0.01)),
)


# Little noise: few outputs carry nearly all the mass, so that windows and draws are decisive.
TARGETS: dict[type[Tradeoff], Callable[[Adjacency], Guarantee]] = {
    Pure: lambda under: Guarantee.pure(4, under),
    Approximate: lambda under: Guarantee.approximate(8, 1e-2, under),
    ZeroConcentrated: lambda under: Guarantee.zero_concentrated(6, under),
    Gaussian: lambda under: Guarantee.gaussian(3, under),
}
QUICK = ("voting age", "both margins", "sparse margins", "rows come and go", "stand-ins")
QUICK_OUTPUTS = 1_500


@dataclass(frozen=True)
class Case:
    """A calibrated mechanism on a universe; `refused` says why there is none."""

    name: str
    mechanism: Mechanism | None
    universe: SmallUniverse
    target: str
    refused: str = ""

    def __str__(self) -> str:
        return f"{self.name}-{self.target}-{self.universe.label}".replace(" ", "_")


@dataclass(frozen=True)
class AuditRow:
    """One line of the exact audit: what is promised, and the worst that was found.

    pairs, outputs: how many were compared. promised, worst: in the promise's own `parameter`
    (epsilon, rho, mu). verdict: "attained" and "holds" pass.
    """

    mechanism: str
    universe: str
    pairs: int
    outputs: int
    parameter: str
    promised: float
    worst: float
    verdict: Verdict

    @classmethod
    def of(cls, mechanism: str, universe: str, found: ExactAudit) -> AuditRow:
        """The row of an audit."""
        return cls(
            mechanism,
            universe,
            found.pairs,
            found.outputs,
            found.parameter,
            found.stated,
            found.worst,
            found.verdict,
        )

    @property
    def passed(self) -> bool:
        """Whether the promise holds, and is attained where that is claimed."""
        return self.verdict in ("attained", "holds")


def table_cases(universes: Sequence[SmallUniverse]) -> Iterator[Case]:
    """Every registered mechanism, under every target it takes, on every universe; refusals too."""
    for mechanism in REGISTRY.values():
        for universe in universes:
            if mechanism.conditions and not universe.statements:
                continue
            for target in mechanism.targets:
                built, reason = None, ""
                try:
                    built = mechanism.calibrate(
                        TARGETS[target](universe.adjacency), universe.release
                    )
                except StructureError as error:
                    reason = str(error)
                yield Case(mechanism.name, built, universe, target.__name__, reason)


def audit_every_mechanism(quick: bool = False) -> list[AuditRow]:
    """`exact_audit` of every registered mechanism, under every promise it takes, on every small
    universe, and of the laws that are not tables.

    Where a row has not `passed`, a promise is broken: `worst` exceeds `promised` by more than
    rounding, or a promise that is claimed to be attained is not. quick: fewer universes and
    smaller windows, for a test suite. All takes a minute or two.
    """
    every = [u for u in (*UNIVERSES, *FURTHER) if not quick or u.label in QUICK]
    rows = []
    for case in table_cases(every):
        if case.mechanism is not None:
            most = QUICK_OUTPUTS if quick else MOST_OUTPUTS
            audited = exact_audit(case.mechanism, case.universe, most=most)
            rows.append(AuditRow.of(f"{case.name} ({case.target})", case.universe.label, audited))
    for name, label, audit in LAWS:
        rows.append(AuditRow.of(name, label, audit()))
    return rows
