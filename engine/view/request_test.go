package view_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/view"
)

// illegal says what is wrong with a list of messages, "" if it is legal.
func illegal(messages []model.Message) string {
	ids := map[string]bool{}
	var open []string
	spoken := false
	for i, m := range messages {
		if len(open) > 0 && (m.Role != model.ToolRole || m.CallID != open[0]) {
			return fmt.Sprintf("message %d: a result of %s is due, this is %+v", i, open[0], m)
		}
		switch {
		case m.Role == model.System && i > 0:
			return fmt.Sprintf("message %d: the system speaks in the middle", i)
		case m.Role == model.ToolRole && len(open) == 0:
			return fmt.Sprintf("message %d: a result without its call", i)
		case m.Role == model.Assistant && !spoken:
			return fmt.Sprintf("message %d: the assistant speaks first", i)
		case strings.TrimSpace(m.Text) == "" && len(m.Calls) == 0:
			return fmt.Sprintf("message %d of %s says nothing", i, m.Role)
		case len(m.Calls) > 0 && m.Role != model.Assistant:
			return fmt.Sprintf("message %d: calls of %s", i, m.Role)
		}
		spoken = spoken || m.Role == model.User
		if m.Role == model.ToolRole {
			open = open[1:]
		}
		for _, c := range m.Calls {
			if c.ID == "" || ids[c.ID] {
				return fmt.Sprintf("message %d: the id %q is not unique", i, c.ID)
			}
			ids[c.ID] = true
			open = append(open, c.ID)
		}
	}
	switch last := messages[len(messages)-1]; {
	case len(open) > 0:
		return fmt.Sprintf("the calls %v have no result", open)
	case last.Role != model.User && last.Role != model.ToolRole:
		return fmt.Sprintf("%s speaks last", last.Role)
	}
	return ""
}

var texts = rapid.SampledFrom([]string{"", " ", "\n", "a", "two words", "好"})

// anyTalk draws a history: calls with any of their results, results of any call, all of it in any order.
func anyTalk(t *rapid.T) []history.Message {
	var out []history.Message
	calls := 0
	for i := range rapid.IntRange(0, 12).Draw(t, "messages") {
		msg := history.Message{N: int64(i + 1), Loaded: true, Content: history.Content{Text: texts.Draw(t, "text")}}
		switch rapid.SampledFrom([]history.Role{history.RoleHuman, history.RoleAssistant, history.RoleAssistant, history.RoleTool, history.RoleTool}).Draw(t, "role") {
		case history.RoleHuman:
			msg.Role = history.RoleHuman
		case history.RoleTool:
			msg.Role = history.RoleTool
			msg.CallID = fmt.Sprint("call", rapid.IntRange(0, calls+1).Draw(t, "of"))
		default:
			msg.Role = history.RoleAssistant
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				msg.Made = append(msg.Made, history.ModelCall{ID: fmt.Sprint("call", calls), Tool: rapid.SampledFrom([]string{"look", ""}).Draw(t, "tool"),
					Args: rapid.SampledFrom([]string{"", "{}", "{"}).Draw(t, "args")})
				calls++
			}
			msg.Calls = len(msg.Made)
			msg.Remark = texts.Draw(t, "remark")
		}
		out = append(out, msg)
	}
	return out
}

// anyExamples draws exchanges as a state's examples are, whose texts may have come out empty.
func anyExamples(t *rapid.T) []model.Message {
	var out []model.Message
	for i := range rapid.IntRange(0, 2).Draw(t, "examples") {
		out = append(out, model.Message{Role: model.User, Text: texts.Draw(t, "user")})
		made := model.Message{Role: model.Assistant}
		var results []model.Message
		for j := range rapid.IntRange(0, 2).Draw(t, "calls") {
			id := fmt.Sprint("example", i, j)
			made.Calls = append(made.Calls, model.Call{ID: id, Name: "look", Args: "{}"})
			results = append(results, model.Message{Role: model.ToolRole, CallID: id, Text: texts.Draw(t, "result")})
		}
		if len(made.Calls) > 0 {
			out = append(append(out, made), results...)
		}
		out = append(out, model.Message{Role: model.Assistant, Text: texts.Draw(t, "assistant")})
	}
	return out
}

func TestMessagesAreLegalWhateverGoesIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := view.Parts{System: texts.Draw(t, "system"), Task: texts.Draw(t, "task"), Examples: anyExamples(t), Summary: texts.Draw(t, "summary"),
			Talk: anyTalk(t), GoOn: "Go on.", Flat: rapid.Bool().Draw(t, "flat")}
		for range rapid.IntRange(0, 3).Draw(t, "again") {
			p.Again = append(p.Again, history.ModelCalled{Text: texts.Draw(t, "answer"), Wrong: texts.Draw(t, "wrong"),
				Finish: rapid.SampledFrom([]string{"stop", "length"}).Draw(t, "finish")})
		}
		got := view.Messages(p)
		if problem := illegal(got); problem != "" {
			t.Fatalf("%s\n%+v", problem, got)
		}
		for _, m := range got {
			if p.Flat && (len(m.Calls) > 0 || m.Role == model.ToolRole) {
				t.Fatalf("calls in a request that offers no tools: %+v", m)
			}
		}
		if again := view.Messages(p); fmt.Sprint(again) != fmt.Sprint(got) {
			t.Fatal("the same parts give other messages the second time")
		}
	})
}

// A call without result gets one that says so, and of two results the first counts.
func TestCallsGetTheirOneResult(t *testing.T) {
	made := func(ids ...string) history.Message {
		msg := history.Message{Role: history.RoleAssistant, Calls: len(ids)}
		for _, id := range ids {
			msg.Made = append(msg.Made, history.ModelCall{ID: id, Tool: "look", Args: "{}"})
		}
		return msg
	}
	result := func(id, text string) history.Message {
		return history.Message{Role: history.RoleTool, CallID: id, Content: history.Content{Text: text}}
	}
	human := history.Message{Role: history.RoleHuman, Content: history.Content{Text: "well?"}}
	talk := []history.Message{result("z", "of nothing"), made("a", "b", "c"), result("b", "B"), human, result("a", "A"), result("a", "A again")}
	for flat, want := range map[bool]string{
		false: "user: Go.|assistant: |tool: A|tool: B|tool: " + view.Interrupted + "|user: well?",
		true: "user: Go.|assistant: Called look {}\nCalled look {}\nCalled look {}|user: Result of look:\nA\n\nResult of look:\nB\n\nResult of look:\n" +
			view.Interrupted + "|user: well?",
	} {
		var lines []string
		for _, m := range view.Messages(view.Parts{Task: "Go.", Talk: talk, GoOn: "Go on.", Flat: flat}) {
			lines = append(lines, string(m.Role)+": "+m.Text)
		}
		if got := strings.Join(lines, "|"); got != want {
			t.Errorf("flat %v: %q, want %q", flat, got, want)
		}
	}
}
