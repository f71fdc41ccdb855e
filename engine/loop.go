package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// Advance works on a run until it ends, waits or stops, and gives its snapshot then. Cancelling ctx stops the run
// resumably (code interrupted). It takes up runs that stopped or whose process is gone; of one that waits it only looks
// whether a question has expired. Errors are ErrUnknownRun, ErrBusy, ErrFinished, ErrLost and ErrStore.
//
// The snapshot holds the values of secret variables as they are: its Mask takes them out of what is shown.
func (e *Engine) Advance(ctx context.Context, run string) (*history.Snapshot, error) {
	s, err := e.take(ctx, run)
	if err != nil {
		return nil, err
	}
	defer e.drop(s)
	for s.atWork() {
		step, done := s.enter(ctx)               // the world at the entry, and the record of what was done since
		outcome, reason := step.handle()         // the handler, against the journal
		move, halt := step.next(outcome, reason) // where the machine leads from here
		if halt == nil {
			err = s.fsm.fire(move) // commits the transition, then moves
		} else {
			err = s.settle(halt) // waits, stops or ends
		}
		done()
		if err != nil {
			if err = e.regain(ctx, s, err); err != nil {
				return nil, err
			}
		}
	}
	return s.head, nil
}

// atWork says whether there is more to do: whatever ends the work on a run gives it back.
func (s *session) atWork() bool { return !s.released }

// enter makes the step of the present state. done ends its context.
func (s *session) enter(ctx context.Context) (step *Step, done func()) {
	ctx, stop := context.WithCancelCause(ctx)
	s.mailMu.Lock()
	s.stop = stop
	cancelled := s.cancelNotice() != nil
	s.mailMu.Unlock()
	if cancelled {
		stop(errCancelled)
	}
	state, _ := s.m.State(s.head.Now.State)
	step = &Step{s: s, ctx: ctx, state: state, snap: s.base, record: s.record}
	if s.base == nil {
		step.snap = s.head
	}
	step.seen = step.snap.At
	if len(s.record) == 0 {
		step.snap = s.head
	}
	step.snap.Now.Env = s.head.Now.Env // what a take-up has changed counts from the step's entry
	endTime := step.watchTime(stop)
	var err error
	if step.set, err = tool.NewSet(s.tools, state.Tools); err != nil {
		step.kill(stopped(history.CodeHandler, "switch to a flow that has it: flowctl resume "+s.id+" --flow FILE", "state %s: %v", state.Name, err))
	}
	return step, func() {
		endTime()
		s.mailMu.Lock()
		s.stop = nil
		s.mailMu.Unlock()
		stop(nil)
	}
}

var errCancelled = errors.New("the run was cancelled")

// handle calls the state's handler. What the handler returns counts only if its step is alive.
func (st *Step) handle() (outcome machine.Outcome, reason error) {
	if st.halt != nil {
		return "", st.halt
	}
	if st.snap.Now.Visit > st.state.Limits.Visits {
		return machine.Limit, machine.Problem{Kind: "visits", Message: fmt.Sprintf(
			"state %s was entered more than %d times", st.state.Name, st.state.Limits.Visits)}
	}
	handler, ok := st.s.eng.cfg.Handlers[st.state.Handler]
	if !ok {
		return "", st.kill(stopped(history.CodeHandler, "run it with the program that has the handler",
			"this program has no handler %s, which state %s names", st.state.Handler, st.state.Name))
	}
	defer func() {
		if p := recover(); p != nil {
			clean := func(text string) string { return st.mask().Text(st.s.eng.cfg.Secrets.Text(text)) }
			st.s.eng.cfg.Log.Error().Str("run", st.s.id).Str("state", st.state.Name).
				Str("stack", clean(string(debug.Stack()))).
				Msg(clean(fmt.Sprintf("handler %s panicked: %v", st.state.Handler, p)))
			reason = st.kill(stopped(history.CodePanic, "this is a fault of the program, not of the flow; the log has the place",
				"handler %s of state %s panicked: %v", st.state.Handler, st.state.Name, p))
		}
	}()
	return handler.Handle(st.ctx, st)
}

// next decides where an outcome leads. A halt means that the run does not move.
func (st *Step) next(outcome machine.Outcome, reason error) (machine.Move, *halt) {
	if st.halt == nil || st.halt.kind == haltMoved {
		if h := st.goLive(); h != nil {
			return machine.Move{}, h
		}
	}
	if st.halt == nil {
		_ = st.check()
	}
	if st.halt != nil {
		if st.halt.kind != haltMoved {
			return machine.Move{}, st.halt
		}
		outcome, reason = st.halt.outcome, nil
		if !st.halt.problem.None() {
			reason = st.halt.problem
		}
		if outcome == machine.Timeout {
			st.pending = append(st.pending, st.s.openUnknown()...) // what the step knows is kept, its done marks above all
		}
	}
	if outcome == "" {
		return machine.Move{}, st.noOutcome(reason)
	}
	problem := asProblem(reason)
	facts := st.facts()
	facts.Last = machine.Last{Outcome: outcome, Error: problem}
	move, err := st.s.m.Next(st.state.Name, outcome, facts)
	if err != nil {
		return machine.Move{}, st.noMove(outcome, problem, err)
	}
	if h := st.stepsLeft(); h != nil {
		return machine.Move{}, h
	}
	st.s.leaving = leaving{problem: problem, pending: st.pending}
	return move, nil
}

// noOutcome is the halt for a handler that returned no outcome from a step that is alive.
func (st *Step) noOutcome(reason error) *halt {
	why := "and no reason"
	if reason != nil {
		why = "because: " + reason.Error()
	}
	return stopped(history.CodeHandler, "go on with: flowctl resume "+st.s.id, "handler %s of state %s gave no outcome, %s",
		st.state.Handler, st.state.Name, why)
}

// noMove is the halt for an outcome that leads nowhere or whose transition cannot be worked out.
func (st *Step) noMove(outcome machine.Outcome, problem machine.Problem, err error) *halt {
	var route *machine.NoRouteError
	if !errors.As(err, &route) {
		return st.expressionHalt(err)
	}
	resume := "go on with: flowctl resume " + st.s.id
	switch outcome {
	case machine.Error:
		if problem.Kind == kindNoKey {
			return stopped(history.CodeNoKey, "set it and "+resume, "%s", problem.Message)
		}
		return stopped(history.CodeOutage, "when that is put right, "+resume, "state %s: %s", st.state.Name, problem.Message)
	case machine.Timeout:
		return stopped(history.CodeTimeout, "begin the state anew with: flowctl resume "+st.s.id+" --restart-state",
			"state %s: %s", st.state.Name, problem.Message)
	case machine.Limit:
		return stopped(history.CodeLimit, "give the state a transition for limit or fail, and go on with: flowctl resume "+
			st.s.id+" --flow FILE", "%s", problem.Message)
	}
	return stopped(history.CodeHandler, "the handler's Uses must declare each outcome that it returns",
		"handler %s returned outcome %s, and state %s has no transition for it", st.state.Handler, outcome, st.state.Name)
}

// leaving is what the transition under way carries besides the move itself.
type leaving struct {
	problem machine.Problem
	pending []history.Event
}

// moveTo commits a transition and the entry of the next state. The FSM calls it before it moves.
func (s *session) moveTo(move machine.Move) error {
	events := append(s.leaving.pending, history.Event{Data: &history.Transition{From: move.From, To: move.To,
		Outcome: move.Outcome, Branch: move.Branch, Problem: s.leaving.problem}})
	if move.Say != "" {
		events = append(events, history.Event{Data: &history.Said{Text: move.Say}})
	}
	for _, a := range move.Set {
		events = append(events, history.Event{Data: &history.VarSet{Name: a.Name, Value: a.Value}})
	}
	s.leaving = leaving{}
	return s.commit(change{events: append(events, s.entry(move.To, false))})
}

// entry is the event that enters a state.
func (s *session) entry(name string, restarted bool) history.Event {
	state, _ := s.m.State(name)
	s.base, s.record = nil, nil
	return history.Event{State: name, Step: s.head.Now.Step + 1, Visit: s.head.Now.Visits[name] + 1,
		Data: &history.StateEntered{Env: s.environment(state), Restarted: restarted}}
}

// environment is what the world decides for a step, as it is now.
func (s *session) environment(state *machine.State) history.Environment {
	env := history.Environment{Model: state.Model, ApproveAll: s.eng.cfg.ApproveAll}
	if state.Model != machine.ModelDeclared {
		return env
	}
	env.Model = machine.ModelMissing
	switch script := s.head.Run.Scripts[state.ModelName]; {
	case script != "":
		env.Model, env.Script = machine.ModelReady, script
	case s.eng.cfg.Models != nil:
		env.Model, env.ModelID = s.eng.cfg.Models.Case(s.m, state.ModelName)
	}
	return env
}

// settle does what a halted step asks for.
func (s *session) settle(h *halt) error {
	switch h.kind {
	case haltSuspended, haltEnded:
		return nil
	case haltLost:
		return h.err
	case haltCancelled:
		return s.commit(s.finishCancelled())
	case haltInterrupted:
		h = stopped(history.CodeInterrupted, "go on with: flowctl resume "+s.id, "the process was asked to stop")
	}
	return s.commit(s.stopChange(h))
}

// stopChange is the change that stops a run.
func (s *session) stopChange(h *halt) change {
	stop := h.stop
	return change{release: true, events: append(s.roused(), history.Event{Data: &stop})}
}
