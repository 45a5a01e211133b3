"""Noise given figures that no exact sampler keeps: a heat-bath chain, labelled as what it is."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property

from congenial.errors import StructureError
from congenial.mechanisms.congenial import IntegerNoise
from congenial.mechanisms.families import DOUBLE_GEOMETRIC
from congenial.mechanisms.mechanism import register
from congenial.sampling.conditioned import ConditionedNoise


@register
class CongenialChain(IntegerNoise):
    """The law of `Congenial`, drawn by a Markov chain where groups are tied. Not certified.

    Formula: as for `Congenial`; the draw is the state of a heat-bath chain after a stated number of
    sweeps from zero noise, on moves that are a basis of the lattice, so that they connect it.

    Formal guarantee: none for the draw itself. The number printed is that of the chain's limit, its
    basis is "uncertified chain", and a plan that asks for basis = "theorem" refuses it.

    Edge cases: figures that do not cross are refused, because exact draws exist for them; that
    counts are not negative is not a condition. Source: congenial-dp, section 3 (a chain), with
    other moves.
    """

    name = "congenial_chain"
    noise_family = DOUBLE_GEOMETRIC
    basis = "uncertified chain"
    citation = "Gong and Meng 2020 (congenial-dp), section 3; heat-bath on a lattice basis"

    def refuse_unfit(self) -> None:
        """Refuse what can be drawn exactly."""
        if not self.support.ties:
            raise StructureError(
                "these figures need no Markov chain: they can be drawn exactly.",
                remedy="Use mechanism = 'auto'.",
            )
        super().refuse_unfit()

    @cached_property
    def conditioned(self) -> ConditionedNoise:
        """The law of the noise, ties left to the chain."""
        return ConditionedNoise(self.cell, self.support, chain=True)

    @property
    def sampler_error(self) -> Fraction:
        """Nothing is proved of the chain; the number printed, and its basis, are its limit's."""
        return Fraction(0)
