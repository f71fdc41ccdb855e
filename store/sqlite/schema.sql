-- The first schema. A stored file is never changed in place: what a later version needs is a further migration.
-- Times are milliseconds since 1970-01-01 UTC. Text that may be missing is '', except events.key.

CREATE TABLE runs (
  no                INTEGER PRIMARY KEY,   -- the run's number in this file; events.id, blobs.run ... are built from it
  id                TEXT NOT NULL UNIQUE,
  flow              TEXT NOT NULL,
  flow_hash         TEXT NOT NULL,
  dir               TEXT NOT NULL,
  status            TEXT NOT NULL,
  state             TEXT NOT NULL,
  parent            TEXT NOT NULL,         -- id of the run whose child this is
  owner             TEXT NOT NULL,
  holder            TEXT NOT NULL,         -- workers.id of the process that works on it
  seq               INTEGER NOT NULL,      -- of the newest event
  epoch             INTEGER NOT NULL,      -- raised by every claim
  due               INTEGER,
  created           INTEGER NOT NULL,
  updated           INTEGER NOT NULL,
  steps             INTEGER NOT NULL,
  model_calls       INTEGER NOT NULL,
  tool_calls        INTEGER NOT NULL,
  prompt_tokens     INTEGER NOT NULL,
  completion_tokens INTEGER NOT NULL,
  cost              REAL
) STRICT;

-- A commit touches none of these indexes unless it changes status, due or holder.
CREATE INDEX runs_newest ON runs (created, id);
CREATE INDEX runs_status ON runs (status, created, id);
CREATE INDEX runs_parent ON runs (parent) WHERE parent <> '';
CREATE INDEX runs_holder ON runs (holder) WHERE holder <> '';
CREATE INDEX runs_due ON runs (due) WHERE due IS NOT NULL;

CREATE TABLE events (
  id    INTEGER PRIMARY KEY,               -- runs.no << 32 | seq
  at    INTEGER NOT NULL,
  type  TEXT NOT NULL,
  state TEXT NOT NULL,
  visit INTEGER NOT NULL,
  step  INTEGER NOT NULL,
  key   TEXT,                              -- of an effect
  data  TEXT NOT NULL                      -- JSON
) STRICT;

CREATE TABLE blobs (
  run  INTEGER NOT NULL,                   -- runs.no
  hash TEXT NOT NULL,
  data BLOB NOT NULL,
  UNIQUE (run, hash)
) STRICT;

CREATE TABLE checkpoints (
  run  INTEGER PRIMARY KEY,                -- runs.no
  data BLOB NOT NULL
) STRICT;

CREATE TABLE notices (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,  -- never given twice
  run  INTEGER NOT NULL,                   -- runs.no
  kind TEXT NOT NULL,
  at   INTEGER NOT NULL,
  data TEXT NOT NULL                       -- JSON
) STRICT;
CREATE INDEX notices_run ON notices (run);

CREATE TABLE workers (
  id        TEXT PRIMARY KEY,
  boot      TEXT NOT NULL,
  namespace TEXT NOT NULL,
  pid       INTEGER NOT NULL,
  started   TEXT NOT NULL,
  beat      INTEGER NOT NULL               -- newest heartbeat
) STRICT, WITHOUT ROWID;

CREATE TABLE flows (
  hash   TEXT PRIMARY KEY,
  source BLOB NOT NULL
) STRICT;

CREATE TABLE memory (
  namespace  TEXT NOT NULL,
  key        TEXT NOT NULL,
  value      TEXT NOT NULL,                -- JSON
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  PRIMARY KEY (namespace, key)
) STRICT;

-- What people read. Data that is no JSON (a damaged event) shows as empty instead of failing the whole query.

CREATE VIEW event_log AS
SELECT runs.id AS run, events.id & 0xffffffff AS seq,
       strftime('%Y-%m-%dT%H:%M:%fZ', events.at / 1000.0, 'unixepoch') AS at,
       events.type, events.state, events.visit, events.step, events.key,
       iif(json_valid(events.data), events.data, '{}') AS data
FROM runs JOIN events ON events.id > runs.no << 32 AND events.id < (runs.no + 1) << 32;

CREATE VIEW decision_log AS
SELECT run, seq, at, state, visit, step, key,
       json_extract(data, '$.model') AS model,
       json_extract(data, '$.thought') AS thought,
       json_extract(data, '$.prompt_tokens') AS prompt_tokens,
       json_extract(data, '$.completion_tokens') AS completion_tokens,
       json_extract(data, '$.ms') AS ms
FROM event_log WHERE type = 'model_called';

CREATE VIEW execution_log AS
SELECT run, seq, at, state, visit, step, key,
       json_extract(data, '$.tool') AS tool,
       json_extract(data, '$.args') AS args,
       json_extract(data, '$.result.status') AS status,
       json_extract(data, '$.ms') AS ms,
       json_extract(data, '$.result.value') AS result,
       json_extract(data, '$.result.error') AS error
FROM event_log WHERE type = 'tool_finished';

CREATE VIEW state_log AS
SELECT run, seq, at, type, state, visit, step,
       iif(json_extract(data, '$.secret'), json_set(data, '$.value', '***'), data) AS data
FROM event_log WHERE type IN ('state_entered', 'transition', 'var_set');
