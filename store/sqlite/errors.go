package sqlite

import (
	"context"
	"errors"
	"fmt"

	sqlite3 "modernc.org/sqlite/lib"

	"flowctl/store"
)

// Error says what is wrong with a database file and what to do about it.
type Error struct {
	File    string // as the user named it
	Problem string
	Hint    string // what to do next
	Err     error  // the cause, nil if there is none to tell; SQLite's own words stay out of the text
}

func (e *Error) Error() string {
	text := fmt.Sprintf("database %s: %s: %s", e.File, e.Problem, e.Hint)
	if code := code(e.Err); code != 0 {
		text += fmt.Sprintf(" (SQLite code %d)", code)
	} else if e.Err != nil {
		text += fmt.Sprintf(" (%v)", e.Err)
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

// code gives SQLite's extended result code, 0 for an error of somebody else.
func code(err error) int {
	var e interface{ Code() int } // *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

// busy says whether another connection's lock was in the way, so that trying again makes sense.
func busy(err error) bool {
	primary := code(err) & 0xff
	return primary == sqlite3.SQLITE_BUSY || primary == sqlite3.SQLITE_LOCKED || primary == sqlite3.SQLITE_PROTOCOL
}

// damaged says whether a part of the file cannot be read.
func damaged(err error) bool { return code(err)&0xff == sqlite3.SQLITE_CORRUPT }

// full says whether there was no room for what was to be written.
func full(err error) bool { return code(err)&0xff == sqlite3.SQLITE_FULL }

// explain puts an error of SQLite into words. The contract's errors, a context's and those explained already pass.
func explain(path string, err error) error {
	var explained *Error
	var conflict *store.MemoryConflict
	switch {
	case err == nil, errors.As(err, &explained), errors.As(err, &conflict), code(err) == 0,
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	}
	e := &Error{File: path, Err: err}
	switch code(err) & 0xff {
	case sqlite3.SQLITE_FULL:
		e.Problem = "the disk is full, so nothing more can be stored"
		e.Hint = "free some space on it, then go on; what was stored before is safe"
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		e.Problem = "it may not be written"
		e.Hint = "check the rights of the file and of its folder, or choose another path"
	case sqlite3.SQLITE_CANTOPEN:
		e.Problem = "it cannot be opened"
		e.Hint = "check that its folder exists and that you may write there"
	case sqlite3.SQLITE_NOTADB:
		e.Problem = "it is not a database"
		e.Hint = "choose another path; the file was not changed"
	case sqlite3.SQLITE_CORRUPT:
		e.Problem = "a part of it is damaged"
		e.Hint = `copy the file away, then save what can be read with: sqlite3 FILE .recover | sqlite3 NEWFILE`
	case sqlite3.SQLITE_IOERR:
		e.Problem = "the disk failed to read or write it"
		e.Hint = "check the disk and its file system, then go on"
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		e.Problem = "another program keeps it for itself"
		e.Hint = "find and end that program (such as an sqlite3 shell inside a transaction), then go on"
	case sqlite3.SQLITE_TOOBIG:
		e.Problem = "a single value is larger than the 1 GB that it can hold"
		e.Hint = "make the tool or the model give less"
	default:
		e.Problem = "it cannot be used"
		e.Hint = fmt.Sprintf("report this as a bug: %v", err)
	}
	return e
}
