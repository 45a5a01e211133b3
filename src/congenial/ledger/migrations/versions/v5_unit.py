"""Version 5: the unit of protection may be changed, by an event of its own and to more rows only.

The kind "unit" says what the adjacency of the first event says: its kind, and the most rows of one
unit. It is the owner's, as every kind that no role is named for. That fewer rows than before are
refused here, too, is for whoever writes past the program.
"""

from __future__ import annotations

from alembic import op

from congenial.ledger.migrations.versions import v3_payloads, v4_approval

revision = "5"
down_revision = "4"


def upgrade() -> None:
    """Add the kind to the check of payloads."""
    op.execute("CREATE INDEX events_that_change_the_unit ON events (id) WHERE kind = 'unit'")
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
    op.execute("UPDATE ledger SET version = 5")


def _well_formed(rows: str, kind: str, earlier: str, old: str) -> str:
    """The condition of version 4, `old`, with the new kind of event.

    `rows`, `kind`: how this database reads the two keys; `earlier`: the rows of another event.
    """
    return f"""CASE WHEN NEW.kind = 'unit' THEN {kind} IN ('add-remove', 'several rows')
      AND {rows} >= 1 AND NOT EXISTS (
        SELECT 1 FROM events AS e WHERE e.kind = 'unit' AND {earlier} > {rows})
      ELSE {old} END"""


_SQLITE_FORM = _well_formed(
    "CASE json_type(NEW.payload, '$.max_rows') WHEN 'integer' "
    "THEN json_extract(NEW.payload, '$.max_rows') END",
    "json_extract(NEW.payload, '$.kind')",
    "json_extract(e.payload, '$.max_rows')",
    v4_approval._SQLITE_FORM,
)
_POSTGRESQL_FORM = _well_formed(
    "CAST(said ->> 'max_rows' AS integer)",
    "(said ->> 'kind')",
    "CAST(event_says(e.payload, 'max_rows') AS integer)",
    v4_approval._POSTGRESQL_FORM,
)


def _again(statements: tuple[str, ...], beginning: str, old: str, new: str) -> str:
    """The one statement of version 4 that begins like this, with `new` in place of `old`."""
    (found,) = [one for one in statements if one.strip().startswith(beginning)]
    assert old in found
    return found.replace(old, new)


_SQLITE = (
    "DROP TRIGGER events_are_well_formed",
    _again(
        v4_approval._SQLITE,
        "CREATE TRIGGER events_are_well_formed",
        v4_approval._SQLITE_FORM,
        _SQLITE_FORM,
    ),
)
_POSTGRESQL = (
    _again(
        v4_approval._POSTGRESQL,
        "CREATE OR REPLACE FUNCTION events_well_formed",
        v4_approval._POSTGRESQL_FORM,
        _POSTGRESQL_FORM,
    ),
    # A replaced function loses its search path.
    f"DO $$ BEGIN {v3_payloads._HERE.format('events_well_formed', '')}; END $$",
)
