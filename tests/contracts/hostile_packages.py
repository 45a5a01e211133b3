"""Public calls of the packages beside the top level, with arguments that are right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pyarrow as pa

import congenial as api
from congenial import inference, ledger, mechanisms, pairs, papers, privacy, synthesis, transport
from congenial.data.tabulate import Microdata
from congenial.data.vector_statistics import Statistic, Statistics, Vector
from congenial.mechanisms.wasserstein.base_measure import naive

Call = tuple[Callable[..., Any], dict[str, Any]]

ANSWERS = {"levels": ["yes", "no"]}
SCHEMA = api.Schema.from_dict({"smoker": ANSWERS, "ill": ANSWERS})
TABLE = api.Table(SCHEMA, SCHEMA.names, [[14, 6], [7, 33]])
MARGINS = api.publish(TABLE, api.margin("smoker"), api.margin("ill"))
TARGET = api.Guarantee.pure(1, under=api.SemiAdjacent(MARGINS))
PEOPLE = api.ReplaceOne(SCHEMA)
SEEDED = api.SeededRandomness(1)

AGES = api.Schema.from_dict({"sex": {"levels": ["f", "m"]}, "age": {"integers": [0, 4]}})
QUERY = Statistics(AGES, (Statistic.mean("age"), Statistic.count("sex = 'f'")))
MEAN = Statistics(AGES, (Statistic.mean("age"),))
LAWS = [
    pairs.GaussianLaw.of("few women", [2.0, 40], [[0.02, 0.1], [0.1, 24]]),
    pairs.GaussianLaw.of("many women", [2.1, 50], [[0.02, 0.1], [0.1, 24]]),
]
LAW_PAIRS = pairs.DistributionPairs.given(QUERY, LAWS, records=100)
STATISTICS = mechanisms.calibrate_distribution(
    LAW_PAIRS, 1, 0.001, mechanism="expected_gaussian"
).mechanism.release(Vector(QUERY.names, [2.03, 44], 100), SEEDED, "ward")

SECRETS = pairs.SecretPairs(SCHEMA, (pairs.IndependentRecords("replace-one"),), level="database")


def law_calls() -> Iterator[tuple[str, Call]]:
    """Laws and beliefs."""
    yield "pmf", (pairs.pmf, {"points": [1, 2], "masses": [0.5, 0.5]})
    yield "sample", (pairs.sample, {"points": [1, 2, 3]})
    yield "StatedNormal", (pairs.StatedNormal, {"mean": 0.0, "sd": 1.0})
    yield "StatedBinomial", (pairs.StatedBinomial, {"n": 5, "p": Fraction(1, 2), "shift": 0})
    yield "IndependentRecords", (pairs.IndependentRecords, {"secrets": "replace-one"})
    yield (
        "SecretPairs",
        (pairs.SecretPairs, {"schema": SCHEMA, "scenarios": SECRETS.scenarios, "given": ()}),
    )
    yield "k_anonymity", (pairs.k_anonymity, {"k": 3})
    yield "t_closeness", (pairs.t_closeness, {"t": "1/5", "target": "1/2"})
    asked = {"condition": "sex = 'f'", "between": (0.1, 0.2), "values": None, "gap": None}
    yield "share", (pairs.share, asked)
    hidden = pairs.share("x = 1", between=(0, 1))
    yield "together", (lambda one: pairs.together(one), {"one": hidden})
    yield "read_property", (pairs.read_property, {"spec": {"share": "a", "between": 0, "and": 1}})
    yield "may_add", (pairs.may_add, {"one": SECRETS, "other": SECRETS, "blocks": None})
    yield "sensitivity", (papers.sensitivity, {"adjacency": PEOPLE, "query": api.total(by="ill")})
    semi = api.SemiAdjacent(MARGINS)
    yield "side_by_side", (papers.side_by_side, {"adjacency": semi, "query": api.total()})
    yield "subspace", (papers.subspace, {"adjacency": semi, "names": ["smoker", "ill"]})
    asked = {"pairs": SECRETS, "query": None, "norm": "l1", "delta": 0}
    yield "delta_z", (transport.delta_z, asked)
    yield "empirical", (lambda law: transport.empirical(law), {"law": pairs.pmf([1], [1])})


def tradeoff_calls() -> Iterator[tuple[str, Call]]:
    """Trade-off functions, conversions, prices."""
    yield "Pure", (privacy.Pure, {"epsilon": 1})
    yield "Approximate", (privacy.Approximate, {"epsilon": 1, "delta": 1e-6})
    yield "Gaussian", (privacy.Gaussian, {"mu": 1})
    yield "ZeroConcentrated", (privacy.ZeroConcentrated, {"rho": 1})
    yield "GaussianDraw", (privacy.GaussianDraw, {"rho": 1})
    yield "Pure.delta", (privacy.Pure(1).delta, {"epsilon": 0.5})
    yield "Pure.epsilon", (privacy.Pure(1).epsilon, {"delta": 0.5})
    yield "compose", (privacy.compose, {"tradeoffs": [privacy.Pure(1)]})
    orders = {"promises": [privacy.Pure(1)], "records": 2}
    yield "composition_orders", (papers.composition_orders, orders)
    told = {"source": privacy.Pure(1), "to": "rho", "delta": None}
    yield "convert", (privacy.convert, told)
    yield "belief", (privacy.belief, {"prior": 0.01, "epsilon": 1})
    law = api.calibrate("auto", TARGET, SCHEMA.names).description
    yield "joint_loss", (privacy.joint_loss, {"descriptions": [law], "adjacency": TARGET.adjacency})
    yield "neighbourhood", (privacy.neighbourhood, {"adjacency": PEOPLE})
    yield "read_description", (privacy.read_description, {"schema": SCHEMA, "data": law.to_dict()})
    record = {"mechanism": "m", "schema": SCHEMA, "law": {}, "epsilon": Fraction(1)}
    yield "RecordDescription", (privacy.RecordDescription, record)
    old = ledger.EarlierRelease(law, privacy.Pure(1))
    yield "reassess", (ledger.reassess, {"releases": {"one": old}, "figures": MARGINS})
    yield (
        "suppose",
        (lambda known, one: ledger.suppose(known, one), {"known": MARGINS, "one": api.total()}),
    )


def release_calls() -> Iterator[tuple[str, Call]]:
    """Releases that are no tables, and what makes them."""
    asked: dict[str, Any] = {"statistic": QUERY.names[0], "level": 0.9}
    yield "StatisticsRelease.interval", (STATISTICS.interval, asked)
    chosen = {"pairs": LAW_PAIRS, "epsilon": 1, "delta": 0.001, "mechanism": "expected_gaussian"}
    yield "calibrate_distribution", (mechanisms.calibrate_distribution, chosen)
    with Microdata.open(
        pa.table({"sex": ["f", "m"] * 20, "age": [at % 5 for at in range(40)]}), AGES
    ) as data:
        hide = pairs.share("sex = 'f'", between=(0.2, 0.8))
        fit = {"hide": hide, "query": MEAN, "modelling": data, "records": 20, "replications": 40}
        yield "fit_pairs", (mechanisms.fit_pairs, fit)
    made = mechanisms.WassersteinExponential.calibrate
    wanted = {"pairs": SECRETS, "epsilon": 1, "base": naive(2), "loss": "l1", "ordinary": 2}
    yield "WassersteinExponential.calibrate", (made, wanted)
    columns = (synthesis.Column("smoker", synthesis.MultinomialColumn(floor=0.1)),)
    target = api.Guarantee.pure(8, under=api.ReplaceOne(SCHEMA))
    asked = {"target": target, "columns": columns, "copies": 1, "records": 5, "public": ()}
    yield "Synthesizer.calibrate", (synthesis.Synthesizer.calibrate, asked)
    synthesizer = synthesis.Synthesizer.calibrate(target, columns, records=5)
    yield "Synthesizer.fit", (synthesizer.fit, {"data": TABLE})
    yield "Synthesizer.release", (synthesizer.release, {"data": TABLE, "randomness": SEEDED})
    yield "SyntheticRelease.to_pandas", (synthesizer.release(TABLE, SEEDED).to_pandas, {"copy": 1})
    yield "Column", (synthesis.Column, {"name": "smoker", "model": columns[0].model, "given": ()})
    yield "MultinomialColumn", (synthesis.MultinomialColumn, {"floor": 0.1, "steps": 2})
    yield "combine", (synthesis.combine, {"estimates": [1.0, 2.0], "variances": [0.1, 0.2]})
    told = {"data": {"kind": "multinomial", "floor": 0.1}, "where": "here"}
    yield "read_model", (synthesis.read_model, told)
    yield "scalar", (synthesis.scalar, {"epsilon": 1.0})
    yield "threshold", (synthesis.threshold, {"limit": 1.0})
    yield "min_max", (synthesis.min_max, {"c": 1.0, "g": 0.0})


def analyst_calls() -> Iterator[tuple[str, Call]]:
    """What an analyst asks of a bundle."""
    plain = api.calibrate("auto", api.Guarantee.pure(1, PEOPLE), SCHEMA.names)
    drawn = api.release_table(plain, TABLE, SEEDED)
    yield "observe", (inference.observe, {"release": drawn, "by": "ill", "public": True})
    found = api.infer(drawn, inference.Poisson(), draws=100, seed=1)
    for name in ("mean", "sd"):
        yield f"Posterior.{name}", (getattr(found, name), {"name": "rate"})
    yield "Posterior.interval", (found.interval, {"name": "rate", "level": 0.9})
    yield "Posterior.quantile", (found.quantile, {"name": "rate", "probabilities": 0.5})
    yield "Family", (inference.Family, {"name": "binomial", "size": 20.0})
    options = {"release": drawn, "model": "poisson", "options": {"draws": "100"}}
    yield "infer_from_options", (inference.infer_from_options, options)
    naive = {"release": drawn, "model": inference.Poisson(), "draws": 100, "seed": 1}
    yield "naive", (inference.naive, naive)
    question = {"null_value": 1, "alternative": "greater", "alpha": 0.05, "level": 0.9}
    yield "OddsRatioQuestion", (inference.OddsRatioQuestion, question | {"power_at": (2,)})
    odds = {"target": TARGET, "table": SCHEMA.names, "question": None}
    yield "OddsRatioMechanism.calibrate", (inference.OddsRatioMechanism.calibrate, odds)
    made = inference.OddsRatioMechanism.calibrate(TARGET, SCHEMA.names)
    for name in ("release", "decide"):
        yield (
            f"OddsRatioMechanism.{name}",
            (getattr(made, name), {"table": TABLE, "randomness": None, "name": "x"}),
        )
    release, test = made.release(TABLE, SEEDED), made.test
    assert test is not None
    told = {"null_value": 1.0, "alternative": "less"}
    yield "OddsRatioRelease.p_value", (release.p_value, told)
    asked = {"what": "smoker = 'yes' and ill = 'yes'", "level": 0.9}
    yield (
        "OddsRatioRelease.interval",
        (lambda what, level: release.interval(what, level=level), asked),
    )
    yield "OddsRatioRelease.power", (release.power, {"at": 2.0})
    margins = {"rows": (20, 40), "columns": (21, 39), "noise": test.noise}
    yield "OddsRatioTest", (inference.OddsRatioTest, margins)
    yield "OddsRatioTest.p_value", (test.p_value, {"statistic": 9.0, "w": 1.0})
    yield "OddsRatioTest.interval", (test.interval, {"statistic": 9.0, "level": 0.9})
    yield "OddsRatioTest.power", (test.power, {"alpha": 0.05, "at": 2.0, "w": 1.0})
    yield "OddsRatioTest.decide", (test.decide, {"x11": 14, "alpha": 0.05, "randomness": None})


FAMILIES = (law_calls, tradeoff_calls, release_calls, analyst_calls)

PACKAGES = (
    *("figures", "pairs", "privacy", "ledger", "transport", "tables", "mechanisms", "synthesis"),
    *("inference", "audit", "papers"),
)
# Names of the packages that are not called with hostile arguments, by the reason why not.
EXCUSED: dict[str, str] = {
    "a base, a protocol, a constant or an error: nobody calls it": """
        Adjacency Pairs Scenarios Tradeoff DiscreteTradeoff Mechanism ErrorLaw LevelModel
        RecordModel Model Released CellEstimates Certificate METHODS MODELS UNIVERSES
        InferenceError register""",
    "a result, which the library builds and people read": """
        Limits Statement Sensitivity Composition Conversion Loss Price Description Entry
        EarlierRelease Preview Reassessed Reservation Coupling Distance DistanceBound
        Dominance ShiftedNormal Translation Covariance Design Estimates WholeCounts
        Interval ValuesRelease Combined Diagnostics LocalEstimate LocalSynthesis
        MixtureFit Parameters RecordRisk UtilityReport Coverage Observation
        DrawnTable OddsRatioDecision Estimate EstimateRelease EstimateTable TableTest OneSidedTest
        ProjectionLoss BlackBoxAudit ExactAudit HostilePair
        PropertyInference ObservedOddsRatio Approvals PlanStanding PartedRelease
        Hull Spaces Subspace CompositionOrders""",
    "built by `calibrate`, which is called": """
        CongenialChain CongenialCounts CongenialGaussian CongenialLargest
        CongenialLength KNorm
        KernelGaussian PlainDiscreteGaussian PlainGaussian PlainGeometric PlainLaplace""",
    "takes no argument at all": "Even Largest",
    "built by `calibrate_tables`, `Workload.of`, `share` and `cell_estimates`, called here": """
        MeasuredTables Margin Property ScaledLaw TablesDescription""",
}
