package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// The limits of a run, as `limits:` and --raise name them.
const (
	limitSteps      = "steps"
	limitModelCalls = "model_calls"
	limitToolCalls  = "tool_calls"
	limitTokens     = "tokens"
	limitCost       = "cost"
	limitTime       = "time"
)

// LimitNames lists the limits that can be raised.
func LimitNames() []string {
	return []string{limitSteps, limitModelCalls, limitToolCalls, limitTokens, limitCost, limitTime}
}

// limit gives a counted limit of the run with what it was raised by; 0 is none.
func (s *session) limit(name string) int64 {
	l := s.m.Limits
	var limit int64
	switch name {
	case limitSteps:
		limit = l.Steps
	case limitModelCalls:
		limit = l.ModelCalls
	case limitToolCalls:
		limit = l.ToolCalls
	case limitTokens:
		limit = l.Tokens
	}
	if limit == 0 {
		return 0
	}
	return limit + int64(s.head.Spent.Raised[name])
}

// timeAllowed gives the run's limit of active time, 0 for none.
func (s *session) timeAllowed() time.Duration {
	if s.m.Limits.Time == 0 {
		return 0
	}
	raised := s.head.Spent.Raised[limitTime] + s.raising(limitTime)
	return time.Duration(s.m.Limits.Time) + time.Duration(raised*float64(time.Millisecond))
}

func limitHalt(run, name, limit string) *halt {
	more := "N"
	if name == limitTime {
		more = "10m"
	}
	return stopped(history.CodeLimit, "raise it and go on with: flowctl resume "+run+" --raise "+name+"="+more,
		"the run reached its limit of %s: %s", name, limit)
}

// check kills the step if it may not go on: the run was cancelled, the process is asked to stop, time is up. It is
// called before every live effect and before the transition.
func (st *Step) check() error {
	if err := st.s.takeRaises(); err != nil {
		return st.failed(err)
	}
	cause := context.Cause(st.ctx)
	switch {
	case errors.Is(cause, errCancelled):
		return st.kill(&halt{kind: haltCancelled})
	case cause != nil && !errors.Is(cause, errTimeUp):
		return st.kill(&halt{kind: haltInterrupted})
	}
	if left, by := st.timeLeft(); by != nobodys && (left <= 0 || cause != nil) {
		return st.kill(st.timeUp(by))
	}
	return nil
}

var errTimeUp = errors.New("the time of the step or the run is up")

// watchTime ends the step's context when the active time of the step or the run is up. A limit that was raised in the
// meantime gives it more. done ends the watch.
func (st *Step) watchTime(end context.CancelCauseFunc) (done func()) {
	left, by := st.timeLeft()
	switch {
	case by == nobodys:
		return func() {}
	case left <= 0:
		end(errTimeUp)
		return func() {}
	}
	var mu sync.Mutex // the timer may fire before it is assigned, or while the watch ends
	mu.Lock()
	defer mu.Unlock()
	var timer *time.Timer
	over := false
	timer = time.AfterFunc(left, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		st.s.mu.Lock()
		left, _ := st.timeLeft()
		st.s.mu.Unlock()
		if left > 0 {
			timer.Reset(left)
			return
		}
		end(errTimeUp)
	})
	return func() {
		timer.Stop()
		mu.Lock()
		over = true
		mu.Unlock()
	}
}

// timeLeft gives the active time that is left to the step, and by whose limit: its state's or the run's; nobodys where
// neither has one.
func (st *Step) timeLeft() (time.Duration, timeOwner) {
	elapsed := st.s.head.Elapsed(st.s.eng.now())
	var left time.Duration
	by := nobodys
	if limit := time.Duration(st.state.Limits.Time); limit > 0 {
		left, by = limit-(elapsed-st.s.head.Spent.StepActive), theStates
	}
	if limit := st.s.timeAllowed(); limit > 0 && (by == nobodys || limit-elapsed < left) {
		left, by = limit-elapsed, theRuns
	}
	return left, by
}

// timeOwner says whose time it is.
type timeOwner int

const (
	nobodys timeOwner = iota
	theStates
	theRuns
)

// timeUp is the halt of a step whose time is up.
func (st *Step) timeUp(by timeOwner) *halt {
	if by == theRuns {
		return limitHalt(st.s.id, limitTime, st.s.timeAllowed().String())
	}
	return &halt{kind: haltMoved, outcome: machine.Timeout, problem: machine.Problem{Kind: "timeout",
		Message: fmt.Sprintf("state %s took longer than %s", st.state.Name, st.state.Limits.Time)}}
}

// stepsLeft gives the halt of a run that has used up its steps.
func (st *Step) stepsLeft() *halt {
	if limit := st.s.limit(limitSteps); limit > 0 && st.s.head.Spent.Usage.Steps >= limit {
		return limitHalt(st.s.id, limitSteps, strconv.FormatInt(limit, 10))
	}
	return nil
}

// modelCallsLeft kills the step if the run may not call a model any more.
func (st *Step) modelCallsLeft() error {
	used := st.s.head.Spent.Usage
	for _, l := range []struct {
		name string
		used int64
	}{{limitModelCalls, used.ModelCalls}, {limitTokens, used.PromptTokens + used.CompletionTokens}} {
		if limit := st.s.limit(l.name); limit > 0 && l.used >= limit {
			return st.kill(limitHalt(st.s.id, l.name, strconv.FormatInt(limit, 10)))
		}
	}
	if limit := st.s.m.Limits.Cost; limit > 0 && used.Cost != nil {
		limit += st.s.head.Spent.Raised[limitCost]
		if *used.Cost >= limit {
			return st.kill(limitHalt(st.s.id, limitCost, strconv.FormatFloat(limit, 'f', -1, 64)))
		}
	}
	return nil
}

// toolCallsLeft kills the step if n more calls are more than the run may make.
func (st *Step) toolCallsLeft(n int) error {
	made := st.s.head.Spent.Usage.ToolCalls
	if limit := st.s.limit(limitToolCalls); limit > 0 && made+int64(n) > limit {
		return st.kill(limitHalt(st.s.id, limitToolCalls, fmt.Sprintf("%d (%d made, and %d wanted at once)", limit, made, n)))
	}
	return nil
}
