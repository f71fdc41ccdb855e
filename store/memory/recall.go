package memory

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"time"

	"flowctl/store"
)

// Remembered implements store.Memory.
func (s *Store) Remembered(ctx context.Context, namespace, name string) (store.MemoryEntry, error) {
	if err := ctx.Err(); err != nil {
		return store.MemoryEntry{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	k := key{namespace, name}
	e, ok := s.memory[k]
	if !ok || e.gone() {
		return store.MemoryEntry{}, fmt.Errorf("memory %s/%s: %w", namespace, name, store.ErrNotFound)
	}
	shown := e.shown(k)
	shown.Value = copied(shown.Value)
	return shown, nil
}

// shown is the entry as others see it. Its value is the store's own.
func (e entry) shown(k key) store.MemoryEntry {
	return store.MemoryEntry{Namespace: k.namespace, Key: k.key, Value: e.value, Version: e.version, Updated: e.updated}
}

// Memories implements store.Memory.
func (s *Store) Memories(ctx context.Context, f store.MemoryFilter) ([]store.MemoryEntry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	recall := store.NewRecall(f)
	for k, e := range s.memory {
		if !e.gone() {
			recall.Offer(e.shown(k))
		}
	}
	return recall.Entries(), nil
}

// Memorize implements store.Memory.
func (s *Store) Memorize(ctx context.Context, writes []store.MemoryWrite) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changed, err := s.remember(writes)
	if err != nil {
		return err
	}
	maps.Copy(s.memory, changed)
	return nil
}

// answer is a model's answer in the cache.
type answer struct {
	data  []byte
	until time.Time
}

// Cached implements store.Cache.
func (s *Store) Cached(ctx context.Context, name string, now time.Time) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.cache[name]
	if !ok || !a.until.After(stored(now)) {
		return nil, fmt.Errorf("cached answer %s: %w", name, store.ErrNotFound)
	}
	return copied(a.data), nil
}

// PutCached implements store.Cache.
func (s *Store) PutCached(ctx context.Context, name string, data []byte, now, until time.Time) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[name] = answer{bytes.Clone(data), stored(until)}
	for k, a := range s.cache {
		if !a.until.After(stored(now)) {
			delete(s.cache, k)
		}
	}
	return nil
}
