package model

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"
)

// How Retry waits.
const (
	// DefaultAttempts is how often a request is tried at most.
	DefaultAttempts = 5
	// LongestWait is the longest wait that an endpoint may ask for. If it asks for more, nobody waits: the error says
	// until when.
	LongestWait = 60 * time.Second

	firstWait  = 500 * time.Millisecond // before the second attempt; doubled before each further one
	slowestOwn = 30 * time.Second       // longest wait that no endpoint asked for
	spread     = 0.5                    // a wait is between this part less and this part more
)

// Clock is the time of a wrapper. The zero value is the real one; tests put their own there.
type Clock struct {
	Now    func() time.Time                                 // nil: time.Now
	Sleep  func(ctx context.Context, d time.Duration) error // waits; an error when ctx ends before. nil: a timer
	Random func() float64                                   // from 0 up to 1, to spread waits; nil: math/rand
}

func (c Clock) now() time.Time {
	if c.Now != nil {
		return c.Now()
	}
	return time.Now()
}

func (c Clock) random() float64 {
	if c.Random != nil {
		return c.Random()
	}
	return rand.Float64()
}

func (c Clock) sleep(ctx context.Context, d time.Duration) error {
	if c.Sleep != nil {
		return c.Sleep(ctx, d)
	}
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Retry asks a model again when it failed in a way that can pass (Error.Passing), after waits that double, are spread at
// random, and are at least as long as the endpoint asks for. An error that a Retry further inside has given up on is not
// tried again. It is safe for concurrent use if its model is.
type Retry struct {
	Model    Model
	Attempts int64 // how often a request is tried at most; 0: DefaultAttempts
	AtOnce   bool  // without waits, for a model that is no endpoint
	Clock    Clock
}

// Generate implements Model. The error of the last attempt is returned; its Attempts say how many there were.
func (r *Retry) Generate(ctx context.Context, req Request) (Response, error) {
	attempts := r.Attempts
	if attempts == 0 {
		attempts = DefaultAttempts
	}
	waits := backoff.ExponentialBackOff{InitialInterval: firstWait, Multiplier: 2, MaxInterval: slowestOwn}
	for n := int64(1); ; n++ {
		req.Origin.Attempt = n
		resp, err := r.Model.Generate(ctx, req)
		if err == nil {
			return resp, nil
		}
		if ctx.Err() != nil {
			return Response{}, context.Cause(ctx)
		}
		var failed *Error
		if !errors.As(err, &failed) || failed.Attempts > 0 {
			return Response{}, err
		}
		switch {
		case failed.Passing() && failed.RetryAfter > LongestWait:
			return Response{}, r.tooLong(failed, n)
		case !failed.Passing() || n == attempts:
			return Response{}, exhausted(failed, n)
		}
		wait := r.wait(waits.NextBackOff(), failed.RetryAfter)
		if req.Failed != nil {
			req.Failed(Attempt{Number: n, Err: failed, Wait: wait})
		}
		if r.Clock.sleep(ctx, wait) != nil {
			return Response{}, context.Cause(ctx)
		}
	}
}

// wait spreads a wait. Where the endpoint asked for one, the wait is a little longer than that, so that not all who were
// turned away come back at the same moment.
func (r *Retry) wait(own, asked time.Duration) time.Duration {
	if r.AtOnce {
		return 0
	}
	random := r.Clock.random()
	spreadOwn := time.Duration(float64(own) * (1 - spread + 2*spread*random))
	spreadAsked := time.Duration(0)
	if asked > 0 {
		spreadAsked = asked + time.Duration(random*float64(firstWait))
	}
	return max(spreadOwn, spreadAsked)
}

func (r *Retry) tooLong(failed *Error, n int64) *Error {
	out := *failed
	out.Attempts = n
	out.Until = r.Clock.now().Add(failed.RetryAfter)
	out.Err = fmt.Errorf("%w; it wants to be left alone until %s, which is longer than flowctl waits (%v): go on after that",
		failed.Err, out.Until.UTC().Format(time.RFC3339), LongestWait)
	return &out
}

// exhausted marks an error as tried n times. It is a copy: the model may give the same error to others.
func exhausted(failed *Error, n int64) *Error {
	out := *failed
	out.Attempts = n
	if n > 1 {
		out.Err = fmt.Errorf("%w (tried %d times)", failed.Err, n)
	}
	return &out
}
