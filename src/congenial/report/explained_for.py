"""A bundle in the words of the person who reads it: analyst, journalist, privacy engineer.

Every number comes from the bundle: the law of its noise, its figures, its promise. The words are
`words/explain_journalist.txt` and its siblings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from congenial.errors import BundleError
from congenial.mechanisms.drawn_table import of_persons
from congenial.mechanisms.measured_tables import whose_number
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.released import LEVEL
from congenial.mechanisms.tables_files import said
from congenial.mechanisms.tables_release import TablesRelease
from congenial.report.release_page import in_short
from congenial.report.words import blocks, sections

Facts = dict[str, Any]


def explained_for(release: Any, reader: str, promise: str = "") -> dict[str, str]:
    """What this reader has to know about a bundle: headings and texts. `promise` is the paragraph
    that the bundle states, with what all releases together promise.
    """
    if reader not in _READERS:
        raise BundleError(
            f"there is no reader '{reader}'.", remedy=f"Use one of {', '.join(_READERS)}."
        )
    summed = isinstance(release, TablesRelease) and release.description.magnitude is not None
    facts = {"margins": _margins(release), "summed": summed} | _READERS[reader](release)
    facts["in_short"] = dict(in_short(release.guarantee, promise))
    written = blocks(f"explain_{reader}.txt", release=release, **facts)
    return {
        heading: " ".join(getattr(block, "text", "") for block in texts)
        for heading, texts in sections(written)
    }


def _margins(release: Any) -> Facts | None:
    """The median half-width over the cells, and over totals by one column; None without a law of
    error that holds for all data.
    """
    if not isinstance(release, TablesRelease) or not release.has_errors:
        return None
    names = release.tables[0]

    def margin(*by: str) -> float:
        reach = float(release.in_units(np.median(release.estimator.reach(by, LEVEL))))
        return reach if reach > 1e-3 else 0.0  # sums that figures imply, but for rounding

    return {"cell": margin(*names), "totals": {name: margin(name) for name in names}}


def _journalist(release: Any) -> Facts:
    tables = getattr(release, "tables", None) or [getattr(release, "table", ())]
    facts: Facts = {"tables": tables}
    if not isinstance(release, TablesRelease):
        return facts
    numbers = [measure.description.magnitude for measure in release.measures]
    whose = [
        magnitude and magnitude.words_of(whose_number(of_persons(release.guarantee)))
        for magnitude in numbers
    ]
    sums = [measure.description.of for measure in release.measures if measure.description.magnitude]
    counted = release.description.magnitude is None
    return facts | {
        "of": ["counts"] * counted + (["sums of " + " and ".join(sums)] if sums else []),
        "measures": [
            {
                "of": measure.description.of if number else "",
                "noun": "sum" if number else "count",
                "margins": _margins(measure),
            }
            for measure, number in zip(release.measures, numbers, strict=True)
        ],
        "nouns": ["count"] * counted + ["sum"] * bool(sums),
        "cut": [words for words in whose if words],
    }


def _analyst(release: Any) -> Facts:
    if not isinstance(release, TablesRelease):
        return {"tables": ()}
    laws = release.description.measured
    return {
        "tables": release.tables,
        "noise": {
            "law": laws[0].law,
            "given_figures": bool(laws[0].support.statements),
            "measured": [(said(law.table), _flat(law.to_dict()["parameter"])) for law in laws],
        },
        "fitted": _fitted(release),
        "question": _question(release),
    }


def _fitted(release: TablesRelease) -> tuple[tuple[str, ...], ...] | None:
    """The tables that whole counts were fitted to in turn; none: to all cells at once."""
    estimator = release.estimator
    if not release.has_errors or release.counts[0] is None:
        return None
    if not isinstance(estimator, OneTable):
        return release.tables
    return () if estimator.order is None else tuple(estimator.fitted_tables)


def _question(release: TablesRelease) -> str:
    axes, number = release.schema.axes(max(release.tables, key=len)), release.description.magnitude
    if number is not None:
        return f"sum({number.column}){f' by {axes[0].name}' if axes else ''}"
    level = axes[-1].levels[0].replace("'", "''")
    by = f" by {axes[0].name}" if len(axes) > 1 else ""
    return f"share({axes[-1].name} = '{level}'){by}"


def _engineer(release: Any) -> Facts:
    description = release.description.to_dict()
    after = "-"
    if isinstance(release, TablesRelease):
        if len(release.drawn) == 1:
            description = description["measured"][0]
        fitted = release.has_errors and any(counts is not None for counts in release.counts)
        after = "whole counts were fitted, from the draw alone" if fitted else "nothing"
    adjacency = release.guarantee.adjacency.to_dict()
    support = getattr(release.description, "support", None)
    return {
        "compared": [words for words in (adjacency["metric"], adjacency.get("reading")) if words],
        "mechanism": [
            f"{key}: {_flat(description[key])}"
            for key in ("mechanism", "family", "law", "parameter")
            if key in description
        ],
        "conditioned_on": [statement.told for statement in support.statements] if support else [],
        "numerics": _flat(description.get("numerics", {})),
        "after": after,
    }


def _flat(value: Any) -> str:
    """Names and values on a line."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{key} = {entry}" for key, entry in value.items())


_READERS: dict[str, Callable[[Any], Facts]] = {
    "analyst": _analyst,
    "journalist": _journalist,
    "engineer": _engineer,
}
