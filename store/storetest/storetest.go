package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"flowctl/store"
)

// Run tests a driver. Open makes a new, empty store for each test and sees to its closing, best with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) store.Store) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Commit", commitTests},
		{"Claim", claimTests},
		{"Notices", noticeTests},
		{"Runs", listTests},
		{"Filter", filterTests},
		{"Data", dataTests},
		{"Memory", memoryTests},
		{"Memorize", memorizeTests},
		{"Recall", recallTests},
		{"Cache", cacheTests},
		{"Race", raceTests},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, one := range group.tests {
				t.Run(one.name, func(t *testing.T) { one.run(&bench{T: t, s: open(t), ctx: t.Context()}) })
			}
		})
	}
}

type test struct {
	name string
	run  func(b *bench)
}

// bench is a store under test.
type bench struct {
	*testing.T
	s   store.Store
	ctx context.Context
}

// day is when all the tests take place. Its time has no part below the millisecond.
var day = time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)

// at is n milliseconds into the tests.
func at(n int64) time.Time { return day.Add(time.Duration(n) * time.Millisecond) }

// event is the plainest event.
func event(seq int64) store.Event {
	return store.Event{Seq: seq, At: at(seq), Type: "said", State: "talk", Visit: 1, Step: 1, Data: fmt.Appendf(nil, `{"n":%d}`, seq)}
}

// creation is the commit that creates a plain run of epoch 1 that nobody holds.
func creation(id string) store.Commit {
	return store.Commit{
		Run: store.Run{ID: id, Flow: "support", FlowHash: "sha256:f", Dir: "/flows", Status: store.Running, State: "talk",
			Created: at(0)},
		Epoch: 1, Events: []store.Event{event(1)},
	}
}

// next is the commit of n plain events on top of a run as it stands.
func next(r store.Run, n int) store.Commit {
	c := store.Commit{Run: r, ExpectSeq: r.Seq, Epoch: r.Epoch}
	for i := range int64(n) {
		c.Events = append(c.Events, event(r.Seq+i+1))
	}
	return c
}

// bare is the commit without events on top of a run as it stands.
func bare(r store.Run) store.Commit { return next(r, 0) }

func (b *bench) commit(c store.Commit) {
	b.Helper()
	if err := b.s.Commit(b.ctx, c); err != nil {
		b.Fatalf("commit on run %s at seq %d: %v", c.Run.ID, c.ExpectSeq, err)
	}
}

// refused checks that a commit gives an error and changes nothing of its run.
func (b *bench) refused(c store.Commit, want error) {
	b.Helper()
	before := b.everything(c.Run.ID)
	err := b.s.Commit(b.ctx, c)
	if want != nil && !errors.Is(err, want) || err == nil {
		b.Errorf("commit on run %s at seq %d, epoch %d: got error %v, want %v", c.Run.ID, c.ExpectSeq, c.Epoch, err, want)
	}
	b.same("run after a refused commit", b.everything(c.Run.ID), before)
}

// everything is what can be read of a run.
type everything struct {
	runs   []store.Run
	events []store.Event
}

func (b *bench) everything(id string) everything {
	b.Helper()
	return everything{b.list(store.Filter{ID: id}), b.events(id)}
}

// create makes a plain run and gives its row.
func (b *bench) create(id string) store.Run {
	b.Helper()
	b.commit(creation(id))
	return b.run(id)
}

func (b *bench) run(id string) store.Run {
	b.Helper()
	runs := b.list(store.Filter{ID: id})
	if len(runs) != 1 {
		b.Fatalf("run %s: %d rows", id, len(runs))
	}
	return runs[0]
}

func (b *bench) list(f store.Filter) []store.Run {
	b.Helper()
	runs, err := b.s.Runs(b.ctx, f)
	if err != nil {
		b.Fatalf("list %+v: %v", f, err)
	}
	return runs
}

func (b *bench) events(id string) []store.Event {
	b.Helper()
	events, err := b.s.Events(b.ctx, id, 0, 0)
	if err != nil {
		b.Fatalf("events of run %s: %v", id, err)
	}
	return events
}

// worker is a process whose newest heartbeat was at n milliseconds.
func worker(id string, n int64) store.Worker {
	return store.Worker{ID: id, Boot: "boot-" + id, Namespace: "ns-" + id, PID: 4711, Started: "start-" + id, Beat: at(n)}
}

// stale is the age at which a heartbeat counts as dead in these tests.
const stale = time.Second

func (b *bench) claim(id, by string, n int64) store.Claimed {
	b.Helper()
	got, err := b.s.Claim(b.ctx, store.Claim{Run: id, Worker: worker(by, n), Now: at(n), Stale: stale})
	if err != nil {
		b.Fatalf("%s claims run %s: %v", by, id, err)
	}
	return got
}

func (b *bench) beat(w store.Worker) []store.Notice {
	b.Helper()
	notices, err := b.s.Beat(b.ctx, w)
	if err != nil {
		b.Fatalf("heartbeat of %s: %v", w.ID, err)
	}
	return notices
}

func (b *bench) post(id, data string) {
	b.Helper()
	n := store.Notice{Run: id, Kind: store.NoticeSignal, At: at(0), Data: []byte(data)}
	if err := b.s.Post(b.ctx, n); err != nil {
		b.Fatalf("notice for run %s: %v", id, err)
	}
}

// same compares what was read with what was written. Nil and empty slices are alike.
func (b *bench) same(what string, got, want any) {
	b.Helper()
	if !reflect.DeepEqual(got, want) {
		b.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// is checks the error of a call.
func (b *bench) is(what string, err, want error) {
	b.Helper()
	if !errors.Is(err, want) {
		b.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

func ids(runs []store.Run) []string {
	got := make([]string, 0, len(runs))
	for _, r := range runs {
		got = append(got, r.ID)
	}
	return got
}

// texts gives the data of notices.
func texts(notices []store.Notice) []string {
	got := make([]string, 0, len(notices))
	for _, n := range notices {
		got = append(got, string(n.Data))
	}
	return got
}
