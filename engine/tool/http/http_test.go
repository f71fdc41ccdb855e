package http

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"flowctl/engine/tool"
	"flowctl/flows"
	"flowctl/flows/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type endWith struct{}

func (*endWith) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

// check reads a flow with one tool, t, whose declaration starts in line 5.
func check(k *Kind, declaration string) (*machine.Machine, []flows.Finding) {
	cat := flows.Catalog{
		Handlers: map[string]func() machine.HandlerSpec{
			"end": func() machine.HandlerSpec { return machine.HandlerSpec{Doc: "End the run.", With: new(endWith)} }},
		ToolKinds: map[string]machine.ToolKind{"http": k.Spec()},
	}
	source := "version: 1\nname: shop\ntools:\n  t:\n" + declaration + "\nstart: done\nstates: {done: {handler: end}}\n"
	return flows.Check([]byte(source), flows.Place{}, cat)
}

// newKind makes a kind that is closed when the test ends.
func newKind(t *testing.T) *Kind {
	t.Helper()
	k := New()
	t.Cleanup(func() {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	})
	return k
}

// made makes a tool of an `http: {…}` part in one line. Its parameters are id, q, n, flag, list and object.
func made(t *testing.T, k *Kind, effect, http string, env ...string) tool.Tool {
	t.Helper()
	m, found := check(k, `    description: A test's tool.
    effect: `+effect+`
    parameters:
      type: object
      properties: {id: {type: string}, q: {type: string}, n: {type: integer}, flag: {type: boolean}, list: {type: array}, object: {type: object}}
    http: `+http)
	if m == nil {
		t.Fatal(found)
	}
	spec, _ := m.Tools.Get("t")
	vars := map[string]string{}
	for i := 0; i < len(env); i += 2 {
		vars[env[i]] = env[i+1]
	}
	made, err := k.New(spec, tool.Env{Machine: m, Getenv: func(name string) (string, bool) { v, ok := vars[name]; return v, ok }})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// call makes a call as the executor does.
func call(ctx context.Context, tl tool.Tool, args machine.Values) tool.Result {
	return tool.Runner{}.Run(ctx, tool.Prepared{Tool: tl, Values: args}, tool.Call{Key: "r1/2.0", RunID: "r1"}).Result
}

// request is what a server got.
type request struct {
	method, uri, body string
	header            http.Header
}

// recorder is a server that keeps what it gets and answers {} or what respond writes.
type recorder struct {
	*httptest.Server
	mu      sync.Mutex
	got     []request
	respond http.HandlerFunc
}

func record(t *testing.T, respond http.HandlerFunc) *recorder {
	t.Helper()
	r := &recorder{respond: respond}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		r.got = append(r.got, request{req.Method, req.RequestURI, string(body), req.Header})
		r.mu.Unlock()
		if r.respond != nil {
			r.respond(w, req)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{}`)
	}))
	t.Cleanup(r.Close)
	return r
}

// all gives what has come since it was last asked.
func (r *recorder) all() []request {
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.got
	r.got = nil
	return got
}

func (r *recorder) one(t *testing.T) request {
	t.Helper()
	got := r.all()
	if len(got) != 1 {
		t.Fatalf("the server got %d requests, want 1: %+v", len(got), got)
	}
	return got[0]
}

// with puts the server's address for HOST.
func (r *recorder) with(declaration string) string {
	return strings.ReplaceAll(declaration, "HOST", r.URL)
}

func TestRequests(t *testing.T) {
	server := record(t, nil)
	args := machine.Values{"id": "A 1/2", "q": "a&b=c", "n": int64(9007199254740993), "flag": true,
		"list": []machine.Value{"x", int64(2)}, "object": machine.Values{"k": "<é>"}}
	tests := []struct{ name, http, method, uri, body, contentType string }{
		{"fixed", `{method: GET, url: HOST}`, "GET", "/", "", ""},
		{"path", `{method: GET, url: "HOST/orders/{{ args.id }}/x-{{ args.n }}"}`, "GET", "/orders/A%201%2F2/x-9007199254740993", "", ""},
		{"path beyond ASCII", `{method: GET, url: "HOST/café|/{{ args.id }}"}`, "GET", "/caf%C3%A9%7C/A%201%2F2", "", ""},
		{"path with fixed escapes", `{method: GET, url: "HOST/a%2Fb/{{ args.flag }}"}`, "GET", "/a%2Fb/true", "", ""},
		{"query in the url", `{method: GET, url: "HOST?q={{ args.q }}&r=1"}`, "GET", "/?q=a%26b%3Dc&r=1", "", ""},
		{"slash and question mark in the query", `{method: GET, url: "HOST/?a/b=/?{{ args.id }}"}`, "GET", "/?a/b=/?A+1%2F2", "", ""},
		{"query", `{method: GET, url: HOST/x, query: {$top: 5, q: "{{ args.q }}", "f[a]": "x {{ args.n }}", none: "{{ args.none ?? nil }}", tag: "{{ args.list }}", two: [a, "{{ args.flag }}"]}}`,
			"GET", "/x?%24top=5&q=a%26b%3Dc&f%5Ba%5D=x+9007199254740993&tag=x&tag=2&two=a&two=true", "", ""},
		{"both queries", `{method: DELETE, url: "HOST/x?a=1", query: {b: ~, c: "{{ args.n }}"}}`, "DELETE", "/x?a=1&c=9007199254740993", "", ""},
		{"JSON", `{method: POST, url: HOST/x, json: {n: "{{ args.n }}", text: "n={{ args.n }}", list: "{{ args.list }}", object: "{{ args.object }}", none: "{{ args.none ?? nil }}", fixed: 1.50}}`,
			"POST", "/x", `{"fixed":1.5,"list":["x",2],"n":9007199254740993,"none":null,"object":{"k":"<é>"},"text":"n=9007199254740993"}`, "application/json"},
		{"a value is no JSON", `{method: PUT, url: HOST/x, json: {q: "{{ args.q }}\", \"x\": \"{{ args.flag }}"}}`, "PUT", "/x", `{"q":"a&b=c\", \"x\": \"true"}`, "application/json"},
		{"JSON null", `{method: PATCH, url: HOST/x, json: ~}`, "PATCH", "/x", `null`, "application/json"},
		{"JSON of another type", `{method: PATCH, url: HOST/x, json: [1], headers: {content-type: application/merge-patch+json}}`, "PATCH", "/x", `[1]`, "application/merge-patch+json"},
		{"text", `{method: POST, url: HOST/x, body: "id={{ args.id }} {{ args.object }}"}`, "POST", "/x", `id=A 1/2 {"k":"<é>"}`, "text/plain; charset=utf-8"},
		{"no body", `{method: POST, url: HOST/x}`, "POST", "/x", "", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			declaration := strings.ReplaceAll(server.with(test.http), "args.none", "args.object.none")
			if got := call(t.Context(), made(t, newKind(t), "write", declaration), args); got.Status != tool.OK {
				t.Fatalf("got %+v", got)
			}
			got := server.one(t)
			if got.method != test.method || got.uri != test.uri || got.body != test.body {
				t.Errorf("got  %s %s %s\nwant %s %s %s", got.method, got.uri, got.body, test.method, test.uri, test.body)
			}
			if kind := got.header.Get("Content-Type"); kind != test.contentType {
				t.Errorf("content type %q, want %q", kind, test.contentType)
			}
		})
	}
}

func TestHeaders(t *testing.T) {
	server := record(t, nil)
	k := newKind(t)
	const declaration = `{method: POST, url: HOST, headers: {Authorization: 'Bearer {{ env("SHOP_KEY") }}', x-run: "{{ run.id }} {{ args.q }}", User-Agent: shop}}`
	for effect, key := range map[string]string{"read": "", "idempotent": "r1/2.0", "write": "r1/2.0"} {
		if got := call(t.Context(), made(t, k, effect, server.with(declaration), "SHOP_KEY", "sk-12345678"), machine.Values{"q": "Ä"}); got.Status != tool.OK {
			t.Fatalf("got %+v", got)
		}
		h := server.one(t).header
		for name, want := range map[string]string{"Authorization": "Bearer sk-12345678", "X-Run": "r1 Ä", "User-Agent": "shop",
			"Idempotency-Key": key, "Accept": "application/json, */*;q=0.5"} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", effect, name, got, want)
			}
		}
	}
}

// A value can only be what its place is for: it adds no segment, no parameter and no header, and leads nowhere else. Where
// it cannot be put in place, nothing is sent.
func TestHostileValues(t *testing.T) {
	server := record(t, nil)
	tl := made(t, newKind(t), "write", server.with(`{method: DELETE, url: "HOST/orders/{{ args.id }}/items/x{{ args.id }}?in={{ args.id }}&z=1", query: {q: "{{ args.id }}"}}`))
	for _, value := range []string{
		"A1", "a/b", "/", "//evil.example/", "?x=1", "a?z=2", "#", "a#b", "&z=2", "a&z=2", "a;z=2", "=", "%2e%2e", "%2E%2E%2F", "%", "%zz", "%00", "\x00",
		"\r\nX-Evil: 1", " ", "+", "a+b", "@evil.example", ":80", "\\", "a\\b", "...", "..a", "a..", "日本", "é", "\u202e", "[", "]", "{{ args.q }}", `"`, "'", "<", "*", "~", "!$&'()*+,;=:@",
		// These would be another path.
		"", ".", "..", "../x", "x/..", "a/../b", "..\\x", "a\\..\\b", "./x", "x/.", "/..", "../../admin",
	} {
		result := call(t.Context(), tl, machine.Values{"id": value})
		got := server.all()
		if value == "" || strings.Contains("/"+strings.ReplaceAll(value, `\`, "/")+"/", "/../") || strings.Contains("/"+value+"/", "/./") {
			if result.Status != tool.Refused || len(got) > 0 || !strings.Contains(result.Problem.Message, "args.id") {
				t.Errorf("%q: got %+v and %+v, want a refusal", value, result, got)
			}
			continue
		}
		if result.Status != tool.OK || len(got) != 1 {
			t.Errorf("%q: got %+v", value, result)
			continue
		}
		checkArrived(t, value, got[0])
	}
}

// What holds for the values above holds for any: it arrives as it is, or nothing does.
func TestAnyValue(t *testing.T) {
	server := record(t, nil)
	tl := made(t, newKind(t), "read", server.with(`{method: GET, url: "HOST/orders/{{ args.id }}/items/x{{ args.id }}?in={{ args.id }}&z=1", query: {q: "{{ args.id }}"}}`))
	value := rapid.StringOf(rapid.OneOf(rapid.SampledFrom([]rune(`./\?#&=%;:@+ 2eEfF`)), rapid.Rune()))
	rapid.Check(t, func(rt *rapid.T) {
		v := value.Draw(rt, "value")
		result := call(t.Context(), tl, machine.Values{"id": v})
		got := server.all()
		switch {
		case result.Status == tool.OK && len(got) == 1:
			checkArrived(rt, v, got[0])
		case result.Status != tool.Refused || len(got) > 0:
			rt.Errorf("%q: got %+v and %+v", v, result, got)
		}
	})
}

func checkArrived(t rapid.TB, value string, got request) {
	t.Helper()
	parsed, err := http.NewRequest("GET", "http://x"+got.uri, nil)
	if err != nil {
		t.Fatal(err)
	}
	segments := strings.Split(parsed.URL.EscapedPath(), "/")
	path := fmt.Sprintf("/orders/%s/items/x%s", value, value)
	if len(segments) != 5 || parsed.URL.Path != path {
		t.Errorf("%q: got the path %s", value, got.uri)
	}
	want := map[string][]string{"in": {value}, "z": {"1"}, "q": {value}}
	if query := map[string][]string(parsed.URL.Query()); !reflect.DeepEqual(query, want) {
		t.Errorf("%q: got the query %v", value, query)
	}
	if got.header.Get("X-Evil") != "" {
		t.Errorf("%q made a header", value)
	}
}

// What does not fit is refused before anything is sent, in words that name the place.
func TestRefusedValues(t *testing.T) {
	server := record(t, nil)
	k := newKind(t)
	for declaration, want := range map[string]string{
		`{method: GET, url: "HOST/{{ args.q }}"}`:                              "args.q is empty, and the path of the url needs it",
		`{method: GET, url: HOST, query: {o: "{{ args.object }}"}}`:            "the parameter o of the query takes a text, a number, true or false, or a list of them",
		`{method: GET, url: HOST, query: {o: ["{{ args.list }}"]}}`:            "the parameter o of the query takes",
		`{method: GET, url: HOST, headers: {X-Id: "{{ args.id }}"}}`:           "the header X-Id would hold a line break",
		`{method: GET, url: "HOST/{{ args.n + 1 }}"}`:                          "args.n + 1",
		`{method: GET, url: HOST, query: {n: "{{ args.n + 1 }}"}}`:             "args.n + 1",
		`{method: GET, url: HOST, headers: {n: "{{ args.n + 1 }}"}}`:           "args.n + 1",
		`{method: POST, url: HOST, json: {n: ["{{ args.n + 1 }}"]}}`:           "args.n + 1",
		`{method: POST, url: HOST, body: "{{ args.n + 1 }}"}`:                  "args.n + 1",
		`{method: GET, url: HOST, headers: {X: 'a{{ env("BROKEN_KEY") }}'}}`:   "the header X would hold a line break",
		`{method: GET, url: HOST, headers: {X: '{{ int(env("SHOP_KEY")) }}'}}`: "the header X cannot be made: an expression in it fails on a value of the environment",
	} {
		tl := made(t, k, "write", server.with(declaration), "SHOP_KEY", "sk-12345678", "BROKEN_KEY", "sk-12345678\n")
		got := call(t.Context(), tl, machine.Values{"id": "a\r\nX-Evil: 1", "n": int64(9223372036854775807), "list": []machine.Value{},
			"object": machine.Values{}})
		if got.Status != tool.Refused || !strings.Contains(got.Problem.Message, want) {
			t.Errorf("%s: got %+v, want %s", declaration, got, want)
		}
		if strings.Contains(got.Problem.Message, "sk-1234") {
			t.Errorf("%s: the secret is told: %s", declaration, got.Problem.Message)
		}
	}
	for _, value := range [][]string{nil, {"SHOP_KEY", ""}} {
		tl := made(t, k, "write", server.with(`{method: POST, url: HOST, headers: {Authorization: '{{ env("SHOP_KEY") }}'}}`), value...)
		got := call(t.Context(), tl, nil)
		if got.Status != tool.Unavailable || got.Problem.Kind != "no_key" || !strings.Contains(got.Problem.Message, "SHOP_KEY, which the header Authorization needs, is not set") {
			t.Errorf("got %+v", got)
		}
	}
	if got := server.all(); len(got) > 0 {
		t.Errorf("the server got %+v", got)
	}
}

func TestNewRefuses(t *testing.T) {
	k := newKind(t)
	for _, config := range []machine.ToolConfig{nil, &Config{Method: "GET"}} {
		if _, err := k.New(machine.ToolSpec{Name: "t", Config: config}, tool.Env{}); err == nil || !strings.Contains(err.Error(), "not of the kind http") {
			t.Errorf("got %v", err)
		}
	}
}
