"""Version 3: payloads are checked where they are added, and writers lock what only roles may lock.

An event that cannot be read stops everybody, and nothing may be removed from the history. So the
database takes an event only if its payload has the form of its kind, its release moves on as
releases do, and an owner remains. What only the program can judge (a description of noise, figures)
is left to it; for events that pass here and cannot be read there is the kind "repair".

On PostgreSQL writers used to hold an advisory lock, which anybody who may connect can take. Now
they lock the one row of the table `writers`, which takes the privilege to update it; only roles
that write have that.

Roles are looked up by an index over grants, and a release's last event by one over releases, so
that adding an event does not read the whole history.
"""

from __future__ import annotations

from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    """Add indexes, the check of payloads, and the row that writers lock."""
    for statement in _INDEXES:
        op.execute(statement)
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
    op.execute("UPDATE ledger SET version = 3")


_INDEXES = (
    "CREATE INDEX events_of_a_release ON events (release, id)",
    "CREATE INDEX events_that_grant ON events (id) WHERE kind = 'grant'",
    "DROP VIEW roles",
)
_ROLES = "('none', 'reader', 'releaser', 'publisher', 'owner')"
_LAST = "(SELECT kind FROM events WHERE release = NEW.release ORDER BY id DESC LIMIT 1)"


def _well_formed(kind: str, field: str, words: dict[str, str]) -> str:
    """A condition that is true of well-formed events only; unknown (NULL) counts as false.

    `kind` is how this database tells the JSON type at a key, `field` how it reads the text there,
    and `words` what it calls the types.
    """

    def has(**types: str) -> str:
        return " AND ".join(f"{kind.format(key)} = '{words[name]}'" for key, name in types.items())

    released = "NEW.release IS NOT NULL AND NEW.release <> ''"
    who, role = field.format("who"), field.format("role")
    forms = {
        "open": f"NEW.id = 1 AND {has(schema='object', adjacency='object')}",
        "budget": " AND ".join(
            f"{kind.format(key)} IN ('{words['text']}', 'null')" for key in _BUDGET
        ),
        "mandates": has(statements="array"),
        "reserve": f"{released} AND {_LAST} IS NULL AND "
        + has(name="text", description="object", guarantee="object", plan_digest="text"),
        "draw": f"{released} AND {_LAST} = 'reserve'",
        "commit": f"{released} AND {_LAST} = 'draw' AND {has(bundle_digest='text')}",
        "abandon": f"{released} AND {_LAST} IN ('reserve', 'draw')",
        "grant": f"{has(who='text', role='text')} AND {who} <> '' AND {role} IN {_ROLES} AND "
        f"({role} = 'owner' OR EXISTS "
        f"(SELECT 1 FROM roles WHERE role = 'owner' AND who <> {who}))",
        "upgrade": has(before="whole", after="whole"),
        "repair": has(event="whole", digest="text", counts="text", because="text")
        + f" AND {field.format('counts')} IN ('nothing', 'unknown') AND {field.format('digest')} = "
        f"(SELECT digest FROM events WHERE id = CAST({field.format('event')} AS integer))",
    }
    cases = " ".join(f"WHEN '{name}' THEN {form}" for name, form in forms.items())
    return f"CASE NEW.kind {cases} END"


_BUDGET = ("epsilon", "delta", "rho")

_SQLITE_FORM = _well_formed(
    "json_type(NEW.payload, '$.{}')",
    "json_extract(NEW.payload, '$.{}')",
    {"object": "object", "array": "array", "text": "text", "whole": "integer"},
)
_SQLITE = (
    # With MAX the other columns are those of the row that has it.
    f"""
    CREATE VIEW roles AS
    SELECT who, role FROM (
      SELECT json_extract(payload, '$.who') AS who, json_extract(payload, '$.role') AS role, MAX(id)
      FROM events WHERE kind = 'grant' AND CASE WHEN json_valid(payload)
        THEN json_type(payload, '$.who') = 'text' AND json_extract(payload, '$.role') IN {_ROLES}
        ELSE 0 END
      GROUP BY json_extract(payload, '$.who')
    )
    """,
    f"""
    CREATE TRIGGER events_are_well_formed BEFORE INSERT ON events
    WHEN NOT COALESCE(CASE WHEN json_valid(NEW.payload)
      THEN json_type(NEW.payload) = 'object' AND {_SQLITE_FORM} END, 0)
    BEGIN SELECT RAISE(ABORT, 'the event is malformed'); END
    """,
)

_POSTGRESQL_FORM = _well_formed(
    "json_typeof(said -> '{}')",
    "(said ->> '{}')",
    {"object": "object", "array": "array", "text": "string", "whole": "number"},
)
_HERE = (
    "EXECUTE format('ALTER FUNCTION %1$I.{}({}) SET search_path = %1$I, pg_temp', current_schema)"
)
_WRITERS = "('releaser', 'publisher', 'owner')"

_POSTGRESQL = (
    # Before version 3 a payload could be anything; one that is no JSON says nothing.
    """
    CREATE FUNCTION event_says(payload text, name text) RETURNS text
    LANGUAGE plpgsql IMMUTABLE AS $$
    BEGIN
      RETURN CAST(payload AS json) ->> name;
    EXCEPTION WHEN data_exception THEN
      RETURN NULL;
    END $$
    """,
    f"""
    CREATE VIEW roles AS
    SELECT DISTINCT ON (who) who, role FROM (
      SELECT id, event_says(payload, 'who') AS who, event_says(payload, 'role') AS role
      FROM events WHERE kind = 'grant'
    ) AS granted
    WHERE who IS NOT NULL AND role IN {_ROLES} ORDER BY who, id DESC
    """,
    "CREATE TABLE writers (place integer NOT NULL)",
    "INSERT INTO writers VALUES (1)",
    f"""
    CREATE FUNCTION events_well_formed() RETURNS trigger LANGUAGE plpgsql AS $$
    DECLARE
      said json;
      fine boolean;
    BEGIN
      BEGIN
        said := CAST(NEW.payload AS json);
        fine := json_typeof(said) = 'object' AND {_POSTGRESQL_FORM};
      EXCEPTION WHEN data_exception THEN
        fine := false;
      END;
      IF NOT COALESCE(fine, false) THEN
        RAISE EXCEPTION 'the event is malformed' USING ERRCODE = '23514';
      END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER events_are_well_formed BEFORE INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION events_well_formed()
    """,
    f"""
    CREATE OR REPLACE FUNCTION events_give() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
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
      EXECUTE format('REVOKE ALL ON ledger, events, roles, writers FROM %I', person);
      IF granted = 'none' THEN
        RETURN NULL;
      END IF;
      IF NOT has_schema_privilege(person, TG_TABLE_SCHEMA, 'USAGE') THEN
        EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', TG_TABLE_SCHEMA, person);
      END IF;
      EXECUTE format('GRANT SELECT ON ledger, events, roles TO %I', person);
      IF granted IN {_WRITERS} THEN
        EXECUTE format('GRANT INSERT ON events TO %I', person);
        EXECUTE format('GRANT SELECT, UPDATE ON writers TO %I', person);
      END IF;
      RETURN NULL;
    END $$
    """,
    # A replaced function loses its search path, and a view made anew its readers.
    "DO $$ BEGIN "
    + "; ".join(
        _HERE.format(name, types)
        for name, types in (
            ("event_says", "text, text"),
            ("events_well_formed", ""),
            ("events_give", ""),
        )
    )
    + "; END $$",
    f"""
    DO $$
    DECLARE
      person record;
    BEGIN
      FOR person IN SELECT who, role FROM roles
        WHERE role <> 'none' AND who <> current_user
          AND who IN (SELECT rolname FROM pg_catalog.pg_roles)
      LOOP
        EXECUTE format('GRANT SELECT ON roles TO %I', person.who);
        IF person.role IN {_WRITERS} THEN
          EXECUTE format('GRANT SELECT, UPDATE ON writers TO %I', person.who);
        END IF;
      END LOOP;
    END $$
    """,
)
