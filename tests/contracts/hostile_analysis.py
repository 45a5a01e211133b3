"""Calls of analysts, auditors and synthesisers, with arguments that are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import congenial as api
from congenial import audit, inference, papers, privacy, synthesis
from congenial.sampling.discrete import DoubleGeometric
from congenial.synthesis.models import NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid
from tests.contracts.hostile_packages import PEOPLE, SCHEMA, SEEDED, TABLE, Call

AGES = api.Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65, 90]}})
DRAWN = api.release_table(
    api.calibrate("auto", api.Guarantee.pure(1, api.ReplaceOne(AGES)), AGES.names),
    api.Table(AGES, AGES.names, [[40, 60, 30], [45, 55, 20]]),
    SEEDED,
)
NOISE = DoubleGeometric(1)


def inference_calls() -> Iterator[tuple[str, Call]]:
    """Tests, models and losses of projection."""
    binomial = {"release": DRAWN, "condition": "age < 18", "null": 0.3}
    asked = binomial | {"family": inference.Family("binomial", 250), "alternative": "greater"}
    yield "one_sided", (inference.one_sided, asked)
    yield "power", (inference.power, asked | {"level": 0.05, "at": 0.4})
    crossed = {"release": DRAWN, "row": "sex", "column": "age", "where": ""}
    yield "independence_test", (inference.independence_test, crossed)
    shares = {"release": DRAWN, "name": "sex", "one": "age < 18", "other": "age >= 65"}
    yield "equality_test", (inference.equality_test, shares)
    trend = {"release": DRAWN, "condition": "sex = 'f'", "name": "age", "where": ""}
    yield "trend_test", (inference.trend_test, trend)
    run = {"chains": 2, "warmup": 5, "check": True, "progress": lambda *_: None}
    yield "Chain", (inference.Chain, run)
    yield "cell_estimates", (inference.cell_estimates, {"release": DRAWN})
    gamma: Any = inference.Gamma(2, 1)
    yield "poisson_rate", (papers.poisson_rate, {"prior": gamma, "noise": NOISE})
    half = {"total": 4, "prior": inference.Beta(1, 1), "noise": NOISE}
    yield "share_of_total", (papers.share_of_total, half)
    few = {"total": 3, "cells": 3, "prior": inference.Dirichlet(1), "noise": NOISE}
    yield "shares_of_total", (papers.shares_of_total, few)


def audit_calls() -> Iterator[tuple[str, Call]]:
    """Audits."""
    bounds = {"hits": [1, 2], "trials": 10, "tail": 0.025}
    yield "clopper_pearson_bounds", (audit.clopper_pearson_bounds, bounds)
    yield "Prover", (audit.Prover, {"trials": 10, "tail": 0.01, "delta": 0.0})
    yield "allowed_accuracy", (audit.allowed_accuracy, {"promise": privacy.Pure(1)})
    laws = [(np.log([0.6, 0.4]), np.log([0.4, 0.6]))]
    asked = {"promised": privacy.Pure(1), "pairs": laws, "tight": False, "epsilons": (0.0, 1.0)}
    yield "audit_laws", (audit.audit_laws, asked | {"normalised": True})
    few = api.Table(SCHEMA, SCHEMA.names, [[1, 0], [1, 0]])
    pair = [(few, api.Table(SCHEMA, SCHEMA.names, [[0, 1], [1, 0]]))]
    made = api.calibrate("auto", api.Guarantee.pure(1, PEOPLE), SCHEMA.names)
    exact = {"mechanism": made, "over": pair, "radius": 1, "epsilons": (0.0,), "most": 500}
    yield "exact_audit", (audit.exact_audit, exact)
    near = {"adjacency": PEOPLE, "n": 1}
    yield "adjacent_pairs", (lambda **given: list(audit.adjacent_pairs(**given)), near)
    found = {"adjacency": PEOPLE, "names": SCHEMA.names, "number": 1}
    found |= {"generator": np.random.default_rng(1)}
    yield "hostile_pairs", (audit.hostile_pairs, found)
    attack = {"mechanism": made, "promised": None, "pairs": 1, "draws": 400, "delta": 0.0}
    attack |= {"alpha": 0.05, "randomness": SEEDED, "progress": lambda _: None}
    yield "black_box", (audit.black_box, attack)
    universe = {"label": "few", "table": few, "statements": (), "release": ("smoker",)}
    more = {"max_rows": None, "reading": "robust", "metric": "replace-one"}
    yield "SmallUniverse", (audit.SmallUniverse, universe | more)


def local_calls() -> Iterator[tuple[str, Call]]:
    """Weights of records, risk and utility."""
    risk = np.array([0.5, 1.0, 2.0])
    yield "truncated", (synthesis.truncated, {"weighting": synthesis.min_max(), "M": 1.0})
    yield "smooth", (synthesis.smooth, {"risk": risk})
    yield "probabilistic", (synthesis.probabilistic, {"deltas": risk, "epsilon": 1.0})
    yield "weight_spread", (synthesis.weight_spread, {"weights": risk, "reference": risk})
    near = {"values": risk, "radius": 0.5, "groups": None, "c": 1.0, "g": 0.0}
    yield "isolation", (synthesis.isolation, near)
    model = NormalColumn(mean=Grid(-2, 2, 5), sd=Grid(1, 2, 5))
    local = {"model": model, "records": np.arange(6.0), "weighting": synthesis.min_max()}
    local |= {"draws": 20, "copies": 1, "randomness": SEEDED, "estimate_of": None}
    yield "synthesize_locally", (synthesis.synthesize_locally, local)
    target = api.Guarantee.pure(8, under=api.ReplaceOne(SCHEMA))
    columns = (synthesis.Column("smoker", synthesis.MultinomialColumn(floor=0.1)),)
    made = synthesis.Synthesizer.calibrate(target, columns, records=5)
    curve = {"synthesizer": made, "data": TABLE, "measure": synthesis.Measure("smoker")}
    curve |= {"bounds": ("1",), "local": (), "replicates": 1, "results": None}
    yield "risk_utility_curve", (synthesis.risk_utility_curve, curve | {"randomness": SEEDED})
    asked = {"model": PoissonColumn(Grid(1, 9, 3)), "records": [4.0, 2.0], "bound": 1}
    yield "certified_law", (synthesis.certified_law, asked)
    named = {"columns": [["a", "b"]], "levels": [("a", "b")]}
    yield "indicators", (synthesis.indicators, named)
    frame = pa.table({"smoker": ["yes", "no"], "ill": ["no", "no"]})
    both = {"original": frame, "synthetic": frame, "schema": SCHEMA, "regression": None}
    yield "utility_report", (synthesis.utility_report, both)
    yield "record_risk", (synthesis.record_risk, {"synthesizer": made, "data": TABLE})


FAMILIES = (inference_calls, audit_calls, local_calls)
