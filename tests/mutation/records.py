"""Releases that are no table: synthetic records, values given public information, statistics."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

RECORDS: tuple[Mutation, ...] = (
    Mutation(
        "synthesis/certified.py",
        'return records if adjacency.metric == "symmetric difference" else 2 * records',
        'return (1 if adjacency.metric == "symmetric difference" else Fraction(8, 5)) * records',
        "tests/synthesis/test_certificate.py",
    ),
    Mutation(
        "synthesis/certified.py",
        'return records if adjacency.metric == "symmetric difference" else 2 * records',
        'return (Fraction(4, 5) if adjacency.metric == "symmetric difference" else 2) * records',
        "tests/synthesis/test_certificate.py tests/synthesis/test_release.py",
    ),
    Mutation(
        "synthesis/certified.py",
        "epsilon=2 * self.bound * self.copies,",
        "epsilon=Fraction(8, 5) * self.bound * self.copies,",
        "tests/synthesis/test_certificate.py tests/synthesis/test_release.py",
    ),
    Mutation(
        "synthesis/certified.py",
        "bound = epsilon / (per_bound * copies)",
        "bound = Fraction(6, 5) * epsilon / (per_bound * copies)",
        "tests/synthesis/test_certificate.py tests/synthesis/test_release.py",
    ),
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "return self.epsilon / (self.factor * self.sigma)",
        "return Fraction(6, 5) * self.epsilon / (self.factor * self.sigma)",
        "tests/wasserstein/test_exponential.py",
    ),
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "loss = self.factor * self.rate * self.ordinary",
        "loss = Fraction(4, 5) * self.factor * self.rate * self.ordinary",
        "tests/wasserstein/test_exponential.py tests/release/test_scenarios_plan.py",
    ),
    Mutation(
        "mechanisms/wasserstein/finite.py",
        "return rational(epsilon) / (2 * self.sigma)",
        "return rational(epsilon) * Fraction(3, 5) / self.sigma",
        "tests/wasserstein",
    ),
    Mutation(
        "mechanisms/wasserstein/finite.py",
        "return self.worst_loss(rate) <= float(epsilon) * (1 - 1e-11)",
        "return self.worst_loss(rate) <= float(epsilon) * 1.2",
        "tests/wasserstein",
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "return float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        "return 1.2 * float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        "tests/wasserstein/test_gradient.py",
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "loss = (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        "loss = Fraction(4, 5) * (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        "tests/wasserstein/test_gradient.py",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "_positive(delta_1) * UP / epsilon",
        "0.8 * _positive(delta_1) * UP / epsilon",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = _positive(float(np.linalg.norm(pairs.differences, axis=1).max())) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "return VectorNoise.laplace(basis, reach * UP / epsilon)",
        "return VectorNoise.laplace(basis, 0.8 * reach * UP / epsilon)",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/wasserstein.py",
        "return VectorNoise.laplace(np.eye(pairs.dimension), reach * UP / epsilon)",
        "return VectorNoise.laplace(np.eye(pairs.dimension), 0.8 * reach * UP / epsilon)",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/wasserstein.py",
        "return _everywhere(pairs, centre + 2 * radius, epsilon)",
        "return _everywhere(pairs, centre + 1.6 * radius, epsilon)",
        "tests/distribution/test_formulas.py",
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return gaussian_mu(self.epsilon, self.delta)",
        "return 1.2 * gaussian_mu(self.epsilon, self.delta)",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return below(epsilon / classical_gaussian_sigma_ratio(delta))",
        "return below(1.2 * epsilon / classical_gaussian_sigma_ratio(delta))",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "mu = float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        "mu = 0.8 * float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "epsilon = float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        "epsilon = 0.8 * float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        "tests/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "return [np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        "return [0.8 * np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        "tests/distribution/test_formulas.py",
    ),
    Mutation(
        "mechanisms/distribution/noise.py",
        "noise: Floats = (standard * self.scales) @ self.directions.T",
        "noise: Floats = (0.8 * standard * self.scales) @ self.directions.T",
        "tests/distribution/test_noise.py",
    ),
    Mutation(
        "mechanisms/wasserstein/promise.py",
        "Pure(pairs.records * description.epsilon)",
        "Pure(Fraction(4, 5) * pairs.records * description.epsilon)",
        "tests/wasserstein tests/release/test_scenarios_plan.py",
    ),
    Mutation(
        "mechanisms/wasserstein/reals.py",
        "reach = usable(self.bound) / self.unit + many",
        "reach = Fraction(4, 5) * (usable(self.bound) / self.unit + many)",
        "tests/wasserstein/test_reals.py",
    ),
    Mutation(
        "synthesis/scores.py",
        "(FULL / float(bound))",
        "(1.2 * FULL / float(bound))",
        "tests/synthesis/test_certificate.py tests/synthesis/test_models.py",
    ),
    Mutation(
        "synthesis/scores.py",
        "np.clip(np.rint(scaled), 0, FULL)",
        "np.clip(np.rint(scaled), 0, 1.2 * FULL)",
        "tests/synthesis/test_certificate.py",
    ),
    Mutation(
        "synthesis/scores.py",
        "float(bound) / np.maximum(osc, float(bound))",
        "float(bound) / np.maximum(osc, 0.8 * float(bound))",
        "tests/synthesis/test_certificate.py tests/synthesis/test_models.py",
    ),
    Mutation(
        "synthesis/kernels.py",
        "return self.bound / FULL",
        "return Fraction(6, 5) * self.bound / FULL",
        "tests/synthesis/test_certificate.py tests/synthesis/test_drawing.py",
    ),
)
