package view

import (
	"slices"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// View is what a model call of a state sees.
type View struct {
	Vars     []Var
	Messages []history.Message // oldest first
	Attempts []history.Attempt // of this state, oldest first; nil unless the state asks for them
}

// Var is a variable that is shown. Variables without value are left out of a view.
type Var struct {
	Name  string
	Value machine.Value
}

// Build gives the view of a state over a snapshot; values are inputs and variables as the step sees them.
func Build(state *machine.State, snap *history.Snapshot, values machine.Values) View {
	v := View{Messages: messages(state, snap)}
	for _, name := range state.Shows {
		if value := values[name]; value != nil {
			v.Vars = append(v.Vars, Var{Name: name, Value: value})
		}
	}
	if state.View.Attempts {
		v.Attempts = slices.Clone(snap.Attempts[state.Name])
	}
	return v
}

// messages selects what was said. A state's own messages are those of the present step and what the human has said since
// the state was last left.
func messages(state *machine.State, snap *history.Snapshot) []history.Message {
	sel := state.View.Messages
	if sel.Mode == machine.MessagesNone {
		return nil
	}
	left := snap.Talk.Left[state.Name]
	var chosen []history.Message
	for _, msg := range snap.Talk.Messages {
		own := msg.Step == snap.Now.Step || msg.Role == history.RoleHuman && msg.N > left
		switch sel.Mode {
		case machine.MessagesAll:
		case machine.MessagesStates:
			if !own && !slices.Contains(sel.States, msg.State) {
				continue
			}
		default:
			if !own {
				continue
			}
		}
		chosen = append(chosen, msg)
	}
	if sel.Last > 0 && len(chosen) > sel.Last {
		chosen = chosen[len(chosen)-sel.Last:]
	}
	return chosen
}
