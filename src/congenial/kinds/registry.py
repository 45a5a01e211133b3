"""The kinds of release, in one list: the only place where plan, workflow, bundle and commands look.

The first kind whose key a section has is the section's kind; one without any such key is read as a
table, whose message then says what is missing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from congenial.errors import BundleError
from congenial.kinds.convex_estimate import ESTIMATE
from congenial.kinds.given_public import GIVEN_PUBLIC
from congenial.kinds.kind import Kind, NamedSection
from congenial.kinds.records_from_models import MODEL_RECORDS
from congenial.kinds.records_from_tables import TABLE_RECORDS
from congenial.kinds.several_tables import SEVERAL_TABLES
from congenial.kinds.single_table import SINGLE_TABLE
from congenial.kinds.statistics import STATISTICS
from congenial.kinds.tables_by_parts import TABLES_BY_PARTS
from congenial.kinds.two_by_two import TWO_BY_TWO

AnyKind = Kind[Any]
KINDS: list[AnyKind] = [
    ESTIMATE,
    GIVEN_PUBLIC,
    TABLES_BY_PARTS,
    SEVERAL_TABLES,
    SINGLE_TABLE,
    STATISTICS,
    MODEL_RECORDS,
    TABLE_RECORDS,
    TWO_BY_TWO,
]

_LISTENERS: list[Callable[[], Any]] = []


def register(kind: AnyKind) -> AnyKind:
    """Add a kind of release; plans and bundles know it from now on."""
    for known in KINDS:
        if known.key == kind.key or known.name == kind.name or known.section is kind.section:
            raise TypeError(f"there is a kind of release '{known.name}' with the key {known.key}")
    KINDS.append(kind)
    _tell()
    return kind


def forget(kind: AnyKind) -> None:
    """Take a kind out again: for tests."""
    KINDS.remove(kind)
    _tell()


def on_change(call: Callable[[], Any]) -> None:
    """Call this whenever the list changes."""
    _LISTENERS.append(call)


def _tell() -> None:
    for call in _LISTENERS:
        call()


def key_of(value: Any) -> str:
    """The key that tells the kind of a [[release]], read or not yet read."""
    if isinstance(value, NamedSection):
        return of_section(value).key
    keys = (kind.key for kind in KINDS)
    return next((key for key in keys if isinstance(value, dict) and key in value), SINGLE_TABLE.key)


def of_section(section: NamedSection) -> AnyKind:
    """The kind of a section of a plan."""
    return next(kind for kind in KINDS if type(section) is kind.section)


def by_key(key: str) -> AnyKind:
    """The kind that a key of a plan tells."""
    return next(kind for kind in KINDS if kind.key == key)


def by_name(name: Any) -> AnyKind:
    """The kind of release that a bundle names."""
    for kind in KINDS:
        if kind.name == name:
            return kind
    raise BundleError(
        f"this software does not know bundles of the kind {name!r}.",
        remedy="Use the version of congenial that wrote it.",
    )
