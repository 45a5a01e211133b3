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

from tests.confidentiality.plans import (
    BOUNDED,
    ESTIMATE,
    GIVEN,
    PARTED,
    PARTIAL,
    QUANTILES,
    RECORDS,
    SEVERAL,
    STATISTICS,
    SYNTHETIC,
    TABLE,
    TEST,
)
from tests.confidentiality.scan import ANSWER, ASIDE, COUNT, IDENTIFIER, NUMBER

SEED = 41
Columns = dict[str, Any]

EARLIER = {"sex": list("fffmmm"), "age": ["0-17", "18-64", "65+"] * 2, "count": [60, 9, 0, 7, 5, 1]}


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
        return any(one[0] == "release" and "--seed" in one for one in self.commands)


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
    Scene(
        "tables",
        SEVERAL,
        many,
        (
            ("check", "PLAN"),
            ("publish", "PLAN"),
            ("check", "PLAN", "--suppose", "sex = 'f'", "--json"),
            SEEDED,
            ("estimate", BUNDLE, "--of", "share(sex = 'f') by county"),
            ("export", BUNDLE, "--to", "datapackage", "--out", "RUN/exported"),
        ),
    ),
    Scene(
        "parted",
        PARTED,
        many,
        (
            ("check", "PLAN"),
            ("publish", "PLAN"),
            ("check", "PLAN", "--json"),
            ("release", "PLAN", "--seed", "20261118"),  # no printed number is the true one
        ),
    ),
    Scene(
        "records",
        RECORDS,
        lambda: people(400),
        (("check", "PLAN"), ("publish", "PLAN"), SEEDED),
    ),
    Scene(
        "quantiles",
        QUANTILES,
        lambda: people(400),
        (("check", "PLAN"), ("publish", "PLAN"), SEEDED),
    ),
    Scene(
        "estimate",
        ESTIMATE,
        lambda: people(400),
        (("check", "PLAN"), ("check", "PLAN", "--json"), ("release", "PLAN", "--json")),
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
