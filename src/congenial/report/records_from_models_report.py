"""The report of synthetic records: the promise, the models, the columns, how to analyse copies.

Everything on the page is public: no number of it was computed from the confidential records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from congenial.data.csv_text import neutral
from congenial.privacy.numbers import number
from congenial.report.page import PageColumn, PageTable, counted, folded_table, table
from congenial.report.release_page import promise_facts, release_page
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.records_from_models_release import (
    DICTIONARY,
    RecordCopies,
    SyntheticRelease,
    dictionary_rows,
    type_of,
)

SETTLED = "none: its totals are published, and its values follow from them"
FIRST_COPY = "synthetic-1.csv"
_OTHER_KEYS = ("kind", "model")

SEVERAL = """import congenial

release = congenial.read("this-folder")


def estimate(frame):
    # a value and its variance, as if the copy were real data
    values = {values}
    return values.mean(), values.var() / len(values)


found = release.combine(estimate)
found.estimate, found.interval(0.95)"""

ONE = """import congenial

release = congenial.read("this-folder")
release.to_pandas(1)"""


def render(release: SyntheticRelease, promise: str) -> str:
    """The report as one HTML document; `promise` is the paragraph printed at release time."""
    law, copies = release.description.law, len(release.copies)
    epsilon = number(release.description.epsilon)
    facts = promise_facts(
        release.guarantee,
        ("M, the weight of one record in one copy", law["M"]),
        ("Copies, each of which costs", law["copies"]),
        ("Per replaced record, all copies", f"epsilon = {epsilon}"),
        ("Numerics", "none to add: the parameters are drawn exactly"),
    )
    return release_page(
        "records_from_models.html",
        release,
        promise,
        rows=counted(release.copies[0].num_rows, "synthetic record"),
        copies=copies,
        public=", ".join(law["public"]),
        promise_facts=facts,
        models=_models(release),
        columns=_columns(release),
        code=ONE if copies == 1 else SEVERAL.format(values=_values(release)),
        in_r=in_r(release, FIRST_COPY),
        in_pandas=in_pandas(release, FIRST_COPY),
    )


def _models(release: SyntheticRelease) -> PageTable:
    law, pairs = release.description.law, release.guarantee.adjacency
    made = Synthesizer.from_dict(pairs, law)  # type: ignore[arg-type]  # of records, as released
    rows = [
        [
            one["name"],
            SETTLED if one["name"] in made.settled else _model_words(one["model"]),
            ", ".join(one["given"]) or "-",
            _weights(one["weighting"]) if kernel.bound else "-",
            number(kernel.bound),
        ]
        for one, kernel in zip(law["columns"], made.kernels, strict=True)
    ]
    columns = [
        PageColumn("column"),
        PageColumn("model and Theta"),
        PageColumn("given"),
        PageColumn("weights"),
        PageColumn("part of M", number=True),
    ]
    return table(columns, rows)


def _weights(weighting: str) -> str:
    return "per record" if weighting == "record" else "one for all"


def _model_words(model: Mapping[str, Any]) -> str:
    """A model and its settings on one line; ranges as low .. high."""
    told = [
        f"{key} {_value_words(value)}"
        for key, value in model.items()
        if key not in _OTHER_KEYS and value is not None
    ]
    inner = f" of {_model_words(model['model'])}" if "model" in model else ""
    return f"{model['kind']}{inner}" + (f": {', '.join(told)}" if told else "")


def _value_words(value: Any) -> str:
    if isinstance(value, Mapping):
        log = ", log scale" if value["spacing"] == "log" else ""
        return f"{value['low']:g} .. {value['high']:g} ({value['points']} points{log})"
    if isinstance(value, list):
        return "; ".join(_value_words(one) for one in value)
    return str(value)


def _columns(release: SyntheticRelease) -> PageTable:
    rows = dictionary_rows(release.schema, release.copies[0].column_names)
    columns = [
        PageColumn(title) for title in ("column", "type", "level", "from", "below", "written")
    ]
    return folded_table(columns, rows, len(rows), DICTIONARY)


def _values(release: SyntheticRelease) -> str:
    """Something to estimate: the mean of a number, or the share of a category."""
    names = release.copies[0].column_names
    numbers = [name for name in names if _is_number(release, name)]
    if numbers:
        return f"frame[{numbers[-1]!r}].dropna()"
    return f"frame[{names[-1]!r}] == {release.schema.attribute(names[-1]).levels[0]!r}"


def _is_number(release: RecordCopies, name: str) -> bool:
    return release.schema.attribute(name).kind != "categorical"


def in_r(release: RecordCopies, file: str) -> str:
    """How R reads a copy without surprises: every column's class, and only empty is missing."""
    kinds = {True: "numeric", False: "character"}
    classes = ", ".join(
        f'{json.dumps(neutral(name), ensure_ascii=False)} = "{kinds[_is_number(release, name)]}"'
        for name in release.copies[0].column_names
    )
    return (
        f'read.csv("{file}", colClasses = c({classes}), na.strings = "", '
        'check.names = FALSE, encoding = "UTF-8")'
    )


def in_pandas(release: RecordCopies, file: str) -> str:
    """The same for pandas, where whole numbers with missing values need a type that has them."""
    kinds = {"text": "str", "whole number": "Int64", "number": "float64"}
    types = {
        neutral(name): kinds[type_of(release.schema.attribute(name))]
        for name in release.copies[0].column_names
    }
    return f'pandas.read_csv("{file}", dtype={types!r}, keep_default_na=False, na_values=[""])'
