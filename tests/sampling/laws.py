"""The laws under test, their weights written out independently, and the reference sampler."""

from __future__ import annotations

from bisect import bisect_left
from fractions import Fraction

from flint import arb, ctx, fmpz

from congenial.sampling import DiscreteGaussian, DoubleGeometric
from congenial.sampling.exact_decisions import ball
from congenial.sampling.grouped_noise import SharedTotal

LAWS = [
    DoubleGeometric(Fraction(1, 4)),
    DoubleGeometric(Fraction(7, 3)),
    DiscreteGaussian(Fraction(9, 2)),
    DiscreteGaussian(Fraction(1, 5)),
    SharedTotal(5, Fraction(1, 2)),
    SharedTotal(2, Fraction(3)),
]
WIDE = 900  # every law above has less than 2^-300 of its mass beyond


def weight(law, x: int):
    """The weight written out independently of the package's recurrences."""
    if isinstance(law, DoubleGeometric):
        return (-ball(law.eps) * abs(x)).exp()
    if isinstance(law, DiscreteGaussian):
        return (-(arb(x) ** 2) / (2 * ball(law.sigma2))).exp()
    if x < 0:
        return arb(0)
    return arb(fmpz.bin_uiui(x + law.k - 1, law.k - 1)) ** 2 * (-2 * x * ball(law.eps_cell)).exp()


class Reference:
    """Inversion in pure Python: no table of bounds, no kernel, 500-bit balls."""

    def __init__(self, law):
        with ctx.workprec(500):
            ws = [weight(law, x) for x in range(-WIDE, WIDE + 1)]
            running, self.F = arb(0), []
            total = sum(ws, arb(0))
            for w in ws:
                running += w
                self.F.append(running / total)

    def decide(self, prefix: int, bits: int) -> int | None:
        """The smallest x with F(x) > U for all U in [prefix, prefix + 1] / 2^bits, if any."""
        with ctx.workprec(500):
            low, high = (arb(v) * arb(2) ** -bits for v in (prefix, prefix + 1))
            i = bisect_left(self.F, True, key=lambda f: bool(f >= high))
            if i == len(self.F) or (i > 0 and not self.F[i - 1] <= low):
                return None
            return i - WIDE

    def draw(self, randomness, n: int) -> list[int]:
        """16 bits for each draw, four to a word from the low end; then a word for each open one."""
        words = [int(w) for w in randomness.words(-(-n // 4))]
        known = {j: (words[j // 4] >> (16 * (j % 4))) & 0xFFFF for j in range(n)}
        out, bits = [0] * n, 16
        while known:
            for j, prefix in list(known.items()):
                x = self.decide(prefix, bits)
                if x is not None:
                    out[j] = x
                    del known[j]
            known = {j: (prefix << 64) | randomness.word() for j, prefix in known.items()}
            bits += 64
        return out
