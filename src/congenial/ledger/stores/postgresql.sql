-- The tables of a ledger in a schema of a PostgreSQL database. One statement per paragraph:
-- `Store._build` runs them in order, in one transaction.
--
-- Here roles are access control: the writer is the database user, and whoever is granted a role is
-- given the database privileges that go with it and no others. Error codes tell the program which
-- refusal it was (`FAULTS` in postgres.py). sqlite.sql beside this file has the same rules.

CREATE TABLE ledger (format integer NOT NULL);

CREATE TABLE events (
  id integer PRIMARY KEY,
  at text NOT NULL,
  who text NOT NULL,
  kind text NOT NULL,
  release text,
  payload text NOT NULL,
  previous text NOT NULL UNIQUE,
  digest text NOT NULL UNIQUE
);

-- Writers lock its one row, which takes the privilege to update it; only roles that write have that.
CREATE TABLE writers (place integer NOT NULL);

INSERT INTO writers VALUES (1);

CREATE INDEX events_of_a_release ON events (release, id);

CREATE INDEX events_that_grant ON events (id) WHERE kind = 'grant';

CREATE INDEX events_that_require ON events (id) WHERE kind = 'require';

CREATE INDEX events_that_review ON events (id)
WHERE kind IN ('propose', 'approve', 'refuse', 'withdraw');

CREATE INDEX events_that_change_the_unit ON events (id) WHERE kind = 'unit';

-- A key of a payload as text.
CREATE FUNCTION event_says(payload text, name text) RETURNS text
LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  RETURN CAST(payload AS json) ->> name;
EXCEPTION WHEN data_exception THEN
  RETURN NULL;
END $$;

CREATE VIEW roles AS
SELECT DISTINCT ON (who) who, role FROM (
  SELECT id, event_says(payload, 'who') AS who, event_says(payload, 'role') AS role
  FROM events WHERE kind = 'grant'
) AS granted
WHERE who IS NOT NULL
  AND role IN ('none', 'reader', 'reviewer', 'releaser', 'publisher', 'owner')
ORDER BY who, id DESC;

CREATE VIEW reviews AS
SELECT id, kind, who, event_says(payload, 'plan_digest') AS plan
FROM events WHERE kind IN ('propose', 'approve', 'refuse', 'withdraw');

CREATE VIEW verdicts AS
SELECT DISTINCT ON (plan, who) plan, who, kind FROM reviews
WHERE kind <> 'propose' ORDER BY plan, who, id DESC;

CREATE FUNCTION events_are_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'events are append-only' USING ERRCODE = '23001';
END $$;

CREATE TRIGGER events_are_not_changed BEFORE UPDATE OR DELETE OR TRUNCATE ON events
FOR EACH STATEMENT EXECUTE FUNCTION events_are_append_only();

CREATE FUNCTION events_follow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.id <> (SELECT COALESCE(MAX(id), 0) + 1 FROM events) THEN
    RAISE EXCEPTION 'events are append-only' USING ERRCODE = '23001';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER events_are_not_inserted_between BEFORE INSERT ON events
FOR EACH ROW EXECUTE FUNCTION events_follow();

-- With the rights of whoever writes: `current_user` is the writer.
CREATE FUNCTION events_allowed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.who <> current_user OR EXISTS (SELECT 1 FROM roles) AND NOT EXISTS (
    SELECT 1 FROM roles WHERE who = NEW.who AND (
      role = 'owner'
      OR role = 'reviewer' AND NEW.kind IN ('approve', 'refuse', 'withdraw')
      OR role = 'publisher' AND NEW.kind = 'mandates'
      OR role IN ('releaser', 'publisher')
        AND NEW.kind IN ('propose', 'reserve', 'draw', 'commit', 'abandon')
    )
  ) THEN
    RAISE EXCEPTION 'the role does not allow this' USING ERRCODE = '42501';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER events_are_allowed BEFORE INSERT ON events
FOR EACH ROW EXECUTE FUNCTION events_allowed();

CREATE FUNCTION events_well_formed() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  said json;
  digest_of_plan text;
  last_kind text;
  fine boolean;
BEGIN
  BEGIN
    said := CAST(NEW.payload AS json);
    digest_of_plan := said ->> 'plan_digest';
    SELECT kind INTO last_kind FROM events
    WHERE release = NEW.release ORDER BY id DESC LIMIT 1;
    fine := json_typeof(said) = 'object'
      AND (NEW.kind NOT IN ('reserve', 'draw', 'commit', 'abandon')
        OR NEW.release IS NOT NULL AND NEW.release <> '')
      AND (NEW.kind NOT IN ('propose', 'approve', 'refuse', 'withdraw')
        OR json_typeof(said -> 'plan_digest') = 'string' AND length(digest_of_plan) = 64)
      AND (NEW.kind NOT IN ('approve', 'refuse', 'withdraw')
        OR json_typeof(said -> 'because') = 'string')
      AND (NEW.kind NOT IN ('approve', 'refuse')
        OR EXISTS (SELECT 1 FROM reviews WHERE kind = 'propose' AND plan = digest_of_plan)
          AND NOT EXISTS (SELECT 1 FROM reviews
            WHERE kind = 'propose' AND plan = digest_of_plan AND who = NEW.who))
      AND CASE NEW.kind
        WHEN 'open' THEN NEW.id = 1 AND json_typeof(said -> 'schema') = 'object'
          AND json_typeof(said -> 'adjacency') = 'object'
        WHEN 'budget' THEN json_typeof(said -> 'epsilon') IN ('string', 'null')
          AND json_typeof(said -> 'delta') IN ('string', 'null')
          AND json_typeof(said -> 'rho') IN ('string', 'null')
        WHEN 'mandates' THEN json_typeof(said -> 'statements') = 'array'
        WHEN 'unit' THEN said ->> 'kind' IN ('add-remove', 'several rows')
          AND CAST(said ->> 'max_rows' AS integer) >= 1
          AND NOT EXISTS (SELECT 1 FROM events AS earlier WHERE earlier.kind = 'unit'
            AND CAST(event_says(earlier.payload, 'max_rows') AS integer)
              > CAST(said ->> 'max_rows' AS integer))
        WHEN 'reserve' THEN last_kind IS NULL AND json_typeof(said -> 'name') = 'string'
          AND json_typeof(said -> 'description') = 'object'
          AND json_typeof(said -> 'guarantee') = 'object'
          AND json_typeof(said -> 'plan_digest') = 'string'
        WHEN 'draw' THEN last_kind = 'reserve'
        WHEN 'commit' THEN last_kind = 'draw'
          AND json_typeof(said -> 'bundle_digest') = 'string'
        WHEN 'abandon' THEN last_kind IN ('reserve', 'draw')
        WHEN 'grant' THEN json_typeof(said -> 'who') = 'string' AND said ->> 'who' <> ''
          AND said ->> 'role' IN ('none', 'reader', 'reviewer', 'releaser', 'publisher', 'owner')
          AND (said ->> 'role' = 'owner' OR EXISTS (SELECT 1 FROM roles
            WHERE role = 'owner' AND who <> said ->> 'who'))
        WHEN 'repair' THEN json_typeof(said -> 'event') = 'number'
          AND json_typeof(said -> 'because') = 'string'
          AND said ->> 'counts' IN ('nothing', 'unknown')
          AND said ->> 'digest' =
            (SELECT digest FROM events WHERE id = CAST(said ->> 'event' AS integer))
        WHEN 'require' THEN json_typeof(said -> 'approval') = 'boolean'
        WHEN 'propose' THEN json_typeof(said -> 'plan') = 'string'
          AND json_typeof(said -> 'files') = 'object'
        WHEN 'approve' THEN true
        WHEN 'refuse' THEN said ->> 'because' <> ''
        WHEN 'withdraw' THEN EXISTS (SELECT 1 FROM verdicts
          WHERE who = NEW.who AND plan = digest_of_plan AND kind IN ('approve', 'refuse'))
        END;
  EXCEPTION WHEN data_exception THEN
    fine := false;
  END;
  IF NOT COALESCE(fine, false) THEN
    RAISE EXCEPTION 'the event is malformed' USING ERRCODE = '23514';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER events_are_well_formed BEFORE INSERT ON events
FOR EACH ROW EXECUTE FUNCTION events_well_formed();

CREATE FUNCTION events_approved() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  asked text;
  reserved_by text;
BEGIN
  IF NEW.kind NOT IN ('mandates', 'reserve', 'draw') OR NOT COALESCE((
    SELECT event_says(payload, 'approval') = 'true' FROM events
    WHERE kind = 'require' ORDER BY id DESC LIMIT 1
  ), false) THEN
    RETURN NEW;
  END IF;
  SELECT event_says(payload, 'plan_digest'), who INTO asked, reserved_by FROM events
  WHERE release = NEW.release AND kind = 'reserve';
  asked := COALESCE(asked, event_says(NEW.payload, 'plan_digest'));
  IF EXISTS (SELECT 1 FROM verdicts WHERE plan = asked AND kind = 'refuse') OR NOT EXISTS (
    SELECT 1 FROM verdicts WHERE plan = asked AND kind = 'approve'
      AND who NOT IN (NEW.who, COALESCE(reserved_by, ''))
      AND who NOT IN (SELECT who FROM reviews WHERE kind = 'propose' AND plan = asked)
  ) THEN
    RAISE EXCEPTION 'the plan is not approved' USING ERRCODE = '42501';
  END IF;
  RETURN NEW;
END $$;

CREATE TRIGGER events_are_approved BEFORE INSERT ON events
FOR EACH ROW EXECUTE FUNCTION events_approved();

-- With the rights of the tables' owner, which only an event that was allowed comes to use. The name
-- is looked up first, because PUBLIC is not a user and would be everybody.
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
  EXECUTE format(
    'REVOKE ALL ON ledger, events, roles, reviews, verdicts, writers FROM %I', person);
  IF granted = 'none' THEN
    RETURN NULL;
  END IF;
  IF NOT has_schema_privilege(person, TG_TABLE_SCHEMA, 'USAGE') THEN
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', TG_TABLE_SCHEMA, person);
  END IF;
  EXECUTE format('GRANT SELECT ON ledger, events, roles, reviews, verdicts TO %I', person);
  IF granted <> 'reader' THEN
    EXECUTE format('GRANT INSERT ON events TO %I', person);
    EXECUTE format('GRANT SELECT, UPDATE ON writers TO %I', person);
  END IF;
  RETURN NULL;
END $$;

CREATE TRIGGER grants_give_privileges AFTER INSERT ON events
FOR EACH ROW WHEN (NEW.kind = 'grant') EXECUTE FUNCTION events_give();

-- The search path of each function is fixed: a temporary table of the same name must not be found.
DO $$
DECLARE
  made record;
BEGIN
  FOR made IN SELECT oid::regprocedure::text AS signature FROM pg_catalog.pg_proc
    WHERE pronamespace = (
      SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema
    ) AND proname IN ('event_says', 'events_are_append_only', 'events_follow', 'events_allowed',
      'events_well_formed', 'events_approved', 'events_give')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = %I, pg_temp', made.signature, current_schema);
  END LOOP;
END $$;
