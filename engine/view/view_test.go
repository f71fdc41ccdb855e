package view_test

import (
	"fmt"
	"strings"
	"testing"

	"flowctl/engine/history"
	"flowctl/engine/view"
	"flowctl/flows/machine"
)

// talk is a run that was in details (steps 1 and 3), plan (step 2), and is in details again (step 4).
func talk() *history.Snapshot {
	s := history.New("run")
	say := func(role history.Role, state string, step int64, text string) {
		n := int64(len(s.Talk.Messages) + 1)
		s.Talk.Messages = append(s.Talk.Messages, history.Message{N: n, Seq: n, Role: role, State: state, Step: step, Content: history.Content{Text: text}, Loaded: true})
	}
	say(history.RoleHuman, "", 0, "start")
	say(history.RoleAssistant, "details", 1, "which?")
	say(history.RoleHuman, "details", 1, "A1")
	say(history.RoleAssistant, "plan", 2, "this?")
	say(history.RoleHuman, "plan", 2, "no, A2")
	say(history.RoleAssistant, "details", 3, "A2?")
	say(history.RoleHuman, "details", 3, "yes")
	say(history.RoleHuman, "plan", 4, "wait")
	say(history.RoleAssistant, "details", 5, "well?")
	s.Now = history.Position{State: "details", Step: 5, Visit: 3}
	s.Talk.Left = map[string]int64{"details": 7, "plan": 8}
	s.Attempts = map[string][]history.Attempt{
		"details": {{Visit: 1, Outcome: machine.Fail, Problem: machine.Problem{Kind: "none_found", Message: "no A1"}}},
		"plan":    {{Visit: 1, Outcome: machine.Rejected}},
	}
	return s
}

func TestMessagesThatAreShown(t *testing.T) {
	for _, tc := range []struct {
		name string
		sel  machine.MessageSelect
		want string
	}{
		{"own is the default", machine.MessageSelect{}, "wait well?"},
		{"own", machine.MessageSelect{Mode: machine.MessagesOwn}, "wait well?"},
		{"none", machine.MessageSelect{Mode: machine.MessagesNone}, ""},
		{"all", machine.MessageSelect{Mode: machine.MessagesAll}, "start which? A1 this? no, A2 A2? yes wait well?"},
		{"the last of all", machine.MessageSelect{Mode: machine.MessagesAll, Last: 2}, "wait well?"},
		{"more than there are", machine.MessageSelect{Mode: machine.MessagesAll, Last: 100}, "start which? A1 this? no, A2 A2? yes wait well?"},
		{"another state's and own", machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"plan"}}, "this? no, A2 wait well?"},
		{"this state's of all visits", machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"details"}}, "which? A1 A2? yes wait well?"},
		{"the last of some states", machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"plan", "details"}, Last: 3}, "yes wait well?"},
		{"a state that never was", machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"nowhere"}}, "wait well?"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			state := &machine.State{Name: "details", View: machine.View{Messages: tc.sel}}
			var texts []string
			for _, msg := range view.Build(state, talk(), nil).Messages {
				texts = append(texts, msg.Text)
			}
			if got := strings.Join(texts, " "); got != tc.want {
				t.Errorf("shown %q, want %q", got, tc.want)
			}
		})
	}
}

func TestFirstVisitSeesWhatTheHumanSaidSinceTheRunBegan(t *testing.T) {
	s := talk()
	s.Now = history.Position{State: "new", Step: 6, Visit: 1}
	var texts []string
	for _, msg := range view.Build(&machine.State{Name: "new"}, s, nil).Messages {
		texts = append(texts, msg.Text)
	}
	if got, want := strings.Join(texts, " "), "start A1 no, A2 yes wait"; got != want {
		t.Errorf("shown %q, want %q", got, want)
	}
}

// The view is closed: what is not named is not shown.
func TestOnlyNamedVariablesAreShown(t *testing.T) {
	state := &machine.State{Name: "details", Reads: []string{"card", "order", "wish"}, Shows: []string{"order", "remark", "unset", "wish"}}
	values := machine.Values{"order": "A1", "wish": "refund", "card": "4111", "remark": "", "unset": nil, "other": 1}
	v := view.Build(state, talk(), values)
	if got, want := fmt.Sprint(v.Vars), "[{order A1} {remark } {wish refund}]"; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}

func TestAttemptsAreShownWhereAskedFor(t *testing.T) {
	s := talk()
	state := &machine.State{Name: "details"}
	if v := view.Build(state, s, nil); v.Attempts != nil {
		t.Errorf("shown %v", v.Attempts)
	}
	state.View.Attempts = true
	v := view.Build(state, s, nil)
	if len(v.Attempts) != 1 || v.Attempts[0].Problem.Message != "no A1" {
		t.Fatalf("shown %v", v.Attempts)
	}
	v.Attempts[0].Problem.Message = "changed"
	if s.Attempts["details"][0].Problem.Message != "no A1" {
		t.Error("the view shares its attempts with the snapshot")
	}
}
