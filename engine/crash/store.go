package crash

import (
	"context"
	"errors"
	"sync"

	"flowctl/store"
)

// errDead is what a store gives to a process that is dead.
var errDead = errors.New("this process has crashed")

// errFault is what a store gives whose commit failed while its process lives on.
var errFault = errors.New("the store failed on purpose")

// mortal is the store as a process sees it whose commit number point.at goes wrong: it dies there, or is only told that
// the commit failed.
type mortal struct {
	store.Store
	point crashPoint

	mu      sync.Mutex
	commits int
	dead    bool
}

// Commit implements store.Store.
func (m *mortal) Commit(ctx context.Context, c store.Commit) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	m.commits++
	if m.commits != m.point.at {
		return m.Store.Commit(ctx, c)
	}
	if m.point.written {
		if err := m.Store.Commit(ctx, c); err != nil {
			return err
		}
	}
	if m.point.survives {
		return errFault
	}
	m.dead = true
	return errDead
}

// count gives how many commits the process made.
func (m *mortal) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.commits
}

// gone is errDead once the process is dead.
func (m *mortal) gone() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return errDead
	}
	return nil
}

// Claim implements store.Store.
func (m *mortal) Claim(ctx context.Context, c store.Claim) (store.Claimed, error) {
	if err := m.gone(); err != nil {
		return store.Claimed{}, err
	}
	return m.Store.Claim(ctx, c)
}

// Beat implements store.Store.
func (m *mortal) Beat(ctx context.Context, w store.Worker) ([]store.Notice, error) {
	if err := m.gone(); err != nil {
		return nil, err
	}
	return m.Store.Beat(ctx, w)
}

// Post implements store.Store.
func (m *mortal) Post(ctx context.Context, n store.Notice) error {
	if err := m.gone(); err != nil {
		return err
	}
	return m.Store.Post(ctx, n)
}

// Runs implements store.Store.
func (m *mortal) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if err := m.gone(); err != nil {
		return nil, err
	}
	return m.Store.Runs(ctx, f)
}

// Remembered implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (m *mortal) Remembered(ctx context.Context, namespace, key string) (store.MemoryEntry, error) {
	memory, err := m.memory()
	if err != nil {
		return store.MemoryEntry{}, err
	}
	return memory.Remembered(ctx, namespace, key)
}

// Memories implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (m *mortal) Memories(ctx context.Context, f store.MemoryFilter) ([]store.MemoryEntry, error) {
	memory, err := m.memory()
	if err != nil {
		return nil, err
	}
	return memory.Memories(ctx, f)
}

// Memorize implements store.Memory where the wrapped store does; elsewhere it returns errors.ErrUnsupported.
func (m *mortal) Memorize(ctx context.Context, writes []store.MemoryWrite) error {
	memory, err := m.memory()
	if err != nil {
		return err
	}
	return memory.Memorize(ctx, writes)
}

// memory gives the long-term memory of a process that lives.
func (m *mortal) memory() (store.Memory, error) {
	if err := m.gone(); err != nil {
		return nil, err
	}
	if memory, ok := m.Store.(store.Memory); ok {
		return memory, nil
	}
	return nil, errors.ErrUnsupported
}
