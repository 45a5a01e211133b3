-- The tables of a ledger in a SQLite file. One statement per paragraph: `Store._build` runs them in
-- order, in one transaction.
--
-- What the triggers refuse, the program refuses before, in words. They are for whoever writes past
-- the program; in a file that its owner can edit they guard against accidents only.

CREATE TABLE ledger (format INTEGER NOT NULL);

-- The digest of an event covers the text of its payload and the digest before it: the chain cannot fork.
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  who TEXT NOT NULL,
  kind TEXT NOT NULL,
  release TEXT,
  payload TEXT NOT NULL,
  previous TEXT NOT NULL UNIQUE,
  digest TEXT NOT NULL UNIQUE
);

-- So that adding an event does not read the whole history.
CREATE INDEX events_of_a_release ON events (release, id);

CREATE INDEX events_that_grant ON events (id) WHERE kind = 'grant';

CREATE INDEX events_that_require ON events (id) WHERE kind = 'require';

CREATE INDEX events_that_review ON events (id)
WHERE kind IN ('propose', 'approve', 'refuse', 'withdraw');

CREATE INDEX events_that_change_the_unit ON events (id) WHERE kind = 'unit';

-- The role of a person is what the last grant about them says. With MAX the other columns are those
-- of the row that has it.
CREATE VIEW roles AS
SELECT who, role FROM (
  SELECT json_extract(payload, '$.who') AS who, json_extract(payload, '$.role') AS role, MAX(id)
  FROM events
  WHERE kind = 'grant' AND CASE WHEN json_valid(payload) THEN
    json_type(payload, '$.who') = 'text' AND json_extract(payload, '$.role')
      IN ('none', 'reader', 'reviewer', 'releaser', 'publisher', 'owner')
    ELSE 0 END
  GROUP BY json_extract(payload, '$.who')
);

-- What was said about a plan, by its digest.
CREATE VIEW reviews AS
SELECT id, kind, who,
  CASE WHEN json_valid(payload) THEN json_extract(payload, '$.plan_digest') END AS plan
FROM events WHERE kind IN ('propose', 'approve', 'refuse', 'withdraw');

-- The last word of each reviewer on each plan.
CREATE VIEW verdicts AS
SELECT plan, who, kind FROM (
  SELECT plan, who, kind, MAX(id) FROM reviews WHERE kind <> 'propose' GROUP BY plan, who
);

CREATE TRIGGER events_are_not_changed BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

CREATE TRIGGER events_are_not_removed BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- INSERT OR REPLACE removes a row without firing the trigger above.
CREATE TRIGGER events_are_not_replaced BEFORE INSERT ON events
WHEN NEW.id <> (SELECT COALESCE(MAX(id), 0) + 1 FROM events)
BEGIN SELECT RAISE(ABORT, 'events are append-only'); END;

-- Until the first grant everybody who can write may do everything. Kinds not named here are the
-- owner's, so that a kind added later is not open to all.
CREATE TRIGGER events_are_allowed BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM roles) AND NOT EXISTS (
  SELECT 1 FROM roles WHERE who = NEW.who AND (
    role = 'owner'
    OR role = 'reviewer' AND NEW.kind IN ('approve', 'refuse', 'withdraw')
    OR role = 'publisher' AND NEW.kind = 'mandates'
    OR role IN ('releaser', 'publisher')
      AND NEW.kind IN ('propose', 'reserve', 'draw', 'commit', 'abandon')
  )
)
BEGIN SELECT RAISE(ABORT, 'the role does not allow this'); END;

-- An event that cannot be read stops everybody, and nothing may be removed. So an event is taken only
-- if its payload has the form of its kind, its release moves on as releases do, and an owner remains.
-- Unknown (NULL) counts as false.
CREATE TRIGGER events_are_well_formed BEFORE INSERT ON events
WHEN NOT COALESCE(CASE WHEN json_valid(NEW.payload) THEN json_type(NEW.payload) = 'object'
  AND (NEW.kind NOT IN ('reserve', 'draw', 'commit', 'abandon')
    OR NEW.release IS NOT NULL AND NEW.release <> '')
  AND (NEW.kind NOT IN ('propose', 'approve', 'refuse', 'withdraw')
    OR json_type(NEW.payload, '$.plan_digest') = 'text'
      AND length(json_extract(NEW.payload, '$.plan_digest')) = 64)
  AND (NEW.kind NOT IN ('approve', 'refuse', 'withdraw')
    OR json_type(NEW.payload, '$.because') = 'text')
  AND (NEW.kind NOT IN ('approve', 'refuse')  -- of a plan that others proposed
    OR EXISTS (SELECT 1 FROM reviews WHERE kind = 'propose'
        AND plan = json_extract(NEW.payload, '$.plan_digest'))
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE kind = 'propose' AND who = NEW.who
        AND plan = json_extract(NEW.payload, '$.plan_digest')))
  AND CASE NEW.kind
    WHEN 'open' THEN NEW.id = 1 AND json_type(NEW.payload, '$.schema') = 'object'
      AND json_type(NEW.payload, '$.adjacency') = 'object'
    WHEN 'budget' THEN json_type(NEW.payload, '$.epsilon') IN ('text', 'null')
      AND json_type(NEW.payload, '$.delta') IN ('text', 'null')
      AND json_type(NEW.payload, '$.rho') IN ('text', 'null')
    WHEN 'mandates' THEN json_type(NEW.payload, '$.statements') = 'array'
    WHEN 'unit' THEN json_extract(NEW.payload, '$.kind') IN ('add-remove', 'several rows')
      AND json_type(NEW.payload, '$.max_rows') = 'integer'
      AND json_extract(NEW.payload, '$.max_rows') >= 1
      AND NOT EXISTS (SELECT 1 FROM events AS earlier WHERE earlier.kind = 'unit'
        AND json_extract(earlier.payload, '$.max_rows')
          > json_extract(NEW.payload, '$.max_rows'))
    WHEN 'reserve' THEN NOT EXISTS (SELECT 1 FROM events WHERE release = NEW.release)
      AND json_type(NEW.payload, '$.name') = 'text'
      AND json_type(NEW.payload, '$.description') = 'object'
      AND json_type(NEW.payload, '$.guarantee') = 'object'
      AND json_type(NEW.payload, '$.plan_digest') = 'text'
    WHEN 'draw' THEN 'reserve' =
      (SELECT kind FROM events WHERE release = NEW.release ORDER BY id DESC LIMIT 1)
    WHEN 'commit' THEN json_type(NEW.payload, '$.bundle_digest') = 'text' AND 'draw' =
      (SELECT kind FROM events WHERE release = NEW.release ORDER BY id DESC LIMIT 1)
    WHEN 'abandon' THEN
      (SELECT kind FROM events WHERE release = NEW.release ORDER BY id DESC LIMIT 1)
        IN ('reserve', 'draw')
    WHEN 'grant' THEN json_type(NEW.payload, '$.who') = 'text'
      AND json_extract(NEW.payload, '$.who') <> ''
      AND json_extract(NEW.payload, '$.role')
        IN ('none', 'reader', 'reviewer', 'releaser', 'publisher', 'owner')
      AND (json_extract(NEW.payload, '$.role') = 'owner' OR EXISTS (SELECT 1 FROM roles
        WHERE role = 'owner' AND who <> json_extract(NEW.payload, '$.who')))
    WHEN 'repair' THEN json_type(NEW.payload, '$.event') = 'integer'
      AND json_type(NEW.payload, '$.because') = 'text'
      AND json_extract(NEW.payload, '$.counts') IN ('nothing', 'unknown')
      AND json_extract(NEW.payload, '$.digest') =
        (SELECT digest FROM events WHERE id = json_extract(NEW.payload, '$.event'))
    WHEN 'require' THEN json_type(NEW.payload, '$.approval') IN ('true', 'false')
    WHEN 'propose' THEN json_type(NEW.payload, '$.plan') = 'text'
      AND json_type(NEW.payload, '$.files') = 'object'
    WHEN 'approve' THEN 1
    WHEN 'refuse' THEN json_extract(NEW.payload, '$.because') <> ''
    WHEN 'withdraw' THEN EXISTS (SELECT 1 FROM verdicts WHERE who = NEW.who
      AND plan = json_extract(NEW.payload, '$.plan_digest') AND kind IN ('approve', 'refuse'))
    END
  END, 0)
BEGIN SELECT RAISE(ABORT, 'the event is malformed'); END;

-- From "require" on, until an owner takes it back, figures and releases need a plan that somebody
-- other than its proposers, and other than the writer, has approved, and that nobody refuses.
CREATE TRIGGER events_are_approved BEFORE INSERT ON events
WHEN NEW.kind IN ('mandates', 'reserve', 'draw')
  AND COALESCE((SELECT CASE WHEN json_valid(payload) THEN json_extract(payload, '$.approval') END
    FROM events WHERE kind = 'require' ORDER BY id DESC LIMIT 1), 0)
  AND NOT EXISTS (
    SELECT 1 FROM (
      SELECT COALESCE(
        (SELECT CASE WHEN json_valid(payload) THEN json_extract(payload, '$.plan_digest') END
          FROM events WHERE release = NEW.release AND kind = 'reserve'),
        CASE WHEN json_valid(NEW.payload) THEN json_extract(NEW.payload, '$.plan_digest') END
      ) AS plan,
      COALESCE((SELECT who FROM events WHERE release = NEW.release AND kind = 'reserve'), '')
        AS reserved_by
    ) AS asked
    JOIN verdicts ON verdicts.plan = asked.plan
    WHERE verdicts.kind = 'approve' AND verdicts.who NOT IN (NEW.who, asked.reserved_by)
      AND NOT EXISTS (SELECT 1 FROM reviews WHERE reviews.kind = 'propose'
        AND reviews.plan = asked.plan AND reviews.who = verdicts.who)
      AND NOT EXISTS (SELECT 1 FROM verdicts AS no WHERE no.plan = asked.plan
        AND no.kind = 'refuse')
  )
BEGIN SELECT RAISE(ABORT, 'the plan is not approved'); END;
