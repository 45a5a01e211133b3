"""What is wrong with a plan, in words: the key as written, the value, the rule, the remedy."""

from __future__ import annotations

import difflib
import json
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from congenial.errors import PlanError
from congenial.kinds import registry
from congenial.kinds.plan_sections import (
    AboutSection,
    BudgetSection,
    DataSection,
    DeriveEntry,
    PublishEntry,
    Section,
)
from congenial.kinds.planned_data import NO_FILE, Place, PlanText

_SMALL_COUNTS = (
    "Small counts are not left out: noise protects them as it protects large ones. To see exact "
    "figures about few people, run `congenial publish --dry-run --fewer-than 10`."
)
_SIZE_OF_NOISE = (
    "The promise decides the size of the noise. State epsilon, rho or mu, or an accuracy; "
    "`congenial check` shows the margins of error."
)
_EXACT = (
    "An exact figure is published as it is: not rounded, without noise, however small it is. "
    "If that reveals too much, release a protected table instead."
)
_ROUNDING = (
    "Rounding adds error and protects nobody. Leave it out; you can round the released tables for "
    "print."
)
_ENDS = (
    "The schema does this. Give the open class a label there, such as "
    'age = { edges = [0, 18, 65], top = "65+" }.'
)
# Keys that other tools have, and why a plan has none of them.
ABSENT = {
    **dict.fromkeys(("round_to", "rounding", "round", "base"), _ROUNDING),
    **dict.fromkeys(
        ("suppress_below", "suppress", "suppression", "threshold", "min_count", "min_cell_size"),
        _SMALL_COUNTS,
    ),
    **dict.fromkeys(("noise", "noise_scale", "scale", "sigma", "variance"), _SIZE_OF_NOISE),
    **dict.fromkeys(("top_code", "top_coding", "bottom_code", "bottom_coding"), _ENDS),
    **dict.fromkeys(
        ("weight", "survey_weight", "weight_column"),
        "Records are counted without survey weights. For weighted counts release the sum of the "
        'weights: sum = "weight", with public bounds such as between = [0, 500] and a step.',
    ),
    **dict.fromkeys(
        ("k", "k_anonymity", "l_diversity", "t_closeness"),
        "Such rules do not limit what somebody with other knowledge can infer. State a promise "
        "instead: epsilon, rho or mu.",
    ),
    "sensitivity": "It follows from the exact figures and from how many rows a person may have. "
    "Leave it out; if people have several rows, give max_rows in [data].",
    "bounds": "Bounds are public: between = [0, 50000]. If nothing public says how large numbers "
    "get, draw a quantile first (estimate = { quantile = ... }), then state it in between.",
    "seed": "Whoever knows the seed can remove the noise, so a plan has none. To try a plan, run "
    "`congenial release --seed 1`: its bundles are marked NOT FOR PUBLICATION.",
}

_SEE = "see docs/reference/plan.md."


def first_problem(
    model: type[Section],
    error: ValidationError,
    values: dict[str, Any],
    section: Place = (),
    file: PlanText = NO_FILE,
) -> PlanError:
    """Line, key, value, rule and remedy of the first problem in a plan, or in a section of it.

    `model`: of a whole plan.
    """
    problems = error.errors(include_url=False)
    # A misspelt key is both unknown and missing; the first says more.
    problem = min(problems, key=lambda p: p["type"] != "extra_forbidden")
    where = (*section, *problem["loc"])
    at = file.at(*where)
    what, remedy = _problem(model, problem, where, values)
    return PlanError(f"{at}{what.removeprefix('the plan: ') if at else what}", remedy=remedy)


def _problem(
    model: type[Section], problem: Any, where: Place, values: dict[str, Any]
) -> tuple[str, str]:
    """What is wrong, and what to do about it."""
    kind = _kind_at(where, values)
    keys = _keys(model, where, kind)
    key = _key(where, values)
    if problem["type"] == "extra_forbidden":
        others = _kinds_with(where, kind)
        if others:
            return f"{key}: belongs to {others}, not to {kind}.", f"Keys: {', '.join(keys)}."
        unknown = f"{key}: unknown key."
        if where[-1] in ABSENT:
            return unknown, _why_absent(str(where[-1]), where[0] == "publish")
        near = difflib.get_close_matches(str(where[-1]), keys, 1, 0.6)
        return unknown, f"Did you mean '{near[0]}'?" if near else f"Keys: {', '.join(keys)}."
    if problem["type"] == "missing":
        return f"{key}: missing.", f"Add it: {_SEE}"
    rule = problem["msg"].removeprefix("Value error, ").replace("Input should be", "must be")
    refused = problem["input"]
    value = f" = {_written(refused)}" if isinstance(refused, str | int | Decimal) else ""
    if problem["type"] == "list_type" and isinstance(refused, str):
        return f"{key}{value}: must be a list.", f"Write [{_written(refused)}]."
    if problem["type"] == "string_pattern_mismatch":  # only names have a pattern
        rule = (
            "must begin with a letter or digit and have only letters, digits, '-' and '_' (at "
            "most 64)"
        )
    if problem["type"] == "literal_error" and where[-1] == "total":
        rule = "must be true, or leave the entry out"
    return f"{key}{value}: {rule.rstrip('.')}.", _SEE.capitalize()


def _why_absent(key: str, of_exact_figure: bool) -> str:
    """Why a plan does not have a key that other tools have, and what to write instead."""
    if of_exact_figure and ABSENT[key] in (_ROUNDING, _SMALL_COUNTS, _SIZE_OF_NOISE):
        return _EXACT
    return ABSENT[key]


def _kind_at(location: Place, values: dict[str, Any]) -> str:
    """The key of the kind of release that a place is in; empty outside of releases."""
    if location[:1] != ("release",) or len(location) < 3 or not isinstance(location[1], int):
        return ""
    return registry.key_of(values["release"][location[1]])


def _kinds_with(location: Place, kind: str) -> str:
    """The keys of the kinds of release that take a key which this kind does not; empty if none."""
    if not kind or len(location) != 3:
        return ""
    others = [
        each_kind.key
        for each_kind in registry.every_kind()
        if location[2] in each_kind.section.model_fields
    ]
    return "" if location[2] in others else " or ".join(others)


def _written(value: str | int | Decimal) -> str:
    """A value as a plan writes it: texts are quoted, so that "1" is not taken for 1."""
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else str(value)


def _key(where: Place, values: dict[str, Any]) -> str:
    """A place in words: a release by its name where it has one."""
    words = ".".join(str(part) for part in where) or "the plan"
    if where[:1] != ("release",) or len(where) < 2 or not isinstance(where[1], int):
        return words
    section = values["release"][where[1]]
    name = section.get("name") if isinstance(section, dict) else None
    place = f"release '{name}'" if isinstance(name, str) else f"release number {where[1] + 1}"
    return ": ".join([place, *words.split(".", 2)[2:]])


def _keys(model: type[Section], location: Place, kind: str) -> list[str]:
    """The keys that are allowed at a place."""
    sections: dict[Any, type[Section]] = {
        "data": DataSection,
        "publish": PublishEntry,
        "derive": DeriveEntry,
        "about": AboutSection,
        "budget": BudgetSection,
    }
    if kind:
        model = registry.by_key(kind).section
    elif len(location) > 1:
        model = sections.get(location[0], model)
    return [field.alias or name for name, field in model.model_fields.items() if name != "folder"]
