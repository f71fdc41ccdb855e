package tool

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
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
}

// Outcome is how a call went. Result is set in every case.
type Outcome struct {
	Result   Result
	Duration time.Duration
	Ran      bool   // false: the tool was never started
	Stack    string // where the tool panicked, for the log; "" if it did not
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
	if ctx.Err() != nil {
		return notRun(p)
	}
	call.Args = machine.CloneValues(p.Values)
	inner, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	inner, end := context.WithTimeoutCause(inner, TimeoutOf(p.Tool.Spec), errTimeout)
	defer end()
	start := r.now()
	done := make(chan returned, 1)
	go invoke(inner, p.Tool, call, done)
	got, back := r.untilStopped(ctx, inner, p, done)
	if !back {
		stop(context.Cause(ctx))
		got, back = atLast(done)
	}
	out := Outcome{Ran: true, Duration: r.now().Sub(start), Result: got.result, Stack: got.stack}
	if !back || inner.Err() != nil && !got.certain {
		out.Result = stopped(p, inner)
	}
	return out
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

// returned is what came back from a tool.
type returned struct {
	result  Result
	certain bool // the tool knows how it ended, even if it was stopped
	stack   string
}

// invoke runs a tool and always sends exactly one answer, also when the tool panics or ends its goroutine. All that the
// tool's own types do (Error, MarshalJSON) happens here, where a panic is recovered.
func invoke(ctx context.Context, t Tool, call Call, done chan<- returned) {
	got := returned{result: brokeDown(t, "ended without an answer"), certain: true}
	defer func() {
		if p := recover(); p != nil {
			got.result = brokeDown(t, fmt.Sprintf("broke down: %v", p))
			got.stack = string(debug.Stack())
		}
		done <- got
	}()
	given, err := t.Run(ctx, call)
	if err != nil {
		got = returned{result: failure(err), certain: certain(err)}
		return
	}
	value, err := output(given)
	if err != nil {
		got.result = brokeDown(t, fmt.Sprintf("gave what cannot be stored: %v", err))
		return
	}
	got.result = Result{Status: OK, Value: value}
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
func (r Runner) untilStopped(ctx, inner context.Context, p Prepared, done <-chan returned) (returned, bool) {
	select {
	case got := <-done:
		return got, true
	case <-inner.Done():
		return returned{}, false
	case <-ctx.Done():
	}
	if p.Read() || r.Hurry != nil && r.Hurry(context.Cause(ctx)) {
		return returned{}, false
	}
	timer := time.NewTimer(r.grace())
	defer timer.Stop()
	select {
	case got := <-done:
		return got, true
	case <-inner.Done():
	case <-timer.C:
	}
	return returned{}, false
}

// atLast waits the moment that a tool gets which was told to stop.
func atLast(done <-chan returned) (returned, bool) {
	timer := time.NewTimer(settle)
	defer timer.Stop()
	select {
	case got := <-done:
		return got, true
	case <-timer.C:
		return returned{}, false
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
	result.Problem.Message = cutText(msg, maxMessage)
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
