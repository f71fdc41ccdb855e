package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	sqlite3 "modernc.org/sqlite/lib"

	"flowctl/store"
)

// refused opens a path that cannot be opened and gives the message.
func refused(t *testing.T, path string) (string, error) {
	t.Helper()
	db, err := Open(t.Context(), path, Options{})
	if err == nil {
		_ = db.Close()
		t.Fatalf("%s was opened", path)
	}
	return err.Error(), err
}

// says checks a message for all its parts, and that it has none of SQLite's words.
func says(t *testing.T, message string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(message, part) {
			t.Errorf("%q does not say %q", message, part)
		}
	}
	for _, odd := range []string{"SQLITE_", "sqlite.", "*", "unable to open", "out of memory", "database is locked"} {
		if strings.Contains(message, odd) {
			t.Errorf("%q says %q", message, odd)
		}
	}
}

func TestOpenSaysWhatIsWrongWithThePath(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("These are notes, not a database.\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, parts := range map[string][]string{
		"":                                  {"no database file is named", "flowctl.db"},
		"a\x00b":                            {"zero byte"},
		folder:                              {folder, "is a folder", filepath.Join(folder, "flowctl.db")},
		filepath.Join(folder, "no", "x.db"): {"x.db", "the folder " + filepath.Join(folder, "no") + " does not exist", "make it first"},
		text:                                {text, "is not a database", "choose another path"},
		filepath.Join(text, "x.db"):         {"x.db", "check the path"},
		os.DevNull:                          {os.DevNull, "no ordinary file"},
	} {
		message, _ := refused(t, path)
		says(t, message, parts...)
	}
	if data, err := os.ReadFile(text); err != nil || !strings.HasPrefix(string(data), "These are notes") {
		t.Errorf("the text file was changed: %v", err)
	}
	if _, err := Open(t.Context(), text, Options{Durability: "some"}); err == nil || !strings.Contains(err.Error(), `"full"`) {
		t.Errorf("durability some gave %v", err)
	}
}

func TestOpenSaysThatItMayNotWrite(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "flowctl.db")
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o400); err != nil {
		t.Fatal(err)
	}
	message, _ := refused(t, path)
	says(t, message, path, "may not be written")
	if err := errors.Join(os.Remove(path), os.Chmod(folder, 0o500)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(folder, 0o700) })
	message, _ = refused(t, path)
	says(t, message, path, "cannot be opened", "you may write there")
}

func TestOpenLeavesForeignDatabasesAlone(t *testing.T) {
	for name, setup := range map[string]string{
		"with tables":            "CREATE TABLE orders (id TEXT); INSERT INTO orders VALUES ('A1001')",
		"with a version":         "PRAGMA user_version = 3",
		"with an application id": "PRAGMA application_id = 4711",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shop.db")
			foreign(t, path, setup)
			before, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			message, _ := refused(t, path)
			says(t, message, path, "another program", "choose another path")
			after, err := os.ReadFile(path)
			if err != nil || string(before) != string(after) {
				t.Errorf("the file was changed: %v", err)
			}
		})
	}
	path := filepath.Join(t.TempDir(), "empty.db") // an empty database is nobody's, and so is an empty file
	foreign(t, path, "CREATE TABLE x (a); DROP TABLE x")
	open(t, path, Options{})
	path = filepath.Join(t.TempDir(), "void.db")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	open(t, path, Options{})
}

// foreign runs SQL on a file the way another program would.
func foreign(t testing.TB, path, script string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesANewerSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	if err := open(t, path, Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	newer := len(migrations) + 1
	foreign(t, path, fmt.Sprintf("PRAGMA user_version = %d", newer))
	message, err := refused(t, path)
	if !errors.Is(err, store.ErrNewerSchema) {
		t.Errorf("got %v", err)
	}
	says(t, message, path, fmt.Sprintf("schema is version %d", newer), fmt.Sprintf("up to version %d", len(migrations)), "use the newer flowctl")
}

func TestPathsAreOnlyPaths(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"plain.db", "with space.db", "a?mode=memory&x=1.db", "a#b.db", "100%.db", "a%20b.db", "%",
		"file:x.db", ":memory:", "a+b&c=d;e.db", "ünï 猫.db", "quote'\".db", "-x"} {
		path := filepath.Join(folder, name)
		db := open(t, path, Options{})
		if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if runs, err := db.Runs(t.Context(), store.Filter{}); err != nil || len(runs) != 1 {
			t.Errorf("%s: %d runs, %v", name, len(runs), err) // 2 if two names were one file
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("the file has another name: %v", err)
		}
	}
	t.Chdir(folder)
	db := open(t, "relative.db", Options{})
	t.Chdir(t.TempDir())
	db.readers.SetMaxIdleConns(0) // so the next reader opens the file again
	if _, err := db.Runs(t.Context(), store.Filter{}); err != nil {
		t.Error(err)
	}
}

func TestEveryConnectionIsSetAlike(t *testing.T) {
	for _, d := range []Durability{Full, Normal} {
		t.Run(string(d), func(t *testing.T) {
			db := open(t, filepath.Join(t.TempDir(), "flowctl.db"), Options{Durability: d, Readers: 4})
			want := map[string]string{"journal_mode": "wal", "synchronous": map[Durability]string{Full: "2", Normal: "1"}[d],
				"busy_timeout": "15000", "foreign_keys": "1", "wal_autocheckpoint": "2000", "journal_size_limit": "16777216",
				"temp_store": "2", "cache_size": "-8192", "page_size": "2048", "query_only": "1"}
			held := func() {
				var conns []*sql.Conn
				for range 4 {
					c, err := db.readers.Conn(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					conns = append(conns, c)
					got := map[string]string{}
					for pragma := range want {
						var value string
						if err := c.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&value); err != nil {
							t.Fatal(err)
						}
						got[pragma] = value
					}
					if !maps.Equal(got, want) {
						t.Errorf("reader: got %v, want %v", got, want)
					}
				}
				for _, c := range conns {
					_ = c.Close()
				}
			}
			held()
			db.readers.SetConnMaxLifetime(1) // a nanosecond: every connection is replaced
			held()
			want["busy_timeout"], want["query_only"] = "0", "0" // the writer waits by itself
			for range 2 {                                       // the second time on a new connection
				got := map[string]string{}
				if err := db.writer.do(t.Context(), func(w *conn) error {
					for pragma := range want {
						if err := w.query("PRAGMA "+pragma, func(row []any) error {
							got[pragma] = fmt.Sprint(row[0])
							return nil
						}); err != nil {
							return err
						}
					}
					return nil
				}); err != nil {
					t.Fatal(err)
				}
				if !maps.Equal(got, want) {
					t.Errorf("writer: got %v, want %v", got, want)
				}
				if err := db.writer.conn.close(); err != nil {
					t.Fatal(err)
				}
				db.writer.conn = nil
			}
		})
	}
}

func TestReadersCannotWrite(t *testing.T) {
	db := fresh(t)
	for _, query := range []string{"DELETE FROM runs", "PRAGMA query_only = 0; DELETE FROM runs"} {
		if _, err := db.readers.Exec(query); err == nil {
			t.Errorf("a reader ran %s", query)
		}
	}
}

func TestWritesBeginImmediately(t *testing.T) {
	db := fresh(t)
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Fatal(err)
	}
	// A transaction that first read and then wrote would fail with code 517 when another process commits in between. Inside
	// ours nobody else can commit.
	err := db.writer.do(t.Context(), func(w *conn) error {
		if _, _, err := w.number("SELECT seq FROM runs"); err != nil {
			return err
		}
		other, err := connect(t.Context(), dsn(db.writer.file, Full, writing))
		if err != nil {
			return err
		}
		if _, err := other.exec("UPDATE runs SET seq = 7"); code(err) != sqlite3.SQLITE_BUSY {
			t.Errorf("another connection's write gave %v", err)
		}
		if err := other.close(); err != nil {
			return err
		}
		_, err = w.exec("UPDATE runs SET state = 'y'")
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestErrorsAreExplained(t *testing.T) {
	for number, parts := range map[int][]string{
		sqlite3.SQLITE_FULL:               {"disk is full", "free some space"},
		sqlite3.SQLITE_READONLY:           {"may not be written", "rights"},
		sqlite3.SQLITE_READONLY_DIRECTORY: {"may not be written", "rights"},
		sqlite3.SQLITE_PERM:               {"may not be written"},
		sqlite3.SQLITE_CANTOPEN:           {"cannot be opened"},
		sqlite3.SQLITE_NOTADB:             {"not a database"},
		sqlite3.SQLITE_CORRUPT:            {"damaged", ".recover"},
		sqlite3.SQLITE_IOERR_FSYNC:        {"disk failed", "SQLite code 1034"},
		sqlite3.SQLITE_BUSY:               {"another program", "end that program"},
		sqlite3.SQLITE_BUSY_SNAPSHOT:      {"another program"},
		sqlite3.SQLITE_TOOBIG:             {"larger than"},
	} {
		err := explain("some.db", fmt.Errorf("wrapped: %w", sqliteError(number)))
		says(t, err.Error(), append(parts, "some.db")...)
		if code(err) != number {
			t.Errorf("the cause of code %d is lost", number)
		}
	}
	for _, err := range []error{nil, store.ErrConflict, context.Canceled, &store.MemoryConflict{}} {
		if explain("some.db", err) != err {
			t.Errorf("%v was explained", err)
		}
	}
	if err := explain("some.db", sqliteError(sqlite3.SQLITE_MISUSE)); !strings.Contains(err.Error(), "report this as a bug") {
		t.Error(err)
	}
}

// sqliteError is like SQLite's error of a code; the driver's own cannot be made from outside.
type sqliteError int

func (e sqliteError) Error() string { return "database is locked or something (SQLITE_ODD)" }

func (e sqliteError) Code() int { return int(e) }

func TestClosedDatabase(t *testing.T) {
	before := goleak.IgnoreCurrent()
	db := fresh(t)
	if err := errors.Join(db.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a commit after Close gave %v", err)
	}
	if _, err := db.Runs(t.Context(), store.Filter{}); err == nil {
		t.Error("a list after Close went well")
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(db.writer.file + suffix); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", suffix, err)
		}
	}
	goleak.VerifyNone(t, before)
}

func TestOpenEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	<-ctx.Done()
	if _, err := Open(ctx, filepath.Join(t.TempDir(), "x.db"), Options{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
