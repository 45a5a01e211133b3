"""Noise of tables: how much of it there is, and what it was calibrated to."""

from __future__ import annotations

from tests.mutation.mutation import Mutation

NOISE: tuple[Mutation, ...] = (
    Mutation(
        "mechanisms/families.py",
        "return positive_epsilon(target) / adjacency.l1(table).value",
        "return Fraction(6, 5) * positive_epsilon(target) / adjacency.l1(table).value",
        "tests/mechanisms/test_calibration.py",
        "plain_geometric",
    ),
    Mutation(
        "mechanisms/families.py",
        "return positive_epsilon(target) / adjacency.l1(table).value",
        "return Fraction(4, 5) * positive_epsilon(target) / adjacency.l1(table).value",
        "tests/mechanisms/test_calibration.py",
        "plain_geometric",
    ),
    Mutation(
        "mechanisms/families.py",
        "return adjacency.l2_squared(table).value / (2 * rho)",
        "return adjacency.l2_squared(table).value / (Fraction(12, 5) * rho)",
        "tests/mechanisms/test_calibration.py",
        "plain_discrete_gaussian",
    ),
    Mutation(
        "mechanisms/families.py",
        "return adjacency.l2_squared(table).value / mu**2",
        "return Fraction(4, 5) * adjacency.l2_squared(table).value / mu**2",
        "tests/mechanisms/test_calibration.py",
        "plain_gaussian",
    ),
    Mutation(
        "mechanisms/families.py",
        "rho = _round_down(zcdp_rho(float(target.eps), float(target.dlt)))",
        "rho = _round_down(1.2 * zcdp_rho(float(target.eps), float(target.dlt)))",
        "tests/mechanisms/test_calibration.py",
        "Approximate",
    ),
    Mutation(
        "sampling/discrete.py",
        "return self.cell.draw(randomness, n * self.cells)",
        "return (self.cell.draw(randomness, n * self.cells) * 4 // 5)",
        "tests/contracts/test_mechanisms.py",
        "sampler_and_density and plain",
    ),
    Mutation(
        "mechanisms/plain.py",
        "return self.law.ppf(open_uniform(",
        "return 0.8 * self.law.ppf(open_uniform(",
        "tests/contracts/test_mechanisms.py",
        "law_of_the_noise and plain",
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return largest_eps_cell(",
        "return Fraction(6, 5) * largest_eps_cell(",
        "tests/mechanisms/test_calibration.py",
        "congenial_counts",
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return cell_law(self.family, self.description.scale)",
        "return cell_law(self.family, self.description.scale * 6 / 5)",
        "tests/contracts/test_mechanisms.py",
        "breaks_the_promise and congenial-Pure",
    ),
    Mutation(
        "mechanisms/congenial.py",
        "return cell_law(self.family, self.description.scale)",
        "return cell_law(self.family, self.description.scale * 4 / 5)",
        "tests/contracts/test_mechanisms.py",
        "breaks_the_promise and congenial_gaussian",
    ),
    Mutation(
        "mechanisms/hierarchy.py",
        "return [Fraction(target.eps) * Fraction(share) / together for share in shares]",
        "return [Fraction(6, 5) * Fraction(target.eps) * s / together for s in shares]",
        "tests/mechanisms/test_calibration.py",
        "congenial_hierarchy",
    ),
    Mutation(
        "mechanisms/hierarchy.py",
        "return noise_at_levels(levels, self.description.rate, len(self._free))",
        "return noise_at_levels(levels, self.description.rate * 6 / 5, len(self._free))",
        "tests/contracts/test_mechanisms.py",
        "breaks_the_promise and congenial_hierarchy",
    ),
    Mutation(
        "mechanisms/families.py",
        "    return positive_epsilon(target)\n",
        "    return Fraction(6, 5) * positive_epsilon(target)\n",
        "tests/mechanisms/test_calibration.py",
        "knorm",
    ),
    Mutation(
        "mechanisms/knorm.py",
        "(KNormNoise(shape, rate, records=self.hull), np.stack(grids))",
        "(KNormNoise(shape, rate * 6 / 5, records=self.hull), np.stack(grids))",
        "tests/contracts/test_mechanisms.py",
        "breaks_the_promise and knorm",
    ),
    Mutation(
        "mechanisms/families.py",
        "return adjacency.l2_squared(table).value / mu**2",
        "return Fraction(4, 5) * adjacency.l2_squared(table).value / mu**2",
        "tests/mechanisms/test_calibration.py",
        "kernel_gaussian",
    ),
    Mutation(
        "mechanisms/kernel_gaussian.py",
        "plain = normal * float(self.description.variance) ** 0.5",
        "plain = 0.8 * normal * float(self.description.variance) ** 0.5",
        "tests/mechanisms/test_knorm_baselines.py tests/mechanisms/test_knorm.py "
        "tests/contracts/test_mechanisms.py",
        "kernel or Kernel or law_of_the_noise",
    ),
    Mutation(
        "sampling/gauge/knorm_noise.py",
        "log_p = partial(self._log_acceptance, self._excess(tables[t]))",
        "log_p = partial(self._log_acceptance, self._excess(tables[t]) * 4 / 5)",
        "tests/sampling/test_knorm_noise.py",
    ),
    Mutation(
        "papers/semi_dp/norms.py",
        "return self.sensitivity / self.epsilon",
        "return 0.8 * self.sensitivity / self.epsilon",
        "tests/mechanisms/test_knorm_baselines.py",
    ),
    Mutation(
        "papers/semi_dp/norms.py",
        "np.asarray(self.scale * (radius / ",
        "np.asarray(0.8 * self.scale * (radius / ",
        "tests/mechanisms/test_knorm_baselines.py",
    ),
    Mutation(
        "papers/semi_dp/norms.py",
        "np.asarray(self.scale * radius[:, None]",
        "np.asarray(0.8 * self.scale * radius[:, None]",
        "tests/mechanisms/test_knorm_baselines.py",
    ),
    Mutation(
        "papers/semi_dp/real_knorm.py",
        "reshape(n, d) / float(self.eps)",
        "reshape(n, d) / (1.2 * float(self.eps))",
        "tests/papers/test_real_knorm.py",
    ),
    Mutation(
        "sampling/canonical.py",
        "self._b = math.exp(-float(epsilon))",
        "self._b = math.exp(-1.2 * float(epsilon))",
        "tests/sampling/test_canonical.py",
    ),
    Mutation(
        "sampling/canonical.py",
        "ndtri(p) / float(self.mu)",
        "ndtri(p) / (1.2 * float(self.mu))",
        "tests/sampling/test_canonical.py",
    ),
    Mutation(
        "papers/congenial_dp/monotone.py",
        "return self.epsilon if beta is None else self.epsilon / (2 *",
        "return self.epsilon if beta is None else self.epsilon / (2.5 *",
        "tests/mechanisms/test_monotone.py",
    ),
)
