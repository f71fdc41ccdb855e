package modeltest_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"flowctl/engine/model/modeltest"
)

// post sends a body and gives the status and the answer.
func post(t *testing.T, s *modeltest.Server, body string) (int, string) {
	t.Helper()
	resp, err := http.Post(s.URL+"/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

const (
	sys   = `{"role":"system","content":"s"}`
	user  = `{"role":"user","content":"u"}`
	calls = `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{\"x\":1}"}}]}`
	toolA = `{"role":"tool","tool_call_id":"a","content":"A"}`
	toolB = `{"role":"tool","tool_call_id":"b","content":"B"}`
	offer = `[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]`
)

func body(tools string, messages ...string) string {
	out := `{"model":"m","messages":[` + strings.Join(messages, ",") + `]`
	if tools != "" {
		out += `,"tools":` + tools
	}
	return out + "}"
}

func TestHistories(t *testing.T) {
	swap := func(old, now string) string { return strings.Replace(calls, old, now, 1) }
	for _, test := range []struct{ name, body, want string }{
		{"legal", body(offer, sys, user, calls, toolA, toolB, user), ""},
		{"ends with a tool", body(offer, sys, user, calls, toolA, toolB), ""},
		{"without system", body("", user), ""},
		{"text only", body("", sys, user, `{"role":"assistant","content":"x"}`, user, user), ""},
		{"no JSON", `{`, "no request"},
		{"no model", `{"messages":[` + user + `]}`, "model"},
		{"no messages", body(""), "at least one"},
		{"call without answer", body(offer, user, calls, toolA, user), "did not have response messages: b"},
		{"calls at the end", body(offer, user, calls), "did not have response messages: a, b"},
		{"answers in another order", body(offer, user, calls, toolB, toolA), "a tool message for a is due"},
		{"an answer twice", body(offer, user, calls, toolA, toolB, toolB), "must be a response"},
		{"answer without call", body(offer, user, toolA), "must be a response"},
		{"answer not directly behind", body(offer, user, calls, user, toolA, toolB), "did not have response messages: a, b"},
		{"the same id twice", body(offer, user, swap(`"id":"b"`, `"id":"a"`), toolA, toolA), "not unique"},
		{"the same id later", body(offer, user, calls, toolA, toolB, calls, toolA, toolB), "not unique"},
		{"no id", body(offer, user, swap(`"id":"a"`, `"id":""`), toolA, toolB), "needs an id"},
		{"no name", body(offer, user, swap(`"name":"f"`, `"name":""`), toolA, toolB), "a name"},
		{"arguments no JSON", body(offer, user, swap(`"{}"`, `"{"`), toolA, toolB), "arguments of a"},
		{"arguments no object", body(offer, user, swap(`"{}"`, `"[]"`), toolA, toolB), "arguments of a"},
		{"arguments null", body(offer, user, swap(`"{}"`, `"null"`), toolA, toolB), "arguments of a"},
		{"arguments empty", body(offer, user, swap(`"{}"`, `""`), toolA, toolB), "arguments of a"},
		{"tool content null", body(offer, user, calls, `{"role":"tool","tool_call_id":"a","content":null}`, toolB), "got null"},
		{"tool content missing", body(offer, user, calls, `{"role":"tool","tool_call_id":"a"}`, toolB), "got nothing"},
		{"tool content a list", body(offer, user, calls, `{"role":"tool","tool_call_id":"a","content":[]}`, toolB), "got []"},
		{"tool content empty", body(offer, user, calls, `{"role":"tool","tool_call_id":"a","content":""}`, toolB), "must not be empty"},
		{"assistant content null", body(offer, user, swap(`"content":""`, `"content":null`), toolA, toolB), "got null"},
		{"assistant empty", body("", user, `{"role":"assistant","content":""}`, user), "needs content or tool_calls"},
		{"user empty", body("", `{"role":"user","content":""}`), "must not be empty"},
		{"calls of the user", body(offer, strings.Replace(calls, "assistant", "user", 1)), "has no tool_calls"},
		{"calls and no tools", body("", user, calls, toolA, toolB), "no tools are offered"},
		{"system not first", body("", user, sys, user), "must be the first"},
		{"system twice", body("", sys, sys, user), "must be the first"},
		{"assistant first", body("", sys, `{"role":"assistant","content":"x"}`, user), "must be the user's"},
		{"assistant last", body("", user, `{"role":"assistant","content":"x"}`), "the last message"},
		{"unknown role", body("", `{"role":"human","content":"x"}`), `"human" is not one of`},
		{"tool twice", body(offer[:len(offer)-1]+","+offer[1:], user), "not unique"},
		{"tool without schema", body(`[{"type":"function","function":{"name":"f","parameters":null}}]`, user), "type object"},
		{"tool without name", body(`[{"type":"function","function":{"parameters":{"type":"object"}}}]`, user), "a name is required"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := modeltest.New(modeltest.Options{})
			defer s.Close()
			s.Push(modeltest.Reply{Text: "ok"})
			status, answer := post(t, s, test.body)
			if test.want == "" {
				if status != 200 || len(s.Refused()) != 0 || s.Left() != 0 {
					t.Errorf("%d %s", status, answer)
				}
				return
			}
			if status != 400 || !strings.Contains(s.Refused()[0], test.want) || s.Left() != 1 {
				t.Errorf("%d %s, want %q", status, answer, test.want)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	with := func(reasoning string) string {
		return strings.Replace(calls, `"content":""`, `"content":"","reasoning_content":`+reasoning, 1)
	}
	for _, test := range []struct {
		name string
		opt  modeltest.Options
		body string
		want string
	}{
		{"calls without tools", modeltest.Options{CallsWithoutTools: true}, body("", user, calls, toolA, toolB), ""},
		{"reasoning is required", modeltest.Options{Reasoning: modeltest.ReasoningRequired}, body(offer, user, calls, toolA, toolB), "Missing reasoning_content"},
		{"reasoning is changed", modeltest.Options{Reasoning: modeltest.ReasoningRequired}, body(offer, user, with(`"other"`), toolA, toolB), "not what was given"},
		{"reasoning is right", modeltest.Options{Reasoning: modeltest.ReasoningRequired}, body(offer, user, with(`"because"`), toolA, toolB), ""},
		{"reasoning is forbidden", modeltest.Options{Reasoning: modeltest.ReasoningForbidden}, body(offer, user, with(`""`), toolA, toolB), "must not be sent back"},
		{"reasoning is left out", modeltest.Options{Reasoning: modeltest.ReasoningForbidden}, body(offer, user, calls, toolA, toolB), ""},
		{"no schema", modeltest.Options{NoSchema: true}, `{"model":"m","messages":[` + user + `],"response_format":{"type":"json_schema"}}`, "response_format"},
		{"no usage", modeltest.Options{NoUsage: true}, `{"model":"m","messages":[` + user + `],"stream":true,"stream_options":{}}`, "stream_options"},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := modeltest.New(test.opt)
			defer s.Close()
			s.Push(modeltest.Reply{Text: "ok", Reasoning: "because"}, modeltest.Reply{Text: "ok"})
			if status, answer := post(t, s, body("", user)); status != 200 {
				t.Fatalf("%d %s", status, answer)
			}
			status, answer := post(t, s, test.body)
			if (status == 200) != (test.want == "") || test.want != "" && !strings.Contains(answer, test.want) {
				t.Errorf("%d %s, want %q", status, answer, test.want)
			}
		})
	}
}

func TestRequestsAreKept(t *testing.T) {
	s := modeltest.New(modeltest.Options{Answer: func(r modeltest.Request) modeltest.Reply {
		return modeltest.Reply{Text: "to " + r.Chat.Messages[0].Text()}
	}})
	defer s.Close()
	sent := "{ \"model\":\"m\",\n \"messages\":[{\"role\":\"user\",\"content\":\"a \\u003c b\"}] }"
	if _, answer := post(t, s, sent); !strings.Contains(answer, `to a \u003c b`) {
		t.Error(answer)
	}
	if got := s.Requests(); len(got) != 1 || !bytes.Equal(got[0].Body, []byte(sent)) || got[0].Header.Get("Content-Type") != "application/json" {
		t.Errorf("kept %+v", got)
	}
	resp, err := http.Get(s.URL + "/models")
	if err != nil || resp.StatusCode != 400 {
		t.Fatalf("another path gave %v, %v", resp, err)
	}
	_ = resp.Body.Close() // its status was all
	var e struct{ Error struct{ Message string } }
	empty := modeltest.New(modeltest.Options{})
	defer empty.Close()
	if status, answer := post(t, empty, sent); status != 400 || json.Unmarshal([]byte(answer), &e) != nil || !strings.Contains(e.Error.Message, "no reply") {
		t.Errorf("an empty queue gave %d %s", status, answer)
	}
}
