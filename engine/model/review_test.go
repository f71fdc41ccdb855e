package model_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/model"
)

// An object without the protocol's envelope is the answer where an object is wanted, and where plain text is wanted it is
// not: then it may as well be the arguments of a call.
func TestJSONProtocolTakesABareAnswer(t *testing.T) {
	object := json.RawMessage(`{"type":"object"}`)
	for _, test := range []struct {
		name, text string
		req        model.Request
		want       string // the answer; "": refused
		problem    string
	}{
		{"by finish", `{"outcome": "ok"}`, model.Request{Tools: []model.Tool{lookup, finish}}, `{"outcome": "ok"}`, ""},
		{"by the schema", `{"outcome": "ok"}`, model.Request{Answer: object}, `{"outcome": "ok"}`, ""},
		{"with a thought", `{"thought": "so", "outcome": "ok"}`, model.Request{Answer: object}, `{"thought": "so", "outcome": "ok"}`, ""},
		{"in a fence", "```json\n{\"outcome\": \"ok\"}\n```", model.Request{Answer: object}, `{"outcome": "ok"}`, ""},
		{"empty", `{}`, model.Request{Answer: object}, `{}`, ""},
		{"no object is wanted", `{"id": "A1"}`, model.Request{Tools: []model.Tool{lookup}}, "", "has no action"},
		{"half an envelope", `{"tool_name": "lookup", "tool_args": {}}`, model.Request{Tools: []model.Tool{lookup, finish}}, "", "has no action"},
		{"an answer without an action", `{"final_answer": {"outcome": "ok"}}`, model.Request{Answer: object}, "", "has no action"},
		{"another action", `{"action": "ok"}`, model.Request{Answer: object}, "", `not "ok"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := &fake{answer: model.Response{Message: model.Message{Role: model.Assistant, Text: test.text}}}
			got, err := (&model.JSONProtocol{Model: f}).Generate(t.Context(), test.req)
			if err != nil || !strings.Contains(got.Problem, test.problem) || (got.Problem == "") != (test.want != "") {
				t.Fatalf("gave %+v, %v", got, err)
			}
			answer := got.Message.Text
			switch {
			case test.want == "":
				answer = ""
				if got.Message.Text != test.text || len(got.Message.Calls) > 0 {
					t.Errorf("what is refused comes as %+v", got.Message)
				}
			case len(test.req.Tools) > 0:
				if len(got.Message.Calls) != 1 || got.Message.Calls[0].Name != model.FinishTool {
					t.Fatalf("gave %+v", got.Message)
				}
				answer = got.Message.Calls[0].Args
			}
			if answer != test.want {
				t.Errorf("the answer is %s, want %s", answer, test.want)
			}
		})
	}
}

// What an assistant said before is sent in the form that is wanted of it now; where plain text is wanted, as it was.
func TestJSONProtocolSendsEarlierAnswersAsObjects(t *testing.T) {
	for text, want := range map[string]string{
		"Hello \"you\" & all.":                   `{"thought": "", "action": "finish", "final_answer": "Hello \"you\" & all."}`,
		` {"outcome": "ok"} `:                    `{"thought": "", "action": "finish", "final_answer": {"outcome":"ok"}}`,
		`{"outcome": `:                           `{"thought": "", "action": "finish", "final_answer": "{\"outcome\": "}`,
		`{"action":"finish","final_answer":"x"}`: `{"action":"finish","final_answer":"x"}`,
		`{"action":"dance"}`:                     `{"action":"dance"}`,
		`["a"]`:                                  `{"thought": "", "action": "finish", "final_answer": "[\"a\"]"}`,
	} {
		messages := []model.Message{{Role: model.User, Text: "Hi"}, {Role: model.Assistant, Text: text}, {Role: model.User, Text: "And?"}}
		p := &model.JSONProtocol{}
		for name, req := range map[string]model.Request{"tools": {Tools: []model.Tool{lookup}}, "answer": {Answer: json.RawMessage(`{"type":"object"}`)}} {
			req.Messages = messages
			if got := p.Sent(req).Messages[2].Text; got != want {
				t.Errorf("%s: %s is sent as %s, want %s", name, text, got, want)
			}
		}
		if got := p.Sent(model.Request{Messages: messages}).Messages[1].Text; got != text {
			t.Errorf("in plain text %s is sent as %s", text, got)
		}
		if messages[1].Text != text {
			t.Fatal("the caller's messages were changed")
		}
	}
}

// How to answer is said once: in the protocol's words where it has some, else in those of the request.
func TestHowToAnswerIsSaidOnce(t *testing.T) {
	const howTo = "Answer in plain text."
	messages := []model.Message{{Role: model.System, Text: "Be brief."}, {Role: model.User, Text: "Hi"}}
	native := model.Request{Messages: messages, HowTo: howTo}.Native()
	if len(native) != 2 || native[0].Text != "Be brief.\n\n"+howTo || messages[0].Text != "Be brief." {
		t.Errorf("natively it is %+v, of %+v", native, messages)
	}
	bare := model.Request{Messages: messages[1:], HowTo: howTo}.Native()
	if want := (model.Message{Role: model.System, Text: howTo}); len(bare) != 2 || !reflect.DeepEqual(bare[0], want) {
		t.Errorf("without a system text it is %+v", bare)
	}
	p := &model.JSONProtocol{}
	sent := p.Sent(model.Request{Messages: messages, HowTo: howTo, Tools: []model.Tool{lookup}})
	if system := sent.Native()[0].Text; strings.Contains(system, howTo) || !strings.HasPrefix(system, "Be brief.\n\nAnswer with exactly one JSON object") {
		t.Errorf("with tools it is %s", system)
	}
	if system := p.Sent(model.Request{Messages: messages, HowTo: howTo}).Native()[0].Text; system != "Be brief.\n\n"+howTo {
		t.Errorf("in plain text it is %s", system)
	}
}

// Who answered, and in which form it was asked, stands in responses and in errors.
func TestFallbackSaysWhoAnswered(t *testing.T) {
	down := func() *model.Retry {
		return &model.Retry{Model: &fake{errs: []error{failed(model.Server, 0), failed(model.Server, 0)}}, Attempts: 2, AtOnce: true}
	}
	answers := &model.JSONProtocol{Model: &fake{answer: model.Response{Message: model.Message{Text: `{"action":"finish","final_answer":"so"}`}}}}
	var told []string
	req := model.Request{Tools: []model.Tool{lookup}, Failed: func(a model.Attempt) { told = append(told, a.Model+" "+a.Next) }}
	chain := &model.Fallback{Models: []model.Named{{Name: "a", Model: down()}, {Name: "b", Model: down()}, {Name: "c", Model: answers}}}
	resp, err := chain.Generate(t.Context(), req)
	if err != nil || resp.By != "c" || !resp.InText || resp.Message.Text != "so" {
		t.Errorf("gave %+v, %v", resp, err)
	}
	// Each fails once, is tried again, and then gives way to the next.
	if want := []string{" ", " b", "b ", "b c"}; !reflect.DeepEqual(told, want) {
		t.Errorf("told of %q, want %q", told, want)
	}
	first := &model.Fallback{Models: []model.Named{{Name: "a", Model: &fake{}}, {Name: "b", Model: down()}}}
	if resp, err := first.Generate(t.Context(), req); err != nil || resp.By != "" || resp.InText || len(resp.Notes) > 0 {
		t.Errorf("the first of a chain gave %+v, %v", resp, err)
	}
	blocked := failed(model.Blocked, 0)
	_, err = (&model.JSONProtocol{Model: &fake{errs: []error{blocked}}}).Generate(t.Context(), req)
	var e, own *model.Error
	if !errors.As(err, &e) || !e.InText || e.Class != model.Blocked {
		t.Errorf("gave %v", err)
	}
	if errors.As(blocked, &own) && own.InText {
		t.Error("the model's own error was changed")
	}
}
