package sql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if path := os.Getenv("FLOWCTL_TEST_PREPARE"); path != "" {
		if err := New().Prepare(context.Background(), flowWith(path, path+".sql")); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// flowWith is a flow with one database, shop.
func flowWith(path, init string) *machine.Machine {
	return &machine.Machine{
		Dir:       filepath.Dir(path),
		Databases: machine.Ordered[machine.Database]{{Name: "shop", Value: machine.Database{Path: path, Init: init}}},
	}
}

const shopSQL = `
CREATE TABLE orders (id TEXT PRIMARY KEY, item TEXT NOT NULL, status TEXT DEFAULT 'paid', cents INTEGER, at DATETIME, day DATE, photo BLOB, weight REAL);
INSERT INTO orders(id, item, cents, at, day) VALUES
  ('A1001', 'lamp', 4900, '2026-01-02 03:04:05', '2026-01-02'),
  ('A1002', 'chair', 9007199254740993, '2026-01-02T03:04:05Z', 'soon'),
  ('A1003', 'table', NULL, NULL, NULL);
CREATE TABLE parts (id INTEGER PRIMARY KEY, order_id TEXT REFERENCES orders(id), at TIMESTAMP DEFAULT '2026-05-06 07:08:09');
`

// shop makes a kind and a flow with a database made from shopSQL.
func shop(t *testing.T) (*Kind, *machine.Machine) {
	t.Helper()
	dir := t.TempDir()
	init := filepath.Join(dir, "shop.sql")
	if err := os.WriteFile(init, []byte(shopSQL), 0o644); err != nil {
		t.Fatal(err)
	}
	m := flowWith(filepath.Join(dir, "shop.db"), init)
	k := New()
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := k.Prepare(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	return k, m
}

// made makes a tool; its effect is the one that Uses gives.
func made(t *testing.T, k *Kind, m *machine.Machine, config Config) tool.Tool {
	t.Helper()
	config.Database = "shop"
	effect := config.Uses(machine.ToolScope{Machine: m}).Effect
	made, err := k.New(machine.ToolSpec{Name: "t", Effect: effect, Config: &config}, tool.Env{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// call runs a query as the executor does.
func call(t *testing.T, k *Kind, m *machine.Machine, config Config, args machine.Values) tool.Result {
	t.Helper()
	return tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made(t, k, m, config), Values: args}, tool.Call{}).Result
}

func ok(v machine.Value) tool.Result { return tool.Result{Status: tool.OK, Value: v} }

func TestSelect(t *testing.T) {
	k, m := shop(t)
	tests := []struct {
		name   string
		config Config
		args   machine.Values
		want   machine.Value
	}{
		{"one", Config{Query: "SELECT id, cents FROM orders WHERE id = :id", Rows: "one"}, machine.Values{"id": "A1001"},
			machine.Values{"id": "A1001", "cents": int64(4900)}},
		{"one of several", Config{Query: "SELECT id FROM orders ORDER BY id DESC", Rows: "one"}, nil, machine.Values{"id": "A1003"}},
		{"order is kept", Config{Query: "SELECT id FROM orders ORDER BY item"}, nil,
			[]machine.Value{machine.Values{"id": "A1002"}, machine.Values{"id": "A1001"}, machine.Values{"id": "A1003"}}},
		{"none", Config{Query: "SELECT id FROM orders WHERE id = :id;"}, machine.Values{"id": "x"}, []machine.Value{}},
		{"exact integers and NULL", Config{Query: "SELECT cents FROM orders ORDER BY id LIMIT 2 OFFSET 1"}, nil,
			[]machine.Value{machine.Values{"cents": int64(9007199254740993)}, machine.Values{"cents": nil}}},
		{"dates and times as stored", Config{Query: "SELECT at, day, at AS \"a \"\"b\" FROM orders ORDER BY id"}, nil, []machine.Value{
			machine.Values{"at": "2026-01-02 03:04:05", "day": "2026-01-02", `a "b`: "2026-01-02 03:04:05"},
			machine.Values{"at": "2026-01-02T03:04:05Z", "day": "soon", `a "b`: "2026-01-02T03:04:05Z"},
			machine.Values{"at": nil, "day": nil, `a "b`: nil}}},
		{"WITH and comments", Config{Query: "WITH p AS (SELECT count(*) AS n FROM orders) -- all\nSELECT n AS \"how many\" FROM p -- end", Rows: "one"}, nil,
			machine.Values{"how many": int64(3)}},
		{"UNION with ORDER BY", Config{Query: "SELECT 1 AS n UNION SELECT 3 UNION SELECT 2 ORDER BY n DESC"}, nil,
			[]machine.Value{machine.Values{"n": int64(3)}, machine.Values{"n": int64(2)}, machine.Values{"n": int64(1)}}},
		{"VALUES", Config{Query: "VALUES (1, 'a')"}, nil, []machine.Value{machine.Values{"column1": int64(1), "column2": "a"}}},
		{"table-valued pragma", Config{Query: "SELECT name FROM pragma_table_info('parts') ORDER BY cid", Rows: "one"}, nil, machine.Values{"name": "id"}},
		{"a parameter twice", Config{Query: "SELECT :a || :a AS s", Rows: "one"}, machine.Values{"a": "x"}, machine.Values{"s": "xx"}},
		{"a parameter left out", Config{Query: "SELECT :a IS NULL AS n", Rows: "one"}, nil, machine.Values{"n": int64(1)}},
		{"text that is not UTF-8", Config{Query: "SELECT CAST(x'61ff62' AS TEXT) AS s", Rows: "one"}, nil, machine.Values{"s": "a\uFFFDb"}},
		{"empty text", Config{Query: "SELECT '' AS s", Rows: "one"}, nil, machine.Values{"s": ""}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := call(t, k, m, test.config, test.args); !reflect.DeepEqual(got, ok(test.want)) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

// Whatever a value holds, it comes back as it went in and is never read as SQL.
func TestArgumentsAreBound(t *testing.T) {
	k, m := shop(t)
	for _, v := range []machine.Value{
		nil, "", "x' OR '1'='1", "'; DROP TABLE orders; --", "a\x00b", ":id", "日本", int64(math.MaxInt64), int64(math.MinInt64),
		int64(9007199254740993), 0.1, -1.5e-300,
	} {
		got := call(t, k, m, Config{Query: "SELECT :v AS v, (SELECT count(*) FROM orders) AS n", Rows: "one"}, machine.Values{"v": v})
		if !reflect.DeepEqual(got, ok(machine.Values{"v": v, "n": int64(3)})) {
			t.Errorf("%q: got %+v", v, got)
		}
	}
	for _, test := range []struct{ in, want machine.Value }{
		{true, int64(1)}, {false, int64(0)},
		{[]machine.Value{int64(9007199254740993), "<a>"}, `[9007199254740993,"<a>"]`}, {machine.Values{"b": nil, "a": 1.5}, `{"a":1.5,"b":null}`},
	} {
		got := call(t, k, m, Config{Query: "SELECT :v AS v", Rows: "one"}, machine.Values{"v": test.in})
		if !reflect.DeepEqual(got, ok(machine.Values{"v": test.want})) {
			t.Errorf("%v: got %+v", test.in, got)
		}
	}
	got := call(t, k, m, Config{Query: "SELECT count(*) AS n FROM orders WHERE id IN (SELECT value FROM json_each(:ids))", Rows: "one"},
		machine.Values{"ids": []machine.Value{"A1001", "A1003", "x"}})
	if !reflect.DeepEqual(got, ok(machine.Values{"n": int64(2)})) {
		t.Errorf("a list as a table: %+v", got)
	}
}

func TestChange(t *testing.T) {
	k, m := shop(t)
	affected := func(n int64) machine.Value { return machine.Values{"affected": n} }
	steps := []struct {
		config Config
		args   machine.Values
		want   machine.Value
	}{
		{Config{Query: "UPDATE orders SET status = 'refunded' WHERE id = :id AND status = 'paid'"}, machine.Values{"id": "A1001"}, affected(1)},
		{Config{Query: "UPDATE orders SET status = 'refunded' WHERE id = :id AND status = 'paid'"}, machine.Values{"id": "A1001"}, affected(0)},
		{Config{Query: "INSERT INTO parts(order_id) VALUES ('A1001'), ('A1002')"}, nil, affected(2)},
		{Config{Query: "INSERT INTO parts(order_id) VALUES ('A1003') RETURNING id, at"}, nil,
			[]machine.Value{machine.Values{"id": int64(3), "at": "2026-05-06 07:08:09"}}},
		{Config{Query: "UPDATE parts SET at = at WHERE id = 3 RETURNING *", Rows: "one"}, nil,
			machine.Values{"id": int64(3), "order_id": "A1003", "at": "2026-05-06 07:08:09"}},
		{Config{Query: "UPDATE parts SET at = 'x' RETURNING id", Rows: "one"}, nil, machine.Values{"id": int64(1)}},
		{Config{Query: "SELECT count(*) AS n FROM parts WHERE at = 'x'", Rows: "one"}, nil, machine.Values{"n": int64(3)}},
		{Config{Query: "WITH last AS (SELECT max(id) AS id FROM parts) DELETE FROM parts WHERE id = (SELECT id FROM last)"}, nil, affected(1)},
		{Config{Query: "CREATE TABLE notes(a)"}, nil, affected(0)},
		{Config{Query: "REPLACE INTO notes VALUES (1)"}, nil, affected(1)},
		{Config{Query: "DROP TABLE notes"}, nil, affected(0)},
	}
	for _, step := range steps {
		if got := call(t, k, m, step.config, step.args); !reflect.DeepEqual(got, ok(step.want)) {
			t.Fatalf("%s: got %+v, want %v", step.config.Query, got, step.want)
		}
	}
}

func TestFailures(t *testing.T) {
	k, m := shop(t)
	many := "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1001) SELECT n FROM c"
	if got := call(t, k, m, Config{Query: "INSERT INTO parts(order_id) WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c LIMIT 1001) SELECT NULL FROM c"}, nil); got.Status != tool.OK {
		t.Fatal(got)
	}
	tests := []struct {
		name        string
		config      Config
		kind, wants string
	}{
		{"no row", Config{Query: "SELECT 1 WHERE 0", Rows: "one"}, "none_found", "no row was found"},
		{"no row changed", Config{Query: "UPDATE orders SET item = 'x' WHERE id = 'y' RETURNING id", Rows: "one"}, "none_found", "no row was found"},
		{"syntax", Config{Query: "SELECT FROM orders"}, "failed", `the database rejected the statement: near "FROM": syntax error`},
		{"no such table", Config{Query: "SELECT * FROM ordres"}, "failed", "no such table: ordres"},
		{"no such column", Config{Query: "UPDATE orders SET price = 1"}, "failed", "no such column: price"},
		{"unique", Config{Query: "INSERT INTO orders(id, item) VALUES ('A1001', 'x')"}, "failed", "rejected the statement: UNIQUE constraint failed: orders.id"},
		{"not null", Config{Query: "INSERT INTO orders(id) VALUES ('A1009')"}, "failed", "NOT NULL constraint failed: orders.item"},
		{"foreign key", Config{Query: "INSERT INTO parts(order_id) VALUES ('nobody')"}, "failed", "FOREIGN KEY constraint failed"},
		{"BLOB", Config{Query: "SELECT x'00ff' AS photo"}, "failed", "the column photo holds bytes"},
		{"infinity", Config{Query: "SELECT 9e999 AS n"}, "failed", "the column n: the number"},
		{"two columns of one name", Config{Query: "SELECT id, id FROM orders"}, "failed", "two columns are named id"},
		{"too many rows", Config{Query: many}, "failed", "more than 1000 rows; narrow the query"},
		{"too many rows of a change", Config{Query: "DELETE FROM parts RETURNING id"}, "failed", "more than 1000 rows; nothing was changed"},
		{"times beside *", Config{Query: "UPDATE parts SET at = at WHERE id = 1 RETURNING 1 AS one, *"}, "failed", "name the columns one by one"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := call(t, k, m, test.config, nil)
			if got.Status != tool.Failed || got.Problem.Kind != test.kind || !strings.Contains(got.Problem.Message, test.wants) {
				t.Errorf("got %+v", got)
			}
		})
	}
	if got := call(t, k, m, Config{Query: "SELECT count(*) AS n FROM parts", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"n": int64(1001)})) {
		t.Errorf("a change that failed was kept: %+v", got)
	}
	if got := call(t, k, m, Config{Query: strings.Replace(many, "1001", "1000", 1)}, nil); len(got.Value.([]machine.Value)) != 1000 {
		t.Errorf("1000 rows are too many: %+v", got.Problem)
	}
}

// A tool that may only read cannot write, whatever its statement is.
func TestReadToolCannotWrite(t *testing.T) {
	k, m := shop(t)
	for _, query := range []string{"DELETE FROM orders", "UPDATE orders SET item = 'x' RETURNING id", "CREATE TABLE x(a)"} {
		made, err := k.New(machine.ToolSpec{Name: "look", Effect: machine.EffectRead, Config: &Config{Database: "shop", Query: query}}, tool.Env{Machine: m})
		if err != nil {
			t.Fatal(err)
		}
		got := tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made}, tool.Call{}).Result
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "look may only read") {
			t.Errorf("%s: %+v", query, got)
		}
	}
	if got := call(t, k, m, Config{Query: "SELECT count(*) AS n FROM orders WHERE item <> 'x'", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"n": int64(3)})) {
		t.Errorf("got %+v", got)
	}
}

// A call that runs out of time is interrupted, also after its first row, and a change has changed nothing and says so.
func TestTimeout(t *testing.T) {
	k, m := shop(t)
	const endless = "(WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c)"
	tests := []struct{ query, want string }{
		{"SELECT " + endless + " AS n", "t timed out after 50ms"},
		{"SELECT 1 AS n UNION ALL SELECT " + endless, "t timed out after 50ms"},
		{"UPDATE orders SET cents = " + endless, "t timed out, nothing was changed"},
		{"UPDATE orders SET cents = " + endless + " RETURNING id", "t timed out, nothing was changed"},
	}
	for _, test := range tests {
		made := made(t, k, m, Config{Query: test.query})
		made.Spec.Timeout = 50 * time.Millisecond
		start := time.Now()
		_, err := made.Run(timeoutContext(t, made.Spec.Timeout), tool.Call{})
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("%s: ended after %s", test.query, took)
		}
		got := tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: made}, tool.Call{}).Result
		if err == nil || got.Status != tool.Failed || got.Problem.Kind != tool.KindTimeout || got.Problem.Message != test.want {
			t.Errorf("%s: %v, %+v", test.query, err, got)
		}
	}
	if got := call(t, k, m, Config{Query: "SELECT cents FROM orders WHERE id = 'A1001'", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"cents": int64(4900)})) {
		t.Errorf("got %+v", got)
	}
}

func timeoutContext(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// lock holds the database as another program would.
func lock(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", dsn(path, "_txlock", "immediate", "_busy_timeout", "0"))
	if err != nil {
		t.Fatal(err)
	}
	tx, err := db.Begin()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := errors.Join(tx.Rollback(), db.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestLockedDatabase(t *testing.T) {
	k, m := shop(t)
	path := m.Databases[0].Value.Path
	unlock := lock(t, path)
	if got := call(t, k, m, Config{Query: "SELECT count(*) AS n FROM orders", Rows: "one"}, nil); got.Status != tool.OK {
		t.Errorf("a reader waits for a writer: %+v", got)
	}
	change := made(t, k, m, Config{Query: "DELETE FROM orders"})
	change.Spec.Timeout = 50 * time.Millisecond
	got := tool.Runner{}.Run(t.Context(), tool.Prepared{Tool: change}, tool.Call{}).Result
	if got.Status != tool.Failed || got.Problem.Message != "t timed out, nothing was changed" {
		t.Errorf("got %+v", got)
	}
	// The same without a wait, to see SQLite's own word for it.
	db, err := sql.Open("sqlite", dsn(path, "_txlock", "immediate", "_busy_timeout", "0"))
	if err != nil {
		t.Fatal(err)
	}
	_, busy := db.Begin()
	var e *tool.Error
	if err := (query{path: path}).explain(busy); !errors.As(err, &e) || e.Status != tool.Unavailable || !strings.Contains(err.Error(), "shop.db is locked") {
		t.Errorf("got %v", err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	unlock()
	if got := call(t, k, m, Config{Query: "DELETE FROM orders"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"affected": int64(3)})) {
		t.Errorf("after the lock: %+v", got)
	}
}

func TestUnusableDatabase(t *testing.T) {
	k, m := shop(t)
	path := m.Databases[0].Value.Path
	look, change := Config{Query: "SELECT 1 AS n"}, Config{Query: "DELETE FROM orders"}
	both := func(what, want string) {
		t.Helper()
		for _, config := range []Config{look, change} {
			if got := call(t, k, m, config, nil); got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, want) {
				t.Errorf("%s: %+v", what, got)
			}
		}
	}
	remove := func() {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.RemoveAll(path + suffix); err != nil {
				t.Fatal(err)
			}
		}
	}
	remove()
	both("missing", "shop.db is not there")
	if _, err := os.Stat(path); err == nil {
		t.Error("a missing database was made")
	}
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 100)), 0o644); err != nil {
		t.Fatal(err)
	}
	look.Query = "SELECT * FROM orders"
	both("not a database", "shop.db cannot be used: file is not a database")
	remove()
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	both("a folder", "not a plain file")
}

// A database that was removed and made again is the new one: nothing goes to a file that nobody sees.
func TestReplacedDatabase(t *testing.T) {
	k, m := shop(t)
	path := m.Databases[0].Value.Path
	if got := call(t, k, m, Config{Query: "DELETE FROM orders"}, nil); got.Status != tool.OK {
		t.Fatal(got)
	}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		_ = os.Remove(path + suffix)
	}
	if err := k.Prepare(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got := call(t, k, m, Config{Query: "UPDATE orders SET item = 'new'"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"affected": int64(3)})) {
		t.Errorf("got %+v", got)
	}
	other := New()
	defer other.Close()
	if got := call(t, other, m, Config{Query: "SELECT count(*) AS n FROM orders WHERE item = 'new'", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"n": int64(3)})) {
		t.Errorf("another process sees %+v", got)
	}
}

func TestPathsWithOddNames(t *testing.T) {
	for _, name := range []string{"with space.db", "what?.db", "a#b.db", "100%.db", "%41.db", "a&mode=ro.db", "日本.db", "plus+.db", "semi;colon.db", "it's.db"} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "odd ?#% dir")
			init := filepath.Join(t.TempDir(), "i.sql")
			if err := os.WriteFile(init, []byte("CREATE TABLE t(a); INSERT INTO t VALUES (1)"), 0o644); err != nil {
				t.Fatal(err)
			}
			m := flowWith(filepath.Join(dir, name), init)
			k := New()
			defer k.Close()
			if err := k.Prepare(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if got := call(t, k, m, Config{Query: "UPDATE t SET a = 2"}, nil); got.Status != tool.OK {
				t.Error(got)
			}
			if got := call(t, k, m, Config{Query: "SELECT a FROM t", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"a": int64(2)})) {
				t.Error(got)
			}
			if err := k.Close(); err != nil {
				t.Error(err)
			}
			found, err := os.ReadDir(dir)
			if err != nil || len(found) != 1 || found[0].Name() != name {
				t.Errorf("the folder holds %v, %v", found, err)
			}
		})
	}
}

// Every connection has the settings, those that replace others too.
func TestEveryConnectionHasItsSettings(t *testing.T) {
	k, m := shop(t)
	db, err := k.pool.get(m.Databases[0].Value.Path)
	if err != nil {
		t.Fatal(err)
	}
	for _, side := range []struct {
		db              *sql.DB
		conns, readOnly int
	}{{db.read, maxReaders, 1}, {db.write, 1, 0}} {
		for range 2 {
			var conns []*sql.Conn
			for range side.conns {
				conn, err := side.db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				conns = append(conns, conn)
				for pragma, want := range map[string]string{"busy_timeout": "5000", "foreign_keys": "1", "query_only": fmt.Sprint(side.readOnly), "journal_mode": "wal"} {
					var got string
					if err := conn.QueryRowContext(t.Context(), "PRAGMA "+pragma).Scan(&got); err != nil || got != want {
						t.Errorf("%s = %s, %v; want %s", pragma, got, err, want)
					}
				}
			}
			for _, conn := range conns {
				if err := conn.Close(); err != nil {
					t.Fatal(err)
				}
			}
			side.db.SetConnMaxLifetime(time.Nanosecond) // the next ones are new
		}
	}
}

// Several processes (a Kind each) and goroutines write at once: nothing is lost, and nobody is told that it is locked.
func TestManyWriters(t *testing.T) {
	k, m := shop(t)
	other := New()
	defer other.Close()
	add := Config{Query: "UPDATE orders SET cents = cents + 1 WHERE id = 'A1001'"}
	tools := []tool.Tool{made(t, k, m, add), made(t, other, m, add)}
	const calls = 50
	var wg sync.WaitGroup
	for _, one := range tools {
		for range 4 {
			wg.Go(func() {
				for range calls {
					if got := (tool.Runner{}).Run(t.Context(), tool.Prepared{Tool: one}, tool.Call{}).Result; got.Status != tool.OK {
						t.Errorf("got %+v", got)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	if got := call(t, k, m, Config{Query: "SELECT cents FROM orders WHERE id = 'A1001'", Rows: "one"}, nil); !reflect.DeepEqual(got, ok(machine.Values{"cents": int64(4900 + 8*calls)})) {
		t.Errorf("got %+v", got)
	}
}

func TestClose(t *testing.T) {
	k, m := shop(t)
	if got := call(t, k, m, Config{Query: "SELECT 1 AS n"}, nil); got.Status != tool.OK {
		t.Fatal(got)
	}
	for range 2 {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if got := call(t, k, m, Config{Query: "SELECT 1 AS n"}, nil); got.Status != tool.Unavailable {
		t.Errorf("got %+v", got)
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "shop")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	init := filepath.Join(dir, "shop.sql")
	script := "CREATE TABLE orders(id TEXT, item TEXT, cents INTEGER); INSERT INTO orders VALUES ('A1001', 'lamp', 4900);"
	if err := os.WriteFile(init, []byte(script), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	flow := flowWith(filepath.Join(dir, "shop.db"), init)
	kind := New()
	defer kind.Close()
	if err := kind.Prepare(context.Background(), flow); err != nil {
		fmt.Println(err)
		return
	}
	lookup, err := kind.New(machine.ToolSpec{
		Name: "lookup_order", Effect: machine.EffectRead,
		Config: &Config{Database: "shop", Query: "SELECT item, cents FROM orders WHERE id = :order_id", Rows: "one"},
	}, tool.Env{Machine: flow})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, id := range []string{"A1001", "' OR 1=1 --"} {
		v, err := lookup.Run(context.Background(), tool.Call{Args: machine.Values{"order_id": id}})
		fmt.Println(v, err)
	}
	// Output:
	// map[cents:4900 item:lamp] <nil>
	// <nil> no row was found
}
