package model_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/engine/model"
)

// slow takes a second for each request and counts how many are under way.
type slow struct{ now, most, all atomic.Int64 }

func (s *slow) Generate(ctx context.Context, _ model.Request) (model.Response, error) {
	n := s.now.Add(1)
	defer s.now.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.all.Add(1)
	time.Sleep(time.Second) // of the bubble's clock
	return model.Response{}, ctx.Err()
}

// all sends requests at once over two models that share a limiter and gives the time that they took together.
func all(t *testing.T, n int, l *model.Limiter, s *slow) time.Duration {
	t.Helper()
	start := time.Now()
	var wg sync.WaitGroup
	models := []model.Model{&model.Limit{Model: s, Limiter: l}, &model.Limit{Model: s, Limiter: l}}
	for i := range n {
		wg.Go(func() {
			if _, err := models[i%2].Generate(t.Context(), model.Request{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	return time.Since(start)
}

func TestLimit(t *testing.T) {
	for _, test := range []struct {
		name             string
		concurrency, rpm int64
		requests         int
		most             int64
		took             time.Duration
	}{
		{"none", 0, 0, 10, 10, time.Second},
		{"at once", 3, 0, 10, 3, 4 * time.Second},
		{"per minute", 0, 30, 4, 1, 7 * time.Second},
		{"per minute, overlapping", 0, 240, 9, 4, 3 * time.Second},
		{"both", 2, 120, 4, 2, 2500 * time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s slow
				took := all(t, test.requests, model.NewLimiter(test.concurrency, test.rpm, model.Clock{}), &s)
				// A request that begins in the moment in which another ends may be counted beside it.
				if most := s.most.Load(); most > test.most+1 || test.rpm == 0 && most != test.most || took.Round(time.Millisecond) != test.took {
					t.Errorf("at most %d at once, %v; want %d, %v", s.most.Load(), took, test.most, test.took)
				}
			})
		})
	}
}

// A request that is cancelled while it waits takes nothing from the others.
func TestLimitGivesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		l := &model.Limit{Model: &s, Limiter: model.NewLimiter(1, 6, model.Clock{})} // one each ten seconds
		why := errors.New("enough")
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		if _, err := l.Generate(ctx, model.Request{}); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(2 * time.Second)
			cancel(why)
		}()
		if _, err := l.Generate(ctx, model.Request{}); err != why { // waits for its minute's place
			t.Errorf("gave %v", err)
		}
		if _, err := l.Generate(ctx, model.Request{}); err != why { // is cancelled before it begins
			t.Errorf("gave %v", err)
		}
		if _, err := l.Generate(t.Context(), model.Request{}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start).Round(time.Millisecond); took != 11*time.Second || s.all.Load() != 2 {
			t.Errorf("%d requests in %v", s.all.Load(), took)
		}
	})
}

func TestLimitWaitsForASlotUntilCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slow
		l := &model.Limit{Model: &s, Limiter: model.NewLimiter(1, 0, model.Clock{})}
		go func() { _, _ = l.Generate(t.Context(), model.Request{}) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := l.Generate(ctx, model.Request{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("gave %v", err)
		}
		time.Sleep(time.Second)
	})
}
