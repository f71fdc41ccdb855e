-- Version 2: the long-term memory can be searched, and answers of models are kept.

-- Its entries get a number of their own, which the index below refers to. SQLite may number rows without one anew.
ALTER TABLE memory RENAME TO memory_v1;
CREATE TABLE memory (
  id         INTEGER PRIMARY KEY,
  namespace  TEXT NOT NULL,
  key        TEXT NOT NULL,
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  value      TEXT NOT NULL,                -- JSON; last, so that the others are read without it
  UNIQUE (namespace, key)
) STRICT;
INSERT INTO memory (namespace, key, version, updated_at, value)
SELECT namespace, key, version, updated_at, value FROM memory_v1 ORDER BY namespace, key;
DROP TABLE memory_v1;

-- The versions of deleted keys, from which they go on when they are written anew.
CREATE TABLE memory_gone (
  namespace TEXT NOT NULL,
  key       TEXT NOT NULL,
  version   INTEGER NOT NULL,
  PRIMARY KEY (namespace, key)
) STRICT, WITHOUT ROWID;

-- The index knows every three neighbouring characters of key and value, in any case. It holds no text of its own. The
-- triggers keep it and memory_gone in step, whoever writes to memory. (REPLACE, which we do not use, fires no trigger for
-- the row that it takes away and leaves words behind. They do no harm: what the index finds is looked at before it is a
-- hit.)
CREATE VIRTUAL TABLE memory_text USING fts5 (key, value, content='memory', content_rowid='id', tokenize='trigram');
INSERT INTO memory_text (memory_text) VALUES ('rebuild');

CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
  INSERT INTO memory_text (rowid, key, value) VALUES (new.id, new.key, new.value);
  DELETE FROM memory_gone WHERE namespace = new.namespace AND key = new.key;
END;
CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
  INSERT INTO memory_text (memory_text, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
  INSERT INTO memory_gone (namespace, key, version) VALUES (old.namespace, old.key, old.version)
  ON CONFLICT DO UPDATE SET version = max(version, excluded.version);
END;
CREATE TRIGGER memory_changed AFTER UPDATE ON memory BEGIN
  INSERT INTO memory_text (memory_text, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
  INSERT INTO memory_text (rowid, key, value) VALUES (new.id, new.key, new.value);
END;

CREATE TABLE cache (
  key   TEXT NOT NULL UNIQUE,              -- hash of a request to a model
  until INTEGER NOT NULL,                  -- from then on it is not given out
  data  BLOB NOT NULL
) STRICT;
CREATE INDEX cache_until ON cache (until);
