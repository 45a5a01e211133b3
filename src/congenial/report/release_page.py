"""What the reports of all kinds show: exact figures, the promise, how to begin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from congenial.figures.statements import Statement
from congenial.figures.support import support
from congenial.mechanisms.released import Released
from congenial.mechanisms.tables_release import TablesRelease
from congenial.privacy.guarantee import BASIS_WORDS, Guarantee
from congenial.report.page import LARGEST_TABLE, PageColumn, PageTable, folded_table
from congenial.report.render import page, page_from

HEADLINES = 3  # numbers of the first screen
RESERVED = {"and", "or", "not", "in", "between"}  # words of the condition language
Facts = list[tuple[str, object]]  # names and what they are


def release_page(template: str, release: Released, promise: str, **shown: Any) -> str:
    """A report as one HTML document; `promise` is the paragraph printed at release time.

    It shows exact figures, the promise and how to begin; `shown` adds to these or replaces them.
    `headlines`: the numbers of the first screen beside exact ones. `template` is the name of one of
    ours, or the text of one, for kinds that are defined elsewhere.
    """
    shown["headlines"] = headlines(release, shown.get("headlines", ()))
    common = {
        "release": release,
        "promise": promise,
        "exact": exact_section(release),
        "in_short": in_short(release.guarantee, promise),
        "promise_facts": promise_facts(release.guarantee),
        "code": python_lines(release),
        "cite": cite(release),
        "running": css_text(cite(release)),
        "data_block": None,
    }
    written = page if template.endswith(".html") else page_from
    return written(template, **common | shown)


# ---- the first screen -------------------------------------------------------------------------


@dataclass(frozen=True)
class Headline:
    """A number of the first screen, as text: what it is, and how far it may be off."""

    label: str
    value: str
    margin: str = ""
    exact: bool = False


def headlines(release: Released, more: Sequence[Headline]) -> list[Headline]:
    """Three numbers: those of the kind, and totals of exact figures where there is room before
    them.
    """
    exact = [
        Headline(statement.label, f"{int(np.sum(values)):,}", exact=True)
        for statement, values in zip(
            release.everything.told, release.everything.told_values, strict=True
        )
        if values is not None and statement.relation == "=" and len(statement.terms) == 1
    ]
    return [*exact[: max(0, HEADLINES - len(more))], *more[:HEADLINES]]


def cite(release: Released) -> str:
    """Whom and what to name as the source, in one line."""
    about = release.schema.about
    title = f"{about.title} ({release.name})" if about.title else f"release {release.name}"
    return ", ".join(part for part in (about.agency, title, about.date) if part)


def css_text(said: str) -> str:
    r"""A text as the content of a CSS string: every character but letters and digits escaped.

    >>> css_text('a"}b')
    'a\\000022\\00007Db'
    """
    return "".join(c if c.isascii() and c.isalnum() else f"\\{ord(c):06X}" for c in said)


# ---- the promise ------------------------------------------------------------------------------


def in_short(guarantee: Guarantee, promise: str) -> Facts:
    """The promise in three sentences, and what all releases together promise where `promise`, the
    paragraph printed at release time, says it.
    """
    _, _, together = promise[len(guarantee.explain()) :].partition(". ")
    rows: Facts = list(guarantee.in_short.items())
    return [*rows, ("All releases together", together)] if together else rows


def promise_facts(guarantee: Guarantee, *more: tuple[str, object]) -> Facts:
    """The building blocks of a promise; `more` are facts of one kind of release."""
    return [
        (
            "The protection compares",
            f"{guarantee.adjacency.words} ({guarantee.adjacency.metric})",
        ),
        ("How alike", guarantee.likelihood_clause()),
        *more,
        ("Basis", f"{guarantee.basis}: {BASIS_WORDS[guarantee.basis]}"),
        ("Source", guarantee.citation or "-"),
    ]


# ---- exact figures ----------------------------------------------------------------------------


@dataclass(frozen=True)
class ExactFigure:
    """A figure that was published exactly: its label, what it counts, and its values if any."""

    label: str
    words: str
    values: PageTable | None


@dataclass(frozen=True)
class ExactSection:
    """All figures, and whether the number of people is public besides them."""

    figures: tuple[ExactFigure, ...]
    people: bool


def exact_section(release: Released) -> ExactSection:
    """What a release published exactly."""
    public, pairs = release.everything, release.guarantee.adjacency
    stated_figures = zip(public.told, public.told_values, strict=True)
    figures = (_figure(release, *pair) for pair in stated_figures)
    replaced = getattr(pairs, "secrets", pairs.metric) == "replace-one"
    return ExactSection(tuple(figures), replaced and not public.tells_total)


def _figure(release: Released, statement: Statement, values: Any) -> ExactFigure:
    ground = f" Ground: {statement.because}." if statement.because else ""
    sentence = f"{_counted(statement)}.{ground}"
    if values is None:
        return ExactFigure(statement.label, sentence, None)
    schema = release.schema
    shown_levels = [schema.shown_levels(name) for name in statement.by]
    places = islice(np.ndindex(*values.shape), LARGEST_TABLE)
    rows = [
        [*(levels[i] for levels, i in zip(shown_levels, at, strict=True)), int(values[at])]
        for at in places
    ]
    columns = [
        *(PageColumn(schema.shown(name)) for name in statement.by),
        PageColumn("published value", number=True),
    ]
    whole_table = folded_table(columns, rows, values.size, "published.csv")
    return ExactFigure(statement.label, sentence, whole_table)


def _counted(statement: Statement) -> str:
    """What a statement says, in words."""
    terms = []
    for condition, weight in statement.terms:
        counted = "units" if statement.units else "people"
        who = f"{counted} with {condition}" if condition else counted
        terms.append(who if weight == 1 else f"{weight} × {who}")
    what = f"Number of {' + '.join(terms)}"
    if statement.by:
        what += f", for each {' × '.join(statement.by)}"
    if statement.relation == "zero":
        return f"{what}: zero by definition"
    return f"{what}: {statement.limit}, a public bound" if statement.limit else what


# ---- how to use it ----------------------------------------------------------------------------


def example_condition(release: TablesRelease) -> str:
    """The first level of an axis, as an example: of the first whose count is not published exactly,
    or else the first cell.
    """
    table = release.tables[0]
    table_support = support(release.description.support, table)
    for axis, name in enumerate(table):
        first = np.full([one_axis.size for one_axis in release.schema.axes(table)], -1)
        np.moveaxis(first, axis, 0)[0] = 0
        if not table_support.fixes(first, 1)[0]:
            return _picks(release, name)
    return " and ".join(_picks(release, name) for name in table)


def _picks(release: TablesRelease, name: str) -> str:
    """A condition for the first level of an axis."""
    level = release.schema.axis(name).levels[0].replace("'", "''")
    quoted = name.replace('"', '""')
    plain = name.isascii() and name.isidentifier() and name.lower() not in RESERVED
    return f"{name} = '{level}'" if plain else f"\"{quoted}\" = '{level}'"


def literal(value: str) -> str:
    """A Python string literal, in double quotes where that needs no escapes."""
    return f'"{value}"' if value.isprintable() and not {'"', "\\"} & set(value) else repr(value)


def python_lines(release: Released) -> str:
    """How a release that is no table is read and used in Python."""
    return "\n".join(
        ["import congenial", 'release = congenial.read("this-folder")', *release.usage]
    )
