package sql

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/flows/machine"
)

// initFlow writes an init file and gives a flow whose database is to be made from it.
func initFlow(t *testing.T, script string) *machine.Machine {
	t.Helper()
	dir := t.TempDir()
	init := filepath.Join(dir, "shop.sql")
	if err := os.WriteFile(init, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	return flowWith(filepath.Join(dir, "shop.db"), init)
}

// names lists a folder.
func names(t *testing.T, dir string) []string {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, f.Name())
	}
	return out
}

func TestPrepareMakesADatabase(t *testing.T) {
	const dump = `PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE t(a TEXT);
INSERT INTO t VALUES('x;y'), ('-- z');
CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET a = 'changed'; END;
COMMIT;`
	m := initFlow(t, dump)
	k := New()
	defer k.Close()
	for range 2 {
		if err := k.Prepare(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, m.Dir); !reflect.DeepEqual(got, []string{"shop.db", "shop.sql"}) {
		t.Errorf("the folder holds %v", got)
	}
	if got := call(t, k, m, Config{Query: "SELECT group_concat(a) AS a FROM t", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"a": "x;y,-- z"})) {
		t.Errorf("got %+v", got)
	}
}

func TestPrepareNeverTouchesWhatIsThere(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a)")
	path := m.Databases[0].Value.Path
	for _, content := range []string{"", "not a database"} {
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := New().Prepare(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("it now holds %q, %v", data, err)
		}
	}
}

func TestPrepareFails(t *testing.T) {
	tests := []struct{ name, script, want string }{
		{"syntax", "CREATE TABLE t(a);\n\n-- next\nCREAT TABLE u(a);", `the database shop (shop.db): it was not made: shop.sql:4: near "CREAT": syntax error`},
		{"constraint", "CREATE TABLE t(a UNIQUE);\nINSERT INTO t VALUES (1);\nINSERT INTO t VALUES (1);", "shop.sql:3: UNIQUE constraint failed: t.a"},
		{"cut off", "CREATE TABLE t(a", "shop.sql:1: incomplete input"},
		{"open transaction", "BEGIN; CREATE TABLE t(a);", "leaves a transaction open; add COMMIT"},
		{"shell command", ".mode csv", `shop.sql:1: near ".": syntax error`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := initFlow(t, test.script)
			err := New().Prepare(t.Context(), m)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if got := names(t, m.Dir); !reflect.DeepEqual(got, []string{"shop.sql"}) {
				t.Errorf("left behind: %v", got)
			}
		})
	}
}

func TestPrepareWithoutInit(t *testing.T) {
	m := initFlow(t, "")
	m.Databases[0].Value.Init = ""
	if err := New().Prepare(t.Context(), m); err == nil || !strings.Contains(err.Error(), "the database shop (shop.db): the file is not there and nothing says how to make it") {
		t.Errorf("got %v", err)
	}
	m.Databases[0].Value.Init = filepath.Join(m.Dir, "nowhere.sql")
	if err := New().Prepare(t.Context(), m); err == nil || !strings.Contains(err.Error(), "its init file nowhere.sql cannot be read: no such file") {
		t.Errorf("got %v", err)
	}
	if got := names(t, m.Dir); !reflect.DeepEqual(got, []string{"shop.sql"}) {
		t.Errorf("left behind: %v", got)
	}
}

func TestPrepareMakesFolders(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a)")
	m.Databases[0].Value.Path = filepath.Join(m.Dir, "data", "deep", "shop.db")
	if err := New().Prepare(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := names(t, filepath.Dir(m.Databases[0].Value.Path)); !reflect.DeepEqual(got, []string{"shop.db"}) {
		t.Errorf("the folder holds %v", got)
	}
}

// The log of a database that was removed would be played into the new one.
func TestPrepareRefusesAnOldLog(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a)")
	path := m.Databases[0].Value.Path
	for _, suffix := range []string{"-wal", "-journal"} {
		if err := os.WriteFile(path+suffix, []byte("pages"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := New().Prepare(t.Context(), m); err == nil || !strings.Contains(err.Error(), "shop.db"+suffix+" is, which belongs to it") {
			t.Errorf("got %v", err)
		}
		if err := os.WriteFile(path+suffix, nil, 0o644); err != nil { // an empty one is harmless
			t.Fatal(err)
		}
	}
	if err := New().Prepare(t.Context(), m); err != nil {
		t.Error(err)
	}
}

func TestPrepareAtALinkThatLeadsNowhere(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a)")
	if err := os.Symlink("nowhere.db", m.Databases[0].Value.Path); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if err := New().Prepare(t.Context(), m); err == nil || !strings.Contains(err.Error(), "a link that leads nowhere") {
		t.Errorf("got %v", err)
	}
}

// Of many that make one database at once, the first counts and all are content.
func TestPrepareAtOnce(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a); INSERT INTO t VALUES (1), (2), (3)")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			k := New()
			defer k.Close()
			if err := k.Prepare(t.Context(), m); err != nil {
				t.Error(err)
			}
			if got := call(t, k, m, Config{Query: "UPDATE t SET a = a + 1"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"affected": int64(3)})) {
				t.Errorf("got %+v", got)
			}
		})
	}
	wg.Wait()
	k := New()
	defer k.Close()
	if got := call(t, k, m, Config{Query: "SELECT sum(a) AS a FROM t", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"a": int64(6 + 3*8)})) {
		t.Errorf("a change was lost: %+v", got)
	}
}

func TestPrepareIsInterrupted(t *testing.T) {
	m := initFlow(t, "CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c;")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := New().Prepare(ctx, m); err == nil {
		t.Error("no error")
	}
	if got := names(t, m.Dir); !reflect.DeepEqual(got, []string{"shop.sql"}) {
		t.Errorf("left behind: %v", got)
	}
}

// A process that is killed while it makes a database leaves none, and the next one makes it.
func TestPrepareSurvivesAKill(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "shop.db")
	write := func(script string) {
		if err := os.WriteFile(path+".sql", []byte(script), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("CREATE TABLE t(a); WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) INSERT INTO t SELECT n FROM c;")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "FLOWCTL_TEST_PREPARE="+path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for begun := false; !begun && time.Now().Before(deadline); {
		found, err := filepath.Glob(filepath.Join(dir, ".flowctl-*.db"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found {
			info, err := os.Stat(f)
			begun = begun || err == nil && info.Size() > 0
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("the process ended by itself")
	}
	if _, err := os.Stat(path); err == nil {
		t.Fatal("half a database was left")
	}
	write("CREATE TABLE t(a)")
	m := flowWith(path, path+".sql")
	k := New()
	defer k.Close()
	if err := k.Prepare(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := call(t, k, m, Config{Query: "SELECT count(*) AS n FROM t", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"n": int64(0)})) {
		t.Errorf("got %+v", got)
	}
}

func ExampleKind_Prepare() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	init := filepath.Join(dir, "shop.sql")
	if err := os.WriteFile(init, []byte("CREATE TABLE orders(id TEXT);\nINSERT INTO ordres VALUES ('A1001');\n"), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(New().Prepare(context.Background(), flowWith(filepath.Join(dir, "shop.db"), init)))
	// Output:
	// the database shop (shop.db): it was not made: shop.sql:2: no such table: ordres
}
