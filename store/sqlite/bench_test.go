//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"flowctl/store"
)

// yardstick writes one payload per transaction on a bare connection with the same settings: nothing can be faster with
// this library.
type yardstick struct{ c *conn }

func newYardstick(b *testing.B, d Durability) yardstick {
	b.Helper()
	c, err := connect(context.Background(), dsn(filepath.Join(b.TempDir(), "raw.db"), d, making))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.close() })
	if err := c.script("CREATE TABLE rows (id INTEGER PRIMARY KEY, data TEXT NOT NULL)"); err != nil {
		b.Fatal(err)
	}
	return yardstick{c}
}

func (y yardstick) commit(b *testing.B) {
	if _, err := y.c.exec("INSERT INTO rows (data) VALUES (?)", string(payload)); err != nil {
		b.Fatal(err)
	}
}

// author makes the commits of one run, each with one event.
type author struct {
	db  *DB
	run store.Run
}

func newAuthor(b *testing.B, db *DB, id string) *author {
	b.Helper()
	a := &author{db, store.Run{ID: id, Flow: "support", FlowHash: "sha256:0123456789abcdef", Dir: "/flows", Status: store.Running,
		State: "talk", Created: time.UnixMilli(1), Epoch: 1}}
	a.commit(b)
	return a
}

func (a *author) commit(b *testing.B) {
	seq := a.run.Seq + 1
	a.run.Usage.Steps = seq
	if err := a.db.Commit(context.Background(), store.Commit{Run: a.run, ExpectSeq: a.run.Seq, Epoch: 1, Events: []store.Event{
		{Seq: seq, At: time.UnixMilli(seq), Type: "tool_finished", State: "talk", Visit: 1, Step: seq, Key: "1.0", Data: payload},
	}}); err != nil {
		b.Error(err)
	}
	a.run.Seq = seq
}

// cpu is the processor time that this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // it fails for a bad address only
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func each(d time.Duration, n int) float64 { return float64(d.Nanoseconds()) / float64(n) / 1000 }

// BenchmarkOneRun commits one run's events, in turn with raw single-row transactions, so that a noisy machine disturbs both.
func BenchmarkOneRun(b *testing.B) {
	for _, d := range []Durability{Full, Normal} {
		b.Run(string(d), func(b *testing.B) {
			raw := newYardstick(b, d)
			path := filepath.Join(b.TempDir(), "flowctl.db")
			db := open(b, path, Options{Durability: d})
			run := newAuthor(b, db, "r")
			groups := db.writer.groups
			var rawTime, ourTime, rawCPU, ourCPU time.Duration
			measure := func(wall, used *time.Duration, n int, f func(*testing.B)) {
				began, before := time.Now(), cpu()
				for range n {
					f(b)
				}
				*wall += time.Since(began)
				*used += cpu() - before
			}
			for done := 0; done < b.N; done += 50 {
				n := min(50, b.N-done)
				measure(&rawTime, &rawCPU, n, raw.commit)
				measure(&ourTime, &ourCPU, n, run.commit)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(each(rawTime, b.N), "raw-µs")
			b.ReportMetric(each(ourTime, b.N), "µs")
			b.ReportMetric(float64(rawTime)/float64(ourTime), "of-raw-speed")
			b.ReportMetric(each(rawCPU, b.N), "raw-cpu-µs")
			b.ReportMetric(each(ourCPU, b.N), "cpu-µs")
			b.ReportMetric(float64(db.writer.groups-groups)/float64(b.N), "transactions/commit")
			reportSize(b, db, path)
		})
	}
}

// BenchmarkManyRuns commits 64 runs at the same time.
func BenchmarkManyRuns(b *testing.B) {
	const runs = 64
	for _, d := range []Durability{Full, Normal} {
		b.Run(string(d), func(b *testing.B) {
			raw := newYardstick(b, d)
			path := filepath.Join(b.TempDir(), "flowctl.db")
			db := open(b, path, Options{Durability: d})
			authors := make([]*author, runs)
			for i := range authors {
				authors[i] = newAuthor(b, db, fmt.Sprintf("run-%02d", i))
			}
			sample := min(b.N, 500)
			began := time.Now()
			for range sample {
				raw.commit(b)
			}
			rawEach := each(time.Since(began), sample)
			groups, before := db.writer.groups, cpu()
			b.ResetTimer()
			began = time.Now()
			var left atomic.Int64
			left.Store(int64(b.N))
			var all sync.WaitGroup
			for _, a := range authors {
				all.Go(func() {
					for left.Add(-1) >= 0 {
						a.commit(b)
					}
				})
			}
			all.Wait()
			ourEach := each(time.Since(began), b.N)
			b.StopTimer()
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(rawEach, "raw-µs")
			b.ReportMetric(ourEach, "µs")
			b.ReportMetric(rawEach/ourEach, "of-raw-speed")
			b.ReportMetric(each(cpu()-before, b.N), "cpu-µs")
			b.ReportMetric(float64(db.writer.groups-groups)/float64(b.N), "transactions/commit")
			reportSize(b, db, path)
		})
	}
}

// reportSize tells the bytes of the file per commit, less those of an empty database.
func reportSize(b *testing.B, db *DB, path string) {
	b.Helper()
	if err := db.writer.conn.script("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		b.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(info.Size())/float64(b.N), "file-bytes/commit")
}
