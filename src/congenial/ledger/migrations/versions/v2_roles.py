"""Version 2: roles. Events of kind "grant" say who may do what; writes are checked against them.

The role of a person is what the last "grant" event about them says. Until the first one everybody
who can write may do everything, as in version 1.

On PostgreSQL this is access control: the writer is the database user, and whoever is granted a role
is given the database privileges that go with it and no others. In a SQLite file, which its owner
can edit, the same check guards against accidents only.
"""

from __future__ import annotations

from alembic import op

revision = "2"
down_revision = "1"


def upgrade() -> None:
    """Create the view of current roles and the triggers that check them."""
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
    op.execute("UPDATE ledger SET version = 2")


def _roles(field: str) -> str:
    """The last grant of each person; `field` is how this database reads a key of the payload."""
    who, role = field.format("who"), field.format("role")
    return f"""
    CREATE VIEW roles AS
    SELECT {who} AS who, {role} AS role FROM events AS granted
    WHERE kind = 'grant' AND id = (
      SELECT MAX(id) FROM events AS later
      WHERE later.kind = 'grant'
        AND {who.replace("payload", "later.payload")} = {who.replace("payload", "granted.payload")}
    )
    """


# Kinds not named here are the owner's, so that a kind added later is not open to all.
_REFUSED = """
    EXISTS (SELECT 1 FROM roles) AND NOT EXISTS (
      SELECT 1 FROM roles WHERE who = NEW.who AND (
        role = 'owner'
        OR role = 'publisher' AND NEW.kind = 'mandates'
        OR role IN ('releaser', 'publisher')
           AND NEW.kind IN ('reserve', 'draw', 'commit', 'abandon')
      )
    )
"""

_SQLITE = (
    _roles("json_extract(payload, '$.{}')"),
    f"""
    CREATE TRIGGER events_are_allowed BEFORE INSERT ON events WHEN {_REFUSED}
    BEGIN SELECT RAISE(ABORT, 'the role does not allow this'); END
    """,
)

# The search path of each function is fixed: a temporary table of the same name must not be found.
_HERE = "EXECUTE format('ALTER FUNCTION %1$I.{}() SET search_path = %1$I, pg_temp', current_schema)"

_POSTGRESQL = (
    _roles("CAST(payload AS json) ->> '{}'"),
    # With the rights of whoever writes: `current_user` is the writer.
    f"""
    CREATE FUNCTION events_allowed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.who <> current_user OR {_REFUSED} THEN
        RAISE EXCEPTION 'the role does not allow this' USING ERRCODE = '42501';
      END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER events_are_allowed BEFORE INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION events_allowed()
    """,
    # With the rights of the tables' owner, which only an event that was allowed comes to use. The
    # name is looked up first, because PUBLIC is not a user and would be everybody.
    """
    CREATE FUNCTION events_give() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
    DECLARE
      person text := CAST(NEW.payload AS json) ->> 'who';
      granted text := CAST(NEW.payload AS json) ->> 'role';
    BEGIN
      IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles WHERE rolname = person) THEN
        RAISE EXCEPTION 'there is no such user' USING ERRCODE = '42704';
      END IF;
      IF person = current_user THEN
        RETURN NULL;  -- the owner of the tables keeps the rights of one
      END IF;
      EXECUTE format('REVOKE ALL ON ledger, events, roles FROM %I', person);
      IF granted = 'none' THEN
        RETURN NULL;
      END IF;
      IF NOT has_schema_privilege(person, TG_TABLE_SCHEMA, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', TG_TABLE_SCHEMA, person);
      END IF;
      EXECUTE format('GRANT SELECT ON ledger, events, roles TO %I', person);
      IF granted <> 'reader' THEN
        EXECUTE format('GRANT INSERT ON events TO %I', person);
      END IF;
      RETURN NULL;
    END $$
    """,
    """
    CREATE TRIGGER grants_give_privileges AFTER INSERT ON events
    FOR EACH ROW WHEN (NEW.kind = 'grant') EXECUTE FUNCTION events_give()
    """,
    f"DO $$ BEGIN {_HERE.format('events_allowed')}; {_HERE.format('events_give')}; END $$",
)
