package tokens

import (
	"encoding/json"
	"strings"
	"testing"

	"flowctl/engine/model"
)

func TestMessage(t *testing.T) {
	for _, tc := range []struct {
		name          string
		message       model.Message
		reasoningSent bool
		want          int64
	}{
		{"empty", model.Message{Role: model.User}, false, 4},
		{"text", model.Message{Role: model.User, Text: "12345"}, false, 4 + 5},
		{"reasoning that stays", model.Message{Role: model.Assistant, Text: "12345", Reasoning: "1234567"}, false, 4 + 5},
		{"reasoning that is sent", model.Message{Role: model.Assistant, Text: "12345", Reasoning: "1234567"}, true, 4 + 5 + 7},
		{"a result", model.Message{Role: model.ToolRole, Text: "12345", CallID: "3.0"}, false, 4 + 5 + 3},
		{"calls", model.Message{Role: model.Assistant, Text: "why", Calls: []model.Call{
			{ID: "3.0", Name: "look", Args: `{"a":1}`}, {ID: "3.1", Name: "list"}}}, false, 4 + 3 + (8 + 3 + 4 + 7) + (8 + 3 + 4 + 2)},
	} {
		if got := Message(runes{}, tc.message, tc.reasoningSent); got != tc.want {
			t.Errorf("%s: counted %d, want %d", tc.name, got, tc.want)
		}
	}
}

func TestTools(t *testing.T) {
	if got := Tools(runes{}, nil); got != 0 {
		t.Errorf("no tools count %d", got)
	}
	tools := []model.Tool{
		{Name: "look", Description: "Looks.", Parameters: json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {}\n}")},
		{Name: "list"},
		{Name: "odd", Parameters: json.RawMessage(`{"not`)},
	}
	want := int64(8 + (12 + 4 + 6 + 33) + (12 + 4 + 33) + (12 + 3 + 5))
	if got := Tools(runes{}, tools); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

func TestRequest(t *testing.T) {
	r := model.Request{Messages: []model.Message{{Role: model.System, Text: "12345"}, {Role: model.Assistant, Text: "123", Reasoning: "12"}}}
	if got, want := Request(runes{}, r, false), int64(3+4+5+4+3); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
	if got, want := Request(runes{}, r, true), int64(3+4+5+4+3+2); got != want {
		t.Errorf("with reasoning: counted %d, want %d", got, want)
	}
	plain := Request(runes{}, r, false)
	r.Tools = []model.Tool{{Name: "look"}}
	if got, want := Request(runes{}, r, false), plain+Tools(runes{}, r.Tools); got != want {
		t.Errorf("with a tool: counted %d, want %d", got, want)
	}
	r.Tools, r.Answer = nil, json.RawMessage(`{ "type": "object" }`)
	if got, want := Request(runes{}, r, false), plain+12+17; got != want {
		t.Errorf("with a schema: counted %d, want %d", got, want)
	}
	if r.NoSchema = true; Request(runes{}, r, false) != plain {
		t.Error("a schema that is not sent counts")
	}
}

// OpenAI's guide to counting gives 3 tokens a message, its role and text, and 3 for the answer.
func TestRequestAgreesWithTheGuide(t *testing.T) {
	r := model.Request{Messages: []model.Message{{Role: model.System, Text: "You are a helpful, pattern-following assistant."}, {Role: model.User, Text: "2 + 2 = 4"}}}
	var want int64 = 3
	for _, m := range r.Messages {
		want += 3 + o200k.Count(string(m.Role)) + o200k.Count(m.Text)
	}
	if got := Request(For("gpt-4o"), r, false); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}

func TestRequestOfManyMessagesIsTheSumOfThem(t *testing.T) {
	var r model.Request
	for range 50 {
		r.Messages = append(r.Messages, model.Message{Role: model.User, Text: strings.Repeat("word ", 10)})
	}
	if got, want := Request(estimate{}, r, false), requestTokens+50*Message(estimate{}, r.Messages[0], false); got != want {
		t.Errorf("counted %d, want %d", got, want)
	}
}
