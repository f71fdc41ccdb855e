package sqlite

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/store"
)

// fileSize gives the bytes of a database after its write-ahead log was copied back.
func fileSize(t *testing.T, db *DB) int64 {
	t.Helper()
	if err := db.writer.conn.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(db.writer.file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// busyState commits one state of a busy run: entered, a model call, a message, a tool call, a variable, the transition.
func busyState(t *testing.T, db *DB, seq *int64, message string) {
	t.Helper()
	for _, events := range [][][2]string{
		{{"model_called", `{"model":"default","thought":"I look the order up first.","system":"sha256:` + strings.Repeat("a", 64) +
			`","prompt_tokens":812,"completion_tokens":44,"ms":913}`},
			{"message_added", `{"role":"assistant","text":"` + message + `"}`}},
		{{"tool_started", `{"tool":"lookup_order","args":{"order_id":"A1001"}}`}},
		{{"tool_finished", string(payload)}},
		{{"var_set", `{"name":"order_id","value":"A1001"}`},
			{"transition", `{"from":"work","to":"work","outcome":"success","branch":0}`},
			{"state_entered", `{"env":{"model":"ready"}}`}},
	} {
		c := oneEvent("r", *seq+1, "work")
		c.Events = nil
		for _, e := range events {
			*seq++
			c.Events = append(c.Events, store.Event{Seq: *seq, At: time.UnixMilli(1767323045006 + *seq), Type: e[0],
				State: "work", Visit: *seq, Step: *seq, Key: "4.0", Data: []byte(e[1])})
		}
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

func TestStorageIsCompactAndLinear(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "flowctl.db"), Options{Durability: Normal})
	empty := fileSize(t, db)
	message := strings.Repeat("0123456789abcdef", 2048/16)
	sizes, frames, seq := map[int]int64{}, map[int]int64{}, int64(0)
	for n := 1; n <= 400; n++ {
		if n == 100 || n == 200 || n == 400 {
			fileSize(t, db) // the log is empty now
		}
		busyState(t, db, &seq, message)
		if n == 100 || n == 200 || n == 400 {
			frames[n] = db.writer.logSize() / pageSize
			sizes[n] = fileSize(t, db) - empty
		}
	}
	t.Logf("bytes of 100, 200 and 400 states: %d, %d, %d; pages written by these states: %d, %d, %d",
		sizes[100], sizes[200], sizes[400], frames[100], frames[200], frames[400])
	if total := sizes[400] + empty; total > 2_200_000 {
		t.Errorf("400 states take %d bytes", total)
	}
	if first, later := sizes[200], sizes[400]-sizes[200]; later > first*11/10 {
		t.Errorf("the first 200 states take %d bytes, the next 200 take %d", first, later)
	}
	if frames[400] > frames[100]+4 {
		t.Errorf("state 100 wrote %d pages, state 400 writes %d", frames[100], frames[400])
	}
}

// query gives the rows of a query as text.
func query(t *testing.T, db *DB, text string) []string {
	t.Helper()
	rows, err := db.readers.Query(text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for rows.Next() {
		values, into := make([]sql.NullString, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		var line []string
		for _, v := range values {
			if !v.Valid {
				v.String = "-"
			}
			line = append(line, v.String)
		}
		got = append(got, strings.Join(line, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func logged(t *testing.T, db *DB, run string) {
	t.Helper()
	c := oneEvent(run, 1, "work")
	c.Events = nil
	for i, e := range [][3]string{
		{"state_entered", "", `{"env":{}}`},
		{"model_called", "1.0", `{"model":"default","thought":"First I look.","prompt_tokens":812,"completion_tokens":44,"ms":913}`},
		{"tool_finished", "1.1", `{"tool":"lookup","args":{"id":"A1"},"result":{"status":"ok","value":{"cents":4900}},"ms":12}`},
		{"tool_finished", "1.2", `{"tool":"refund","args":{"id":"A1"},"result":{"status":"failed","error":"none found"},"ms":3}`},
		{"tool_finished", "1.3", `{"tool":"damaged`},
		{"var_set", "", `{"name":"order","value":"A1"}`},
		{"var_set", "", `{"name":"pin","value":"4711","secret":true}`},
		{"said", "", `{"text":"hello"}`},
		{"transition", "", `{"from":"work","to":"done","outcome":"success","branch":0}`},
	} {
		c.Events = append(c.Events, store.Event{Seq: int64(i) + 1, At: time.UnixMilli(1767323045000 + int64(i)), Type: e[0],
			State: "work", Visit: 1, Step: 2, Key: e[1], Data: []byte(e[2])})
	}
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

func TestViews(t *testing.T) {
	db := fresh(t)
	logged(t, db, "one")
	logged(t, db, "two")
	for text, want := range map[string][]string{
		"SELECT * FROM decision_log WHERE run = 'one'": {
			"one|2|2026-01-02T03:04:05.001Z|work|1|2|1.0|default|First I look.|812|44|913"},
		"SELECT * FROM execution_log WHERE run = 'one'": {
			`one|3|2026-01-02T03:04:05.002Z|work|1|2|1.1|lookup|{"id":"A1"}|ok|12|{"cents":4900}|-`,
			`one|4|2026-01-02T03:04:05.003Z|work|1|2|1.2|refund|{"id":"A1"}|failed|3|-|none found`,
			`one|5|2026-01-02T03:04:05.004Z|work|1|2|1.3|-|-|-|-|-|-`},
		"SELECT * FROM state_log WHERE run = 'two'": {
			`two|1|2026-01-02T03:04:05.000Z|state_entered|work|1|2|{"env":{}}`,
			`two|6|2026-01-02T03:04:05.005Z|var_set|work|1|2|{"name":"order","value":"A1"}`,
			`two|7|2026-01-02T03:04:05.006Z|var_set|work|1|2|{"name":"pin","value":"***","secret":true}`,
			`two|9|2026-01-02T03:04:05.008Z|transition|work|1|2|{"from":"work","to":"done","outcome":"success","branch":0}`},
		"SELECT run, seq, type, data FROM event_log WHERE run = 'two' AND seq > 7": {
			`two|8|said|{"text":"hello"}`, `two|9|transition|{"from":"work","to":"done","outcome":"success","branch":0}`},
		"SELECT run, count(*) FROM event_log GROUP BY run": {"one|9", "two|9"},
	} {
		if got := query(t, db, text); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n got %s\nwant %s", text, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	// One run's log does not read the others' events.
	for _, line := range query(t, db, "EXPLAIN QUERY PLAN SELECT * FROM execution_log WHERE run = 'one'") {
		if strings.Contains(line, "SCAN") {
			t.Errorf("the log of one run is read by %s", line)
		}
	}
}

func TestQueriesUseIndexes(t *testing.T) {
	db := fresh(t)
	for text, want := range map[string]string{
		"* FROM runs ORDER BY created DESC, id DESC LIMIT 20":                                                           "USING INDEX runs_newest",
		"* FROM runs WHERE status IN ('waiting') ORDER BY created DESC, id DESC LIMIT 20":                               "USING INDEX runs_status",
		"* FROM runs WHERE due <= 5":                                                                                    "USING INDEX runs_due",
		"* FROM runs WHERE parent = 'x' AND parent <> ''":                                                               "USING INDEX runs_parent",
		"1 FROM runs WHERE holder = 'x' AND holder <> ''":                                                               "INDEX runs_holder",
		"* FROM runs WHERE id >= 'x' AND id < 'y'":                                                                      "USING INDEX sqlite_autoindex_runs_1",
		"* FROM blobs WHERE run = 5 AND hash = 'x'":                                                                     "INDEX sqlite_autoindex_blobs_1",
		"run FROM notices WHERE run = 3":                                                                                "INDEX notices_run",
		"value FROM memory WHERE namespace = 'x' AND key = 'y'":                                                         "INDEX sqlite_autoindex_memory_1 (namespace=? AND key=?)",
		"* FROM memory WHERE namespace = 'x' AND key >= 'y' AND key < 'z' ORDER BY namespace, key":                      "INDEX sqlite_autoindex_memory_1 (namespace=? AND key>? AND key<?)",
		"* FROM memory WHERE namespace = 'x' AND (id IN (SELECT rowid FROM memory_text WHERE memory_text MATCH 'yyy'))": "SCAN memory_text VIRTUAL TABLE INDEX",
		"version FROM memory_gone WHERE namespace = 'x' AND key = 'y'":                                                  "PRIMARY KEY (namespace=? AND key=?)",
		"data FROM cache WHERE key = 'x' AND until > 3":                                                                 "INDEX sqlite_autoindex_cache_1 (key=?)",
		"1 FROM cache WHERE until <= 3":                                                                                 "INDEX cache_until",
		"seq FROM event_log WHERE run = 'x' AND seq > 3 LIMIT 20":                                                       "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
	} {
		if plan := strings.Join(query(t, db, "EXPLAIN QUERY PLAN SELECT "+text), "\n"); !strings.Contains(plan, want) {
			t.Errorf("SELECT %s is run by\n%s", text, plan)
		}
	}
}

func TestDamagedRunDisturbsNoOther(t *testing.T) {
	path := filepath.Join(t.TempDir(), "flowctl.db")
	db := open(t, path, Options{})
	marker := []byte(strings.Repeat("MARK", 100))
	for _, run := range []string{"good", "bad", "fine"} {
		if err := db.Commit(t.Context(), oneEvent(run, 1, "x")); err != nil {
			t.Fatal(err)
		}
		c := oneEvent(run, 2, "x")
		c.Events[0].Data = []byte(`"` + strings.Repeat(run, 3000) + `"`)
		if run == "bad" {
			c.Events[0].Data = bytes.Repeat(marker, 30)
		}
		if err := db.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	broken := 0
	for page := 0; page < len(data); page += pageSize {
		if next := data[page : page+4]; bytes.Contains(data[page:page+pageSize], marker[:pageSize/8]) && binary.BigEndian.Uint32(next) < 1000 {
			binary.BigEndian.PutUint32(next, 0x7fffffff) // the page that follows is nowhere
			broken++
		}
	}
	if broken == 0 {
		t.Fatal("no page of the run was found")
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	db = open(t, path, Options{})
	if _, err := db.Events(t.Context(), "bad", 0, 0); err == nil {
		t.Error("the damaged events were read")
	} else {
		says(t, err.Error(), "run bad", path, "damaged", ".recover")
	}
	for _, run := range []string{"good", "fine"} {
		if count(t, db, run) != 2 {
			t.Errorf("run %s is damaged, too", run)
		}
		if err := db.Commit(t.Context(), oneEvent(run, 3, "y")); err != nil {
			t.Error(err)
		}
	}
	for text, want := range map[string]int{"": 3, "hello": 3, "goodgood": 1, "MARK": 0} {
		if runs, err := db.Runs(t.Context(), store.Filter{Text: text}); err != nil || len(runs) != want {
			t.Errorf("text %q lists %d runs: %v", text, len(runs), err)
		}
	}
	if _, err := db.Claim(t.Context(), store.Claim{Run: "bad", Worker: store.Worker{ID: "w"}, Now: time.UnixMilli(1)}); err != nil {
		t.Error(err) // so that it can be stopped or cancelled
	}
}

func TestLongDeadWorkersAreDropped(t *testing.T) {
	db := fresh(t)
	at := func(h int) time.Time { return time.UnixMilli(0).Add(time.Duration(h) * time.Hour) }
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"idle", "holder", "young"} {
		w := store.Worker{ID: id, Beat: at(0)}
		if id == "young" {
			w.Beat = at(2)
		}
		if _, err := db.Beat(t.Context(), w); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := db.Claim(t.Context(), store.Claim{Run: "r", Worker: store.Worker{ID: "holder"}, Now: at(0)}); err != nil {
		t.Fatal(err)
	}
	for _, one := range []struct {
		hour int
		want string
	}{{24, "[holder idle now young]"}, {25, "[holder now young]"}, {27, "[holder now]"}} {
		if _, err := db.Beat(t.Context(), store.Worker{ID: "now", Beat: at(one.hour)}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(query(t, db, "SELECT id FROM workers ORDER BY id")); got != one.want {
			t.Errorf("after %d hours there are %s, want %s", one.hour, got, one.want)
		}
	}
}

func TestBoundsOfTheKey(t *testing.T) {
	db := fresh(t)
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(t.Context(), oneEvent("r", maxSeq+1, "x")); err == nil || !strings.Contains(err.Error(), "at most 4294967295 events") {
		t.Errorf("an event beyond the key gave %v", err)
	}
	if err := db.writer.conn.script(fmt.Sprintf("UPDATE runs SET no = %d", maxRuns)); err != nil {
		t.Fatal(err)
	}
	if err := db.Commit(t.Context(), oneEvent("s", 1, "x")); err == nil || !strings.Contains(err.Error(), "at most 2147483646 runs") {
		t.Errorf("a run beyond the key gave %v", err)
	}
	if runs, err := db.Runs(t.Context(), store.Filter{}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs: %v", len(runs), err)
	}
	c := oneEvent("r", 2, "x") // the last run of a file is whole
	if err := db.Commit(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if events, err := db.Events(t.Context(), "r", 1, 0); err != nil || len(events) != 1 {
		t.Errorf("%d events: %v", len(events), err)
	}
}

// storedCommits are what testdata/v1.db holds, which version 1 has written, besides a claim of the first run and a flow's
// source. Every later version must read it just so.
func storedCommits() (first, second store.Commit) {
	cost, at := 0.125, func(n int64) time.Time { return time.UnixMilli(1767323045006 + n).UTC() }
	first = store.Commit{
		Run: store.Run{ID: "01JD0000000000000000000001", Flow: "support", FlowHash: "sha256:f", Dir: "/flows", Status: store.Running,
			State: "details", Parent: "01JD0000000000000000000000", Owner: "ann", Holder: store.Worker{ID: "creator"}, Due: at(5000),
			Created: at(0), Usage: store.Usage{Steps: 2, ModelCalls: 1, ToolCalls: 1, PromptTokens: 812, CompletionTokens: 44, Cost: &cost}},
		Epoch: 1,
		Events: []store.Event{
			{Seq: 1, At: at(0), Type: "run_started", State: "details", Data: []byte(`{"flow":"support"}`)},
			{Seq: 2, At: at(1), Type: "tool_finished", State: "details", Visit: 1, Step: 1, Key: "1.0",
				Data: []byte(`{"tool":"lookup","args":{"id":"A1"},"result":{"status":"ok","value":1},"ms":12}`)},
			{Seq: 3, At: at(2), Type: "of_the_future", State: "details", Visit: 1, Step: 1, Data: []byte(`{"text":"猫"}`)},
		},
		Blobs:      []store.Blob{{Hash: "sha256:b", Data: []byte("blob \x00\xff")}},
		Checkpoint: []byte(`{"seq":2}`),
		Memory:     []store.MemoryWrite{{Namespace: "ann", Key: "color", Value: []byte(`"red"`)}, {Namespace: "ann", Key: "color", Value: []byte(`"blue"`)}},
		Post:       []store.Notice{{Run: "01JD0000000000000000000001", Kind: store.NoticeSignal, At: at(3), Data: []byte(`{"name":"paid"}`)}},
	}
	second = oneEvent("01JD0000000000000000000002", 1, "done")
	second.Run.Status = store.Succeeded
	return first, second
}

// version1 opens a copy of the stored file.
func version1(t *testing.T) *DB {
	t.Helper()
	data, err := os.ReadFile("testdata/v1.db")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "v1.db")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return open(t, path, Options{})
}

// A schema that was released is never edited: a file of version 1 would not have the edit, and nothing would tell.
func TestMigrationsLeadFromTheStoredFileToTheSchema(t *testing.T) {
	const schema = "SELECT type, name, sql FROM sqlite_schema ORDER BY type, name"
	old, made := query(t, version1(t), schema), query(t, fresh(t), schema)
	if !reflect.DeepEqual(old, made) {
		t.Errorf("a migrated file has\n%s\na new one has\n%s", strings.Join(old, "\n"), strings.Join(made, "\n"))
	}
}

func TestOpensFilesOfVersion1(t *testing.T) {
	first, second := storedCommits()
	clock := time.UnixMilli(1767323046000).UTC()
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	db := version1(t)

	want := first.Run
	want.Seq, want.Epoch, want.Updated = 3, 2, first.Events[2].At
	want.Holder = store.Worker{ID: "w", Boot: "b", Namespace: "n", PID: 4711, Started: "s", Beat: clock}
	last := second.Run
	last.Seq, last.Epoch, last.Updated, last.Created = 1, 1, time.UnixMilli(1).UTC(), time.UnixMilli(1).UTC()
	runs, err := db.Runs(ctx, store.Filter{})
	must(err)
	if !reflect.DeepEqual(runs, []store.Run{want, last}) {
		t.Errorf("runs:\n got %+v\nwant %+v", runs, []store.Run{want, last})
	}
	events, err := db.Events(ctx, first.Run.ID, 0, 0)
	must(err)
	if !reflect.DeepEqual(events, first.Events) {
		t.Errorf("events:\n got %+v\nwant %+v", events, first.Events)
	}
	blob, err := db.Blob(ctx, first.Run.ID, "sha256:b")
	must(err)
	source, err := db.Blob(ctx, "", "sha256:f")
	must(err)
	entry, err := db.Remembered(ctx, "ann", "color")
	must(err)
	if string(blob) != "blob \x00\xff" || string(source) != "version: 1\n" || !reflect.DeepEqual(entry,
		store.MemoryEntry{Namespace: "ann", Key: "color", Value: []byte(`"blue"`), Version: 2, Updated: clock}) {
		t.Errorf("got blob %q, source %q, memory %+v", blob, source, entry)
	}
	claimed, err := db.Claim(ctx, store.Claim{Run: first.Run.ID, Worker: store.Worker{ID: "now"}, Now: clock.Add(time.Hour)})
	must(err)
	notice := first.Post[0]
	notice.ID = 1
	if string(claimed.Checkpoint) != `{"seq":2}` || !reflect.DeepEqual(claimed.Notices, []store.Notice{notice}) {
		t.Errorf("claimed %+v", claimed)
	}
	if got := query(t, db, "SELECT run, seq, tool, result FROM execution_log"); len(got) != 1 || got[0] != first.Run.ID+"|2|lookup|1" {
		t.Errorf("execution_log: %v", got)
	}
	c := oneEvent(first.Run.ID, 4, "x") // and it is written on
	c.Epoch = 3
	must(db.Commit(ctx, c))
}
