"""Models by name and their options as text: what the command line hands over."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from congenial.data.arguments import expect
from congenial.data.arrays import Floats
from congenial.data.attribute import Axis
from congenial.data.schema import near
from congenial.data.text_files import read_rows
from congenial.errors import InferenceError
from congenial.inference.inference import DEFAULT_CHAIN, METHODS, Chain, infer
from congenial.inference.models.counts import Binomial, NegativeBinomial, Poisson
from congenial.inference.models.model import Bindable
from congenial.inference.models.outcomes import Multinomial
from congenial.inference.models.priors import Beta, Dirichlet, Gamma, GaussianPrior, HalfNormal
from congenial.inference.models.regressions import Linear, Logistic, Normal
from congenial.inference.observation import finest_cells
from congenial.inference.posterior import Posterior
from congenial.mechanisms.tables_release import TablesRelease
from congenial.mechanisms.wasserstein.given_public_release import ValuesRelease

MODELS: dict[str, Any] = {
    "poisson": Poisson,
    "negative_binomial": NegativeBinomial,
    "binomial": Binomial,
    "multinomial": Multinomial,
    "normal": Normal,
    "linear": Linear,
    "logistic": Logistic,
}
"""Models by the names that `congenial infer --model` takes."""

PRIORS: dict[str, Any] = {
    "gamma": Gamma,
    "beta": Beta,
    "dirichlet": Dirichlet,
    "gaussian": GaussianPrior,
    "half_normal": HalfNormal,
}

RUN = ("method", "draws", "seed", "public", "counts")


def infer_from_options(
    release: ValuesRelease | TablesRelease,
    model: str,
    options: Mapping[str, str],
    chain: Chain = DEFAULT_CHAIN,
) -> Posterior:
    """`infer` with everything as text, for example by=county, prior=gamma(1, 0.01), draws=4000.

    Numbers per cell (exposure, trials, people) are a number, the label of a published figure, or a
    CSV file with one column per axis and a column `value`. covariates: axes separated by commas,
    each perhaps followed by =FILE.csv with its numbers.
    """
    releases = (ValuesRelease, TablesRelease)
    expect(release, releases, "the release", "Give a table, or counts.", InferenceError)
    expect(model, str, "the model", "Give its name.", InferenceError)
    expect(options, Mapping, "the options", "Give texts by name.", InferenceError)
    for text in (*options, *options.values()):
        expect(text, str, "an option", "Give text.", InferenceError)
    run = {key: options[key] for key in RUN if key in options}
    rest = {key: value for key, value in options.items() if key not in RUN}
    method = run.get("method", "auto")
    if method not in METHODS:
        raise _unknown("method", method, METHODS)
    return infer(
        release,
        model_from_options(release, model, rest),
        method=method,
        draws=_whole("draws", run.get("draws", "4000")),
        seed=_whole("seed", run["seed"]) if "seed" in run else None,
        public=_truth("public", run.get("public", "true")),
        counts=_truth("counts", run.get("counts", "false")),
        chain=chain,
    )


def model_from_options(
    release: ValuesRelease | TablesRelease, model: str, options: Mapping[str, str]
) -> Bindable:
    """A built-in model from text."""
    if model not in MODELS:
        raise _unknown("model", model, MODELS)
    kind = MODELS[model]
    field_names = [field.name for field in fields(kind)]
    for key in options:
        if key not in field_names:
            raise _unknown(f"option of {model}", key, [*field_names, *RUN])
    names = _names(options["by"]) if "by" in options else _cells(release)
    axes = release.schema.axes(names)
    outcome = options.get("outcome")
    others = tuple(axis for axis in axes if axis.name != outcome)
    read: dict[str, Callable[[str], Any]] = {
        "by": _names,
        "prior": _prior,
        "size_prior": _prior,
        "sd_prior": _prior,
        "exposure": lambda text: _per_cell("exposure", text, axes),
        "trials": lambda text: _per_cell("trials", text, axes),
        "people": lambda text: _per_cell("people", text, others),
        "covariates": lambda text: _covariates(text, others),
    }
    values = {key: read.get(key, str)(value) for key, value in options.items()}
    try:
        return kind(**values)  # type: ignore[no-any-return]
    except TypeError:
        missing = [f.name for f in fields(kind) if f.name not in values][:1]
        raise InferenceError(
            f"{model} needs {missing[0] if missing else 'other options'}.",
            remedy=f"Options: {', '.join(field_names)}.",
        ) from None


def _cells(release: ValuesRelease | TablesRelease) -> tuple[str, ...]:
    """The axes that a model is about where nothing else is said."""
    if isinstance(release, TablesRelease):
        return finest_cells(release, None)
    return release.table


def _unknown(what: str, name: str, known: Any) -> InferenceError:
    return InferenceError(f"{what} '{name}' is not known.", remedy=near(name, known))


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _whole(key: str, text: str) -> int:
    if not re.fullmatch(r"\d{1,18}", text.strip()):
        raise InferenceError(f"{key} = '{text}' is not a whole number.")
    return int(text)


def _truth(key: str, text: str) -> bool:
    if text.strip().lower() not in ("true", "false"):
        raise InferenceError(f"{key} = '{text}' is not true or false.")
    return text.strip().lower() == "true"


def _prior(text: str) -> Any:
    """gamma(1, 0.01) and the like."""
    match = re.fullmatch(r"\s*(\w+)\s*\(([^()]*)\)\s*", text)
    if match is None or match[1].lower() not in PRIORS:
        raise InferenceError(
            f"prior '{text}' is not known.",
            remedy="Write for example gamma(1, 0.01), beta(1, 1), gaussian(0, 10), "
            "half_normal(5) or dirichlet(1).",
        )
    kind = PRIORS[match[1].lower()]
    try:
        numbers = [float(part) for part in match[2].split(",") if part.strip()]
        return kind(*numbers)
    except (TypeError, ValueError):
        raise InferenceError(
            f"prior '{text}' has the wrong numbers.",
            remedy=f"Write {match[1].lower()}({', '.join(f.name for f in fields(kind))}).",
        ) from None


def _per_cell(key: str, text: str, axes: tuple[Axis, ...]) -> Any:
    if text.endswith(".csv"):
        return _column(key, text, axes)
    try:
        return float(text)
    except ValueError:
        return text  # the label of a published figure


def _covariates(text: str, axes: tuple[Axis, ...]) -> Any:
    """Axes, or name=FILE.csv."""
    parts = [part.partition("=") for part in _names(text)]
    return {
        name.strip(): _column(name.strip(), file.strip(), axes) if file else None
        for name, _, file in parts
    }


def _column(key: str, file: str, axes: tuple[Axis, ...]) -> Floats:
    """The column `value` of a CSV file, put in the order of the cells."""
    try:
        with Path(file).open(newline="", encoding="utf-8-sig") as source:
            rows = read_rows(source)
    except (OSError, UnicodeDecodeError, csv.Error):
        raise InferenceError(f"{key}: '{file}' cannot be read as CSV.") from None
    names = [axis.name for axis in axes]
    used = [name for name in names if rows and name in rows[0]]
    if not rows or "value" not in rows[0] or not used:
        raise InferenceError(
            f"{key}: '{file}' has no column 'value', or lacks a column of the table.",
            remedy=f"Give a header with value and some of {', '.join(names)}.",
        )
    shape = tuple(axis.size if axis.name in used else 1 for axis in axes)
    numbers = np.full(shape, np.nan)
    for line, row in enumerate(rows, start=2):
        try:
            place = tuple(
                axis.levels.index(row[axis.name]) if axis.name in used else 0 for axis in axes
            )
            numbers[place] = float(row["value"])
        except (ValueError, TypeError):
            raise InferenceError(
                f"{key}: row {line} of '{file}' has an unknown category or no number."
            ) from None
    if np.any(np.isnan(numbers)):
        raise InferenceError(f"{key}: '{file}' does not have every category of {', '.join(used)}.")
    return np.array(np.broadcast_to(numbers, tuple(axis.size for axis in axes)))
