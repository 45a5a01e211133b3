"""A bundle in the words of the person who reads it: analyst, journalist, privacy engineer.

Every number comes from the bundle: the law of its noise, its figures, its promise.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from congenial.errors import BundleError
from congenial.mechanisms.one_table import OneTable
from congenial.mechanisms.released import FILE_LEVEL
from congenial.mechanisms.tables_files import said
from congenial.mechanisms.tables_release import TablesRelease

Paragraphs = list[tuple[str, str]]  # heading, text


def explained_for(release: Any, reader: str) -> Paragraphs:
    """What this reader has to know about a bundle; tables are told with their error."""
    if reader not in _READERS:
        raise BundleError(
            f"there is no reader '{reader}'.", remedy=f"Use one of {', '.join(_READERS)}."
        )
    return _READERS[reader](release)


# ---- journalist ----------------------------------------------------------------------------------


def _journalist(release: Any) -> Paragraphs:
    in_short = release.guarantee.in_short
    found = [
        ("What this is", _what(release)),
        ("What is exact", in_short["Exact"]),
        ("What is promised to people", in_short["Protected"]),
        ("What is not covered", in_short["Not covered"]),
    ]
    if _has_error(release):
        cell = _reach(release, release.tables[0])
        found += [
            (
                "How far off a number can be",
                f"Nine times in ten a typical cell is within {cell:,.0f} of the true count. "
                + " ".join(_margin_words(release)),
            ),
            (
                "What you can write",
                f"Numbers far larger than these errors, and differences of cells far larger than "
                f"{2 * cell:,.0f}. Say that the counts carry noise on purpose, to protect people. "
                "Do not write about a cell whose count is smaller than its error, about the "
                "smallest or largest of many small cells, or that a zero means nobody.",
            ),
        ]
    title = release.schema.about.title or release.name
    source = f"{title}. Cite its title, its publisher and the digest that they announced."
    return [*found, ("Where it comes from", source)]


_RECORDS = (
    "Made-up records that resemble the real ones. No row is a real person's: do not look for "
    "anybody in them, and do not report single rows."
)
_KINDS = {
    "synthetic records": _RECORDS,
    "records from tables": _RECORDS,
    "statistics": "Statistics that were changed at random, so that they do not give away the "
    "properties of the data that the promise below names.",
    "odds ratio test": "The result of a statistical test. The count behind it was changed at "
    "random, to protect people, and the test allows for that.",
    "estimate": "The result of a calculation that was changed at random, to protect people.",
}


def _what(release: Any) -> str:
    """What was released, without a file name."""
    if release.kind in _KINDS:
        return _KINDS[release.kind]
    tables = getattr(release, "tables", None) or [getattr(release, "table", ())]
    listed = "; ".join(f"by {', '.join(names)}" if names else "in all" for names in tables)
    exact = "Some sums are exact; every other" if release.published.equalities else "Every"
    size = " How far off the numbers may be is known." if _has_error(release) else ""
    return f"Counts {listed}. {exact} number was changed at random, to protect people.{size}"


def _margin_words(release: TablesRelease) -> list[str]:
    return [
        f"A total by {name} is within {reach:,.0f}." if reach else f"Totals by {name} are exact."
        for name in release.tables[0]
        for reach in [_reach(release, (name,))]
    ]


# ---- analyst -------------------------------------------------------------------------------------


def _analyst(release: Any) -> Paragraphs:
    found: Paragraphs = [("Files", "; ".join(f"{n}: {what}" for n, what in release.contents))]
    if not isinstance(release, TablesRelease):
        return [*found, ("Begin with", "; ".join(release.usage)), _promise(release)]
    found.append(("The noise", _noise(release)))
    if release.has_errors and release.counts[0] is not None:
        found.append(("Which column", f"Infer from `estimate`: it is unbiased. {_fit(release)}."))
    found.append(("What is known", release.guarantee.published_clause()))
    if _has_error(release):
        found += [("Ask", _questions(release)), ("Beware", _BEWARE)]
    else:
        found.append(("Ask", "The error depends on the data: `congenial infer` uses the density."))
    return [*found, _promise(release)]


def _fit(release: TablesRelease) -> str:
    """How `count` was made, and what it is good for."""
    estimator = release.estimator
    if isinstance(estimator, OneTable) and estimator.order is None:
        return (
            "`count` is the nearest table of whole counts that are not negative and have the "
            "published sums; its other sums over many small cells tend to be too large"
        )
    tables = estimator.fitted_tables if isinstance(estimator, OneTable) else release.tables
    listed = ", then ".join(" x ".join(names) or "total" for names in tables)
    return (
        "`count` was fitted from coarse to fine, to whole counts that are not negative and have "
        f"the published sums; use its sums for the tables that it was fitted to ({listed})"
    )


_BEWARE = (
    "Errors of cells that share an exact figure are related: do not add squared half-widths. "
    "Indices of noisy counts are biased; `congenial estimate` corrects them. An interval is about "
    "the people counted, not about those missed. Many intervals at once need --jointly."
)


def _noise(release: TablesRelease) -> str:
    laws = release.description.measured
    given = "; drawn given the exact figures" if laws[0].support.statements else ""
    words = f"{laws[0].law}{given}; " + "; ".join(
        f"{f'{said(law.table)}: ' if len(laws) > 1 else ''}{_flat(law.to_dict()['parameter'])}"
        for law in laws
    )
    if not _has_error(release):
        return words + "."
    return (
        f"{words}. Half-width at 90 %: {_reach(release, release.tables[0]):,.0f} for a cell. "
        + " ".join(_margin_words(release))
    )


def _questions(release: TablesRelease) -> str:
    axes = release.schema.axes(max(release.tables, key=len))
    first, last = axes[0], axes[-1]
    level = last.levels[0].replace("'", "''")
    by = f" by {first.name}" if len(axes) > 1 else ""
    return f"congenial estimate BUNDLE --of \"share({last.name} = '{level}'){by}\""


def _promise(release: Any) -> tuple[str, str]:
    return "The promise", release.guarantee.explain()


# ---- privacy engineer ----------------------------------------------------------------------------


def _engineer(release: Any) -> Paragraphs:
    told, guarantee = release.description.to_dict(), release.guarantee
    if isinstance(release, TablesRelease) and len(release.drawn) == 1:
        told = told["measured"][0]
    facts = {key: told[key] for key in ("mechanism", "family", "law", "parameter") if key in told}
    adjacency = guarantee.to_dict()["adjacency"]
    compared = [one for one in (adjacency["metric"], adjacency.get("reading")) if one]
    found: Paragraphs = [
        ("Pairs", f"{adjacency['words']} ({', '.join(compared)})"),
        ("Trade-off", f"{guarantee.tradeoff.words}; basis: {guarantee.basis}"),
        ("Mechanism", "; ".join(f"{k}: {_flat(one)}" for k, one in facts.items())),
        ("Conditioned on", _support(release)),
        ("Numerics", _flat(told.get("numerics", {})) or "-"),
        ("After the draw", _after(release)),
        ("Randomness", f"{release.randomness}"),
        ("Assumed", guarantee.assumed or "nothing else"),
        ("Not covered", "; ".join(guarantee.left_open)),
        ("Source", guarantee.citation or "-"),
        (
            "Check it",
            "`congenial verify BUNDLE --digest DIGEST` recomputes the promise from the "
            "description; `congenial audit BUNDLE` attacks the stated noise, for the kinds of "
            "release that it covers.",
        ),
    ]
    return found


def _after(release: Any) -> str:
    if not isinstance(release, TablesRelease):
        return "-"
    fitted = release.has_errors and any(one is not None for one in release.counts)
    return "whole counts were fitted, from the draw alone" if fitted else "nothing"


def _flat(value: Any) -> str:
    """Names and values on a line."""
    if not isinstance(value, Mapping):
        return str(value)
    return ", ".join(f"{key} = {one}" for key, one in value.items())


def _support(release: Any) -> str:
    support = getattr(release.description, "support", None)
    labels = [statement.told for statement in support.statements] if support else []
    return "; ".join(labels) or "nothing"


# ---- errors of sums ------------------------------------------------------------------------------


def _has_error(release: Any) -> bool:
    """Whether sums of the release have a law of error that holds for all data."""
    return isinstance(release, TablesRelease) and release.has_errors


def _reach(release: TablesRelease, names: tuple[str, ...]) -> float:
    """The median half-width over the cells of a table."""
    return float(np.median(release.estimator.reach(names, FILE_LEVEL)))


_READERS: dict[str, Callable[[Any], Paragraphs]] = {
    "analyst": _analyst,
    "journalist": _journalist,
    "engineer": _engineer,
}
