"""Simulation-based calibration: parameters from the prior, data, figures, noise, and back again.

If everything is right, the true parameter is as likely at any place among draws of its posterior as
at any other. Chains are long enough to forget where they began, and only their last states are
used, one from each: independent draws, so that ranks are uniform without thinning.

    python -m tests.inference.calibration    every setting of docs/how-to/infer-from-a-release.md
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.stats import kstest, ttest_1samp

import congenial as cg
from congenial.figures.support import support
from congenial.inference import (
    Beta,
    Binomial,
    Chain,
    Dirichlet,
    Gamma,
    GaussianPrior,
    HalfNormal,
    Linear,
    Logistic,
    Multinomial,
    NegativeBinomial,
    Observation,
    Poisson,
    inference,
)
from congenial.inference.cell_noise import LevelNoise, Noise
from congenial.inference.latent_tables import LatentTables

ALPHA = 1e-6
CHAINS, STEPS = 39, 120
MORE_STEPS = {"linear regression": 400}  # one random walk for all coefficients
LEVEL = 0.9
AXES = ("region", "sex", "age")
SCHEMA = cg.Schema.from_dict(
    {
        "region": {"levels": ["north", "south"]},
        "sex": {"levels": ["female", "male"]},
        "age": {"edges": [0, 10, 18, 40, 60], "top": "60+"},
    }
)
CELLS = SCHEMA.size(AXES)
MEANS = {"sparse": 1.5, "dense": 40.0}
NOISES = {
    "epsilon": ("double_geometric", Fraction(1, 4)),
    "rho": ("discrete_gaussian", Fraction(30)),
}
FIGURES: dict[str, tuple[Any, ...]] = {
    "none": (),
    "nested": (cg.total(), cg.total(by="region")),
    "crossing": (
        cg.total(by="region"),
        cg.count("sex = 'female'", by="region"),
        cg.count("age >= 18", by="region"),
    ),
}
MODELS = {
    "poisson": lambda mean: Poisson(prior=Gamma(2, 2 / mean)),
    "multinomial": lambda mean: Multinomial(prior=Dirichlet(1), people=round(CELLS * mean)),
    "binomial": lambda mean: Binomial(trials=round(2 * mean), prior=Beta(2, 2)),
    "poisson regression": lambda mean: Poisson(
        prior=GaussianPrior(0, 0.5), exposure=mean, covariates=("sex", "age")
    ),
    "negative binomial regression": lambda mean: NegativeBinomial(
        prior=GaussianPrior(0, 0.5),
        exposure=mean,
        covariates=("sex", "age"),
        size_prior=Gamma(5, 1),
    ),
    "binomial regression": lambda mean: Binomial(
        trials=round(2 * mean), prior=GaussianPrior(0, 0.7), covariates=("sex", "age")
    ),
    "logistic regression": lambda mean: Logistic(
        "sex", covariates=("region", "age"), prior=GaussianPrior(0, 0.7)
    ),
    "linear regression": lambda mean: Linear(
        "age", covariates=("sex",), prior=GaussianPrior(20, 15), sd_prior=HalfNormal(20)
    ),
}
# Regressions of an outcome: parts of people with the same covariates, by the group of parts whose
# people the figures count. Without figures the number of people in each part is known.
PARTS = {
    "logistic regression": {
        "none": [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]],
        "nested": [[0, 0, 0, 0, 0], [1, 1, 1, 1, 1]],
        "crossing": [[0, 0, 1, 1, 1], [2, 2, 3, 3, 3]],
    },
    "linear regression": {
        "none": [[0, 1], [2, 3]],
        "nested": [[0, 0], [1, 1]],
        "crossing": [[0, 1], [2, 3]],
    },
}


@dataclass(frozen=True)
class Setting:
    """One row of the study. tables: three tables are measured at once, not the cells alone."""

    model: str
    table: str = "sparse"
    figures: str = "crossing"
    noise: str = "rho"
    tables: bool = False

    @property
    def words(self) -> str:
        drawn = "three tables" if self.tables else "one table"
        return f"{self.model}, {self.table}, figures {self.figures}, {self.noise}, {drawn}"


def places(setting: Setting, simulations: int, seed: int, told: Fraction = Fraction(1)) -> Any:
    """Places of the true parameters among draws of their posteriors, (simulations, parameters).

    told: factor by which the posterior is told a wrong scale of the noise, for negative controls.
    """
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(simulations):
        model = _model(setting, rng)
        theta, x = _truth(model, rng)
        chains = _states(setting, model, _observed(setting, x, rng, told), rng)
        below = (chains < theta).sum(axis=0)
        found.append((below + rng.random(len(theta))) / (CHAINS + 1))
    return np.array(found)


def _model(setting: Setting, rng: np.random.Generator) -> Any:
    """The model, and how many people have which covariates: all numbers alike given figures."""
    mean = MEANS[setting.table]
    model = MODELS[setting.model](mean)
    if setting.model not in PARTS:
        return model
    groups = np.array(PARTS[setting.model][setting.figures]).reshape(-1)
    people = np.zeros(len(groups), dtype=np.int64)
    for group in range(groups.max() + 1):
        parts = np.flatnonzero(groups == group)
        total = round(mean * CELLS * len(parts) / len(groups))
        bars = np.sort(rng.choice(total + len(parts) - 1, len(parts) - 1, replace=False))
        people[parts] = np.diff([-1, *bars, total + len(parts) - 1]) - 1
    return replace(model, people=people)


def _states(setting: Setting, model: Any, observation: Observation, rng: Any) -> Any:
    """The last state of every chain, (chains, parameters)."""
    if setting.figures != "none" and hasattr(model, "people"):
        model = replace(model, people=None)  # what is known of it is published
    bound = inference.bind(observation, model)
    steps = MORE_STEPS.get(setting.model, STEPS)
    sampler = inference._sampler(bound, Chain(CHAINS, steps), rng)
    for step in range(steps):
        sampler.iterate(learn=step < steps // 2)
    return _flat(bound.report(sampler.theta))


def _flat(reported: dict[str, Any]) -> Any:
    return np.concatenate([v.reshape(len(v), -1) for v in reported.values()], axis=1)


def p_value(places: Any) -> float:
    """Whether places are uniform: each parameter's law, and how far out all of them are together.

    Kolmogorov and Smirnov's test for each parameter; a t test of the mean of (place - 1/2)^2 in
    each simulation against 1/12, which notices intervals that are too narrow; Bonferroni.
    """
    laws = [kstest(column, "uniform").pvalue for column in places.T]
    spread = ttest_1samp(np.mean((places - 0.5) ** 2, axis=1), 1 / 12).pvalue
    return min(1.0, 2 * min(float(min(laws)) * len(laws), float(spread)))


def covered(places: Any) -> float:
    """Share of true parameters inside the central intervals."""
    return float(np.mean(np.abs(places - 0.5) <= LEVEL / 2))


def _truth(model: Any, rng: np.random.Generator) -> tuple[Any, Any]:
    nothing = Observation(
        np.zeros(CELLS),
        LatentTables.anything(CELLS),
        Noise.flat(CELLS),
        axes=SCHEMA.axes(AXES),
        published=cg.publish(cg.Table(SCHEMA, AXES, np.zeros(_shape(), dtype=np.int64))),
    )
    bound = model.bind(nothing)
    theta = bound.draw_prior(rng, 1)
    return _flat(bound.report(theta))[0], np.asarray(bound.draw_data(rng, theta))[0]


def _shape() -> tuple[int, ...]:
    return tuple(axis.size for axis in SCHEMA.axes(AXES))


def _observed(setting: Setting, x: Any, rng: np.random.Generator, told: Fraction) -> Observation:
    """What is published about a table: exact figures, and cells or sums with noise."""
    published = cg.publish(cg.Table(SCHEMA, AXES, x.reshape(_shape())), *FIGURES[setting.figures])
    family, scale = NOISES[setting.noise]
    common: dict[str, Any] = {
        "conforming": LatentTables.of_support(support(published, AXES)),
        "axes": SCHEMA.axes(AXES),
        "published": published,
    }
    if not setting.tables:
        ones = np.ones(CELLS, dtype=np.int64)
        noise = Noise.of_family(family, scale * told, ones)  # type: ignore[arg-type]
        y = x + draw_noise(family, scale, CELLS, rng)
        return Observation(y.astype(float), noise=noise, **common)
    squared = family == "discrete_gaussian"
    rate = 1 / (2 * float(scale * told)) if squared else float(scale * told)
    region, sex, age = np.unravel_index(np.arange(CELLS), _shape())
    above = np.stack([np.arange(CELLS), CELLS + 5 * region + age, CELLS + 10 + 5 * sex + age], 1)
    sums = np.zeros(CELLS + 20, dtype=np.int64)
    for column in above.T:
        np.add.at(sums, column, x)
    drawn = sums + draw_noise(family, scale, len(sums), rng)
    levels = LevelNoise(above, np.full(len(sums), rate), drawn, squared)
    return Observation(
        drawn[:CELLS].astype(float), noise=Noise.flat(CELLS), levels=levels, **common
    )


def draw_noise(family: str, scale: Fraction, size: int, rng: np.random.Generator) -> Any:
    u = np.arange(-400, 401)
    rate = float(scale)
    logs = -rate * np.abs(u) if family == "double_geometric" else -(u**2) / (2 * rate)
    weights = np.exp(logs)
    return rng.choice(u, size, p=weights / weights.sum())


def _settings(*columns: tuple[str, str]) -> list[Setting]:
    return [
        Setting(model, table, figures, noise, tables)
        for model in MODELS
        for figures, tables in (*((one, False) for one in FIGURES), ("crossing", True))
        for table, noise in columns
    ]


SETTINGS = _settings(("sparse", "epsilon"), ("dense", "rho"))
CROSSED = _settings(("sparse", "rho"), ("dense", "epsilon"))


def main() -> None:
    simulations = int(sys.argv[1]) if len(sys.argv) > 1 else 40
    for setting in (*SETTINGS, *CROSSED):
        found = places(setting, simulations, seed=1)
        print(f"{setting.words}: {covered(found):.3f}, p = {p_value(found):.2g}", flush=True)


if __name__ == "__main__":
    main()
