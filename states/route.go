package states

import (
	"context"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// route does nothing but write variables; where it leads is for its transitions.
type route struct{}

type routeWith struct {
	Set machine.Ordered[machine.Tree] `yaml:"set" flow:"write" doc:"Variables to write, in this order; null unsets one"`
}

func (route) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Branch: nothing but its transitions, and variables to set.", With: &routeWith{},
		Outcomes: "next"}
}

func (c *routeWith) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.NextState, Writes: c.Set.Names()}}}
}

func (route) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	for _, line := range engine.With[*routeWith](step).Set {
		decl, _ := step.Machine().Vars.Get(line.Name)
		value, err := step.Compute(assignment{Tree: line.Value, line: line, state: step.State().Name, schema: decl.Schema})
		if err != nil {
			return "", err
		}
		if err := step.Set(line.Name, value); err != nil {
			return "", err
		}
	}
	return machine.NextState, nil
}

// assignment is the right side of a line of `set` together with the variable's schema: a value that the variable does not
// take stops the run like an expression that fails, as it does in the set of a transition.
type assignment struct {
	machine.Tree
	line   machine.Item[machine.Tree]
	state  string
	schema machine.Schema
}

// Value implements machine.Tree.
func (a assignment) Value(f machine.Facts) (machine.Value, error) {
	v, err := a.Tree.Value(f)
	if err != nil || v == nil || a.schema == nil {
		return v, err
	}
	if err := a.schema.Check(v); err != nil {
		return nil, &machine.AssignError{State: a.state, Name: a.line.Name, Value: v, Pos: a.line.Pos, Err: err}
	}
	return v, nil
}
