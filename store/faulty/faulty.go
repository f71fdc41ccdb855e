package faulty

import (
	"context"
	"errors"
	"sync"
	"time"

	"flowctl/store"
)

// ErrInjected is the error of a fault that names no other.
var ErrInjected = errors.New("a fault that was injected on purpose")

// A Fault is what happens to one commit. The zero Fault is none.
type Fault struct {
	// Before runs before the commit. When it returns an error, nothing is written and the commit returns that error. It may
	// block to delay the commit. Nil does nothing.
	Before func(ctx context.Context, c store.Commit) error
	// After runs when the commit has been written, durably. When it returns an error, the commit returns it although
	// everything was written. It may block, to delay the answer. Nil does nothing.
	After func(ctx context.Context, c store.Commit) error
}

// Fail writes nothing and returns err, ErrInjected if it is nil.
func Fail(err error) Fault {
	return Fault{Before: func(context.Context, store.Commit) error { return orInjected(err) }}
}

// Lose writes the commit and returns err all the same, ErrInjected if it is nil: the answer was lost on its way.
func Lose(err error) Fault {
	return Fault{After: func(context.Context, store.Commit) error { return orInjected(err) }}
}

// Hold delays a commit until release is closed, or gives a value, or the commit's context ends; nothing is written in the
// last case. It first sends to reached, so that a test knows that the commit stands there. A nil reached is left out.
func Hold(reached chan<- struct{}, release <-chan struct{}) Fault {
	return Fault{Before: func(ctx context.Context, _ store.Commit) error {
		if reached != nil {
			select {
			case reached <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
}

// A Plan chooses the fault of the n-th commit, counted from 1 over all runs in the order in which they were called. It is
// called for one commit at a time.
type Plan func(n int, c store.Commit) Fault

// At gives the n-th commit a fault and leaves the others alone.
func At(n int, f Fault) Plan {
	return func(i int, _ store.Commit) Fault {
		if i == n {
			return f
		}
		return Fault{}
	}
}

// From gives the n-th commit and all after it a fault.
func From(n int, f Fault) Plan {
	return func(i int, _ store.Commit) Fault {
		if i >= n {
			return f
		}
		return Fault{}
	}
}

// Store passes everything on to another store, with faults in Commit as its plan has them. It is safe for concurrent use.
type Store struct {
	store.Store

	mu      sync.Mutex
	plan    Plan
	commits int
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Memory = (*Store)(nil)
	_ store.Cache  = (*Store)(nil)
)

// New wraps inner, which the caller still owns. A nil plan has no faults.
func New(inner store.Store, plan Plan) *Store { return &Store{Store: inner, plan: plan} }

// SetPlan replaces the plan for the commits to come. They are counted on, not from 1 again.
func (s *Store) SetPlan(plan Plan) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.plan = plan
}

// Commits is the number of commits that were called so far, failed ones included.
func (s *Store) Commits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.commits
}

// Commit implements store.Store.
func (s *Store) Commit(ctx context.Context, c store.Commit) error {
	f := s.next(c)
	if f.Before != nil {
		if err := f.Before(ctx, c); err != nil {
			return err
		}
	}
	if err := s.Store.Commit(ctx, c); err != nil || f.After == nil {
		return err
	}
	return f.After(ctx, c)
}

func (s *Store) next(c store.Commit) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.commits++
	if s.plan == nil {
		return Fault{}
	}
	return s.plan(s.commits, c)
}

// Remembered implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (s *Store) Remembered(ctx context.Context, namespace, key string) (store.MemoryEntry, error) {
	if m, ok := s.Store.(store.Memory); ok {
		return m.Remembered(ctx, namespace, key)
	}
	return store.MemoryEntry{}, errors.ErrUnsupported
}

// Memories implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (s *Store) Memories(ctx context.Context, f store.MemoryFilter) ([]store.MemoryEntry, error) {
	if m, ok := s.Store.(store.Memory); ok {
		return m.Memories(ctx, f)
	}
	return nil, errors.ErrUnsupported
}

// Memorize implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported. It is no
// commit, so no plan has a fault for it.
func (s *Store) Memorize(ctx context.Context, writes []store.MemoryWrite) error {
	if m, ok := s.Store.(store.Memory); ok {
		return m.Memorize(ctx, writes)
	}
	return errors.ErrUnsupported
}

// Cached implements store.Cache where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (s *Store) Cached(ctx context.Context, key string, now time.Time) ([]byte, error) {
	if c, ok := s.Store.(store.Cache); ok {
		return c.Cached(ctx, key, now)
	}
	return nil, errors.ErrUnsupported
}

// PutCached implements store.Cache where the wrapped store does; elsewhere it returns errors.ErrUnsupported. It is no
// commit, so no plan has a fault for it.
func (s *Store) PutCached(ctx context.Context, key string, data []byte, now, until time.Time) error {
	if c, ok := s.Store.(store.Cache); ok {
		return c.PutCached(ctx, key, data, now, until)
	}
	return errors.ErrUnsupported
}

func orInjected(err error) error {
	if err == nil {
		return ErrInjected
	}
	return err
}
