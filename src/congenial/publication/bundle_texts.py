"""The files of a bundle that people read beside the report: README.txt, CITATION.cff, and
published.csv, which `congenial publish` writes beside the plan too.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import chain, product

import numpy as np

from congenial._version import __version__
from congenial.data.text_files import is_formula, rows_csv
from congenial.figures.figures import Figures
from congenial.mechanisms.released import Released
from congenial.privacy.guarantee import Guarantee
from congenial.report.release_page import in_short
from congenial.report.render import page

PUBLISHED_COLUMNS = ("figure", "for", "value", "because", "relation")
RELATIONS = {"=": "exactly", ">=": "at least", "<=": "at most"}  # in published.csv


def published_csv(published: Figures) -> str:
    """`published_rows` as CSV; the last column only where there are bounds to tell from figures."""
    columns = 5 if any(statement.limit for statement in published.told) else 4
    rows = chain([PUBLISHED_COLUMNS], published_rows(published))
    return rows_csv(row[:columns] for row in rows)


def published_rows(published: Figures) -> Iterator[tuple[str, str, int, str, str]]:
    """Published figures and public bounds, one for each cell of their axes: label, the levels,
    value, legal ground, and whether it is exact or a bound.
    """
    rows = zip(published.told, published.told_values, strict=True)
    for statement, values in rows if published.values is not None else ():
        axes = published.schema.axes(statement.by)
        relation = RELATIONS.get(statement.relation)
        if statement.bound is not None:
            values = np.full([len(axis.levels) for axis in axes], statement.bound)
        if values is None or relation is None:
            continue
        cells = product(*(axis.levels for axis in axes))
        for levels, value in zip(cells, values.reshape(-1).tolist(), strict=True):
            pairs = zip(axes, levels, strict=True)
            cell = "; ".join(f"{axis.name} = {level}" for axis, level in pairs)
            yield statement.label, cell, value, statement.because, relation


def readme(release: Released, promise: str) -> str:
    """README.txt: the promise, the files, how to begin."""
    about, title = release.schema.about, release.name
    sentences = [*in_short(release.guarantee, promise), ("How strong", strength(release.guarantee))]
    return page(
        "readme.txt",
        publishable=release.publishable,
        randomness=release.randomness,
        title=f"{about.title} ({title})" if about.title else title,
        name=release.name,
        quote=about.quote,
        about=about.told,
        promised=sentences,
        promise=promise,
        files=release.contents,
        columns=_columns(release),
        counts_words=getattr(release, "counts_words", ""),
        usage=release.usage,
        apostrophes=_has_formulas(release),
    )


COLUMNS = {
    "count": "the number to quote, with its interval; counts of all tables agree",
    "estimate": "for analysis, and for sums that no table shows; may be negative",
    "sd": "standard deviation of the estimate",
    "low_90": "lower end of the 90 % interval",
    "high_90": "upper end of the 90 % interval",
    "reliability": "",  # by the limits of the plan
    "count_as_drawn": "the raw noisy value of one table, for specialists; do not quote it",
    "sum": "the number to quote, with its interval; sums of all tables agree",
    "shifted_sum_as_drawn": "the raw noisy sum of the number minus its shift, for specialists",
    "sum_as_drawn": "the raw noisy value of one table, for specialists; do not quote it",
}


def _columns(release: Released) -> list[tuple[str, str]]:
    """What the numbers in files of tables are."""
    if release.kind != "tables":
        return []
    contents = " ".join(what for _, what in release.contents)
    contents = contents.replace("high_90", "high_90, reliability")  # in CSV files only
    meanings = COLUMNS | {"reliability": release.schema.about.reliability.words}
    return [(name, what) for name, what in meanings.items() if re.search(rf"\b{name}\b", contents)]


def _has_formulas(release: Released) -> bool:
    """Whether some text in its CSV files looks like a formula, and is not there as it was."""
    statements = release.everything.told
    texts = [*getattr(release, "statistics", ()), *(statement.label for statement in statements)]
    texts += [statement.because for statement in statements]
    for attribute in release.schema.attributes:
        texts += [attribute.name, *attribute.levels, *attribute.coarser]
        texts += [label for labels in attribute.coarser.values() for label in labels]
    return any(map(is_formula, texts))


def strength(guarantee: Guarantee) -> str:
    """The number of a promise, and how to read it."""
    return (
        f"{guarantee.tradeoff.words} {guarantee.adjacency.subject}. The smaller this number, the "
        "stronger the protection. Several releases about the same people count together."
    )


def _abstract(release: Released) -> str:
    """What was released and what is promised, in short, and the papers behind it."""
    guarantee = release.guarantee
    promised = (f"{name}: {sentence}" for name, sentence in guarantee.in_short.items())
    source = f" Method: {guarantee.citation}." if guarantee.citation else ""
    return " ".join(promised) + source


def citation(release: Released, created: str) -> str:
    """CITATION.cff; `created` is when the bundle was made, as release.json says."""
    about = release.schema.about
    title = ", ".join(part for part in (about.title or release.name, about.date) if part)
    return f"""cff-version: 1.2.0
message: If you use this release, please cite it and the software that protected it.
title: {json.dumps(f"{title}: protected {release.kind}")}
type: dataset
date-released: {created[:10]}
authors:
  - name: {json.dumps(about.agency) if about.agency else "The publisher of this folder"}
references:
  - type: software
    title: Congenial
    version: {json.dumps(__version__)}
    authors:
      - name: The Congenial developers
abstract: {json.dumps(_abstract(release))}
"""
