package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/engine/view"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Step is one entry of a state, as its handler sees it: the world at the entry plus what this step has done so far, and
// the effects that it may have. It belongs to the goroutine that Handle was called in.
//
// On a re-entry the step starts again from the world at its entry. Each effect finds what is recorded of it and answers
// with that; the step goes live where the record ends.
type Step struct {
	s     *session
	ctx   context.Context
	state *machine.State
	set   *tool.Set

	snap    *history.Snapshot // the entry plus this step's own past; the session's head once the step is live
	seen    time.Time         // of the newest effect that the handler has had, or of the entry
	record  []history.Event   // recorded of this step and not yet replayed
	ordinal int64
	pending []history.Event // sets and notes that wait for the next commit
	overlay machine.Values  // values of the pending sets; nil is unset
	halt    *halt
}

// With gives the state's decoded config.
func With[T machine.HandlerConfig](step *Step) T {
	with, ok := step.state.With.(T)
	if !ok {
		panic(fmt.Sprintf("handler %s was given another config than its own", step.state.Handler))
	}
	return with
}

// Get gives the value of a readable variable as T (string, bool, int64, float64, machine.Values, []machine.Value). It is
// false when the variable has no value or one of another type.
func Get[T any](step *Step, name string) (T, bool) {
	v, ok := step.Value(name).(T)
	return v, ok
}

// Value gives the value of a readable variable, nil where it has none. Reading a variable that the state does not
// declare to read is a fault of the handler and stops the run.
func (st *Step) Value(name string) machine.Value {
	if !slices.Contains(st.state.Reads, name) && !slices.Contains(st.state.Writes, name) {
		st.kill(stopped(history.CodeHandler, "the handler's Uses must name it in Reads",
			"handler %s read variable %s, which it does not declare to read", st.state.Handler, name))
		return nil
	}
	return st.facts().Values[name]
}

// Has says whether a readable variable has a value.
func (st *Step) Has(name string) bool { return st.Value(name) != nil }

// State gives the state's compiled form; it must not be changed.
func (st *Step) State() *machine.State { return st.state }

// Machine gives the compiled flow; it must not be changed.
func (st *Step) Machine() *machine.Machine { return st.s.m }

// RunID is the id of the run.
func (st *Step) RunID() string { return st.snap.Run.ID }

// Visit says how often the state was entered in this run, this entry counted.
func (st *Step) Visit() int64 { return st.snap.Now.Visit }

// Turns is the state's bound for the handler's own rounds.
func (st *Step) Turns() int { return int(st.state.Limits.Turns) }

// Model says whether the state's model can be called, as recorded when the step was entered.
func (st *Step) Model() machine.ModelCase { return st.snap.Now.Env.Model }

// Now is the time of the newest effect that the handler has had, of the step's entry before the first: the same on every
// re-entry.
func (st *Step) Now() time.Time { return st.seen }

// Random is a generator with a sequence of this run and step: the same on every re-entry. It must be asked for once.
func (st *Step) Random() *rand.Rand { return stepRandom(st.snap.Run.ID, st.snap.Now.Step) }

// Attempts gives how earlier visits of this state ended, the oldest first. They must not be changed.
func (st *Step) Attempts() []history.Attempt { return st.snap.Attempts[st.state.Name] }

// Last is how the step before ended.
func (st *Step) Last() machine.Last { return st.snap.Last }

// facts is what expressions of this step see.
func (st *Step) facts() machine.Facts {
	f := st.snap.Facts()
	for name, v := range st.overlay {
		f.Values[name] = v
	}
	f.Getenv = st.s.eng.cfg.Getenv
	return f
}

// Render gives a text of the state's config. An expression in it that fails stops the run.
func (st *Step) Render(t machine.Text) (string, error) {
	if st.halt != nil {
		return "", st.halt
	}
	text, err := t.Render(st.facts())
	if err != nil {
		return "", st.expressionFailed(err)
	}
	return text, nil
}

// Compute gives the value of an expression tree of the state's config. An expression in it that fails stops the run.
func (st *Step) Compute(t machine.Tree) (machine.Value, error) {
	if st.halt != nil {
		return nil, st.halt
	}
	v, err := t.Value(st.facts())
	if err != nil {
		return nil, st.expressionFailed(err)
	}
	return v, nil
}

// Holds evaluates a condition of the state's config, with result (if any) as `result`. An expression that fails, or is
// neither true nor false, stops the run.
func (st *Step) Holds(e machine.Expr, result machine.Value) (bool, error) {
	return st.holds(e, result, false)
}

// HoldsUnseen is Holds for a result that goes into a secret variable: no error shows it.
func (st *Step) HoldsUnseen(e machine.Expr, result machine.Value) (bool, error) {
	return st.holds(e, result, true)
}

func (st *Step) holds(e machine.Expr, result machine.Value, hidden bool) (bool, error) {
	if st.halt != nil {
		return false, st.halt
	}
	f := st.facts()
	f.Result, f.Hidden = result, hidden
	v, err := e.Eval(f)
	if err != nil {
		return false, st.expressionFailed(err)
	}
	yes, ok := v.(bool)
	if !ok {
		return false, st.expressionFailed(fmt.Errorf("%s gave %s, expected true or false", e.Source(), machine.FormatValue(v)))
	}
	return yes, nil
}

func (st *Step) expressionFailed(err error) error {
	return st.kill(st.expressionHalt(err))
}

func (st *Step) expressionHalt(err error) *halt {
	return stopped(history.CodeExpression, "mend the expression in the flow file and go on with: flowctl resume "+st.s.id+
		" --flow FILE", "state %s: %v", st.state.Name, err)
}

// Set writes a variable that the state may write; nil unsets it. The value is checked against the variable's schema, and
// a *machine.SchemaError says what is wrong, without what came where the variable is secret. It is stored with the step's
// next effect or its transition.
func (st *Step) Set(name string, value machine.Value) error {
	if st.halt != nil {
		return st.halt
	}
	if !slices.Contains(st.state.Writes, name) {
		return st.kill(stopped(history.CodeHandler, "the handler's Uses must name it in an outcome's Writes",
			"handler %s wrote variable %s, which it does not declare to write", st.state.Handler, name))
	}
	v, err := machine.Normalize(value)
	if err != nil {
		return &machine.SchemaError{Faults: []machine.SchemaFault{{Want: "a JSON value", Got: err.Error()}}}
	}
	v = st.s.eng.cfg.Secrets.Value(v) // as it will be stored
	if decl, _ := st.s.m.Vars.Get(name); v != nil {
		if err := decl.Check(v); err != nil {
			return err
		}
	}
	if st.overlay == nil {
		st.overlay = machine.Values{}
	}
	st.overlay[name] = v
	st.pending = append(st.pending, history.Event{Data: &history.VarSet{Name: name, Value: v}})
	return nil
}

// Heard gives what the human said since this state was last left, oldest first; on the first visit, since the run began.
// It does not depend on the state's view. An answer to a secret question is for who asked, and not among it.
func (st *Step) Heard() ([]string, error) {
	if st.halt != nil {
		return nil, st.halt
	}
	return st.human(st.snap.Talk.Left[st.state.Name])
}

// Newest gives what the human said last in the whole run, "" if nothing was said. Answers to secret questions do not count.
func (st *Step) Newest() (string, error) {
	if st.halt != nil {
		return "", st.halt
	}
	for i := len(st.snap.Talk.Messages) - 1; i >= 0; i-- {
		if msg := st.snap.Talk.Messages[i]; msg.Role == history.RoleHuman && !msg.Secret {
			said, err := st.human(int64(i))
			if err != nil {
				return "", err
			}
			return said[0], nil
		}
	}
	return "", nil
}

// human gives the human's messages behind number after.
func (st *Step) human(after int64) ([]string, error) {
	var said []string
	for i := int(after); i < len(st.snap.Talk.Messages); i++ {
		msg := &st.snap.Talk.Messages[i]
		if msg.Role != history.RoleHuman || msg.Secret {
			continue
		}
		if err := st.s.loadText(msg); err != nil {
			return nil, st.failed(err)
		}
		said = append(said, msg.Text)
	}
	return said, nil
}

// View gives what a model called by this state would be shown.
func (st *Step) View() (view.View, error) {
	if st.halt != nil {
		return view.View{}, st.halt
	}
	mask := st.mask()
	v := view.Build(st.state, st.snap, st.facts().Values)
	for i, shown := range v.Vars {
		v.Vars[i].Value = mask.Value(shown.Value)
	}
	for i, chosen := range v.Messages {
		msg := &st.snap.Talk.Messages[chosen.N-1] // loaded there, once for all views
		if err := st.s.loadText(msg); err != nil {
			return view.View{}, st.failed(err)
		}
		v.Messages[i] = mask.Message(*msg)
	}
	return v, nil
}

// mask keeps secrets out of what this step shows: also those that it has set and not stored yet.
func (st *Step) mask() *history.Mask {
	mask := st.snap.Mask
	for _, name := range machine.SortedNames(st.overlay) {
		if mask.Hides(name) {
			mask = mask.With(nil, st.overlay[name])
		}
	}
	return mask
}

// Say tells the human something.
func (st *Step) Say(text string) error {
	past, key, err := st.begin()
	if err != nil {
		return err
	}
	if len(past) > 0 {
		if _, ok := past[0].Data.(*history.Said); !ok {
			return st.diverged(key, "said something", past[0])
		}
		return nil
	}
	return st.commit(history.Event{Key: key, Data: &history.Said{Text: text}})
}

// Note leaves a line for the attempts of this state and the log. It is stored with the step's next effect or its
// transition.
func (st *Step) Note(text string) error {
	seen := st.seen
	past, key, err := st.begin()
	if err != nil {
		return err
	}
	if len(past) > 0 {
		if _, ok := past[0].Data.(*history.NoteAdded); !ok {
			return st.diverged(key, "left a note", past[0])
		}
		st.seen = seen // a note has no time of its own: it is stored with what comes after it
		return nil
	}
	st.pending = append(st.pending, history.Event{Key: key, Data: &history.NoteAdded{Text: text}})
	return nil
}

// End ends the run. It always returns an error, with which the handler returns.
func (st *Step) End(status store.Status, output machine.Value) error {
	past, key, err := st.begin()
	if err != nil {
		return err
	}
	if len(past) > 0 {
		return st.diverged(key, "ended the run", past[0])
	}
	if status != store.Succeeded && status != store.Failed {
		return st.kill(stopped(history.CodeHandler, "a run ends as succeeded or failed",
			"handler %s of state %s wanted to end the run as %q", st.state.Handler, st.state.Name, status))
	}
	if err := st.leftovers(); err != nil {
		return err
	}
	if output, err = machine.Normalize(output); err != nil {
		return st.failed(&unstorableError{err})
	}
	if _, err := st.write(change{release: true, events: []history.Event{
		{Data: &history.RunFinished{Status: status, Output: output}}}}); err != nil {
		return err
	}
	return st.kill(&halt{kind: haltEnded})
}

// begin starts an effect: it gives what is recorded of it, already applied, or nothing when the step is live.
func (st *Step) begin() (past []history.Event, key string, err error) {
	if st.halt != nil {
		return nil, "", st.halt
	}
	key = fmt.Sprintf("%d.%d", st.snap.Now.Step, st.ordinal)
	st.ordinal++
	past, err = st.replay(key)
	if err != nil || len(past) > 0 {
		return past, key, err
	}
	return nil, key, st.check()
}

// replay applies what is recorded of an effect and everything before it, and gives the effect's events.
func (st *Step) replay(key string) ([]history.Event, error) {
	end, other := 0, history.Event{}
	for i, ev := range st.record {
		switch {
		case belongs(ev.Key, key):
			end = i + 1
		case ev.Key != "" && other.Key == "":
			other = ev
		}
	}
	if end == 0 {
		if other.Key != "" {
			return nil, st.diverged(key, "had an effect", other)
		}
		if h := st.goLive(); h != nil {
			return nil, st.kill(h)
		}
		return nil, nil
	}
	var own []history.Event
	for _, ev := range st.record[:end] {
		if ev.Key != "" && !belongs(ev.Key, key) {
			return nil, st.diverged(key, "had an effect", ev)
		}
		if err := history.Apply(st.snap, ev); err != nil {
			return nil, st.corrupt(err)
		}
		if ev.Key != "" {
			own = append(own, ev)
		}
	}
	st.seen = st.record[end-1].At
	st.record = st.record[end:]
	st.pending, st.overlay = nil, nil
	return own, nil
}

// belongs says whether an event's key is the effect's own, a batch member's or a nested one's.
func belongs(key, effect string) bool {
	rest, ok := strings.CutPrefix(key, effect)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '/')
}

// wentOn says whether the record goes on with another effect.
func (st *Step) wentOn() bool {
	return slices.ContainsFunc(st.record, func(ev history.Event) bool { return ev.Key != "" })
}

// goLive leaves the record behind: what remains of it has no effect of this step in it. From then on the step sees the
// head of the run.
func (st *Step) goLive() *halt {
	if st.wentOn() {
		i := slices.IndexFunc(st.record, func(ev history.Event) bool { return ev.Key != "" })
		return st.divergence(st.record[i].Key, "went on without an effect", st.record[i])
	}
	st.record, st.snap = nil, st.s.head
	return nil
}

// commit stores what is pending and the events of an effect, and applies them.
func (st *Step) commit(events ...history.Event) error {
	_, err := st.write(change{events: events})
	return err
}

// write commits and gives the events as they are stored.
func (st *Step) write(c change) ([]history.Event, error) {
	if st.halt != nil {
		return nil, st.halt
	}
	if h := st.goLive(); h != nil {
		return nil, st.kill(h)
	}
	c.events = append(st.pending, c.events...)
	st.pending, st.overlay = nil, nil
	evs, err := st.s.store(c)
	if err != nil {
		return nil, st.failed(err)
	}
	if len(evs) > 0 {
		st.seen = evs[len(evs)-1].At
	}
	return evs, nil
}

// failed kills the step for a commit or a read that failed.
func (st *Step) failed(err error) error {
	var unstorable *unstorableError
	var damaged *history.DamagedError
	switch {
	case errors.As(err, &unstorable):
		return st.kill(stopped(history.CodeHandler, "a handler must give values that JSON can hold",
			"what handler %s of state %s gave cannot be stored: %v", st.state.Handler, st.state.Name, err))
	case errors.As(err, &damaged):
		return st.corrupt(err)
	}
	return st.kill(&halt{kind: haltLost, err: err})
}

// kill ends the step; the first cause stays.
func (st *Step) kill(h *halt) error {
	if st.halt == nil {
		st.halt = h
	}
	return st.halt
}

func (st *Step) diverged(key, did string, ev history.Event) error {
	return st.kill(st.divergence(key, did, ev))
}

func (st *Step) divergence(key, did string, ev history.Event) *halt {
	return stopped(history.CodeDiverged,
		fmt.Sprintf("the handler no longer does what it did; begin the state anew with: flowctl resume %s --restart-state", st.snap.Run.ID),
		"state %s (step %d) %s as effect %s, where its history has %s %s (event %d)",
		st.state.Name, st.snap.Now.Step, did, key, ev.Data.Type(), ev.Key, ev.Seq)
}

func (st *Step) corrupt(err error) error { return st.kill(corrupt(st.snap.Run.ID, err)) }

func corrupt(run string, err error) *halt {
	return stopped(history.CodeCorrupt, "other runs are not affected; start this one again, or look at: flowctl events "+run,
		"the history of run %s cannot be followed: %v", run, err)
}

// asProblem makes the reason that a handler returned into the form that flows see.
func asProblem(err error) machine.Problem {
	if err == nil {
		return machine.Problem{}
	}
	var p machine.Problem
	if errors.As(err, &p) {
		return p
	}
	return machine.Problem{Kind: "failed", Message: err.Error()}
}
