"""The steps of a plan: which there are, what is done, and what comes next."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from congenial.desk.plan_edits import PLACEHOLDER
from congenial.errors import CongenialError
from congenial.figures.figures import Figures
from congenial.ledger.ledger import Ledger
from congenial.publication.bundle import INDEX
from congenial.publication.number_of_people import PEOPLE, figures_beside
from congenial.publication.plan import Plan
from congenial.publication.plan_ledger import BUNDLES, standing

TITLES = {
    "data": "Data",
    "categories": "Categories",
    "figures": "Exact figures",
    "tables": "Tables",
    "price": "Accuracy and price",
    "review": "Review",
    "publish": "Publish",
    "release": "Release",
    "read": "Read",
}


@dataclass(frozen=True)
class PlanStep:
    """One step: its name in the address, its title, whether it is done, and how it stands."""

    name: str
    title: str
    done: bool
    words: str


def plan_steps(
    values: Mapping[str, Any],
    folder: Path,
    plan: Plan | None,
    ledger: Ledger | None,
    seen: frozenset[str],
) -> list[PlanStep]:
    """Every step of a plan with the values of its text; `plan` is None where it is not valid yet.

    `seen`: steps that were looked at since the plan was changed last.
    """
    steps = _of_text(values, folder, plan is not None) | _of_plan(plan, ledger, seen)
    return [PlanStep(name, title, *steps[name]) for name, title in TITLES.items()]


def next_step(steps: list[PlanStep], here: str = "") -> PlanStep | None:
    """The first step after `here` that is not done, or of all where `here` is none of them."""
    names = [step.name for step in steps]
    start = names.index(here) + 1 if here in names else 0
    return next((step for step in steps[start:] if not step.done), None)


def _of_text(values: Mapping[str, Any], folder: Path, valid: bool) -> dict[str, tuple[bool, str]]:
    data, schema = (values.get(name) for name in ("data", "schema"))
    source = str(data.get("source", "")) if isinstance(data, dict) else ""
    there = "://" in source or (bool(source) and (folder / source).exists())
    columns = schema if isinstance(schema, dict) else {}
    open_columns = sum(entry == {"levels": [PLACEHOLDER]} for entry in columns.values())
    figures = values.get("publish")
    figures = len(figures) if isinstance(figures, dict) else 0
    releases = values.get("release")
    releases = len(releases) if isinstance(releases, list) else 0
    missing = f"{open_columns} without values" if open_columns else ""
    return {
        "data": (there, source if there else "choose a file"),
        "categories": (bool(columns) and not open_columns, missing or f"{len(columns)} columns"),
        "figures": (bool(figures) or valid, f"{figures or 'none'}"),
        "tables": (valid and bool(releases), f"{releases or 'no'} release{'s'[: releases != 1]}"),
    }


def _of_plan(
    plan: Plan | None, ledger: Ledger | None, seen: frozenset[str]
) -> dict[str, tuple[bool, str]]:
    if plan is None:
        return dict.fromkeys(("price", "review", "publish", "release", "read"), (False, ""))
    drawn, stands = drawn_of(plan, ledger), standing(plan, ledger)
    bundles = [section.name for section in plan.release if has_bundle(plan, section.name)]
    left = len(unpublished(plan, ledger))
    reviewed = stands.standing == "approved" or (not stands.required and "review" in seen)
    many = len(plan.release)
    return {
        "price": ("price" in seen or bool(drawn), ""),
        "review": (reviewed or bool(drawn), stands.standing if stands.required else ""),
        "publish": (not left, f"{left} to publish" if left else ""),
        "release": (len(drawn) == many, f"{len(drawn)} of {many} drawn"),
        "read": (bool(many) and len(bundles) == many and "read" in seen, ""),
    }


def unpublished(plan: Plan, ledger: Ledger | None) -> list[str]:
    """Labels of the exact figures of a plan that are to be published."""
    try:
        published = Figures(plan.schema) if ledger is None else ledger.figures
        new = [
            figure
            for figure in figures_beside(plan, plan.release, published).told
            if figure not in published.told
        ]
    except CongenialError:  # the ledger's figures and the plan's do not go together
        return list(plan.publish)
    apart = ledger is not None and bool(ledger.roles)  # a publisher may be somebody else
    return [figure.label for figure in new if apart or figure != PEOPLE]


def drawn_of(plan: Plan, ledger: Ledger | None) -> list[str]:
    """Names of the releases of a plan that were drawn: they are what its text is held to."""
    entries = () if ledger is None else ledger.entries()
    names = {entry.name for entry in entries if entry.was_drawn}
    return [section.name for section in plan.release if section.name in names]


def has_bundle(plan: Plan, name: str) -> bool:
    """Whether a release of a plan has a bundle."""
    return (plan.folder / BUNDLES / name / INDEX).is_file()
