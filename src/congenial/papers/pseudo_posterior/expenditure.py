"""The Consumer Expenditure quarter at hand: 2016 Q1, 6,426 consumer units, income as reported.

It differs from the paper's sample (2017 Q1, n = 6,208), which is not to be had:

- income is as reported, without imputation: 619 incomes are 0 and 4 negative, where imputation
  leaves few. A logarithm does not take them; asinh of thousands of dollars does, and equals
  log(2 y) from a few thousand dollars on;
- the population size of the area (5 classes) stands for urban type and CBSA status; region has a
  fifth class, not given; that makes 36 indicators and a constant (the paper's table: 35).

The synthesizers of section 5 on the expenditure quarter: weights, weighted posteriors, copies.

Every quantity here is a local estimate, not a guarantee. Fits are kept for the process, because
Figures 4 to 7 and Table 2 share them.

Certified mode on the same column: income on public bins, given age and earner status.

Partial synthesis as in the paper: age and earner status are public, income is protected. A
multinomial for each of their combinations, on bins fixed without the data. At M = Delta it promises
by proof, for every dataset, what the paper's mechanism estimates for one: epsilon = 2 M per copy.

Distributions of a statistic by resampling, and their barycenter over synthetic databases.

Section 5: Figures 3 to 7 and Table 2 on the expenditure quarter, certified mode beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
import pyarrow as pa

from congenial.data.arrays import Floats
from congenial.data.schema import Schema
from congenial.data.tabulate import tabulate
from congenial.errors import DataError
from congenial.figures.figures import publish
from congenial.figures.statements import margin
from congenial.pairs.sensitive_values import SensitiveValues
from congenial.papers.item import Study
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.columns import Column
from congenial.synthesis.local import LABEL, LocalEstimate, isolation, min_max, risks, scalar
from congenial.synthesis.mixture import MixturePrior, MixtureRegression, Run, indicators
from congenial.synthesis.mixture.gibbs_chains import Diagnostics, diagnose
from congenial.synthesis.record_model import generator_of

UNIT = 1000.0  # dollars
FILE = "ce/ce_2016q1_table1_like.csv.gz"

# a common level of each column first: it is the one without an indicator
LEVELS: dict[str, tuple[str, ...]] = {
    "gender": ("M", "F"),
    "age": ("50-64", "<25", "25-34", "35-49", "65+"),
    "education": ("4", "1", "2", "3", "5", "6", "7", "8"),
    "region": ("3", "1", "2", "4", "NA"),
    "urban": ("1", "2"),
    "marital": ("1", "2", "3", "4", "5"),
    "popsize": ("2", "1", "3", "4", "5"),
    "family_size": ("2", "1", "3", "4", "5", "6", "7", "8", "9", "10", "11"),
    "earner": ("Y", "N"),
}
KNOWN = ("gender", "age", "region")  # what Hu et al. let an intruder know

DIFFERS = (
    "data: Consumer Expenditure Survey 2016 Q1, n = 6,426, income as reported (623 values <= 0); "
    "the paper's is 2017 Q1, n = 6,208, imputed; its values are not expected to be met",
    "asinh(income / 1,000) in place of log(income), and sigma_k >= 0.05: with repeated incomes "
    "the posterior of Appendix B is improper",
)


@dataclass(frozen=True, eq=False)
class Sample:
    """One row per consumer unit: the categorical columns by name, and family income in dollars."""

    columns: dict[str, Any]
    income: Floats

    @cached_property
    def predictors(self) -> Floats:
        """36 indicators; of a part of the sample those that vary."""
        design = indicators([self.columns[name] for name in LEVELS], list(LEVELS.values()))
        return design[:, np.ptp(design, axis=0) > 0]

    @cached_property
    def records(self) -> Floats:
        """Rows as the mixture takes them: predictors, then income in thousands."""
        return np.column_stack([self.predictors, self.income / UNIT])

    @cached_property
    def known(self) -> Any:
        """A label per record for what an intruder knows."""
        return np.unique(
            np.stack([self.columns[name] for name in KNOWN], axis=1), axis=0, return_inverse=True
        )[1].reshape(-1)

    def part(self, step: int) -> Sample:
        """Every step-th record, for a quick look."""
        some = {name: values[::step] for name, values in self.columns.items()}
        return Sample(some, self.income[::step])


def read(study: Study) -> Sample:
    """The quarter. The region 'NA' is a label: nothing in the file is read as missing."""
    import duckdb

    path = study.file(FILE)
    names = ", ".join(f'"{name}"' for name in (*LEVELS, "family_income"))
    query = f"SELECT {names} FROM read_csv(?, header = true, all_varchar = true, nullstr = '')"
    with duckdb.connect() as connection:
        records = connection.execute(query, [str(path)]).fetch_arrow_table()
    if any(records[name].null_count for name in records.column_names):
        raise DataError(f"{FILE} has empty fields.", remedy="Give the file as it was published.")
    columns = {name: np.asarray(records[name].to_pylist(), dtype=str) for name in LEVELS}
    return Sample(columns, np.asarray(records["family_income"].to_pylist(), dtype=float))


COPIES = 20
PRINTED = {  # Table 2
    (0.7, 0.0): "10.10",
    (0.6, 0.0): "8.16",
    (0.6, -0.1): "7.30",
    (0.5, 0.0): "6.09",
    (0.5, -0.1): "5.71",
    (0.5, -0.3): "2.25",
}
CONFIGURATIONS = tuple(PRINTED)
RADIUS = 0.2  # of Countweighted; the paper gives none
FULL = MixtureRegression(
    10,
    "asinh",
    MixturePrior(least_sd=0.05),
    Run(4, 4000, 20, r_hat=1.1, effective=40, judged="predictive"),
)
QUICK = MixtureRegression(
    3,
    "asinh",
    MixturePrior(least_sd=0.05),
    Run(chains=2, warmup=3000, thin=60, r_hat=1.2, effective=20, judged="predictive"),
)


@dataclass(frozen=True, eq=False)
class StudyFit:
    """One synthesizer: weights, Lipschitz bounds by record, Delta, synthetic incomes."""

    name: str
    weights: Floats
    bounds: Floats
    estimate: LocalEstimate
    copies: tuple[Floats, ...]
    chains: Diagnostics
    attained: Diagnostics  # of the weighted log likelihood of the record that attains Delta


@dataclass(eq=False)
class Synthesizers:
    """The four synthesizers of Figures 4 to 6, and those of Figure 7 by (c, g)."""

    sample: Sample
    model: MixtureRegression
    draws: int
    seed: int
    study: Study
    _done: dict[str, StudyFit] = field(default_factory=dict)

    def fit(self, name: str, weights: Floats) -> StudyFit:
        """Fit once by name."""
        if name not in self._done:
            self.study.progress(f"fitting {name}")
            self._done[name] = self._fit(name, weights)
        return self._done[name]

    def _fit(self, name: str, weights: Floats) -> StudyFit:
        records = self.sample.records
        generator = generator_of(SeededRandomness(seed_of(self.seed, name)))
        fit = self.model.fit(records, weights, self.draws, generator)
        logs = self.model.weighted_log_likelihood(fit.parameters.rows(), records, weights)
        theta, bounds = fit.parameters.rows()[: self.draws], risks(logs[: self.draws])
        chosen = generator.choice(len(theta), size=COPIES, replace=False)
        copies = tuple(
            UNIT * self.model.draw(theta[at], records, generator)[:, -1] for at in chosen
        )
        estimated = self.model.estimate(theta, records, weights)
        highest = logs[:, [int(np.argmax(bounds))]]
        attained = diagnose(highest, ["log likelihood"], self.model.run.chains)
        return StudyFit(name, weights, bounds, estimated, copies, fit.diagnostics, attained)

    def unweighted(self) -> StudyFit:
        """All weights 1; its bounds are the risks the others' weights are made from."""
        return self.fit("Unweighted", np.ones(len(self.sample.income)))

    def weighted(self, c: float, g: float) -> StudyFit:
        """The paper's mechanism: min-max weights with c and g."""
        return self.fit(f"DPweighted {c}, {g}", min_max(c, g)(self.unweighted().bounds))

    def scalar(self, c: float, g: float) -> StudyFit:
        """The exponential mechanism aimed at the Delta that (c, g) reached."""
        aim = 2 * self.weighted(c, g).estimate.delta
        return self.fit(f"EMweighted {c}, {g}", scalar(aim)(self.unweighted().bounds))

    def counted(self) -> StudyFit:
        """Hu et al.: weights by the share of known-alike records with another income."""
        weights = isolation(self.sample.income, RADIUS, self.sample.known)
        return self.fit("Countweighted", weights)

    def four(self) -> list[tuple[str, StudyFit]]:
        """The synthesizers of Figures 4 to 6 by their labels."""
        c, g = CONFIGURATIONS[0]
        return [
            ("Unweighted", self.unweighted()),
            ("DPweighted", self.weighted(c, g)),
            ("EMweighted", self.scalar(c, g)),
            ("Countweighted", self.counted()),
        ]

    def notes(self) -> list[str]:
        """How well the chains did."""
        worst_chains = {fitted.name: fitted.chains.worst for fitted in self._done.values()}
        name, worst = min(worst_chains.items(), key=lambda one: float(one[1]["effective"]))
        highest = max(chain["r_hat"] for chain in worst_chains.values())
        fewest, differ = zip(
            *(fitted.chains.predictive for fitted in self._done.values()), strict=True
        )
        means = ", ".join(f"{mean:.3f}" for mean in worst["means"])
        run, attained = self.model.run, [fitted.attained for fitted in self._done.values()]
        least = min(float(bound.effective[0]) for bound in attained)
        largest = max(float(bound.r_hat[0]) for bound in attained)
        why = "chains share the middle incomes among components in different ways, with much the "
        why += "same predictive law"
        return [
            f"mixture of {self.model.components} regressions, {run.chains} chains of "
            f"{run.warmup} + {run.thin * self.draws // run.chains} sweeps, {self.draws} draws",
            f"predictive law: {_asked(run)}; synthetic records depend on it alone, and so do the "
            "means and percentiles of Figures 5 to 7. Its distribution function has at least "
            f"{min(fewest):.0f} effective draws here, R-hat at most {max(differ):.2f}",
            "Delta (Figure 4, Table 2) depends on the weighted log likelihood, which is the same "
            "however components are named: at the record that attains it the chains have at least "
            f"{least:.0f} effective draws, R-hat at most {largest:.2f}",
            "of the other functionals, which no figure shows and which may not have converged, the "
            "worst is "
            f"{worst['functional']} of {name}, {worst['effective']:.0f} "
            f"effective draws (means by chain {means}, deviation inside one "
            f"{worst['within']:.3f}), and the largest R-hat {highest:.2f}"
            + ("" if self.study.quick else f": {why}"),
        ]


def seed_of(seed: int, name: str) -> int:
    """The seed of one fit: the same whatever was fitted before it."""
    return int.from_bytes(sha256(f"{seed} {name}".encode()).digest()[:8])


@lru_cache(maxsize=4)
def synthesizers(study: Study) -> Synthesizers:
    """The synthesizers for this study, fitted as they are asked for."""
    sample = read(study)
    if study.quick:
        return Synthesizers(sample.part(12), QUICK, 100, study.seed, study)
    return Synthesizers(sample, FULL, 1000, study.seed, study)


def configurations(study: Study) -> tuple[tuple[float, float], ...]:
    """(c, g) of Table 2 and Figure 7; the first and last in a quick run."""
    return CONFIGURATIONS[:: len(CONFIGURATIONS) - 1] if study.quick else CONFIGURATIONS


def _asked(run: Run) -> str:
    """What is asked of the chains before a figure is made."""
    return (
        f"R-hat at most {run.r_hat}, at least {run.effective:.0f} effective draws, or the run is "
        "refused"
    )


PUBLIC = ("age", "earner")
EDGES = (
    -100_000, 0, 1, *range(5_000, 60_001, 5_000), *range(70_000, 120_001, 10_000),
    *range(140_000, 200_001, 20_000), 300_000, 500_000, 2_000_000,
)  # fmt: skip
SCHEMA = Schema.from_dict(
    {
        **{name: {"levels": list(LEVELS[name])} for name in PUBLIC},
        "family_income": {"edges": list(EDGES)},
    }
)


def certified_copies(sample: Sample, delta: float, copies: int, seed: int) -> tuple[Floats, ...]:
    """Synthetic incomes at M = delta (rounded down), epsilon = 2 M for each copy: a theorem."""
    income = np.rint(sample.income).astype(np.int64)
    data = pa.table({**{name: sample.columns[name] for name in PUBLIC}, "family_income": income})
    table = tabulate(data, SCHEMA)
    pairs = SensitiveValues(publish(table, margin(*PUBLIC)), PUBLIC)
    bound = Fraction(int(delta * 1000), 1000)
    columns = (Column("family_income", given=PUBLIC),)
    synthesizer = Synthesizer(pairs, columns, bound, copies=copies, public=PUBLIC)
    release = synthesizer.release(table, SeededRandomness(seed))
    return tuple(
        np.asarray(release.to_arrow(at + 1)["family_income"], dtype=float) for at in range(copies)
    )


RESAMPLES = 500


def means(values: Floats, generator: np.random.Generator) -> Floats:
    """Means of resamples (with replacement, of the same size), sorted."""
    resampled = [
        values[generator.integers(len(values), size=len(values))].mean() for _ in range(RESAMPLES)
    ]
    return np.sort(resampled)


def quantiles(values: Floats, share: float, generator: np.random.Generator) -> Floats:
    """The `share` quantile (inverse of the distribution function) of resamples, sorted.

    The k-th smallest of n resampled positions is that of n uniforms, Beta(k, n - k + 1), so it is
    drawn without resampling the rest.
    """
    n = len(values)
    k = math.ceil(share * n)
    at = np.floor(n * generator.beta(k, n - k + 1, RESAMPLES)).astype(int)
    return np.sort(np.sort(values)[np.minimum(at, n - 1)])


def barycenter(distributions: Sequence[Floats]) -> Floats:
    """Wasserstein barycenter of distributions on a line: the average of their quantiles.

    >>> barycenter([np.array([0.0, 1.0]), np.array([4.0, 2.0])]).tolist()
    [1.0, 2.5]
    """
    return np.asarray(np.mean([np.sort(values) for values in distributions], axis=0))


CERTIFIED = "Certified (a theorem)"
SHARES = {"2.5 %": 0.025, "25 %": 0.25, "50 %": 0.5, "75 %": 0.75, "97.5 %": 0.975}
FIGURE4 = {
    "Unweighted": "78.7",
    "DPweighted": "10.1",
    "EMweighted": "10.2",
    "Countweighted": "11.17",
}
NAMED = ("Data", "Unweighted", "DPweighted", "EMweighted", "Countweighted", CERTIFIED)
SPREAD = (
    "the picture shows the density of the bounds over records, from the 0.1 to the 99.9 % quantile"
)
Statistic = Callable[[Floats, np.random.Generator], Floats]


def p90(values: Floats, generator: np.random.Generator) -> Floats:
    """Resampled 90th percentiles."""
    return quantiles(values, 0.9, generator)


def _five(values: Floats, digits: int | None) -> list[float]:
    """The quantiles of a row, rounded; to whole dollars without digits."""
    return [round(float(np.quantile(values, at)), digits) for at in SHARES.values()]


def density_curve(values: Floats) -> list[tuple[float, float]]:
    """A kernel density (Silverman's width) between the 0.1 and the 99.9 % quantile, thinned."""
    from scipy.stats import gaussian_kde

    low, high = np.quantile(values, (0.001, 0.999))
    if low == high:
        return [(float(low), 0.0), (float(low), 1.0)]
    at = np.linspace(low, high, 120)
    heights = gaussian_kde(values, bw_method="silverman")(at)
    return [(float(f"{x:.6g}"), float(f"{h:.4g}")) for x, h in zip(at, heights, strict=True)]


def _violins(named: Sequence[tuple[str, str, Floats]], y_title: str) -> dict[str, Any]:
    """Violins of samples: place on the axis, colour, values."""
    rows = [[place, hue, x, h] for place, hue, values in named for x, h in density_curve(values)]
    return {
        "kind": "violin",
        "x": "place",
        "y": "value",
        "low": "density",
        "by": "mechanism",
        "named": NAMED,
        "data": {"columns": ["place", "mechanism", "value", "density"], "rows": rows},
        "x_title": "",
        "y_title": y_title,
    }


def figure3(study: Study) -> dict[str, Any]:
    """Histogram of family income."""
    income = read(study).income / 1000
    counts, edges = np.histogram(income, bins=np.arange(-25, 1201, 12.5))
    density = counts / counts.sum() / 12.5
    rows = [
        [float(left + 6.25), float(f"{d:.6g}")] for left, d in zip(edges, density, strict=False)
    ]
    return {
        "columns": ["income, thousands of dollars", "density"],
        "rows": rows,
        "notes": list(DIFFERS[:1]),
        "chart": {"kind": "line", "x": "income, thousands of dollars", "y": "density", "by": None},
    }


def figure4(study: Study) -> dict[str, Any]:
    """Lipschitz bounds by record for the four synthesizers."""
    fitted = synthesizers(study)
    rows, notes = [], []
    for name, fit in fitted.four():
        rows.append([name, *_five(fit.bounds, 3), round(fit.estimate.delta, 3)])
        notes.append(f"{name}: Delta = {fit.estimate.delta:.2f} (paper {FIGURE4[name]})")
    violins = [(name, name, np.asarray(fit.bounds)) for name, fit in fitted.four()]
    return {
        "columns": ["mechanism", *SHARES, "maximum (Delta)"],
        "rows": rows,
        "notes": [LABEL, *notes, *_common(fitted), SPREAD],
        "chart": _violins(violins, "Lipschitz bound of a record") | {"y_symlog": True},
    }


def figure5(study: Study) -> dict[str, Any]:
    """Mean income, data and synthesizers."""
    return _utility(study, means, "mean income")


def figure6(study: Study) -> dict[str, Any]:
    """90th percentile of income, data and synthesizers."""
    return _utility(study, p90, "90th percentile of income")


def _utility(study: Study, statistic: Statistic, what: str) -> dict[str, Any]:
    fitted = synthesizers(study)
    four = fitted.four()
    delta = dict(four)["DPweighted"].estimate.delta
    named: list[tuple[str, Sequence[Floats]]] = [("Data", (fitted.sample.income,))]
    named += [(name, fit.copies) for name, fit in four]
    named.append((CERTIFIED, certified_copies(fitted.sample, delta, COPIES, study.seed)))
    distributions = _distributions(named, statistic, study.seed)
    return {
        "columns": ["mechanism", *SHARES],
        "rows": [[name, *_five(values, None)] for name, values in distributions],
        "notes": [
            f"{what}, in dollars",
            *_resampled(),
            f"DPweighted and EMweighted: epsilon = 2 Delta = {2 * delta:.2f} per copy, {LABEL}; "
            f"certified: the same epsilon, proved for every dataset",
            *_common(fitted),
        ],
        "chart": _violins(
            [(name, name, values) for name, values in distributions], f"{what}, dollars"
        ),
    }


def figure7(study: Study) -> dict[str, Any]:
    """90th percentile for every (c, g): DP, EM at the same Delta, certified at the same epsilon."""
    fitted = synthesizers(study)
    alone = [("Data", (fitted.sample.income,)), ("Unweighted", fitted.unweighted().copies)]
    violins = [(n, n, values) for n, values in _distributions(alone, p90, study.seed)]
    for c, g in configurations(study):
        dp, em = fitted.weighted(c, g), fitted.scalar(c, g)
        sure = certified_copies(fitted.sample, dp.estimate.delta, COPIES, study.seed)
        named = [("DPweighted", dp.copies), ("EMweighted", em.copies), (CERTIFIED, sure)]
        distributions = _distributions(named, p90, study.seed)
        violins += [(f"({c}, {g})", name, values) for name, values in distributions]
    return {
        "columns": ["(c, g)", "mechanism", *SHARES],
        "rows": [[place, name, *_five(values, None)] for place, name, values in violins],
        "notes": [*_resampled(), f"DPweighted and EMweighted: {LABEL}", *_common(fitted)],
        "chart": _violins(violins, "90th percentile of income, dollars"),
    }


def table2(study: Study) -> dict[str, Any]:
    """Delta for every (c, g), with what 20 copies cost and the errors of the 90th percentile."""
    fitted = synthesizers(study)
    truth = _percentile(fitted.sample.income)
    rows = []
    for c, g in configurations(study):
        dp, em = fitted.weighted(c, g), fitted.scalar(c, g)
        delta = dp.estimate.delta
        sure = certified_copies(fitted.sample, delta, COPIES, study.seed)
        errors = [_error(copies, truth) for copies in (dp.copies, em.copies, sure)]
        rows.append(
            [
                f"({c}, {g})",
                PRINTED[c, g],
                round(delta, 2),
                round(em.estimate.delta, 2),
                round(2 * delta, 2),
                round(2 * delta * COPIES, 1),
                round(dp.estimate.downweighted_share, 3),
                *errors,
            ]
        )
    plain = fitted.unweighted()
    return {
        "columns": [
            "(c, g)",
            "Delta, paper",
            "Delta, DP",
            "Delta, EM",
            "epsilon per copy",
            "epsilon of 20 copies",
            "share downweighted",
            "error of P90, DP",
            "error of P90, EM",
            "error of P90, certified",
        ],
        "rows": rows,
        "notes": [
            f"Delta and epsilon of DP and EM: {LABEL}; certified: epsilon per copy by a theorem",
            "EM aims at the Delta of DP by one weight for all; its own is what its draws give",
            "a maximum over draws is noisy, so Delta need not fall from row to row",
            f"Unweighted: Delta = {plain.estimate.delta:.2f} (paper 78.7), error of P90 "
            f"{_error(plain.copies, truth)}",
            "errors: root mean square over copies of the difference to the data's percentile, in "
            "dollars; computed from the confidential data, for the curator alone",
            *_above(fitted),
            *_common(fitted),
        ],
    }


def _percentile(values: Floats) -> float:
    return float(np.quantile(values, 0.9, method="inverted_cdf"))


def _error(copies: Sequence[Floats], truth: float) -> int:
    return round(float(np.sqrt(np.mean([(_percentile(copy) - truth) ** 2 for copy in copies]))))


def _distributions(
    named: Sequence[tuple[str, Sequence[Floats]]], statistic: Statistic, seed: int
) -> list[tuple[str, Floats]]:
    """Each mechanism with the distribution of its statistic."""
    generator = generator_of(SeededRandomness(seed))
    return [
        (name, barycenter([statistic(copy, generator) for copy in copies]))
        for name, copies in named
    ]


def _resampled() -> list[str]:
    return [
        f"distributions by {RESAMPLES} resamples of each database; for synthesizers the barycenter "
        f"over {COPIES} copies, which averages quantiles",
    ]


def _above(made: Synthesizers) -> list[str]:
    """Lemma 2 needs densities of at most 1."""
    above = [fit.name for fit in made._done.values() if fit.estimate.above_one]
    if not above:
        return []
    return [
        "densities above 1 occur, where Lemma 2 would need 4 Delta (appendix A.3): "
        + "; ".join(above)
    ]


def _common(made: Synthesizers) -> list[str]:
    return [*made.notes(), *DIFFERS]
