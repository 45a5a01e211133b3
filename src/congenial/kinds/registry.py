"""The kinds of release, in one list: the only place where plan, workflow, bundle and commands look.

A kind is a module with `KIND`. It is loaded when a plan has its key or a bundle its name, so that a
command loads the kinds it meets and no other. The first key of this list that a section has tells
its kind; a section without any is read as a table, whose message then says what is missing.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from congenial.errors import BundleError
from congenial.kinds.kind import Kind
from congenial.kinds.plan_sections import NamedSection

AnyKind = Kind[Any]
TABLE = "table"


class Listed(NamedTuple):
    """Where a kind is: how release.json names it, and its module, or the kind itself."""

    name: str
    home: str | AnyKind


KINDS: dict[str, Listed] = {  # by the key of a [[release]]
    "estimate": Listed("estimate", "convex_estimate"),
    "scenarios": Listed("values", "given_public"),
    "tables": Listed("tables", "tables"),
    TABLE: Listed("tables", "tables"),
    "statistics": Listed("statistics", "statistics"),
    "model": Listed("synthetic records", "records_from_models"),
    "synthesise": Listed("records from tables", "records_from_tables"),
    "test": Listed("odds ratio test", "two_by_two"),
}


def register(kind: AnyKind) -> AnyKind:
    """Add a kind of release; plans and bundles know it from now on."""
    for key, listed in KINDS.items():
        if key == kind.key or listed.name == kind.name:
            raise TypeError(f"there is a kind of release '{listed.name}' with the key {key}")
    KINDS[kind.key] = Listed(kind.name, kind)
    return kind


def forget(kind: AnyKind) -> None:
    """Take a kind out again: for tests."""
    del KINDS[kind.key]


def every_kind() -> list[AnyKind]:
    """All kinds, loaded."""
    return [*dict.fromkeys(by_key(key) for key in KINDS)]


def key_of(value: Any) -> str:
    """The key that tells the kind of a [[release]], not yet read."""
    return next((key for key in KINDS if isinstance(value, dict) and key in value), TABLE)


def of_section(section: NamedSection) -> AnyKind:
    """The kind of a section of a plan: it stands in the kind's module, or in one of its own."""
    own = type(section)
    return next(
        by_key(key)
        for key, (_, home) in KINDS.items()
        if (
            own.__module__.removesuffix("_section") == f"congenial.kinds.{home}"
            if isinstance(home, str)
            else home.section is own
        )
    )


def by_key(key: str) -> AnyKind:
    """The kind that a key of a plan tells."""
    home = KINDS[key].home
    return _loaded(home) if isinstance(home, str) else home


def by_name(name: Any) -> AnyKind:
    """The kind of release that a bundle names."""
    for key, listed in KINDS.items():
        if listed.name == name:
            return by_key(key)
    raise BundleError(
        f"this version of congenial cannot read bundles of the kind {name!r}.",
        remedy="Use the version of congenial that wrote it.",
    )


@cache
def _loaded(module: str) -> AnyKind:
    kind: AnyKind = import_module(f"congenial.kinds.{module}").KIND
    return kind
