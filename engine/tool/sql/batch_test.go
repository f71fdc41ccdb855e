package sql

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// batched makes a tool whose calls are made in one go.
func batched(t testing.TB, k *Kind, m *machine.Machine, query, rows string) tool.Tool {
	t.Helper()
	config := &Config{Database: "shop", Query: query, Rows: rows}
	made, err := k.New(machine.ToolSpec{Name: "t", Effect: machine.EffectRead, Batch: true, Config: config, Timeout: time.Minute}, tool.Env{Machine: m})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// together runs calls as one turn of a model.
func together(t testing.TB, tl tool.Tool, name string, values []machine.Value) []tool.Result {
	t.Helper()
	jobs := make([]tool.Job, len(values))
	for i, v := range values {
		jobs[i] = tool.Job{Prepared: tool.Prepared{Tool: tl, Values: machine.Values{name: v}}}
	}
	outcomes, err := tool.Runner{}.Batch(context.Background(), jobs, tool.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	results := make([]tool.Result, len(values))
	for i, out := range outcomes {
		results[i] = out.Result
	}
	return results
}

// stocked is a shop with columns of all sorts to look things up by.
func stocked(t *testing.T) (*Kind, *machine.Machine) {
	t.Helper()
	k, m := shop(t)
	db, _ := m.Databases.Get("shop")
	raw, err := sql.Open("sqlite", db.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = raw.Close() }()
	for _, text := range []string{
		"CREATE TABLE things (t TEXT, n INTEGER, r REAL, x, c TEXT COLLATE NOCASE, what TEXT)",
		"INSERT INTO things VALUES ('1', 1, 1.5, 1, 'a', 'one'), ('2', 2, 2.5, '2', 'A', 'two'), ('a', 1, 1.5, 'a', 'b', 'three'), " +
			"('A', NULL, NULL, NULL, NULL, 'four'), ('1', 9007199254740993, 2, 1.5, 'B', 'five')",
		"CREATE TABLE many (k TEXT, n INTEGER)",
		"WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM c WHERE i < 2500) INSERT INTO many SELECT CASE WHEN i <= 2400 THEN 'big' ELSE 'small' END, i FROM c",
	} {
		if _, err := raw.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	return k, m
}

// Whatever is asked together, each call gets what it would get alone.
func TestTogetherAsAlone(t *testing.T) {
	k, m := stocked(t)
	values := []machine.Value{"1", "2", "a", "A", "b", "", "x", int64(1), int64(2), int64(9007199254740993), int64(9007199254740992), 1.5, 2.5, true, nil,
		[]machine.Value{int64(1)}}
	rapid.Check(t, func(rt *rapid.T) {
		column := rapid.SampledFrom([]string{"t", "n", "r", "x", "c", "things.c"}).Draw(rt, "column")
		rows := rapid.SampledFrom([]string{"all", "one"}).Draw(rt, "rows")
		asked := rapid.SliceOfN(rapid.SampledFrom(values), 1, 60).Draw(rt, "values")
		tl := batched(t, k, m, "SELECT what, "+column+" AS v FROM things WHERE "+column+" IN (:v) ORDER BY what", rows)
		for i, got := range together(t, tl, "v", asked) {
			want := tool.Runner{}.Run(context.Background(), tool.Prepared{Tool: tl, Values: machine.Values{"v": asked[i]}}, tool.Call{}).Result
			if !reflect.DeepEqual(got, want) {
				rt.Fatalf("%s: call %d (%v) got %+v, alone %+v", column, i, asked[i], got, want)
			}
		}
	})
}

func TestTogetherIsOneStatement(t *testing.T) {
	k, m := stocked(t)
	// A random number is the same for rows of one statement only where it is made once.
	tl := batched(t, k, m, "WITH once AS MATERIALIZED (SELECT random() AS r) SELECT k, r FROM many, once WHERE n > 2390 AND k IN (:k)", "one")
	got := together(t, tl, "k", []machine.Value{"big", "small"})
	big, small := got[0].Value.(machine.Values), got[1].Value.(machine.Values)
	if big["k"] != "big" || small["k"] != "small" || big["r"] != small["r"] {
		t.Errorf("got %v and %v, want rows of one statement", big, small)
	}
}

func TestTroubleOfOneCallIsItsOwn(t *testing.T) {
	k, m := stocked(t)
	few := batched(t, k, m, "SELECT k, n FROM many WHERE k IN (:k)", "")
	got := together(t, few, "k", []machine.Value{"big", "small", "none"})
	if got[0].Status != tool.Failed || !strings.Contains(got[0].Problem.Message, "more than 1000 rows; narrow the query") ||
		strings.Contains(got[0].Problem.Message, "LIMIT") {
		t.Errorf("the large one: %+v", got[0].Problem)
	}
	if rows, _ := got[1].Value.([]machine.Value); len(rows) != 100 || got[2].Status != tool.OK || fmt.Sprint(got[2].Value) != "[]" {
		t.Errorf("%d rows, and %+v", len(rows), got[2])
	}
	// 2401 rows of one call among two are more than both may have, and the other still gets all of its own.
	got = together(t, few, "k", []machine.Value{"big", "small"})
	if rows, _ := got[1].Value.([]machine.Value); got[0].Status != tool.Failed || len(rows) != 100 {
		t.Errorf("%+v and %d rows", got[0].Problem, len(rows))
	}
	photos := batched(t, k, m, "SELECT id, CASE id WHEN 'A1001' THEN x'00' ELSE 'none' END AS photo FROM orders WHERE id IN (:id)", "one")
	got = together(t, photos, "id", []machine.Value{"A1001", "A1002", "A1009"})
	if !strings.Contains(got[0].Problem.Message, "holds bytes") || got[1].Status != tool.OK || got[2].Problem.Kind != "none_found" {
		t.Errorf("got %+v", got)
	}
}

func TestTroubleOfTheStatementIsEveryCalls(t *testing.T) {
	k, m := stocked(t)
	for query, want := range map[string]string{
		"SELECT nowhere AS id FROM orders WHERE nowhere IN (:id)":                        "no such column: nowhere",
		"SELECT *, id AS id FROM orders WHERE id IN (:id)":                               "two columns are named id",
		"SELECT id, abs(-9223372036854775808) AS n FROM orders WHERE orders.id IN (:id)": "integer overflow",
		"SELECT o.* FROM parts, orders AS o WHERE order_id IN (:order_id)":               "no column order_id",
	} {
		tl := batched(t, k, m, query, "")
		name := "id"
		if strings.Contains(query, ":order_id") {
			name = "order_id"
		}
		for _, got := range together(t, tl, name, []machine.Value{"A1001", "A1002"}) {
			if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, want) {
				t.Errorf("%s: got %+v, want %q", query, got, want)
			}
		}
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	tl := batched(t, k, m, "SELECT id FROM orders WHERE id IN (:id)", "")
	for _, got := range together(t, tl, "id", []machine.Value{"A1001", "A1002"}) {
		if got.Status != tool.Unavailable {
			t.Errorf("closed: %+v", got)
		}
	}
}

// A column of that name that is another one than IN compares is found when rows come.
func TestRowsOfNobody(t *testing.T) {
	k, m := stocked(t)
	raw := batched(t, k, m, "SELECT p.* FROM orders AS o JOIN (SELECT 'x' AS id) AS p WHERE id IN (:id)", "")
	for _, got := range together(t, raw, "id", []machine.Value{"A1001", "A1002"}) {
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "ambiguous") {
			t.Errorf("got %+v", got)
		}
	}
	raw = batched(t, k, m, "SELECT p.* FROM orders AS o JOIN (SELECT 'x' AS id) AS p WHERE o.id IN (:id)", "")
	for _, got := range together(t, raw, "id", []machine.Value{"A1001", "A1002"}) {
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "a row came whose id is none of the values asked for") {
			t.Errorf("got %+v", got)
		}
	}
}

func TestWhatCanBeMadeInOneGo(t *testing.T) {
	parameters := mustSchema(t, `{"type":"object","properties":{"order_id":{"type":"string"}},"required":["order_id"]}`)
	_, m := shop(t)
	const unfit = "must be one SELECT that uses its only parameter as a list"
	for query, want := range map[string]string{
		"SELECT id AS order_id, item FROM orders WHERE id IN (:order_id)":                                                                 "",
		"select o.id order_id from orders o where o.cents > 5 and (item = 'a' or item = 'b') and o.id in (:order_id) order by at":         "",
		`SELECT DISTINCT "id" AS "order_id" FROM orders WHERE [id] IN ( :order_id ) AND cents > 0`:                                        "",
		"SELECT id AS order_id, max(cents, (1), 2) AS n FROM orders WHERE id IN (:order_id)":                                              "",
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) ORDER BY count(*)":                                                     "count() without GROUP BY order_id would mix",
		"SELECT id AS order_id, max(coalesce(cents, 2)) AS n FROM orders WHERE id IN (:order_id)":                                         "max() without GROUP BY order_id would mix",
		"SELECT * FROM parts WHERE order_id IN (:order_id)":                                                                               "",
		"SELECT parts.order_id, count(*) AS n FROM parts WHERE order_id IN (:order_id) GROUP BY order_id":                                 "",
		"SELECT id AS order_id, (SELECT count(*) FROM parts WHERE order_id = orders.id LIMIT 1) AS n FROM orders WHERE id IN (:order_id)": "",
		"WITH p AS (SELECT * FROM parts LIMIT 3) SELECT p.order_id FROM p WHERE p.order_id IN (:order_id)":                                "",
		"SELECT order_id FROM main.parts WHERE main.parts.order_id IN (:order_id) -- LIMIT":                                               "",

		"SELECT id AS order_id FROM orders WHERE id = :order_id":                                           unfit,
		"SELECT id AS order_id FROM orders WHERE id NOT IN (:order_id)":                                    unfit,
		"SELECT id AS order_id FROM orders WHERE NOT id IN (:order_id)":                                    unfit,
		"SELECT id AS order_id FROM orders WHERE lower(id) IN (:order_id)":                                 unfit,
		"SELECT id AS order_id FROM orders WHERE 'x' || id IN (:order_id)":                                 unfit,
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id, 'A1')":                                  unfit,
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) AND item > :order_id":                   unfit,
		"SELECT id AS order_id FROM orders WHERE (id IN (:order_id))":                                      unfit,
		"SELECT id IN (:order_id) AS order_id FROM orders":                                                 unfit,
		"SELECT id AS order_id FROM orders GROUP BY order_id HAVING id IN (:order_id)":                     unfit,
		"SELECT id AS order_id FROM orders WHERE cents > 1 GROUP BY 1 HAVING id > 1 AND id IN (:order_id)": unfit,
		"VALUES (:order_id)": unfit,
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) OR cents > 5":                   "OR would mix their rows",
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) LIMIT 3":                        "LIMIT would mix their rows",
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) UNION SELECT id FROM orders":    "UNION would mix their rows",
		"SELECT id AS order_id, row_number() OVER () AS n FROM orders WHERE id IN (:order_id)":     "OVER would mix their rows",
		"SELECT id AS order_id, count(*) AS n FROM orders WHERE id IN (:order_id)":                 "count() without GROUP BY order_id",
		"SELECT id AS order_id, count(*) AS n FROM orders WHERE id IN (:order_id) GROUP BY status": "a GROUP BY without order_id",
		"SELECT id, item FROM orders WHERE id IN (:order_id)":                                      "write SELECT id AS order_id",

		"SELECT id AS order_id, coalesce(sum(cents), 0) AS n FROM orders WHERE id IN (:order_id)":                                "sum() without GROUP BY order_id",
		"SELECT id AS order_id, round(avg(cents), 2) AS n FROM orders WHERE id IN (:order_id)":                                   "avg() without GROUP BY order_id",
		"SELECT id AS order_id, ((count(*))) AS n FROM orders WHERE id IN (:order_id)":                                           "count() without GROUP BY order_id",
		"SELECT id AS order_id, abs(max(max(cents, 1))) AS n FROM orders WHERE id IN (:order_id)":                                "max() without GROUP BY order_id",
		"SELECT id AS order_id, CASE WHEN (1 < total(cents)) THEN 1 END AS n FROM orders WHERE id IN (:order_id)":                "total() without GROUP BY order_id",
		"SELECT id AS order_id, abs(\"Sum\"(cents)) AS n FROM orders WHERE id IN (:order_id)":                                    "sum() without GROUP BY order_id",
		"SELECT id AS order_id, json(jsonb_group_array(item)) AS n FROM orders WHERE id IN (:order_id)":                          "jsonb_group_array() without GROUP BY order_id",
		"SELECT id AS order_id, jsonb_group_object(id, item) AS n FROM orders WHERE id IN (:order_id)":                           "jsonb_group_object() without GROUP BY order_id",
		"SELECT id AS order_id, median(cents) AS n FROM orders WHERE id IN (:order_id)":                                          "median() without GROUP BY order_id",
		"SELECT id AS order_id, percentile_cont(cents, 0.5) AS n FROM orders WHERE id IN (:order_id)":                            "percentile_cont() without GROUP BY order_id",
		"SELECT id AS order_id, (SELECT sum(cents)) AS n FROM orders WHERE id IN (:order_id)":                                    "sum() without GROUP BY order_id",
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) HAVING (sum(cents) > 5)":                                      "sum() without GROUP BY order_id",
		"SELECT id AS order_id FROM orders WHERE id IN (:order_id) HAVING cents > 5":                                             "HAVING without GROUP BY order_id",
		"SELECT id AS order_id, coalesce(lag(cents) OVER (ORDER BY at), 0) AS n FROM orders WHERE id IN (:order_id)":             "OVER would mix their rows",
		"SELECT id AS order_id, (rank() OVER w) AS n FROM orders WHERE id IN (:order_id) GROUP BY order_id WINDOW w AS ()":       "WINDOW would mix their rows",
		"SELECT id AS order_id, (rank() OVER (ORDER BY id)) AS n FROM orders WHERE id IN (:order_id) GROUP BY order_id":          "OVER would mix their rows",
		"SELECT id AS order_id, coalesce((SELECT sum(n) FROM parts WHERE order_id = id), 0) FROM orders WHERE id IN (:order_id)": "",
		"SELECT id AS order_id, (SELECT sum(n) OVER () FROM parts WHERE order_id = id) FROM orders WHERE id IN (:order_id)":      "",
		"SELECT id AS order_id, coalesce(sum(cents), 0) AS n FROM orders WHERE id IN (:order_id) GROUP BY order_id":              "",
		"SELECT id AS order_id, coalesce(max(cents, 1), 0) AS \"over\", cents AS count FROM orders WHERE id IN (:order_id)":      "",
		"SELECT order_id FROM (SELECT order_id, count(*) AS n FROM parts GROUP BY order_id) AS p WHERE order_id IN (:order_id)":  "",
		"SELECT * FROM orders AS o WHERE o.id IN (:order_id)":                                                                    "write SELECT o.id AS order_id",
		"SELECT lower(id) AS order_id FROM orders WHERE id IN (:order_id)":                                                       "write SELECT id AS order_id",
		"SELECT p.id AS order_id FROM orders o JOIN parts p WHERE o.id IN (:order_id)":                                           "write SELECT o.id AS order_id",
		"SELECT item AS order_id FROM orders WHERE id IN (:order_id)":                                                            "write SELECT id AS order_id",
	} {
		uses := (&Config{Database: "shop", Query: query}).Uses(machine.ToolScope{Machine: m, Parameters: parameters, Batch: true})
		switch {
		case want == "" && (len(uses.Problems) > 0 || !uses.Batch):
			t.Errorf("%s: %+v", query, uses.Problems)
		case want != "" && (len(uses.Problems) != 1 || uses.Problems[0].Path != "query" || !strings.Contains(uses.Problems[0].Message, want)):
			t.Errorf("%s: got %+v, want %q", query, uses.Problems, want)
		}
		alone := (&Config{Database: "shop", Query: query}).Uses(machine.ToolScope{Machine: m, Parameters: parameters})
		if len(alone.Problems) > 0 {
			t.Errorf("%s without batch: %+v", query, alone.Problems)
		}
		if _, err := New().New(machine.ToolSpec{Name: "t", Effect: machine.EffectRead, Batch: true, Config: &Config{Database: "shop", Query: query}},
			tool.Env{Machine: m}); (err != nil) != (want != "") {
			t.Errorf("%s: New gave %v", query, err)
		}
	}
}

// What a change is told about batch, the compiler says.
func TestAChangeIsNotMadeInOneGo(t *testing.T) {
	_, m := shop(t)
	uses := (&Config{Database: "shop", Query: "DELETE FROM orders"}).Uses(machine.ToolScope{Machine: m, Batch: true})
	if uses.Batch || len(uses.Problems) > 0 || uses.Effect != machine.EffectWrite {
		t.Errorf("got %+v", uses)
	}
}

func TestTogetherStopsWithItsTime(t *testing.T) {
	k, m := stocked(t)
	tl := batched(t, k, m, "SELECT a.k FROM many AS a, many AS b, many AS c, many AS d WHERE a.k IN (:k) AND a.n + b.n + c.n + d.n < 0", "")
	tl.Spec.Timeout, tl.Spec.Retry = 50*time.Millisecond, new(int64)
	for _, got := range together(t, tl, "k", []machine.Value{"big", "small"}) {
		if got.Status != tool.Failed || got.Problem.Kind != tool.KindTimeout {
			t.Errorf("got %+v", got)
		}
	}
}

func FuzzWhatCanBeMadeInOneGo(f *testing.F) {
	for _, query := range []string{"SELECT id AS a FROM t WHERE id IN (:a)", "SELECT * FROM t WHERE t.a IN (:a) GROUP BY a", "WITH x AS (SELECT 1) SELECT", "SELECT IN (:a)",
		"SELECT DISTINCT FROM WHERE a IN (:a)", "SELECT , FROM t WHERE a IN (:a) GROUP BY", "SELECT a. FROM t WHERE . IN (:a)"} {
		f.Add(query)
	}
	f.Fuzz(func(t *testing.T, query string) {
		stmt, wrong := read(query)
		if len(wrong) > 0 {
			return
		}
		l, unfit := listOf(stmt)
		if unfit == "" && stmt.text[l.at.start:l.at.end] != ":"+l.name {
			t.Errorf("%q: the parameter is said to be %q", query, stmt.text[l.at.start:l.at.end])
		}
	})
}

// BenchmarkTogether compares 20 lookups in one statement with 20 statements, over a column without index and by primary key.
func BenchmarkTogether(b *testing.B) {
	for _, by := range []string{"scan", "index"} {
		b.Run(by, func(b *testing.B) {
			k, m := benchShop(b)
			tl := batched(b, k, m, `SELECT "`+by+`" AS v, what FROM things WHERE "`+by+`" IN (:v)`, "one")
			values := make([]machine.Value, 20)
			for i := range values {
				values[i] = fmt.Sprint(i * 100)
			}
			var one, each time.Duration
			for b.Loop() {
				began := time.Now()
				if got := together(b, tl, "v", values); got[19].Status != tool.OK {
					b.Fatal(got[19])
				}
				one += time.Since(began)
				began = time.Now()
				for _, v := range values {
					together(b, tl, "v", []machine.Value{v})
				}
				each += time.Since(began)
			}
			b.ReportMetric(float64(each)/float64(one), "times-faster")
		})
	}
}

// benchShop is a database with a column that has an index, and one that has none.
func benchShop(b *testing.B) (*Kind, *machine.Machine) {
	b.Helper()
	dir := b.TempDir()
	init := filepath.Join(dir, "shop.sql")
	text := "CREATE TABLE things (\"index\" TEXT PRIMARY KEY, scan TEXT, what TEXT);\n" +
		"INSERT INTO things WITH RECURSIVE c(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM c WHERE i < 5000) SELECT i, i, 'thing ' || i FROM c;"
	if err := os.WriteFile(init, []byte(text), 0o644); err != nil {
		b.Fatal(err)
	}
	m := flowWith(filepath.Join(dir, "shop.db"), init)
	k := New()
	b.Cleanup(func() { _ = k.Close() })
	if err := k.Prepare(b.Context(), m); err != nil {
		b.Fatal(err)
	}
	return k, m
}

func mustSchema(t testing.TB, text string) machine.Schema {
	t.Helper()
	s, err := schema.Compile([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
