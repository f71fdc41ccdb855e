package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"modernc.org/sqlite"

	"flowctl/flows/machine"
)

// Prepare makes every database of a flow that does not exist from its init file. A database appears whole or not at all,
// whatever happens on the way, and one that exists is never touched: when two processes make the same one at once, the
// first one counts.
func (k *Kind) Prepare(ctx context.Context, m *machine.Machine) error {
	for _, item := range m.Databases {
		if err := makeMissing(ctx, item.Name, item.Value); err != nil {
			return fmt.Errorf("the database %s (%s): %w", item.Name, shortPath(m.Dir, item.Value.Path), err)
		}
	}
	return nil
}

// shortPath gives a path relative to the flow where it lies below it.
func shortPath(dir, path string) string {
	if short, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return path
}

func makeMissing(ctx context.Context, name string, db machine.Database) error {
	there, err := exists(db.Path)
	switch {
	case err != nil || there:
		return err
	case db.Init == "":
		return fmt.Errorf("the file is not there and nothing says how to make it; put it there, or add init: %s.sql "+
			"with the statements that make it", name)
	}
	if err := leftovers(db.Path); err != nil {
		return err
	}
	script, err := os.ReadFile(db.Init)
	if err != nil {
		return fmt.Errorf("its init file %s cannot be read: %w", filepath.Base(db.Init), cause(err))
	}
	dir := filepath.Dir(db.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("its folder cannot be made: %w", cause(err))
	}
	temp, err := os.CreateTemp(dir, ".flowctl-*.db")
	if err != nil {
		return fmt.Errorf("it cannot be made in its folder: %w", cause(err))
	}
	defer func() {
		for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
			_ = os.Remove(temp.Name() + suffix) // most of them do not exist
		}
	}()
	if err := errors.Join(temp.Chmod(0o644), temp.Close()); err != nil {
		return fmt.Errorf("it cannot be made in its folder: %w", cause(err))
	}
	if err := build(ctx, temp.Name(), filepath.Base(db.Init), string(script)); err != nil {
		return err
	}
	return publish(temp.Name(), db.Path)
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	}
	return false, fmt.Errorf("it cannot be looked at: %w", cause(err))
}

// leftovers refuses to make a database beside the log of one that has been removed: SQLite would play the old log into
// the new file.
func leftovers(path string) error {
	for _, suffix := range []string{"-wal", "-journal"} {
		info, err := os.Stat(path + suffix)
		if err != nil || info.Size() == 0 {
			continue
		}
		if there, err := exists(path); there || err != nil { // another process has just made it
			return err
		}
		return fmt.Errorf("the file is not there, but %s is, which belongs to it; bring the file back, or remove that one too",
			filepath.Base(path+suffix))
	}
	return nil
}

// build runs an init file on an empty database. Speed counts and not safety, since a crash leaves a file that nobody uses.
func build(ctx context.Context, path, name, script string) (err error) {
	db, err := sql.Open("sqlite", dsn(path, "_journal_mode", "MEMORY", "_synchronous", "OFF"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, one := range split(scan(script)) {
		if _, err := conn.ExecContext(ctx, sourceOf(script, one)); err != nil {
			return fmt.Errorf("it was not made: %s:%d: %w", name, lineOf(script, one[0].start), plain(err))
		}
	}
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return fmt.Errorf("it was not made: %s leaves a transaction open; add COMMIT at its end", name)
	}
	for _, last := range []string{"COMMIT", "PRAGMA journal_mode = WAL"} {
		if _, err := conn.ExecContext(ctx, last); err != nil {
			return fmt.Errorf("it was not made: %w", plain(err))
		}
	}
	return nil
}

// publish gives the finished file its name, unless somebody else was first.
func publish(temp, path string) error {
	if err := syncFile(temp); err != nil {
		return fmt.Errorf("it cannot be stored: %w", cause(err))
	}
	err := os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) { // a file system without links
		if _, there := os.Lstat(path); errors.Is(there, fs.ErrNotExist) {
			err = os.Rename(temp, path)
		}
	}
	if errors.Is(err, fs.ErrExist) {
		if there, _ := exists(path); there {
			return nil
		}
		return errors.New("its name is taken by a link that leads nowhere; remove it")
	}
	if err != nil {
		return fmt.Errorf("it cannot be stored: %w", cause(err))
	}
	_ = syncFile(filepath.Dir(path)) // not every system can sync a folder
	return nil
}

func syncFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func lineOf(text string, offset int) int { return 1 + strings.Count(text[:offset], "\n") }

// plain gives a database's error in SQLite's words.
func plain(err error) error {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return errors.New(words(e))
	}
	return err
}

// cause drops the path and the name of the system call.
func cause(err error) error {
	var path *fs.PathError
	var link *os.LinkError
	switch {
	case errors.As(err, &path):
		return path.Err
	case errors.As(err, &link):
		return link.Err
	}
	return err
}
