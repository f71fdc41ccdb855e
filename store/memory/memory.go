package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"flowctl/store"
)

// Options are the settings of a store. The zero Options are the defaults.
type Options struct {
	// Now gives the time that memory entries are stamped with. Defaults to time.Now. It is called under the store's lock.
	Now func() time.Time
}

// Store keeps runs in memory. It is safe for concurrent use.
type Store struct {
	now func() time.Time

	mu      sync.Mutex
	runs    map[string]*run
	workers map[string]store.Worker
	flows   map[string][]byte
	memory  map[key]entry
	cache   map[string]answer
	notice  int64 // id of the newest notice
}

// run is a run with all that belongs to it. The row's Holder carries the id only.
type run struct {
	row        store.Run
	events     []store.Event
	blobs      map[string][]byte
	checkpoint []byte
	notices    []store.Notice
}

type key struct{ namespace, key string }

// entry is a key of the memory. One that was deleted keeps its version.
type entry struct {
	value   []byte // nil: there is no such key, or not any more
	version int64
	updated time.Time
}

func (e entry) gone() bool { return e.value == nil }

var (
	_ store.Store  = (*Store)(nil)
	_ store.Memory = (*Store)(nil)
	_ store.Cache  = (*Store)(nil)
)

// errNobody is returned where the zero Worker claims or beats.
var errNobody = errors.New("a worker without an id cannot hold a run: give it one that is unique for all time")

// New makes an empty store.
func New(o Options) *Store {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Store{now: o.Now, runs: make(map[string]*run), workers: make(map[string]store.Worker),
		flows: make(map[string][]byte), memory: make(map[key]entry), cache: make(map[string]answer)}
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, c store.Commit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for i, e := range c.Events {
		if want := c.ExpectSeq + int64(i) + 1; e.Seq != want {
			return fmt.Errorf("run %s: event %d of the commit carries seq %d where %d follows: nothing was written",
				c.Run.ID, i, e.Seq, want)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.expected(c)
	if err != nil {
		return err
	}
	changed, err := s.remember(c.Memory)
	if err != nil {
		return err
	}
	// Nothing fails from here on.
	s.runs[c.Run.ID] = r
	maps.Copy(s.memory, changed)
	r.append(c)
	for _, n := range c.Post {
		s.post(n)
	}
	return nil
}

// expected gives the run that a commit is for, a new one if the commit creates it.
func (s *Store) expected(c store.Commit) (*run, error) {
	r := s.runs[c.Run.ID]
	if c.ExpectSeq == 0 && len(c.Events) > 0 {
		if r != nil {
			return nil, store.ErrExists
		}
		row := store.Run{ID: c.Run.ID, Created: stored(c.Run.Created), Epoch: c.Epoch, Holder: store.Worker{ID: c.Run.Holder.ID}}
		return &run{row: row, blobs: make(map[string][]byte)}, nil
	}
	if r == nil || r.row.Seq != c.ExpectSeq || r.row.Epoch != c.Epoch {
		return nil, store.ErrConflict
	}
	return r, nil
}

// remember works out what memory writes change, in their order.
func (s *Store) remember(writes []store.MemoryWrite) (map[key]entry, error) {
	changed := make(map[key]entry)
	for _, m := range writes {
		k := key{m.Namespace, m.Key}
		have, ok := changed[k]
		if !ok {
			have = s.memory[k]
		}
		there := have.version
		if have.gone() {
			there = 0
		}
		if m.Expect != nil && *m.Expect != there {
			return nil, &store.MemoryConflict{Namespace: m.Namespace, Key: m.Key, Version: there, Value: bytes.Clone(have.value)}
		}
		if m.Value == nil {
			if !have.gone() {
				changed[k] = entry{version: have.version}
			}
			continue
		}
		changed[k] = entry{value: bytes.Clone(m.Value), version: have.version + 1, updated: stored(s.now())}
	}
	return changed, nil
}

// append writes what a commit says to its run.
func (r *run) append(c store.Commit) {
	if len(c.Events) > 0 {
		last := c.Events[len(c.Events)-1]
		row := c.Run
		row.Created, row.Holder, row.Epoch = r.row.Created, r.row.Holder, r.row.Epoch
		row.Seq, row.Updated = last.Seq, stored(last.At)
		row.Due = stored(row.Due)
		row.Usage = copyUsage(row.Usage)
		r.row = row
	}
	for _, e := range c.Events {
		e.At, e.Data = stored(e.At), copied(e.Data)
		r.events = append(r.events, e)
	}
	for _, b := range c.Blobs {
		if _, ok := r.blobs[b.Hash]; !ok {
			r.blobs[b.Hash] = copied(b.Data)
		}
	}
	r.notices = slices.DeleteFunc(r.notices, func(n store.Notice) bool { return slices.Contains(c.Consumed, n.ID) })
	if c.Checkpoint != nil {
		r.checkpoint = bytes.Clone(c.Checkpoint)
	}
	if c.Release {
		r.row.Holder = store.Worker{}
	}
}

// Claim implements store.Store. A claim that fails writes nothing.
func (s *Store) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if err := ctx.Err(); err != nil {
		return store.Claimed{}, err
	}
	if c.Worker.ID == "" {
		return store.Claimed{}, errNobody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[c.Run]
	if r == nil {
		return store.Claimed{}, fmt.Errorf("run %s: %w", c.Run, store.ErrNotFound)
	}
	if s.held(s.holder(r), c) {
		return store.Claimed{}, store.ErrBusy
	}
	c.Worker.Beat = stored(c.Now)
	s.workers[c.Worker.ID] = c.Worker
	r.row.Holder = store.Worker{ID: c.Worker.ID}
	r.row.Epoch++
	return store.Claimed{Run: s.shown(r), Checkpoint: bytes.Clone(r.checkpoint), Notices: copyNotices(r.notices)}, nil
}

// held says whether a live worker, or the claimant itself, holds the run.
func (s *Store) held(holder store.Worker, c store.Claim) bool {
	switch {
	case holder.ID == "":
		return false
	case holder.ID == c.Worker.ID:
		return true
	case stored(c.Now).Sub(holder.Beat) > c.Stale: // a heartbeat that is missing is of the zero time
		return false
	}
	return c.Gone == nil || !c.Gone(holder)
}

// Beat implements store.Store.
func (s *Store) Beat(ctx context.Context, w store.Worker) ([]store.Notice, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if w.ID == "" {
		return nil, errNobody
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Beat = stored(w.Beat)
	s.workers[w.ID] = w
	var got []store.Notice
	for _, r := range s.runs {
		if r.row.Holder.ID == w.ID {
			got = append(got, copyNotices(r.notices)...)
		}
	}
	slices.SortFunc(got, func(a, b store.Notice) int { return cmp.Compare(a.ID, b.ID) })
	return got, nil
}

// Post implements store.Store.
func (s *Store) Post(ctx context.Context, n store.Notice) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.post(n) {
		return fmt.Errorf("run %s: %w", n.Run, store.ErrNotFound)
	}
	return nil
}

// post leaves a notice if its run is there.
func (s *Store) post(n store.Notice) bool {
	r := s.runs[n.Run]
	if r == nil {
		return false
	}
	s.notice++
	n.ID, n.At, n.Data = s.notice, stored(n.At), copied(n.Data)
	r.notices = append(r.notices, n)
	return true
}

// Events implements store.Store.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]store.Event, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.runs[id]
	if r == nil || after >= int64(len(r.events)) {
		return nil, nil
	}
	events := r.events[max(after, 0):] // seq n stands at index n-1
	if limit > 0 && limit < len(events) {
		events = events[:limit]
	}
	got := slices.Clone(events)
	for i := range got {
		got[i].Data = copied(got[i].Data)
	}
	return got, nil
}

// Blob implements store.Store.
func (s *Store) Blob(ctx context.Context, id, hash string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if id == "" {
		if source, ok := s.flows[hash]; ok {
			return copied(source), nil
		}
		return nil, fmt.Errorf("flow source %s: %w", hash, store.ErrNotFound)
	}
	if r := s.runs[id]; r != nil {
		if data, ok := r.blobs[hash]; ok {
			return copied(data), nil
		}
	}
	return nil, fmt.Errorf("run %s: blob %s: %w", id, hash, store.ErrNotFound)
}

// PutFlow implements store.Store.
func (s *Store) PutFlow(ctx context.Context, hash string, source []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.flows[hash]; !ok {
		s.flows[hash] = copied(source)
	}
	return nil
}
