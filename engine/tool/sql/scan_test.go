package sql

import (
	"reflect"
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	tests := []struct {
		query         string
		verb          string
		changes, rows bool
		names         []string
	}{
		{"SELECT 1", "SELECT", false, true, nil},
		{"  -- a comment; with :name\n select * from t where id = :id ; -- the end", "SELECT", false, true, []string{"id"}},
		{"/* :x */ VALUES (:b, :a, :b)", "VALUES", false, true, []string{"a", "b"}},
		{"EXPLAIN QUERY PLAN UPDATE t SET a = 1", "EXPLAIN", false, true, nil},
		{"UPDATE t SET a = ':no', \"b:no\" = `c:no`, [d:no] = :yes WHERE x = 'it''s :no'", "UPDATE", true, false, []string{"yes"}},
		{"INSERT INTO t(a) VALUES (:a) RETURNING id", "INSERT", true, true, []string{"a"}},
		{"REPLACE INTO t VALUES (1)", "REPLACE", true, false, nil},
		{"DELETE FROM t WHERE note = 'RETURNING'", "DELETE", true, false, nil},
		{"DELETE FROM t WHERE id IN (SELECT returning.id FROM returning)", "DELETE", true, false, nil},
		{"delete from t returning *", "DELETE", true, true, nil},
		{"WITH a AS (SELECT 1), b(x, y) AS NOT MATERIALIZED (SELECT (1), 2) SELECT * FROM a, b", "SELECT", false, true, nil},
		{"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) UPDATE t SET a = (SELECT max(x) FROM c)", "UPDATE", true, false, nil},
		{"WITH recursive AS (SELECT 1) SELECT * FROM recursive", "SELECT", false, true, nil},
		{"WITH update_ AS (SELECT 'UPDATE'), replace AS MATERIALIZED (SELECT 1) DELETE FROM t", "DELETE", true, false, nil},
		{"with x as (select 1) insert into t select * from x returning id", "INSERT", true, true, nil},
		{"CREATE TABLE t(a)", "CREATE", true, false, nil},
		{"CREATE TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET a = CASE WHEN 1 THEN 2 END; DELETE FROM u; END", "CREATE", true, false, nil},
		{"SELECT json_extract(a, '$.x:y') ->> '$.b', 12:34", "SELECT", false, true, []string{"34"}},
		{"SELECT :größe", "SELECT", false, true, []string{"größe"}},
		{"\uFEFFSELECT 1;;;", "SELECT", false, true, nil},
	}
	for _, test := range tests {
		s, problems := read(test.query)
		if len(problems) > 0 {
			t.Errorf("%s: %q", test.query, problems)
			continue
		}
		if s.verb != test.verb || s.changes != test.changes || s.rows != test.rows || !reflect.DeepEqual(s.names, test.names) {
			t.Errorf("%s: got %+v", test.query, s)
		}
		if strings.HasSuffix(s.text, ";") || strings.HasPrefix(s.text, " ") || strings.Contains(s.text, "the end") {
			t.Errorf("%s: text is %q", test.query, s.text)
		}
	}
}

func TestReadProblems(t *testing.T) {
	tests := []struct{ query, want string }{
		{"", "found none"},
		{" ; -- nothing\n", "found none"},
		{"SELECT 1; DROP TABLE t", "found 2; use a tool for each"},
		{"SELECT ?", "parameter ? must be written as :name"},
		{"SELECT ?1, @a", "@a must be written"},
		{"SELECT $a", "$a must be written"},
		{"SELECT a::text FROM t", "CAST(value AS TYPE)"},
		{"BEGIN", "transaction of its own"},
		{"COMMIT", "transaction of its own"},
		{"savepoint x", "SAVEPOINT cannot be a tool"},
		{"ATTACH 'x.db' AS x", "its own database only"},
		{"PRAGMA query_only = 0", "pragma_table_info"},
		{"VACUUM", "in a transaction"},
		{"SELEKT 1", `found one that begins with "SELEKT"`},
		{"(SELECT 1)", `begins with "("`},
		{"WITH x SELECT 1", `begins with "WITH"`},
		{"\u00a0SELECT 1", `begins with "\u00a0SELECT"`},
		{"WITH", `begins with "WITH"`},
		{"WITH a AS (SELECT 1)", `begins with "WITH"`},
		{"WITH a AS (SELECT 1), ", `begins with "WITH"`},
	}
	for _, test := range tests {
		if _, problems := read(test.query); !strings.Contains(strings.Join(problems, "; "), test.want) {
			t.Errorf("%s: got %q, want %q", test.query, problems, test.want)
		}
	}
}

func TestReturningColumns(t *testing.T) {
	s, _ := read("-- x\nUPDATE t SET a = 1 RETURNING id, coalesce(a, 'x, y') AS b , t.c -- end")
	var got []string
	for _, span := range s.given {
		got = append(got, s.text[span.start:span.end])
	}
	if want := []string{"id", "coalesce(a, 'x, y') AS b", "t.c"}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestSplit(t *testing.T) {
	const script = `
-- shop
CREATE TABLE t(a TEXT DEFAULT ';');
CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN
  UPDATE t SET a = CASE a WHEN 'x' THEN 'y' END;
  SELECT 1;
END;
/* ; */ INSERT INTO t VALUES ('it''s;');;
SELECT 1`
	var got []string
	for _, one := range split(scan(script)) {
		got = append(got, strings.Join(strings.Fields(sourceOf(script, one)), " "))
	}
	want := []string{"CREATE TABLE t(a TEXT DEFAULT ';')",
		"CREATE TEMP TRIGGER g AFTER INSERT ON t BEGIN UPDATE t SET a = CASE a WHEN 'x' THEN 'y' END; SELECT 1; END",
		"INSERT INTO t VALUES ('it''s;')", "SELECT 1"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %q", got)
	}
}

// Tokens cover the text without overlap, in order, whatever it is.
func FuzzScan(f *testing.F) {
	for _, text := range []string{"SELECT 'a''b', :x /* c", "[", "::", "x'00'", "--", "\"", "WITH a AS", ":", "é:é", "UPDATE t RETURNING a,(b,c)"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		for _, token := range scan(text) {
			if token.start < end || token.end <= token.start || token.end > len(text) || text[token.start:token.end] != token.text {
				t.Fatalf("token %+v after %d", token, end)
			}
			end = token.end
		}
		s, problems := read(text)
		if len(problems) == 0 && (s.text == "" || s.verb == "" || !s.rows && !s.changes) {
			t.Errorf("%q was read as %+v", text, s)
		}
		for _, span := range s.given {
			if span.start > span.end || span.end > len(s.text) {
				t.Errorf("%q: column %+v", text, span)
			}
		}
	})
}
