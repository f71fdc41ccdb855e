package tool

import (
	"context"
	"sync"
)

// Job is one call of a batch.
type Job struct {
	Prepared Prepared
	Call     Call
}

// Hooks stand around the calls of a batch. Either may be nil. They are called from the goroutine that runs the job, so
// those of parallel reads may come at once.
type Hooks struct {
	// Before is called before a call starts. Its error keeps the call from starting.
	Before func(i int, p Prepared) error
	// After is called with how the call went. It is not called for a job that never came to its turn.
	After func(i int, out Outcome) error
}

// Batch runs the calls of one turn and gives one outcome per job, in order. Reads that follow each other run at once, at
// most Runner.Parallel of them; any other call waits for all that stand before it, and what stands behind it waits for
// it. So a read sees every write that was asked for before it, and none that was asked for after it.
//
// What a call does to itself (an error, a panic, a timeout) touches none of its siblings. The error of a hook stops the
// batch: no further call starts, those under way are awaited, and the first error in the order of the jobs is returned.
// When ctx ends, no further call starts, and where jobs are left its cause is returned. The outcomes of jobs that were
// never started have Ran false. No goroutine outlives Batch but that of a tool that ignores its context.
func (r Runner) Batch(ctx context.Context, jobs []Job, hooks Hooks) ([]Outcome, error) {
	b := batch{runner: r, jobs: jobs, hooks: hooks, outcomes: make([]Outcome, len(jobs)), errs: make([]error, len(jobs))}
	for i, job := range jobs {
		b.outcomes[i] = notRun(job.Prepared)
	}
	for _, group := range plan(jobs) {
		if err := b.group(ctx, group); err != nil {
			return b.outcomes, err
		}
	}
	return b.outcomes, nil
}

// plan puts the jobs into groups that run one after another; the jobs of a group may run at once.
func plan(jobs []Job) [][]int {
	var groups [][]int
	together := false // the last group takes more
	for i, job := range jobs {
		alone := !job.Prepared.Read()
		if alone || !together {
			groups = append(groups, nil)
		}
		last := len(groups) - 1
		groups[last] = append(groups[last], i)
		together = !alone
	}
	return groups
}

// batch is one Batch under way. Each job's goroutine writes to its own place in outcomes and errs.
type batch struct {
	runner   Runner
	jobs     []Job
	hooks    Hooks
	outcomes []Outcome
	errs     []error

	mu      sync.Mutex
	stopped bool
}

// group runs jobs and waits for them.
func (b *batch) group(ctx context.Context, group []int) error {
	if len(group) == 1 { // in this goroutine, so that a panic in a hook reaches the caller
		b.one(ctx, group[0])
		return b.errs[group[0]]
	}
	var wg sync.WaitGroup
	slots := make(chan struct{}, b.runner.parallel())
	for _, i := range group {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			b.one(ctx, i)
		})
	}
	wg.Wait()
	for _, i := range group {
		if b.errs[i] != nil {
			return b.errs[i]
		}
	}
	return nil
}

func (b *batch) one(ctx context.Context, i int) {
	if b.isStopped() {
		return
	}
	if ctx.Err() != nil {
		b.stop(i, context.Cause(ctx))
		return
	}
	job := b.jobs[i]
	if b.hooks.Before != nil {
		if err := b.hooks.Before(i, job.Prepared); err != nil {
			b.stop(i, err)
			return
		}
	}
	b.outcomes[i] = b.runner.Run(ctx, job.Prepared, job.Call)
	if b.hooks.After != nil {
		if err := b.hooks.After(i, b.outcomes[i]); err != nil {
			b.stop(i, err)
		}
	}
}

func (b *batch) isStopped() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.stopped
}

func (b *batch) stop(i int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stopped = true
	b.errs[i] = err
}
