package model

import (
	"context"
	"time"

	"golang.org/x/time/rate"
)

// Limiter bounds how many requests are under way at once and how many begin per minute. One Limiter serves all runs of a
// process that use a model. It is safe for concurrent use.
type Limiter struct {
	slots chan struct{} // one value for each request under way; nil: any number
	rate  *rate.Limiter // nil: any
	clock Clock
}

// NewLimiter makes a limiter: at most concurrency requests at once, and rpm per minute, evenly spread, because that is
// how endpoints count them. 0 is no bound.
func NewLimiter(concurrency, rpm int64, clock Clock) *Limiter {
	l := &Limiter{clock: clock}
	if concurrency > 0 {
		l.slots = make(chan struct{}, concurrency)
	}
	if rpm > 0 {
		l.rate = rate.NewLimiter(rate.Every(time.Minute/time.Duration(rpm)), 1)
	}
	return l
}

// Limit asks a model within a Limiter. A request that has to wait holds no slot of another, and waits as long as its
// context allows.
type Limit struct {
	Model   Model
	Limiter *Limiter // nil: no bounds
}

// Generate implements Model.
func (l *Limit) Generate(ctx context.Context, req Request) (Response, error) {
	leave, err := l.Limiter.enter(ctx)
	if err != nil {
		return Response{}, err
	}
	defer leave()
	return l.Model.Generate(ctx, req)
}

// enter waits for a slot and then for the minute's next place, which is given back when ctx ends before it comes.
func (l *Limiter) enter(ctx context.Context) (leave func(), err error) {
	leave = func() {}
	if l == nil {
		return leave, nil
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.slots != nil {
		select {
		case l.slots <- struct{}{}:
			leave = func() { <-l.slots }
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	if l.rate == nil {
		return leave, nil
	}
	now := l.clock.now()
	place := l.rate.ReserveN(now, 1)
	if wait := place.DelayFrom(now); wait > 0 && l.clock.sleep(ctx, wait) != nil {
		place.CancelAt(l.clock.now())
		leave()
		return nil, context.Cause(ctx)
	}
	return leave, nil
}
