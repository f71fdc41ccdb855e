//go:build unix

package engine_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/sqlite"
)

// The figures are ratios to what the database does by itself on the same machine at the same time. None of them fails a
// test: machines differ.

// yardstick commits single rows, one transaction each, with the settings of the store.
type yardstick struct{ insert *sql.Stmt }

func newYardstick(b *testing.B, d sqlite.Durability) yardstick {
	b.Helper()
	dsn := fmt.Sprintf("file:%s?_pragma=journal_mode(WAL)&_pragma=synchronous(%s)&_pragma=page_size(2048)&_txlock=immediate",
		filepath.Join(b.TempDir(), "raw.db"), d)
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE rows (id INTEGER PRIMARY KEY, data TEXT NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	insert, err := db.Prepare("INSERT INTO rows (data) VALUES (?)")
	if err != nil {
		b.Fatal(err)
	}
	return yardstick{insert}
}

// rate gives rows per second over n rows.
func (y yardstick) rate(b *testing.B, n int) float64 {
	b.Helper()
	data := strings.Repeat("x", 150)
	began := time.Now()
	for range n {
		if _, err := y.insert.Exec(data); err != nil {
			b.Fatal(err)
		}
	}
	return float64(n) / time.Since(began).Seconds()
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for a bad address only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// chain is a flow of n states that do nothing, in a row.
func chain(n int) *flow {
	f := newFlow()
	f.m.Start, f.m.Limits.Steps = "s0", 0
	for i := range n {
		next := fmt.Sprintf("s%d", i+1)
		if i == n-1 {
			next = "end"
		}
		f.state(fmt.Sprintf("s%d", i), "next", next)
		f.at(fmt.Sprintf("s%d", i)).Handler = "start"
	}
	return f.state("end")
}

// benchRig is a rig over a database in a new folder, with the machine's clock.
func benchRig(b *testing.B, f *flow, d sqlite.Durability) (r *rig, path string) {
	b.Helper()
	path = filepath.Join(b.TempDir(), "flowctl.db")
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{Durability: d})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = db.Close() })
	r = newRig(b, f)
	r.store = db
	r.config = func(cfg *engine.Config) { cfg.Now, cfg.NewID, cfg.Worker = time.Now, nil, store.Worker{} }
	r.on("start", outcome("next"))
	return r, path
}

// whole makes a run and brings it to its end.
func (r *rig) whole(b *testing.B, e *engine.Engine) {
	id, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow})
	if err != nil {
		b.Error(err)
		return
	}
	snap, err := e.Advance(context.Background(), id)
	if err != nil || snap.Status != store.Succeeded {
		b.Errorf("run %s: %v", id, err)
	}
}

// BenchmarkOneRun is a run of 1,000 states that do nothing: one commit each.
func BenchmarkOneRun(b *testing.B) {
	const states = 1000
	for _, d := range []sqlite.Durability{sqlite.Full, sqlite.Normal} {
		b.Run(string(d), func(b *testing.B) {
			raw := newYardstick(b, d)
			r, _ := benchRig(b, chain(states-1), d) // and the end
			e := r.engine("")
			r.whole(b, e)
			var ratio, rate float64
			var used time.Duration
			for range b.N {
				before := raw.rate(b, states/2)
				began, start := time.Now(), cpu()
				r.whole(b, e)
				steps := states / time.Since(began).Seconds()
				used += cpu() - start
				after := raw.rate(b, states/2)
				rate += steps
				ratio += steps / ((before + after) / 2)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate/float64(b.N), "steps/s")
			b.ReportMetric(ratio/float64(b.N), "of-raw")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N)/states, "cpu-µs/step")
		})
	}
}

// BenchmarkEngineAlone is a run of 1,000 states over a store that keeps nothing.
func BenchmarkEngineAlone(b *testing.B) {
	const states = 1000
	r := newRig(b, chain(states))
	r.store = blackHole{Store: r.store}
	r.config = func(cfg *engine.Config) { cfg.Now = time.Now }
	r.on("start", outcome("next"))
	e := r.engine("w")
	r.whole(b, e)
	b.ReportAllocs()
	b.ResetTimer()
	start := cpu()
	for range b.N {
		r.whole(b, e)
	}
	b.ReportMetric(float64((cpu()-start).Nanoseconds())/1000/float64(b.N)/states, "cpu-µs/step")
	b.ReportMetric(0, "ns/op")
}

// blackHole takes every commit and forgets it.
type blackHole struct{ store.Store }

func (blackHole) Commit(context.Context, store.Commit) error { return nil }

// BenchmarkManyRuns is 1,000 runs of 10 states, 64 at a time, against 64 goroutines that commit single events to the same
// kind of store.
func BenchmarkManyRuns(b *testing.B) {
	const runs, states, workers = 1000, 10, 64
	for _, d := range []sqlite.Durability{sqlite.Full, sqlite.Normal} {
		b.Run(string(d), func(b *testing.B) {
			var ratio, rate float64
			var used time.Duration
			for range b.N {
				before := writers(b, d, workers, runs*states/2)
				r, _ := benchRig(b, chain(states-1), d) // and the end
				e := r.engine("")
				r.whole(b, e)
				began, start := time.Now(), cpu()
				var next atomic.Int64
				var all sync.WaitGroup
				for range workers {
					all.Go(func() {
						for i := next.Add(1); i <= runs; i = next.Add(1) {
							r.whole(b, e)
						}
					})
				}
				all.Wait()
				steps := runs * states / time.Since(began).Seconds()
				used += cpu() - start
				after := writers(b, d, workers, runs*states/2)
				rate += steps
				ratio += steps / ((before + after) / 2)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rate/float64(b.N), "steps/s")
			b.ReportMetric(ratio/float64(b.N), "of-writer")
			b.ReportMetric(float64(used.Microseconds())/float64(b.N)/(runs*states), "cpu-µs/step")
		})
	}
}

// writers gives the commits per second of n goroutines that append single events to a run each.
func writers(b *testing.B, d sqlite.Durability, n, commits int) float64 {
	b.Helper()
	db, err := sqlite.Open(context.Background(), filepath.Join(b.TempDir(), "writers.db"), sqlite.Options{Durability: d})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	var left atomic.Int64
	left.Store(int64(commits))
	began := time.Now()
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			run := store.Run{ID: fmt.Sprint("r", i), Flow: "f", Status: store.Running, State: "s", Created: time.UnixMilli(1)}
			for seq := int64(1); left.Add(-1) >= 0; seq++ {
				run.Seq = seq
				err := db.Commit(context.Background(), store.Commit{Run: run, ExpectSeq: seq - 1, Epoch: 0, Events: []store.Event{
					{Seq: seq, At: time.UnixMilli(seq), Type: "said", State: "s", Visit: 1, Step: seq, Data: []byte(`{"text":"` + strings.Repeat("x", 140) + `"}`)}}})
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	return float64(commits) / time.Since(began).Seconds()
}

// BenchmarkSize is the size of the database after states that add a message of 2 KiB each.
func BenchmarkSize(b *testing.B) {
	for _, states := range []int{100, 200, 400} {
		b.Run(fmt.Sprint(states), func(b *testing.B) {
			for range b.N {
				r, path := benchRig(b, chain(states), sqlite.Normal)
				r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
					return "next", step.Say(strings.Repeat("12345678", 256))
				})
				r.whole(b, r.engine(""))
				if err := r.store.(*sqlite.DB).Close(); err != nil {
					b.Fatal(err)
				}
				info, err := os.Stat(path)
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(info.Size())/1024, "KiB")
				b.ReportMetric(float64(info.Size())/float64(states), "bytes/state")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkTakeUp takes a run of 1,000 states up among 10,000 finished ones, in a new process each time.
func BenchmarkTakeUp(b *testing.B) {
	const states, others = 1000, 10_000
	f := chain(states)
	f.at(fmt.Sprintf("s%d", states-1)).Handler = "last"
	r, _ := benchRig(b, f, sqlite.Normal)
	fill(b, r.store, others)
	r.on("last", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "next", err
	})
	e := r.engine("")
	r.start(e)
	wantStatus(b, advance(b, e), store.Waiting)
	b.ResetTimer()
	for range b.N {
		e := r.engine("")
		wantStatus(b, advance(b, e), store.Waiting)
		e.Close()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/float64(b.N), "ms")
	b.ReportMetric(0, "ns/op")
}

// fill puts finished runs of a few events into a store.
func fill(b *testing.B, s store.Store, n int) {
	b.Helper()
	var next atomic.Int64
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			for i := next.Add(1); i <= int64(n); i = next.Add(1) {
				run := store.Run{ID: fmt.Sprint("other", i), Flow: "f", Status: store.Succeeded, State: "end", Created: time.UnixMilli(i)}
				events := make([]store.Event, 10)
				for k := range events {
					events[k] = store.Event{Seq: int64(k + 1), At: time.UnixMilli(i), Type: "said", State: "s", Visit: 1, Step: 1, Data: []byte(`{"text":"hello there"}`)}
				}
				if err := s.Commit(context.Background(), store.Commit{Run: run, Events: events, Release: true}); err != nil {
					b.Error(err)
				}
			}
		})
	}
	all.Wait()
}
