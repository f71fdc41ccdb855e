package engine_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store/faulty"
)

// wire is the form in which a model makes its calls.
type wire string

const (
	native wire = openai.ProtocolNative
	inText wire = openai.ProtocolJSON
)

// modelSetup says what model a dialog has. The zero value is one with calls of its own, behind a strict endpoint.
type modelSetup struct {
	wire    wire
	server  modeltest.Options
	change  func(*openai.Config)
	local   bool // the endpoint is called in this process, for tests with very many requests
	prices  *model.Prices
	redact  func(string) string
	illegal bool // refusals by the endpoint are expected
}

// dialog is a run of the state start, which has a model and the tools look (read) and add (write), and of an end.
type dialog struct {
	*rig
	setup  modelSetup
	server *modeltest.Server
	opened models

	mu    sync.Mutex
	queue []modeltest.Reply
	reply func(modeltest.Request) modeltest.Reply // instead of the queue; nil: the queue
	ran   []string                                // the calls that ran: tool and text
	waits []time.Duration                         // between tries
}

// talkFlow is the flow of a dialog, for tests that add to it.
func talkFlow() *flow {
	f := newFlow().tool("look", machine.EffectRead, nil).tool("add", machine.EffectWrite, nil)
	f.state("start", "next", "end", "fail", "end").state("end")
	return asks(f, "start")
}

// asks gives states the flow's model.
func asks(f *flow, states ...string) *flow {
	for _, name := range states {
		f.at(name).Model, f.at(name).ModelName = machine.ModelDeclared, "default"
	}
	f.m.Models = machine.Ordered[machine.ModelSpec]{{Name: "default", Value: machine.ModelSpec{Name: "default", Provider: "openai"}}}
	return f
}

func newDialog(t testing.TB, f *flow, setup modelSetup) *dialog {
	t.Helper()
	setup.wire = cmp.Or(setup.wire, native)
	x := &dialog{rig: newRig(t, f), setup: setup}
	if setup.server.Answer == nil {
		setup.server.Answer = x.next
	}
	x.server = modeltest.New(setup.server)
	t.Cleanup(x.server.Close)
	x.opened = x.open(x.server, setup.wire)
	echo := func(_ context.Context, call tool.Call) (machine.Value, error) { return call.Args["text"], nil }
	for _, item := range f.m.Tools {
		x.does(item.Name, echo)
	}
	x.config = func(cfg *engine.Config) { cfg.Models = x.opened }
	t.Cleanup(func() {
		if refused := x.server.Refused(); len(refused) > 0 && !setup.illegal {
			t.Errorf("the endpoint refused: %v", refused)
		}
	})
	return x
}

// open makes the model that asks a server, with the wrappers of the real ones.
func (x *dialog) open(server *modeltest.Server, w wire) models {
	cfg := openai.Config{Model: "test-1", BaseURL: server.URL}
	if x.setup.change != nil {
		x.setup.change(&cfg)
	}
	options := openai.Options{Now: x.clock.Now, Redact: x.setup.redact}
	if x.setup.local {
		options.Transport = inProcess{server}
	}
	bare, err := openai.New(cfg, options)
	if err != nil {
		x.t.Fatal(err)
	}
	out := models{model: bare}
	if w == inText {
		out.model = &model.JSONProtocol{Model: bare}
	}
	if x.setup.prices != nil {
		out.model = &model.Cost{Model: out.model, Prices: *x.setup.prices}
	}
	out.model = &model.Retry{Model: out.model, Clock: model.Clock{Now: x.clock.Now, Random: func() float64 { return 0 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			x.mu.Lock()
			x.waits = append(x.waits, d)
			x.mu.Unlock()
			x.clock.advance(d)
			return ctx.Err()
		}}}
	return out
}

// inProcess is a transport without a network.
type inProcess struct{ to http.Handler }

func (p inProcess) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := context.Cause(req.Context()); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	p.to.ServeHTTP(w, req)
	return w.Result(), nil
}

// does sets what a tool does; its calls are noted.
func (x *dialog) does(name string, run func(context.Context, tool.Call) (machine.Value, error)) {
	x.tools[name] = func(ctx context.Context, call tool.Call) (machine.Value, error) {
		x.mu.Lock()
		x.ran = append(x.ran, strings.TrimSpace(name+" "+machine.FormatValue(call.Args["text"])))
		x.mu.Unlock()
		return run(ctx, call)
	}
}

// push adds to the replies of the endpoint.
func (x *dialog) push(replies ...modeltest.Reply) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.queue = append(x.queue, replies...)
}

// next is the reply to a request: the next of the queue.
func (x *dialog) next(req modeltest.Request) modeltest.Reply {
	if x.reply != nil {
		return x.reply(req)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if len(x.queue) == 0 {
		return modeltest.Reply{Status: http.StatusBadRequest, Body: `{"error":{"message":"the test has no reply for this request"}}`}
	}
	reply := x.queue[0]
	x.queue = x.queue[1:]
	return spoken(req, reply)
}

// left says how many replies nobody has asked for.
func (x *dialog) left() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.queue)
}

// spoken is a reply in the form that its request asks for: where that wants calls as text, one call, or the answer, is put
// into the object of the protocol. A batch stays as it is: some models make calls that nobody offered them.
func spoken(req modeltest.Request, r modeltest.Reply) modeltest.Reply {
	system := req.Chat.Messages[0].Text()
	if !strings.Contains(system, `"action": "finish"`) || r.Body != "" || r.Status != 0 || len(r.Calls) > 1 {
		return r
	}
	switch {
	case len(r.Calls) == 1 && r.Calls[0].Name == model.FinishTool:
		r.Text = fmt.Sprintf(`{"thought": %s, "action": "finish", "final_answer": %s}`, quoted(r.Text), asJSON(r.Calls[0].Args))
	case len(r.Calls) == 1:
		r.Text = fmt.Sprintf(`{"thought": %s, "action": "use_tool", "tool_name": %s, "tool_args": %s}`, quoted(r.Text),
			quoted(r.Calls[0].Name), asJSON(r.Calls[0].Args))
	default:
		r.Text = fmt.Sprintf(`{"thought": "I know.", "action": "finish", "final_answer": %s}`, asJSON(r.Text))
	}
	r.Calls = nil
	return r
}

func quoted(text string) string {
	data, err := machine.EncodeValue(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// asJSON gives JSON as it is and other text as a string.
func asJSON(text string) string {
	if json.Valid([]byte(text)) {
		return text
	}
	return quoted(text)
}

// overBoth runs a test with a model that has calls of its own, and with one that writes them as text.
func overBoth(t *testing.T, setup modelSetup, test func(t *testing.T, x *dialog)) {
	t.Helper()
	for _, w := range []wire{native, inText} {
		t.Run(string(w), func(t *testing.T) {
			setup.wire = w
			test(t, newDialog(t, talkFlow(), setup))
		})
	}
}

// act lets the state start think and act until there is an answer.
func (x *dialog) act(task engine.Task) *engine.Generation {
	got := &engine.Generation{}
	x.on("start", thinking(task, func(g engine.Generation) { *got = g }))
	return got
}

var doIt = engine.Task{Label: "act", Text: "Do it.", Tools: true}

// wantRan wants calls to have run, in this order.
func (x *dialog) wantRan(want ...string) {
	x.t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	if !slices.Equal(x.ran, want) {
		x.t.Errorf("ran %q, want %q", x.ran, want)
	}
}

// wantFail wants a run that ended by outcome fail of a kind, whose message holds the given texts.
func (x *dialog) wantFail(e *engine.Engine, snap *history.Snapshot, kind string, texts ...string) {
	x.t.Helper()
	moved := all[*history.Transition](x.t, e)
	if len(moved) == 0 {
		x.t.Fatalf("the run did not move: status %s (%+v)", snap.Status, snap.Stop)
	}
	last := moved[len(moved)-1]
	if last.Outcome != machine.Fail || last.Problem.Kind != kind {
		x.t.Fatalf("outcome %s, %+v, want fail of kind %s", last.Outcome, last.Problem, kind)
	}
	for _, text := range texts {
		if !strings.Contains(last.Problem.Message, text) {
			x.t.Errorf("the problem is %q, want %q in it", last.Problem.Message, text)
		}
	}
}

// request gives the n-th request, from 0; negative counts from the end.
func (x *dialog) request(n int) modeltest.Request {
	x.t.Helper()
	all := x.server.Requests()
	if n < 0 {
		n += len(all)
	}
	if n < 0 || n >= len(all) {
		x.t.Fatalf("there are %d requests", len(all))
	}
	return all[n]
}

// told gives what a request says, without the system text: one line for each message.
func told(req modeltest.Request) string {
	var lines []string
	for _, m := range req.Chat.Messages {
		if m.Role == "system" {
			continue
		}
		line := m.Role + ": " + m.Text()
		for _, c := range m.ToolCalls {
			line += " [" + c.Function.Name + " " + c.Function.Arguments + "]"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// wantTold wants texts to stand in a request, in this order.
func wantTold(t testing.TB, req modeltest.Request, texts ...string) {
	t.Helper()
	rest := told(req)
	for _, text := range texts {
		_, after, ok := strings.Cut(rest, text)
		if !ok {
			t.Errorf("the model is not told %q, or not in this order:\n%s", text, told(req))
			return
		}
		rest = after
	}
}

// wantSame puts all requests of a run together again, sends them to an endpoint of their own, and wants there the bodies
// that came to the real one. Tries of the same request count once.
func (x *dialog) wantSame(e *engine.Engine, run string) {
	x.t.Helper()
	if problem := x.compareSent(e, run, x.server.Requests()); problem != "" {
		x.t.Error(problem)
	}
}

func (x *dialog) compareSent(e *engine.Engine, run string, came []modeltest.Request) string {
	opt := x.setup.server
	opt.Answer = func(modeltest.Request) modeltest.Reply { return modeltest.Reply{Text: "ok"} }
	opt.Reasoning = "" // the mirror has given none itself
	mirror := modeltest.New(opt)
	defer mirror.Close()
	to := x.open(mirror, native).model // what is put together again is as the model puts it
	evs, err := e.History(context.Background(), run)
	if err != nil {
		return err.Error()
	}
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ModelCalled); !ok || d.Cached {
			continue
		}
		sent, err := e.Sent(context.Background(), run, ev.Seq)
		if err == nil {
			_, err = to.Generate(context.Background(), sent.Request)
		}
		if err != nil {
			return fmt.Sprintf("event %d: %v", ev.Seq, err)
		}
	}
	return sameBodies(bodies(came), bodies(mirror.Requests()))
}

// bodies gives the bodies of requests; what comes several times in a row counts once.
func bodies(requests []modeltest.Request) []string {
	var out []string
	for _, r := range requests {
		out = append(out, string(r.Body))
	}
	return slices.Compact(out)
}

// sameBodies says where two lists differ, "" if nowhere.
func sameBodies(want, got []string) string {
	for i := range max(len(want), len(got)) {
		switch {
		case i >= len(want):
			return fmt.Sprintf("request %d is too much:\n%s", i+1, got[i])
		case i >= len(got):
			return fmt.Sprintf("request %d is missing:\n%s", i+1, want[i])
		case want[i] != got[i]:
			return fmt.Sprintf("request %d differs:\n%s\nwant:\n%s", i+1, got[i], want[i])
		}
	}
	return ""
}

// whole is a body as an endpoint writes it, for messages that no Reply has.
func whole(message, finish string) modeltest.Reply {
	return modeltest.Reply{Body: fmt.Sprintf(`{"model":"test-1","choices":[{"index":0,"message":%s,"finish_reason":%s}]}`, message, finish)}
}

// stored gives all events of a run as they are stored, as one text.
func stored(t testing.TB, x *rig, run string) string {
	t.Helper()
	var out bytes.Buffer
	rows, err := x.store.Events(context.Background(), run, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		out.Write(row.Data)
		out.WriteByte('\n')
	}
	return out.String()
}

// dieBefore starts the run in a process that dies right before its n-th commit.
func (x *dialog) dieBefore(n int) {
	x.t.Helper()
	whole := x.store
	x.store = faulty.New(whole, faulty.From(n, faulty.Fail(nil)))
	e := x.engine("victim")
	x.start(e)
	if snap, err := e.Advance(context.Background(), "run"); err == nil {
		x.t.Fatalf("the process has survived: status %s", snap.Status)
	}
	x.store = whole
}
