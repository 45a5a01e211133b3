"""Calls about several tables, laws, beliefs and prices, with arguments that are right."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

import congenial as api
from congenial import figures, mechanisms, pairs, privacy, synthesis, tables
from congenial.figures.support import support
from congenial.synthesis.models import LinearRegression, PoissonColumn
from congenial.synthesis.record_model import Grid
from congenial.tables.design_document import variance_model
from tests.contracts.hostile_packages import AGES, MARGINS, PEOPLE, SCHEMA, TABLE, Call

SEMI = api.SemiAdjacent(MARGINS)
ASKED = [["smoker", "ill"], ["ill"]]
WORK = tables.Workload.of(SCHEMA, ASKED)
TYPES = tables.difference_types(PEOPLE, WORK)
NOTHING = api.Figures(SCHEMA)
MEASURED = tables.Measurements(WORK, (1.0, 2.0), NOTHING)


def table_calls() -> Iterator[tuple[str, Call]]:
    """Designs, measurements, whole counts."""
    yield "Workload.of", (tables.Workload.of, {"schema": SCHEMA, "tables": ASKED})
    yield "Partition.of", (tables.Partition.of, {"blocks": [0, 0, 1]})
    yield "Keep", (tables.Keep, {"factor": 1.1})
    yield "Weighted", (tables.Weighted, {"weights": (1.0, 2.0), "absolute": False})
    measured = {"workload": WORK, "precisions": (1.0, 2.0), "figures": NOTHING}
    yield "Measurements", (tables.Measurements, measured)
    yield "difference_types", (tables.difference_types, {"adjacency": PEOPLE, "workload": WORK})
    joint = {"types": TYPES, "parameters": (Fraction(1), Fraction(2))}
    yield "joint_epsilon", (tables.joint_epsilon, joint)
    half = {"types": TYPES, "precisions": (Fraction(1), Fraction(2))}
    yield "joint_rho", (tables.joint_rho, half)
    yield "law_and_promise", (tables.law_and_promise, {"rho": Fraction(1), "epsilon": None})
    model = variance_model(WORK, NOTHING, TYPES)
    best: dict[str, Any] = {"workload": WORK, "types": TYPES, "model": model}
    yield "design", (tables.design, best | {"promise": Fraction(1), "aim": None, "law": "gaussian"})
    near = best | {"limits": {0: 9.0}, "law": "gaussian"}
    yield "design_for_accuracy", (tables.design_for_accuracy, near)
    yield "rehearse", (tables.rehearse, {"measurements": MEASURED, "keep": ()})
    fitted = tables.estimate(MEASURED, [TABLE.counts, TABLE.marginal(["ill"]).counts])
    yield "fit_whole_counts", (tables.fit_whole_counts, {"estimates": fitted, "keep": ()})
    target = api.Guarantee.zero_concentrated(1, PEOPLE)
    asked = {"target": target, "tables": ASKED, "aim": None, "keep": ()}
    yield "calibrate_tables", (mechanisms.calibrate_tables, asked)


def figure_calls() -> Iterator[tuple[str, Call]]:
    """What figures fix, and what conditioning on signs costs."""
    for name in ("conforming_tables", "limits"):
        known = {"figures": MARGINS, "names": SCHEMA.names}
        yield name, (getattr(figures, name), known)
    given = privacy.Conditions(
        support(MARGINS, SCHEMA.names), figures.limits(MARGINS, SCHEMA.names), 2
    )
    yield "largest_eps_cell", (privacy.largest_eps_cell, {"epsilon": Fraction(1), "given": given})
    yield "normaliser_price", (privacy.normaliser_price, {"eps_cell": Fraction(1), "given": given})
    yield "SeveralRows", (pairs.SeveralRows, {"published": NOTHING, "max_rows": 2})
    yield "SensitiveValues", (pairs.SensitiveValues, {"published": NOTHING, "public": ("ill",)})


def belief_calls() -> Iterator[tuple[str, Call]]:
    """Laws of statistics and of databases."""
    normal = {"label": "few", "mean": [2.0, 40], "covariance": [[0.02, 0.1], [0.1, 24]]}
    yield "GaussianLaw.of", (lambda **given: pairs.GaussianLaw.of(*given.values()), normal)
    points = {"label": "few", "points": [[1.0], [2.0]], "masses": [0.5, 0.5]}
    yield "DiscreteLaw.of", (lambda **given: pairs.DiscreteLaw.of(*given.values()), points)
    yield (
        "DependentCounts",
        (
            pairs.DependentCounts,
            {"n": 5, "z0": Fraction(1, 4), "z1": Fraction(1, 2)},
        ),
    )
    spreads = {"variance": 1, "public_variance": 1, "with_record": "1/9", "with_mean": "1/9"}
    yield "ConditionalNormal", (pairs.ConditionalNormal, {"n": 5, **spreads, "diameter": 1})
    discrete = {"points": np.array([1.0, 2.0]), "masses": np.array([1, 1]), "empirical": False}
    yield "StatedDiscrete", (pairs.StatedDiscrete, discrete)


def spec_calls() -> Iterator[tuple[str, Call]]:
    """Estimates and models of columns."""
    mean = {"what": "mean", "response": "age", "between": (0.0, 4.0)}
    yield "EstimateSpec", (mechanisms.EstimateSpec, mean)
    spec = mechanisms.EstimateSpec("mean", "age", (0.0, 4.0))
    people = api.SemiAdjacent(api.Figures(AGES))
    made = {"adjacency": people, "spec": spec, "epsilon": Fraction(1)}
    yield "GradientEstimate", (mechanisms.GradientEstimate, made)
    yield "MixturePrior", (synthesis.MixturePrior, {"shape": 1.0, "rate": 1.0, "least_sd": 0.0})
    run = {"chains": 2, "warmup": 10, "thin": 1, "r_hat": 1.05, "effective": 10.0}
    yield "Run", (synthesis.Run, run | {"judged": "all"})
    mixed = {"components": 3, "scale": "identity", "prior": synthesis.MixturePrior()}
    yield "MixtureRegression", (synthesis.MixtureRegression, mixed | {"run": synthesis.Run()})
    yield "Measure", (synthesis.Measure, {"column": "age", "quantile": 0.5})
    spike = {"model": PoissonColumn(Grid(0.2, 4, 5)), "level": "0", "share": Grid(0.1, 0.5, 3)}
    yield "Spike", (synthesis.Spike, spike)
    line = {"coefficients": (Grid(-1, 1, 3),), "sd": Grid(1, 2, 3), "scale": "identity"}
    yield "LinearRegression", (LinearRegression, line | {"ridge": 0.0})


FAMILIES = (table_calls, figure_calls, belief_calls, spec_calls)
