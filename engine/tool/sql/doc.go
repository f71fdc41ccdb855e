// Package sql is the kind of tools that run one SQL statement on a SQLite database of the flow.
//
//	databases:
//	  shop: {path: shop.db, init: shop.sql}
//	tools:
//	  lookup_order:
//	    parameters: {order_id: {type: string}}
//	    sql:
//	      database: shop
//	      query: SELECT id, item, status FROM orders WHERE id = :order_id
//	      rows: one
//
// A statement that gives rows (SELECT, VALUES, or a change with RETURNING) gives a list of rows, or with `rows: one` the
// first row, and fails with the kind none_found when there is none. Any other gives {affected: N}. A row is an object by
// column name. At most 1000 rows are given: more is a failure, and a change that would give more is undone.
//
// Arguments are bound, never spliced into the text: :name stands for the parameter of that name. Lists and objects are
// bound as JSON text, true and false as 1 and 0, and a parameter that was left out as NULL. In results whole numbers keep
// every digit, dates and times are given as they are stored, and a BLOB is a failure.
//
// A statement that reads runs on a connection that cannot write. A change runs in a transaction of its own, so a call
// that was stopped has changed nothing and says so. What the database rejects is Failed, with SQLite's words; a database
// that is locked, missing or damaged is Unavailable.
//
// With `batch: true` the calls of one turn are one statement: a SELECT whose only parameter is used as a list, as in
//
//	query: SELECT id AS order_id, item FROM orders WHERE id IN (:order_id)
//
// Each call gets the rows that it would get alone; SQLite itself says which those are.
//
// Read sql.go first. scan.go reads SQL as far as this package must, run.go runs statements, init.go makes databases. batch.go
// makes several calls in one go, outline.go says of which queries that can be done.
package sql
