package machine

import "fmt"

// Move is where an outcome leads. It is a value: nothing has happened yet.
type Move struct {
	From, To string
	Outcome  Outcome // whose line was taken; another than asked for where the asked one has no own line
	Branch   int     // index among the outcome's branches
	Set      []Assignment
	Say      string // "" if nothing is said
}

// Assignment is one variable that a transition writes. A nil Value unsets it.
type Assignment struct {
	Name  string
	Value Value
}

// Event is the name of the move's FSM event: outcome#branch.
func (mv Move) Event() string { return EventName(mv.Outcome, mv.Branch) }

// EventName is the name under which a branch is known to the FSM.
func EventName(o Outcome, branch int) string { return fmt.Sprintf("%s#%d", o, branch) }

// NoRouteError is returned by Next for an outcome that leads nowhere.
type NoRouteError struct {
	State   string
	Outcome Outcome
}

func (e *NoRouteError) Error() string {
	return fmt.Sprintf("state %s has no transition for outcome %s", e.State, e.Outcome)
}

// Next decides where outcome o of a state leads. It is pure: it evaluates guards, assignments and texts over facts and
// changes nothing. facts.Last is how this step ends. Errors are *NoRouteError, *ExprError or *AssignError.
//
// The engine's own outcome Limit takes the line of Fail where it has none; Error and Timeout without a line are a
// *NoRouteError, which stops the run.
func (m *Machine) Next(state string, o Outcome, facts Facts) (Move, error) {
	s, ok := m.State(state)
	if !ok {
		return Move{}, fmt.Errorf("flow %s has no state %s", m.Name, state)
	}
	branches, taken, err := m.line(s, o)
	if err != nil {
		return Move{}, err
	}
	for i, b := range branches {
		if b.When != nil {
			v, err := b.When.Eval(facts)
			if err != nil {
				return Move{}, err
			}
			if hit, _ := v.(bool); !hit {
				continue
			}
		}
		return m.take(s, taken, i, b, facts)
	}
	return Move{}, &NoRouteError{State: state, Outcome: taken}
}

// line finds the branches of an outcome, following Falls.
func (m *Machine) line(s *State, o Outcome) ([]Branch, Outcome, error) {
	if branches, ok := s.Transitions[o]; ok {
		return branches, o, nil
	}
	for i := range m.Interrupts {
		if InterruptOutcome(m.Interrupts[i].Name) == o {
			return []Branch{m.Interrupts[i].Value.Branch}, o, nil
		}
	}
	fall, ok := s.Falls[o]
	if !ok && o == Limit {
		fall, ok = Fail, true
	}
	if ok {
		if branches, found := s.Transitions[fall]; found {
			return branches, fall, nil
		}
	}
	return nil, o, &NoRouteError{State: s.Name, Outcome: o}
}

func (m *Machine) take(s *State, o Outcome, i int, b Branch, facts Facts) (Move, error) {
	mv := Move{From: s.Name, To: b.To, Outcome: o, Branch: i}
	if b.Say != nil {
		said, err := b.Say.Render(facts)
		if err != nil {
			return Move{}, err
		}
		mv.Say = said
	}
	if len(b.Set) == 0 {
		return mv, nil
	}
	facts.Values = copyTop(facts.Values)
	for _, line := range b.Set {
		v, err := line.Value.Value(facts)
		if err != nil {
			return Move{}, err
		}
		if err := m.assignable(line.Name, v); err != nil {
			return Move{}, &AssignError{State: s.Name, Name: line.Name, Value: v, Pos: line.Pos, Err: err}
		}
		mv.Set = append(mv.Set, Assignment{Name: line.Name, Value: v})
		facts.Values[line.Name] = v
	}
	return mv, nil
}

func (m *Machine) assignable(name string, v Value) error {
	decl, ok := m.Vars.Get(name)
	if !ok {
		return fmt.Errorf("the flow declares no variable %s", name)
	}
	if v == nil {
		return nil
	}
	return decl.Check(v)
}

func copyTop(vs Values) Values {
	out := make(Values, len(vs)+1)
	for name, v := range vs {
		out[name] = v
	}
	return out
}

// AssignError is a transition's set whose value the variable's schema refuses.
type AssignError struct {
	State, Name string
	Value       Value
	Pos         Pos
	Err         error
}

func (e *AssignError) Error() string {
	return fmt.Sprintf("%s: set %s: %v", e.Pos, e.Name, e.Err)
}

func (e *AssignError) Unwrap() error { return e.Err }
