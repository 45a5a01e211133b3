"""A posterior that others have printed, from a bundle: dapper's example with Gaussian noise.

Eng, Awan, Ju, Rao and Gong, "dapper: Data Augmentation for Private Posterior Estimation in R"
(arXiv 2412.14503), example 2: 400 applicants by sex and admission, discrete Gaussian noise of scale
6.25 in each count, a flat prior for the four shares. The counts given to the sampler and the
printed summary are those of the article's own source (github.com/mango-empire/dadp_paper, commit
8bcdea6, `dppaper.Rmd` and `dppaper.tex`); the noisy table that the article shows beside it is of
another draw.
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

import congenial as cg
from congenial.inference import Chain, Dirichlet, Multinomial, infer, naive
from congenial.publication import bundle

ALPHA = 1e-6
SEED = 20260719
PEOPLE, VARIANCE = 400, Fraction(625, 16)
AXES = ("sex", "status")
SCHEMA = cg.Schema.from_dict(
    {"sex": {"levels": ["male", "female"]}, "status": {"levels": ["admitted", "rejected"]}}
)
SAMPLED = np.array([131, 119, 47, 122])  # in the source: what the printed chain was given
SHOWN = np.array([110, 131, 47, 110])  # the table beside it
MEAN = np.array([0.314, 0.286, 0.107, 0.293])
SD = np.array([0.0278, 0.0264, 0.0209, 0.0271])
FIFTH = np.array([0.269, 0.246, 0.0743, 0.249])
TOP = np.array([0.362, 0.332, 0.143, 0.337])
BULK = np.array([619, 663, 355, 508])  # effective draws of the printed chain
TAIL = np.array([874, 762, 510, 714])
HALF_A_DIGIT = 5e-4
Z = norm.isf(ALPHA / 2 / (4 * 4))  # four numbers of four shares


def read_bundle(folder: Path, counts) -> cg.TablesRelease:
    """A bundle with these values: the noise of a seed is drawn first, the truth made to fit it."""
    promise = cg.Guarantee.zero_concentrated(1 / VARIANCE, under=cg.ReplaceOne(SCHEMA))
    mechanism = cg.calibrate("auto", promise, AXES)
    blank = cg.Table(SCHEMA, AXES, np.zeros((2, 2), dtype=np.int64))
    noise = cg.release_table(mechanism, blank, cg.SeededRandomness(SEED)).drawn[0]
    truth = cg.Table(SCHEMA, AXES, counts.reshape(2, 2) - noise)
    made = cg.release_table(mechanism, truth, cg.SeededRandomness(SEED))
    bundle.write(made, folder, "the promise", "the report").publish()
    release = cg.read(folder)
    assert release.drawn[0].reshape(-1).tolist() == counts.tolist()
    assert release.only.description.family == "discrete_gaussian"
    assert release.only.mechanism.error_law(np.eye(2, dtype=bool)).variance == pytest.approx(
        2 * float(VARIANCE)
    )
    return release


def agrees(mean, sd, fifth, top, more=0.0) -> bool:
    """Whether a summary is the printed one, but for rounding and both chains' chance.

    more: the effective draws of the other chain, one over them; 0 for what is worked out exactly.
    """
    bulk, tail = np.sqrt(1 / BULK + more), np.sqrt(1 / TAIL + more)
    density = norm.pdf(norm.ppf(0.05))
    ends = np.sqrt(0.05 * 0.95) / density * tail
    near = (
        (mean, MEAN, bulk),
        (sd, SD, bulk / np.sqrt(2)),
        (fifth, FIFTH, ends),
        (top, TOP, ends),
    )
    return all(np.all(abs(a - b) <= HALF_A_DIGIT + Z * SD * one) for a, b, one in near)


def exact_moments(counts) -> tuple[np.ndarray, np.ndarray]:
    """Means and standard deviations of the shares, summed over tables of 400 people near by."""
    centre = np.round(counts - (counts.sum() - PEOPLE) / 4).astype(int)
    reach = np.arange(-32, 33)
    first = np.stack(np.meshgrid(*(c + reach for c in centre[:3]), indexing="ij"), -1)
    x = np.concatenate([first, PEOPLE - first.sum(-1, keepdims=True)], -1).reshape(-1, 4)
    # given shares that are flat, every table of 400 people is as likely as any other
    logs = np.where((x >= 0).all(axis=1), -((counts - x) ** 2).sum(1) / (2 * float(VARIANCE)), -1e9)
    weight = np.exp(logs - logs.max())
    weight /= weight.sum()
    given, people = (x + 1) / (PEOPLE + 4), PEOPLE + 4
    mean = weight @ given
    inside = weight @ (given * (1 - given) / (people + 1))
    return mean, np.sqrt(inside + weight @ (given - mean) ** 2)


def summary(posterior) -> tuple[np.ndarray, ...]:
    draws = posterior["share"].reshape(-1, 4)
    fifth, top = np.quantile(draws, [0.05, 0.95], axis=0)
    return draws.mean(axis=0), draws.std(axis=0), fifth, top


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> cg.TablesRelease:
    return read_bundle(tmp_path_factory.mktemp("dapper") / "bundle", SAMPLED)


MANY = Chain(chains=20, warmup=100)  # a step costs about the same for many chains
MODEL = Multinomial(prior=Dirichlet(1), people=PEOPLE)


def test_a_bundle_gives_the_printed_posterior(release):
    found = infer(release, MODEL, draws=4000, seed=SEED, chain=MANY)
    worth = 1 / found.least_effective
    assert agrees(*summary(found), more=worth)
    mean, sd = exact_moments(SAMPLED)
    assert np.all(abs(summary(found)[0] - mean) <= Z * sd * np.sqrt(worth))
    assert np.all(abs(summary(found)[1] - sd) <= Z * sd * np.sqrt(worth / 2))


def test_negative_controls_another_draw_and_no_noise_are_noticed(release):
    mean, sd = exact_moments(SHOWN)
    assert not agrees(mean, sd, mean - 1.645 * sd, mean + 1.645 * sd)
    exact = naive(release, MODEL, draws=4000, seed=SEED, chain=MANY)
    assert not agrees(*summary(exact), more=1 / 4000)
    mean, sd = exact_moments(SAMPLED)
    assert agrees(mean, sd, mean - 1.645 * sd, mean + 1.645 * sd)
