"""Posterior: draws of the parameters as plain arrays, what they are worth, and a few readings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from congenial._notebook import Picture, Row, grid
from congenial.data.arguments import NUMBER, expect, numbers
from congenial.data.arrays import Floats
from congenial.errors import InferenceError, some_of
from congenial.inference.models.model import Dims
from congenial.mechanisms.released import LEVEL
from congenial.sampling.convergence import effective, r_hat, standard_error

LEAST_EFFECTIVE = 400  # below it, quantiles are rough: a warning
WORST_R_HAT = 1.01
REFUSED_EFFECTIVE = 100  # below it, nothing should be read off
REFUSED_R_HAT = 1.1
COEFFICIENT = "coefficient"  # of a regression: 0 is no effect


@dataclass(frozen=True)
class Posterior:
    """Draws from the law of the parameters given a release (and the public figures).

    draws: by parameter, (chains, draws, *axes). dims: names and labels of the axes. independent:
    whether the draws are independent, so that nothing needs to converge. acceptance: share of
    proposals accepted; acceptance_floor: what it cannot fall below, where that is proved.
    """

    draws: Mapping[str, Floats]
    dims: Mapping[str, Dims]
    method: str
    independent: bool = False
    acceptance: float | None = None
    acceptance_floor: float | None = None
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Floats:
        """Draws of one parameter in a row: (chains * draws, *axes)."""
        expect(name, str, "the parameter", "Give its name.", InferenceError)
        if name not in self.draws:
            raise InferenceError(
                f"the model has no parameter '{name}'.",
                remedy=f"Parameters: {some_of(self.draws)}.",
            )
        draws = self.draws[name]
        return draws.reshape(-1, *draws.shape[2:])

    # ---- readings ----------------------------------------------------------------------------

    def mean(self, name: str) -> Floats:
        """Posterior mean."""
        return np.asarray(self[name].mean(axis=0))

    def sd(self, name: str) -> Floats:
        """Posterior standard deviation."""
        return np.asarray(self[name].std(axis=0))

    def quantile(self, name: str, probabilities: Any) -> Floats:
        """Posterior quantiles, in a first dimension."""
        at = np.atleast_1d(numbers(probabilities, "what is asked", InferenceError))
        if at.ndim != 1 or not np.all((at >= 0) & (at <= 1)):
            raise InferenceError("a quantile needs probabilities.", remedy="Give 0 to 1.")
        return np.asarray(np.quantile(self[name], at, axis=0))

    def interval(self, name: str, level: float = LEVEL) -> tuple[Floats, Floats]:
        """Equal-tailed interval."""
        expect(level, NUMBER, "the level", "Use 0.95.", InferenceError)
        if not 0 < level < 1:
            raise InferenceError(f"level {level} is not between 0 and 1.", remedy="Use 0.95.")
        low, high = self.quantile(name, [(1 - level) / 2, (1 + level) / 2])
        return low, high

    # ---- what the draws are worth --------------------------------------------------------------

    def effective(self, name: str) -> Floats:
        """Effective sample size of each component."""
        draws = self.draws[name]
        shape = draws.shape[2:]
        if self.independent:
            return np.full(shape, float(draws.shape[0] * draws.shape[1]))
        return effective(_rows(draws)).reshape(shape)

    def r_hat(self, name: str) -> Floats:
        """R-hat of each component; 1 for independent draws."""
        draws = self.draws[name]
        shape = draws.shape[2:]
        if self.independent:
            return np.ones(shape)
        return r_hat(_rows(draws)).reshape(shape)

    def standard_error(self, name: str) -> Floats:
        """Monte Carlo standard error of the posterior mean."""
        if self.independent:
            return np.asarray(self.sd(name) / np.sqrt(self.effective(name)))
        draws = self.draws[name]
        return standard_error(_rows(draws)).reshape(draws.shape[2:])

    @property
    def least_effective(self) -> float:
        """The smallest effective sample size of any component."""
        return min(float(np.min(self.effective(name))) for name in self.draws)

    @property
    def worst_r_hat(self) -> float:
        """The largest R-hat of any component."""
        return max(float(np.max(self.r_hat(name))) for name in self.draws)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a reader should know before using the draws; empty when all is well."""
        texts = []
        if self.worst_r_hat > WORST_R_HAT:
            texts.append(
                f"R-hat reaches {self.worst_r_hat:.3f} (at most {WORST_R_HAT} is recommended)"
            )
        if self.least_effective < LEAST_EFFECTIVE:
            texts.append(
                f"a parameter has only {self.least_effective:.0f} effective draws; at least "
                f"{LEAST_EFFECTIVE} are recommended"
            )
        return tuple(texts)

    # ---- leaving -----------------------------------------------------------------------------

    def summary(self, level: float = LEVEL) -> Any:
        """One row per component as a pandas frame (extra `frames`): labels, mean, sd, interval,
        R-hat, effective size, error. `to_dicts` has the same without pandas.
        """
        import pandas as pd

        return pd.DataFrame(self.to_dicts(level))

    def to_dicts(self, level: float = LEVEL) -> list[dict[str, Any]]:
        """The rows of `summary` as plain values, for JSON."""
        rows = []
        for name in self.draws:
            low, high = self.interval(name, level)
            columns = {
                "mean": self.mean(name),
                "sd": self.sd(name),
                "low": low,
                "high": high,
                "r_hat": self.r_hat(name),
                "effective": self.effective(name),
                "standard_error": self.standard_error(name),
            }
            labels = [levels for _, levels in self.dims[name]]
            for i, cell in enumerate(product(*labels)):
                place = dict(zip((dim for dim, _ in self.dims[name]), cell, strict=True))
                numbers = {key: float(np.reshape(v, -1)[i]) for key, v in columns.items()}
                rows.append({"parameter": name, **place, **numbers})
        return rows

    def to_arviz(self) -> Any:
        """The draws as ArviZ inference data."""
        try:
            import arviz
        except ImportError:
            raise InferenceError(
                "ArviZ is not installed.", remedy="Install it: pip install arviz."
            ) from None
        draws = dict(self.draws)
        dims = {name: [dim for dim, _ in axes] for name, axes in self.dims.items()}
        coords = {dim: list(levels) for axes in self.dims.values() for dim, levels in axes}
        if hasattr(arviz, "InferenceData"):
            return arviz.from_dict(posterior=draws, dims=dims, coords=coords)
        return arviz.from_dict({"posterior": draws}, dims=dims, coords=coords)

    def plot(self, name: str | None = None, level: float = LEVEL) -> Picture:
        """Means and intervals as a picture that notebooks show; of one parameter if it is named."""
        rows = [row for row in self.to_dicts(level) if name in (None, row["parameter"])]
        return Picture.of_intervals("means and intervals of the posterior", _pictured(rows))

    def chart(
        self, name: str, level: float = LEVEL, beside: Posterior | None = None
    ) -> dict[str, Any]:
        """Means and intervals of a parameter as data for a picture (columns, rows, chart).

        `beside`: another posterior of the same parameter, such as the naive one, to compare with.
        """
        axes = ", ".join(dim for dim, _ in self.dims[name])
        posteriors = {"noise accounted for": self}
        if beside is not None:
            posteriors["noise ignored"] = beside
        table = [
            [label, row["mean"], row["low"], row["high"], kind]
            for kind, posterior in posteriors.items()
            for label, row in posterior._labelled(name, level)
        ]
        chart: dict[str, Any] = {
            "kind": "points", "x": "component", "y": "mean", "low": "low", "high": "high",
            "x_title": axes or None, "y_title": name,
        }  # fmt: skip
        if name == COEFFICIENT:
            chart["rule"] = {"no effect": 0.0}
        if beside is not None:
            chart |= {"by": "analysis", "dodge": True}
        columns = ["component", "mean", "low", "high", "analysis"]
        return {"columns": columns, "rows": table, "notes": list(self.notes), "chart": chart}

    def _labelled(self, name: str, level: float) -> list[tuple[str, dict[str, Any]]]:
        """The rows of `summary` about one parameter, each with its levels in one label."""
        dims = [dim for dim, _ in self.dims[name]]
        rows = [row for row in self.to_dicts(level) if row["parameter"] == name]
        return [(", ".join(str(row[dim]) for dim in dims) or name, row) for row in rows]

    def trace(self, name: str, component: int = 0) -> dict[str, Any]:
        """The chains of one component, draw by draw, as data for a picture."""
        chains = _rows(self.draws[name])[:, :, component]
        rows = [
            [i, float(value), str(chain + 1)]
            for chain, values in enumerate(chains)
            for i, value in enumerate(values)
        ]
        chart = {"kind": "line", "x": "draw", "y": name, "by": "chain"}
        return {"columns": ["draw", name, "chain"], "rows": rows, "notes": [], "chart": chart}

    def __repr__(self) -> str:
        total = next(iter(self.draws.values())).shape
        text = f"Posterior({', '.join(self.draws)}; {total[0]} x {total[1]} draws, {self.method})"
        return text + "".join(f"\n  warning: {warning}" for warning in self.warnings)

    def _repr_html_(self) -> str:
        rows = self.to_dicts()[:40]
        head = list(rows[0])
        table = grid(repr(self), head, ([_written(row.get(k, "")) for k in head] for row in rows))
        return table + self.plot().svg


def _pictured(rows: Sequence[Mapping[str, Any]]) -> list[Row]:
    """Label, mean and ends of the rows of a summary; the label is what is no number."""
    return [
        (
            " ".join(str(value) for value in row.values() if isinstance(value, str)),
            float(row["mean"]),
            float(row["low"]),
            float(row["high"]),
        )
        for row in rows
    ]


def _written(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _rows(draws: Floats) -> Floats:
    return draws.reshape(*draws.shape[:2], -1)


def refuse_unconverged(posterior: Posterior) -> Posterior:
    """The posterior, or InferenceError with the diagnostics when nothing should be read off it."""
    worst, least = posterior.worst_r_hat, posterior.least_effective
    if worst > REFUSED_R_HAT or least < REFUSED_EFFECTIVE:
        raise InferenceError(
            f"the chains did not converge: R-hat reaches {worst:.2f} (at most {REFUSED_R_HAT}) "
            f"and the fewest effective draws are {least:.0f} (at least {REFUSED_EFFECTIVE}).",
            remedy="Ask for more draws, a simpler model, or a more informative prior; "
            "Chain(check=False) returns the chains to look at.",
        )
    return posterior
