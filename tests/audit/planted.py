"""Planted defects: plausible mistakes, each with the check that must catch it and its control.

One list, `PLANTED`; tests/audit/test_planted.py runs it, and other folders refer to it by name.
`caught` plants the defect and says whether the check notices; `sound` puts the right thing in its
place and says whether the same check lets it pass.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from congenial import Congenial, Guarantee, ReplaceOne, SeededRandomness, Table, total
from congenial.audit import UNIVERSES, SmallUniverse, black_box, exact_audit, hostile_pairs
from congenial.audit.universes import FURTHER
from congenial.mechanisms.congenial import CongenialCounts, CongenialGaussian
from congenial.mechanisms.kernel_gaussian import KernelGaussian
from congenial.mechanisms.knorm import FAMILIES, KNorm
from congenial.mechanisms.plain import PlainDiscreteGaussian, PlainGeometric
from congenial.papers.congenial_dp.congenial_statements import printed_log_pmf
from congenial.privacy.tradeoff import Gaussian, Pure, ZeroConcentrated
from congenial.sampling.discrete import DoubleGeometric
from tests.audit.broken import (
    SEED,
    VOTING,
    forgotten,
    inverted_in_doubles,
    klein,
    overspent,
    shifted_by_one,
    stand_ins,
    stopped_chain,
)
from tests.papers.test_real_knorm import radius_misses_its_law
from tests.synthesis.test_certificate import loss_over_promise, min_max, own_record_only
from tests.worlds import levels

DRAWS = {"pure": 40_000, "gaussian-draw": 160_000, "gaussian": 40_000}  # per pair
EPSILON = Fraction(4)

ALL = {universe.label: universe for universe in (*UNIVERSES, *FURTHER)}
MARGINS, HEXAGON, PEOPLE = (ALL[label] for label in ("both margins", "hexagon", "no mandates"))


@dataclass(frozen=True)
class Planted:
    """A defect, what notices it, and the control of that check."""

    name: str
    check: str
    caught: Callable[[], bool]
    sound: Callable[[], bool]

    def __str__(self) -> str:
        return f"{self.name}-{self.check}".replace(" ", "_")


# ---- the checks ----------------------------------------------------------------------------------


def listed(mechanism, universe, promised) -> bool:
    """The exact audit: is the promise broken?"""
    return bool(exact_audit(mechanism, universe, radius=2).violations(promised))


def attacked(mechanism, promised) -> bool:
    """The black-box audit: is the promise broken?"""
    draws, source = DRAWS[promised.to_dict()["kind"]], SeededRandomness(SEED)
    pairs = neighbours(mechanism)
    return black_box(mechanism, promised, pairs=pairs, draws=draws, randomness=source).violated


_PAIRS: dict = {}  # looked for once per universe, which keeps its adjacency


def neighbours(mechanism, number=3):
    key = id(mechanism.adjacency), mechanism.description.table, number
    if key not in _PAIRS:
        generator = np.random.default_rng(SEED)
        found = hostile_pairs(mechanism.adjacency, key[1], number, generator)
        _PAIRS[key] = mechanism.adjacency, found
    return _PAIRS[key][1]


# ---- mechanisms ----------------------------------------------------------------------------------


def made(kind, universe):
    return kind.calibrate(TARGETS[kind.targets[0]](universe.adjacency), universe.release)


TARGETS = {
    Pure: lambda under: Guarantee.pure(EPSILON, under),
    ZeroConcentrated: lambda under: Guarantee.zero_concentrated(2, under),
    Gaussian: lambda under: Guarantee.gaussian(2, under),
}


def rescaled(mechanism, scale):
    return replace(mechanism, description=replace(mechanism.description, scale=scale))


def less_noise(mechanism):
    """All noise times 0.8; the promise stays."""
    scale = mechanism.description.scale
    return rescaled(mechanism, scale * 16 / 25 if mechanism.description.norm == "l2" else scale / F)


F = Fraction(4, 5)
KINDS = (
    (Congenial, VOTING),
    (CongenialGaussian, VOTING),
    (KernelGaussian, VOTING),
    (KNorm, MARGINS),
    (CongenialCounts, VOTING),
    (PlainGeometric, PEOPLE),
    (PlainDiscreteGaussian, PEOPLE),
)


def every_kind(check, change, kinds=KINDS) -> bool:
    """The check's answer, when it is the same for every kind of noise."""
    answers = set()
    for kind, universe in kinds:
        mechanism = made(kind, universe)
        answers.add(check(change(mechanism), universe, mechanism.guarantee.tradeoff))
    assert len(answers) == 1, "the check notices some kinds of noise only"
    return answers.pop()


def one_person_only():
    """Sensitivity 2 instead of 4: what a system that ignores its invariants would print."""
    ignoring = ReplaceOne(VOTING.table.schema).l1(VOTING.release).value
    return rescaled(made(Congenial, VOTING), EPSILON / ignoring)


def per_cell():
    """Epsilon per cell taken for epsilon per person."""
    return rescaled(made(Congenial, VOTING), EPSILON)


def swaps_only():
    """Noise made for swaps (Proposition 32), where hexagons are possible."""
    sound = made(KNorm, HEXAGON)
    return KNorm(sound.adjacency, replace(sound.description, family=FAMILIES[2]))


def fifty_people() -> SmallUniverse:
    """Two cells: conditioning on signs costs most (1.2091 where 1 is promised)."""
    schema = levels(x=2)
    return SmallUniverse("fifty", Table(schema, ("x",), np.array([50, 0])), (total(),), ("x",))


FIFTY = fifty_people()
ONE, FOUR = Pure(1), Pure(EPSILON)


def priced():
    return CongenialCounts.calibrate(Guarantee.pure(1, FIFTY.adjacency), FIFTY.release)


def unpriced():
    """eps_cell = epsilon / Delta_1 is right for equalities only; m >= 0 is conditioned on too."""
    return rescaled(priced(), 1 / FIFTY.adjacency.l1(FIFTY.release).value)


class WithoutMinusOne(PlainGeometric):
    """The printed quantile of congenial-dp: +1 is never drawn."""

    def noise(self, randomness, draws):
        u = super().noise(randomness, draws)
        return u + (u >= 1)

    def log_density(self, y, table):
        u = np.asarray(y) - self.query(table)
        return np.sum(printed_log_pmf(u, self.description.scale), axis=self._cell_axes)


class Windowed(Congenial):
    """Noise cut at a fixed distance from the truth: some outputs only one table can make."""

    def noise(self, randomness, draws):
        u = super().noise(randomness, 4 * draws)
        return u[np.abs(u).reshape(len(u), -1).max(axis=1) <= 1][:draws]

    def log_density(self, y, table):
        far = np.abs(np.asarray(y) - self.query(table)).max(axis=-1) > 1
        return np.where(far, -np.inf, super().log_density(y, table))


def altered(kind, sound):
    return kind(sound.adjacency, sound.description)


# ---- the list ------------------------------------------------------------------------------------

LISTED, ATTACKED = "by listing", "from outside"


def _both(name, defect, sound, universe=VOTING, told=FOUR) -> tuple[Planted, Planted]:
    """Noticed by listing everything, and from outside."""
    return (
        Planted(
            name,
            LISTED,
            lambda: listed(defect(), universe, told),
            lambda: not listed(sound(), universe, told),
        ),
        Planted(
            name, ATTACKED, lambda: attacked(defect(), told), lambda: not attacked(sound(), told)
        ),
    )


PLANTED: tuple[Planted, ...] = (
    Planted(
        "scale times 0.8",
        LISTED,
        lambda: every_kind(listed, less_noise),
        lambda: not every_kind(listed, lambda m: m),
    ),
    Planted(
        "scale times 0.8",
        ATTACKED,
        lambda: every_kind(lambda m, _, told: attacked(m, told), less_noise, KINDS[:4]),
        lambda: not every_kind(lambda m, _, told: attacked(m, told), lambda m: m, KINDS[:4]),
    ),
    *_both("one figure ignored in the adjacency", one_person_only, lambda: made(Congenial, VOTING)),
    *_both("epsilon per cell for epsilon per person", per_cell, lambda: made(Congenial, VOTING)),
    *_both("Proposition 32 under A_3", swaps_only, lambda: made(KNorm, HEXAGON), HEXAGON),
    *_both("signs without their price", unpriced, priced, FIFTY, ONE),
    *_both(
        "quantile without -1",
        lambda: altered(WithoutMinusOne, made(PlainGeometric, PEOPLE)),
        lambda: made(PlainGeometric, PEOPLE),
        PEOPLE,
    ),
    *_both(
        "window centred on the data",
        lambda: altered(Windowed, made(Congenial, VOTING)),
        lambda: made(Congenial, VOTING),
    ),
    Planted(
        "Gamma(s) radius",
        "law of the radius",
        lambda: radius_misses_its_law(4),
        lambda: not radius_misses_its_law(5),
    ),
    Planted(
        "chain stopped after 10 steps",
        LISTED,
        lambda: stopped_chain(10),
        lambda: not stopped_chain(None),
    ),
    Planted(
        "noise by inverting a double",
        LISTED,
        lambda: shifted_by_one(inverted_in_doubles(Fraction(1), 60), Fraction(1)),
        lambda: (
            not shifted_by_one(
                DoubleGeometric(Fraction(1)).log_pmf(np.arange(-60, 61)), Fraction(1)
            )
        ),
    ),
    Planted(
        "weights that see the whole data",
        "exact loss",
        lambda: loss_over_promise(min_max()) > 1,
        lambda: loss_over_promise(own_record_only) <= 1,
    ),
    Planted(
        "Klein's draw without its acceptance step",
        "chi-square against the law",
        lambda: klein(accepts=False),
        lambda: not klein(accepts=True),
    ),
    Planted(
        "budget that resets with the adjacency",
        "joint loss by listing",
        lambda: overspent(forgotten),
        lambda: not overspent(lambda ledger: ledger.spent().epsilon),
    ),
    Planted(
        "existential promises added across selectors",
        "joint loss by listing",
        lambda: stand_ins(shared_rule=False),
        lambda: not stand_ins(shared_rule=True),
    ),
)

# What the list must hold; one line each.
WANTED = (
    "scale times 0.8",
    "one figure ignored in the adjacency",
    "Proposition 32 under A_3",
    "Gamma(s) radius",
    "quantile without -1",
    "chain stopped after 10 steps",
    "noise by inverting a double",
    "signs without their price",
    "epsilon per cell for epsilon per person",
    "weights that see the whole data",
    "Klein's draw without its acceptance step",
    "window centred on the data",
    "budget that resets with the adjacency",
    "existential promises added across selectors",
)


def must_catch(name: str, check: str | None = None) -> None:
    """For tests elsewhere: the named defect is caught, and its control passes."""
    found = [one for one in PLANTED if one.name == name and check in (None, one.check)]
    assert found
    for one in found:
        assert one.caught()
        assert one.sound()
