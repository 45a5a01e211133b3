"""Models by name, with their options as text."""

from __future__ import annotations

import numpy as np
import pytest

import congenial as cg
from congenial.inference import MODELS, InferenceError, infer_from_options
from congenial.inference.options import model_from_options
from tests.inference.exact import mechanism, release_of

SEED = 43
SCHEMA = cg.Schema.from_dict(
    {
        "county": {"levels": ["A", "B", "C"]},
        "sick": {"levels": ["no", "yes"]},
    }
)


@pytest.fixture(scope="module")
def release():
    made, _ = mechanism(SCHEMA, [[30, 4], [50, 9], [20, 6]], (cg.total(by="county"),))
    return release_of(made, [[29, 5], [51, 8], [19, 7]])


RUN = {"draws": "400", "seed": "1"}


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    """These tests are about words, not about chains."""
    monkeypatch.setattr("congenial.inference.inference.MOST_ROUNDS", 1)
    monkeypatch.setattr("congenial.inference.inference.refuse_unconverged", lambda found: found)


@pytest.mark.parametrize(
    ("model", "options", "parameter", "shape"),
    [
        ("poisson", {"by": "county"}, "rate", (3,)),
        ("poisson", {"prior": "gamma(1, 0.01)", "exposure": "2.5"}, "rate", (3, 2)),
        ("binomial", {"trials": "Population by county"}, "share", (3, 2)),
        ("multinomial", {"prior": "dirichlet(0.5)"}, "share", (3, 2)),
        ("logistic", {"outcome": "sick", "covariates": "county"}, "coefficient", (3,)),
    ],
)
def test_models_by_name(release, model, options, parameter, shape):
    posterior = infer_from_options(release, model, {**options, **RUN})
    assert posterior[parameter].shape == (400, *shape)


def test_numbers_from_a_file(release, tmp_path):
    file = tmp_path / "people.csv"
    file.write_text("county,value\nB,200\nA,100\nC,50\n")
    built = model_from_options(release, "poisson", {"exposure": str(file)})
    assert built.exposure.tolist() == [[100, 100], [200, 200], [50, 50]]
    built = model_from_options(
        release, "logistic", {"outcome": "sick", "covariates": f"size={file}, county"}
    )
    assert built.covariates["size"].tolist() == [100, 200, 50]
    assert built.covariates["county"] is None
    file.write_text("county,value\nB,200\nA,100\n")
    with pytest.raises(InferenceError, match="every category of county"):
        model_from_options(release, "poisson", {"exposure": str(file)})
    file.write_text("county,value\nD,200\n")
    with pytest.raises(InferenceError, match="row 2"):
        model_from_options(release, "poisson", {"exposure": str(file)})


def test_every_model_is_listed_once():
    assert set(MODELS) == {
        "poisson", "negative_binomial", "binomial", "multinomial", "normal", "linear", "logistic",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("model", "options", "told"),
    [
        ("poison", {}, "Did you mean 'poisson'"),
        ("poisson", {"exposur": "1"}, "Did you mean 'exposure'"),
        ("poisson", {"prior": "gamma(1"}, "prior 'gamma"),
        ("poisson", {"prior": "gamma(1, 2, 3)"}, r"wrong numbers. Write gamma\(shape, rate\)"),
        ("poisson", {"prior": "gamma(1)"}, r"Write gamma\(shape, rate\)"),
        ("poisson", {"draws": "many"}, "draws = 'many'"),
        ("poisson", {"public": "perhaps"}, "public = 'perhaps'"),
        ("poisson", {"method": "magic"}, "method 'magic'"),
        ("poisson", {"exposure": "missing.csv"}, "cannot be read"),
        ("binomial", {}, "binomial needs trials"),
        ("logistic", {}, "logistic needs outcome"),
    ],
)
def test_bad_options(release, model, options, told):
    with pytest.raises(InferenceError, match=told):
        infer_from_options(release, model, options)


def test_the_options_reach_the_sampler(release):
    posterior = infer_from_options(
        release, "multinomial", {"method": "augmentation", "counts": "true", **RUN}
    )
    assert np.all(posterior["count"].sum(axis=(1, 2)) == 119)
