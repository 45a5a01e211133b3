"""Version 4: approval. Plans are proposed and reviewed by digest, and the role of a reviewer.

From the event "require" on, until an owner takes it back, the database takes "mandates", "reserve"
and "draw" only for a plan that somebody other than its proposers, and other than the writer, has
approved, and that nobody refuses. A reviewer writes reviews and nothing else.

The program asks the same before (`ledger/approvals.py`); this is for whoever writes past it.
"""

from __future__ import annotations

from alembic import op

from congenial.ledger.migrations.versions import v3_payloads as before

revision = "4"
down_revision = "3"


def upgrade() -> None:
    """Add the role, the new kinds of events and their checks."""
    for statement in _INDEXES:
        op.execute(statement)
    for statement in _SQLITE if op.get_bind().dialect.name == "sqlite" else _POSTGRESQL:
        op.execute(statement)
    op.execute("UPDATE ledger SET version = 4")


_REVIEWS = "('propose', 'approve', 'refuse', 'withdraw')"
_INDEXES = (
    "CREATE INDEX events_that_require ON events (id) WHERE kind = 'require'",
    f"CREATE INDEX events_that_review ON events (id) WHERE kind IN {_REVIEWS}",
)
_ROLES = "('none', 'reader', 'reviewer', 'releaser', 'publisher', 'owner')"

# Kinds not named here are the owner's, so that a kind added later is not open to all.
_REFUSED = """
    EXISTS (SELECT 1 FROM roles) AND NOT EXISTS (
      SELECT 1 FROM roles WHERE who = NEW.who AND (
        role = 'owner'
        OR role = 'reviewer' AND NEW.kind IN ('approve', 'refuse', 'withdraw')
        OR role = 'publisher' AND NEW.kind = 'mandates'
        OR role IN ('releaser', 'publisher')
           AND NEW.kind IN ('propose', 'reserve', 'draw', 'commit', 'abandon')
      )
    )
"""


def _reviews(says: str) -> str:
    """All reviews with the plan they are about; `says` is how this database reads a payload."""
    plan = says.format("payload", "plan_digest")
    return f"(SELECT id, kind, who, {plan} AS plan FROM events WHERE kind IN {_REVIEWS})"


def _standing(says: str, word: str, plan: str) -> str:
    """Reviewers' last words on a plan, where they are `word`."""
    return f"""
      FROM {_reviews(says)} AS review WHERE review.plan = {plan} AND review.kind = '{word}'
        AND review.id = (
          SELECT MAX(id) FROM {_reviews(says)} AS later
          WHERE later.plan = {plan} AND later.who = review.who AND later.kind <> 'propose')
    """


def _well_formed(kind: str, field: str, words: tuple[str, str], says: str, old: str) -> str:
    """The condition of version 3, `old`, with the new kinds and the new role.

    `words` are what this database calls the JSON types text and truth value.
    """
    text, truth = words
    who, role, plan = (field.format(name) for name in ("who", "role", "plan_digest"))
    named = f"{kind.format('plan_digest')} = '{text}' AND length({plan}) = 64"
    reason = f"{kind.format('because')} = '{text}'"
    proposed = f"EXISTS (SELECT 1 FROM {_reviews(says)} AS p WHERE p.kind = 'propose' AND "
    proposed += f"p.plan = {plan}"
    others = f"{proposed}) AND NOT {proposed} AND p.who = NEW.who)"
    own = f"(SELECT kind FROM {_reviews(says)} AS own WHERE own.plan = {plan} AND "
    own += "own.who = NEW.who AND own.kind <> 'propose' ORDER BY id DESC LIMIT 1)"
    forms = {
        "require": f"{kind.format('approval')} IN {truth}",
        "propose": f"{named} AND {kind.format('plan')} = '{text}' "
        f"AND {kind.format('files')} = 'object'",
        "approve": f"{named} AND {reason} AND {others}",
        "refuse": f"{named} AND {reason} AND {field.format('because')} <> '' AND {others}",
        "withdraw": f"{named} AND {reason} AND {own} IN ('approve', 'refuse')",
    }
    cases = " ".join(f"WHEN NEW.kind = '{name}' THEN {form}" for name, form in forms.items())
    return f"""CASE {cases}
      WHEN NEW.kind = 'grant' AND {role} = 'reviewer' THEN {kind.format("who")} = '{text}'
        AND {who} <> '' AND EXISTS (SELECT 1 FROM roles WHERE role = 'owner' AND who <> {who})
      ELSE {old} END"""


def _unapproved(says: str, yes: str) -> str:
    """True of what needs an approval and has none; `yes` is how this database reads `true`."""
    reserved = "FROM events WHERE release = NEW.release AND kind = 'reserve'"
    reserved_for = f"(SELECT {says.format('payload', 'plan_digest')} {reserved})"
    plan = f"COALESCE({reserved_for}, {says.format('NEW.payload', 'plan_digest')}, '')"
    return f"""NEW.kind IN ('mandates', 'reserve', 'draw')
      AND COALESCE((SELECT {says.format("payload", "approval")} FROM events
                    WHERE kind = 'require' ORDER BY id DESC LIMIT 1) = {yes}, {_NO})
      AND (EXISTS (SELECT 1 {_standing(says, "refuse", plan)})
        OR NOT EXISTS (SELECT 1 {_standing(says, "approve", plan)}
             AND review.who <> NEW.who AND review.who <> COALESCE((SELECT who {reserved}), '')
             AND NOT EXISTS (SELECT 1 FROM {_reviews(says)} AS p
               WHERE p.kind = 'propose' AND p.plan = {plan} AND p.who = review.who)))"""


_NO = "(1 = 0)"
_SQLITE_SAYS = "CASE WHEN json_valid({0}) THEN json_extract({0}, '$.{1}') END"
_SQLITE_FORM = _well_formed(
    "json_type(NEW.payload, '$.{}')",
    "json_extract(NEW.payload, '$.{}')",
    ("text", "('true', 'false')"),
    _SQLITE_SAYS,
    before._SQLITE_FORM,
)
_SQLITE = (
    "DROP VIEW roles",
    before._SQLITE[0].replace(before._ROLES, _ROLES),
    "DROP TRIGGER events_are_allowed",
    f"""
    CREATE TRIGGER events_are_allowed BEFORE INSERT ON events WHEN {_REFUSED}
    BEGIN SELECT RAISE(ABORT, 'the role does not allow this'); END
    """,
    "DROP TRIGGER events_are_well_formed",
    f"""
    CREATE TRIGGER events_are_well_formed BEFORE INSERT ON events
    WHEN NOT COALESCE(CASE WHEN json_valid(NEW.payload)
      THEN json_type(NEW.payload) = 'object' AND {_SQLITE_FORM} END, 0)
    BEGIN SELECT RAISE(ABORT, 'the event is malformed'); END
    """,
    f"""
    CREATE TRIGGER events_are_approved BEFORE INSERT ON events
    WHEN {_unapproved(_SQLITE_SAYS, "1")}
    BEGIN SELECT RAISE(ABORT, 'the plan is not approved'); END
    """,
)

_POSTGRESQL_SAYS = "event_says({0}, '{1}')"
_POSTGRESQL_FORM = _well_formed(
    "json_typeof(said -> '{}')",
    "(said ->> '{}')",
    ("string", "('boolean')"),
    _POSTGRESQL_SAYS,
    before._POSTGRESQL_FORM,
)
_WRITERS = "('reviewer', 'releaser', 'publisher', 'owner')"


def _again(beginning: str, old: str, new: str) -> str:
    """The one statement of version 3 that begins like this, with `new` in place of `old`."""
    (found,) = [one for one in before._POSTGRESQL if one.strip().startswith(beginning)]
    replaced = found.replace(old, new)
    assert replaced != found
    return replaced


_POSTGRESQL = (
    _again("CREATE VIEW roles", before._ROLES, _ROLES).replace(
        "CREATE VIEW", "CREATE OR REPLACE VIEW"
    ),
    f"""
    CREATE OR REPLACE FUNCTION events_allowed() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF NEW.who <> current_user OR {_REFUSED} THEN
        RAISE EXCEPTION 'the role does not allow this' USING ERRCODE = '42501';
      END IF;
      RETURN NEW;
    END $$
    """,
    _again("CREATE FUNCTION events_well_formed", before._POSTGRESQL_FORM, _POSTGRESQL_FORM).replace(
        "CREATE FUNCTION", "CREATE OR REPLACE FUNCTION"
    ),
    _again("CREATE OR REPLACE FUNCTION events_give", before._WRITERS, _WRITERS),
    f"""
    CREATE FUNCTION events_approved() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
      IF {_unapproved(_POSTGRESQL_SAYS, "'true'")} THEN
        RAISE EXCEPTION 'the plan is not approved' USING ERRCODE = '42501';
      END IF;
      RETURN NEW;
    END $$
    """,
    """
    CREATE TRIGGER events_are_approved BEFORE INSERT ON events
    FOR EACH ROW EXECUTE FUNCTION events_approved()
    """,
    # A replaced function loses its search path.
    "DO $$ BEGIN "
    + "; ".join(
        before._HERE.format(name, "")
        for name in ("events_allowed", "events_well_formed", "events_give", "events_approved")
    )
    + "; END $$",
)
