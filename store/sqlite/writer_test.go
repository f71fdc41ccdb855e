package sqlite

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"flowctl/store"
)

// commitFrames counts the transactions in the write-ahead log since it was last begun. With durability Full each of them was
// synced once.
func commitFrames(t testing.TB, db *DB) int {
	t.Helper()
	log, err := os.ReadFile(db.writer.file + "-wal")
	if err != nil {
		t.Fatal(err)
	}
	const header, frameHeader = 32, 24
	if len(log) < header {
		return 0
	}
	page := int(binary.BigEndian.Uint32(log[8:]))
	salts := string(log[16:24])
	n := 0
	for frame := log[header:]; len(frame) >= frameHeader+page && string(frame[8:16]) == salts; frame = frame[frameHeader+page:] {
		if binary.BigEndian.Uint32(frame[4:]) != 0 { // only the last frame of a transaction tells the size of the database
			n++
		}
	}
	return n
}

// queued makes one group of all ops: it holds the lead until they are all in the queue. It gives their errors, and what
// they panicked with.
func queued(t *testing.T, db *DB, ops ...op) []any {
	t.Helper()
	leading, release := make(chan struct{}), make(chan struct{})
	results := make([]any, len(ops))
	var all sync.WaitGroup
	all.Go(func() {
		if err := db.writer.do(context.Background(), func(*conn) error {
			close(leading)
			<-release
			return nil
		}); err != nil {
			t.Error(err)
		}
	})
	<-leading
	for i, o := range ops {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil {
					results[i] = p
				}
			}()
			if err := db.write(context.Background(), o); err != nil {
				results[i] = err
			}
		})
		waitQueued(db, i+1) // in this order
	}
	close(release)
	all.Wait()
	return results
}

// waitQueued returns when n requests are in the queue.
func waitQueued(db *DB, n int) {
	for {
		db.writer.mu.Lock()
		got := len(db.writer.queue)
		db.writer.mu.Unlock()
		if got == n {
			return
		}
		runtime.Gosched()
	}
}

func (db *DB) committing(c store.Commit) op { return func(w *conn) error { return db.commit(w, c) } }

func count(t *testing.T, db *DB, run string) int {
	t.Helper()
	events, err := db.Events(t.Context(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

func TestEachLoneCommitIsOneTransaction(t *testing.T) {
	db := fresh(t)
	for seq := int64(1); seq <= 20; seq++ {
		before := commitFrames(t, db)
		if err := db.Commit(t.Context(), oneEvent("r", seq, "x")); err != nil {
			t.Fatal(err)
		}
		if n := commitFrames(t, db) - before; n != 1 {
			t.Errorf("commit %d made %d transactions", seq, n)
		}
	}
	before := commitFrames(t, db)
	if err := db.Commit(t.Context(), oneEvent("r", 5, "x")); !errors.Is(err, store.ErrConflict) {
		t.Error(err)
	}
	if n := commitFrames(t, db) - before; n != 0 {
		t.Errorf("a conflict made %d transactions", n)
	}
}

func TestQueuedCommitsAreOneTransaction(t *testing.T) {
	db := fresh(t)
	before := commitFrames(t, db)
	ops := make([]op, 64)
	for i := range ops {
		ops[i] = db.committing(oneEvent(fmt.Sprint("r", i), 1, "x"))
	}
	for i, err := range queued(t, db, ops...) {
		if err != nil {
			t.Errorf("commit %d: %v", i, err)
		}
	}
	if n := commitFrames(t, db) - before; n != 1 { // the one that held the lead wrote nothing
		t.Errorf("64 commits made %d transactions", n)
	}
	runs, err := db.Runs(t.Context(), store.Filter{})
	if err != nil || len(runs) != 64 {
		t.Errorf("%d runs are stored: %v", len(runs), err)
	}
}

func TestNeighboursOfAGroupDoNotMatter(t *testing.T) {
	db := fresh(t)
	results := queued(t, db,
		db.committing(oneEvent("a", 1, "x")),
		db.committing(oneEvent("a", 1, "x")), // exists
		db.committing(oneEvent("b", 7, "x")), // a conflict
		func(w *conn) error {
			if err := db.commit(w, oneEvent("c", 1, "x")); err != nil {
				t.Error(err)
			}
			return store.ErrBusy // what it wrote is undone
		},
		func(w *conn) error {
			if err := db.commit(w, oneEvent("d", 1, "x")); err != nil {
				t.Error(err)
			}
			panic("oh")
		},
		func(w *conn) error { _, err := w.exec("INSERT INTO nowhere VALUES (1)"); return err },
		db.committing(oneEvent("a", 2, "y")), // sees its neighbour's commit
		db.committing(oneEvent("e", 1, "x")),
	)
	for i, want := range []any{nil, store.ErrExists, store.ErrConflict, store.ErrBusy, "oh", "bug", nil, nil} {
		switch got := results[i].(type) {
		case error:
			if e, ok := want.(error); ok && !errors.Is(got, e) || want == nil || want == "bug" && !strings.Contains(got.Error(), "bug") {
				t.Errorf("op %d: got %v, want %v", i, got, want)
			}
		default:
			if got != want {
				t.Errorf("op %d: got %v, want %v", i, got, want)
			}
		}
	}
	for run, want := range map[string]int{"a": 2, "b": 0, "c": 0, "d": 0, "e": 1} {
		if got := count(t, db, run); got != want {
			t.Errorf("run %s has %d events, want %d", run, got, want)
		}
	}
}

func TestFullDiskFailsOnlyWhatDoesNotFit(t *testing.T) {
	db := fresh(t)
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Fatal(err)
	}
	pages, _, err := db.writer.conn.number("PRAGMA page_count")
	if err != nil {
		t.Fatal(err)
	}
	if err := db.writer.conn.script(fmt.Sprintf("PRAGMA max_page_count = %d", pages+8)); err != nil {
		t.Fatal(err)
	}
	big := oneEvent("r", 2, "x")
	big.Events[0].Data = []byte(`"` + strings.Repeat("x", 50*pageSize) + `"`)
	results := queued(t, db, db.committing(oneEvent("a", 1, "x")), db.committing(big), db.committing(oneEvent("b", 1, "x")))
	if results[0] != nil || results[2] != nil {
		t.Errorf("the neighbours got %v and %v", results[0], results[2])
	}
	err, _ = results[1].(error)
	if code(err) != sqlite3.SQLITE_FULL {
		t.Fatalf("the large commit got %v", results[1])
	}
	says(t, err.Error(), db.path, "disk is full", "free some space")
	if err := db.Commit(t.Context(), big); code(err) != sqlite3.SQLITE_FULL { // alone as well
		t.Errorf("the large commit alone got %v", err)
	}
	if err := db.Commit(t.Context(), oneEvent("r", 2, "y")); err != nil {
		t.Error(err)
	}
	for run, want := range map[string]int{"a": 1, "b": 1, "r": 2} {
		if got := count(t, db, run); got != want {
			t.Errorf("run %s has %d events, want %d", run, got, want)
		}
	}
}

func TestBrokenTransaction(t *testing.T) {
	db := fresh(t)
	breaks := func(w *conn) error { _, err := w.exec("ROLLBACK"); return err }
	results := queued(t, db, db.committing(oneEvent("a", 1, "x")), breaks, db.committing(oneEvent("b", 1, "x")))
	if results[0] != nil || results[1] == nil || results[2] != nil {
		t.Errorf("got %v", results)
	}
	if count(t, db, "a") != 1 || count(t, db, "b") != 1 {
		t.Error("the neighbours' commits are not stored")
	}
	if err := db.writer.do(t.Context(), breaks); err == nil {
		t.Error("a commit that never happened was acknowledged")
	}
	if err := db.Commit(t.Context(), oneEvent("a", 2, "x")); err != nil {
		t.Error(err)
	}
}

func TestUselessConnectionIsReplaced(t *testing.T) {
	db := fresh(t)
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Fatal(err)
	}
	if _, err := db.writer.conn.exec("BEGIN"); err != nil { // every further BEGIN of this connection fails
		t.Fatal(err)
	}
	old := db.writer.conn
	if err := db.Commit(t.Context(), oneEvent("r", 2, "x")); err == nil {
		t.Fatal("the commit went through a connection in the wrong state")
	}
	if err := db.Commit(t.Context(), oneEvent("r", 2, "x")); err != nil {
		t.Error(err)
	}
	if db.writer.conn == old || count(t, db, "r") != 2 {
		t.Error("the connection was not replaced")
	}
}

func TestCancelledCallerGetsItsResult(t *testing.T) {
	db := fresh(t)
	leading, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 2)
	go func() {
		done <- db.writer.do(context.Background(), func(*conn) error { close(leading); <-release; return nil })
	}()
	<-leading
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- db.Commit(ctx, oneEvent("r", 1, "x")) }()
	waitQueued(db, 1)
	cancel()
	if err := db.Commit(ctx, oneEvent("late", 1, "x")); !errors.Is(err, context.Canceled) { // never queued
		t.Errorf("got %v", err)
	}
	close(release)
	if err := errors.Join(<-done, <-done); err != nil {
		t.Error(err)
	}
	if count(t, db, "r") != 1 || count(t, db, "late") != 0 {
		t.Error("the result is not what is stored")
	}
}

func TestCloseWaitsForTheQueue(t *testing.T) {
	db := fresh(t)
	leading, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 3)
	go func() {
		done <- db.writer.do(context.Background(), func(*conn) error { close(leading); <-release; return nil })
	}()
	<-leading
	go func() { done <- db.Commit(context.Background(), oneEvent("r", 1, "x")) }()
	waitQueued(db, 1)
	go func() { done <- db.Close() }()
	close(release)
	if err := errors.Join(<-done, <-done, <-done); err != nil {
		t.Error(err)
	}
	if n := count(t, open(t, db.path, Options{}), "r"); n != 1 {
		t.Errorf("%d events are stored", n)
	}
}

func TestTheLeadRestsAfterATurn(t *testing.T) {
	db := fresh(t)
	w := db.writer
	now, slept := time.UnixMilli(0), []time.Duration(nil)
	w.now = func() time.Time { return now }
	w.sleep = func(d time.Duration) { slept = append(slept, d); now = now.Add(d) }
	step := func(seq int64) op {
		return func(c *conn) error {
			now = now.Add(20 * time.Millisecond)
			return db.commit(c, oneEvent("r", seq, "x"))
		}
	}
	if err := w.do(t.Context(), step(1)); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	for seq := int64(2); seq < 6; seq++ { // nobody hands the lead on: another process can step in anyway
		if err := w.do(t.Context(), step(seq)); err != nil {
			t.Fatal(err)
		}
	}
	if len(slept) != 0 {
		t.Errorf("a lone caller rested: %v", slept)
	}
	w.began = now
	for range 10 { // as if the lead were handed on 10 times
		w.pace()
		now = now.Add(20 * time.Millisecond)
	}
	if len(slept) != 3 || slept[0] != rest {
		t.Errorf("10 groups of 20 ms rested %v", slept)
	}
}

func TestWaitingForTheLockLooksOften(t *testing.T) {
	db := fresh(t)
	other, err := connect(t.Context(), dsn(db.writer.file, Full, writing))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.exec("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	looks := 0
	db.writer.sleep = func(d time.Duration) {
		if d != poll {
			t.Errorf("it waits %v", d)
		}
		if looks++; looks == 100 {
			if _, err := other.exec("COMMIT"); err != nil {
				t.Error(err)
			}
		}
	}
	if err := db.Commit(t.Context(), oneEvent("r", 1, "x")); err != nil {
		t.Error(err)
	}
	if looks != 100 {
		t.Errorf("it looked %d times", looks)
	}
	if err := other.close(); err != nil {
		t.Error(err)
	}
}

func TestWriteAheadLogStaysSmall(t *testing.T) {
	db := open(t, t.TempDir()+"/flowctl.db", Options{Durability: Normal})
	seq := int64(0)
	write := func(n int) {
		for range n {
			seq++
			c := oneEvent("r", seq, "x")
			c.Events[0].Data = []byte(`"` + strings.Repeat("x", 16<<10) + `"`)
			if err := db.Commit(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
	}
	write(1)
	reader, err := db.readers.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true}) // while it reads, the log cannot start over
	if err == nil {
		_, err = reader.Exec("SELECT * FROM runs")
	}
	if err != nil {
		t.Fatal(err)
	}
	const limit = 5 << 20
	write(512)
	grown := db.writer.logSize()
	if grown < limit {
		t.Fatalf("the log has %d bytes although somebody reads", grown)
	}
	db.writer.logLimit = limit
	write(128) // tries, in vain
	if db.writer.logLimit <= limit || db.writer.logSize() < grown {
		t.Errorf("the log has %d bytes, the next limit is %d", db.writer.logSize(), db.writer.logLimit)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	db.writer.logLimit = limit
	write(128)
	if n := db.writer.logSize(); n > limit {
		t.Errorf("the log has %d bytes when nobody reads", n)
	}
	if n, _, err := db.writer.conn.number("PRAGMA busy_timeout"); n != 0 || err != nil {
		t.Errorf("the writer's busy_timeout is %d: %v", n, err)
	}
}

func TestWhatIsRememberedOfARunIsNotTrusted(t *testing.T) {
	path := t.TempDir() + "/flowctl.db"
	db, other := open(t, path, Options{}), open(t, path, Options{})
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	waiting := func(seq int64) store.Commit {
		c := oneEvent("r", seq, "x")
		c.Run.Status = store.Waiting
		return c
	}
	must(db.Commit(t.Context(), oneEvent("r", 1, "x")))
	undone := errors.New("undone")
	if err := db.writer.do(t.Context(), func(w *conn) error { must(db.commit(w, waiting(2))); return undone }); !errors.Is(err, undone) {
		t.Fatal(err)
	}
	must(other.Commit(t.Context(), oneEvent("r", 2, "x")), db.Commit(t.Context(), waiting(3)))
	if runs, err := db.Runs(t.Context(), store.Filter{Status: []store.Status{store.Waiting}}); err != nil || len(runs) != 1 {
		t.Errorf("%d runs wait: %v", len(runs), err)
	}
	// Pruned and made again under another number.
	must(other.writer.do(t.Context(), func(w *conn) error {
		return errors.Join(w.script("DELETE FROM runs"), w.script("DELETE FROM events"))
	}))
	must(other.Commit(t.Context(), oneEvent("new", 1, "x")))
	for seq := int64(1); seq <= 3; seq++ {
		must(other.Commit(t.Context(), waiting(seq)))
	}
	must(db.Commit(t.Context(), waiting(4)))
	if count(t, db, "r") != 4 || count(t, db, "new") != 1 {
		t.Errorf("the runs have %d and %d events", count(t, db, "r"), count(t, db, "new"))
	}
}
