"""Variances of conditioned integer noise against enumeration of the lattice."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sinh

import numpy as np
import pytest
from scipy.stats import norm

from congenial import SeededRandomness, SemiAdjacent, Table
from congenial.figures import Figures, count, linear, margin, publish, total
from congenial.figures.support import support
from congenial.sampling.choice import TablePart, choose
from congenial.sampling.discrete import cell_law
from congenial.tables import Covariance, Weighted, Workload, design, difference_types, estimate
from congenial.tables.information import Information
from congenial.tables.intervals import half_width
from congenial.tables.noise_variance import mixing_mean, noise_variance
from tests.tables.settings import SCHEMA, confidential
from tests.worlds import schema_of

ALPHA = 1e-6
REACH = {1: 300, 2: 60, 3: 20}  # of coefficients, by the dimension of the lattice
EPS = Fraction(1, 2)


def people(schema, seed=1):
    shape = [one.size for one in schema.attributes]
    counts = np.random.default_rng(seed).integers(3, 9, shape)
    return Table(schema, schema.names, counts.astype(np.int64))


def kernel_basis(matrix):
    """A basis of the integer vectors that a small matrix of 0, 1, 2 sends to zero."""
    size = matrix.shape[1]
    short = [
        v
        for v in product((-2, -1, 0, 1, 2), repeat=size)
        if any(v) and not np.any(matrix @ np.array(v))
    ]
    short.sort(key=lambda v: np.abs(v).sum())
    basis = []
    for v in short:
        if np.linalg.matrix_rank(np.array([*basis, v])) > len(basis):
            basis.append(v)
    return np.array(basis)


def enumerated(matrix, weight):
    """Covariance of noise with P(x) ~ prod weight(x_i) on integer x with matrix x = 0."""
    basis = kernel_basis(matrix)
    reach = REACH[len(basis)]
    x = np.array(list(product(range(-reach, reach + 1), repeat=len(basis)))) @ basis
    p = np.exp(weight(x).sum(axis=1))
    p /= p.sum()
    return (x * p[:, None]).T @ x, basis


def per_direction(covariance, basis):
    """Variances along the directions that figures leave open."""
    inside, _ = np.linalg.qr(basis.T.astype(float))
    return np.linalg.eigvalsh(inside.T @ covariance @ inside)


def rows(schema, statements):
    """The figures as rows over the cells, one table of one person at a time."""
    shape = [one.size for one in schema.attributes]
    unit = np.eye(int(np.prod(shape)), dtype=np.int64)
    tables = [Table(schema, schema.names, one.reshape(shape)) for one in unit]
    found = [
        np.array([Figures(schema, (s,))._figures(t)[0].reshape(-1) for t in tables]).T
        for s in statements
    ]
    return np.vstack(found)


WEIGHTED = linear({"y = 'y0'": 1, "y = 'y1'": 2, "y = 'y2'": 1})
FIGURES = {
    "one sum": ({"x": 1, "y": 3}, (total(),), "exact"),
    "two equal sums": ({"x": 2, "y": 2}, (margin("x"),), "exact"),
    "two unequal sums": ({"x": 1, "y": 5}, (total(), count("y = 'y0' or y = 'y1'")), "bound"),
    "a sum and loose cells": ({"x": 1, "y": 3}, (count("y = 'y0' or y = 'y1'"),), "bound"),
    "margins": ({"x": 2, "y": 3}, (margin("x"), margin("y")), "simulated"),
    "weighted": ({"x": 1, "y": 3}, (WEIGHTED,), "bound"),
}


@pytest.mark.parametrize("eps", [Fraction(1, 3), Fraction(1), Fraction(5, 2)])
@pytest.mark.parametrize("name", FIGURES)
def test_double_geometric_noise_given_figures(name, eps):
    levels, statements, basis = FIGURES[name]
    schema = schema_of(**levels)
    known = publish(people(schema), *statements)
    stated = noise_variance("double_geometric", eps, support(known, schema.names))
    covariance, lattice = enumerated(rows(schema, statements), lambda x: -float(eps) * np.abs(x))
    found = per_direction(covariance, lattice)
    assert stated.basis == basis
    assert found.max() <= stated.value * (1.04 if basis == "simulated" else 1 + 1e-6)
    if basis == "simulated":
        assert found == pytest.approx([stated.value] * len(found), rel=0.04)
        assert stated.value < 0.8 * mixing_mean(float(eps))  # the bound would be too wide
    if basis == "exact":
        assert found == pytest.approx([stated.value] * len(found), rel=1e-5)


@pytest.mark.parametrize("sigma2", [Fraction(1, 3), Fraction(4)])
@pytest.mark.parametrize("name", FIGURES)
def test_discrete_gaussian_noise_given_figures(name, sigma2):
    levels, statements, _ = FIGURES[name]
    schema = schema_of(**levels)
    known = publish(people(schema), *statements)
    stated = noise_variance("discrete_gaussian", sigma2, support(known, schema.names))
    covariance, lattice = enumerated(rows(schema, statements), lambda x: -x * x / 2 / float(sigma2))
    assert stated.basis == "bound"
    assert per_direction(covariance, lattice).max() <= stated.value * (1 + 1e-9)


def test_planted_the_smaller_group_or_half_the_mixture_would_be_exceeded():
    for name, factor in (("two unequal sums", 0.85), ("a sum and loose cells", 0.9)):
        levels, statements, _ = FIGURES[name]
        schema = schema_of(**levels)
        known = publish(people(schema), *statements)
        stated = noise_variance("double_geometric", EPS, support(known, schema.names)).value
        covariance, lattice = enumerated(rows(schema, statements), lambda x: -0.5 * np.abs(x))
        assert per_direction(covariance, lattice).max() > factor * stated


@pytest.mark.parametrize("eps", [0.01, 0.3, 1.0, 4.0, 800.0])
def test_the_mixing_mean_is_between_the_variance_and_its_limit(eps):
    variance = 1 / (2 * sinh(eps / 2) ** 2) if eps < 700 else 0
    assert variance < mixing_mean(eps) < 2 / eps**2


# ---- from a promise to intervals -------------------------------------------------------------

TABLES = [["district", "race"], ["county", "race"], ["race"]]


def simulated(figure, releases=900):
    """A design for epsilon = 2, and errors of its estimates with exact noise."""
    known = publish(confidential(5), figure)
    work = Workload.of(SCHEMA, TABLES)
    types = difference_types(SemiAdjacent(known), work)
    model, aim = Information.of(work, known), Weighted((1, 3, 9), absolute=True)
    designed = design(work, types, model, Fraction(2), aim, "geometric")
    measured = designed.measurements(known)
    assert len(measured.measured) > 1
    covariance = Covariance(measured, designed.family)
    truth = [confidential(5).marginal(names).counts for names in TABLES]
    randomness, noise = SeededRandomness(7), []
    for names, scale in zip(TABLES, designed.scales, strict=True):
        labels = support(known, tuple(names)).labels
        drawn = np.zeros((releases, labels.size), dtype=np.int64)
        if scale is not None:
            cell = cell_law(designed.family, scale)
            law = choose(TablePart(cell, labels.reshape(-1))).law
            drawn = law.draw_many(randomness, releases)
        noise.append(drawn.reshape(releases, *labels.shape))
    errors = [[] for _ in TABLES]
    for i in range(releases):
        values = [t + n[i] for t, n in zip(truth, noise, strict=True)]
        found = estimate(measured, values, covariance.inverse)
        for error, names, true in zip(errors, TABLES, truth, strict=True):
            error.append(found.table(names) - true)
    return covariance, [np.array(one) for one in errors]


def far_off(errors, deviations):
    """How many of their own standard errors mean squares are above the stated variances."""
    squares = errors**2
    error = squares.std(axis=0) / np.sqrt(len(errors)) + 1e-12
    return (squares.mean(axis=0) - deviations**2) / error


def test_pure_epsilon_from_the_promise_to_intervals():
    covariance, errors = simulated(total(by="district"))
    assert covariance.basis == "exact"
    limit = norm.isf(ALPHA / 2 / 30)
    for names, error in zip(TABLES, errors, strict=True):
        deviations = covariance.deviations(names)
        assert deviations.basis == "exact"
        assert np.all(np.abs(far_off(error, deviations.values)) < limit)
        half = half_width(0.9, "bound", "double_geometric") * deviations.values
        inside = np.abs(error) <= np.ceil(half)
        assert np.all(inside.mean(axis=0) >= 0.9)
        normal = np.abs(error) <= half_width(0.9) * deviations.values
        assert abs(normal.mean() - 0.9) < 0.05  # an approximation, and named so
    planted = covariance.deviations(TABLES[0]).values * 0.8
    assert np.any(far_off(errors[0], planted) > limit)


def test_pure_epsilon_with_groups_of_several_sizes_is_a_bound():
    covariance, errors = simulated(total(by="county"))
    assert covariance.basis == "bound"
    for names, error in zip(TABLES, errors, strict=True):
        found = far_off(error, covariance.deviations(names).values)
        assert np.all(found < norm.isf(ALPHA / 30))


def test_tables_that_the_figures_tell_have_no_noise():
    known = publish(confidential(5), margin("race"))
    work = Workload.of(SCHEMA, TABLES)
    types = difference_types(SemiAdjacent(known), work)
    designed = design(work, types, Information.of(work, known), Fraction(2), law="geometric")
    assert designed.scales[2] is None
    assert designed.measurements(known).precisions[2] == 0
