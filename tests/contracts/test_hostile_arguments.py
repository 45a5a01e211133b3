"""Public calls with arguments of wrong types: an answer or a CongenialError, never a raw one."""

from __future__ import annotations

import atexit
import math
import shutil
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np
import pandas as pd
import pytest

import congenial as api
from congenial import CongenialError
from congenial.inference.inference import bind
from congenial.inference.models.counts import Binomial, NegativeBinomial, Poisson
from congenial.inference.models.outcomes import Multinomial
from congenial.inference.models.priors import Beta, Dirichlet, Gamma, GaussianPrior, HalfNormal
from congenial.mechanisms.distribution.fit import moment_pairs
from congenial.synthesis.models import BinomialColumn, NormalColumn, PoissonColumn
from congenial.synthesis.record_model import Grid
from congenial.transport.wasserstein import distance
from tests.contracts import hostile_analysis, hostile_laws, hostile_packages, hostile_tables

SCHEMA = api.Schema.from_dict(
    {"sex": {"levels": ["f", "m"]}, "age": {"edges": [0, 18, 65], "top": "65+"}}
)
TABLE = api.Table(SCHEMA, SCHEMA.names, np.arange(6).reshape(2, 3))
PEOPLE = api.ReplaceOne(SCHEMA)
PUBLIC = api.publish(TABLE, api.total(by="sex"))
TARGET = api.Guarantee.pure(1, PEOPLE)
MECHANISM = api.calibrate("auto", api.Guarantee.pure(1, api.SemiAdjacent(PUBLIC)), SCHEMA.names)
RELEASE = api.release_table(MECHANISM, TABLE, api.SeededRandomness(3), name="ages")
HOSTILE: dict[str, Any] = {
    "none": None,
    "text": "nonsense",
    "empty text": "",
    "number": 3.5,
    "not a number": math.nan,
    "infinite": math.inf,
    "negative": -1,
    "huge": 10**400,
    "truth value": True,
    "empty list": [],
    "nested": [[1], [2, [3]]],
    "mixed": (1, "a", None),
    "mapping": {"sex": "f"},
    "bytes": b"\xff\x00",
    "object": object(),
    "class": int,
    "array": np.array([[1.5, np.nan]]),
    "frame": pd.DataFrame({"sex": ["f", "m"], "age": [3, 70]}),
    "weights": (1, 2, 0.5),
}
Call = tuple[Callable[..., Any], dict[str, Any]]


def statement_calls() -> Iterator[tuple[str, Call]]:
    yield "total", (api.total, {"by": "sex"})
    yield "margin", (lambda axis: api.margin(axis), {"axis": "sex"})
    yield "count", (api.count, {"condition": "age >= 18", "by": "sex"})
    yield "linear", (api.linear, {"weights": {"sex = 'f'": 2}, "by": ()})
    yield "structural_zeros", (api.structural_zeros, {"condition": "age < 18"})
    for name in ("at_least", "at_most"):
        yield name, (getattr(api, name), {"statistic": api.total(), "bound": 2})
    yield (
        "publish",
        (lambda table, one: api.publish(table, one), {"table": TABLE, "one": api.total()}),
    )
    yield "publish count", (lambda text: api.publish(TABLE, api.count(text)), {"text": "age >= 18"})
    yield "publish by", (lambda by: api.publish(TABLE, api.total(by=by)), {"by": "sex"})
    yield (
        "Figures",
        (api.Figures, {"schema": SCHEMA, "statements": (api.total(),), "values": None}),
    )


def data_calls() -> Iterator[tuple[str, Call]]:
    yield "Schema", (api.Schema, {"attributes": SCHEMA.attributes})
    yield "Schema.from_dict", (api.Schema.from_dict, {"mapping": SCHEMA.to_dict()})
    yield "Schema.axis", (SCHEMA.axis, {"name": "sex"})
    yield "Schema.axes", (SCHEMA.axes, {"names": ["sex"]})
    yield "Unit", (api.Unit, {"column": "id", "max_rows": 2})
    counts = np.arange(6).reshape(2, 3)
    yield "Table", (api.Table, {"schema": SCHEMA, "names": SCHEMA.names, "counts": counts})
    yield "Table.marginal", (TABLE.marginal, {"names": ["sex"]})
    yield "tabulate", (api.tabulate, {"data": None, "schema": SCHEMA, "by": ["sex"], "unit": None})


def promise_calls() -> Iterator[tuple[str, Call]]:
    yield "ReplaceOne", (api.ReplaceOne, {"schema": SCHEMA})
    yield "AddRemove", (api.AddRemove, {"schema": SCHEMA, "max_rows": 2})
    robust = {"published": PUBLIC, "reading": "robust", "metric": "replace-one", "within": None}
    yield "SemiAdjacent", (api.SemiAdjacent, robust)
    for name, key in (("pure", "epsilon"), ("zero_concentrated", "rho"), ("gaussian", "mu")):
        yield f"Guarantee.{name}", (getattr(api.Guarantee, name), {key: 1, "under": PEOPLE})
    approximate = {"epsilon": 1, "delta": 1e-6, "under": PEOPLE}
    yield "Guarantee.approximate", (api.Guarantee.approximate, approximate)
    yield "Guarantee.compose", (TARGET.compose, {"other": TARGET})
    yield "Guarantee.explain", (TARGET.explain, {"spent": ""})
    yield "Budget", (api.Budget, {"epsilon": 1, "delta": None, "rho": None})
    chosen = {"mechanism": "auto", "target": TARGET, "table": ["sex"]}
    yield "calibrate", (api.calibrate, chosen)
    several = {"mechanism": "auto", "target": TARGET, "tables": [["sex"], ["age"]]}
    yield "calibrate tables", (api.calibrate, several)
    yield (
        "TablesRelease.plot",
        (lambda name, level: RELEASE.plot(name, level=level), {"name": "sex", "level": 0.9}),
    )
    yield (
        "Congenial.calibrate",
        (api.Congenial.calibrate, {"target": MECHANISM.guarantee, "table": ["sex"]}),
    )


def release_calls() -> Iterator[tuple[str, Call]]:
    for name in ("count", "interval"):
        more = {"level": 0.9} if name == "interval" else {}
        yield f"TablesRelease.{name}", (getattr(RELEASE, name), {"condition": "age >= 18"} | more)
    yield "TablesRelease.margin", (lambda name: RELEASE.margin(name), {"name": "sex"})
    yield "TablesRelease.intervals", (RELEASE.intervals, {"names": "sex", "level": 0.9})
    yield "error_law", (MECHANISM.error_law, {"cells": np.ones((2, 3), dtype=bool)})
    drawing = {"mechanism": MECHANISM, "table": TABLE, "randomness": None}
    yield "release_table", (api.release_table, drawing)
    yield "read", (api.read, {"folder": "nowhere"})
    place = Path(mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    yield "save", (api.save, {"release": RELEASE, "folder": place / "bundle", "ledger": None})
    yield "verify", (api.verify, {"folder": "nowhere", "digest": None, "signer": None})
    yield "Plan.load", (api.Plan.load, {"path": "nowhere"})
    yield "SeededRandomness", (api.SeededRandomness, {"seed": 1})
    infer = {"release": RELEASE, "model": Poisson(), "method": "auto", "draws": 100}
    yield "infer", (api.infer, infer | {"seed": 1})
    asked = {"releases": RELEASE, "what": "count(age >= 18)", "level": 0.9}
    yield "estimate", (api.estimate, asked)


def ledger_calls() -> Iterator[tuple[str, Call]]:
    """A ledger in a folder of its own, which goes with the process."""
    place = Path(mkdtemp(prefix="hostile-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    where = place / "ledger.sqlite"
    ledger = api.Ledger.open(where, SCHEMA, budget=api.Budget(epsilon=2))
    yield "Ledger.open", (api.Ledger.open, {"where": where, "schema": None, "budget": None})
    yield "Ledger.exists", (api.Ledger.exists, {"where": where, "timeout": 1.0})
    yield "Ledger.preview", (ledger.preview, {"description": RELEASE.description})
    yield "Ledger.grant", (ledger.grant, {"who": "a", "role": "nobody"})
    yield "Ledger.set_budget", (ledger.set_budget, {"budget": api.Budget(epsilon=3)})
    wider = {"adjacency": "several rows", "max_rows": 2}
    yield "Ledger.change_unit", (ledger.change_unit, wider)
    yield "Ledger.publish", (ledger.publish, {"figures": PUBLIC})
    yield "Ledger.record", (ledger.record, {"release": None})
    yield "Ledger.abandon", (ledger.abandon, {"release": "none"})
    asked = {"description": RELEASE.description, "guarantee": RELEASE.guarantee, "name": "one"}
    yield "Ledger.reserve", (ledger.reserve, asked)
    plan = "0" * 64
    yield "Ledger.require_approval", (ledger.require_approval, {"needed": False})
    yield "Ledger.propose", (ledger.propose, {"plan_digest": plan, "text": "", "files": {}})
    said = {"plan_digest": plan, "word": "approve", "because": ""}
    yield "Ledger.review", (ledger.review, said)


def model_calls() -> Iterator[tuple[str, Call]]:
    yield "Gamma", (Gamma, {"shape": 1.0, "rate": 1.0})
    yield "Beta", (Beta, {"a": 1.0, "b": 1.0})
    yield "Dirichlet", (Dirichlet, {"weight": 1.0})
    yield "GaussianPrior", (GaussianPrior, {"mean": 0.0, "sd": 1.0})
    yield "HalfNormal", (HalfNormal, {"sd": 1.0})
    yield "Grid", (Grid, {"low": 0.1, "high": 2.0, "points": 4})
    yield "PoissonColumn", (PoissonColumn, {"mean": Grid(0.2, 4, 5)})
    yield "BinomialColumn", (BinomialColumn, {"share": Grid(0.2, 0.4, 5)})
    yield "NormalColumn", (NormalColumn, {"mean": Grid(-2, 2, 5), "sd": Grid(1, 2, 5)})
    yield "distance", (distance, {"left": None, "right": None, "delta": 0, "norm": "l1"})
    yield (
        "moment_pairs",
        (moment_pairs, {"hide": None, "query": None, "modelling": None, "records": 5}),
    )
    common: dict[str, Any] = {"by": "sex", "prior": None}
    models: dict[type, dict[str, Any]] = {
        Poisson: common | {"exposure": 1.0, "covariates": None},
        NegativeBinomial: common | {"exposure": 1.0, "covariates": ()},
        Binomial: common | {"trials": 900, "covariates": None},
        Multinomial: {"by": "sex", "prior": Dirichlet(1.0), "people": None},
    }
    for model, valid in models.items():
        bound = partial(bind_to_release, model)
        yield model.__name__, (bound, valid)


def bind_to_release(model: Any, **given: Any) -> object:
    """What `infer` does before it draws."""
    return bind(RELEASE, model(**given), public=True)


FAMILIES = (
    *hostile_packages.FAMILIES,
    *hostile_analysis.FAMILIES,
    *hostile_tables.FAMILIES,
    *hostile_laws.FAMILIES,
    statement_calls,
    data_calls,
    promise_calls,
    release_calls,
    ledger_calls,
    model_calls,
)
CALLS: dict[str, Call] = {name: call for family in FAMILIES for name, call in family()}


def raw_errors(call: Callable[..., Any], valid: dict[str, Any]) -> list[str]:
    found = []
    for parameter in valid:
        for kind, value in HOSTILE.items():
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    call(**(valid | {parameter: value}))
            except CongenialError:
                pass
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                found.append(f"{parameter} = {kind}: {type(error).__name__}: {str(error)[:80]}")
    return found


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is written under a hostile name is not written here."""
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("name", CALLS)
def test_every_refusal_is_in_words(name: str) -> None:
    assert raw_errors(*CALLS[name]) == []


def test_every_public_name_is_called() -> None:
    """What is exported is called above, as it is or by one of its methods."""
    known = {name.split(".")[0] for name in CALLS}
    silent = {"CongenialError", "__version__"}  # an error, a text
    assert set(api.__all__) - silent <= known
    assert "TablesRelease.interval" in CALLS


def test_every_name_of_the_packages_is_called_or_excused() -> None:
    """An excuse names its reason, and stands for names that exist and are not called."""
    known = {name.split(".")[0].split()[0] for name in CALLS}
    excused = [name for names in hostile_packages.EXCUSED.values() for name in names.split()]
    public = {
        name
        for package in hostile_packages.PACKAGES
        for name in import_module(f"congenial.{package}").__all__
    }
    assert sorted(public - known - set(excused)) == []
    assert sorted(set(excused) - public) == []
    assert sorted(set(excused) & known) == []
    assert len(set(excused)) == len(excused)


@pytest.mark.parametrize("name", CALLS)
def test_the_call_is_right_otherwise(name: str) -> None:
    """So that it is the hostile argument that is refused; some calls only refuse in words."""
    call, valid = CALLS[name]
    with suppress(CongenialError):
        call(**valid)


def test_a_raw_error_would_be_noticed() -> None:
    """Negative control: a call that does not look at its argument."""
    found = raw_errors(lambda condition: condition.strip(), {"condition": "age >= 18"})
    assert len(found) >= 10
