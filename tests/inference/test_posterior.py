"""Posterior: readings, diagnostics, refusal of chains that did not converge."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter

from congenial.inference import Chain, InferenceError, Observation, Poisson, Posterior, infer
from congenial.inference.posterior import refuse_unconverged
from congenial.sampling.convergence import r_hat
from tests.inference.exact import mechanism, one_axis, release_of

SEED = 41


def autoregressive(rho: float, chains=4, draws=2000, seed=SEED):
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((chains, draws + 500)) * np.sqrt(1 - rho**2)
    return lfilter([1], [1, -rho], noise, axis=1)[:, 500:, None]


def test_chains_that_disagree_have_a_large_r_hat():
    shifted = autoregressive(0.3) + np.array([0, 0, 0, 1.5])[:, None, None]
    wider = autoregressive(0.3) * np.array([1, 1, 1, 4])[:, None, None]
    drifting = autoregressive(0.3) + np.linspace(0, 3, 2000)[None, :, None]
    for bad in (shifted, wider, drifting):
        assert r_hat(bad)[0] > 1.05


def made(draws, **keywords) -> Posterior:
    return Posterior({"a": draws}, {"a": ()}, "made", **keywords)


def test_a_chain_that_did_not_converge_is_refused_with_its_diagnostics():
    bad = made(autoregressive(0.999, draws=200)[..., 0])
    assert bad.warnings
    assert "warning" in repr(bad)
    with pytest.raises(InferenceError, match="did not converge: R-hat reaches"):
        refuse_unconverged(bad)
    good = made(autoregressive(0.2)[..., 0])
    assert refuse_unconverged(good) is good
    assert good.warnings == ()


def test_refusal_reaches_infer_and_can_be_switched_off(monkeypatch):
    monkeypatch.setattr("congenial.inference.posterior.REFUSED_EFFECTIVE", 1e9)
    mechanism_, _ = mechanism(one_axis(3), [3, 1, 2])
    release = release_of(mechanism_, [3, 1, 2])
    model = Poisson(covariates=())
    with pytest.raises(InferenceError, match="did not converge"):
        infer(release, model, draws=100, seed=SEED, chain=Chain(chains=20, warmup=50))
    loose = Chain(chains=20, warmup=50, check=False)
    found = infer(release, model, draws=200, seed=SEED, chain=loose)
    assert found["coefficient"].shape == (200, 1)


@pytest.fixture(scope="module")
def rates() -> Posterior:
    observed = Observation.of_values([3, 40], "double_geometric", 0.5)
    return infer(observed, Poisson(), draws=1000, seed=SEED)


def test_summary_is_plain_data(rates):
    rows = rates.to_dicts(0.9)
    assert [row["cell"] for row in rows] == ["0", "1"]
    assert json.loads(json.dumps(rows)) == rows
    assert all(row["low"] < row["mean"] < row["high"] for row in rows)
    assert rows[0]["r_hat"] == 1
    assert rows[0]["effective"] == 1000


def test_charts_are_data(rates):
    chart = rates.chart("rate")
    assert chart["columns"] == ["component", "mean", "low", "high", "analysis"]
    assert len(chart["rows"]) == 2
    assert chart["chart"]["y_title"] == "rate"
    assert "by" not in chart["chart"]
    both = rates.chart("rate", beside=rates)
    assert len(both["rows"]) == 4
    assert both["chart"]["by"] == "analysis"
    slope = Posterior({"coefficient": rates.draws["rate"]}, {"coefficient": rates.dims["rate"]}, "")
    assert slope.chart("coefficient")["chart"]["rule"] == {"no effect": 0}
    trace = rates.trace("rate", 1)
    assert len(trace["rows"]) == 1000
    json.dumps([chart, trace])


@pytest.mark.parametrize("classic", [True, False])
def test_arviz_gets_draws_dims_and_coords(rates, monkeypatch, classic):
    """Before version 1 groups are keywords of `from_dict`, since then one dictionary."""
    arviz = SimpleNamespace(from_dict=lambda *groups, **keywords: (groups, keywords))
    if classic:
        arviz.InferenceData = object
    monkeypatch.setitem(sys.modules, "arviz", arviz)
    groups, keywords = rates.to_arviz()
    posterior = keywords.pop("posterior") if classic else groups[0]["posterior"]
    assert posterior["rate"].shape == (1, 1000, 2)
    assert keywords == {"dims": {"rate": ["cell"]}, "coords": {"cell": ["0", "1"]}}


def test_without_arviz_there_is_a_remedy(rates, monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz", None)
    with pytest.raises(InferenceError, match="pip install arviz"):
        rates.to_arviz()


def test_html_and_words(rates):
    assert "<table>" in rates._repr_html_()
    assert "1 x 1000 draws" in repr(rates)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda p: p["nobody"], "no parameter 'nobody'"),
        (lambda p: p.interval("rate", 1.0), "level 1.0"),
        (lambda p: Chain(chains=1), "1 chains"),
    ],
)
def test_bad_questions(rates, call, told):
    with pytest.raises(InferenceError, match=told):
        call(rates)


@pytest.mark.parametrize(
    ("keywords", "told"),
    [({"method": "magic"}, "method 'magic'"), ({"draws": 5}, "5 draws")],
)
def test_bad_requests(keywords, told):
    observed = Observation.of_values([3, 40], "double_geometric", 0.5)
    with pytest.raises(InferenceError, match=told):
        infer(observed, Poisson(), **keywords)
    with pytest.raises(InferenceError, match="str is not a model"):
        infer(observed, "poisson")
