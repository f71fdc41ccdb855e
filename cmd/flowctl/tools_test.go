package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"gopkg.in/yaml.v3"
	"pgregory.net/rapid"

	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/flows/machine"
)

// toolProgram is flowctl in a folder with a flow, at no terminal and with no waits, and with a builtin tool that panics.
func toolProgram(t *testing.T, flow string) program {
	t.Helper()
	p := systemProgram()
	p.Dir = t.TempDir()
	p.Stdin, p.Terminal = strings.NewReader(""), terminals{}
	p.Getenv = func(name string) (string, bool) { return "sk-shop-12345678", name == "SHOP_KEY" }
	p.Sleep = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	type none struct{}
	p.Tools = func(s toolSetup) map[string]tool.Kind {
		kinds := systemTools(s)
		kinds["builtin"] = builtin.New(tool.Func("break", "Break down.", machine.EffectRead,
			func(context.Context, tool.Call, none) (string, error) { panic("out of paper sk-own-12345678") }))
		return kinds
	}
	writeFile(t, p.Dir, "flow.yaml", flow)
	return p
}

// called reads the document of a call.
func called(t *testing.T, out string) (doc struct {
	Args, Value machine.Values
	Status      tool.Status
	Error       *machine.Problem
	MS          int64
	Attempts    int
}) {
	t.Helper()
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return doc
}

// A call is tried again as in a run, and secrets stay out of what is printed of it.
func TestToolsCallTriesAgain(t *testing.T) {
	shop := newWebShop(t)
	p := toolProgram(t, strings.ReplaceAll(httpFlow, "HOST", shop.URL))
	args := []string{"tools", "call", "flow.yaml", "lookup_order", "--args", `{"order_id": "A 1"}`}
	shop.breaks("GET")
	code, out, _ := flowctl(p, append(args, "-o", "json")...)
	doc := called(t, out)
	if code != int(exitFailed) || doc.Status != tool.Unavailable || doc.Attempts != 3 || !strings.Contains(doc.Error.Message, "502 Bad Gateway") {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, _, told := flowctl(p, args...)
	if code != int(exitFailed) || !strings.Contains(told, "attempt 2: ") || !strings.Contains(told, "): unavailable after 3 attempts (") {
		t.Errorf("exit code %d: %s", code, told)
	}
	p.Sleep = func(context.Context, time.Duration) error { shop.breaks(); return nil }
	code, out, _ = flowctl(p, append(args, "-o", "json")...)
	if doc = called(t, out); code != 0 || doc.Attempts != 2 || doc.Error != nil || doc.Value["status"] != 200.0 {
		t.Errorf("exit code %d: %s", code, out)
	}
	if !strings.Contains(out, "Bearer [secret:SHOP_KEY]") || strings.Contains(out, "sk-shop") {
		t.Errorf("the key is not masked: %s", out)
	}
}

// A write runs once, under a key of its own, and is unknown where nobody can say whether it happened.
func TestToolsCallWritesOnce(t *testing.T) {
	shop := newWebShop(t)
	p := toolProgram(t, strings.ReplaceAll(httpFlow, "HOST", shop.URL))
	args := []string{"tools", "call", "flow.yaml", "refund_order", "--args", `{"order_id": "A 1", "cents": 9007199254740993}`, "--yes", "-o", "json"}
	for range 2 {
		if code, out, _ := flowctl(p, args...); code != 0 {
			t.Fatalf("exit code %d: %s", code, out)
		}
	}
	keys := map[string]bool{}
	for _, refund := range shop.refunded() {
		key, body, _ := strings.Cut(refund, " ")
		keys[key] = true
		if !strings.HasPrefix(key, "tools-call/0") || body != `{"cents":9007199254740993}` {
			t.Errorf("the shop was asked for %s", refund)
		}
	}
	if len(keys) != 2 {
		t.Errorf("two calls have the keys %v", keys)
	}
	shop.breaks("POST")
	code, out, _ := flowctl(p, args...)
	if doc := called(t, out); code != int(exitFailed) || doc.Status != tool.Unknown || doc.Attempts != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// interruptedCall calls a tool of a shop that interrupts the call when it gets its request, and then answers it. A read is
// left without answer.
func interruptedCall(t *testing.T, args ...string) (int, string) {
	t.Helper()
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		interrupt()
		if r.Method == http.MethodGet {
			<-r.Context().Done() // until the caller is gone
		}
		w.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	p := toolProgram(t, strings.ReplaceAll(httpFlow, "HOST", server.URL))
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, io.Discard
	code := p.Run(ctx, append([]string{"tools", "call", "flow.yaml", "-o", "json"}, args...))
	if ctx.Err() == nil {
		t.Fatal("the shop was not asked")
	}
	return code, out.String()
}

// An interrupt ends a read at once, and lets a write come to its end.
func TestToolsCallInterrupted(t *testing.T) {
	code, out := interruptedCall(t, "lookup_order", "--args", `{"order_id": "A 1"}`)
	if doc := called(t, out); code != int(exitInterrupted) || doc.Status != tool.Failed || doc.Error.Kind != tool.KindCancelled || doc.Attempts != 1 {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out = interruptedCall(t, "refund_order", "--args", `{"order_id": "A 1", "cents": 5}`, "--yes")
	if doc := called(t, out); code != 0 || doc.Status != tool.OK {
		t.Errorf("exit code %d: %s", code, out)
	}
}

// A call that was interrupted before it began is not made.
func TestToolsCallInterruptedBefore(t *testing.T) {
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	p := toolProgram(t, workingFlow)
	var out bytes.Buffer
	p.Stdout, p.Stderr = &out, io.Discard
	code := p.Run(ctx, []string{"tools", "call", "flow.yaml", "note", "--args", `{"path": "n.txt", "content": "x"}`, "--yes", "-o", "json"})
	if code != int(exitInterrupted) || !strings.Contains(out.String(), `"code": "interrupted"`) {
		t.Errorf("exit code %d: %s", code, out.String())
	}
	if found, err := filepath.Glob(filepath.Join(p.Dir, "n.txt")); err != nil || len(found) > 0 {
		t.Errorf("the tool was called: %v, %v", found, err)
	}
}

// waitsFor calls a function when a text has been written.
type waitsFor struct {
	text string
	seen bytes.Buffer
	then func()
}

func (w *waitsFor) Write(p []byte) (int, error) {
	w.seen.Write(p)
	if strings.Contains(w.seen.String(), w.text) {
		w.then()
	}
	return len(p), nil
}

// An interrupt at the question ends the command, and the tool is not called.
func TestToolsCallInterruptedAtTheQuestion(t *testing.T) {
	p := toolProgram(t, workingFlow)
	ctx, interrupt := context.WithCancel(context.Background())
	defer interrupt()
	typed, nobody := io.Pipe()
	defer nobody.Close()
	p.Stdin, p.Stdout = typed, io.Discard
	p.Terminal = terminals{In: true, Err: true}
	p.Stderr = &waitsFor{text: "[y/N]", then: interrupt}
	if code := p.Run(ctx, []string{"tools", "call", "flow.yaml", "note", "--args", `{"path": "n.txt", "content": "x"}`}); code != int(exitInterrupted) {
		t.Errorf("exit code %d", code)
	}
	if found, err := filepath.Glob(filepath.Join(p.Dir, "n.txt")); err != nil || len(found) > 0 {
		t.Errorf("the tool was called: %v, %v", found, err)
	}
}

const workingFlow = `
version: 1
name: work
tools:
  note: {builtin: {name: write_file}}
  break: {builtin: {name: break}}
  burst: {effect: write, builtin: {name: break}}
start: bye
states:
  bye: {handler: end}
`

// A tool that panics is a result, and its stack is in the log, without secrets.
func TestToolsCallBreaksDown(t *testing.T) {
	p := toolProgram(t, workingFlow)
	p.Getenv = func(name string) (string, bool) { return "sk-own-12345678", name == "LLM_API_KEY" }
	for name, want := range map[string]tool.Status{"break": tool.Failed, "burst": tool.Unknown} {
		code, out, log := flowctl(p, "tools", "call", "flow.yaml", name, "--yes", "-o", "json", "-v")
		doc := called(t, out)
		if code != int(exitFailed) || doc.Status != want || !strings.Contains(doc.Error.Message, "broke down: out of paper [secret:LLM_API_KEY]") {
			t.Errorf("%s: exit code %d: %s", name, code, out)
		}
		if !strings.Contains(log, "tools_test.go") || strings.Contains(log, "sk-own") {
			t.Errorf("%s: the log is %s", name, log)
		}
	}
}

const serverFlow = `
version: 1
name: served
mcp: {shop: {url: URL}}
tools:
  say: {description: Say it again., effect: read, mcp: {server: shop, tool: echo}}
  move: {builtin: {name: current_time}}
start: bye
states:
  bye: {handler: end}
`

// strange is a schema that flows know only in part.
const strange = `{"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "title": "Move: it",
	"properties": {"from": {"type": "string", "contentEncoding": "base64", "pattern": "^(?!no)"}, "n": {"type": "integer", "maximum": 9007199254740993},
		"yes": {"enum": ["no", "~", "0x1f", "a: b", "# c", ""]}, "deep": {"type": "object", "properties": {"list": {"type": "array", "items":
		{"type": "object", "description": "A very long description, so that all of this does not fit on one line of the file any more.",
		"properties": {"at": {"type": "string", "format": "date"}}}}}}},
	"required": ["from"], "unevaluatedProperties": false}`

func mcpServer(t *testing.T, tools ...*sdk.Tool) *httptest.Server {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "shop", Version: "1"}, nil)
	for _, one := range tools {
		s.AddTool(one, func(_ context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: one.Name + " " + string(req.Params.Arguments)}}}, nil
		})
	}
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(server.Close)
	return server
}

// What a server offers can be pasted into the flow as it is printed, whatever the server says, and the pasted tools work.
func TestToolsOfServer(t *testing.T) {
	read := &sdk.ToolAnnotations{ReadOnlyHint: true}
	server := mcpServer(t,
		&sdk.Tool{Name: "echo", Description: "Echo.", InputSchema: json.RawMessage(`{"type":"object"}`)},
		&sdk.Tool{Name: "Move", Description: "Move: \"it\" \u202e{{ args.x }}\n# not a comment\t\x7f", InputSchema: json.RawMessage(strange)},
		&sdk.Tool{Name: "finish", Annotations: read, InputSchema: json.RawMessage(
			`{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer","default":3}},"required":["id"],"additionalProperties":false}`)},
		&sdk.Tool{Name: "any.thing", Description: "true", InputSchema: json.RawMessage(`{"type":"object"}`)})
	flow := strings.ReplaceAll(serverFlow, "URL", server.URL)
	p := toolProgram(t, flow)
	code, out, told := flowctl(p, "tools", "ls", "flow.yaml", "--server", "shop")
	if code != 0 || told != "" {
		t.Fatalf("exit code %d: %s", code, told)
	}
	for _, want := range []string{"# echo is in the flow already, as say\n", "\n  shop_finish:\n", "\n  shop_move:\n", "\n  any_thing:\n",
		"\n    parameters: {id: {type: string}, \"n\": {type: integer, default: 3}}\n", "\n    # left out: /properties/from/contentEncoding, ",
		"\n    effect: read\n", "\n    description: finish of the MCP server shop\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	_, snippet, ok := strings.Cut(out, "tools:\n")
	if !ok {
		t.Fatal(out)
	}
	pasted := strings.Replace(flow, "tools:\n", "tools:\n"+snippet, 1)
	writeFile(t, p.Dir, "flow.yaml", pasted)
	code, out, _ = flowctl(p, "validate", "flow.yaml")
	if code != 0 || strings.Count(out, "[unused-tool]") != strings.Count(out, "warning: ") {
		t.Fatalf("exit code %d: %s\n%s", code, out, pasted)
	}
	code, out, _ = flowctl(p, "tools", "call", "flow.yaml", "shop_finish", "--args", `{"id": 7}`)
	if code != 0 || out != `finish {"id":"7","n":3}`+"\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
	code, out, told = flowctl(p, "tools", "ls", "flow.yaml", "--server", "shop")
	if code != 0 || !strings.Contains(out, "# Move is in the flow already, as shop_move") || !strings.Contains(told, "offers no tool that the flow does not have") {
		t.Errorf("exit code %d: %s%s", code, out, told)
	}
	code, out, _ = flowctl(p, "tools", "ls", "flow.yaml", "--server", "shop", "-o", "json")
	var doc offersDocument
	if err := json.Unmarshal([]byte(out), &doc); err != nil || code != 0 || len(doc.Tools) != 4 || doc.YAML != "" {
		t.Fatalf("%v, exit code %d: %s", err, code, out)
	}
	if got := fmt.Sprintf("%s %s %v", doc.Tools[0].Tool, doc.Tools[0].Name, doc.Tools[0].Declared); got != "Move shop_move true" {
		t.Error(got)
	}
}

// Any schema comes back from its YAML as it was.
func TestYAMLComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.StringMatching(`[a-z~!*&%@#:?{}\[\]|>,'" \\\n-]{0,12}`),
			rapid.SampledFrom([]string{"yes", "No", "null", "~", "1", "0x1f", "1e3", ".inf", "2026-01-02", "<<", "=", "a: b", "a #b", " a", "a ", "type", "---"}))
		var value func(depth int) machine.Value
		value = func(depth int) machine.Value {
			kind := rapid.IntRange(0, 6).Draw(t, "kind")
			switch {
			case kind == 0 && depth > 0:
				list := []machine.Value{}
				for range rapid.IntRange(0, 4).Draw(t, "items") {
					list = append(list, value(depth-1))
				}
				return list
			case kind <= 2 && depth > 0:
				object := machine.Values{}
				for range rapid.IntRange(0, 4).Draw(t, "entries") {
					object[text.Draw(t, "name")] = value(depth - 1)
				}
				return object
			case kind == 3:
				return rapid.Int64().Draw(t, "number")
			case kind == 4:
				return rapid.Bool().Draw(t, "flag")
			case kind == 5:
				return nil
			}
			return text.Draw(t, "text")
		}
		want := value(4)
		var b strings.Builder
		yamlEntry(&b, 2, "it", want)
		var got machine.Values
		if err := yaml.Unmarshal([]byte(b.String()), &got); err != nil {
			t.Fatalf("%v\n%s", err, b.String())
		}
		back, err := machine.Normalize(got["it"])
		if err != nil || !machine.EqualValues(back, want) {
			t.Fatalf("%v\n%s\nis %#v\nnot %#v", err, b.String(), back, want)
		}
	})
}

// The short form is written only where it says the same.
func TestParametersInShortForm(t *testing.T) {
	const open = `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]`
	for schema, want := range map[string]string{
		open + `,"additionalProperties":false}`: `{"a":{"type":"string"}}`,
		open + `}`:                              open + `}`,
		open + `,"additionalProperties":false,"minProperties":1}`:                                          `{"additionalProperties":false,"minProperties":1,` + strings.TrimPrefix(open, "{") + `}`,
		`{"type":"object","properties":{"a":{}},"additionalProperties":false}`:                             `{"type":"object","properties":{"a":{}},"additionalProperties":false}`,
		`{"type":"object","properties":{"a":{"default":1}},"additionalProperties":false}`:                  `{"a":{"default":1}}`,
		`{"type":"object","properties":{"a":{"default":1}},"required":["a"],"additionalProperties":false}`: `{"type":"object","properties":{"a":{"default":1}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                   `{}`,
		`{"type":"object"}`: `null`,
		`{"type":"object","properties":{"a":{"type":"sting"}}}`:                                                            `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"a":"string"}}`:                                                                    `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"a":{}},"required":"a"}`:                                                           `{"type":"object","properties":{"a":{}}}`,
		`{"type":"object","properties":{"a":{}},"$defs":{"b":{"type":"x"}},"anyOf":[{"requird":["a"]},{"minLength":"a"}]}`: `{"type":"object","properties":{"a":{}},"$defs":{"b":{}},"anyOf":[{},{}]}`,
	} {
		got, _ := parametersOf([]byte(schema))
		wanted, err := machine.DecodeValue([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if values, _ := wanted.(machine.Values); !machine.EqualValues(got, values) {
			t.Errorf("%s\nis %s\nnot %s", schema, machine.FormatValue(got), want)
		}
	}
}
