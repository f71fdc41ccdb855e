package history

import (
	"fmt"
	"slices"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Fold applies events to a copy of base (New for a whole history) and gives the copy.
func Fold(base *Snapshot, events []Event) (*Snapshot, error) {
	s := base.Clone()
	for _, ev := range events {
		if err := Apply(s, ev); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Apply folds one event into s. It is the only place where events get their meaning: live effects, replay and inspection
// all go through it. Events of unknown types only count on. An event out of order, or behind the end of a run, is a
// *DamagedError and leaves s as it is.
func Apply(s *Snapshot, ev Event) error {
	if ev.Seq != s.Seq+1 {
		return &DamagedError{Seq: ev.Seq, Type: string(ev.Data.Type()), Err: fmt.Errorf("it follows event %d", s.Seq)}
	}
	if s.Status.Final() {
		return &DamagedError{Seq: ev.Seq, Type: string(ev.Data.Type()), Err: fmt.Errorf("the run ended with event %d", s.Seq)}
	}
	s.clock(ev)
	s.Mask = s.Mask.After(ev.Data)
	switch d := ev.Data.(type) {
	case *RunStarted, *RunWaiting, *RunStopped, *RunResumed, *RunFinished, *FlowSwitched, *LimitRaised:
		s.applyRun(ev)
	case *StateEntered:
		s.enter(ev, d)
	case *Transition:
		s.leave(d)
	case *VarSet:
		s.setVar(d.Name, d.Value)
	case *Said:
		s.message(ev, RoleAssistant, d.Text)
	case *NoteAdded:
		s.Spent.Notes = append(s.Spent.Notes, d.Text)
	case *ToolStarted:
		s.closeCall(ev.Key)
		s.Open = append(s.Open, OpenCall{Key: ev.Key, Tool: d.Tool, Call: d.Call, Args: d.Args, SecretArgs: d.SecretArgs})
	case *ModelCalled:
		s.applyModel(ev, d)
	case *Summarised:
		s.applySummary(d)
	case *Warned:
		s.Warned = append(s.Warned[:len(s.Warned):len(s.Warned)], d.Kind+" "+d.Model)
	case *AttemptFailed:
		if d.NotDone {
			s.closeCall(ev.Key)
		}
	case *ToolFinished:
		s.finishCall(ev, d)
	case *Signalled:
		s.Signals = append(s.Signals, Signal{Name: d.Name, Value: d.Value})
	case *Asked, *Answered, *DoubtResolved, *Expired:
		s.applyQuestion(ev)
	}
	if progress(ev.Data) {
		s.Spent.Interrupted = 0
	}
	return nil
}

// clock counts active time: what passes between two events while the run is at work. What passes before a take-up is
// nobody's work.
func (s *Snapshot) clock(ev Event) {
	if _, resumed := ev.Data.(*RunResumed); !resumed && s.Status == store.Running && ev.At.After(s.At) {
		s.Spent.Active += ev.At.Sub(s.At)
	}
	s.Seq, s.At = ev.Seq, ev.At
}

// progress says whether an event shows that a run got further since it was taken up.
func progress(d Data) bool {
	switch d.(type) {
	case *RunResumed, *AttemptFailed, *LimitRaised, *Signalled:
		return false
	}
	return true
}

func (s *Snapshot) applyRun(ev Event) {
	switch d := ev.Data.(type) {
	case *RunStarted:
		s.Run.Flow, s.Run.FlowHash, s.Run.Dir, s.Run.StartedAt = d.Flow, d.FlowHash, d.Dir, ev.At
		s.Run.Scripts = d.Scripts
		s.Status = store.Running
		s.Inputs, s.Vars = machine.Values{}, machine.Values{}
		for name, v := range d.Inputs {
			s.Inputs[name] = v
		}
		for name, v := range d.Vars {
			s.setVar(name, v)
		}
		if text, ok := d.Inputs[d.Message].(string); ok && text != "" {
			s.message(ev, RoleHuman, text)
			s.newest().Secret = slices.Contains(d.Secrets, d.Message)
		}
	case *RunWaiting:
		s.Status = store.Waiting
	case *RunStopped:
		s.Status, s.Stop = store.Stopped, d
	case *RunResumed:
		s.resume(d)
	case *RunFinished:
		s.Status, s.Stop, s.Finish = d.Status, nil, d
		s.Pending, s.Open = nil, nil
	case *LimitRaised:
		raised := make(map[string]float64, len(s.Spent.Raised)+1)
		for name, by := range s.Spent.Raised {
			raised[name] = by
		}
		raised[d.Limit] += d.By
		s.Spent.Raised = raised
	case *FlowSwitched:
		s.Run.FlowHash, s.Run.Dir = d.To, d.Dir
		s.rename(d.Map)
		s.Now.State = d.State
		s.Inputs, s.Vars = machine.Values{}, machine.Values{}
		for name, v := range d.Inputs {
			s.Inputs[name] = v
		}
		for name, v := range d.Vars {
			s.setVar(name, v)
		}
	}
}

// rename carries over what was counted of states that a new definition calls otherwise.
func (s *Snapshot) rename(names map[string]string) {
	s.Now.Visits = renamed(s.Now.Visits, names)
	s.Talk.Left = renamed(s.Talk.Left, names)
	s.Attempts = renamed(s.Attempts, names)
	s.Summaries = renamed(s.Summaries, names)
}

// renamed gives a map with its keys renamed, all at once: names may be swapped. Where a new name is taken already, the
// renamed entry counts.
func renamed[T any](byName map[string]T, names map[string]string) map[string]T {
	out := make(map[string]T, len(byName))
	for name, v := range byName {
		if _, gone := names[name]; !gone {
			out[name] = v
		}
	}
	for old, name := range names {
		if v, ok := byName[old]; ok {
			out[name] = v
		}
	}
	return out
}

func (s *Snapshot) resume(d *RunResumed) {
	switch {
	case d.Interrupted:
		s.Spent.Interrupted++
	case s.Status == store.Stopped: // somebody has looked at it
		s.Spent.Interrupted = 0
	}
	s.Stop = nil
	s.Status = store.Running
	if d.Env != nil {
		s.Now.Env = *d.Env
	}
	if d.Dir != "" {
		s.Run.Dir = d.Dir
	}
}

func (s *Snapshot) enter(ev Event, d *StateEntered) {
	if s.Now.Visits == nil {
		s.Now.Visits = map[string]int64{}
	}
	s.Status = store.Running
	s.Now.State, s.Now.Step, s.Now.Visit = ev.State, ev.Step, ev.Visit
	s.Now.Entered, s.Now.Env = ev.Seq, d.Env
	s.Now.Visits[ev.State] = ev.Visit
	s.Now.Path = append(s.Now.Path, ev.State)
	s.Spent.Usage.Steps++
	s.Spent.StepActive = s.Spent.Active
	s.Spent.Notes = nil
	s.Turns = 0
	s.Pending, s.Open = nil, nil
}

// settleUnknown keeps the calls whose result nobody knows, until an equal one ends for sure.
func (s *Snapshot) settleUnknown(d *ToolFinished) {
	unknown, sure := d.Result.Status == tool.Unknown, d.Result.Status == tool.OK || d.Result.Status == tool.Failed
	if !unknown && (!sure || len(s.Unknown) == 0) {
		return
	}
	key := CallKey(d.Tool, d.Args)
	s.Unknown = slices.DeleteFunc(s.Unknown, func(k string) bool { return k == key })
	if unknown {
		s.Unknown = append(s.Unknown, key)
	}
}

// finishCall takes in the result of a call. One that a model asked for is a message.
func (s *Snapshot) finishCall(ev Event, d *ToolFinished) {
	s.closeCall(ev.Key)
	s.settleUnknown(d)
	if d.Result.Status != tool.Refused {
		s.Spent.Usage.ToolCalls++
	}
	if d.Call != "" {
		s.message(ev, RoleTool, "")
		msg := s.newest()
		msg.CallID = d.Call
		msg.fill(ev)
	}
}

func (s *Snapshot) closeCall(key string) {
	s.Open = slices.DeleteFunc(s.Open, func(c OpenCall) bool { return c.Key == key })
}

func (s *Snapshot) leave(d *Transition) {
	if s.Attempts == nil {
		s.Attempts = map[string][]Attempt{}
	}
	if s.Talk.Left == nil {
		s.Talk.Left = map[string]int64{}
	}
	s.Last = machine.Last{Outcome: d.Outcome, Error: d.Problem}
	s.Attempts[d.From] = append(s.Attempts[d.From],
		Attempt{Visit: s.Now.Visit, Outcome: d.Outcome, Problem: d.Problem, Notes: s.Spent.Notes})
	s.Talk.Left[d.From] = s.NewestMessage()
}

func (s *Snapshot) setVar(name string, v machine.Value) {
	if v == nil {
		delete(s.Vars, name)
		return
	}
	if s.Vars == nil {
		s.Vars = machine.Values{}
	}
	s.Vars[name] = v
}

func (s *Snapshot) message(ev Event, role Role, text string) {
	s.Talk.Messages = append(s.Talk.Messages, Message{N: s.NewestMessage() + 1, Seq: ev.Seq, Role: role, State: ev.State,
		Step: ev.Step, Content: Content{Text: text}, Loaded: true})
}

// newest gives the newest message.
func (s *Snapshot) newest() *Message { return &s.Talk.Messages[len(s.Talk.Messages)-1] }

// applyQuestion keeps the list of pending questions. The run is at work again when the last of them is answered.
func (s *Snapshot) applyQuestion(ev Event) {
	switch d := ev.Data.(type) {
	case *Asked:
		s.Pending = append(s.Pending, Question{ID: ev.Key, State: ev.State, Seq: ev.Seq, Asked: *d})
		if d.Kind == KindAsk || d.Kind == KindConfirm {
			s.message(ev, RoleAssistant, d.Question)
		}
		return
	case *Answered:
		if q, ok := s.Question(ev.Key); ok && d.Text != "" && q.Kind != KindApproval {
			s.message(ev, RoleHuman, d.Text)
			s.newest().Secret = d.Secret
		}
	}
	for i, q := range s.Pending {
		if q.ID == ev.Key {
			s.Pending = append(s.Pending[:i:i], s.Pending[i+1:]...)
			break
		}
	}
	if len(s.Pending) == 0 && s.Status == store.Waiting {
		s.Status = store.Running
	}
}

// Load takes what a message says from the event that brought it.
func (m *Message) Load(ev Event) {
	m.fill(ev)
	m.Loaded = true
}

func (m *Message) fill(ev Event) {
	switch d := ev.Data.(type) {
	case *RunStarted:
		m.Text, _ = d.Inputs[d.Message].(string)
	case *Said:
		m.Text = d.Text
	case *Asked:
		m.Text = d.Question
	case *Answered:
		m.Text = d.Text
	case *ToolFinished:
		m.Text = ResultText(d.Result)
	case *ModelCalled:
		m.Content = Content{Text: d.Text, Made: d.Calls, Remark: d.Remark}
		if !d.Aloud {
			m.Reasoning = d.Reasoning
		}
		m.Calls = len(d.Calls)
	}
}

// Elapsed gives the active time of the run as of now, counting the present work.
func (s *Snapshot) Elapsed(now time.Time) time.Duration {
	if s.Status != store.Running || !now.After(s.At) {
		return s.Spent.Active
	}
	return s.Spent.Active + now.Sub(s.At)
}
