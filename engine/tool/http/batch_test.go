package http

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows"
	"flowctl/flows/machine"
)

// batched makes a tool with batch of an `http: {…}` part in one line; parameters are those of a short form.
func batched(t testing.TB, k *Kind, parameters, declaration string) tool.Tool {
	t.Helper()
	m, found := check(k, "    description: A test's tool.\n    effect: read\n    batch: true\n    parameters: "+parameters+"\n    http: "+declaration)
	if m == nil {
		t.Fatal(found)
	}
	spec, _ := m.Tools.Get("t")
	made, err := k.New(spec, tool.Env{Machine: m, Getenv: func(string) (string, bool) { return "key", true }})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// together makes calls as one turn of a model.
func together(t testing.TB, tl tool.Tool, calls ...machine.Values) []tool.Result {
	t.Helper()
	jobs := make([]tool.Job, len(calls))
	for i, args := range calls {
		jobs[i] = tool.Job{Prepared: tool.Prepared{Tool: tl, Values: args}, Call: tool.Call{Key: fmt.Sprint("r1/2.0.", i), RunID: "r1"}}
	}
	nowait := func(context.Context, time.Duration) error { return nil }
	outcomes, err := tool.Runner{Sleep: nowait}.Batch(context.Background(), jobs, tool.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	results := make([]tool.Result, len(calls))
	for i, out := range outcomes {
		results[i] = out.Result
	}
	return results
}

func ids(values ...machine.Value) []machine.Values {
	var calls []machine.Values
	for _, v := range values {
		calls = append(calls, machine.Values{"id": v})
	}
	return calls
}

// answers is a server that gives one JSON answer.
func answers(t testing.TB, status int, body string) *recorder {
	rt, ok := t.(*testing.T)
	if !ok {
		t.Fatal("only for tests")
	}
	return record(rt, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	})
}

const oneID = "{id: {type: string}}"

func TestCallsOfOneTurnAreOneRequest(t *testing.T) {
	k := newKind(t)
	for _, tc := range []struct {
		name, parameters, declaration string
		calls                         []machine.Values
		answer                        string
		uri, body                     string
		bodies                        string
	}{
		{"list for a body", oneID, "{method: POST, url: URL/x, json: {ids: '{{ args.id }}', more: [1]}}", ids("A1", "A2", "A1"), `[{"n":1},null,[3]]`,
			"/x", `{"ids":["A1","A2","A1"],"more":[1]}`, `{"n":1}, null, [3]`},
		{"object for a query", oneID, "{method: GET, url: 'URL/x?a=1', query: {id: '{{ args.id }}', run: '{{ run.id }}', no: null}}", ids("A&1", "B", "A&1"),
			`{"B":2,"A&1":1,"C":3}`, "/x?a=1&id=A%261&id=B&id=A%261&run=r1", "", `1, 2, 1`},
		{"types are kept", "{id: {type: integer}}", "{method: POST, url: URL/x, json: '{{ args.id }}'}", ids(int64(9007199254740993), int64(2)),
			`{"2":"two","9007199254740993":"large"}`, "/x", `[9007199254740993,2]`, `"large", "two"`},
		{"several parameters", "{id: {type: string}, n: {type: integer, default: 7}}",
			"{method: POST, url: URL/x, query: {n: '{{ args.n }}'}, json: {which: {ids: '{{ args.id }}'}}}",
			[]machine.Values{{"id": "A", "n": int64(7)}, {"id": "B", "n": int64(8)}}, `["a","b"]`, "/x?n=7&n=8", `{"which":{"ids":["A","B"]}}`, `"a", "b"`},
		{"a value left out keeps its place", "{type: object, properties: {id: {type: string}, q: {type: string}}, required: [id]}",
			"{method: GET, url: URL/x, query: {id: '{{ args.id }}', q: '{{ args.q }}'}}",
			[]machine.Values{{"id": "A"}, {"id": "B", "q": "b"}}, `[1,2]`, "/x?id=A&id=B&q=&q=b", "", "1, 2"},
		{"alone", oneID, "{method: POST, url: URL/x, json: {ids: '{{ args.id }}'}}", ids("A1"), `["one"]`, "/x", `{"ids":["A1"]}`, `"one"`},
		{"alone by name", oneID, "{method: POST, url: URL/x, json: {ids: '{{ args.id }}'}}", ids("A1"), `{"A1":"one"}`, "/x", `{"ids":["A1"]}`, `"one"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := answers(t, 200, tc.answer)
			tl := batched(t, k, tc.parameters, strings.ReplaceAll(tc.declaration, "URL", server.URL))
			var bodies []string
			for _, got := range together(t, tl, tc.calls...) {
				v, _ := got.Value.(machine.Values)
				if got.Status != tool.OK || v["status"] != int64(200) || v["headers"].(machine.Values)["content-type"] != "application/json" {
					t.Fatalf("got %+v", got)
				}
				if err := tl.Spec.Result.Check(got.Value); err != nil {
					t.Error(err)
				}
				text, err := machine.EncodeValue(v["body"])
				if err != nil {
					t.Fatal(err)
				}
				bodies = append(bodies, string(text))
			}
			got := server.all()
			if len(got) != 1 || got[0].uri != tc.uri || got[0].body != tc.body || strings.Join(bodies, ", ") != tc.bodies {
				t.Errorf("sent %+v, bodies %v", got, bodies)
			}
		})
	}
}

func TestAnswersThatCannotBeSharedOut(t *testing.T) {
	k := newKind(t)
	for _, tc := range []struct {
		answer string
		status int
		want   tool.Status
		kind   string
		says   string
		sent   int
	}{
		{`[1]`, 200, tool.Failed, "invalid", "is a list of 1, and must be one of 2", 1},
		{`[1,2,3]`, 200, tool.Failed, "invalid", "is a list of 3, and must be one of 2", 1},
		{`"x"`, 200, tool.Failed, "invalid", "must be a JSON list", 1},
		{``, 200, tool.Failed, "invalid", "must be a JSON list", 1},
		{`[1,`, 200, tool.Failed, "invalid", "cannot be read as JSON", 1},
		{`{}`, 404, tool.Failed, "none_found", "404", 1},
		{`{}`, 400, tool.Failed, "failed", "400", 1},
		{`{}`, 503, tool.Unavailable, "unavailable", "503", 3},
	} {
		server := answers(t, tc.status, tc.answer)
		tl := batched(t, k, oneID, "{method: POST, url: "+server.URL+", json: {ids: '{{ args.id }}'}}")
		for _, got := range together(t, tl, ids("A1", "A2")...) {
			if got.Status != tc.want || got.Problem.Kind != tc.kind || !strings.Contains(got.Problem.Message, tc.says) {
				t.Errorf("%d %s: got %+v", tc.status, tc.answer, got)
			}
		}
		if got := server.all(); len(got) != tc.sent {
			t.Errorf("%d %s: sent %d times, want %d", tc.status, tc.answer, len(got), tc.sent)
		}
	}
	server := answers(t, 200, `{"A1":1}`)
	tl := batched(t, k, oneID, "{method: POST, url: "+server.URL+", json: {ids: '{{ args.id }}'}}")
	got := together(t, tl, ids("A1", "A2")...)
	if got[0].Status != tool.OK || got[1].Problem.Kind != "none_found" || !strings.Contains(got[1].Problem.Message, `has nothing for "A2"`) {
		t.Errorf("got %+v", got)
	}
	tl = batched(t, k, "{id: {type: string}, n: {type: string}}", "{method: POST, url: "+server.URL+", json: ['{{ args.id }}', '{{ args.n }}']}")
	for _, got := range together(t, tl, machine.Values{"id": "A1", "n": "x"}, machine.Values{"id": "A2", "n": "x"}) {
		if got.Status != tool.Failed || !strings.Contains(got.Problem.Message, "since the tool has several parameters") {
			t.Errorf("got %+v", got)
		}
	}
}

// A request takes 50 calls at most.
func TestManyCallsAreSeveralRequests(t *testing.T) {
	k := newKind(t)
	server := record(t, nil)
	server.respond = func(w http.ResponseWriter, _ *http.Request) {
		server.mu.Lock()
		body := server.got[len(server.got)-1].body
		server.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
	tl := batched(t, k, oneID, "{method: POST, url: "+server.URL+", json: '{{ args.id }}'}")
	var calls []machine.Values
	for i := range 120 {
		calls = append(calls, machine.Values{"id": fmt.Sprint("A", i)})
	}
	// One request at a time, so that the server can answer with what it got.
	jobs := make([]tool.Job, len(calls))
	for i, args := range calls {
		jobs[i] = tool.Job{Prepared: tool.Prepared{Tool: tl, Values: args}}
	}
	outcomes, err := tool.Runner{Parallel: 1}.Batch(t.Context(), jobs, tool.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	for i, out := range outcomes {
		if v, _ := out.Result.Value.(machine.Values); v["body"] != fmt.Sprint("A", i) {
			t.Errorf("call %d got %+v", i, out.Result)
		}
	}
	var sizes []int
	for _, got := range server.all() {
		var list []string
		if err := json.Unmarshal([]byte(got.body), &list); err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, len(list))
	}
	if !slices.Equal(sizes, []int{50, 50, 20}) {
		t.Errorf("requests of %v", sizes)
	}
}

func TestLoadOfBatch(t *testing.T) {
	k := newKind(t)
	const two = "{id: {type: string}, n: {type: integer}}"
	for _, tc := range []struct{ parameters, declaration, want string }{
		{oneID, "{method: GET, url: 'http://h/x', query: {id: '{{ args.id }}'}, headers: {K: '{{ env(\"KEY\") }}'}}", ""},
		{oneID, "{method: POST, url: 'http://h/{{ run.id }}', json: {a: [{b: '{{ args.id }}'}], args: args}}", ""},
		{two, "{method: POST, url: 'http://h/x', query: {n: '{{ args.n }}'}, json: '{{ args.id }}'}", ""},
		{oneID, "{method: GET, url: 'http://h/{{ args.id }}'}", "url: with batch: true a request is for several calls"},
		{oneID, "{method: GET, url: 'http://h/?id={{ args.id }}'}", "url: with batch: true a request is for several calls"},
		{oneID, "{method: GET, url: 'http://h/', query: {id: '{{ args.id }}'}, headers: {K: '{{ args.id }}'}}", "headers.K: with batch: true a request"},
		{oneID, "{method: POST, url: 'http://h/', body: '{{ args.id }}', query: {id: '{{ args.id }}'}}", "body: with batch: true a request"},
		{oneID, "{method: GET, url: 'http://h/', query: {id: 'x{{ args.id }}'}}", "query.id: with batch: true args.name is the list"},
		{oneID, "{method: POST, url: 'http://h/', json: {id: 'x{{ args.id }}'}}", "json: with batch: true args.name is the list"},
		{oneID, "{method: POST, url: 'http://h/', json: {id: '{{ args.id + \"x\" }}'}}", "json: with batch: true args.name is the list"},
		{"{n: {type: integer}}", "{method: POST, url: 'http://h/', json: {big: '{{ args.n > 3 }}'}}", "json: with batch: true args.name is the list"},
		{two, "{method: POST, url: 'http://h/', json: {id: '{{ args.id }}'}}", ": with batch: true every parameter stands in query or json, alone, as '{{ args.n }}'"},
		{"{}", "{method: GET, url: 'http://h/'}", ": with batch: true the tool needs a parameter"},
		{oneID, "{method: HEAD, url: 'http://h/', query: {id: '{{ args.id }}'}}", "method: the answer to a HEAD is empty"},
	} {
		m, found := check(k, "    description: A test's tool.\n    effect: read\n    batch: true\n    parameters: "+tc.parameters+"\n    http: "+tc.declaration)
		var got []string
		for _, f := range found {
			if f.Severity == flows.SeverityError {
				got = append(got, strings.TrimPrefix(strings.TrimPrefix(f.Path, "tools.t.http"), ".")+": "+f.Message)
			}
		}
		if tc.want == "" && m == nil || tc.want != "" && (len(got) != 1 || !strings.HasPrefix(got[0], tc.want)) {
			t.Errorf("%s:\ngot  %q\nwant %q", tc.declaration, got, tc.want)
		}
	}
	if _, found := check(k, "    description: A test's tool.\n    effect: write\n    batch: true\n    parameters: "+oneID+
		"\n    http: {method: POST, url: 'http://h/{{ args.id }}'}"); len(found) != 1 || !strings.Contains(found[0].Message, "only reads are made in one go") {
		t.Errorf("a write: %v", found)
	}
}

// BenchmarkTogether compares 20 lookups in one request with 20 requests beside each other, of a server that takes 2 ms for
// each request.
func BenchmarkTogether(b *testing.B) {
	var requests atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		var list []string
		if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
			b.Error(err)
		}
		time.Sleep(2 * time.Millisecond) // the server's work
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			b.Error(err)
		}
	}))
	b.Cleanup(server.Close)
	k := New()
	b.Cleanup(func() { _ = k.Close() })
	one := batched(b, k, oneID, "{method: POST, url: "+server.URL+", json: '{{ args.id }}'}")
	each := one
	each.Batch = nil
	each.Run = func(ctx context.Context, c tool.Call) (machine.Value, error) {
		results, err := one.Batch(ctx, []tool.Call{c})
		if err != nil {
			return nil, err
		}
		return results[0].Value, results[0].Err
	}
	var calls []machine.Values
	for i := range 20 {
		calls = append(calls, machine.Values{"id": fmt.Sprint("A", i)})
	}
	var took [2]time.Duration
	for b.Loop() {
		for i, tl := range []tool.Tool{one, each} {
			began := time.Now()
			if got := together(b, tl, calls...); got[19].Status != tool.OK {
				b.Fatal(got[19])
			}
			took[i] += time.Since(began)
		}
	}
	b.ReportMetric(float64(took[1])/float64(took[0]), "times-faster")
	b.ReportMetric(float64(requests.Load())/float64(b.N), "requests/op")
}
