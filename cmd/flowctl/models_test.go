package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/model/modeltest"
)

const deskFlow = `
version: 1
name: desk
inputs: {message: {type: string}}
vars: {wish: {type: string, enum: [refund, other]}, answer: {type: string}, more: {type: string}}
models:
  default: {provider: openai, temperature: 0.2, prices: {prompt: 1, completion: 2}}
tools:
  add: {description: Add numbers., builtin: {name: calculator}}
start: understand
states:
  understand:
    handler: intent
    with:
      from: message
      into: wish
      intents: {refund: {description: Wants money, keywords: [refund]}, other: {description: Something else}}
    transitions: {success: ask_more, fail: lost}
  ask_more:
    handler: ask
    with: {question: 'What else?', into: more}
    transitions: {answered: work}
  work:
    handler: agent
    tools: [add]
    view: {vars: [message, more]}
    with: {goal: "Answer: {{ message }}", into: answer}
    transitions: {success: done, fail: lost}
  done: {handler: end, with: {output: "{{ answer }}"}}
  lost: {handler: end, with: {status: failed}}
`

// desk is a folder with a flow and an endpoint for its model, which the environment names.
type desk struct {
	*modeltest.Server
	dir string
	env map[string]string
	all strings.Builder // everything that flowctl has written
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{Server: modeltest.New(modeltest.Options{}), dir: t.TempDir()}
	t.Cleanup(d.Close)
	d.env = map[string]string{"LLM_API_KEY": deskKey, "LLM_BASE_URL": d.URL, "LLM_MODEL": "gpt-x"}
	if err := os.WriteFile(filepath.Join(d.dir, "flow.yaml"), []byte(deskFlow), 0o644); err != nil {
		t.Fatal(err)
	}
	return d
}

const deskKey = "sk-test-AAAA1111"

func (d *desk) run(args ...string) (code int, stdout, stderr string) {
	p := systemProgram()
	p.Stdin, p.Terminal, p.Dir, p.Now = strings.NewReader(""), terminals{}, d.dir, time.Now
	p.Getenv = func(name string) (string, bool) { v, ok := d.env[name]; return v, ok }
	p.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	code, stdout, stderr = flowctl(p, args...)
	d.all.WriteString(stdout + stderr)
	return code, stdout, stderr
}

// A key stays out of everything that is stored, logged or shown, also where the model or the endpoint repeats it: in one
// piece or in many, as it is or encoded, in an answer, in arguments or in an error.
func TestKeyOfModelStaysOut(t *testing.T) {
	d := newDesk(t)
	encoded := base64.StdEncoding.EncodeToString([]byte(deskKey))
	d.Push(
		modeltest.Reply{Text: `{"intent": "other"}`, Reasoning: "The key is " + deskKey, Prompt: 100, Output: 10},
		modeltest.Reply{Text: "I add up, with the key " + deskKey + ".", Prompt: 200, Output: 20,
			Calls: []modeltest.Call{{ID: "c1", Name: "add", Args: `{"expression": "1 + 2", "note": "` + deskKey + `"}`}}},
		modeltest.Reply{Text: "One more.", Prompt: 300, Output: 30, Calls: []modeltest.Call{{ID: "c1", Name: "add", Args: `{"expression": "1 + 2"}`}}},
		modeltest.Reply{Status: http.StatusUnauthorized, Body: `{"error": {"message": "Incorrect API key provided: ` + deskKey + `", "code": "` + encoded + `"}}`},
		modeltest.Reply{Text: "It is 3, by " + deskKey + " or " + encoded + ".", Prompt: 400, Output: 40},
	)
	code, out, errs := d.run("run", "flow.yaml", "--id", "r", "--stream", "--log", "run.log", "-i", "message=How much is it with "+deskKey+"?")
	if code != 4 || !strings.Contains(errs, "understand · default\n{\"intent\": \"other\"}\n") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	code, out, errs = d.run("answer", "r", "nothing but "+encoded, "--stream", "-v")
	if code != 5 || !strings.Contains(errs, "work · default\nI add up, with the key [secret:LLM_API_KEY].\n") {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	if !strings.Contains(errs, "[secret:LLM_API_KEY]") || !strings.Contains(errs, "run r stopped in state work") {
		t.Errorf("the stop is told by %s", errs)
	}
	code, out, errs = d.run("resume", "r", "--stream", "--log", "run.log")
	if code != 0 || out != "It is 3, by [secret:LLM_API_KEY] or [secret:LLM_API_KEY].\n" {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	for _, args := range [][]string{
		{"show", "r"}, {"show", "r", "-o", "json"}, {"events", "r"}, {"events", "r", "-o", "jsonl"}, {"events", "r", "--log", "decision", "-o", "jsonl"},
		{"events", "r", "--log", "execution"}, {"view", "r"}, {"view", "r", "-o", "json"}, {"ls"}, {"ls", "-o", "json"},
	} {
		if code, out, errs := d.run(args...); code != 0 || out == "" {
			t.Errorf("flowctl %s: exit code %d: %s", strings.Join(args, " "), code, errs)
		}
	}
	if left := d.Left(); left > 0 {
		t.Errorf("%d replies were not asked for", left)
	}
	if refused := d.Refused(); len(refused) > 0 {
		t.Errorf("the endpoint refused %q", refused)
	}
	d.noKey(t, encoded)
	_, shown, _ := d.run("show", "r")
	if !strings.Contains(shown, "4 model calls, 1 tool call, 1000 + 100 tokens, cost 0.0012\n") {
		t.Errorf("it is shown as %s", shown)
	}
}

// noKey looks for the key in all files of the folder and in all that was written.
func (d *desk) noKey(t *testing.T, encoded string) {
	t.Helper()
	places := map[string]string{"the output": d.all.String()}
	files, err := os.ReadDir(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(d.dir, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		places[file.Name()] = string(data)
	}
	if places["flowctl.db"] == "" || !strings.Contains(places["run.log"], "[secret:LLM_API_KEY]") {
		t.Error("there is no database, or no log of the secret")
	}
	for place, text := range places {
		for _, form := range []string{deskKey, encoded, strings.TrimRight(encoded, "="), "AAAA1111"} {
			if strings.Contains(text, form) {
				t.Errorf("%s holds %q", place, form)
			}
		}
	}
}

// What view shows is what was sent, message by message.
func TestViewIsWhatWasSent(t *testing.T) {
	d := newDesk(t)
	d.Push(
		modeltest.Reply{Text: `{"intent": "other"}`},
		modeltest.Reply{Text: "I add up.", Calls: []modeltest.Call{{ID: "c1", Name: "add", Args: `{"expression": "1 + 2"}`}}},
		modeltest.Reply{Text: "It is 3."},
	)
	if code, _, errs := d.run("run", "flow.yaml", "--id", "r", "-i", "message=How much?"); code != 4 {
		t.Fatal(errs)
	}
	if code, _, errs := d.run("answer", "r", "nothing"); code != 0 {
		t.Fatal(errs)
	}
	type message struct {
		Role       string
		Content    string
		ToolCallID string            `json:"tool_call_id"`
		ToolCalls  []json.RawMessage `json:"tool_calls"`
	}
	type body struct {
		Messages       []message
		Tools          []map[string]any
		ResponseFormat struct {
			JSONSchema struct{ Schema any } `json:"json_schema"`
		} `json:"response_format"`
		Seq    int64
		Answer any
	}
	calls := modelCalls(t, d)
	if len(calls) != len(d.Requests()) {
		t.Fatalf("%d requests are stored, and %d were sent", len(calls), len(d.Requests()))
	}
	for i, seq := range calls {
		_, out, errs := d.run("view", "r", "--at", seq, "-o", "json")
		var seen, sent body
		if err := json.Unmarshal([]byte(out), &seen); err != nil {
			t.Fatalf("%v: %s", err, errs)
		}
		if err := json.Unmarshal(d.Requests()[i].Body, &sent); err != nil {
			t.Fatal(err)
		}
		for _, messages := range [][]message{seen.Messages, sent.Messages} {
			for k := range messages { // the two are indented differently
				for n, call := range messages[k].ToolCalls {
					messages[k].ToolCalls[n] = compactJSON(t, call)
				}
			}
		}
		if !reflect.DeepEqual(seen.Messages, sent.Messages) {
			t.Errorf("call %d: view shows\n%+v\nand sent was\n%+v", i, seen.Messages, sent.Messages)
		}
		if len(seen.Tools) != len(sent.Tools) || len(sent.Tools) > 0 && !reflect.DeepEqual(seen.Tools, sent.Tools) {
			t.Errorf("call %d: view shows the tools %v, and sent were %v", i, seen.Tools, sent.Tools)
		}
		if !reflect.DeepEqual(seen.Answer, sent.ResponseFormat.JSONSchema.Schema) {
			t.Errorf("call %d: view shows the schema %v, and sent was %v", i, seen.Answer, sent.ResponseFormat.JSONSchema.Schema)
		}
	}
	if _, newest, _ := d.run("view", "r", "-o", "json"); !strings.Contains(newest, `"seq": `+calls[len(calls)-1]+",") {
		t.Error("without --at it is not the newest call")
	}
}

// compactJSON writes JSON the same way, whatever the order of its keys.
func compactJSON(t *testing.T, data []byte) json.RawMessage {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// modelCalls gives the numbers of the events of model calls.
func modelCalls(t *testing.T, d *desk) []string {
	t.Helper()
	_, out, _ := d.run("events", "r", "--log", "decision", "-o", "json")
	var lines []struct{ Seq json.Number }
	if err := json.Unmarshal([]byte(out), &lines); err != nil {
		t.Fatal(err)
	}
	var seqs []string
	for _, line := range lines {
		seqs = append(seqs, line.Seq.String())
	}
	return seqs
}

// A stream that is cut is marked, and what it gave is shown again.
func TestStreamMarksBrokenAttempt(t *testing.T) {
	d := newDesk(t)
	cut := modeltest.Reply{Cut: true, Lines: []string{`data: {"choices": [{"index": 0, "delta": {"role": "assistant", "content": "{\"int"}}]}`, ""}}
	d.Push(cut, modeltest.Reply{Text: `{"intent": "other"}`})
	code, _, errs := d.run("run", "flow.yaml", "--id", "r", "--stream", "-i", "message=How much?")
	want := "understand · default\n{\"int … [broken off]\n  model default: tried in vain: "
	if code != 4 || !strings.Contains(errs, want) || !strings.Contains(errs, "\nunderstand · default\n{\"intent\": \"other\"}\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// A key with a line break is refused before anything starts, and never shown.
func TestSpoiltKey(t *testing.T) {
	for _, end := range []string{"\n", "\r\n"} {
		d := newDesk(t)
		d.env["LLM_API_KEY"] = deskKey + end
		code, out, errs := d.run("run", "flow.yaml", "-i", "message=How much?")
		if code != 2 || !strings.Contains(errs, "the value of LLM_API_KEY ends in a line break") || strings.Contains(out+errs, "AAAA1111") {
			t.Errorf("exit code %d: %s", code, errs)
		}
		if _, err := os.Stat(filepath.Join(d.dir, "flowctl.db")); err == nil {
			t.Error("a run was started")
		}
		if n := len(d.Requests()); n > 0 {
			t.Errorf("%d requests were sent", n)
		}
	}
}
