"""Which constant is changed, how, and the test that must fail then.

Every change is by about 20 %, and mostly in the direction that promises too much: too little noise,
or a loss that is counted too small. Changes that promise too little are here where a guarantee is
claimed to be tight.
"""

from __future__ import annotations

from dataclasses import dataclass

CONTRACTS = "tests/contracts/test_mechanisms.py"


@dataclass(frozen=True)
class Mutation:
    """A text in a file of src/congenial that occurs once, what replaces it, and a test by its file
    and an expression for `-k`.
    """

    file: str
    old: str
    new: str
    tests: str
    select: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.new[:60]}"


def _calibrated(mechanism: str) -> tuple[str, str]:
    return "tests/mechanisms/test_calibration.py", mechanism


DIST, WASS, SYNTH, PRIV = (
    "tests/distribution",
    "tests/wasserstein",
    "tests/synthesis",
    "tests/privacy",
)

MUTATIONS: tuple[Mutation, ...] = (
    # ---- noise of tables ---------------------------------------------------------------------
    Mutation(
        "mechanisms/additive.py",
        "return Fraction(target.eps) / adjacency.l1(table).value",
        "return Fraction(6, 5) * Fraction(target.eps) / adjacency.l1(table).value",
        *_calibrated("plain_geometric"),
    ),
    Mutation(
        "mechanisms/additive.py",
        "return Fraction(target.eps) / adjacency.l1(table).value",
        "return Fraction(4, 5) * Fraction(target.eps) / adjacency.l1(table).value",
        *_calibrated("plain_geometric"),
    ),
    Mutation(
        "mechanisms/additive.py",
        "return adjacency.l2_squared(table).value / (2 * rho)",
        "return adjacency.l2_squared(table).value / (Fraction(12, 5) * rho)",
        *_calibrated("plain_discrete_gaussian"),
    ),
    Mutation(
        "mechanisms/additive.py",
        "return adjacency.l2_squared(table).value / mu**2",
        "return Fraction(4, 5) * adjacency.l2_squared(table).value / mu**2",
        *_calibrated("plain_gaussian"),
    ),
    Mutation(
        "mechanisms/additive.py",
        "rho = _round_down(zcdp_rho(float(target.eps), float(target.dlt)))",
        "rho = _round_down(1.2 * zcdp_rho(float(target.eps), float(target.dlt)))",
        *_calibrated("Approximate"),
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return largest_eps_cell(aim, given)",
        "return Fraction(6, 5) * largest_eps_cell(aim, given)",
        *_calibrated("congenial_counts"),
    ),
    Mutation(
        "mechanisms/hierarchy.py",
        "return [Fraction(target.eps) * Fraction(share) / together for share in shares]",
        "return [Fraction(6, 5) * Fraction(target.eps) * s / together for s in shares]",
        *_calibrated("congenial_hierarchy"),
    ),
    Mutation(
        "mechanisms/knorm.py",
        "        return Fraction(target.eps)\n",
        "        return Fraction(6, 5) * Fraction(target.eps)\n",
        *_calibrated("knorm"),
    ),
    Mutation(
        "mechanisms/kernel_gaussian.py",
        "return adjacency.l2_squared(table).value / mu**2",
        "return Fraction(4, 5) * adjacency.l2_squared(table).value / mu**2",
        *_calibrated("kernel_gaussian"),
    ),
    Mutation(
        "mechanisms/kernel_gaussian.py",
        "plain = normal * float(self.description.scale) ** 0.5",
        "plain = 0.8 * normal * float(self.description.scale) ** 0.5",
        f"tests/mechanisms/test_knorm_baselines.py tests/mechanisms/test_knorm.py {CONTRACTS}",
        "kernel or Kernel or law_of_the_noise",
    ),
    # ---- what is promised and spent ----------------------------------------------------------
    Mutation(
        "privacy/composition.py",
        "rho=(square.value / 2 if square else ZERO)",
        "rho=(square.value / Fraction(12, 5) if square else ZERO)",
        f"{PRIV}/test_composition.py",
    ),
    Mutation(
        "privacy/composition.py",
        "numerics = sum((2 * d.log_ratio_error for d in tables), ZERO)",
        "numerics = sum((Fraction(8, 5) * d.log_ratio_error for d in tables), ZERO)",
        f"{PRIV}/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * description.epsilon, a**2 * description.rho",
        "return Fraction(4, 5) * a * description.epsilon, a**2 * description.rho",
        f"{PRIV}/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * description.epsilon, a**2 * description.rho",
        "return a * description.epsilon, Fraction(4, 5) * a**2 * description.rho",
        f"{PRIV}/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "+ sum((scale * reach.value for scale, reach in gauges), ZERO)",
        "+ sum((Fraction(4, 5) * scale * reach.value for scale, reach in gauges), ZERO)",
        f"{PRIV}/test_composition.py tests/mechanisms/test_knorm.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return Gaussian(_root_up(2 * self.rho))",
        "return Gaussian(_root_up(Fraction(8, 5) * self.rho))",
        f"{PRIV}/test_composition.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return Supremum(Fraction(-(-(a - 1) // (hull - 1))), a <= hull)",
        "return Supremum(Fraction(4, 5) * -(-(a - 1) // (hull - 1)), a <= hull)",
        f"{PRIV}/test_composition.py tests/mechanisms/test_knorm.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * (description.added or ZERO), ZERO",
        "return Fraction(4, 5) * a * (description.added or ZERO), ZERO",
        f"{PRIV}/test_composition.py {SYNTH}/test_release.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "(distance // 2) * _pi(eps_cell, 2)",
        "Decimal('0.8') * (distance // 2) * _pi(eps_cell, 2)",
        f"{PRIV}/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "price, basis = gains * _pi(eps_cell, 1)",
        "price, basis = Decimal('0.8') * gains * _pi(eps_cell, 1)",
        f"{PRIV}/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "price = _partitions(eps_cell, distance, 2 if balanced else 1)",
        "price = Decimal('0.8') * _partitions(eps_cell, distance, 2 if balanced else 1)",
        f"{PRIV}/test_normaliser_formulas.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "return (1 + _exp((norm - 2) * eps_cell) - _exp(-2 * eps_cell)).ln()",
        "return (1 + _exp((norm - 2) * eps_cell) - _exp(-Fraction(8, 5) * eps_cell)).ln()",
        f"{PRIV}/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "cap = Price(distance * eps_cell, FACTOR_TWO)",
        "cap = Price(Fraction(4, 5) * distance * eps_cell, FACTOR_TWO)",
        f"{PRIV}/test_normaliser_formulas.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "    return square / 2\n",
        "    return square / 2.4\n",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return min(eps * math.tanh(eps / 2)",
        "return min(0.8 * eps * math.tanh(eps / 2)",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return multiply_up(value, value) / 2",
        "return multiply_up(value, value) * 2 / 5",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return (r + 2 * math.sqrt(r * -math.log(target)))",
        "return (r + 1.6 * math.sqrt(r * -math.log(target)))",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return max(0.0, -2 * float(",
        "return max(0.0, -1.6 * float(",
        f"{PRIV}/test_conversion_formulas.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return rdp_epsilon(1 + t, (1 + t) * r * (1 + 4 * ULP), target) if t > 0 else 0.0",
        "return rdp_epsilon(1 + t, 0.8 * (1 + t) * r, target) if t > 0 else 0.0",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return largest(lambda mu: gaussian_delta(mu, eps) <= target)",
        "return 1.2 * largest(lambda mu: gaussian_delta(mu, eps) <= target)",
        f"{PRIV}/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "split = -math.expm1(-gap)",
        "split = -0.8 * math.expm1(-gap)",
        f"{PRIV}/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return Pure(multiply_up(Fraction(group_size(k)), self.eps))",
        "return Pure(multiply_up(Fraction(4 * group_size(k), 5), self.eps))",
        f"{PRIV}/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return Gaussian(multiply_up(Fraction(group_size(k)), self.mu))",
        "return Gaussian(multiply_up(Fraction(4 * group_size(k), 5), self.mu))",
        f"{PRIV}/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return ZeroConcentrated(multiply_up(Fraction(group_size(k) ** 2), self.rho))",
        "return ZeroConcentrated(multiply_up(Fraction(4 * group_size(k) ** 2, 5), self.rho))",
        f"{PRIV}/test_tradeoff.py",
    ),
    Mutation(
        "privacy/budget.py",
        "return self.spent(loss) <= self.cap\n",
        "return self.spent(loss) <= self.cap * Fraction(6, 5)\n",
        f"{PRIV}/test_ledger_budget.py {PRIV}/test_ledger.py",
    ),
    # ---- synthetic records -------------------------------------------------------------------
    Mutation(
        "synthesis/certified.py",
        'return records if adjacency.metric == "symmetric difference" else 2 * records',
        'return (1 if adjacency.metric == "symmetric difference" else Fraction(8, 5)) * records',
        f"{SYNTH}/test_certificate.py",
    ),
    Mutation(
        "synthesis/certified.py",
        'return records if adjacency.metric == "symmetric difference" else 2 * records',
        'return (Fraction(4, 5) if adjacency.metric == "symmetric difference" else 2) * records',
        f"{SYNTH}/test_certificate.py {SYNTH}/test_release.py",
    ),
    Mutation(
        "synthesis/certified.py",
        "epsilon=2 * self.bound * self.copies,",
        "epsilon=Fraction(8, 5) * self.bound * self.copies,",
        f"{SYNTH}/test_certificate.py {SYNTH}/test_release.py",
    ),
    Mutation(
        "synthesis/certified.py",
        "bound = epsilon / (per_bound * copies)",
        "bound = Fraction(6, 5) * epsilon / (per_bound * copies)",
        f"{SYNTH}/test_certificate.py {SYNTH}/test_release.py",
    ),
    # ---- given public information ------------------------------------------------------------
    Mutation(
        "mechanisms/wasserstein/exponential.py",
        "return self.epsilon / (self.factor * self.sigma)",
        "return Fraction(6, 5) * self.epsilon / (self.factor * self.sigma)",
        f"{WASS}/test_exponential.py",
    ),
    Mutation(
        "mechanisms/wasserstein/finite.py",
        "return rational(epsilon) / (2 * self.sigma)",
        "return rational(epsilon) * Fraction(3, 5) / self.sigma",
        WASS,
    ),
    Mutation(
        "mechanisms/wasserstein/finite.py",
        "return self.worst_loss(rate) <= float(epsilon) * (1 - 1e-11)",
        "return self.worst_loss(rate) <= float(epsilon) * 1.2",
        WASS,
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "return float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        "return 1.2 * float((self.epsilon - 2 * H) / (2 * usable(self.bound)))",
        f"{WASS}/test_gradient.py",
    ),
    Mutation(
        "mechanisms/wasserstein/gradient.py",
        "loss = (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        "loss = Fraction(4, 5) * (self.epsilon - 2 * H) / usable(self.bound) + 2 * H",
        f"{WASS}/test_gradient.py",
    ),
    # ---- the whole dataset -------------------------------------------------------------------
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "_positive(delta_1) * UP / epsilon",
        "0.8 * _positive(delta_1) * UP / epsilon",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = _positive(float(np.linalg.norm(pairs.differences, axis=1).max())) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "return VectorNoise.laplace(basis, reach * UP / epsilon)",
        "return VectorNoise.laplace(basis, 0.8 * reach * UP / epsilon)",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/expected_value.py",
        "sigma = float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        "sigma = 0.8 * float(np.linalg.norm(pairs.differences, axis=1).max()) * UP / kappa",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/wasserstein.py",
        "return VectorNoise.laplace(np.eye(pairs.dimension), reach * UP / epsilon)",
        "return VectorNoise.laplace(np.eye(pairs.dimension), 0.8 * reach * UP / epsilon)",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/wasserstein.py",
        "return _everywhere(pairs, centre + 2 * radius, epsilon)",
        "return _everywhere(pairs, centre + 1.6 * radius, epsilon)",
        f"{DIST}/test_formulas.py",
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return gaussian_mu(self.epsilon, self.delta)",
        "return 1.2 * gaussian_mu(self.epsilon, self.delta)",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/target.py",
        "return below(epsilon / classical_gaussian_sigma_ratio(delta))",
        "return below(1.2 * epsilon / classical_gaussian_sigma_ratio(delta))",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "mu = float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        "mu = 0.8 * float(np.linalg.norm(_corners(reach) @ standard.T, axis=1).max()) * _UP",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "epsilon = float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        "epsilon = 0.8 * float(np.abs(_corners(reach) @ standard.T).sum(axis=1).max()) * _UP",
        DIST,
    ),
    Mutation(
        "mechanisms/distribution/persons.py",
        "return [np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        "return [0.8 * np.outer(v, v) * _UP / mu**2 for v in _corners(reach)]",
        f"{DIST}/test_formulas.py",
    ),
    # ---- samplers: what is drawn is what is described ------------------------------------------
    Mutation(
        "mechanisms/additive.py",
        "return self.law.draw(randomness, draws * cells)",
        "return cell_law(self.family, Fraction(6, 5) * self.description.scale).draw("
        "randomness, draws * cells)",
        CONTRACTS,
        "sampler_and_density and plain",
    ),
    Mutation(
        "mechanisms/additive.py",
        "return self.law.ppf(uniform).reshape(size)",
        "return 0.8 * self.law.ppf(uniform).reshape(size)",
        CONTRACTS,
        "law_of_the_noise and plain",
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return ConditionedNoise(self.family, self.description.scale, self.support)",
        "return ConditionedNoise(self.family, self.description.scale * 6 / 5, self.support)",
        CONTRACTS,
        "breaks_the_promise and congenial-Pure",
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return ConditionedNoise(self.family, self.description.scale, self.support)",
        "return ConditionedNoise(self.family, self.description.scale * 4 / 5, self.support)",
        CONTRACTS,
        "breaks_the_promise and congenial_gaussian",
    ),
    Mutation(
        "mechanisms/hierarchy.py",
        "return _tree(parts, [*rates, self.description.scale, Fraction(0)])",
        "return _tree(parts, [*rates, self.description.scale * 6 / 5, Fraction(0)])",
        CONTRACTS,
        "breaks_the_promise and congenial_hierarchy",
    ),
    Mutation(
        "mechanisms/knorm.py",
        "(KNormNoise(shape, scale, records=self.hull), np.stack(grids))",
        "(KNormNoise(shape, scale * 6 / 5, records=self.hull), np.stack(grids))",
        CONTRACTS,
        "breaks_the_promise and knorm",
    ),
    Mutation(
        "sampling/knorm.py",
        "log_p = partial(self._log_acceptance, self._excess(tables[t]))",
        "log_p = partial(self._log_acceptance, self._excess(tables[t]) * 4 / 5)",
        "tests/sampling/test_knorm_noise.py",
    ),
    Mutation(
        "mechanisms/distribution/noise.py",
        "noise: Floats = (standard * self.scales) @ self.directions.T",
        "noise: Floats = (0.8 * standard * self.scales) @ self.directions.T",
        f"{DIST}/test_noise.py",
    ),
    # ---- sensitivities -----------------------------------------------------------------------
    Mutation(
        "public/adjacency.py",
        "return Supremum(self.max_rows * sum(",
        "return Supremum(Fraction(4, 5) * self.max_rows * sum(",
        "tests/public/test_adjacency.py tests/public/test_sensitivity.py",
    ),
    Mutation(
        "public/adjacency.py",
        "return Supremum(self.max_rows**2 * sum(",
        "return Supremum(Fraction(4, 5) * self.max_rows**2 * sum(",
        "tests/public/test_adjacency.py tests/public/test_sensitivity.py",
    ),
    Mutation(
        "public/moves.py",
        "return Supremum(2 * movers**2 * price[best], exact)",
        "return Supremum(Fraction(8, 5) * movers**2 * price[best], exact)",
        "tests/public/test_sensitivity.py",
    ),
)
