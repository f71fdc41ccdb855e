package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// change works out the events of a Resume: the take-up, a switch of folder or definition, a new entry of the state.
func (s *session) change(ctx context.Context, req ResumeRequest) ([]history.Event, error) {
	restart := req.Restart
	resumed := &history.RunResumed{Dir: req.Dir, Interrupted: s.asleep && s.lost && s.head.Status == store.Running}
	events := []history.Event{{Data: resumed}}
	if s.head.Status == store.Waiting && req.Dir == "" {
		events = nil
	}
	for _, limit := range machine.SortedNames(req.Raise) {
		events = append(events, history.Event{Data: &history.LimitRaised{Limit: limit, By: req.Raise[limit]}})
	}
	if req.Flow != nil {
		switched, keeps, err := s.switchTo(ctx, req)
		if err != nil {
			return nil, err
		}
		if switched != nil {
			events = append(events, history.Event{Data: switched})
			restart = restart || !keeps
		}
	}
	resumed.Env = s.resumed().Env // by the definition that it goes on with
	if !restart {
		return events, nil
	}
	if s.m == nil {
		return nil, fmt.Errorf("%w: its state cannot be begun anew before its definition can be read", ErrIncompatible)
	}
	if writes := s.finishedWrites(); len(writes) > 0 && !req.RedoWrites {
		return nil, &RedoError{State: s.head.Now.State, Writes: writes}
	}
	return append(events, s.reentry(req.Map)), nil
}

// reentry begins the present state anew, under its new name if it has one.
func (s *session) reentry(renamed map[string]string) history.Event {
	old := s.head.Now.State
	name, ok := renamed[old]
	if !ok {
		name = old
	}
	ev := s.entry(name, true)
	ev.Visit = s.head.Now.Visits[old] + 1
	return ev
}

// finishedWrites lists the calls of the present step that changed the world, or may have.
func (s *session) finishedWrites() []string {
	var writes []string
	for _, ev := range s.record {
		d, ok := s.head.Mask.Event(ev).Data.(*history.ToolFinished)
		if !ok || d.Effect == machine.EffectRead || d.Result.Status != tool.OK && d.Result.Status != tool.Unknown {
			continue
		}
		writes = append(writes, describeCall(d.Tool, d.Args))
	}
	for _, c := range s.head.Open {
		args := s.head.Mask.Args(c.Args, c.SecretArgs)
		writes = append(writes, describeCall(c.Tool, machine.Value(args))+" (result unknown)")
	}
	return writes
}

func describeCall(name string, args machine.Value) string {
	return name + " " + machine.FormatValue(args)
}

// switchTo works out the switch to another definition, and whether the journal of the present step stays valid. A nil
// event means that the definition is the present one.
func (s *session) switchTo(ctx context.Context, req ResumeRequest) (*history.FlowSwitched, bool, error) {
	m := req.Flow
	if m.Hash == s.head.Run.FlowHash && m.Dir == s.head.Run.Dir {
		return nil, true, nil
	}
	old := s.head.Now.State
	name := old
	if mapped, ok := req.Map[old]; ok {
		name = mapped
	}
	var misfits []string
	state, ok := m.State(name)
	if !ok {
		misfits = append(misfits, fmt.Sprintf("it has no state %s, where the run is (give its new name with --map %s=NAME)", name, old))
	}
	vars, wrong := s.carryVars(m)
	misfits = append(misfits, wrong...)
	inputs, wrong := s.carryInputs(m)
	misfits = append(misfits, wrong...)
	if m.Name != s.head.Run.Flow {
		misfits = append(misfits, fmt.Sprintf("it is flow %s, and the run is of flow %s", m.Name, s.head.Run.Flow))
	}
	keeps := ok && s.m != nil && s.sameState(old, state)
	if ok && !keeps && len(s.head.Pending) > 0 {
		misfits = append(misfits, fmt.Sprintf("question %s of state %s is pending, and the state differs: answer it first", s.head.Pending[0].ID, old))
	}
	if len(misfits) > 0 {
		return nil, false, fmt.Errorf("%w: %s", ErrIncompatible, strings.Join(misfits, "; "))
	}
	if err := s.eng.cfg.Store.PutFlow(ctx, m.Hash, m.Source); err != nil {
		return nil, false, readError(ctx, err)
	}
	s.eng.remember(m.Hash, m.Dir, m)
	s.m = m
	return &history.FlowSwitched{From: s.head.Run.FlowHash, To: m.Hash, Dir: m.Dir, State: name, Inputs: inputs, Vars: vars,
		Map: req.Map, Secrets: m.Secrets()}, keeps, nil
}

// sameState says whether a state of another definition is equal to a step that is under way in the present one.
func (s *session) sameState(old string, state *machine.State) bool {
	present, ok := s.m.State(old)
	return ok && present.Digest == state.Digest
}

// carryVars gives the variables as the new definition has them: those that it still declares, which must fit, and the
// defaults of new ones.
func (s *session) carryVars(m *machine.Machine) (machine.Values, []string) {
	vars := machine.Values{}
	var wrong []string
	for _, item := range m.Vars {
		v, has := s.head.Vars[item.Name]
		switch {
		case has:
			if err := item.Value.Check(v); err != nil {
				wrong = append(wrong, fmt.Sprintf("variable %s: %v", item.Name, err))
			}
			vars[item.Name] = v
		case !s.declared(item.Name) && item.Value.Default != nil:
			vars[item.Name] = item.Value.Default
		}
	}
	for _, name := range machine.SortedNames(s.head.Vars) {
		if _, ok := m.Vars.Get(name); !ok && s.live(name) {
			wrong = append(wrong, "it has no variable "+name+", which state "+s.head.Now.State+" reads")
		}
	}
	return vars, wrong
}

// carryInputs gives the inputs as the new definition has them: those that were given, which must fit, and the defaults of
// new ones.
func (s *session) carryInputs(m *machine.Machine) (machine.Values, []string) {
	inputs := machine.Values{}
	var wrong []string
	for _, item := range m.Inputs {
		v, given := s.head.Inputs[item.Name]
		switch {
		case given:
			if err := item.Value.Check(v); err != nil {
				wrong = append(wrong, fmt.Sprintf("input %s: %v", item.Name, err))
			}
			inputs[item.Name] = v
		case !item.Value.HasDefault:
			wrong = append(wrong, "it has a new input "+item.Name+" without default")
		case item.Value.Default != nil:
			inputs[item.Name] = item.Value.Default
		}
	}
	for _, name := range machine.SortedNames(s.head.Inputs) {
		if _, ok := m.Inputs.Get(name); !ok && s.live(name) {
			wrong = append(wrong, "it has no input "+name+", which state "+s.head.Now.State+" reads")
		}
	}
	return inputs, wrong
}

func (s *session) declared(name string) bool {
	if s.m == nil {
		return false
	}
	_, ok := s.m.Vars.Get(name)
	return ok
}

// live says whether the state that is under way reads a variable or input.
func (s *session) live(name string) bool {
	if s.m == nil {
		return false
	}
	state, ok := s.m.State(s.head.Now.State)
	return ok && slices.Contains(state.Reads, name)
}

// Interrupted lists the runs that have work to do and nobody alive who does it: those whose process is gone, and those
// whose process was asked to stop.
func (e *Engine) Interrupted(ctx context.Context) ([]store.Run, error) {
	rows, err := e.list(ctx, store.Filter{Status: []store.Status{store.Running, store.Stopped}, Unheld: e.Dead})
	if err != nil {
		return nil, err
	}
	var interrupted []store.Run
	for _, row := range rows {
		if row.Status == store.Stopped {
			last, err := e.cfg.Store.Events(ctx, row.ID, row.Seq-1, 1)
			if err != nil {
				return nil, readError(ctx, err)
			}
			if !stopsForSignal(last) {
				continue
			}
		}
		interrupted = append(interrupted, row)
	}
	return interrupted, nil
}

// stopsForSignal says whether the newest event of a run is the stop of a process that was asked to end.
func stopsForSignal(last []store.Event) bool {
	if len(last) != 1 {
		return false
	}
	ev, err := history.Decode(last[0])
	if err != nil {
		return false
	}
	stop, ok := ev.Data.(*history.RunStopped)
	return ok && stop.Code == history.CodeInterrupted
}

// DueRuns lists the waiting runs whose time has come.
func (e *Engine) DueRuns(ctx context.Context) ([]store.Run, error) {
	return e.list(ctx, store.Filter{Status: []store.Status{store.Waiting}, Due: e.now()})
}

func (e *Engine) list(ctx context.Context, f store.Filter) ([]store.Run, error) {
	rows, err := e.cfg.Store.Runs(ctx, f)
	if err != nil {
		return nil, readError(ctx, err)
	}
	return rows, nil
}

// Dead says whether a worker counts as dead: its process is known to be gone, or its heartbeat is too old. The zero
// Worker, nobody, is dead.
func (e *Engine) Dead(w store.Worker) bool {
	if w.ID == e.cfg.Worker.ID {
		return false
	}
	return w.ID == "" || e.now().Sub(w.Beat) > e.cfg.Stale || e.cfg.Gone(w)
}
