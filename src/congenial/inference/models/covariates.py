"""Numbers that belong to cells: exposures, trials, covariates. All of them public."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from congenial.data.arguments import numbers as as_numbers
from congenial.data.arguments import texts
from congenial.data.attribute import Axis
from congenial.data.table import cell_index
from congenial.errors import InferenceError, some_of
from congenial.inference.cell_noise import Floats
from congenial.inference.observation import Observation

Covariates = Sequence[str] | Mapping[str, Any]


def per_cell(value: Any, observation: Observation, what: str) -> Floats:
    """One number per cell: a number, an array over the table or one axis, or a published figure.

    A text names a published figure by its label, for example "Population by county"; its axes must
    be among the table's.
    """
    if isinstance(value, str):
        return _published(value, observation, what)
    given = as_numbers(value, what, InferenceError)
    shapes = {(): 1, (observation.cells,): 1, observation.shape: 1}
    if given.shape not in shapes:
        raise InferenceError(
            f"{what} has shape {given.shape}, the table has {observation.shape}.",
            remedy="Give one number per cell, or one for all.",
        )
    flat = np.broadcast_to(given.reshape(-1) if given.shape else given, (observation.cells,))
    if not np.all(np.isfinite(flat)):
        raise InferenceError(f"{what} has a value that is not a finite number.")
    return flat.astype(float)


def _published(label: str, observation: Observation, what: str) -> Floats:
    published = observation.published
    known = {} if published is None else {s.label: i for i, s in enumerate(published.equalities)}
    if published is None or label not in known or published.values is None:
        raise InferenceError(
            f"{what}: no published figure is called '{label}'.",
            remedy=f"Published: {some_of(known) or 'nothing'}. Or give numbers.",
        )
    statement = published.equalities[known[label]]
    figures = published.values[published.statements.index(statement)]
    assert figures is not None
    index = cell_index(published.schema, observation.names, statement.by)
    cell = np.broadcast_to(index, observation.shape).reshape(-1)
    return np.asarray(figures.reshape(-1)[cell], dtype=float)


def design(
    covariates: Covariates, axes: Sequence[Axis], shape: tuple[int, ...]
) -> tuple[tuple[str, ...], Floats]:
    """Names of the coefficients and the matrix (cells, coefficients), intercept first.

    An axis name gives an indicator for each of its levels but the first. A mapping gives numbers:
    one per cell, or one per level of the axis that has this many levels and this name.
    """
    cells = int(np.prod(shape, dtype=np.int64))
    names, columns = ["intercept"], [np.ones(cells)]
    given = covariates
    if not isinstance(given, Mapping):
        given = dict.fromkeys(texts(given, "covariates", InferenceError))
    by_name = {axis.name: i for i, axis in enumerate(axes)}
    for name, numbers in given.items():
        if numbers is None:
            if name not in by_name:
                raise InferenceError(
                    f"covariate '{name}' is not an axis of the table.",
                    remedy=f"Axes: {', '.join(by_name)}. Or give its numbers.",
                )
            i = by_name[name]
            level = np.broadcast_to(np.indices(shape, sparse=True)[i], shape).reshape(-1)
            for code, label in enumerate(axes[i].levels[1:], start=1):
                names.append(f"{name} = {label}")
                columns.append((level == code).astype(float))
        else:
            names.append(name)
            columns.append(_numbers(name, numbers, axes, shape))
    matrix = np.stack(columns, axis=1)
    if np.linalg.matrix_rank(matrix) < matrix.shape[1]:
        raise InferenceError(
            f"the covariates {', '.join(names[1:])} are linearly dependent on this table.",
            remedy="Leave out one of them.",
        )
    return tuple(names), matrix


def _numbers(name: str, numbers: Any, axes: Sequence[Axis], shape: tuple[int, ...]) -> Floats:
    given = as_numbers(numbers, f"covariate '{name}'", InferenceError)
    if given.size == np.prod(shape, dtype=np.int64):
        return np.asarray(given.reshape(-1))
    for i, axis in enumerate(axes):
        if axis.name == name and given.shape == (axis.size,):
            spread = [1] * len(shape)
            spread[i] = axis.size
            return np.array(np.broadcast_to(given.reshape(spread), shape).reshape(-1))
    raise InferenceError(
        f"covariate '{name}' has {given.size} numbers, the table has {shape} cells.",
        remedy="Give one per cell, or name it after an attribute and give one per category.",
    )
