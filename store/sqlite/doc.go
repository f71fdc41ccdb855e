// Package sqlite keeps runs in one SQLite file. It is the store of the command line and the first one to choose.
//
// Writing. All writes of a process go through one connection that stands outside any pool (writer.go). Whoever finds it
// idle commits everything that is queued in one transaction, answers the others and hands the lead on, so a lone run
// pays one fsync per commit and many runs share one. Every caller returns when its own commit is durable. Reading goes
// through a small pool of read-only connections and never waits for the writer.
//
// Several processes may share one file on a local disk: the writer takes SQLite's lock at BEGIN, waits for others, and
// leaves them a turn. A network share cannot carry it, since SQLite's write-ahead log needs shared memory; Open refuses
// the ones it knows.
//
// The file can be read with the sqlite3 shell while flowctl runs: tables runs, events, blobs, checkpoints, notices,
// workers, flows, memory and cache, and views event_log, decision_log, execution_log and state_log. Times are integers,
// milliseconds since 1970 in UTC; the views show them as text. The index memory_text, which triggers keep in step with
// memory, finds words of three characters and more, also inside of longer ones; shorter words are found by reading. The
// table memory_gone keeps the versions of deleted keys, and with them the keys' names.
//
// Read sqlite.go first, then writer.go and commit.go. The tables are in schema.sql and schema2.sql.
package sqlite
