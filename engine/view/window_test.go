package view_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/engine/view"
	"flowctl/flows/machine"
)

// randomTalk draws a history: what a human and an assistant say, calls with and without results, also several at once.
func randomTalk(t *rapid.T) []history.Message {
	var out []history.Message
	add := func(m history.Message) {
		m.N = int64(len(out) + 1)
		m.Seq, m.State, m.Step, m.Loaded = m.N, "work", 1, true
		out = append(out, m)
	}
	text := rapid.OneOf(rapid.StringN(0, 40, -1), rapid.Just("订单在哪里？请尽快回复。"),
		rapid.Map(rapid.IntRange(1, 600), func(n int) string { return strings.Repeat("word 😀 ", n) }))
	for i := range rapid.IntRange(0, 14).Draw(t, "turns") {
		switch rapid.SampledFrom([]string{"human", "said", "calls"}).Draw(t, "what") {
		case "human":
			add(history.Message{Role: history.RoleHuman, Content: history.Content{Text: text.Draw(t, "text")}})
		case "said":
			add(history.Message{Role: history.RoleAssistant, Content: history.Content{Text: text.Draw(t, "text")}})
		default:
			n := rapid.IntRange(1, 3).Draw(t, "calls")
			made := make([]history.ModelCall, n)
			for j := range made {
				args, _ := json.Marshal(map[string]string{"text": text.Draw(t, "argument")})
				made[j] = history.ModelCall{ID: fmt.Sprintf("c%d_%d", i, j), Tool: "look", Args: string(args)}
			}
			add(history.Message{Role: history.RoleAssistant, Calls: n, Content: history.Content{Text: text.Draw(t, "thought"), Made: made}})
			for _, c := range made {
				if rapid.IntRange(0, 4).Draw(t, "answered") > 0 {
					add(history.Message{Role: history.RoleTool, CallID: c.ID, Content: history.Content{Text: text.Draw(t, "result")}})
				}
			}
		}
	}
	return out
}

// wantLegal checks a list as endpoints do.
func wantLegal(t *rapid.T, messages []model.Message) {
	open, seen := map[string]bool{}, map[string]bool{}
	for i, m := range messages {
		if m.Role != model.ToolRole && len(open) > 0 {
			t.Fatalf("message %d comes before the results of %v", i, open)
		}
		switch {
		case m.Role == model.ToolRole:
			if !open[m.CallID] {
				t.Fatalf("message %d is the result of no call", i)
			}
			delete(open, m.CallID)
			if m.Text == "" {
				t.Fatalf("message %d is an empty result", i)
			}
		case strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0:
			t.Fatalf("message %d says nothing", i)
		}
		for _, c := range m.Calls {
			if seen[c.ID] {
				t.Fatalf("the id %s is there twice", c.ID)
			}
			open[c.ID], seen[c.ID] = true, true
			if !json.Valid([]byte(c.Args)) {
				t.Fatalf("the arguments %q are no JSON", c.Args)
			}
		}
	}
	if len(open) > 0 {
		t.Fatalf("the calls %v have no result", open)
	}
}

func TestWhatFitsIsLegalAndWithinTheBudget(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		talk := randomTalk(t)
		w := view.Window{Counter: tokens.For(""), Limit: rapid.Int64Range(0, 4000).Draw(t, "limit"), Flat: rapid.Bool().Draw(t, "flat")}
		if rapid.Bool().Draw(t, "summary") && len(talk) > 2 {
			w.Summary, w.Covers = "Summary: they spoke.", []history.Range{{From: 1, To: 2}}
		}
		fitted, err := view.Fit(talk, w)
		var full *view.BudgetError
		if errors.As(err, &full) {
			if full.Need <= full.Limit || full.Layer != "recent" {
				t.Fatalf("refused although it fits: %v", full)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		sent := view.Messages(view.Parts{Task: "Do it.", Summary: fitted.Summary, Talk: fitted.Messages, Flat: w.Flat, GoOn: "Go on."})
		wantLegal(t, sent)
		cost := int64(0)
		for _, m := range sent[1:] {
			if m.Text == "Go on." {
				continue
			}
			cost += tokens.Message(w.Counter, m, false)
		}
		if cost > w.Limit {
			t.Fatalf("it takes %d tokens, and there is room for %d", cost, w.Limit)
		}
		covered := len(fitted.Covers) > 0
		if n := lastHuman(talk); n > 0 && !(covered && n <= 2) &&
			!slices.ContainsFunc(fitted.Messages, func(m history.Message) bool { return m.N == n }) {
			t.Fatalf("the human's last message (%d) is gone", n)
		}
		if got := len(fitted.Messages) + len(fitted.Left); got != len(talk) && !covered || covered && got != len(talk)-2 {
			t.Fatalf("of %d messages %d are sent and %d left", len(talk), len(fitted.Messages), len(fitted.Left))
		}
	})
}

func lastHuman(talk []history.Message) int64 {
	for i := len(talk) - 1; i >= 0; i-- {
		if talk[i].Role == history.RoleHuman && strings.TrimSpace(talk[i].Text) != "" {
			return talk[i].N
		}
	}
	return 0
}

// A window that is too small for what may not go is an error with numbers; one that is only just large enough is none.
func TestOneHugeMessageIsCutInside(t *testing.T) {
	c := tokens.For("")
	huge := strings.Repeat("0123456789 ", 5000)
	talk := []history.Message{
		{N: 1, Role: history.RoleHuman, Content: history.Content{Text: "look it up"}, Loaded: true},
		{N: 2, Role: history.RoleAssistant, Calls: 1, Content: history.Content{Made: []history.ModelCall{{ID: "a", Tool: "look", Args: "{}"}}}, Loaded: true},
		{N: 3, Role: history.RoleTool, CallID: "a", Content: history.Content{Text: huge}, Loaded: true},
	}
	fitted, err := view.Fit(talk, view.Window{Counter: c, Limit: 2000})
	if err != nil || len(fitted.Left) > 0 || len(fitted.Cut) != 1 || fitted.Cut[0].N != 3 {
		t.Fatalf("%+v, %v", fitted.Cut, err)
	}
	if got := fitted.Messages[2].Text; !strings.Contains(got, "tokens left out") || c.Count(got) < 1500 {
		t.Errorf("the result is cut to %d tokens: %.80s", c.Count(got), got)
	}
	_, err = view.Fit(talk, view.Window{Counter: c, Limit: 5})
	if err == nil || !strings.Contains(err.Error(), "5") || !strings.Contains(err.Error(), "recent") {
		t.Errorf("got %v", err)
	}
}

// The task keeps what is to be done and the names of what is known; what was remembered and tried goes first.
func TestTheTaskIsFitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := tokens.For("")
		task := view.Task{Text: "Answer the question."}
		for i := range rapid.IntRange(0, 4).Draw(t, "vars") {
			task.Vars = append(task.Vars, view.Var{Name: fmt.Sprint("v", i), Value: strings.Repeat("text ", rapid.IntRange(0, 900).Draw(t, "size"))})
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "memories") {
			task.Memory = append(task.Memory, view.Var{Name: fmt.Sprint("m", i), Value: machine.Values{"likes": "tea"}})
		}
		for range rapid.IntRange(0, 3).Draw(t, "attempts") {
			task.Attempts = append(task.Attempts, history.Attempt{Visit: 1, Outcome: machine.Fail, Problem: machine.Problem{Kind: "x", Message: "no"}})
		}
		limit := rapid.Int64Range(0, 1500).Draw(t, "limit")
		text, err := task.Fit(view.Headings{Values: "Known:", Memory: "Remembered:", Attempts: "Tried:"}, c, limit)
		var full *view.BudgetError
		if errors.As(err, &full) {
			if full.Need <= limit || full.Layer != "task" {
				t.Fatalf("refused although it fits: %v", full)
			}
			return
		}
		if err != nil || c.Count(text) > limit {
			t.Fatalf("%d tokens of %d, %v", c.Count(text), limit, err)
		}
		if !strings.HasPrefix(text, task.Text) {
			t.Fatalf("the task is %.60q", text)
		}
		for _, v := range task.Vars {
			if !strings.Contains(text, "- "+v.Name+": ") {
				t.Fatalf("%s is gone", v.Name)
			}
		}
	})
}
