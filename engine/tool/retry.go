package tool

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/cenkalti/backoff/v5"

	"flowctl/flows/machine"
)

// DefaultRetries is how often a call is made again where its tool does not say.
const DefaultRetries = 2

// How a Runner waits before it makes a call again.
const (
	firstWait   = 200 * time.Millisecond // doubled each time
	longestWait = 5 * time.Second
	spread      = 0.5 // a wait is between this part less and this part more
)

// RetriesOf gives how often a call of a tool may be made again: never, if it changes the world in a way that its key does
// not guard.
func RetriesOf(spec machine.ToolSpec) int {
	switch {
	case spec.Effect == machine.EffectWrite || spec.Effect == "":
		return 0
	case spec.Retry != nil:
		return int(*spec.Retry)
	}
	return DefaultRetries
}

// passing says whether the same call may go better later: the tool was out of order, or too slow.
func passing(p Prepared, out Outcome) bool {
	switch {
	case out.Result.Status == Unavailable:
		return true
	case p.Read():
		return out.Result.Problem.Kind == KindTimeout
	}
	return out.Result.Status == Unknown
}

// attempts makes a request unless its tool is left alone, and again while that may help. again is told of each failed try of
// a call, by its place in jobs, that another one follows; its error ends the tries, and is returned.
func (r Runner) attempts(ctx context.Context, jobs []Job, again againFunc) ([]Outcome, error) {
	var stopped error
	run := func() []Outcome {
		var outcomes []Outcome
		outcomes, stopped = r.tries(ctx, jobs, again)
		return outcomes
	}
	if r.Breakers == nil {
		outcomes := run()
		return outcomes, stopped
	}
	outcomes := r.Breakers.do(jobs, run)
	return outcomes, stopped
}

// againFunc is told of a failed try of the call k.
type againFunc func(k int, out Outcome, try int, wait time.Duration) error

func (r Runner) tries(ctx context.Context, jobs []Job, again againFunc) ([]Outcome, error) {
	waits := backoff.ExponentialBackOff{InitialInterval: firstWait, Multiplier: 2, MaxInterval: longestWait}
	outcomes := make([]Outcome, len(jobs))
	left := make([]int, len(jobs)) // places of the calls that have to be made
	for k := range left {
		left[k] = k
	}
	for try := 1; ; try++ {
		left = r.try(ctx, jobs, left, outcomes)
		if try > RetriesOf(jobs[0].Prepared.Tool.Spec) || len(left) == 0 {
			return outcomes, nil
		}
		if ctx.Err() != nil {
			return cutShort(outcomes, left), nil
		}
		wait := time.Duration(float64(waits.NextBackOff()) * (1 - spread + 2*spread*r.random()))
		for _, k := range left {
			if again == nil {
				break
			}
			if err := again(k, outcomes[k], try, wait); err != nil {
				return outcomes, err
			}
		}
		if r.sleep(ctx, wait) != nil {
			return cutShort(outcomes, left), nil
		}
	}
}

// cutShort marks calls that would have been made again.
func cutShort(outcomes []Outcome, left []int) []Outcome {
	for _, k := range left {
		outcomes[k].CutShort = true
	}
	return outcomes
}

// try makes the calls at the given places in one request, and gives the places of those that may go better later.
func (r Runner) try(ctx context.Context, jobs []Job, places []int, outcomes []Outcome) (left []int) {
	request := make([]Job, len(places))
	for i, k := range places {
		request[i] = jobs[k]
	}
	for i, out := range r.request(ctx, request) {
		k := places[i]
		if outcomes[k].Result.Status == Unknown && out.Result.Status == Unavailable {
			out.Result.Status = Unknown // what an earlier try has done nobody knows still
		}
		outcomes[k] = out
		if passing(jobs[k].Prepared, out) {
			left = append(left, k)
		}
	}
	return left
}

func (r Runner) random() float64 {
	if r.Random != nil {
		return r.Random()
	}
	return rand.Float64()
}

func (r Runner) sleep(ctx context.Context, d time.Duration) error {
	if r.Sleep != nil {
		return r.Sleep(ctx, d)
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
