"""Version 1: the events, to which rows are only ever added."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "1"
down_revision = None


def upgrade() -> None:
    """Create the tables and the triggers that keep the history append-only."""
    op.create_table("ledger", sa.Column("version", sa.Integer, nullable=False))
    op.create_table(
        "events",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("release", sa.Text),
        sa.Column("payload", sa.Text, nullable=False),  # JSON text; the digest is of the text
        sa.Column("previous", sa.Text, nullable=False, unique=True),  # the chain cannot fork
        sa.Column("digest", sa.Text, nullable=False, unique=True),
    )
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
    op.execute("INSERT INTO ledger VALUES (1)")


# INSERT OR REPLACE removes a row without firing a DELETE trigger, hence the third one.
_SQLITE = tuple(
    f"CREATE TRIGGER {name} BEFORE {what} BEGIN SELECT RAISE(ABORT, 'events are append-only'); END"
    for name, what in (
        ("events_are_not_changed", "UPDATE ON events"),
        ("events_are_not_removed", "DELETE ON events"),
        (
            "events_are_not_replaced",
            "INSERT ON events WHEN NEW.id <> (SELECT COALESCE(MAX(id), 0) + 1 FROM events)",
        ),
    )
)

# 23001 (restrict_violation) is how the program knows these refusals from other faults.
_POSTGRESQL = (
    """
    CREATE FUNCTION events_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      RAISE EXCEPTION 'events are append-only' USING ERRCODE = '23001';
    END $$
    """,
    """
    CREATE TRIGGER events_are_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only()
    """,
    """
    CREATE FUNCTION events_follow() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      place integer;
    BEGIN
      EXECUTE format('SELECT COALESCE(MAX(id), 0) + 1 FROM %I.events', TG_TABLE_SCHEMA) INTO place;
      IF NEW.id <> place THEN
        RAISE EXCEPTION 'events are append-only' USING ERRCODE = '23001';
      END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER events_are_not_inserted_between BEFORE INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION events_follow()
    """,
)
