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

// messages selects what was said, apart from answers to secret questions. A state's own messages are those of the present step and what the human has said since
// the state was last left. Calls and their results stay together; those of the present step are shown in any case, since
// its model would otherwise not know what it has done.
func messages(state *machine.State, snap *history.Snapshot) []history.Message {
	sel := state.View.Messages
	var chosen []history.Message
	room := sel.Last
	units := units(snap.Talk.Messages)
	for i := len(units) - 1; i >= 0; i-- {
		unit := units[i]
		if unit[0].Secret {
			continue
		}
		working := unit[0].Calls > 0 && unit[0].Step == snap.Now.Step
		if !working {
			if !selected(sel, unit[0], snap) || sel.Last > 0 && room == 0 {
				continue
			}
			room--
		}
		for j := len(unit) - 1; j >= 0; j-- {
			chosen = append(chosen, unit[j])
		}
	}
	return ByNumber(chosen)
}

// ByNumber sorts messages in place by their number.
func ByNumber(messages []history.Message) []history.Message {
	slices.SortFunc(messages, func(a, b history.Message) int { return int(a.N - b.N) })
	return messages
}

func selected(sel machine.MessageSelect, msg history.Message, snap *history.Snapshot) bool {
	own := msg.Step == snap.Now.Step || msg.Role == history.RoleHuman && msg.N > snap.Talk.Left[snap.Now.State]
	switch sel.Mode {
	case machine.MessagesNone:
		return false
	case machine.MessagesAll:
		return true
	case machine.MessagesStates:
		return own || slices.Contains(sel.States, msg.State)
	}
	return own
}

// units puts messages that go together into groups: a message that makes calls, and the results of these calls. A result
// belongs to the newest message with calls before it.
func units(messages []history.Message) [][]history.Message {
	var out [][]history.Message
	working := -1
	for _, msg := range messages {
		switch {
		case msg.Role == history.RoleTool && working >= 0:
			out[working] = append(out[working], msg)
			continue
		case msg.Calls > 0:
			working = len(out)
		}
		out = append(out, []history.Message{msg})
	}
	return out
}

// Ranges gives the numbers of messages, which stand in rising order.
func Ranges(messages []history.Message) []history.Range {
	var out []history.Range
	for _, msg := range messages {
		if n := len(out); n > 0 && out[n-1].To+1 == msg.N {
			out[n-1].To = msg.N
			continue
		}
		out = append(out, history.Range{From: msg.N, To: msg.N})
	}
	return out
}

// Pick gives the messages of ranges.
func Pick(messages []history.Message, ranges []history.Range) []history.Message {
	var out []history.Message
	for _, r := range ranges {
		for n := max(r.From, 1); n <= r.To && n <= int64(len(messages)); n++ {
			out = append(out, messages[n-1])
		}
	}
	return out
}
