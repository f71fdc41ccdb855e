package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"flowctl/store"
	"flowctl/store/memory"
)

// TestBothDriversBehaveAlike makes the same random calls on a store in memory and on a file, and compares all answers.
func TestBothDriversBehaveAlike(t *testing.T) {
	folder := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		clock := func() time.Time { return moment(77) }
		n++
		path := filepath.Join(folder, fmt.Sprintf("%d.db", n))
		file, err := Open(context.Background(), path, Options{Durability: Normal, Now: clock, Readers: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			inStep := file.write(context.Background(), checkIndex)
			if err := errors.Join(inStep, file.Close(), os.Remove(path)); err != nil {
				t.Error(err)
			}
		}()
		p := &pair{file: file, memory: memory.New(memory.Options{Now: clock})}
		t.Repeat(map[string]func(*rapid.T){
			"commit": p.commit, "claim": p.claim, "beat": p.beat, "post": p.post, "list": p.list,
			"events": p.events, "blob": p.blob, "flow": p.flow, "memorize": p.memorize, "memories": p.memories,
			"put answer": p.putCached, "answer": p.cached, "": p.check,
		})
	})
}

// pair is the two stores. Their notices have the same ids, since both count from 1 and every post goes to both.
type pair struct {
	file   *DB
	memory *memory.Store
}

var (
	runIDs   = []string{"r", "r1", "r%", "s_", "nobody"}
	names    = []string{"", "a", "b", "A"}
	statuses = []store.Status{store.Running, store.Waiting, store.Stopped, store.Failed}
	payloads = []string{`{}`, `{"a":"needle"}`, `{"B":"NEEDLE %_"}`, "", "\x00\xff"}
	hashes   = []string{"h1", "h2"}
)

func moment(n int64) time.Time { return time.UnixMilli(n) }

func pick[T any](t *rapid.T, from []T, label string) T { return rapid.SampledFrom(from).Draw(t, label) }

func number(t *rapid.T, low, high int64, label string) int64 {
	return rapid.Int64Range(low, high).Draw(t, label)
}

// rarely is true for one in eight.
func rarely(t *rapid.T, label string) bool { return number(t, 0, 7, label) == 0 }

func aTime(t *rapid.T, label string) time.Time {
	if rarely(t, label+" is zero") {
		return time.Time{}
	}
	return moment(number(t, 0, 20, label)).Add(time.Duration(number(t, 0, 999_999, label+" ns")))
}

func aWorker(t *rapid.T) store.Worker {
	return store.Worker{ID: pick(t, []string{"w1", "w2", "w3"}, "worker"), Boot: pick(t, names, "boot"), PID: int(number(t, 0, 3, "pid")),
		Beat: moment(number(t, 0, 30, "beat"))}
}

// alike checks two answers and their errors.
func alike(t *rapid.T, what string, file, memory any, fileErr, memoryErr error) {
	var fileConflict, memoryConflict *store.MemoryConflict
	if errors.As(fileErr, &fileConflict) && errors.As(memoryErr, &memoryConflict) && !reflect.DeepEqual(fileConflict, memoryConflict) {
		t.Fatalf("%s: conflicts\nfile   %+v\nmemory %+v", what, fileConflict, memoryConflict)
	}
	for _, known := range []error{store.ErrBusy, store.ErrConflict, store.ErrExists, store.ErrNotFound} {
		if errors.Is(fileErr, known) != errors.Is(memoryErr, known) {
			t.Fatalf("%s: errors\nfile   %v\nmemory %v", what, fileErr, memoryErr)
		}
	}
	if (fileErr == nil) != (memoryErr == nil) || !reflect.DeepEqual(file, memory) {
		t.Fatalf("%s:\nfile   %+v, error %v\nmemory %+v, error %v", what, file, fileErr, memory, memoryErr)
	}
}

// present is the row of a run, as the store in memory has it.
func (p *pair) present(t *rapid.T, id string) store.Run {
	runs, err := p.memory.Runs(context.Background(), store.Filter{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	if len(runs) == 0 {
		return store.Run{ID: id}
	}
	return runs[0]
}

func aRun(t *rapid.T, id string) store.Run {
	r := store.Run{ID: id, Flow: pick(t, names, "flow"), FlowHash: pick(t, names, "flow hash"), Dir: pick(t, names, "dir"),
		Status: pick(t, statuses, "status"), State: pick(t, names, "state"), Parent: pick(t, names, "parent"),
		Owner: pick(t, names, "owner"), Due: aTime(t, "due"), Created: aTime(t, "created"),
		Usage: store.Usage{Steps: number(t, 0, 3, "steps"), PromptTokens: number(t, 0, 3, "tokens")}}
	if rarely(t, "has a cost") {
		cost := float64(number(t, 0, 8, "cost")) / 8
		r.Usage.Cost = &cost
	}
	if rarely(t, "has a holder") {
		r.Holder = aWorker(t)
	}
	return r
}

func (p *pair) commit(t *rapid.T) {
	have := p.present(t, pick(t, runIDs[:4], "run"))
	c := store.Commit{Run: have, ExpectSeq: have.Seq, Epoch: have.Epoch}
	if have.Seq == 0 || rapid.Bool().Draw(t, "changes the row") {
		c.Run = aRun(t, have.ID)
	}
	if rarely(t, "is behind") {
		c.ExpectSeq = number(t, 0, 3, "expect seq")
	}
	if rarely(t, "is fenced off") {
		c.Epoch = number(t, 0, 3, "epoch")
	}
	for i := range number(t, 0, 3, "events") {
		c.Events = append(c.Events, store.Event{Seq: c.ExpectSeq + i + 1, At: aTime(t, "at"), Type: pick(t, names, "type"),
			State: pick(t, names, "state"), Visit: number(t, 0, 2, "visit"), Step: number(t, 0, 2, "step"), Key: pick(t, names, "key"),
			Data: []byte(pick(t, payloads, "data"))})
	}
	if rarely(t, "has blobs") {
		c.Blobs = []store.Blob{{Hash: pick(t, hashes, "hash"), Data: []byte(pick(t, payloads, "blob"))}}
	}
	c.Memory = memoryWrites(t)
	for range number(t, 0, 2, "consumed") {
		c.Consumed = append(c.Consumed, number(t, 0, 9, "notice"))
	}
	if rarely(t, "posts") {
		c.Post = []store.Notice{aNotice(t), aNotice(t)}
	}
	if rarely(t, "has a checkpoint") {
		c.Checkpoint = []byte(pick(t, payloads, "checkpoint"))
	}
	c.Release = rarely(t, "releases")
	alike(t, "commit", nil, nil, p.file.Commit(context.Background(), c), p.memory.Commit(context.Background(), c))
}

func memoryWrites(t *rapid.T) (writes []store.MemoryWrite) {
	for range number(t, 0, 2, "memory writes") {
		m := store.MemoryWrite{Namespace: pick(t, names[:2], "namespace"), Key: pick(t, names, "key")}
		if !rarely(t, "deletes") {
			m.Value = []byte(pick(t, payloads, "value"))
		}
		if rapid.Bool().Draw(t, "expects") {
			version := number(t, 0, 4, "version")
			m.Expect = &version
		}
		writes = append(writes, m)
	}
	return writes
}

func (p *pair) memorize(t *rapid.T) {
	writes := memoryWrites(t)
	alike(t, "memorize", nil, nil, p.file.Memorize(context.Background(), writes), p.memory.Memorize(context.Background(), writes))
}

func (p *pair) memories(t *rapid.T) {
	f := store.MemoryFilter{Namespace: pick(t, names, "namespace"), Limit: int(number(t, 0, 3, "limit")), Bare: rapid.Bool().Draw(t, "bare"),
		Keys:  pick(t, []string{"", "a", "*", "*a*", "b*", "%", "?"}, "keys"),
		Query: pick(t, []string{"", "a", "needle", "a b needle", "NEEDLE x", "%", "\"", "needle OR (", "edl"}, "query")}
	file, fileErr := p.file.Memories(context.Background(), f)
	memory, memoryErr := p.memory.Memories(context.Background(), f)
	alike(t, fmt.Sprintf("memories %+v", f), file, memory, fileErr, memoryErr)
}

func (p *pair) putCached(t *rapid.T) {
	key, data, now, until := pick(t, hashes, "key"), []byte(pick(t, payloads, "data")), aTime(t, "now"), aTime(t, "until")
	alike(t, "put answer", nil, nil, p.file.PutCached(context.Background(), key, data, now, until),
		p.memory.PutCached(context.Background(), key, data, now, until))
}

func (p *pair) cached(t *rapid.T) {
	key, now := pick(t, hashes, "key"), aTime(t, "now")
	file, fileErr := p.file.Cached(context.Background(), key, now)
	memory, memoryErr := p.memory.Cached(context.Background(), key, now)
	alike(t, "answer", file, memory, fileErr, memoryErr)
}

func (p *pair) claim(t *rapid.T) {
	c := store.Claim{Run: pick(t, runIDs, "run"), Worker: aWorker(t), Now: moment(number(t, 0, 30, "now")),
		Stale: time.Duration(number(t, 0, 20, "stale")) * time.Millisecond}
	if rapid.Bool().Draw(t, "knows who is gone") {
		gone := pick(t, []string{"w1", "w2", "w3"}, "gone")
		c.Gone = func(w store.Worker) bool { return w.ID == gone }
	}
	file, fileErr := p.file.Claim(context.Background(), c)
	memory, memoryErr := p.memory.Claim(context.Background(), c)
	alike(t, "claim", file, memory, fileErr, memoryErr)
}

func (p *pair) beat(t *rapid.T) {
	w := aWorker(t)
	file, fileErr := p.file.Beat(context.Background(), w)
	memory, memoryErr := p.memory.Beat(context.Background(), w)
	alike(t, "beat", file, memory, fileErr, memoryErr)
}

func aNotice(t *rapid.T) store.Notice {
	return store.Notice{Run: pick(t, runIDs, "run"), Kind: store.NoticeSignal, At: aTime(t, "at"), Data: []byte(pick(t, payloads, "data"))}
}

func (p *pair) post(t *rapid.T) {
	n := aNotice(t)
	alike(t, "post", nil, nil, p.file.Post(context.Background(), n), p.memory.Post(context.Background(), n))
}

func (p *pair) list(t *rapid.T) {
	var f store.Filter
	maybe := func(label string, set func()) {
		if number(t, 0, 3, "by "+label) == 0 {
			set()
		}
	}
	maybe("id", func() { f.ID = pick(t, runIDs, "id") })
	maybe("prefix", func() { f.IDPrefix = pick(t, []string{"r", "r1", "s", "s_", "r%", "x"}, "prefix") })
	maybe("status", func() { f.Status = rapid.SliceOfN(rapid.SampledFrom(statuses), 0, 2).Draw(t, "statuses") })
	maybe("flow", func() { f.Flow = pick(t, names, "flow") })
	maybe("parent", func() { f.Parent = pick(t, names, "parent") })
	maybe("owner", func() { f.Owner = pick(t, names, "owner") })
	maybe("since", func() { f.Since = aTime(t, "since") })
	maybe("until", func() { f.Until = aTime(t, "until") })
	maybe("due", func() { f.Due = aTime(t, "due") })
	maybe("text", func() { f.Text = pick(t, []string{"needle", "NEEDLE", "%", "_", "\xff", "x"}, "text") })
	maybe("after", func() { f.After = pick(t, runIDs, "after") })
	maybe("limit", func() { f.Limit = int(number(t, 0, 3, "limit")) })
	maybe("holder", func() {
		gone := pick(t, []string{"w1", "w2", "w3"}, "gone")
		f.Unheld = func(w store.Worker) bool { return w.ID == gone || w.Beat.IsZero() }
	})
	file, fileErr := p.file.Runs(context.Background(), f)
	memory, memoryErr := p.memory.Runs(context.Background(), f)
	alike(t, "list "+strings.ReplaceAll(fmt.Sprintf("%+v", f), "\n", " "), file, memory, fileErr, memoryErr)
}

func (p *pair) events(t *rapid.T) {
	run, after, limit := pick(t, runIDs, "run"), number(t, -1, 6, "after"), int(number(t, -1, 4, "limit"))
	file, fileErr := p.file.Events(context.Background(), run, after, limit)
	memory, memoryErr := p.memory.Events(context.Background(), run, after, limit)
	alike(t, "events", file, memory, fileErr, memoryErr)
}

func (p *pair) blob(t *rapid.T) {
	run, hash := pick(t, append(runIDs, ""), "run"), pick(t, hashes, "hash")
	file, fileErr := p.file.Blob(context.Background(), run, hash)
	memory, memoryErr := p.memory.Blob(context.Background(), run, hash)
	alike(t, "blob", file, memory, fileErr, memoryErr)
}

func (p *pair) flow(t *rapid.T) {
	hash, source := pick(t, hashes, "hash"), []byte(pick(t, payloads, "source"))
	alike(t, "flow", nil, nil, p.file.PutFlow(context.Background(), hash, source), p.memory.PutFlow(context.Background(), hash, source))
}

// check compares everything after each call.
func (p *pair) check(t *rapid.T) {
	ctx := context.Background()
	file, fileErr := p.file.Runs(ctx, store.Filter{})
	inMemory, memoryErr := p.memory.Runs(ctx, store.Filter{})
	alike(t, "all runs", file, inMemory, fileErr, memoryErr)
	for _, run := range runIDs {
		file, fileErr := p.file.Events(ctx, run, 0, 0)
		inMemory, memoryErr := p.memory.Events(ctx, run, 0, 0)
		alike(t, "all events of "+run, file, inMemory, fileErr, memoryErr)
	}
	for _, namespace := range names[:2] {
		for _, key := range names {
			file, fileErr := p.file.Remembered(ctx, namespace, key)
			inMemory, memoryErr := p.memory.Remembered(ctx, namespace, key)
			alike(t, "memory "+namespace+"/"+key, file, inMemory, fileErr, memoryErr)
		}
	}
}
