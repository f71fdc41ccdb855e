-- Version 2: the long-term memory can be searched, and answers of models are kept.

-- Its entries get a number of their own, which the index below refers to. SQLite may number rows without one anew.
ALTER TABLE memory RENAME TO memory_v1;
CREATE TABLE memory (
  id         INTEGER PRIMARY KEY,
  namespace  TEXT NOT NULL,
  key        TEXT NOT NULL,
  value      TEXT NOT NULL,                -- JSON
  version    INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (namespace, key)
) STRICT;
INSERT INTO memory (namespace, key, value, version, updated_at)
SELECT namespace, key, value, version, updated_at FROM memory_v1 ORDER BY namespace, key;
DROP TABLE memory_v1;

-- The index knows every three neighbouring characters of key and value, in any case. It holds no text of its own, and the
-- triggers keep it in step, whoever writes to memory. (REPLACE, which we do not use, fires no trigger for the row that it
-- takes away and leaves words behind. They do no harm: what the index finds is looked at before it is a hit.)
CREATE VIRTUAL TABLE memory_text USING fts5 (key, value, content='memory', content_rowid='id', tokenize='trigram');
INSERT INTO memory_text (memory_text) VALUES ('rebuild');

CREATE TRIGGER memory_added AFTER INSERT ON memory BEGIN
  INSERT INTO memory_text (rowid, key, value) VALUES (new.id, new.key, new.value);
END;
CREATE TRIGGER memory_removed AFTER DELETE ON memory BEGIN
  INSERT INTO memory_text (memory_text, rowid, key, value) VALUES ('delete', old.id, old.key, old.value);
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
