"""Try every mechanism that applies and take the one with the least expected error.

Expected error is E ||W^{1/2} Z||_2 (the paper's L2 error for W = I), from public parameters alone,
so choosing costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from congenial.data.arguments import expect
from congenial.errors import CongenialError, GuaranteeError, StructureError
from congenial.mechanisms.distribution import expected_value, transported_noise
from congenial.mechanisms.distribution.distribution_mechanism import DistributionMechanism
from congenial.mechanisms.distribution.gaussians import shared_distance, worst_delta
from congenial.mechanisms.distribution.optimum import optimum_noise
from congenial.mechanisms.distribution.persons import person_mu, person_requirements, strengthened
from congenial.mechanisms.distribution.sampling_error import (
    CONFIDENCE,
    as_is_delta,
    enlarged_for_fit,
    models_within_error,
)
from congenial.mechanisms.distribution.target import Constant, Target
from congenial.mechanisms.distribution.vector_noise import VectorNoise
from congenial.pairs.distributions import DistributionPairs
from congenial.privacy.conversions import gaussian_delta
from congenial.privacy.tradeoff import Tradeoff

Covariances = Literal["equal", "as they are"]
PAPER = "distribution-privacy"
AS_IS = "as_is"
AS_IS_SOURCE = f"{PAPER}, Theorem 4.4"


@dataclass(frozen=True)
class Request:
    """Everything a mechanism is calibrated from."""

    pairs: DistributionPairs
    target: Target
    weights: Any = None
    assume_equal: bool = False
    persons: Tradeoff | None = None
    confidence: float | Literal["off"] = CONFIDENCE
    modelled: DistributionPairs | None = None  # the pairs noise is built for, if not `pairs`


@dataclass(frozen=True)
class MechanismRow:
    """One mechanism: its name, the paper's shorthand, what the laws must be, how noise is built.

    needs: "translations" (of any law), "gaussian", or "" for any pair of laws. `build` takes the
    request and kappa (Gaussian noise) or epsilon (Laplace noise).
    """

    name: str
    shorthand: str
    citation: str
    needs: Literal["translations", "gaussian", ""]
    family: Literal["gaussian", "laplace"]
    build: Callable[[Request, float], VectorNoise]


def _optimum(request: Request, kappa: float) -> VectorNoise:
    further = []
    if request.persons is not None:
        further = person_requirements(request.pairs.change, request.persons)
    return optimum_noise(request.pairs, kappa, request.weights, further)


def _approximate(request: Request, epsilon: float) -> VectorNoise:
    delta = _positive_delta(request.target)
    return transported_noise.wasserstein_noise(request.pairs, epsilon, delta, request.assume_equal)


def _bounded(request: Request, epsilon: float) -> VectorNoise:
    return transported_noise.bounded_noise(request.pairs, epsilon, _positive_delta(request.target))


def _positive_delta(target: Target) -> float:
    if target.delta == 0:
        raise GuaranteeError("it needs delta > 0.", remedy="Give delta.")
    return target.delta


KINDS: dict[str, MechanismRow] = {
    kind.name: kind
    for kind in (
        MechanismRow(
            "wasserstein", "WasM", f"{PAPER}, Theorem 3.1", "", "laplace",
            lambda r, eps: transported_noise.wasserstein_noise(r.pairs, eps, 0.0, r.assume_equal),
        ),
        MechanismRow(
            "approximate_wasserstein", "WasM (W, delta)", f"{PAPER}, Theorem 3.2", "", "laplace",
            _approximate,
        ),
        MechanismRow(
            "bounded_wasserstein", "WasM (bounded)", f"{PAPER}, Theorem 3.3", "", "laplace",
            _bounded,
        ),
        MechanismRow(
            "expected_laplace", "ExpM (L)", f"{PAPER}, Theorem 4.1", "translations", "laplace",
            lambda r, eps: expected_value.laplace_noise(r.pairs, eps),
        ),
        MechanismRow(
            "expected_gaussian", "ExpM (G)", f"{PAPER}, Theorem 4.2", "translations", "gaussian",
            lambda r, kappa: expected_value.gaussian_noise(r.pairs, kappa),
        ),
        MechanismRow(
            "directional_laplace", "DirM (L)", f"{PAPER}, Theorem 4.3", "translations", "laplace",
            lambda r, eps: expected_value.directional_laplace_noise(r.pairs, eps),
        ),
        MechanismRow(
            "directional_gaussian", "DirM (G)", f"{PAPER}, section 4.2", "translations", "gaussian",
            lambda r, kappa: expected_value.directional_gaussian_noise(r.pairs, kappa),
        ),
        MechanismRow(
            "eigenvector", "EigM (G)", f"{PAPER}, Theorem 4.5", "gaussian", "gaussian",
            lambda r, kappa: expected_value.eigenvector_noise(r.pairs, kappa),
        ),
        MechanismRow(
            "uncertain_direction", "DauM (G)", f"{PAPER}, Theorem A.1", "gaussian", "gaussian",
            lambda r, kappa: expected_value.uncertain_direction_noise(r.pairs, kappa),
        ),
        MechanismRow(
            "optimum", "optimum", f"Corollary A.1 of {PAPER}, minimised", "gaussian", "gaussian",
            _optimum,
        ),
    )
}  # fmt: skip


@dataclass(frozen=True)
class Candidate:
    """One line of the table: the mechanism with its error, or why it does not apply."""

    name: str
    error: float | None
    mechanism: DistributionMechanism | None
    reason: str = ""


@dataclass(frozen=True)
class Choice:
    """The mechanism with the least expected error, and every candidate, best first."""

    mechanism: DistributionMechanism
    candidates: tuple[Candidate, ...]

    def table(self) -> list[dict[str, Any]]:
        """Rows for a report: mechanism, expected L2 error, root mean square, or the reason."""
        rows = []
        for candidate in self.candidates:
            row: dict[str, Any] = {"mechanism": candidate.name, "expected_error": candidate.error}
            if candidate.mechanism is not None:
                row["root_mean_square"] = candidate.mechanism.noise.mean_square() ** 0.5
                row["directions"] = candidate.mechanism.noise.rank
            rows.append(row | ({"why_not": candidate.reason} if candidate.reason else {}))
        return rows


def calibrate_distribution(
    pairs: DistributionPairs,
    epsilon: Any,
    delta: float = 0.0,
    *,
    mechanism: str = "auto",
    constant: Constant = "exact",
    covariances: Covariances | None = None,
    weights: Any = None,
    persons: Tradeoff | None = None,
    confidence: float | Literal["off"] = CONFIDENCE,
    as_is: bool = False,
    dither: bool = True,
) -> Choice:
    """Calibrate to (epsilon, delta) over `pairs` with the least expected error that applies.

    mechanism: a name of `KINDS`, or "auto". constant: "classical" for the paper's. covariances:
    "equal" takes each pair to share one (default for fitted laws; the promise says so), "as they
    are" calibrates to the exact delta of unequal ones (default for given laws). weights: of squared
    errors, one per statistic or a matrix. persons: a promise (mu, or epsilon with delta) that the
    same noise must give to persons. confidence: the noise is enlarged until this upper confidence
    bound over the error of fitted laws meets the target too; "off" leaves that error out, and the
    promise says so. as_is: allow a release
    without noise where the laws' own spread suffices, with an upper confidence bound on delta.
    dither: spread statistics over their grid where the noise could otherwise be stripped.
    """
    expect(
        pairs, DistributionPairs, "the pairs of laws", "Use fit_pairs, or DistributionPairs.given."
    )
    expect(mechanism, str, "mechanism", "Give its name, or 'auto'.", StructureError)
    target = Target(epsilon, delta, constant)
    if constant == "classical" and target.delta:
        _ = target.kappa  # refuse at once where that constant does not hold
    equal = pairs.fitted if covariances is None else covariances == "equal"
    allowed_for = confidence != "off" and pairs.fitted and pairs.gaussian
    modelled = models_within_error(pairs) if allowed_for else None
    matrix = _matrix(weights, pairs.dimension)
    request = Request(pairs, target, matrix, equal, persons, confidence, modelled)
    if covariances == "equal" and not pairs.fitted and not pairs.translations:
        raise StructureError(
            "the stated distributions have different covariances, so they cannot be treated as "
            "equal.",
            remedy="Use covariances = 'as they are'.",
        )
    names = list(KINDS) if mechanism == "auto" else [_known(mechanism)]
    candidates = [_candidate(KINDS[name], request, dither) for name in names if name != AS_IS]
    if as_is or mechanism == AS_IS:
        candidates.append(_as_is(request))
    usable = [candidate for candidate in candidates if candidate.mechanism is not None]
    if not usable:
        reasons = "; ".join(f"{candidate.name}: {candidate.reason}" for candidate in candidates)
        raise StructureError(f"no mechanism applies. {reasons}")
    best = min(usable, key=lambda one: one.error or 0.0)
    assert best.mechanism is not None
    ordered = sorted(candidates, key=lambda one: float("inf") if one.error is None else one.error)
    return Choice(best.mechanism, tuple(ordered))


def _known(name: str) -> str:
    if name not in KINDS and name != AS_IS:
        raise StructureError(
            f"there is no distribution-privacy mechanism {name!r}.",
            remedy=f"Use auto, {', '.join(KINDS)} or {AS_IS}.",
        )
    return name


def _matrix(weights: Any, dimension: int) -> Any:
    if weights is None:
        return None
    matrix = np.asarray(weights, dtype=np.float64)
    matrix = np.diag(matrix) if matrix.ndim == 1 else matrix
    if matrix.shape != (dimension, dimension):
        raise StructureError(
            f"there are weights for {len(matrix)} of {dimension} statistics.",
            remedy="Give one positive weight per statistic, or a matrix.",
        )
    return matrix


def _candidate(kind: MechanismRow, request: Request, dither: bool) -> Candidate:
    """The kind calibrated to the request, or the reason why not."""
    try:
        noise, assumed, numerical = _calibrated(kind, request)
        if request.persons is not None:
            noise = strengthened(noise, request.pairs.change, request.persons)
        if noise.rank == 0:
            raise StructureError(
                "it would add no noise; a release without noise must be asked for by name"
            )
        mechanism = DistributionMechanism(
            kind.name, request.pairs, noise, request.target, kind.citation, assumed, numerical,
            fit_ignored=request.pairs.fitted and request.confidence == "off",
        )  # fmt: skip
        if request.modelled is not None and request.confidence != "off":
            mechanism = enlarged_for_fit(mechanism, request.confidence)
    except CongenialError as error:
        return Candidate(kind.name, None, None, error.what)
    mechanism = mechanism.dithered() if dither else mechanism
    return Candidate(kind.name, mechanism.noise.expected_norm(request.weights), mechanism)


def _calibrated(kind: MechanismRow, request: Request) -> tuple[VectorNoise, bool, bool]:
    """Noise, whether equal covariances are assumed, whether numerical integration was used."""
    if request.modelled is not None:
        request = replace(request, pairs=request.modelled, modelled=None)
    pairs = request.pairs
    if kind.needs == "gaussian" and not pairs.gaussian:
        raise StructureError("it is for normal distributions.")
    parameter = float(request.target.epsilon) if kind.family == "laplace" else request.target.kappa
    if not kind.needs:
        equal = pairs.equal_covariances or not pairs.gaussian or kind.name == "bounded_wasserstein"
        return kind.build(request, parameter), not equal, False
    if pairs.translations or (pairs.gaussian and request.assume_equal):
        assumed = not pairs.translations
        return _verified(kind, request, parameter), assumed, False
    if kind.family == "laplace" or not pairs.gaussian:
        raise StructureError("the distributions of some pair differ in more than their mean.")
    return _tightened(kind, request, parameter), False, True


def _verified(kind: MechanismRow, request: Request, parameter: float) -> VectorNoise:
    """The noise, slightly enlarged until the exact Gaussian formula gives delta for every pair."""
    if kind.family == "laplace" or kind.needs == "translations":
        return kind.build(request, parameter)
    if request.persons is not None:
        person_mu(request.persons)  # refuse early what Gaussian noise cannot promise
    pairs, target = request.pairs, request.target
    for less in (2.0**-40, 2.0**-32, 2.0**-24, 2.0**-16):
        noise = kind.build(request, parameter * (1 - less))
        reach = shared_distance(pairs.laws, pairs.pairs, noise.covariance)
        if gaussian_delta(reach, target.epsilon) <= target.delta:
            return noise
    raise StructureError(
        "the covariances are too close to singular to verify the promise.",
        remedy="Leave out statistics that nearly determine each other.",
    )


def _tightened(kind: MechanismRow, request: Request, kappa: float) -> VectorNoise:
    """Noise for unequal covariances: kappa lowered until the exact delta is reached."""
    pairs, target = request.pairs, request.target

    def delta(share: float) -> tuple[float, VectorNoise]:
        noise = kind.build(request, kappa * share)
        worst = worst_delta(pairs.laws, pairs.pairs, noise.covariance, float(target.epsilon))
        return worst, noise

    high, low = 1.0, 1.0
    worst, noise = delta(1.0)
    while worst > target.delta:
        high, low = low, low / 2
        if low < 1e-3:
            raise StructureError("the covariances differ where it adds no noise.")
        worst, noise = delta(low)
    for _ in range(24):
        middle = (low + high) / 2
        worst, delta_found = delta(middle)
        if worst <= target.delta:
            low, noise = middle, delta_found
        else:
            high = middle
        if high - low < 1e-3 * low:
            break
    return noise


def _as_is(request: Request) -> Candidate:
    """Release without noise, if the laws' own spread gives delta with confidence."""
    pairs, target = request.pairs, request.target
    try:
        if request.persons is not None:
            raise StructureError("without noise nothing is promised to individual people.")
        delta = as_is_delta(pairs, float(target.epsilon), target.delta)
    except CongenialError as error:
        return Candidate(AS_IS, None, None, error.what)
    if delta > target.delta:
        bound = "the upper confidence bound of delta" if pairs.fitted else "delta"
        why = f"without noise {bound} is {delta:.3g}, above {target.delta:g}"
        return Candidate(AS_IS, None, None, why)
    mechanism = DistributionMechanism(
        AS_IS, pairs, VectorNoise.none(pairs.dimension), target, AS_IS_SOURCE,
        numerical=not pairs.equal_covariances,
    )  # fmt: skip
    return Candidate(AS_IS, 0.0, mechanism)
