package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"modernc.org/sqlite"

	"flowctl/store"
)

// Durability says what an acknowledged commit survives.
type Durability string

// The durabilities.
const (
	Full   Durability = "full"   // a power loss: every commit is synced to the disk before it is acknowledged
	Normal Durability = "normal" // a killed process; a power loss may take the newest commits, but never damages the file
)

// Options are the settings of a database. The zero Options are the defaults.
type Options struct {
	// Durability is Full or Normal. Defaults to Full.
	Durability Durability
	// Now gives the time that memory entries are stamped with. Defaults to time.Now. It is called from many goroutines.
	Now func() time.Time
	// Readers is the number of connections that read at the same time. Defaults to 4.
	Readers int
}

const (
	busyTimeout = 15 * time.Second // how long SQLite itself waits for a lock

	// A commit writes whole pages: usually the newest page of its run's events and the one of the run's row. Small pages
	// make that cheap, and events of some KiB, which spill onto pages of their own, waste less.
	pageSize = 2048 // bytes

	checkpointPages = 2000     // the write-ahead log is copied back whenever it has grown by this many pages
	walLimit        = 16 << 20 // bytes that the write-ahead log's file is cut down to when it was larger
)

// DB is a store in one SQLite file. It is safe for concurrent use.
type DB struct {
	path    string // as the caller named it, for messages
	now     func() time.Time
	writer  *writer
	readers *sql.DB
	reads   reads
	heads   map[string]head // by run id; used by the writer's leader only
}

var (
	_ store.Store  = (*DB)(nil)
	_ store.Memory = (*DB)(nil)
	_ store.Cache  = (*DB)(nil)
)

// Open opens the database at path and makes it when there is none; the folder must exist. It brings an older schema up to
// date. store.ErrNewerSchema is returned, wrapped, when the file's schema is newer than this version's; a file of another
// program is refused unchanged. The caller closes the DB. The context bounds the opening only.
func Open(ctx context.Context, path string, o Options) (*DB, error) {
	if o.Durability == "" {
		o.Durability = Full
	}
	if o.Durability != Full && o.Durability != Normal {
		return nil, fmt.Errorf("durability %q is unknown: use %q or %q", o.Durability, Full, Normal)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	if err := checkPath(path); err != nil {
		return nil, err
	}
	file, err := filepath.Abs(path)
	if err != nil {
		return nil, &Error{File: path, Problem: "its folder cannot be found out", Hint: "give the whole path", Err: err}
	}
	if err := patiently(ctx, func() error { return prepareFile(ctx, path, file, o.Durability) }); err != nil {
		return nil, explain(path, err)
	}
	db := &DB{path: path, now: o.Now, heads: make(map[string]head)}
	db.writer = newWriter(file, func(ctx context.Context) (*conn, error) {
		return connect(ctx, dsn(file, o.Durability, writing))
	}, func() { clear(db.heads) })
	// The writer's connection is there from the start and goes last: only it can put the write-ahead log away.
	err = patiently(ctx, func() error { return db.writer.open(ctx) })
	if err == nil {
		err = db.openReaders(ctx, dsn(file, o.Durability, reading), o.Readers)
	}
	if err != nil {
		return nil, explain(path, errors.Join(err, db.Close()))
	}
	return db, nil
}

// Close waits for the commits that are under way, then closes the file. Later calls fail. A second Close does nothing.
func (db *DB) Close() error {
	var err error
	if db.readers != nil {
		err = db.readers.Close()
	}
	return explain(db.path, errors.Join(err, db.writer.close()))
}

// write carries an op out; see writer.do.
func (db *DB) write(ctx context.Context, o op) error { return explain(db.path, db.writer.do(ctx, o)) }

func (db *DB) openReaders(ctx context.Context, dsn string, n int) error {
	connector, err := sqlite.NewConnector(dsn)
	if err != nil {
		return err
	}
	db.readers = sql.OpenDB(connector)
	db.readers.SetMaxOpenConns(n)
	db.readers.SetMaxIdleConns(n)
	return db.reads.prepare(ctx, db.readers)
}

// checkPath refuses what SQLite would report in a way that helps nobody.
func checkPath(path string) error {
	switch {
	case path == "":
		return errors.New("no database file is named: give its path, such as flowctl.db")
	case strings.ContainsRune(path, 0):
		return fmt.Errorf("the database path %q holds a zero byte: give another path", path)
	}
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return &Error{File: path, Problem: "it is a folder, not a database file",
			Hint: "name a file in it, such as " + filepath.Join(path, "flowctl.db")}
	case err == nil && !info.Mode().IsRegular():
		return &Error{File: path, Problem: "it is no ordinary file", Hint: "choose another path for the database"}
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return &Error{File: path, Problem: "it cannot be reached", Hint: "check the path and your rights on its folders",
			Err: err}
	}
	folder := filepath.Dir(path)
	if info, err := os.Stat(folder); err != nil || !info.IsDir() {
		return &Error{File: path, Problem: fmt.Sprintf("the folder %s does not exist", folder),
			Hint: "make it first, or choose another path", Err: err}
	}
	if kind := networkShare(folder); kind != "" {
		return &Error{File: path, Problem: "it is on a network share (" + kind + "), where SQLite cannot keep it safe",
			Hint: "choose a path on a local disk"}
	}
	return nil
}

// A use is what a connection is for.
type use string

const (
	making  use = "rwc" // making the file and its schema
	writing use = "rw"  // the writer's
	reading use = "ro"  // the readers'
)

// dsn names the file and everything that a connection is set to. All connections of one use are set alike, and all alike
// but for this: the writer does not let SQLite wait for a lock. SQLite looks for it ten times a second in the end and so
// misses its turn again and again where another process writes a lot; the writer looks more often, see begin.
func dsn(file string, d Durability, u use) string {
	q := url.Values{
		"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())},
		"_journal_mode": {"WAL"}, // applied after the page size, which a file takes on when it is made
		"_synchronous":  {strings.ToUpper(string(d))},
		"_foreign_keys": {"1"},
		"_pragma": {
			fmt.Sprintf("page_size(%d)", pageSize),
			fmt.Sprintf("wal_autocheckpoint(%d)", checkpointPages),
			fmt.Sprintf("journal_size_limit(%d)", walLimit),
			"temp_store(MEMORY)",
			"cache_size(-8192)", // KiB
		},
	}
	switch u {
	case writing:
		q.Set("_busy_timeout", "0")
	case reading:
		q.Set("_query_only", "1")
	}
	return fileURL(file, u, q)
}

// probeDSN opens a file that may be anybody's and changes nothing in it.
func probeDSN(file string) string {
	return fileURL(file, writing, url.Values{"_busy_timeout": {fmt.Sprint(busyTimeout.Milliseconds())}, "_query_only": {"1"}})
}

// fileURL escapes the absolute path, so that ?, #, % and spaces in it are only letters.
func fileURL(file string, u use, q url.Values) string {
	path := filepath.ToSlash(file)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // C:/x
	}
	q.Set("mode", string(u))
	q.Set("_txlock", "immediate")
	q.Set("_error_rc", "1") // no stale text in errors
	q.Set("_dqs", "0")
	return (&url.URL{Scheme: "file", Path: path, RawQuery: q.Encode()}).String()
}
