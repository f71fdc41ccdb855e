package model

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// How long a model that failed is left alone where its endpoint does not say: one that was tried in vain, and one that will
// not work before somebody sees to it (a wrong key, an empty account).
const (
	shortRest = 30 * time.Second
	longRest  = 5 * time.Minute
)

// Rest leaves a model alone that has failed, for as long as its endpoint asked for, so that those who have another one to go
// to are not held up each time anew. Its error is then the one that it failed with. It is safe for concurrent use.
type Rest struct {
	Model Model
	Clock Clock

	mu           sync.Mutex
	since, until time.Time // when it failed last, and how long it rests
	err          *Error
}

// Generate implements Model.
func (r *Rest) Generate(ctx context.Context, req Request) (Response, error) {
	if err := r.resting(); err != nil {
		return Response{}, err
	}
	began := r.Clock.now()
	resp, err := r.Model.Generate(ctx, req)
	r.mu.Lock()
	defer r.mu.Unlock()
	var failed *Error
	switch {
	case err == nil && r.since.Before(began):
		r.err = nil
	case err == nil || ctx.Err() != nil || !errors.As(err, &failed):
	case failed.Class != Malformed && goesOn(failed.Class): // one answer that is none says little of the next
		r.err, r.since = failed, r.Clock.now()
		r.until = r.end(failed)
	}
	return resp, err
}

// resting gives the error of a model that is left alone.
func (r *Rest) resting() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err == nil || !r.Clock.now().Before(r.until) {
		return nil
	}
	resting := *r.err
	resting.Attempts, resting.Resting = 1, true
	resting.Err = fmt.Errorf("it is left alone until %s, since it failed: %w", r.until.UTC().Format(time.RFC3339), r.err.Err)
	return &resting
}

func (r *Rest) end(failed *Error) time.Time {
	now := r.Clock.now()
	switch {
	case failed.Until.After(now):
		return failed.Until
	case failed.Class == Authentication || failed.Class == Quota:
		return now.Add(longRest)
	}
	return now.Add(max(shortRest, failed.RetryAfter))
}
