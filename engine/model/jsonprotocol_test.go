package model_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/model"
)

var (
	lookup = model.Tool{Name: "lookup", Description: "Look up.\nOnce.", Parameters: json.RawMessage(`{"type": "object", "properties": {"id": {"type": "string"}}}`)}
	finish = model.Tool{Name: model.FinishTool, Description: "End.", Parameters: json.RawMessage(`{"type":"object","properties":{"outcome":{"enum":["ok"]}}}`)}
)

// Both protocols give the same responses, so these are what a model with tool calls gives.
func TestJSONProtocolReads(t *testing.T) {
	call := func(text, name, args string) model.Message {
		return model.Message{Role: model.Assistant, Text: text, Calls: []model.Call{{Name: name, Args: args}}}
	}
	said := func(text string) model.Message { return model.Message{Role: model.Assistant, Text: text} }
	for _, test := range []struct {
		name, text string
		tools      []model.Tool
		want       model.Message
		thought    string
		problem    string
	}{
		{name: "call", text: `{"thought":"I look","action":"use_tool","tool_name":"lookup","tool_args":{"id": 9007199254740993}}`,
			want: call("I look", "lookup", `{"id":9007199254740993}`)},
		{name: "fence, case, blanks", text: "```json\n{\"thought\":\"x\",\"action\":\" Use_Tool\",\"tool_name\":\"lookup \",\"tool_args\":{}}\n```", want: call("x", "lookup", "{}")},
		{name: "arguments as text", text: `{"action":"use_tool","tool_name":"lookup","tool_args":"{\"id\":\"A<1>\"}"}`, want: call("", "lookup", `{"id":"A<1>"}`)},
		{name: "no arguments", text: `{"thought":null,"action":"use_tool","tool_name":"lookup"}`, want: call("", "lookup", "")},
		{name: "null for arguments", text: `{"action":"use_tool","tool_name":"lookup","tool_args":null,"final_answer":null}`, want: call("", "lookup", "")},
		{name: "another tool", text: `{"action":"use_tool","tool_name":"nothing_of_ours"}`, want: call("", "nothing_of_ours", "")},
		{name: "answer in text", text: `{"thought":"it is so","action":"finish","final_answer":"Done."}`, want: said("Done."), thought: "it is so"},
		{name: "answer object", text: `{"action":"finish","final_answer":{"b": 1, "a": 2}}`, want: said(`{"b":1,"a":2}`)},
		{name: "answer object by the tool", text: `{"thought":"so","action":"finish","final_answer":{"outcome": "ok"}}`, tools: []model.Tool{lookup, finish}, want: call("so", "finish", `{"outcome":"ok"}`)},
		{name: "no object", text: "I would look it up.", want: said("I would look it up."), problem: "no JSON object"},
		{name: "cut", text: `{"thought":"I`, want: said(`{"thought":"I`), problem: "ends too early"},
		{name: "no action", text: `{"outcome":"ok"}`, want: said(`{"outcome":"ok"}`), problem: "has no action"},
		{name: "another action", text: `{"action":"lookup"}`, want: said(`{"action":"lookup"}`), problem: `not "lookup"`},
		{name: "no tool name", text: `{"action":"use_tool","tool_name":" "}`, want: said(`{"action":"use_tool","tool_name":" "}`), problem: "tool_name"},
		{name: "no answer", text: `{"action":"finish"}`, want: said(`{"action":"finish"}`), problem: "final_answer"},
		{name: "null for an answer", text: `{"action":"finish","final_answer":null}`, tools: []model.Tool{finish}, want: said(`{"action":"finish","final_answer":null}`), problem: "final_answer"},
		{name: "two actions", text: `{"action":"finish","final_answer":1} {"action":"finish","final_answer":2}`,
			want: said(`{"action":"finish","final_answer":1} {"action":"finish","final_answer":2}`), problem: "two different"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.tools == nil {
				test.tools = []model.Tool{lookup}
			}
			var streamed string
			f := &fake{answer: model.Response{Message: model.Message{Role: model.Assistant, Text: test.text}, Finish: model.Length}}
			got, err := (&model.JSONProtocol{Model: f}).Generate(t.Context(), model.Request{Tools: test.tools, Stream: func(s string) { streamed += s }})
			if err != nil || !reflect.DeepEqual(got.Message, test.want) || got.Thought != test.thought || got.Finish != model.Length {
				t.Errorf("gave %+v, %v\nwant %+v", got, err, test.want)
			}
			if (got.Problem == "") != (test.problem == "") || !strings.Contains(got.Problem, test.problem) {
				t.Errorf("the problem is %q, want %q", got.Problem, test.problem)
			}
			if streamed != test.want.Text {
				t.Errorf("streamed %q", streamed)
			}
			if len(got.Message.Calls) > 0 && got.Why() != test.want.Text || len(got.Message.Calls) == 0 && got.Why() != test.thought {
				t.Errorf("the reason is %q", got.Why())
			}
		})
	}
}

func TestJSONProtocolKeepsReasoningApart(t *testing.T) {
	f := &fake{answer: model.Response{Message: model.Message{Text: `<think>draft {"action":"finish"}</think>{"action":"finish","final_answer":"x"}`}}}
	got, err := (&model.JSONProtocol{Model: f}).Generate(t.Context(), model.Request{Answer: json.RawMessage(`{}`)})
	if err != nil || got.Message.Text != "x" || got.Message.Reasoning != `draft {"action":"finish"}` {
		t.Errorf("gave %+v, %v", got, err)
	}
}

// A model that makes a real call all the same is taken at its word.
func TestJSONProtocolTakesRealCalls(t *testing.T) {
	m := model.Message{Role: model.Assistant, Text: "so", Calls: []model.Call{{ID: "c", Name: "lookup", Args: "{}"}}}
	got, err := (&model.JSONProtocol{Model: &fake{answer: model.Response{Message: m}}}).Generate(t.Context(), model.Request{Tools: []model.Tool{lookup}})
	if err != nil || !reflect.DeepEqual(got.Message, m) || got.Problem != "" {
		t.Errorf("gave %+v, %v", got, err)
	}
}

func TestJSONProtocolSends(t *testing.T) {
	history := []model.Message{
		{Role: model.System, Text: "Be brief."},
		{Role: model.User, Text: "Task"},
		{Role: model.User, Text: "Go on"},
		{Role: model.Assistant, Text: "I look \"twice\"", Reasoning: "r", Calls: []model.Call{
			{ID: "1", Name: "lookup", Args: ` {"id": "<A>"} `}, {ID: "2", Name: "lookup", Args: "no JSON"}, {ID: "3", Name: "finish"}}},
		{Role: model.ToolRole, CallID: "1", Text: "found"},
		{Role: model.ToolRole, CallID: "2", Text: "bad"},
		{Role: model.ToolRole, CallID: "3", Text: "finish alone"},
		{Role: model.User, Text: "And?"},
	}
	before := append([]model.Message{}, history...)
	f := &fake{answer: model.Response{Message: model.Message{Text: `{"action":"finish","final_answer":{}}`}}}
	req := model.Request{Messages: history, Tools: []model.Tool{lookup, finish}, NoSchema: true}
	if _, err := (&model.JSONProtocol{Model: f}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(history, before) {
		t.Error("the caller's messages were changed")
	}
	got := f.asked[0]
	want := []model.Message{
		{Role: model.System, Text: `Be brief.

Answer with exactly one JSON object and nothing else.
To use a tool, one at a time:
{"thought": "one sentence: why you do this", "action": "use_tool", "tool_name": "name of the tool", "tool_args": {}}
To give your final answer:
{"thought": "one sentence: why this is the answer", "action": "finish", "final_answer": "your answer"}
final_answer is a JSON value of this JSON Schema: {"type":"object","properties":{"outcome":{"enum":["ok"]}}}
The result of a tool is the next message. The tools, each with the JSON Schema of its tool_args:
- lookup: Look up.
  Once.
  {"type":"object","properties":{"id":{"type":"string"}}}`},
		{Role: model.User, Text: "Task\n\nGo on"},
		{Role: model.Assistant, Reasoning: "r", Text: `{"thought": "I look \"twice\"", "action": "use_tool", "tool_name": "lookup", "tool_args": {"id":"<A>"}}`},
		{Role: model.User, Text: "Result of lookup:\nfound"},
		{Role: model.Assistant, Text: `{"thought": "", "action": "use_tool", "tool_name": "lookup", "tool_args": "no JSON"}`},
		{Role: model.User, Text: "Result of lookup:\nbad"},
		{Role: model.Assistant, Text: `{"thought": "", "action": "finish", "final_answer": {}}`},
		{Role: model.User, Text: "Result of finish:\nfinish alone\n\nAnd?"},
	}
	for i := range max(len(want), len(got.Messages)) {
		if i >= len(want) || i >= len(got.Messages) || !reflect.DeepEqual(got.Messages[i], want[i]) {
			t.Fatalf("message %d differs; sent were\n%+v", i, got.Messages)
		}
	}
	if got.Tools != nil || !got.NoSchema || got.Stream != nil {
		t.Errorf("sent with %+v", got)
	}
	schema := `{"type":"object","properties":{"thought":{"type":"string"},"action":{"type":"string","enum":["use_tool","finish"]},` +
		`"tool_name":{"type":"string","enum":["lookup"]},"tool_args":{"type":"object"},"final_answer":{"type":"object","properties":{"outcome":{"enum":["ok"]}}}},"required":["thought","action"]}`
	if string(got.Answer) != schema {
		t.Errorf("the schema is %s", got.Answer)
	}
}

// Without tools only the answer is asked for, and without a schema for it nothing is.
func TestJSONProtocolWithoutTools(t *testing.T) {
	f := &fake{answer: model.Response{Message: model.Message{Text: "Hello."}}}
	p := &model.JSONProtocol{Model: f}
	got, err := p.Generate(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Text: "Hi"}}})
	if err != nil || got.Message.Text != "Hello." || got.Problem != "" || len(f.asked[0].Messages) != 1 || f.asked[0].Answer != nil {
		t.Errorf("gave %+v, %v for %+v", got, err, f.asked[0])
	}
	f.answer.Message.Text = `{"thought":"t","action":"finish","final_answer":{"intent":"x"}}`
	got, err = p.Generate(t.Context(), model.Request{Messages: []model.Message{{Role: model.User, Text: "Hi"}}, Answer: json.RawMessage(`{"type":"object"}`)})
	if err != nil || got.Message.Text != `{"intent":"x"}` {
		t.Errorf("gave %+v, %v", got, err)
	}
	if sent := f.asked[1]; len(sent.Messages) != 2 || strings.Contains(sent.Messages[0].Text, "use_tool") || strings.Contains(string(sent.Answer), "tool_name") {
		t.Errorf("sent %+v with %s", sent.Messages, sent.Answer)
	}
}
