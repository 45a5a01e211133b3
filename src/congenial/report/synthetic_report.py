"""The report of synthetic records: the promise, the models, the columns, how to analyse copies.

Everything on the page is public: no number of it was computed from the confidential records.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from congenial._version import __version__
from congenial.data.csv_text import neutral
from congenial.privacy.rounding_words import number
from congenial.privacy.semantics import belief_words
from congenial.report.page import (
    LARGEST_TABLE,
    PageColumn,
    counted,
    folded_table,
    page,
    section,
    table,
    text,
)
from congenial.report.promise_section import promise_section
from congenial.report.table_report import banner, published_section
from congenial.synthesis.certified import Synthesizer
from congenial.synthesis.synthetic_release import (
    DICTIONARY,
    SyntheticRelease,
    dictionary_rows,
    type_of,
)

CONTENTS = (
    ("exact", "Published exactly"),
    ("promise", "The promise"),
    ("models", "The models"),
    ("columns", "The columns"),
    ("use", "How to use it"),
)
SETTLED = "none: its totals are published, and its values follow from them"
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
    return page(
        f"{release.name}: synthetic records",
        [
            banner(release),
            _opening(release),
            published_section(release),
            _promise(release, promise),
            _models(release),
            _columns(release),
            _use(release),
            f'<footer class="soft">Written by congenial {text(__version__)}. This page loads '
            "nothing from a network and shows released and public values only.</footer>",
        ],
    )


def _opening(release: SyntheticRelease) -> str:
    links = "".join(f'<li><a href="#{anchor}">{text(title)}</a></li>' for anchor, title in CONTENTS)
    rows = counted(release.copies[0].num_rows, "synthetic record")
    copies = len(release.copies)
    many = f"{rows} in one file" if copies == 1 else f"{copies} files of {rows}"
    public = ", ".join(release.description.law["public"])
    whose = "No row is a real person's."
    if public:
        whose = f"What a row says besides {public}, which is published, is no real person's."
    return (
        f'<header><h1>{text(release.name)}</h1>\n<p class="lead">{text(many)}, drawn from models '
        f"whose parameters are protected with {text(release.guarantee.tradeoff.words)} "
        f"{text(release.guarantee.adjacency.subject)}. "
        f"{text(whose)}</p>\n"
        f"<nav><ul>{links}</ul></nav></header>"
    )


def _promise(release: SyntheticRelease, promise: str) -> str:
    law = release.description.law
    return promise_section(
        release.guarantee,
        promise,
        lead=f"<p>{text(belief_words(release.guarantee))}</p>",
        rows=[
            ("M, the weight of one record in one copy", law["M"]),
            ("Copies, each of which costs", law["copies"]),
            ("Per replaced record, all copies", f"epsilon = {number(release.description.epsilon)}"),
            ("Numerics", "none to add: the parameters are drawn exactly"),
        ],
    )


def _models(release: SyntheticRelease) -> str:
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
    copied = ""
    if law["public"]:
        copied = (
            f"<p>Copied from the data as they are, because their table is published: "
            f"{text(', '.join(law['public']))}.</p>"
        )
    return section(
        "models",
        "The models",
        "<p>Columns are drawn one after another. The parameters of each model were drawn once per "
        "copy from a weighted posterior on Theta, a finite set that was fixed in advance; a record "
        "weighs less the more it could say.</p>",
        table(columns, rows),
        copied,
        "<p>What no model speaks of is not in the files: relations between columns that are not "
        "given each other, and shapes that no parameter in Theta has.</p>",
    )


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


def _columns(release: SyntheticRelease) -> str:
    rows = dictionary_rows(release.schema, release.copies[0].column_names)
    columns = [
        PageColumn(title) for title in ("column", "type", "level", "from", "below", "written")
    ]
    return section(
        "columns",
        "The columns",
        folded_table(columns, rows[:LARGEST_TABLE], len(rows), DICTIONARY),
    )


def _use(release: SyntheticRelease) -> str:
    copies = len(release.copies)
    code = ONE if copies == 1 else SEVERAL.format(values=_values(release))
    advice = (
        "<p>One copy gives estimates and no intervals: that the parameters were drawn is an error "
        "that a single file cannot show.</p>"
        if copies == 1
        else "<p>The estimate is the mean over copies; its variance is the mean of their variances "
        "plus the variance between copies divided by their number. Intervals do not cover the bias "
        "that models and weights leave.</p>"
    )
    return section(
        "use",
        "How to use it",
        f"<pre><code>{text(code)}</code></pre>",
        advice,
        "<p>Other programs read the Parquet files as they are. CSV has no types, so tell a reader "
        "what is text (a category may be called NA, T or 01); empty fields are missing values. "
        "<code>dictionary.csv</code> has every column and level. In R and in pandas:</p>",
        f"<pre><code>{text(in_r(release))}</code></pre>",
        f"<pre><code>{text(in_pandas(release))}</code></pre>",
        "<pre><code>congenial verify this-folder --digest DIGEST</code></pre>",
    )


def _values(release: SyntheticRelease) -> str:
    """Something to estimate: the mean of a number, or the share of a category."""
    names = release.copies[0].column_names
    numbers = [name for name in names if _is_number(release, name)]
    if numbers:
        return f"frame[{numbers[-1]!r}].dropna()"
    return f"frame[{names[-1]!r}] == {release.schema.attribute(names[-1]).levels[0]!r}"


def _is_number(release: SyntheticRelease, name: str) -> bool:
    return release.schema.attribute(name).kind != "categorical"


def in_r(release: SyntheticRelease) -> str:
    """How R reads a copy without surprises: every column's class, and only empty is missing."""
    kinds = {True: "numeric", False: "character"}
    classes = ", ".join(
        f'{json.dumps(neutral(name), ensure_ascii=False)} = "{kinds[_is_number(release, name)]}"'
        for name in release.copies[0].column_names
    )
    return (
        f'read.csv("synthetic-1.csv", colClasses = c({classes}), na.strings = "", '
        'check.names = FALSE, encoding = "UTF-8")'
    )


def in_pandas(release: SyntheticRelease) -> str:
    """The same for pandas, where whole numbers with missing values need a type that has them."""
    kinds = {"text": "str", "whole number": "Int64", "number": "float64"}
    types = {
        neutral(name): kinds[type_of(release.schema.attribute(name))]
        for name in release.copies[0].column_names
    }
    return (
        f'pandas.read_csv("synthetic-1.csv", dtype={types!r}, keep_default_na=False, '
        'na_values=[""])'
    )
