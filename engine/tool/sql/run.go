package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// query is one tool.
type query struct {
	pool  *pool
	name  string // of the tool
	path  string
	stmt  statement
	one   bool
	reads bool // it runs on a connection that cannot write
	list  list // where batch is wanted
}

func (q query) run(ctx context.Context, call tool.Call) (machine.Value, error) {
	db, err := q.pool.get(q.path)
	if err != nil {
		return nil, err
	}
	args, err := q.bind(call.Args)
	if err != nil {
		return nil, err
	}
	if q.reads {
		v, err := q.look(ctx, db.read, args)
		if err != nil && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return v, q.explain(err)
	}
	v, err := q.change(ctx, db.write, args)
	var own *tool.Error
	if err != nil && ctx.Err() != nil && !errors.As(err, &own) {
		return nil, tool.Undone(ctx, q.name) // the transaction has not been committed
	}
	return v, q.explain(err)
}

// bind gives the arguments by the names that the statement has.
func (q query) bind(args machine.Values) ([]any, error) {
	bound := make([]any, 0, len(q.stmt.names))
	for _, name := range q.stmt.names {
		v, err := bindable(name, args[name])
		if err != nil {
			return nil, err
		}
		bound = append(bound, sql.Named(name, v))
	}
	return bound, nil
}

// bindable gives the value of a parameter as SQLite takes it.
func bindable(name string, v machine.Value) (any, error) {
	switch x := v.(type) {
	case bool:
		if x {
			return int64(1), nil
		}
		return int64(0), nil
	case []machine.Value, machine.Values:
		data, err := machine.EncodeValue(x)
		if err != nil {
			return nil, fmt.Errorf("the parameter %s is no JSON: %w", name, err)
		}
		return string(data), nil
	}
	return v, nil
}

// look runs a statement that reads.
func (q query) look(ctx context.Context, db *sql.DB, args []any) (machine.Value, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }() // it goes back to the pool
	return q.fetch(ctx, conn, conn, args)
}

// change runs a statement that writes, in a transaction that is committed only when all has gone well.
func (q query) change(ctx context.Context, db *sql.DB, args []any) (machine.Value, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // after a commit it does nothing
	v, err := q.changeIn(ctx, conn, tx, args)
	if err != nil && !errors.Is(err, errNoRow) {
		return nil, err
	}
	if commit := tx.Commit(); commit != nil {
		return nil, uncertain(commit)
	}
	return v, err
}

func (q query) changeIn(ctx context.Context, conn *sql.Conn, tx *sql.Tx, args []any) (machine.Value, error) {
	if q.stmt.rows {
		return q.fetch(ctx, conn, tx, args)
	}
	result, err := tx.ExecContext(ctx, q.stmt.text, args...)
	if err != nil {
		return nil, err
	}
	affected := int64(0)
	if q.stmt.dml() { // after any other statement SQLite still tells the number of the last change
		if affected, err = result.RowsAffected(); err != nil {
			return nil, err
		}
	}
	return machine.Values{"affected": affected}, nil
}

// uncertain marks the error of a commit that may have taken place: a disk that fails while it is written to.
func uncertain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) && e.Code()&0xff == sqlite3.SQLITE_IOERR {
		return &tool.Error{Status: tool.Unknown, Err: fmt.Errorf("the change may or may not have been stored: %s", words(e))}
	}
	return err
}

// errNoRow is the failure of `rows: one` without a row.
var errNoRow = tool.Failf("none_found", "no row was found")

// explain makes a tool's error of a database's.
func (q query) explain(err error) error {
	var own *tool.Error
	var e *sqlite.Error
	name := filepath.Base(q.path)
	switch {
	case err == nil, errors.As(err, &own):
		return err
	case !errors.As(err, &e):
		return tool.Unavailablef("the database %s cannot be used: %w", name, err)
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return tool.Unavailablef("the database %s is locked: another program has been writing to it for more than 5 s", name)
	case sqlite3.SQLITE_READONLY:
		if q.reads {
			return tool.Failf("", "%s may only read, since its effect is read, but the statement changes data; nothing was changed", q.name)
		}
		return tool.Unavailablef("the database %s cannot be written to: %s", name, words(e))
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PERM, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_AUTH:
		return tool.Unavailablef("the database %s cannot be used: %s", name, words(e))
	}
	return tool.Failf("", "the database rejected the statement: %s", words(e))
}

var codeSuffix = regexp.MustCompile(` \(\d+\)$`)

// words gives SQLite's own message, without what the driver puts around it.
func words(e *sqlite.Error) string {
	msg := codeSuffix.ReplaceAllString(e.Error(), "")
	for _, prefix := range []string{"SQL logic error: ", "constraint failed: "} {
		msg = strings.TrimPrefix(msg, prefix)
	}
	return msg
}
