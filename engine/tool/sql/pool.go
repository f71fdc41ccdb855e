package sql

import (
	"database/sql"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	_ "modernc.org/sqlite" // the driver

	"flowctl/engine/tool"
)

const (
	busyTimeout = "5000" // milliseconds that a call waits for a database that somebody else is writing to
	maxReaders  = 4      // connections per database, beside the one that writes
)

// pool keeps the open databases of a process by path.
type pool struct {
	mu     sync.Mutex
	open   map[string]*database
	closed bool
}

// database is one open file: one connection that writes and a few that cannot.
type database struct {
	file        fs.FileInfo
	read, write *sql.DB
}

// get opens a database or gives the one that is open. A file that was replaced is opened anew: the old connections would
// go on with a file that nobody else sees.
func (p *pool) get(path string) (*database, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, tool.Unavailablef("the database %s is not there", filepath.Base(path))
	case err != nil:
		return nil, tool.Unavailablef("the database %s cannot be opened: %w", filepath.Base(path), cause(err))
	case !info.Mode().IsRegular():
		return nil, tool.Unavailablef("the database %s is not a plain file", filepath.Base(path))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, tool.Unavailablef("the databases have been closed, since the program is ending")
	}
	d := p.open[path]
	if d != nil && os.SameFile(d.file, info) {
		return d, nil
	}
	if d != nil {
		_ = d.close() // its file is gone; an error changes nothing
	}
	d, err = openDatabase(path, info)
	if err != nil {
		return nil, tool.Unavailablef("the database %s cannot be opened: %w", filepath.Base(path), err)
	}
	if p.open == nil {
		p.open = map[string]*database{}
	}
	p.open[path] = d
	return d, nil
}

func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	var errs []error
	for _, d := range p.open {
		errs = append(errs, d.close())
	}
	p.open = nil
	return errors.Join(errs...)
}

// openDatabase connects lazily: the first call on each side opens a connection. Settings stand in the data source name,
// so that every connection has them.
func openDatabase(path string, info fs.FileInfo) (*database, error) {
	read, err := sql.Open("sqlite", dsn(path, "_query_only", "1"))
	if err != nil {
		return nil, err
	}
	write, err := sql.Open("sqlite", dsn(path, "_journal_mode", "WAL", "_synchronous", "FULL", "_txlock", "immediate"))
	if err != nil {
		return nil, errors.Join(err, read.Close())
	}
	read.SetMaxOpenConns(maxReaders)
	write.SetMaxOpenConns(1)
	return &database{file: info, read: read, write: write}, nil
}

func (d *database) close() error { return errors.Join(d.read.Close(), d.write.Close()) }

// dsn names a database that must exist, with settings in pairs.
func dsn(path string, settings ...string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") { // a drive letter
		slashed = "/" + slashed
	}
	q := url.Values{"mode": {"rw"}, "_busy_timeout": {busyTimeout}, "_foreign_keys": {"1"}, "_error_rc": {"1"}}
	for i := 0; i+1 < len(settings); i += 2 {
		q.Set(settings[i], settings[i+1])
	}
	return "file://" + (&url.URL{Path: slashed}).EscapedPath() + "?" + q.Encode()
}
