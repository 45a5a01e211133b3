"""The synthesizers of section 5 on the expenditure quarter: weights, weighted posteriors, copies.

Every quantity here is a local estimate, not a guarantee. Fits are kept for the process, because
Figures 4 to 7 and Table 2 share them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256

import numpy as np

from congenial.papers.item import Study
from congenial.papers.pseudo_posterior.expenditure import UNIT, Sample, read
from congenial.sampling.randomness import SeededRandomness
from congenial.synthesis.local import LocalEstimate, isolation, min_max, risks, scalar
from congenial.synthesis.mixture import MixturePrior, MixtureRegression, Run
from congenial.synthesis.mixture.gibbs_chains import Diagnostics, diagnose
from congenial.synthesis.record_model import Floats, generator_of

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
        found = {fitted.name: fitted.chains.worst for fitted in self._done.values()}
        name, worst = min(found.items(), key=lambda one: float(one[1]["effective"]))
        highest = max(chain["r_hat"] for chain in found.values())
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
