package openai

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
)

// delta writes an event with a delta, event one with a finish reason too.
func delta(d string) string { return event(d, "null") }

func event(d, finish string) string {
	return `data: {"model":"m","choices":[{"index":0,"delta":` + d + `,"finish_reason":` + finish + `}]}`
}

func callDelta(parts ...string) string {
	return delta(`{"tool_calls":[` + strings.Join(parts, ",") + `]}`)
}

const done = `data: [DONE]`

// stream asks an endpoint that answers with the given lines.
func stream(t *testing.T, lines ...string) (model.Response, string, error) {
	t.Helper()
	var watched string
	m := at(t, serve(t, modeltest.Options{}, modeltest.Reply{Lines: lines}), Config{}, Options{})
	got, err := m.Generate(t.Context(), model.Request{Messages: hi, Stream: func(s string) { watched += s }})
	return got, watched, err
}

func TestStreams(t *testing.T) {
	stop := event("{}", `"stop"`)
	comments := make([]string, 1000)
	for i := range comments {
		comments[i] = ": OPENROUTER PROCESSING"
	}
	for _, test := range []struct {
		name  string
		lines []string
		want  string
	}{
		{"plain", []string{delta(`{"content":"H"}`), "", delta(`{"content":"i"}`), "", stop, "", done}, "Hi"},
		{"without DONE", []string{delta(`{"content":"Hi"}`), "", stop, ""}, "Hi"},
		{"finish with the last text", []string{delta(`{"content":"H"}`), "", event(`{"content":"i"}`, `"stop"`), "", done}, "Hi"},
		{"no empty lines", []string{delta(`{"content":"H"}`), delta(`{"content":"i"}`), stop, done}, "Hi"},
		{"blanks first", []string{"", "", "", delta(`{"content":"Hi"}`), stop}, "Hi"},
		{"CRLF", []string{delta(`{"content":"Hi"}`) + "\r", "\r", stop + "\r", "\r", done + "\r"}, "Hi"},
		{"no blank behind the colon", []string{strings.Replace(delta(`{"content":"Hi"}`), ": ", ":", 1), strings.Replace(stop, ": ", ":", 1), "data:[DONE]"}, "Hi"},
		{"comments", append(append([]string{":", ": hello"}, comments...), delta(`{"content":"Hi"}`), ": x", "", stop, ": y", done), "Hi"},
		{"other fields", []string{"event: message", "id: 1", "retry: 10", delta(`{"content":"Hi"}`), "", stop, done}, "Hi"},
		{"data on several lines", []string{`data: {"choices":[{"delta":{"content":`, `data: "Hi"}}]}`, "", stop, done}, "Hi"},
		{"error null", []string{`data: {"error":null,"choices":[{"delta":{"content":"Hi"}}]}`, "", stop, done}, "Hi"},
		{"delta null, choices empty or null", []string{`data: {"choices":[{"delta":null}]}`, `data: {"choices":[]}`, `data: {"choices":null,"usage":null}`, delta(`{"content":"Hi"}`), stop, done}, "Hi"},
		{"content null", []string{delta(`{"role":"assistant","content":null}`), delta(`{"content":"Hi"}`), delta(`{"content":null}`), stop}, "Hi"},
		{"message in place of delta", []string{`data: {"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}]}`}, "Hi"},
		{"escapes", []string{delta(`{"content":"\u003c\n\ud83d\ude00"}`), stop}, "<\n😀"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, watched, err := stream(t, test.lines...)
			if err != nil || got.Message.Text != test.want || watched != test.want || got.Finish != model.Stop {
				t.Errorf("gave %+v, %v, watched %q", got, err, watched)
			}
		})
	}
}

// Parts of calls are put together whatever the endpoint leaves out.
func TestStreamedCalls(t *testing.T) {
	f, g := model.Call{ID: "a", Name: "f", Args: `{"x":1}`}, model.Call{ID: "b", Name: "g", Args: `{"y":2}`}
	for _, test := range []struct {
		name  string
		lines []string
		want  []model.Call
	}{
		{"by index", []string{
			callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":""}}`), callDelta(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\""}}`),
			callDelta(`{"index":0,"function":{"arguments":"{\"x\""}}`, `{"index":1,"function":{"arguments":":2}"}}`), callDelta(`{"index":0,"function":{"arguments":":1}"}}`)}, []model.Call{f, g}},
		{"by index, the second first", []string{callDelta(`{"index":1,"id":"b","function":{"name":"g","arguments":"{\"y\":2}"}}`), callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`)}, []model.Call{f, g}},
		{"id and name repeated", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}`)}, []model.Call{f}},
		{"a new id for every part", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}`), callDelta(`{"index":0,"id":"a2","function":{"arguments":":1}"}}`)}, []model.Call{f}},
		{"name in parts", []string{callDelta(`{"index":0,"id":"a","function":{"name":"get_"}}`), callDelta(`{"index":0,"function":{"name":"order"}}`), callDelta(`{"index":0,"function":{"arguments":"{}"}}`)}, []model.Call{{ID: "a", Name: "get_order", Args: "{}"}}},
		{"index missing, by id", []string{callDelta(`{"id":"a","function":{"name":"f","arguments":"{\"x\""}}`, `{"id":"b","function":{"name":"g","arguments":""}}`),
			callDelta(`{"id":"a","function":{"arguments":":1}"}}`), callDelta(`{"id":"b","function":{"arguments":"{\"y\":2}"}}`)}, []model.Call{f, g}},
		{"index null, id only at first", []string{callDelta(`{"index":null,"id":"a","function":{"name":"f","arguments":""}}`), callDelta(`{"index":null,"function":{"arguments":"{\"x\":1}"}}`),
			callDelta(`{"index":null,"id":"b","function":{"name":"g","arguments":"{\"y\""}}`), callDelta(`{"index":null,"function":{"arguments":":2}"}}`)}, []model.Call{f, g}},
		{"index and id missing", []string{callDelta(`{"function":{"name":"f","arguments":"{\"x\":1}"}}`, `{"function":{"name":"g","arguments":"{\"y\":2}"}}`)}, []model.Call{{Name: "f", Args: `{"x":1}`}, {Name: "g", Args: `{"y":2}`}}},
		{"index reused, other id", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), callDelta(`{"index":0,"id":"b","function":{"name":"g","arguments":"{\"y\""}}`), callDelta(`{"index":0,"function":{"arguments":":2}"}}`)}, []model.Call{f, g}},
		{"index reused, no ids", []string{callDelta(`{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}`), callDelta(`{"index":0,"function":{"name":"f","arguments":"{\"x\":2}"}}`)}, []model.Call{{Name: "f", Args: `{"x":1}`}, {Name: "f", Args: `{"x":2}`}}},
		{"the same id twice", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}`), callDelta(`{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":2}"}}`)}, []model.Call{f, {ID: "a", Name: "f", Args: `{"x":2}`}}},
		{"arguments an object", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}`)}, []model.Call{f}},
		{"no arguments", []string{callDelta(`{"index":0,"id":"a","function":{"name":"f"}}`)}, []model.Call{{ID: "a", Name: "f"}}},
		{"the old form", []string{delta(`{"function_call":{"name":"f","arguments":"{\"x\""}}`), delta(`{"function_call":{"arguments":":1}"}}`)}, []model.Call{{Name: "f", Args: `{"x":1}`}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := stream(t, append(test.lines, event("{}", `"stop"`), done)...)
			if err != nil || !reflect.DeepEqual(got.Message.Calls, test.want) {
				t.Errorf("gave %+v, %v\nwant %+v", got.Message.Calls, err, test.want)
			}
		})
	}
}

func TestStreamedRest(t *testing.T) {
	got, watched, err := stream(t, delta(`{"reasoning_content":"a"}`), delta(`{"reasoning":"b"}`), delta(`{"content":[{"type":"thinking","thinking":"c"},{"type":"text","text":"Hi"}]}`),
		event("{}", `"length"`), `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3}}`, done)
	if err != nil || got.Message.Reasoning != "abc" || got.Message.Text != "Hi" || watched != "Hi" || got.Finish != model.Length || got.Model != "m" ||
		got.Usage != (model.Usage{PromptTokens: 7, CompletionTokens: 3}) {
		t.Errorf("gave %+v, %v, watched %q", got, err, watched)
	}
}

func TestStreamsThatFail(t *testing.T) {
	text := delta(`{"content":"Hi"}`)
	for _, test := range []struct {
		name  string
		lines []string
		class model.Class
		want  string
	}{
		{"no finish reason", []string{text, "", done}, model.Network, "no finish reason"},
		{"no finish reason, no DONE", []string{text, ""}, model.Network, "no finish reason"},
		{"comments only", []string{": wait", ": wait"}, model.Network, "no finish reason"},
		{"DONE only", []string{done}, model.Network, "no finish reason"},
		{"error", []string{text, "", `data: {"error":{"message":"upstream broke","code":502}}`, ""}, model.Server, "upstream broke"},
		{"error behind a comment", []string{": wait", "", `data: { "error" : {"message":"upstream broke","code":502}}`, ""}, model.Server, "upstream broke"},
		{"error without data", []string{text, "", `{"error":{"message":"slow down","code":429}}`}, model.Rate, "slow down"},
		{"error by its event", []string{text, "", "event: error", `data: {"message":"busy","type":"overloaded_error"}`, ""}, model.Server, "busy"},
		{"error in the choice", []string{`data: {"choices":[{"delta":{},"finish_reason":"error","error":{"message":"provider broke","code":503}}]}`}, model.Server, "provider broke"},
		{"finish error", []string{text, event("{}", `"error"`), done}, model.Server, "broke off"},
		{"no JSON", []string{text, "", "data: oops", "", done}, model.Malformed, "at oops"},
		{"JSON cut", []string{text, "", `data: {"choices":[{"del`}, model.Malformed, "cannot be read"},
		{"filtered", []string{text, event("{}", `"content_filter"`), done}, model.Blocked, "refused"},
		{"refusal", []string{delta(`{"refusal":"I will "}`), delta(`{"refusal":"not."}`), event("{}", `"stop"`), done}, model.Blocked, "I will not."},
		{"page", []string{"<html>"}, model.Malformed, "web page"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := stream(t, test.lines...)
			var e *model.Error
			if !errors.As(err, &e) || e.Class != test.class || !strings.Contains(err.Error(), test.want) {
				t.Errorf("gave %v (%+v), want %s with %q", err, e, test.class, test.want)
			}
		})
	}
}

// A connection that is cut in the middle can be tried again; one that is cut behind the answer does not matter.
func TestStreamIsCut(t *testing.T) {
	for _, test := range []struct {
		name  string
		lines []string
		ok    bool
	}{
		{"in the middle", []string{delta(`{"content":"Hi"}`), ""}, false},
		{"in the middle of a line", []string{delta(`{"content":"Hi"}`), "", `data: {"choi`}, false},
		{"behind the answer", []string{delta(`{"content":"Hi"}`), "", event("{}", `"stop"`), ""}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := at(t, serve(t, modeltest.Options{}, modeltest.Reply{Lines: test.lines, Cut: true}), Config{}, Options{})
			got, err := m.Generate(t.Context(), model.Request{Messages: hi, Stream: func(string) {}})
			var e *model.Error
			if test.ok && (err != nil || got.Message.Text != "Hi") || !test.ok && (!errors.As(err, &e) || e.Class != model.Network || !strings.Contains(err.Error(), "cut")) {
				t.Errorf("gave %+v, %v", got, err)
			}
		})
	}
}

// A reason that ends an answer badly counts, whatever comes behind it; only the first of several choices is read; odd figures
// lose no answer.
func TestStreamsThatGoOnAfterTheEnd(t *testing.T) {
	event := func(body string) string { return "data: {\"choices\":[" + body + "]}" }
	stop := event(`{"index":0,"delta":{"content":""},"finish_reason":"stop"}`)
	for _, tc := range []struct {
		name  string
		lines []string
		class model.Class
		fin   model.Finish
		text  string
	}{
		{"cut, then stop", []string{event(`{"delta":{"content":"half"},"finish_reason":"length"}`), "", stop, "", done}, "", model.Length, "half"},
		{"blocked, then stop", []string{event(`{"delta":{"content":"bad"},"finish_reason":"content_filter"}`), "", stop, "", done}, model.Blocked, "", ""},
		{"other choices", []string{event(`{"index":0,"delta":{"content":"one"}},{"index":1,"delta":{"content":"no"}}`), "",
			event(`{"index":1,"delta":{"content":"OTHER"},"finish_reason":"length"}`), "", stop, "", done}, "", model.Stop, "one"},
		{"odd figures", []string{event(`{"delta":{"content":"fine"},"finish_reason":"stop"}`), "", `data: {"choices":[],"usage":"many"}`, "", done}, "", model.Stop, "fine"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := serve(t, modeltest.Options{}, modeltest.Reply{Lines: tc.lines})
			resp, err := at(t, s, Config{}, Options{}).Generate(t.Context(), model.Request{Messages: hi, Stream: func(string) {}})
			var failed *model.Error
			if tc.class != "" {
				if !errors.As(err, &failed) || failed.Class != tc.class {
					t.Fatalf("got %+v, %v", resp, err)
				}
				return
			}
			if err != nil || resp.Finish != tc.fin || resp.Message.Text != tc.text {
				t.Errorf("got %+v, %v", resp, err)
			}
		})
	}
}

// An answer that is whole is taken, though its endpoint neither says that nor closes.
func TestStreamThatIsNeverClosed(t *testing.T) {
	s := serve(t, modeltest.Options{}, modeltest.Reply{Stall: true, Lines: []string{`data: {"choices":[{"delta":{"content":"fine"},"finish_reason":"stop"}]}`, ""}})
	resp, err := at(t, s, Config{}, Options{Silence: 50 * time.Millisecond}).Generate(t.Context(), model.Request{Messages: hi, Stream: func(string) {}})
	if err != nil || resp.Message.Text != "fine" || len(s.Requests()) != 1 {
		t.Errorf("got %+v, %v after %d requests", resp, err, len(s.Requests()))
	}
}
