package storetest

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"flowctl/store"
)

// together calls f(0) to f(n-1) at the same time and waits for all of them.
func together(n int, f func(i int)) {
	start := make(chan struct{})
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	all.Wait()
}

// tally counts how often each error came.
type tally struct {
	mu    sync.Mutex
	count map[string]int
}

func (t *tally) add(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count == nil {
		t.count = make(map[string]int)
	}
	var conflict *store.MemoryConflict
	switch {
	case err == nil:
		t.count["ok"]++
	case errors.As(err, &conflict):
		t.count["memory"]++
	default:
		for _, known := range []error{store.ErrConflict, store.ErrExists, store.ErrBusy} {
			if errors.Is(err, known) {
				t.count[known.Error()]++
				return
			}
		}
		t.count[fmt.Sprintf("unexpected: %v", err)]++
	}
}

var raceTests = []test{
	{"one of many claims wins", func(b *bench) {
		for round := range int64(20) {
			id := fmt.Sprint("r", round)
			b.create(id)
			b.claim(id, "dead", 0)
			var got tally
			var epoch atomic.Int64
			together(10, func(i int) {
				c, err := b.s.Claim(b.ctx, store.Claim{Run: id, Worker: worker(fmt.Sprint("w", i), 5000), Now: at(5000), Stale: stale,
					Gone: func(w store.Worker) bool { return w.ID == "dead" }})
				got.add(err)
				epoch.Add(c.Epoch)
			})
			b.same("claims", got.count, map[string]int{"ok": 1, store.ErrBusy.Error(): 9})
			b.same("the winner's epoch", epoch.Load(), b.run(id).Epoch)
			b.same("epoch", epoch.Load(), int64(3))
		}
	}},
	{"one of many commits wins", func(b *bench) {
		r := b.create("r")
		for seq := int64(1); seq <= 20; seq++ {
			r.Seq = seq
			var got tally
			together(10, func(i int) {
				c := next(r, 1)
				c.Events[0].Data = fmt.Appendf(nil, `{"by":%d}`, i)
				got.add(b.s.Commit(b.ctx, c))
			})
			b.same("commits", got.count, map[string]int{"ok": 1, store.ErrConflict.Error(): 9})
		}
		b.gapless("r", 21)
	}},
	{"one of many creations wins", func(b *bench) {
		var got tally
		together(10, func(i int) {
			c := creation("r")
			c.Run.State = fmt.Sprint("s", i)
			c.Events[0].State = c.Run.State
			got.add(b.s.Commit(b.ctx, c))
		})
		b.same("creations", got.count, map[string]int{"ok": 1, store.ErrExists.Error(): 9})
		b.same("state of the winner", b.events("r")[0].State, b.run("r").State)
	}},
	{"runs do not disturb each other", func(b *bench) {
		const runs, commits = 50, 20
		var got tally
		together(runs, func(i int) {
			id := fmt.Sprint("r", i)
			got.add(b.s.Commit(b.ctx, creation(id)))
			for seq := int64(1); seq <= commits; seq++ {
				r := creation(id).Run
				r.Seq, r.Epoch = seq, 1
				got.add(b.s.Commit(b.ctx, next(r, 1)))
				r.Epoch = 9 // a conflict beside the good ones
				got.add(b.s.Commit(b.ctx, next(r, 1)))
				_, err := b.s.Runs(b.ctx, store.Filter{Limit: 3})
				got.add(err)
			}
		})
		b.same("calls", got.count, map[string]int{"ok": runs * (2*commits + 1), store.ErrConflict.Error(): runs * commits})
		for i := range runs {
			b.gapless(fmt.Sprint("r", i), commits+1)
		}
	}},
	{"memory loses no write", func(b *bench) {
		const workers, writes = 8, 10
		var got tally
		for i := range workers {
			b.create(fmt.Sprint("r", i))
		}
		together(workers, func(i int) {
			r := store.Run{ID: fmt.Sprint("r", i), Seq: 1, Epoch: 1}
			for version, done := int64(0), 0; done < writes; {
				c := bare(r)
				c.Memory = []store.MemoryWrite{set("counter", fmt.Sprint(version+1), version)}
				err := b.s.Commit(b.ctx, c)
				var conflict *store.MemoryConflict
				switch {
				case err == nil:
					done, version = done+1, version+1
				case errors.As(err, &conflict):
					version = conflict.Version
				default:
					got.add(err)
					return
				}
			}
		})
		b.same("errors", len(got.count), 0)
		b.create("r")
		b.same("counter", *b.memoryConflict("counter"), store.MemoryConflict{Namespace: "n", Key: "counter",
			Version: workers * writes, Value: fmt.Append(nil, workers*writes)})
	}},
	{"memory loses no write in or outside of runs", func(b *bench) {
		const workers, writes = 8, 10
		m := b.memory()
		var got tally
		for i := range workers {
			b.create(fmt.Sprint("r", i))
		}
		together(workers, func(i int) {
			r := store.Run{ID: fmt.Sprint("r", i), Seq: 1, Epoch: 1}
			for version, done := int64(0), 0; done < writes; {
				write := []store.MemoryWrite{set("counter", fmt.Sprint(version+1), version)}
				var err error
				if i%2 == 0 {
					err = m.Memorize(b.ctx, write)
				} else {
					c := bare(r)
					c.Memory = write
					err = b.s.Commit(b.ctx, c)
				}
				var conflict *store.MemoryConflict
				switch {
				case err == nil:
					done, version = done+1, version+1
				case errors.As(err, &conflict):
					version = conflict.Version
				default:
					got.add(err)
					return
				}
				// What is found meanwhile is one write as a whole, and no older than what this worker has seen.
				found, err := m.Memories(b.ctx, store.MemoryFilter{Namespace: "n", Query: "counter"})
				if err != nil || len(found) > 1 || version > 0 && len(found) == 0 {
					got.add(fmt.Errorf("%d entries were found, error %w", len(found), err))
					return
				}
				for _, e := range found {
					if e.Version < version || string(e.Value) != fmt.Sprint(e.Version) {
						got.add(fmt.Errorf("version %d holds %s, at least %d was expected", e.Version, e.Value, version))
					}
				}
			}
		})
		b.same("errors", got.count, map[string]int(nil))
		b.same("hits", b.recalled(store.MemoryFilter{Query: fmt.Sprint(workers * writes)}), []string{"n/counter"})
		entry, err := m.Remembered(b.ctx, "n", "counter")
		b.is("counter", err, nil)
		b.same("version", entry.Version, int64(workers*writes))
	}},
	{"every notice arrives once", func(b *bench) {
		const senders, each = 8, 10
		b.create("r")
		b.claim("r", "w", 0)
		var got tally
		together(senders, func(i int) {
			for j := range each {
				got.add(b.s.Post(b.ctx, store.Notice{Run: "r", Kind: store.NoticeSignal, At: at(0), Data: fmt.Append(nil, i*each+j)}))
			}
		})
		b.same("posts", got.count, map[string]int{"ok": senders * each})
		heard := b.beat(worker("w", 1))
		if !slices.IsSortedFunc(heard, func(a, b store.Notice) int { return int(a.ID - b.ID) }) {
			b.Error("the notices are not in the order of their ids")
		}
		arrived := texts(heard)
		slices.Sort(arrived)
		b.same("notices that arrived", len(slices.Compact(arrived)), senders*each)
	}},
}

// gapless checks that a run holds events 1 to n, and that its row says so.
func (b *bench) gapless(id string, n int64) {
	b.Helper()
	events := b.events(id)
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			b.Fatalf("run %s: event %d has seq %d", id, i, e.Seq)
		}
	}
	b.same("number of events of run "+id, int64(len(events)), n)
	b.same("seq of run "+id, b.run(id).Seq, n)
}
