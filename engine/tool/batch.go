package tool

import (
	"context"
	"sync"
	"time"
)

// MaxRequest is how many calls of a tool go out in one request at most (Tool.Batch).
const MaxRequest = 50

// Job is one call of a batch.
type Job struct {
	Prepared Prepared
	Call     Call
	Resource string // what a call that is no read changes, "" where nobody knows
	Breaker  string // names the tool over all flows, for Runner.Breakers
}

// Hooks stand around the calls of a batch. Either may be nil. They are called from the goroutine that runs the job, so
// those of parallel reads may come at once.
type Hooks struct {
	// Before is called before a call starts. Its error keeps the call from starting, and all calls of its request.
	Before func(i int, p Prepared) error
	// Again is called after a try that another one follows, before the wait. Its error ends the call as After's does.
	Again func(i int, out Outcome, try int, wait time.Duration) error
	// After is called with how the call went. It is not called for a job that never came to its turn.
	After func(i int, out Outcome) error
}

// Batch runs the calls of one turn and gives one outcome per job, in order. Reads that follow each other run at once, at
// most Runner.Parallel of them, and so do other calls that follow each other and change different resources; any other call
// waits for all that stand before it, and what stands behind it waits for it. So a read sees every write that was asked for
// before it, and none that was asked for after it.
//
// Reads of one tool that could run at once go out as one request where the tool has a Batch, at most MaxRequest of them. The
// request counts as one for Runner.Parallel, for the tool's timeout, for its tries and for Runner.Breakers; each of its calls
// has its own outcome and its own hooks, in the order of the jobs.
//
// A read or idempotent call whose tool is out of order, or too slow, is made again (machine.ToolSpec.Retry), after waits that
// double. Of a request only the calls are made again for which that may help.
//
// What a call does to itself (an error, a panic, a timeout) touches none of its siblings, but that a request which breaks
// down breaks down for all of its calls. The error of a hook stops the batch: no further call starts, those under way are
// awaited, and the first error in the order of the jobs is returned. When ctx ends, no further call starts, and where jobs
// are left its cause is returned. The outcomes of jobs that were never started have Ran false. No goroutine outlives Batch
// but that of a tool that ignores its context.
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
	for i, job := range jobs {
		if last := len(groups) - 1; last >= 0 && joins(jobs, groups[last], job) {
			groups[last] = append(groups[last], i)
			continue
		}
		groups = append(groups, []int{i})
	}
	return groups
}

// joins says whether a job may run beside all of a group.
func joins(jobs []Job, group []int, job Job) bool {
	for _, i := range group {
		other := jobs[i]
		switch {
		case job.Prepared.Read() != other.Prepared.Read():
			return false
		case !job.Prepared.Read() && (job.Resource == "" || other.Resource == "" || job.Resource == other.Resource):
			return false
		}
	}
	return true
}

// requests puts the jobs of a group into requests: reads of one tool that can be made in one go, and every other job for
// itself. Requests stand in the order of their first jobs.
func requests(jobs []Job, group []int) [][]int {
	var all [][]int
	open := map[string]int{} // by the name of a tool: the request that takes more of its calls
	for _, i := range group {
		t := jobs[i].Prepared.Tool
		at, ok := open[t.Spec.Name]
		if ok && len(all[at]) < MaxRequest {
			all[at] = append(all[at], i)
			continue
		}
		if t.Batch != nil && jobs[i].Prepared.Read() {
			open[t.Spec.Name] = len(all)
		}
		all = append(all, []int{i})
	}
	return all
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
	if all := requests(b.jobs, group); len(all) == 1 { // in this goroutine, so that a panic in a hook reaches the caller
		b.request(ctx, all[0])
	} else {
		b.atOnce(ctx, all)
	}
	for _, i := range group {
		if b.errs[i] != nil {
			return b.errs[i]
		}
	}
	return nil
}

// atOnce makes requests beside each other, no more of them than the runner allows.
func (b *batch) atOnce(ctx context.Context, all [][]int) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, b.runner.parallel())
	for _, request := range all {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			b.request(ctx, request)
		})
	}
	wg.Wait()
}

// request makes the calls of one request, in most cases one call.
func (b *batch) request(ctx context.Context, request []int) {
	if b.isStopped() {
		return
	}
	if ctx.Err() != nil {
		b.stop(request[0], context.Cause(ctx))
		return
	}
	jobs := make([]Job, len(request))
	for k, i := range request {
		jobs[k] = b.jobs[i]
		if b.hooks.Before == nil {
			continue
		}
		if err := b.hooks.Before(i, jobs[k].Prepared); err != nil {
			b.stop(i, err)
			return
		}
	}
	outcomes, err := b.runner.attempts(ctx, jobs, b.again(request))
	for k, i := range request {
		b.outcomes[i] = outcomes[k]
	}
	if err != nil {
		b.stop(request[0], err)
		return
	}
	for _, i := range request {
		if b.hooks.After == nil {
			continue
		}
		if err := b.hooks.After(i, b.outcomes[i]); err != nil {
			b.stop(i, err)
		}
	}
}

// again gives the hook for the failed tries of a request's calls, by their place in the request.
func (b *batch) again(request []int) func(k int, out Outcome, try int, wait time.Duration) error {
	if b.hooks.Again == nil {
		return nil
	}
	return func(k int, out Outcome, try int, wait time.Duration) error {
		return b.hooks.Again(request[k], out, try, wait)
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
