"""What is published exactly as plain data: what `congenial publish --json` prints and the desk
shows, before (CONFIDENTIAL) and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from congenial.mechanisms.cell_labels import beside_label
from congenial.report.words import Block, blocks

if TYPE_CHECKING:
    from congenial.data.schema import Schema
    from congenial.figures.figures import Figures
    from congenial.figures.statements import Statement
    from congenial.ledger.spent_and_left import Repricing
    from congenial.publication.plan import Plan
    from congenial.publication.workflow import PublishPreview, PublishResult

Document = dict[str, Any]

CONFIDENTIAL = (
    "CONFIDENTIAL until they are published: these figures are computed from the records. Nothing "
    "was recorded or written."
)
SHOWN = 12  # numbers of each figure on a screen; published.csv has them all


def of_preview(plan: Plan, preview: PublishPreview) -> Document:
    """What publishing would make public. CONFIDENTIAL."""
    prices = {} if preview.repricing is None else _prices(plan, preview.repricing)
    return {
        "note": CONFIDENTIAL,
        "fewer_than": preview.fewer_than,
        "warnings": [
            {
                "label": warning.label,
                "kind": warning.kind,
                "groups": warning.groups,
                "of": warning.of,
                "words": warning.words,
                "where": [list(group) for group in warning.where],
            }
            for warning in preview.warnings
        ],
        **_public(plan, preview.figures, preview.new),
        **prices,
    }


def of_published(plan: Plan, result: PublishResult) -> Document:
    """What is public now, and what that did to earlier promises."""
    return {
        "folder": str(result.folder),
        **_public(plan, result.figures, result.new),
        **_prices(plan, result.repricing),
    }


def preview_words(document: Document, schema: Schema, most: int = SHOWN) -> list[Block]:
    """What would be public, for the curator: small figures first; categories with their labels."""
    by = {figure["label"]: figure["by"] for figure in document["figures"]}
    warnings = [
        warning
        | {
            "first": "; ".join(
                _group(schema, by[warning["label"]], group) for group in warning["where"]
            ),
            "more": warning["groups"] > len(warning["where"]),
        }
        for warning in document["warnings"]
    ]
    return blocks(
        "publish_preview.txt",
        document=document,
        figures=_shown(document, schema, most),
        warnings=warnings,
    )


def published_words(document: Document, schema: Schema) -> list[Block]:
    """What is public now, for people; categories with their labels."""
    return blocks("publish.txt", document=document, figures=_shown(document, schema, SHOWN))


def _public(plan: Plan, figures: Figures, new: Sequence[Statement]) -> Document:
    return {
        "new": [statement.label for statement in new],
        "figures": [
            {"label": s.label, "because": s.because, "by": list(s.by), "cells": _cells(plan, s, v)}
            for s, v in zip(figures.told, figures.told_values, strict=True)
            if v is not None
        ],
        "bounds": [
            {"label": s.label, "because": s.because, "by": list(s.by), "limit": s.limit}
            for s in figures.told
            if s.limit
        ],
    }


def _prices(plan: Plan, repricing: Repricing) -> Document:
    """What earlier releases promise before and after."""
    budget = plan.budget.budget()
    return {
        "before": budget.say(repricing.before),
        "after": budget.say(repricing.after),
        "weaker": repricing.weaker,
        "over_budget": repricing.over_budget,
        "releases": [
            {
                "id": release.entry.id,
                "name": release.entry.name,
                "before": budget.say(release.then),
                "after": budget.say(release.now),
                "weaker": release.weaker,
            }
            for release in repricing.releases
        ],
    }


def _cells(plan: Plan, statement: Any, values: Any) -> list[Document]:
    levels = product(*(axis.levels for axis in plan.schema.axes(statement.by)))
    return [
        {"for": list(where), "value": int(value)}
        for where, value in zip(levels, values.reshape(-1), strict=True)
    ]


def _group(schema: Schema, by: Sequence[str], levels: Sequence[str]) -> str:
    """The people that a figure is about."""
    named = (beside_label(schema, name, level) for name, level in zip(by, levels, strict=True))
    return ", ".join(named) or "all"


def _shown(document: Document, schema: Schema, most: int) -> list[Document]:
    """Each figure with its first values; in a preview those about few people come first."""
    new, few = document["new"], document.get("fewer_than", 0)
    return [
        figure
        | {
            "already": bool(new) and figure["label"] not in new,
            "rows": [
                (_group(schema, figure["by"], cell["for"]), cell["value"], 0 < cell["value"] < few)
                for cell in _small_first(figure["cells"], few)[:most]
            ],
            "left_out": max(0, len(figure["cells"]) - most),
        }
        for figure in document["figures"]
    ]


def _small_first(cells: list[Document], few: int) -> list[Document]:
    return sorted(cells, key=lambda cell: not 0 < cell["value"] < few)
