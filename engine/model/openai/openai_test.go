package openai

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/flows/machine"
)

const key = "sk-test-AAAA1111"

// serve starts a test endpoint that is closed with the test.
func serve(t *testing.T, opt modeltest.Options, replies ...modeltest.Reply) *modeltest.Server {
	t.Helper()
	s := modeltest.New(opt)
	t.Cleanup(s.Close)
	s.Push(replies...)
	return s
}

// at makes a model of an endpoint.
func at(t *testing.T, s *modeltest.Server, cfg Config, opt Options) *Model {
	t.Helper()
	cfg.BaseURL = s.URL
	if cfg.Model == "" {
		cfg.Model = "test"
	}
	opt.Getenv = env("LLM_API_KEY", key)
	m, err := New(cfg, opt)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var hi = []model.Message{{Role: model.User, Text: "Hi"}}

// both asks in both ways, as a whole and as a stream, each at an endpoint of its own, and checks that they agree.
func both(t *testing.T, cfg Config, req model.Request, reply modeltest.Reply) (model.Response, error) {
	t.Helper()
	whole, err := at(t, serve(t, modeltest.Options{}, reply), cfg, Options{}).Generate(t.Context(), req)
	var watched string
	req.Stream = func(s string) { watched += s }
	stream, streamErr := at(t, serve(t, modeltest.Options{}, reply), cfg, Options{}).Generate(t.Context(), req)
	if (err == nil) != (streamErr == nil) || !reflect.DeepEqual(whole, stream) {
		t.Errorf("as a whole: %+v, %v\nas a stream: %+v, %v", whole, err, stream, streamErr)
	}
	if err == nil && watched != whole.Message.Text {
		t.Errorf("watched was %q", watched)
	}
	return whole, err
}

func TestGenerate(t *testing.T) {
	for _, reply := range []modeltest.Reply{
		{Text: "Hello, wörld 你好 <b>&amp;</b>", Prompt: 12, Output: 3},
		{Text: "I look.", Reasoning: "hm {\"a\":1}", Calls: []modeltest.Call{{ID: "c1", Name: "f", Args: `{"x":"<1>"}`}, {ID: "c2", Name: "g", Args: "{}"}}},
		{Calls: []modeltest.Call{{ID: "c1", Name: "f", Args: `{"x":"cut`}}},
		{Calls: []modeltest.Call{{ID: "c1", Name: "f", Args: "{}"}, {ID: "c1", Name: "f", Args: `{"x":2}`}}},
		{Calls: []modeltest.Call{{Name: "f", Args: "{}"}}, Finish: "stop"},
		{Text: ""},
		{Text: "", Finish: "tool_calls"},
		{Text: "half", Finish: "length", Calls: []modeltest.Call{{ID: "c", Name: "write", Args: `{"content":"first half"}`}}},
	} {
		got, err := both(t, Config{}, model.Request{Messages: hi}, reply)
		if err != nil {
			t.Errorf("%+v: %v", reply, err)
			continue
		}
		want := model.Response{Message: model.Message{Role: model.Assistant, Text: reply.Text, Reasoning: reply.Reasoning}, Finish: model.Stop,
			Model: "test", Usage: model.Usage{PromptTokens: reply.Prompt, CompletionTokens: reply.Output}}
		for _, c := range reply.Calls {
			want.Message.Calls = append(want.Message.Calls, model.Call(c))
		}
		if reply.Finish == "length" {
			want.Finish = model.Length
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("gave %+v\nwant %+v", got, want)
		}
	}
}

// sent gives the body of the only request that a model makes of req, decoded and as it came.
func sent(t *testing.T, cfg Config, req model.Request) (machine.Values, string) {
	t.Helper()
	s := serve(t, modeltest.Options{CallsWithoutTools: true}, modeltest.Reply{Text: "ok"})
	if _, err := at(t, s, cfg, Options{}).Generate(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	r := s.Requests()[0]
	if got := r.Header.Get("Authorization"); got != "Bearer "+key {
		t.Errorf("the key was sent as %q", got)
	}
	v, err := machine.DecodeValue(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return v.(machine.Values), string(r.Body)
}

func TestRequestBody(t *testing.T) {
	zero, warm := 0.0, 0.7
	req := model.Request{
		Messages: []model.Message{
			{Role: model.System, Text: "Use <b> & \\u003c as they are."},
			{Role: model.User, Text: "Hi"},
			{Role: model.Assistant, Reasoning: "secret thoughts", Calls: []model.Call{{ID: "a", Name: "f", Args: `{"x": "<"}`}, {ID: "b", Name: "f", Args: ""}, {ID: "c", Name: "f", Args: `{"x":`}}},
			{Role: model.ToolRole, CallID: "a", Text: "A"}, {Role: model.ToolRole, CallID: "b", Text: "B"}, {Role: model.ToolRole, CallID: "c", Text: "C"},
		},
		Tools:       []model.Tool{{Name: "f", Description: "does <f>", Parameters: json.RawMessage(`{"type":"object","properties":{"z":{},"a":{}}}`)}, {Name: "g"}},
		Temperature: &zero, MaxTokens: 50,
	}
	_, body := sent(t, Config{Temperature: &warm, MaxTokens: 9, Extra: machine.Values{"top_p": 0.5, "reasoning": machine.Values{"effort": "low"}}}, req)
	want := `{"max_tokens":50,"messages":[` +
		`{"content":"Use <b> & \\u003c as they are.","role":"system"},` +
		`{"content":"Hi","role":"user"},` +
		`{"content":"","role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{\"x\": \"<\"}"}},` +
		`{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}},` +
		`{"id":"c","type":"function","function":{"name":"f","arguments":"{\"not_an_object\":\"{\\\"x\\\":\"}"}}]},` +
		`{"content":"A","role":"tool","tool_call_id":"a"},{"content":"B","role":"tool","tool_call_id":"b"},{"content":"C","role":"tool","tool_call_id":"c"}],` +
		`"model":"test","reasoning":{"effort":"low"},"stream":false,"temperature":0,` +
		`"tools":[{"function":{"name":"f","description":"does <f>","parameters":{"type":"object","properties":{"z":{},"a":{}}}},"type":"function"},` +
		`{"function":{"name":"g","parameters":{"type":"object","properties":{}}},"type":"function"}],"top_p":0.5}`
	if body != want {
		t.Errorf("sent\n%s\nwant\n%s", body, want)
	}
	for range 3 {
		if _, again := sent(t, Config{Temperature: &warm, MaxTokens: 9, Extra: machine.Values{"top_p": 0.5, "reasoning": machine.Values{"effort": "low"}}}, req); again != body {
			t.Fatalf("the same request was sent as\n%s", again)
		}
	}
}

func TestFields(t *testing.T) {
	zero, warm := 0.0, 0.2
	for _, test := range []struct {
		name string
		cfg  Config
		req  model.Request
		want machine.Values // nil: the field is not there
	}{
		{"nothing set", Config{}, model.Request{}, machine.Values{"temperature": nil, "max_tokens": nil, "response_format": nil, "tools": nil, "stream_options": nil}},
		{"temperature 0 of the flow", Config{Temperature: &zero}, model.Request{}, machine.Values{"temperature": int64(0)}},
		{"temperature of the flow, to the digit", Config{Temperature: &warm}, model.Request{}, machine.Values{"temperature": 0.2}},
		{"names that the library checks", Config{Model: "gpt-5", Temperature: &warm, MaxTokens: 5}, model.Request{}, machine.Values{"model": "gpt-5", "temperature": 0.2, "max_tokens": int64(5)}},
		{"extra goes first", Config{MaxTokens: 5, Extra: machine.Values{"max_tokens": int64(7)}}, model.Request{}, machine.Values{"max_tokens": int64(7)}},
		{"whole numbers are exact", Config{Extra: machine.Values{"seed": int64(9007199254740993)}}, model.Request{}, machine.Values{"seed": int64(9007199254740993)}},
		{"schema", Config{}, model.Request{Answer: json.RawMessage(`{"type":"object"}`)}, machine.Values{"response_format": machine.Values{"type": "json_schema",
			"json_schema": machine.Values{"name": "answer", "schema": machine.Values{"type": "object"}, "strict": false}}}},
		{"no schema", Config{}, model.Request{Answer: json.RawMessage(`{"type":"object"}`), NoSchema: true}, machine.Values{"response_format": nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.req.Messages = hi
			got, body := sent(t, test.cfg, test.req)
			for name, want := range test.want {
				if v, there := got[name]; !machine.EqualValues(v, want) || there != (want != nil) {
					t.Errorf("%s is %v in %s", name, v, body)
				}
			}
		})
	}
}

func TestMaxTokensAtOpenAI(t *testing.T) {
	for base, want := range map[string]string{"https://api.openai.com/v1": "max_completion_tokens", "https://me.openai.azure.com/v1": "max_completion_tokens",
		"https://api.deepseek.com/v1": "max_tokens", "https://api.openai.com.evil.example/v1": "max_tokens"} {
		m, err := New(Config{Model: "m", BaseURL: base}, Options{})
		if err != nil || m.maxTokensField() != want {
			t.Errorf("%s: %s, %v", base, m.maxTokensField(), err)
		}
	}
}

// What the endpoint gives as reasoning is kept, sent back or dropped, as the flow says, to endpoints that want it and to
// those that refuse it.
func TestReasoning(t *testing.T) {
	tool := []model.Tool{{Name: "f"}}
	for _, test := range []struct {
		reasoning string
		rule      modeltest.Reasoning
		kept      string
		legal     bool
	}{
		{"", modeltest.ReasoningForbidden, "because", true},
		{ReasoningKeep, modeltest.ReasoningForbidden, "because", true},
		{ReasoningKeep, modeltest.ReasoningRequired, "because", false},
		{ReasoningSendBack, modeltest.ReasoningRequired, "because", true},
		{ReasoningSendBack, modeltest.ReasoningForbidden, "because", false},
		{ReasoningDrop, modeltest.ReasoningForbidden, "", true},
	} {
		t.Run(test.reasoning+" "+string(test.rule), func(t *testing.T) {
			s := serve(t, modeltest.Options{Reasoning: test.rule}, modeltest.Reply{Reasoning: "because", Calls: []modeltest.Call{{ID: "a", Name: "f", Args: "{}"}}}, modeltest.Reply{Text: "ok"})
			m := at(t, s, Config{Reasoning: test.reasoning}, Options{})
			first, err := m.Generate(t.Context(), model.Request{Messages: hi, Tools: tool})
			if err != nil || first.Message.Reasoning != test.kept || first.Message.Text != "" {
				t.Fatalf("gave %+v, %v", first, err)
			}
			history := append(append([]model.Message{}, hi...), first.Message, model.Message{Role: model.ToolRole, CallID: "a", Text: "A"})
			if _, err := m.Generate(t.Context(), model.Request{Messages: history, Tools: tool}); (err == nil) != test.legal {
				t.Errorf("gave %v; refused were %v", err, s.Refused())
			}
		})
	}
}

// A field that an endpoint does not know is left out once, and the response says so. Nothing of that is remembered.
func TestRefusedFields(t *testing.T) {
	req := model.Request{Messages: hi, Answer: json.RawMessage(`{"type":"object"}`), Stream: func(string) {}}
	s := serve(t, modeltest.Options{NoSchema: true, NoUsage: true, Answer: func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "{}"} }})
	m := at(t, s, Config{}, Options{})
	for n := 1; n <= 2; n++ {
		got, err := m.Generate(t.Context(), req)
		if err != nil || got.Message.Text != "{}" || len(got.Notes) != 2 || got.Notes[0] != model.NoteNoSchema || !strings.Contains(got.Notes[1], "used") {
			t.Fatalf("gave %+v, %v", got, err)
		}
		if len(s.Requests()) != 3*n {
			t.Errorf("%d requests", len(s.Requests()))
		}
	}
	req.NoSchema, req.Stream = true, nil
	if got, err := m.Generate(t.Context(), req); err != nil || got.Notes != nil || len(s.Requests()) != 7 {
		t.Errorf("gave %+v, %v after %d requests", got, err, len(s.Requests()))
	}
}

func TestOtherRefusalsAreFinal(t *testing.T) {
	s := serve(t, modeltest.Options{}, modeltest.Reply{Status: 400, Body: `{"error":{"message":"messages are too long","code":"context_length_exceeded"}}`})
	_, err := at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Answer: json.RawMessage(`{}`)})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.BadRequest || len(s.Requests()) != 1 {
		t.Errorf("gave %v after %d requests", err, len(s.Requests()))
	}
}

// Both protocols give the same responses over a real endpoint.
func TestBothProtocols(t *testing.T) {
	req := model.Request{Messages: hi, Tools: []model.Tool{{Name: "f", Parameters: json.RawMessage(`{"type":"object"}`)}}}
	native, err := at(t, serve(t, modeltest.Options{}, modeltest.Reply{Text: "why", Calls: []modeltest.Call{{Name: "f", Args: `{"x":1}`}}}), Config{}, Options{}).Generate(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, modeltest.Options{}, modeltest.Reply{Text: `{"thought":"why","action":"use_tool","tool_name":"f","tool_args":{"x":1}}`})
	written, err := (&model.JSONProtocol{Model: at(t, s, Config{}, Options{})}).Generate(t.Context(), req)
	inText := written.InText
	written.InText = false
	if err != nil || !inText || !reflect.DeepEqual(native, written) {
		t.Errorf("native %+v\njson %+v, %v", native, written, err)
	}
	if chat := s.Requests()[0].Chat; len(chat.Tools) != 0 || len(chat.ResponseFormat) == 0 || len(s.Refused()) != 0 {
		t.Errorf("sent %+v", chat)
	}
}

func TestCancelledBeforeAndDuring(t *testing.T) {
	why := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	s := serve(t, modeltest.Options{Answer: func(modeltest.Request) modeltest.Reply {
		cancel(why)
		return modeltest.Reply{Stall: true, Lines: []string{": wait"}}
	}})
	m := at(t, s, Config{}, Options{})
	for range 2 {
		if _, err := m.Generate(ctx, model.Request{Messages: hi, Stream: func(string) {}}); err != why {
			t.Errorf("gave %v", err)
		}
	}
}

// The field stands where there is reasoning, and in every message with calls: endpoints that want it miss it there.
func TestReasoningIsSentWhereItBelongs(t *testing.T) {
	_, body := sent(t, Config{Reasoning: ReasoningSendBack}, model.Request{Messages: []model.Message{
		{Role: model.User, Text: "1"}, {Role: model.Assistant, Text: "2"},
		{Role: model.User, Text: "3"}, {Role: model.Assistant, Text: "4", Reasoning: "<why>"},
		{Role: model.User, Text: "5"}, {Role: model.Assistant, Calls: []model.Call{{ID: "a", Name: "f"}}},
		{Role: model.ToolRole, CallID: "a", Text: "6"},
	}})
	for _, want := range []string{`{"content":"2","role":"assistant"}`, `{"content":"4","reasoning_content":"<why>","role":"assistant"}`, `{"content":"","reasoning_content":"","role":"assistant","tool_calls"`} {
		if !strings.Contains(body, want) {
			t.Errorf("%s does not stand in %s", want, body)
		}
	}
}
