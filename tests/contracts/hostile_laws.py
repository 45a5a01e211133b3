"""Calls about beliefs, trade-off functions, and mechanisms built by hand, with right arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import stats

import congenial as api
from congenial import (
    audit,
    figures,
    inference,
    mechanisms,
    pairs,
    papers,
    privacy,
    synthesis,
    transport,
)
from congenial.audit.property_inference import Shadows
from congenial.data.tabulate import Microdata
from congenial.figures.support import support
from congenial.inference.inference import bind
from congenial.mechanisms.wasserstein.convex_statistics import Box, Mean
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.papers.congenial_dp.example import SOLVED, TABLE1
from tests.contracts import hostile_packages as packages
from tests.contracts.hostile_analysis import DRAWN
from tests.contracts.hostile_packages import MARGINS, SCHEMA, SECRETS, SEEDED, TARGET, Call

ONE, OTHER = pairs.pmf({0: "1/2", 3: "1/2"}), pairs.pmf({1: "3/5", 4: "2/5"})
STATED = pairs.SecretPairs(SCHEMA, (pairs.StatedLaws("as told", (("one", ONE, OTHER),)),))
HALVES = (Fraction(1, 2), Fraction(1, 2))


def scenario_calls() -> Iterator[tuple[str, Call]]:
    """Beliefs about databases and statistics."""
    yield "BoundedCounts", (pairs.BoundedCounts, {"n": 5, "rule": pairs.k_anonymity(1)})
    finite = {"databases": ((0,), (1,)), "tables": (("fair", HALVES),)}
    yield "FiniteScenarios", (pairs.FiniteScenarios, finite | {"secrets": "replace-one"})
    listed = {"databases": [[0], [1]], "tables": {"fair": [1, 1]}, "secrets": "replace-one"}
    yield "FiniteScenarios.of", (pairs.FiniteScenarios.of, listed)
    people = {"records": {"fair": [[1, 1]]}, "secrets": "replace-one", "answers": None}
    yield "FiniteScenarios.independent", (pairs.FiniteScenarios.independent, people)
    bits = pairs.FiniteScenarios.independent({"fair": [[1, 1], [1, 1]]})
    known = {"fact": "the sum is 1", "holds": lambda x: sum(x) == 1}
    yield "FiniteScenarios.given", (bits.given, known)
    gamma = stats.gamma(2)
    law = {"quantile": gamma.ppf, "upper_quantile": gamma.isf, "support": (0.0, np.inf)}
    law |= {"family": "gamma", "location": 0.0, "accuracy": 1e-9}
    yield "StatedContinuous", (pairs.StatedContinuous, law)
    yield "StatedContinuous.of", (pairs.StatedContinuous.of, {"frozen": gamma})
    told = {"told": "as told", "pairs": (("one", ONE, OTHER),), "secrets": "replace-one"}
    yield "StatedLaws", (pairs.StatedLaws, told | {"facts": (), "digest": ""})
    asked = {"query": packages.QUERY, "laws": packages.LAWS, "pairs": None, "records": 100}
    yield "DistributionPairs.given", (pairs.DistributionPairs.given, asked | {"hidden": ""})
    direct = {"schema": packages.AGES, "statistics": packages.QUERY.names, "pairs": ((0, 1),)}
    direct |= {"laws": tuple(packages.LAWS), "hidden": "", "records": 100}
    direct |= {"change": (0.04, 1.0), "spacing": (0.01, 1.0)}
    yield "DistributionPairs", (pairs.DistributionPairs, direct)


def tradeoff_calls() -> Iterator[tuple[str, Call]]:
    """Trade-off functions, their noise, and prices of conditioning."""
    corners = ((0, 0), (Fraction(1, 2), Fraction(1, 4)), (1, 1))
    yield "PiecewiseLinear", (privacy.PiecewiseLinear, {"points": corners, "masses": ()})
    pieces = {"pieces": ((Fraction(1, 2), Fraction(1, 4)), (Fraction(1, 2), Fraction(3, 4)))}
    yield "PiecewiseLinear.from_pieces", (privacy.PiecewiseLinear.from_pieces, pieces)
    both = {"p": HALVES, "q": (Fraction(1, 4), Fraction(3, 4))}
    yield "tradeoff_between", (privacy.tradeoff_between, both)
    yield "canonical_noise", (inference.canonical_noise, {"f": privacy.Pure(1)})
    bound = transport.delta_z(SECRETS)
    asked = {"epsilon": Fraction(1), "bound": bound}
    yield "conditioned_epsilon", (transport.conditioned_epsilon, asked)
    fixed = figures.limits(MARGINS, SCHEMA.names)
    given = {"support": support(MARGINS, SCHEMA.names), "limits": fixed, "distance": 2}
    yield "Conditions", (privacy.Conditions, given | {"replaced": True, "enumerated": None})
    counts = {"figures": MARGINS, "table": SCHEMA.names, "distance": 2, "replaced": True}
    yield "Conditions.of", (privacy.Conditions.of, counts)


def mechanism_calls() -> Iterator[tuple[str, Call]]:
    """Wasserstein mechanisms and mechanisms of distribution privacy."""
    mean, records = Mean(Box((0.0,), (1.0,))), transport.delta_z(SECRETS)
    made = {"pairs": SECRETS, "epsilon": Fraction(1), "statistic": mean, "points": 8}
    gradient = mechanisms.WassersteinGradient
    yield "WassersteinGradient.calibrate", (gradient.calibrate, made)
    yield "WassersteinGradient", (gradient, made | {"bound": records})
    reals = {"pairs": STATED, "bound": assumed_delta("3/10", "l1"), "epsilon": Fraction(1)}
    reals |= {"unit": Fraction(1, 4), "dimension": 2}
    yield "WassersteinReals", (papers.WassersteinReals, reals)
    both = {"one": api.Guarantee.pure(1, SECRETS), "other": api.Guarantee.pure(1, SECRETS)}
    yield "joint_promise", (papers.joint_promise, both | {"blocks": ((0,), (1,))})
    chain = {"table": TABLE1, "eps": Fraction(1, 2), "eps_proposal": Fraction(3, 5)}
    yield "PrintedChain", (papers.PrintedChain, chain | {"solved": SOLVED, "printed": True})
    past = {"cells": 3, "totals": [((0, 1), 7)], "previous": (4, 1, 3), "alpha": 2, "kappa": "1/2"}
    yield "prior_congenial", (mechanisms.prior_congenial, past | {"parts": ((2, 0),)})
    ages = [0, 10, 20]
    differ: Callable[..., Any] = lambda y, x: int(y != x)  # noqa: E731 - takes anything
    finite = {"points": ages, "states": ages, "loss": differ, "distance": differ}
    finite |= {"delta_z": 1, "base": None}
    yield "FiniteRange.of", (papers.FiniteRange.of, finite)
    table = {"losses": (HALVES, (Fraction(1), Fraction(2))), "near": ((0, 1), (1, 0))}
    yield "FiniteRange", (papers.FiniteRange, table | {"base": HALVES})
    nation = api.Schema.from_dict(
        {"block": {"levels": ["1", "2", "3"], "within": {"state": ["P", "P", "Q"]}}}
    )
    cut = {"adjacency": api.ReplaceOne(nation), "tables": [("block",)], "parts": "state"}
    cut |= {"family": "discrete_gaussian", "scales": [Fraction(2)], "design": None}
    yield "PartedTables.of", (mechanisms.PartedTables.of, cut)
    calibrated = mechanisms.calibrate_distribution(packages.LAW_PAIRS, 1, 0.001).mechanism
    wider = {"mechanism": calibrated, "distance": 0.5, "lam": 0.1}
    yield "with_model_error", (mechanisms.with_model_error, wider)


def model_calls() -> Iterator[tuple[str, Call]]:
    """Regressions, proposals, coverage, and models from elsewhere."""
    wide, sd = inference.GaussianPrior(0, 9), inference.HalfNormal(3)
    common: dict[str, Any] = {"outcome": "age", "prior": wide, "people": None}
    models: dict[type, dict[str, Any]] = {
        inference.Logistic: common
        | {"outcome": "sex", "covariates": (), "success": "f", "by": None},
        inference.Linear: common | {"covariates": ("sex",), "by": None, "sd_prior": sd},
        inference.Normal: common | {"sd_prior": sd},
    }
    for model, valid in models.items():
        yield model.__name__, (lambda model=model, **given: bound(model, given), valid)
    asked: dict[str, Any] = {
        "release": DRAWN,
        "model": inference.Poisson(prior=inference.Gamma(1, 1)),
        "releases": 1,
    }
    asked |= {"level": 0.9, "draws": 100, "seed": 1, "given": None, "chain": inference.Chain()}
    yield "coverage", (inference.coverage, asked)
    program = {"program": lambda x: x, "new_records": lambda site, x, rng: x, "blank": np.zeros(1)}
    yield "NumpyroModel", (synthesis.NumpyroModel, program | {"warmup": 5, "chains": 1})
    drawn = {"draws": {"log_likelihood": {"y": np.zeros((2, 3, 4))}}, "variable": "y"}
    yield "log_likelihood_of", (synthesis.log_likelihood_of, drawn)
    group = lambda group: synthesis.log_likelihood_of({"log_likelihood": group})  # noqa: E731
    yield "log_likelihood_of a group", (group, {"group": {"y": np.zeros((2, 3, 4))}})
    both = api.release_table(api.calibrate("auto", TARGET, SCHEMA.names), packages.TABLE, SEEDED)
    yield "odds_ratio_test", (inference.odds_ratio_test, {"release": both, "randomness": SEEDED})


def bound(model: type, given: dict[str, Any]) -> object:
    """What `infer` does with a model before it draws."""
    return bind(DRAWN, model(**given), public=True)


def attack_calls() -> Iterator[tuple[str, Call]]:
    """Attacks on hidden properties, and the audit of everything."""
    hide = pairs.share("sex = 'f'", between=(0.2, 0.8))
    table = pa.table({"sex": ["f", "m"] * 30, "age": [at % 5 for at in range(60)]})
    with Microdata.open(table, packages.AGES) as data:
        people = packages.MEAN.records(data, hide.conditions)
    parts = people.split([30], np.arange(60))
    asked = {"scenarios": hide.pairs[0], "auxiliary": parts[0], "testing": parts[1], "records": 5}
    asked |= {"datasets": 4, "repetitions": 1, "randomness": SEEDED}
    yield "draw_shadows", (audit.draw_shadows, asked)
    made = mechanisms.calibrate_distribution(packages.LAW_PAIRS, 1, 0.001).mechanism
    drawn = np.random.default_rng(1).normal(size=(2, 1, 8, 2))
    attack = {"mechanism": made, "shadows": Shadows(*drawn), "randomness": SEEDED}
    yield "property_inference", (audit.property_inference, attack)


FAMILIES = (scenario_calls, tradeoff_calls, mechanism_calls, model_calls, attack_calls)
