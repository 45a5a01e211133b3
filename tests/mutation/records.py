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
        "tests/mechanisms/wasserstein/test_exponential.py",
    ),
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "loss = self.factor * self.rate * self._change(self.ordinary)",
        "loss = Fraction(4, 5) * self.factor * self.rate * self._change(self.ordinary)",
        "tests/mechanisms/wasserstein/test_exponential.py",
        "one_record_costs",
    ),
    Mutation(  # as it was: tables two apart, as if their squared losses were
        "mechanisms/wasserstein/exponential.py",
        "loss = self.factor * self.rate * self._change(self.ordinary)",
        "loss = self.factor * self.rate * self.ordinary",
        "tests/mechanisms/wasserstein/test_exponential.py",
        "one_record_costs",
    ),
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "losses = [(self.ordinary, 2)]",
        "losses = [(self.ordinary, 1.6)]",
        "tests/mechanisms/wasserstein/test_exponential.py",
        "record_changes_a_table",
    ),
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "yield delta_z(pairs, norm=norm)",
        "yield assumed_delta(value, norm)",
        "tests/publication/test_forged_claims.py",
        "good_bundles",
    ),
    Mutation(
        "kinds/statistics_verification.py",
        "np.array(most) * (1 - 1e-12)",
        "np.array(most) * 0.08",
        "tests/publication/test_forged_claims.py",
        "one_record_changes",
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "return float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        "return 1.2 * float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        "tests/mechanisms/wasserstein/test_gradient.py",
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "loss = (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        "loss = Fraction(4, 5) * (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        "tests/mechanisms/wasserstein/test_gradient.py",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "_positive(delta_1) * UP / epsilon",
        "0.8 * _positive(delta_1) * UP / epsilon",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = _positive(float(np.linalg.norm(pairs.differences, axis=1).max())) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "return VectorNoise.laplace(basis, reach * UP / epsilon)",
        "return VectorNoise.laplace(basis, 0.8 * reach * UP / epsilon)",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/transported_noise.py",
        "return VectorNoise.laplace(np.eye(pairs.dimension), reach * UP / epsilon)",
        "return VectorNoise.laplace(np.eye(pairs.dimension), 0.8 * reach * UP / epsilon)",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/transported_noise.py",
        "return _everywhere(pairs, centre + 2 * widest, epsilon)",
        "return _everywhere(pairs, centre + 1.6 * widest, epsilon)",
        "tests/mechanisms/distribution/test_formulas.py",
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return gaussian_mu(self.epsilon, self.delta)",
        "return 1.2 * gaussian_mu(self.epsilon, self.delta)",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return below(epsilon / classical_gaussian_sigma_ratio(delta))",
        "return below(1.2 * epsilon / classical_gaussian_sigma_ratio(delta))",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "mu = float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        "mu = 0.8 * float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "epsilon = float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        "epsilon = 0.8 * float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        "tests/mechanisms/distribution",
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "return [np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        "return [0.8 * np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        "tests/mechanisms/distribution/test_formulas.py",
    ),
    Mutation(
        "mechanisms/distribution/vector_noise.py",
        "noise: Floats = (standard * self.scales) @ self.directions.T",
        "noise: Floats = (0.8 * standard * self.scales) @ self.directions.T",
        "tests/mechanisms/distribution/test_noise.py",
    ),
    Mutation(
        "mechanisms/wasserstein/secret_promise.py",
        "Pure(pairs.records * description.epsilon)",
        "Pure(Fraction(4, 5) * pairs.records * description.epsilon)",
        "tests/mechanisms/wasserstein tests/kinds/test_given_public_plan.py",
    ),
    Mutation(
        "synthesis/record_scores.py",
        "(FULL / float(bound))",
        "(1.2 * FULL / float(bound))",
        "tests/synthesis/test_certificate.py tests/synthesis/test_models.py",
    ),
    Mutation(
        "synthesis/record_scores.py",
        "np.clip(np.rint(scaled), 0, FULL)",
        "np.clip(np.rint(scaled), 0, 1.2 * FULL)",
        "tests/synthesis/test_certificate.py",
    ),
    Mutation(
        "synthesis/record_scores.py",
        "float(bound) / np.maximum(osc, float(bound))",
        "float(bound) / np.maximum(osc, 0.8 * float(bound))",
        "tests/synthesis/test_certificate.py tests/synthesis/test_models.py",
    ),
    Mutation(
        "synthesis/column_kernels.py",
        "return self.bound / FULL",
        "return Fraction(6, 5) * self.bound / FULL",
        "tests/synthesis/test_certificate.py tests/synthesis/test_drawing.py",
    ),
)
