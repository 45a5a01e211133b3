"""Small plans that between them ask for every kind of release, mechanism and promise, and made-up
data for them.
"""

from __future__ import annotations

import csv
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

from congenial.publication import workflow
from congenial.publication.plan import Plan

Row = Sequence[object]

_PEOPLE = """
[data]
source = "people.csv"
unit = "id"
[schema]
county = { levels = ["A", "B", "C"], within = { state = ["X", "X", "Y"] } }
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
"""
_BUDGET = """
[budget]
epsilon = 40
delta = 1e-6
"""
_NESTED = """
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
"Children" = { count = "age < 18", by = ["county"] }
"""
_CROSSING = """
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
"Age and sex" = { margin = ["sex", "age"] }
"""
_TWO_MARGINS = """
[publish]
"Population" = { margin = ["county"] }
"Ages" = { margin = ["age"] }
"""
_ENTANGLED = """
[publish]
"County and sex" = { margin = ["county", "sex"] }
"County and age" = { margin = ["county", "age"] }
"Sex and age" = { margin = ["sex", "age"] }
"""
_BOUNDS = """
[publish]
"Population" = { total = true }
"Adults" = { count = "age >= 18" }
"Few old" = { count = "age >= 65", at_most = 30 }
"Some in A" = { count = "county = 'A'", at_least = 3 }
"No old men in C" = { structural_zeros = "county = 'C' and sex = 'm' and age >= 65" }
"""
_WEIGHTED = """
[publish]
"Places" = { linear = { "age < 18" = 2, "age >= 65" = 1 }, by = ["county"] }
"""


def _table(name: str, promise: str, table: str = '"county", "sex", "age"') -> str:
    return f'[[release]]\nname = "{name}"\ntable = [{table}]\n{promise}\n'


_PLAIN_RELEASES = (
    _table("auto", "epsilon = 0.5"),
    _table("geometric", 'epsilon = 0.5\nmechanism = "plain_geometric"\nnonnegative = "no"'),
    _table("projected", 'epsilon = 0.25\nnonnegative = "project"', '"state", "age"'),
    _table("conditioned", 'epsilon = 0.5\nnonnegative = "condition"', '"sex", "age"'),
    _table("discrete-gaussian", 'rho = 0.1\nmechanism = "plain_discrete_gaussian"'),
    _table("approximate", "epsilon = 1\ndelta = 1e-6"),
    _table("laplace", 'epsilon = 0.5\nmechanism = "plain_laplace"'),
    _table("gaussian", 'mu = 0.5\nmechanism = "plain_gaussian"'),
)
_NESTED_RELEASES = (
    _table("auto", 'epsilon = 0.5\nbasis = "theorem"'),
    _table("projected", 'epsilon = 0.25\nnonnegative = "project"'),
    _table("conditioned", 'epsilon = 1\nnonnegative = "condition"'),
    _table("rho", "rho = 0.1"),
    _table("approximate", "epsilon = 1\ndelta = 1e-6"),
    _table("kernel", 'mu = 0.5\nmechanism = "kernel_gaussian"'),
)
_CROSSING_RELEASES = (
    _table("auto", "epsilon = 0.5"),
    _table("projected", 'epsilon = 0.5\nnonnegative = "project"'),
    _table("conditioned", 'epsilon = 1\nnonnegative = "condition"'),
    _table("rho", "rho = 0.1"),
    _table("kernel", 'mu = 0.5\nmechanism = "kernel_gaussian"'),
)
_TWO_MARGINS_RELEASES = (
    _table("auto", "epsilon = 0.5", '"county", "age"'),
    _table("knorm", 'epsilon = 0.5\nmechanism = "knorm"', '"county", "age"'),
    _table("conditioned", 'epsilon = 1\nnonnegative = "condition"', '"county", "age"'),
    _table("rho", "rho = 0.1", '"county", "age"'),
    _table("approximate", "epsilon = 1\ndelta = 1e-6", '"county", "age"'),
)
_ENTANGLED_RELEASES = (
    _table("chain", 'epsilon = 1\nmechanism = "congenial_chain"'),
    _table("kernel", 'mu = 0.5\nmechanism = "kernel_gaussian"'),
)
_BOUNDS_RELEASES = (
    _table("projected", 'epsilon = 0.5\nnonnegative = "project"'),
    _table("conditioned", 'epsilon = 1\nnonnegative = "condition"'),
)

TABLES = {
    "plain": _PEOPLE + "".join(_PLAIN_RELEASES) + _BUDGET,
    "nested": _PEOPLE + _NESTED + "".join(_NESTED_RELEASES) + _BUDGET,
    "crossing": _PEOPLE + _CROSSING + "".join(_CROSSING_RELEASES) + _BUDGET,
    "two-margins": _PEOPLE + _TWO_MARGINS + "".join(_TWO_MARGINS_RELEASES) + _BUDGET,
    "entangled": _PEOPLE + _ENTANGLED + "".join(_ENTANGLED_RELEASES) + _BUDGET,
    "bounds": _PEOPLE + _BOUNDS + "".join(_BOUNDS_RELEASES) + _BUDGET,
    "weighted": _PEOPLE + _WEIGHTED + _table("auto", "epsilon = 0.5") + _BUDGET,
    "several-rows": _PEOPLE.replace('unit = "id"', 'unit = "household"\nmax_rows = 4')
    + _table("auto", "epsilon = 0.5")
    + _table("rho", "rho = 0.1")
    + _BUDGET,
    "rho-budget": _PEOPLE + _NESTED + _table("rho", "rho = 0.1") + "[budget]\nrho = 0.5\n",
}

_GIVEN = """
[data]
source = "people.csv"
unit = "id"
[schema]
county = { levels = ["A", "B", "C"] }
sex = { levels = ["f", "m"] }
[publish]
"Cases" = { total = true, because = "bulletin" }
"""
_BELIEF = 'scenarios = { believe = "independent records" }\nepsilon = 1'
_PRIOR = 'base_measure = { prior = "earlier.csv", alpha = 0.1, kappa = 0.5 }'
_DISTANCE = 'scenarios = { distance = 2, because = "assumed" }\nepsilon = 1'
_GIVEN_RELEASES = (
    _table("sums", _BELIEF, '"county"'),
    _table("prior", f'{_BELIEF}\n{_PRIOR}\ngiven = ["July\'s cases"]', '"county"'),
    _table("naive", f'{_BELIEF}\nbase_measure = "naive"', '"county", "sex"'),
)
VALUES = {
    "given-public": _GIVEN + "".join(_GIVEN_RELEASES) + _BUDGET,
    "assumed-distance": _GIVEN + _table("assumed", _DISTANCE, '"county"') + _BUDGET,
    "squared-loss": _GIVEN + _table("chain", f'{_DISTANCE}\nloss = "l2"', '"county"') + _BUDGET,
}

_STATISTICS = """
[data]
source = "patients.csv"
unit = "patient"
[schema]
ward = { levels = ["oncology", "other"] }
age = { integers = [0, 109] }
readmitted = { levels = ["no", "yes"] }
[[release]]
name = "quarter"
statistics = { "mean age" = { mean = "age" }, "again" = { count = "readmitted = 'yes'" } }
protect = { share = "ward = 'oncology'", between = 0.25, and = 0.35 }
modelling = "modelling.csv"
records = 60
replications = 60
epsilon = 1
delta = 0.01
"""
_UNPROTECTED = 'persons = "not protected"\n'
_PROTECTED = "persons = { epsilon = 2, delta = 1e-6 }\n"
_DISTRIBUTION = (
    "wasserstein",
    "approximate_wasserstein",
    "bounded_wasserstein",
    "expected_laplace",
    "expected_gaussian",
    "directional_laplace",
    "directional_gaussian",
    "eigenvector",
    "uncertain_direction",
    "optimum",
)


def _statistics(mechanism: str, persons: str) -> str:
    return f'{_STATISTICS}mechanism = "{mechanism}"\n{persons}' + _BUDGET


STATISTICS = {
    f"statistics-{name.replace('_', '-')}": _statistics(name, _UNPROTECTED)
    for name in _DISTRIBUTION
} | {
    "statistics-persons": _statistics("optimum", _PROTECTED),
    "statistics-edges": _statistics("optimum", _PROTECTED).replace(
        "integers = [0, 109]", "edges = [0, 18, 65, 110]"
    ),
}

_SYNTHETIC = """
[data]
source = "records.csv"
unit = "id"
[schema]
region = { levels = ["north", "south", "west"] }
kids = { integers = [0, 6], missing = "unknown" }
ill = { integers = [0, 4] }
income = { edges = [-100, 0, 1, 50, 200, 900], bottom = "below", top = "900+" }
rent = { edges = [0, 10, 40, 100], top = "100+" }
"""
_BY_REGION = """
[publish]
"By region" = { total = true, by = ["region"], because = "statute" }
"""
_MODELS = """
[[release]]
name = "people"
PROMISE
[release.model]
region = { floor = 0.02 }
kids = { kind = "spike", level = "unknown", model = "poisson", given = ["region"] }
ill = { kind = "binomial", trials = 4 }
income = { kind = "normal", scale = "root", share = 2 }
rent = { kind = "regression", given = ["income"], scale = "log" }
[release.theta]
kids = { share = [0.01, 0.3, 4], model = { mean = [0.2, 5.0, 10] } }
ill = { share = [0.05, 0.5, 6] }
income = { mean = [0, 30, 7], sd = [2, 15, 5] }
rent = { coefficients = [[1, 4, 4], [-0.1, 0.1, 3]], sd = [0.3, 1, 3] }
"""
_PARTIAL = _MODELS.replace("region = { floor = 0.02 }\n", "")
SYNTHETIC = {
    "synthetic": _SYNTHETIC
    + _BY_REGION
    + _MODELS.replace("PROMISE", 'epsilon = 8\ncopies = 2\nbasis = "theorem"')
    + _BUDGET,
    "synthetic-plain": _SYNTHETIC + _MODELS.replace("PROMISE", "M = 1\nrecords = 20") + _BUDGET,
    "synthetic-partial": _SYNTHETIC
    + _BY_REGION
    + _PARTIAL.replace("PROMISE", 'M = 0.5\npublic = ["region"]')
    + _BUDGET,
    "synthetic-several-rows": _SYNTHETIC.replace('unit = "id"', 'unit = "household"\nmax_rows = 3')
    + _MODELS.replace("PROMISE", "epsilon = 8\nrecords = 25")
    + _BUDGET,
}

PLANS = TABLES | VALUES | STATISTICS | SYNTHETIC


# ---- made-up data ----


def _save(path: Path, header: Row, rows: Iterator[Row] | Sequence[Row]) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([header, *rows])


def write_data(folder: Path) -> None:
    """A few people, patients and records; the same on every run."""
    made = random.Random(7)
    people = [
        (i, i // 3, made.choices("ABC", (5, 3, 2))[0], sex, age)
        for i in range(60)
        for sex, age in [(made.choice("fm"), made.randrange(64))]
    ]
    people += [(60 + i, 20 + i, made.choice("AB"), made.choice("fm"), 70) for i in range(6)]
    _save(folder / "people.csv", ("id", "household", "county", "sex", "age"), people)
    _save(folder / "earlier.csv", ("county", "count"), [("A", 31), ("B", 20), ("C", 0)])
    for name, first, many in (("patients", 0, 60), ("modelling", 1000, 400)):
        rows = [_patient(made, first + i) for i in range(many)]
        _save(folder / f"{name}.csv", ("patient", "ward", "age", "readmitted"), rows)
    records = [_record(made, i) for i in range(40)]
    header = ("id", "household", "region", "kids", "ill", "income", "rent")
    _save(folder / "records.csv", header, records)


def _patient(made: random.Random, number: int) -> Row:
    sick = made.random() < 0.3
    age = min(max(int(made.gauss(64 if sick else 52, 16)), 0), 109)
    again = made.random() < (0.4 if sick else 0.15)
    return number, "oncology" if sick else "other", age, "yes" if again else "no"


def _record(made: random.Random, number: int) -> Row:
    kids = "" if made.random() < 0.1 else min(int(made.expovariate(0.7)), 6)
    income = round(made.gammavariate(1.2, 150)) - 20
    region = made.choices(("north", "south", "west"), (5, 3, 2))[0]
    return number, number // 2, region, kids, made.randrange(3), income, made.randrange(5, 90)


def write_plan(folder: Path, name: str) -> Plan:
    """A plan of `PLANS` with its data beside it."""
    write_data(folder)
    (folder / "plan.toml").write_text(PLANS[name])
    return Plan.load(folder / "plan.toml")


def released(folder: Path, name: str) -> None:
    """Publish the figures of a plan and draw all of its releases."""
    plan = write_plan(folder, name)
    if plan.publish:
        workflow.publish(plan)
    for section in plan.release:
        workflow.release(plan, section.name)
