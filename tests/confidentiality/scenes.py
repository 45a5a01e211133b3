"""A plan of each kind over data full of markers, and ways for such data to be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from tests.confidentiality.scan import ANSWER, ASIDE, COUNT, IDENTIFIER, NUMBER

SEED = 41
Columns = dict[str, Any]

TABLE = """
[data]
source = "people.parquet"
unit = "id"
[schema]
county = { levels = ["A", "B", "C"] }
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
[[release]]
name = "made"
table = ["county", "sex", "age"]
epsilon = 0.1
nonnegative = "project"
[budget]
epsilon = 2
delta = 1e-6
"""

STATISTICS = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { integers = [0, 109] }
[[release]]
name = "made"
statistics = { "mean age" = { mean = "age" } }
protect = { share = "sex = 'f'", between = 0.25, and = 0.35 }
modelling = "modelling.csv"
records = 200
replications = 120
epsilon = 1
delta = 0.001
persons = "not protected"
[budget]
epsilon = 3
delta = 1e-6
"""

SYNTHETIC = """
[data]
source = "people.csv"
unit = "id"
[schema]
county = { levels = ["A", "B", "C"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, by = ["county"], because = "statute" }
[[release]]
name = "made"
epsilon = 8
copies = 1
[release.model]
county = { floor = 0.02 }
age = { floor = 0.02 }
[budget]
epsilon = 10
"""

PARTIAL = SYNTHETIC.replace("county = { floor = 0.02 }\n", "").replace(
    "epsilon = 8\n", 'M = 0.5\npublic = ["county"]\n'
)

SEX_BY_AGE = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18, 65], top = "65+" }
[publish]
"Population" = { total = true, because = "statute" }
"""

GIVEN = (
    SEX_BY_AGE
    + """
[[release]]
name = "made"
table = ["sex", "age"]
scenarios = { believe = "independent records" }
given = ["last year's table"]
base_measure = { prior = "earlier.csv", alpha = 0.1, kappa = 0.5 }
epsilon = 0.1
[budget]
epsilon = 2
"""
)
EARLIER = {"sex": list("fffmmm"), "age": ["0-17", "18-64", "65+"] * 2, "count": [60, 9, 0, 7, 5, 1]}

BOUNDED = (
    SEX_BY_AGE
    + """
"Some children" = { count = "age < 18", at_least = 1, because = "statute" }
[[release]]
name = "made"
table = ["sex", "age"]
epsilon = 1
nonnegative = "condition"
[budget]
epsilon = 2
"""
)

TEST = """
[data]
source = "people.csv"
unit = "id"
[schema]
sex = { levels = ["f", "m"] }
age = { edges = [0, 18], top = "18+" }
[publish]
"By sex" = { total = true, by = ["sex"], because = "statute" }
"By age" = { total = true, by = ["age"], because = "statute" }
[[release]]
name = "made"
test = { odds_ratio = ["sex", "age"], alternative = "two-sided" }
epsilon = 0.1
[budget]
epsilon = 2
"""


def people(n: int) -> Columns:
    """People with every answer; identifiers and a column no plan names are markers."""
    rng = np.random.default_rng(SEED)
    age = rng.integers(0, 90, n)
    return {
        "id": [f"{IDENTIFIER}-{i}" for i in range(n)],
        "county": rng.choice(["A", "B", "C"], n).tolist(),
        "sex": rng.choice(["f", "m"], n).tolist(),
        "age": age.tolist(),
        "aside": [ASIDE] * n,
    }


def many() -> Columns:
    """A cell of `COUNT` people among others, the oldest of whom is `NUMBER`."""
    few = people(600)
    few["age"][0] = NUMBER
    # nobody else in that cell, which no published figure shows: count it exactly
    extra = {"county": ["A"] * COUNT, "sex": ["f"] * COUNT, "age": [30] * COUNT}
    keep = [
        i
        for i in range(600)
        if (few["county"][i], few["sex"][i]) != ("A", "f") or not 18 <= few["age"][i] < 65
    ]
    rows = {name: [few[name][i] for i in keep] for name in ("county", "sex", "age")}
    columns = {name: rows[name] + extra[name] for name in rows}
    n = len(columns["age"])
    return {"id": [f"{IDENTIFIER}-{i}" for i in range(n)], **columns, "aside": [ASIDE] * n}


@dataclass(frozen=True)
class Scene:
    """A plan, its data, and the commands that such a plan is for."""

    kind: str
    plan: str
    columns: Callable[[], Columns]
    commands: tuple[tuple[str, ...], ...]

    def write(
        self,
        folder: Path,
        change: Callable[[Columns], None] = lambda _: None,
        others: Callable[[Columns], None] = lambda _: None,
    ) -> Path:
        """The plan beside its data, which are in a folder of their own; `change` them, and the
        `others` in modelling data, first.
        """
        data = folder / "data"
        data.mkdir(parents=True)
        columns = self.columns()
        change(columns)
        name = "people.parquet" if "people.parquet" in self.plan else "people.csv"
        save(columns, data / name)
        if "modelling.csv" in self.plan:
            other = people(900)
            other["id"] = [f"other-{i}" for i in range(900)]
            others(other)
            save(other, data / "modelling.csv")
        if "earlier.csv" in self.plan:
            save(EARLIER, data / "earlier.csv")
        path = folder / "run" / "plan.toml"
        path.parent.mkdir()
        text = self.plan
        for file in (name, "modelling.csv", "earlier.csv"):
            text = text.replace(f'"{file}"', f'"../data/{file}"')
        path.write_text(text)
        return path

    @property
    def seeded(self) -> bool:
        """Whether it is drawn from a seed, and not for publication."""
        return SEEDED in self.commands


def save(columns: Columns, path: Path) -> None:
    """CSV or Parquet, by the name."""
    table = pa.table(columns)
    pq.write_table(table, path) if path.suffix == ".parquet" else pa_csv.write_csv(table, path)


# Placeholders: the plan, its data, and the folder RUN that the plan is in.
BUNDLE = "RUN/bundles/made"
SEEDED = ("release", "PLAN", "--seed", str(SEED))  # so that noise of zero is no accident
FEW_DRAWS = ("--draws", "400", "--pairs", "1", "--seed", "1")
CURVE = ("curve", "PLAN", "--replicates", "1", "--bounds", "1")
SCENES = (
    Scene(
        "table",
        TABLE,
        many,
        (
            ("init", "DATA", "--out", "RUN/draft.toml"),
            ("check", "PLAN"),
            ("audit", "PLAN", *FEW_DRAWS),
            ("publish", "PLAN"),
            ("check", "PLAN", "--suppose", "sex = 'f'", "--json"),
            SEEDED,
            ("audit", BUNDLE, *FEW_DRAWS, "--out", "RUN/audit"),
            ("infer", BUNDLE, "--model", "poisson", "--set", "draws=400", "--set", "seed=1"),
        ),
    ),
    Scene(
        "statistics",
        STATISTICS,
        lambda: people(200),
        (
            ("check", "PLAN"),
            ("audit", "--property", "PLAN", "--repetitions", "2", "--seed", "1"),
            ("release", "PLAN", "--json"),
        ),
    ),
    Scene(
        "synthetic",
        SYNTHETIC,
        lambda: people(400),
        (
            ("check", "PLAN"),
            ("publish", "PLAN"),
            ("release", "PLAN"),
            ("utility", "PLAN"),
            CURVE,
        ),
    ),
    Scene(
        "values",
        GIVEN,
        many,
        (("check", "PLAN"), ("publish", "PLAN"), SEEDED),  # inferring is slow with counts so large
    ),
    Scene(
        "partial",
        PARTIAL,
        lambda: people(400),
        (("check", "PLAN"), ("publish", "PLAN"), ("release", "PLAN"), ("utility", "PLAN"), CURVE),
    ),
    Scene(
        "test",
        TEST,
        lambda: people(400),
        (("check", "PLAN"), ("publish", "PLAN"), ("check", "PLAN", "--json"), ("release", "PLAN")),
    ),
    Scene(
        "bounded",
        BOUNDED,
        lambda: people(12),
        (
            ("publish", "PLAN"),
            ("check", "PLAN"),
            ("audit", "PLAN", *FEW_DRAWS),
            SEEDED,
            ("audit", BUNDLE, *FEW_DRAWS),
        ),
    ),
)
COMMON = (
    ("explain", "PLAN"),
    ("explain", BUNDLE, "--json"),
    ("ledger", "show", "PLAN"),
    ("ledger", "pending", "PLAN"),
    ("ledger", "export", "PLAN", "--json"),
    ("reassess", "PLAN"),
    ("release", "PLAN"),  # refused: it is there
)


# ---- data that are wrong -------------------------------------------------------------------------


def put(column: str, value: object) -> Callable[[Columns], None]:
    """The third record has another answer; a column of numbers becomes text if it must."""

    def change(columns: Columns) -> None:
        values = columns[column]
        values[2] = value
        if isinstance(value, str) and not isinstance(values[0], str):
            columns[column] = [None if v is None else str(v) for v in values]

    return change


def twice(columns: Columns) -> None:
    columns["id"][3] = columns["id"][2]


def unnamed(columns: Columns) -> None:
    """The column is there under another name, which is a marker."""
    columns[ANSWER] = columns.pop("age")


WRONG: dict[str, Callable[[Columns], None]] = {
    "level": put("sex", ANSWER),
    "number": put("age", -NUMBER),
    "text": put("age", ANSWER),
    "missing": put("age", None),
    "twice": twice,
    "unnamed": unnamed,
}
