"""Every assumption that a promise can carry is carried by a promise here.

What WRITERS say is read from their source, so that a sentence nobody produces fails, and so does a
new place that writes one. An `if` that drops an assumption from a promise drops it here too.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import congenial
from congenial import Guarantee, Plan, ReplaceOne, Schema, calibrate
from congenial.mechanisms.distribution.choose import calibrate_distribution
from congenial.mechanisms.distribution.distribution_mechanism import APART
from congenial.mechanisms.distribution.fit import moment_pairs
from congenial.mechanisms.wasserstein.base_measure import congenial as keeping
from congenial.mechanisms.wasserstein.base_measure import naive, prior_congenial
from congenial.mechanisms.wasserstein.exponential import WassersteinExponential
from congenial.mechanisms.wasserstein.secret_promise import assumed_delta
from congenial.pairs import DiscreteLaw, DistributionPairs, FiniteScenarios, SecretPairs
from congenial.pairs.distributions import Origin
from congenial.papers import WassersteinReals
from congenial.publication import workflow
from congenial.synthesis.local import LocalEstimate
from congenial.transport.delta_z import delta_z
from tests.kinds.test_estimate_plan import MEAN as MEAN_OF_AGE
from tests.kinds.test_estimate_plan import MEDIAN
from tests.kinds.test_estimate_plan import PLAN as ESTIMATE
from tests.kinds.test_mean_given_public import INDEPENDENT, NORMAL, TOGETHER
from tests.kinds.test_mean_given_public import PLAN as MEAN
from tests.kinds.test_records_from_models_plan import PLAN as MODELS
from tests.kinds.test_records_from_models_plan import PUBLISH
from tests.kinds.test_sums_plan import PLAN as STAYS
from tests.kinds.test_table_records_plan import PLAN as RECORDS
from tests.mechanisms.distribution import test_fit as fits
from tests.mechanisms.distribution.cases import example, gaussian_pairs, query
from tests.mechanisms.distribution.test_diagnostics import fitted
from tests.mechanisms.distribution.test_release import calibrated
from tests.mechanisms.wasserstein import cases
from tests.mechanisms.wasserstein.test_public_figures import SUMS, independent, stated

DISTRIBUTION, WASSERSTEIN = "mechanisms/distribution/", "mechanisms/wasserstein/"
WRITERS = {  # what writes assumptions, by file
    "mechanisms/mechanism.py": {"Mechanism.guarantee"},
    "pairs/distributions.py": {"Origin.words"},
    "pairs/secrets.py": {"SecretPairs.assumptions"},
    "kinds/kind.py": {"unit_words"},
    "data/magnitude.py": {"Magnitude.words"},
    "mechanisms/measured_tables.py": {"cutting_words"},
    "transport/delta_z.py": {"_notes", "below_ordinary"},
    f"{DISTRIBUTION}distribution_mechanism.py": {
        "DistributionMechanism.person_guarantee",
        "DistributionMechanism.assumptions",
        "DistributionMechanism.certain",
        "DistributionMechanism._numerics",
    },
    f"{DISTRIBUTION}model_checks.py": {"cost_of_equal_covariances"},
    f"{DISTRIBUTION}sampling_error.py": {"sampling_error"},
    f"{WASSERSTEIN}secret_promise.py": {"assumed_delta"},
    f"{WASSERSTEIN}exponential.py": {"WassersteinExponential.guarantee"},
    "papers/wasserstein_variants.py": {"WassersteinReals.guarantee"},
    f"{WASSERSTEIN}mean_given_public.py": {
        "MeanGivenPublic.guarantee",
        "MeanOfEverybody.guarantee",
    },
    f"{WASSERSTEIN}gradient.py": {"WassersteinGradient.guarantee"},
    f"{WASSERSTEIN}gradient_estimate.py": {
        "GradientEstimate.guarantee",
        "GradientGivenPublic.guarantee",
    },
    "synthesis/certified.py": {"Synthesizer.guarantee"},
    "synthesis/local.py": {"LocalEstimate.guarantee"},
    "synthesis/from_tables/table_records.py": {"RecordsProcedure.guarantee"},
}
PASSED_ON = {  # these hand assumptions on and write none
    ("privacy/guarantee.py", "Guarantee.compose"),
    ("kinds/kind.py", "planned"),
    ("kinds/statistics.py", "_calibrated"),
    ("mechanisms/measured_tables.py", "MeasuredTables.guarantee"),
    ("kinds/kind.py", "Kind.further_promise"),
    (f"{DISTRIBUTION}distribution_mechanism.py", "DistributionMechanism.guarantee"),
    (f"{WASSERSTEIN}secret_promise.py", "promise"),
    ("papers/wasserstein_variants.py", "joint_promise"),
}
ELSEWHERE = (  # sentences beside them that are sources, or say what is not covered
    "Dong, Roth, Su 2022",
    "Dwork, McSherry, Nissim, Smith 2006",
    "Savitsky, Williams and Hu",
    "other datasets, for which",
    "the weights, which depend on all",
    "parameters chosen by looking at",
    "the people in the modelling data, whose",
)
REFUSED = ("vacuous:", "degenerate:", "infinite:")  # no promise rests on such a distance
NO_ASSUMPTIONS = (*ELSEWHERE, *REFUSED)
ROOT = Path(congenial.__file__).parent
WITHOUT_UNIT = """
[data]
source = "people.csv"
[schema]
sex = { levels = ["f", "m"] }
[[release]]
name = "table"
table = ["sex"]
epsilon = 1
[budget]
epsilon = 1
"""


def definitions(file: Path) -> Iterator[tuple[str, ast.AST]]:
    """Functions, and functions and values of classes, by name."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        for inner in node.body if isinstance(node, ast.ClassDef) else ():
            if isinstance(inner, ast.FunctionDef):
                yield f"{node.name}.{inner.name}", inner  # type: ignore[attr-defined]
            elif isinstance(inner, ast.Assign) and isinstance(inner.targets[0], ast.Name):
                yield f"{node.name}.{inner.targets[0].id}", inner.value  # type: ignore[attr-defined]


def template(node: ast.AST, module: Any) -> str | None:
    """A regular expression for what a piece of text says; None where it is no text."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return re.escape(node.value)
    if isinstance(node, ast.Name) and isinstance(getattr(module, node.id, None), str):
        return re.escape(getattr(module, node.id))
    if isinstance(node, ast.FormattedValue):
        return template(node.value, module) or ".*"
    if isinstance(node, ast.JoinedStr):
        return "".join(template(one, module) or "" for one in node.values)
    return None


def sentences(node: ast.AST, module: Any) -> Iterator[str]:
    """Every text of at least four words, apart from docstrings, errors and sources."""
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Name) and node.id == "CITATION"):
        return
    if isinstance(node, ast.FunctionDef):
        for one in node.body[1:] if ast.get_docstring(node) else node.body:
            yield from sentences(one, module)
        return
    found = template(node, module)
    if found is None:
        for child in ast.iter_child_nodes(node):
            yield from sentences(child, module)
    elif len(found.split()) >= 4 and not found.startswith(tuple(map(re.escape, NO_ASSUMPTIONS))):
        yield found


def written() -> dict[str, str]:
    """Where each assumption is written."""
    found = {}
    for name, writers in WRITERS.items():
        module = importlib.import_module("congenial." + name.removesuffix(".py").replace("/", "."))
        there = dict(definitions(ROOT / name))
        for one in sorted(writers):
            found |= dict.fromkeys(sentences(there[one], module), f"{name}, {one}")
    return found


# ---- promises ------------------------------------------------------------------------------------


def planned(text: str, tmp_path: Path) -> Iterator[Guarantee]:
    for one in workflow.check(Plan.parse(text, tmp_path)).releases:
        yield one.guarantee


def of_plans(folder: Path) -> Iterator[Guarantee]:
    yield from planned(WITHOUT_UNIT, folder)
    for more in ("", "\nmax_rows = 2", '\nmax_rows = 2\ntruncate = "column order"'):
        yield from planned(WITHOUT_UNIT.replace('csv"', 'csv"\nunit = "id"' + more), folder)
    yield from planned(MODELS.replace(PUBLISH, ""), folder)
    yield from planned(RECORDS, folder)
    yield from planned(STAYS.replace("step = 10", "step = 10\nmissing = 0"), folder)
    yield from planned(ESTIMATE, folder)
    yield from planned(ESTIMATE.replace(MEAN_OF_AGE, MEDIAN), folder)
    for scenarios in (NORMAL, INDEPENDENT):
        yield from planned(MEAN.replace(NORMAL, scenarios), folder)
    mean = '{ mean = "age", between = [0, 110] }'
    yield from planned(MEAN.replace(mean, TOGETHER["median"]).replace(NORMAL, INDEPENDENT), folder)


def of_laws() -> Iterator[Guarantee]:
    def made(pairs: DistributionPairs, *target: Any, **keywords: Any) -> Any:
        return calibrate_distribution(pairs, *target, **keywords).mechanism

    yield made(example(), 1, 0.001, as_is=True).guarantee
    yield calibrated(mechanism="directional_laplace").guarantee
    persons = calibrated(mechanism="expected_gaussian").person_guarantee
    assert persons is not None
    yield persons
    for name in ("optimum", "expected_laplace"):
        yield made(fitted(), 1, 0.01, mechanism=name, confidence="off").guarantee
    yield made(fitted(), 1, mechanism="directional_laplace", confidence="off").guarantee
    used = fits.one_file(np.random.default_rng(1), 98, [[0.0], [1.0]], 100)
    yield made(used, 1, mechanism="expected_laplace", confidence="off").guarantee
    random = np.random.default_rng(1)
    laws = [DiscreteLaw.of(name, random.normal(m, 1, 200)) for name, m in (("p", 0), ("q", 1))]
    seen = DistributionPairs.given(query(1), laws, origin=Origin("empirical", 200, "checked"))
    asked = {"mechanism": "approximate_wasserstein", "confidence": "off"}
    yield made(seen, 1, 0.05, **asked).guarantee
    moments = moment_pairs(fits.HIDE, fits.QUERY, fits.read(fits.patients()), records=80)
    yield made(moments, 1, 0.01, confidence="off").guarantee


def of_secrets() -> Iterator[Guarantee]:
    made = WassersteinExponential
    yield made.calibrate(cases.dependent(), F(1), naive(1), ordinary=20).guarantee
    yield made.assuming(cases.dependent(), 2, F(1), naive(1)).guarantee
    yield made(stated(), assumed_delta(2, "l1"), keeping(4, SUMS), F(1)).guarantee
    number = keeping(4, [((0, 1), 7)], parts=[(2, 0), (3, 1)])
    yield made(independent(), delta_z(independent()), number, F(1), "l1", F(2)).guarantee
    prior = prior_congenial(3, [((0, 1, 2), 3)], [4, 0, 1], alpha="1/2", kappa="1/2")
    pairs, ask = cases.finite(), cases.histogram(3)
    yield made.calibrate(pairs, F(1), prior, loss="squared l2", query=ask, ordinary=2).guarantee
    yield WassersteinReals(cases.finite(), assumed_delta("3/10", "l1"), F(1), F(1, 8), 2).guarantee
    fair = [1, 1]
    sure = FiniteScenarios.independent({"open": [fair, fair], "sure": [[0, 1], fair]})
    yield made.calibrate(
        SecretPairs(cases.SCHEMA, (sure,)), F(1), naive(1), query=lambda x: (sum(x),)
    ).guarantee


@pytest.fixture(scope="module")
def promised(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The assumptions of real promises."""
    schema = Schema.from_dict({"sex": {"levels": ["f", "m"]}})
    real = calibrate("auto", Guarantee.gaussian(1, ReplaceOne(schema)), schema.names).guarantee
    local = LocalEstimate(3.5, 1000, 400, False, 30).guarantee(ReplaceOne(schema))
    found = [real, local, *of_laws(), *of_secrets(), *of_plans(tmp_path_factory.mktemp("plans"))]
    return [line for one in found for line in one.assumptions]


def test_every_assumption_is_made_by_some_promise(promised: list[str]) -> None:
    missing = {
        sentence: where
        for sentence, where in written().items()
        if not any(re.search(sentence, line) for line in promised)
    }
    assert missing == {}


def test_every_assumption_is_found_in_the_source(promised: list[str]) -> None:
    """Otherwise a writer is missing above."""
    known = [re.compile(sentence) for sentence in written()]
    assert [line for line in promised if not any(one.search(line) for one in known)] == []


def gives_assumptions(node: ast.AST) -> bool:
    """Whether this is a call that gives a promise its assumptions."""
    if not isinstance(node, ast.Call):
        return False
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    words = {one.arg for one in node.keywords}
    by_place = name == "Guarantee" and len(node.args) > 3
    return by_place or "assumptions" in words or (name == "promise" and "more" in words)


def test_no_other_place_gives_a_promise_assumptions() -> None:
    found = {
        (str(file.relative_to(ROOT)), name)
        for file in sorted(ROOT.rglob("*.py"))
        if "Guarantee" in file.read_text(encoding="utf-8")
        for name, node in definitions(file)
        if any(map(gives_assumptions, ast.walk(node)))
    }
    known = {(file, name) for file, names in WRITERS.items() for name in names}
    assert found - known == PASSED_ON


# ---- the one that went missing ------------------------------------------------------------------


@pytest.mark.parametrize("apart", ["assumed", "checked", ""])
def test_records_in_common_are_assumed_away_exactly_where_nobody_checked(apart: Any) -> None:
    """The laws would tell of the same people again; stated laws come from nobody's records."""
    pairs = gaussian_pairs(
        [[0.0, 0.0], [2.0, 1.0]],
        [np.eye(2).tolist()] * 2,
        origin=Origin("fitted", 1000, apart) if apart else Origin(),
        records=100,
    )
    asked = {"mechanism": "expected_gaussian", "confidence": "off"}
    made = calibrate_distribution(pairs, 1, 0.01, **asked).mechanism
    assert made.person_guarantee is not None
    for promise in (made.guarantee, made.person_guarantee):
        assert (APART in promise.assumptions) == (apart == "assumed")
