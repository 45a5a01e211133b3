"""What a release costs: prices, sensitivities, conversions and budgets."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

PRICES: tuple[Mutation, ...] = (
    Mutation(
        "privacy/composition.py",
        "rho=(square.value / 2 if square else ZERO)",
        "rho=(square.value / Fraction(12, 5) if square else ZERO)",
        "tests/privacy/test_composition.py",
    ),
    Mutation(
        "privacy/composition.py",
        "numerics = sum((2 * d.log_ratio_error for d in tables), ZERO)",
        "numerics = sum((Fraction(8, 5) * d.log_ratio_error for d in tables), ZERO)",
        "tests/privacy/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * description.epsilon, a**2 * description.rho",
        "return Fraction(4, 5) * a * description.epsilon, a**2 * description.rho",
        "tests/privacy/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * description.epsilon, a**2 * description.rho",
        "return a * description.epsilon, Fraction(4, 5) * a**2 * description.rho",
        "tests/privacy/test_loss_terms.py",
    ),
    Mutation(
        "privacy/composition.py",
        "+ sum((scale * reach.value for scale, reach in gauges), ZERO)",
        "+ sum((Fraction(4, 5) * scale * reach.value for scale, reach in gauges), ZERO)",
        "tests/privacy/test_composition.py tests/mechanisms/test_knorm.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return Gaussian(_root_up(2 * self.rho))",
        "return Gaussian(_root_up(Fraction(8, 5) * self.rho))",
        "tests/privacy/test_composition.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return Supremum(Fraction(-(-(a - 1) // (hull - 1))), a <= hull)",
        "return Supremum(Fraction(4, 5) * -(-(a - 1) // (hull - 1)), a <= hull)",
        "tests/privacy/test_composition.py tests/mechanisms/test_knorm.py",
    ),
    Mutation(
        "privacy/composition.py",
        "return a * (description.added or ZERO), ZERO",
        "return Fraction(4, 5) * a * (description.added or ZERO), ZERO",
        "tests/privacy/test_composition.py tests/synthesis/test_release.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "(distance // 2) * _pi(eps_cell, 2)",
        "Decimal('0.8') * (distance // 2) * _pi(eps_cell, 2)",
        "tests/privacy/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "price, basis = gains * _pi(eps_cell, 1)",
        "price, basis = Decimal('0.8') * gains * _pi(eps_cell, 1)",
        "tests/privacy/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "price = _partitions(eps_cell, distance, 2 if balanced else 1)",
        "price = Decimal('0.8') * _partitions(eps_cell, distance, 2 if balanced else 1)",
        "tests/privacy/test_normaliser_formulas.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "return (1 + _exp((norm - 2) * eps_cell) - _exp(-2 * eps_cell)).ln()",
        "return (1 + _exp((norm - 2) * eps_cell) - _exp(-Fraction(8, 5) * eps_cell)).ln()",
        "tests/privacy/test_normaliser.py",
    ),
    Mutation(
        "privacy/normaliser.py",
        "cap = Price(distance * eps_cell, FACTOR_TWO)",
        "cap = Price(Fraction(4, 5) * distance * eps_cell, FACTOR_TWO)",
        "tests/privacy/test_normaliser_formulas.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "    return square / 2\n",
        "    return square / 2.4\n",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return min(eps * math.tanh(eps / 2)",
        "return min(0.8 * eps * math.tanh(eps / 2)",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return multiply_up(value, value) / 2",
        "return multiply_up(value, value) * 2 / 5",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return (r + 2 * math.sqrt(r * -math.log(target)))",
        "return (r + 1.6 * math.sqrt(r * -math.log(target)))",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return max(0.0, -2 * float(",
        "return max(0.0, -1.6 * float(",
        "tests/privacy/test_conversion_formulas.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return rdp_epsilon(1 + t, (1 + t) * r * (1 + 4 * ULP), target) if t > 0 else 0.0",
        "return rdp_epsilon(1 + t, 0.8 * (1 + t) * r, target) if t > 0 else 0.0",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "return largest(lambda mu: gaussian_delta(mu, eps) <= target)",
        "return 1.2 * largest(lambda mu: gaussian_delta(mu, eps) <= target)",
        "tests/privacy/test_conversions.py",
    ),
    Mutation(
        "privacy/conversions.py",
        "split = -math.expm1(-gap)",
        "split = -0.8 * math.expm1(-gap)",
        "tests/privacy/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return Pure(multiply_up(Fraction(group_size(k)), self.eps))",
        "return Pure(multiply_up(Fraction(4 * group_size(k), 5), self.eps))",
        "tests/privacy/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return Gaussian(multiply_up(Fraction(group_size(k)), self.mu))",
        "return Gaussian(multiply_up(Fraction(4 * group_size(k), 5), self.mu))",
        "tests/privacy/test_tradeoff.py",
    ),
    Mutation(
        "privacy/tradeoff.py",
        "return ZeroConcentrated(multiply_up(Fraction(group_size(k) ** 2), self.rho))",
        "return ZeroConcentrated(multiply_up(Fraction(4 * group_size(k) ** 2, 5), self.rho))",
        "tests/privacy/test_tradeoff.py",
    ),
    Mutation(
        "privacy/budget.py",
        "return self.spent(loss) <= self.cap\n",
        "return self.spent(loss) <= self.cap * Fraction(6, 5)\n",
        "tests/privacy/test_ledger_budget.py tests/privacy/test_ledger.py",
    ),
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
    Mutation(
        "public/moves.py",
        "value += 2 * movers * price[atom]",
        "value += Fraction(8, 5) * movers * price[atom]",
        "tests/public/test_sensitivity.py",
    ),
    Mutation(
        "privacy/enumerated.py",
        "lambda apart: float(eps_cell) * apart",
        "lambda apart: 0.8 * float(eps_cell) * apart",
        "tests/privacy/test_enumerated.py",
    ),
    Mutation(
        "privacy/enumerated.py",
        "np.exp(-float(eps_cell) * np.arange(",
        "np.exp(-1.2 * float(eps_cell) * np.arange(",
        "tests/privacy/test_enumerated.py",
    ),
)
