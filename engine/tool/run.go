package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"flowctl/flows/machine"
)

// How long a call may take where its tool does not say.
const (
	DefaultReadTimeout = 5 * time.Second
	DefaultTimeout     = 10 * time.Second
)

const (
	defaultGrace    = 5 * time.Second
	defaultParallel = 8

	// settle is what a tool that was told to stop gets to come back and say how far it got.
	settle = 100 * time.Millisecond
)

// The kinds of the problem of a call that was stopped.
const (
	KindTimeout   = "timeout"
	KindCancelled = "cancelled"
)

// errTimeout is the cause of a context that ended because the call's own time was up.
var errTimeout = errors.New("the call's time is up")

// Runner runs prepared calls. The zero value is ready; a Runner is safe for concurrent use.
type Runner struct {
	// Now is the clock for durations. Defaults to time.Now.
	Now func() time.Time
	// Parallel is how many reads of a batch run at once. Defaults to 8.
	Parallel int
	// Grace is how long a call that changes the world may go on after ctx has ended, as if nothing had happened, so that
	// it can come to its own end. Only then it is told to stop. Defaults to 5 s.
	Grace time.Duration
	// Hurry says of the cause of ctx's end that there is no grace. Nil: there always is.
	Hurry func(cause error) bool
	// Breakers leave tools alone that are out of order. Nil: every call is made.
	Breakers *Breakers
	// Sleep waits before a call is made again; an error when ctx ends before. Random, from 0 up to 1, spreads the waits. Nil:
	// a timer, and math/rand.
	Sleep  func(ctx context.Context, d time.Duration) error
	Random func() float64
}

// Outcome is how a call went. Result is set in every case.
type Outcome struct {
	Result   Result
	Duration time.Duration
	Ran      bool   // false: the tool was never started
	Stack    string // where the tool panicked, for the log; "" if it did not
	CutShort bool   // it would have been made again, and its caller's end came before
}

// Run runs one call and waits for its end, at most for the tool's timeout and a moment more. call.Args is set from p.
//
// A tool that comes back after its time was up is believed if it says for sure how it ended: with a value, or with an
// *Error that wraps no context error. Otherwise a read that was stopped is Failed (kind timeout or cancelled), and a
// write or idempotent call is Unknown, since it had started. A call whose context had ended before is Refused.
//
// A tool that ignores its context is left behind: its goroutine goes on until the tool returns, and what it returns then
// is lost.
func (r Runner) Run(ctx context.Context, p Prepared, call Call) Outcome {
	return r.request(ctx, []Job{{Prepared: p, Call: call}})[0]
}

// request makes calls of one tool in one go, each as Run says.
func (r Runner) request(ctx context.Context, jobs []Job) []Outcome {
	outcomes := make([]Outcome, len(jobs))
	if ctx.Err() != nil {
		for i, job := range jobs {
			outcomes[i] = notRun(job.Prepared)
		}
		return outcomes
	}
	p, calls := jobs[0].Prepared, make([]Call, len(jobs))
	for i, job := range jobs {
		calls[i] = job.Call
		calls[i].Args = machine.CloneValues(job.Prepared.Values)
		calls[i].Memory = job.Call.Memory.own()
	}
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	inner, end := context.WithTimeoutCause(inner, TimeoutOf(p.Tool.Spec), errTimeout)
	defer end()
	start := r.now()
	done := make(chan []returned, 1)
	go invoke(inner, p.Tool, calls, done)
	got, back := r.untilStopped(ctx, inner, p, done)
	if !back {
		stop(context.Cause(ctx))
		got, back = atLast(done)
	}
	took := r.now().Sub(start)
	for i := range outcomes {
		outcomes[i] = Outcome{Ran: true, Duration: took}
		if !back || inner.Err() != nil && !got[i].certain {
			outcomes[i].Result = stopped(p, inner)
		} else {
			outcomes[i].Result = got[i].result
		}
		if back {
			outcomes[i].Stack = got[i].stack
		}
		if outcomes[i].Result.Status == OK {
			jobs[i].Call.Memory.take(calls[i].Memory)
		}
	}
	return outcomes
}

// TimeoutOf gives the time that one call of a tool may take.
func TimeoutOf(spec machine.ToolSpec) time.Duration {
	switch {
	case spec.Timeout > 0:
		return spec.Timeout
	case spec.Effect == machine.EffectRead:
		return DefaultReadTimeout
	}
	return DefaultTimeout
}

// returned is what came back from a tool for one call.
type returned struct {
	result  Result
	certain bool // the tool knows how it ended, even if it was stopped
	stack   string
}

// invoke makes calls of a tool and always sends exactly one answer for each, also when the tool panics or ends its
// goroutine. All that the tool's own types do (Error, MarshalJSON) happens here, where a panic is recovered.
func invoke(ctx context.Context, t Tool, calls []Call, done chan<- []returned) {
	got := same(len(calls), returned{result: brokeDown(t, "ended without an answer"), certain: true})
	defer func() {
		if p := recover(); p != nil {
			got = same(len(calls), panicked(t, p))
		}
		done <- got
	}()
	results := make([]BatchResult, 1)
	if len(calls) == 1 && t.Run != nil {
		results[0].Value, results[0].Err = t.Run(ctx, calls[0])
	} else {
		var err error
		if results, err = t.Batch(ctx, calls); err != nil {
			results = slices.Repeat([]BatchResult{{Err: err}}, len(calls))
		}
	}
	if len(results) != len(calls) {
		got = same(len(calls), returned{certain: true,
			result: brokeDown(t, fmt.Sprintf("gave %d results for %d calls", len(results), len(calls)))})
		return
	}
	all := make([]returned, len(calls)) // it is what is sent only when all are read
	for i, one := range results {
		all[i] = answer(t, one)
	}
	got = all
}

// same gives n calls the same answer.
func same(n int, one returned) []returned { return slices.Repeat([]returned{one}, n) }

// answer makes the answer to one call of what a tool gave. What breaks down in it touches no other call.
func answer(t Tool, given BatchResult) (got returned) {
	defer func() {
		if p := recover(); p != nil {
			got = panicked(t, p)
		}
	}()
	if given.Err != nil {
		return returned{result: failure(given.Err), certain: certain(given.Err)}
	}
	value, bad := output(given.Value)
	if bad != nil {
		return returned{result: brokeDown(t, fmt.Sprintf("gave what cannot be stored: %v", bad)), certain: true}
	}
	return returned{result: Result{Status: OK, Value: value}, certain: true}
}

// panicked is the answer to a call that panicked with p.
func panicked(t Tool, p any) returned {
	return returned{result: brokeDown(t, fmt.Sprintf("broke down: %v", p)), certain: true, stack: string(debug.Stack())}
}

// brokeDown is the result of a tool that did not come to an answer by its own fault. A read has failed; what else it may
// have done to the world nobody knows.
func brokeDown(t Tool, how string) Result {
	r := failure(fmt.Errorf("%s %s", t.Spec.Name, how))
	if t.Spec.Effect != machine.EffectRead {
		r.Status, r.Problem.Kind = Unknown, string(Unknown)
	}
	return r
}

// untilStopped waits for the tool until its time is up or it has to stop because ctx has ended. The bool is false when it
// has not come back.
func (r Runner) untilStopped(ctx, inner context.Context, p Prepared, done <-chan []returned) ([]returned, bool) {
	select {
	case got := <-done:
		return got, true
	case <-inner.Done():
		return nil, false
	case <-ctx.Done():
	}
	if p.Read() || r.Hurry != nil && r.Hurry(context.Cause(ctx)) {
		return nil, false
	}
	timer := time.NewTimer(r.grace())
	defer timer.Stop()
	select {
	case got := <-done:
		return got, true
	case <-inner.Done():
	case <-timer.C:
	}
	return nil, false
}

// atLast waits the moment that a tool gets which was told to stop.
func atLast(done <-chan []returned) ([]returned, bool) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case got := <-done:
		return got, true
	case <-timer.C:
		return nil, false
	}
}

func timedOut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errTimeout) }

// certain says whether a tool that was stopped knows how it ended.
func certain(err error) bool {
	var e *Error
	return errors.As(err, &e) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

// Undone is the error of a tool that was stopped by its context and knows that it has changed nothing, so that its call is
// not in doubt.
func Undone(ctx context.Context, what string) error {
	if timedOut(ctx) || errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return Failf(KindTimeout, "%s timed out, nothing was changed", what)
	}
	return Failf(KindCancelled, "%s was cancelled, nothing was changed", what)
}

// stopped is the result of a call that did not come to its end.
func stopped(p Prepared, ctx context.Context) Result {
	name := p.Tool.Spec.Name
	kind, msg := KindCancelled, name+" was cancelled"
	if timedOut(ctx) {
		kind, msg = KindTimeout, fmt.Sprintf("%s timed out after %s", name, TimeoutOf(p.Tool.Spec))
	}
	if p.Read() {
		return Result{Status: Failed, Problem: machine.Problem{Kind: kind, Message: msg}}
	}
	return Result{Status: Unknown, Problem: machine.Problem{Kind: string(Unknown), Message: msg + ", outcome unknown"}}
}

// notRun is the outcome of a call that was never started.
func notRun(p Prepared) Outcome {
	return Outcome{Result: Result{Status: Refused, Problem: machine.Problem{
		Kind: KindCancelled, Message: p.Tool.Spec.Name + " was not run: the turn was stopped before",
	}}}
}

// failure makes a result of a tool's error.
func failure(err error) Result {
	result := Result{Status: Failed}
	var e *Error
	if errors.As(err, &e) {
		result.Problem.Kind = e.Kind
		switch e.Status {
		case Refused, Unavailable, Unknown:
			result.Status = e.Status
		}
		if v, bad := output(e.Value); bad == nil {
			result.Value = v
		}
	}
	if result.Problem.Kind == "" {
		result.Problem.Kind = string(result.Status)
	}
	msg := strings.ToValidUTF8(err.Error(), "\uFFFD")
	if strings.TrimSpace(msg) == "" {
		msg = "the tool gave no reason"
	}
	result.Problem.Message = CutText(msg, maxMessage)
	return result
}

func (r Runner) now() time.Time {
	if r.Now != nil {
		return r.Now()
	}
	return time.Now()
}

func (r Runner) grace() time.Duration {
	if r.Grace > 0 {
		return r.Grace
	}
	return defaultGrace
}

func (r Runner) parallel() int {
	if r.Parallel > 0 {
		return r.Parallel
	}
	return defaultParallel
}
