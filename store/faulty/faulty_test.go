package faulty_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"flowctl/store"
	"flowctl/store/faulty"
	"flowctl/store/memory"
	"flowctl/store/storetest"
)

func TestConformsWithoutFaults(t *testing.T) {
	storetest.Run(t, func(*testing.T) store.Store { return faulty.New(memory.New(memory.Options{}), nil) })
}

func commit(seq int64) store.Commit {
	return store.Commit{
		Run:       store.Run{ID: "r", Status: store.Running, Created: time.UnixMilli(1)},
		ExpectSeq: seq - 1,
		Events:    []store.Event{{Seq: seq, At: time.UnixMilli(seq), Type: "x", Data: []byte(`{}`)}},
	}
}

func written(t *testing.T, s store.Store) int {
	t.Helper()
	events, err := s.Events(context.Background(), "r", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	return len(events)
}

func TestFailWritesNothing(t *testing.T) {
	ctx := context.Background()
	s := faulty.New(memory.New(memory.Options{}), faulty.At(2, faulty.Fail(nil)))
	if err := s.Commit(ctx, commit(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Commit(ctx, commit(2)); !errors.Is(err, faulty.ErrInjected) {
		t.Fatalf("the second commit gave %v", err)
	}
	if n := written(t, s); n != 1 {
		t.Fatalf("%d events are stored", n)
	}
	if err := s.Commit(ctx, commit(2)); err != nil || written(t, s) != 2 {
		t.Fatalf("the third commit gave %v", err)
	}
	if s.Commits() != 3 {
		t.Fatalf("%d commits were counted", s.Commits())
	}
}

func TestLoseWritesAndReturnsAnError(t *testing.T) {
	ctx, mine := context.Background(), errors.New("mine")
	s := faulty.New(memory.New(memory.Options{}), faulty.From(1, faulty.Lose(mine)))
	for seq := int64(1); seq <= 2; seq++ {
		if err := s.Commit(ctx, commit(seq)); !errors.Is(err, mine) {
			t.Fatalf("commit %d gave %v", seq, err)
		}
	}
	if n := written(t, s); n != 2 {
		t.Fatalf("%d events are stored", n)
	}
	// The store's own answer comes first.
	if err := s.Commit(ctx, commit(1)); !errors.Is(err, store.ErrExists) {
		t.Fatalf("a commit that the store refuses gave %v", err)
	}
	s.SetPlan(nil)
	if err := s.Commit(ctx, commit(3)); err != nil {
		t.Fatal(err)
	}
}

func TestHold(t *testing.T) {
	reached, release, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	s := faulty.New(memory.New(memory.Options{}), faulty.At(1, faulty.Hold(reached, release)))
	go func() { done <- s.Commit(context.Background(), commit(1)) }()
	<-reached
	if n := written(t, s); n != 0 {
		t.Fatalf("%d events are stored while the commit is held", n)
	}
	close(release)
	if err := <-done; err != nil || written(t, s) != 1 {
		t.Fatalf("the held commit gave %v", err)
	}
}

func TestHoldEndsWithItsContext(t *testing.T) {
	reached, done := make(chan struct{}), make(chan error, 1)
	s := faulty.New(memory.New(memory.Options{}), faulty.At(1, faulty.Hold(reached, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	go func() { done <- s.Commit(ctx, commit(1)) }()
	<-reached
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) || written(t, s) != 0 {
		t.Fatalf("the held commit gave %v", err)
	}
}

// plain is a store without further abilities.
type plain struct{ store.Store }

func TestAbilitiesAreThoseOfTheWrappedStore(t *testing.T) {
	ctx, now := context.Background(), time.UnixMilli(1)
	for _, one := range []struct {
		name  string
		inner store.Store
		want  error
	}{
		{"with", memory.New(memory.Options{}), nil},
		{"without", plain{memory.New(memory.Options{})}, errors.ErrUnsupported},
	} {
		// No plan has a fault for them, and they are no commits.
		s := faulty.New(one.inner, faulty.From(1, faulty.Fail(nil)))
		errs := map[string]error{"memorize": s.Memorize(ctx, []store.MemoryWrite{{Namespace: "n", Key: "k", Value: []byte(`1`)}}),
			"put answer": s.PutCached(ctx, "k", []byte("x"), now, now.Add(time.Hour))}
		_, errs["remembered"] = s.Remembered(ctx, "n", "k")
		_, errs["memories"] = s.Memories(ctx, store.MemoryFilter{})
		_, errs["answer"] = s.Cached(ctx, "k", now)
		for call, err := range errs {
			if !errors.Is(err, one.want) {
				t.Errorf("%s, %s the ability, gave %v", call, one.name, err)
			}
		}
		if s.Commits() != 0 {
			t.Errorf("%d commits were counted", s.Commits())
		}
	}
}
