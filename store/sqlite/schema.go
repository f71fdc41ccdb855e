package sqlite

import (
	"context"
	"database/sql/driver"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"time"

	"flowctl/store"
)

// applicationID marks our files, so that another program's database is never taken for one. It reads "flow".
const applicationID = 0x666c6f77

var (
	//go:embed schema.sql
	schemaV1 string
	//go:embed schema2.sql
	schemaV2 string
)

// migrations bring a file from schema n to n+1, where n is the index. They are only ever appended.
var migrations = []string{schemaV1, schemaV2}

// patience is how long opening and writing wait for another process's lock before they give up.
const patience = 60 * time.Second

// patiently tries until no lock of another process is in the way. It is for opening: switching a new file to its write-ahead
// log, among others, does not wait for others by itself.
func patiently(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := try()
		if !busy(err) || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// prepareFile makes the file when it is not there, refuses a foreign or a newer one unchanged, and brings the schema up to
// date. Path is the file's name in messages.
func prepareFile(ctx context.Context, path, file string, d Durability) error {
	if info, err := os.Stat(file); err == nil && info.Size() > 0 {
		// A look first: the settings of our DSN would change a foreign file.
		c, err := connect(ctx, probeDSN(file))
		if err != nil {
			return err
		}
		version, err := probe(c, path)
		if err = errors.Join(err, c.close()); err != nil {
			return err
		}
		if version == len(migrations) {
			return nil
		}
	}
	c, err := connect(ctx, dsn(file, d, making))
	if err != nil {
		return err
	}
	return errors.Join(migrate(c, path), c.close())
}

// probe reads the version in one transaction: a file that another process is just making must be seen before or after
// that, never in between, where it would look like another program's.
func probe(c *conn, path string) (int, error) {
	if _, err := c.exec("BEGIN"); err != nil {
		return 0, err
	}
	version, err := schemaVersion(c, path)
	if _, end := c.exec("ROLLBACK"); err == nil {
		err = end
	}
	return version, err
}

// schemaVersion reads the version of a file, 0 for an empty one, and refuses what is not ours to change.
func schemaVersion(c *conn, path string) (int, error) {
	id, _, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	version, _, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	tables, _, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return 0, err
	}
	switch {
	case id == 0 && version == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, &Error{File: path, Problem: "it is a database of another program",
			Hint: "choose another path; the file was not changed"}
	case version > int64(len(migrations)):
		return 0, &Error{File: path, Err: store.ErrNewerSchema,
			Problem: fmt.Sprintf("its schema is version %d, and this flowctl reads up to version %d", version, len(migrations)),
			Hint:    "use the newer flowctl that wrote it, or choose another path; the file was not changed"}
	}
	return int(version), nil
}

// migrate brings the schema up to date in one transaction; of several processes that try, one does it.
func migrate(c *conn, path string) (err error) {
	if _, err := c.exec("BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_, _ = c.exec("ROLLBACK") // the cause is err
		}
	}()
	version, err := schemaVersion(c, path)
	if err != nil {
		return err
	}
	for ; version < len(migrations); version++ {
		if err := c.script(migrations[version]); err != nil {
			return err
		}
		mark := fmt.Sprintf("PRAGMA user_version = %d; PRAGMA application_id = %d", version+1, applicationID)
		if err := c.script(mark); err != nil {
			return err
		}
	}
	_, err = c.exec("COMMIT")
	return err
}

// script runs several statements that take no arguments.
func (c *conn) script(text string) error {
	_, err := c.raw.(driver.ExecerContext).ExecContext(context.Background(), text, nil)
	return err
}
