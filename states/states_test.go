package states

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/memory"
)

// fakeKind is a kind of tools that are functions by the name of the tool. In a flow it is written `fake: {}`, or
// `fake: {result: SCHEMA}`.
type fakeKind struct {
	run map[string]func(args machine.Values) (machine.Value, error)

	mu    sync.Mutex
	calls []string // tool and arguments, in the order they ran
}

type fakeConfig struct {
	Result machine.Schema `yaml:"result" doc:"What it gives"`
}

func (c *fakeConfig) Uses(machine.ToolScope) machine.ToolUses {
	if c.Result == nil {
		return machine.ToolUses{}
	}
	return machine.ToolUses{Result: c.Result.JSON()}
}

func (k *fakeKind) Spec() machine.ToolKind {
	return machine.ToolKind{Doc: "For tests", Config: func() machine.ToolConfig { return &fakeConfig{} }}
}

func (k *fakeKind) Close() error { return nil }

func (k *fakeKind) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	return tool.Tool{Spec: spec, Run: func(_ context.Context, call tool.Call) (machine.Value, error) {
		k.mu.Lock()
		args, _ := machine.EncodeValue(call.Args)
		k.calls = append(k.calls, spec.Name+string(args))
		k.mu.Unlock()
		run, ok := k.run[spec.Name]
		if !ok {
			return nil, fmt.Errorf("the test has no tool %s", spec.Name)
		}
		return run(call.Args)
	}}, nil
}

type modelConfig struct {
	Key string `yaml:"key" doc:"For tests"`
}

func catalog() flows.Catalog {
	handlers := map[string]func() machine.HandlerSpec{}
	for name, h := range Builtin() {
		handlers[name] = h.Spec
	}
	return flows.Catalog{
		Handlers:   handlers,
		ToolKinds:  map[string]machine.ToolKind{"fake": (&fakeKind{}).Spec()},
		ModelKinds: map[string]flows.ModelKind{"fake": {Doc: "For tests", Config: func() any { return &modelConfig{} }}},
	}
}

// world is one run of one flow, with the engine and the tools around it.
type world struct {
	t     testing.TB
	m     *machine.Machine
	e     *engine.Engine
	store store.Store
	tools *fakeKind
	clock sync.Mutex // guards now, which calls beside each other look at
	now   time.Time
	model machine.ModelCase // of declared models
	snap  *history.Snapshot

	models  *fakeModels
	secrets *secret.Redactor
}

// newWorld compiles a flow. Tools are set in w.tools.run before the first call of go_.
func newWorld(t testing.TB, flow string) *world {
	t.Helper()
	w := &world{t: t, m: compile(t, flow), store: memory.New(memory.Options{}), model: machine.ModelMissing,
		now:   time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		tools: &fakeKind{run: map[string]func(machine.Values) (machine.Value, error){}}}
	w.models = &fakeModels{ready: func() machine.ModelCase { return w.model }}
	w.restart()
	return w
}

// restart throws the engine away and makes another, as a new process does.
func (w *world) restart() {
	w.t.Helper()
	if w.e != nil {
		w.e.Close()
	}
	e, err := engine.New(engine.Config{Store: w.store, Handlers: Builtin(), Tools: map[string]tool.Kind{"fake": w.tools},
		Compile: func([]byte, string) (*machine.Machine, error) { return w.m, nil },
		Models:  w.models,
		Secrets: w.secrets,
		Now:     w.tick})
	if err != nil {
		w.t.Fatal(err)
	}
	w.e = e
	w.t.Cleanup(e.Close)
}

// tick is the clock: each look at it takes a millisecond.
func (w *world) tick() time.Time {
	w.clock.Lock()
	defer w.clock.Unlock()
	w.now = w.now.Add(time.Millisecond)
	return w.now
}

func compile(t testing.TB, flow string) *machine.Machine {
	t.Helper()
	m, found := flows.Check([]byte(flow), flows.Place{}, catalog())
	for _, f := range found {
		if f.Severity == flows.SeverityError {
			t.Errorf("%s", f)
		}
	}
	if m == nil {
		t.Fatal("the flow of the test does not compile")
	}
	return m
}

// start starts the run and advances it. inputs is JSON.
func (w *world) start(inputs string) *world {
	w.t.Helper()
	in, err := machine.DecodeValue([]byte(inputs))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, _, err := w.e.Start(context.Background(), engine.StartRequest{Machine: w.m, ID: "run", Inputs: in.(machine.Values)}); err != nil {
		w.t.Fatal(err)
	}
	return w.advance()
}

func (w *world) advance() *world {
	w.t.Helper()
	snap, err := w.e.Advance(context.Background(), "run")
	if err != nil {
		w.t.Fatal(err)
	}
	w.snap = snap
	return w
}

// answer answers the only pending question and advances. Every other answer goes through a new process, so that all that a
// handler knows comes out of the journal.
func (w *world) answer(r engine.Reply) *world {
	w.t.Helper()
	if len(w.snap.Pending) != 1 {
		w.t.Fatalf("%d questions are pending, want one (status %s, %+v)", len(w.snap.Pending), w.snap.Status, w.snap.Stop)
	}
	r.Ask = w.snap.Pending[0].ID
	if err := w.e.Answer(context.Background(), "run", r); err != nil {
		w.t.Fatal(err)
	}
	if w.snap.Seq%2 == 0 {
		w.restart()
	}
	return w.advance()
}

func (w *world) say(text string) *world { w.t.Helper(); return w.answer(engine.Reply{Text: text}) }

func (w *world) yes() *world { w.t.Helper(); yes := true; return w.answer(engine.Reply{Yes: &yes}) }

func (w *world) no(reason string) *world {
	w.t.Helper()
	no := false
	return w.answer(engine.Reply{Yes: &no, Text: reason})
}

// asks checks the pending question.
func (w *world) asks(question string) *world {
	w.t.Helper()
	if len(w.snap.Pending) != 1 {
		w.t.Fatalf("%d questions are pending, want one: %q (status %s in %s, stop %+v, last %+v)", len(w.snap.Pending), question, w.snap.Status,
			w.snap.Now.State, w.snap.Stop, w.snap.Last)
	}
	if got := w.snap.Pending[0].Question; got != question {
		w.t.Errorf("asks\n%s\nwant\n%s", got, question)
	}
	return w
}

// path checks the states that the run went through.
func (w *world) path(states string) *world {
	w.t.Helper()
	if got := strings.Join(w.snap.Now.Path, " "); got != states {
		w.t.Errorf("path %s, want %s (status %s, stop %+v, last %+v)", got, states, w.snap.Status, w.snap.Stop, w.snap.Last)
	}
	return w
}

// has checks a variable; value is JSON, "" for none.
func (w *world) has(name, value string) *world {
	w.t.Helper()
	got := ""
	if v, ok := w.snap.Vars[name]; ok {
		data, _ := machine.EncodeValue(v)
		got = string(data)
	}
	if got != value {
		w.t.Errorf("variable %s is %s, want %s", name, got, value)
	}
	return w
}

// last checks how the newest step ended, as outcome kind.
func (w *world) last(want string) *world {
	w.t.Helper()
	if got := strings.TrimSpace(string(w.snap.Last.Outcome) + " " + w.snap.Last.Error.Kind); got != want {
		w.t.Errorf("last step ended with %q (%s), want %q", got, w.snap.Last.Error.Message, want)
	}
	return w
}

// status checks what the run does, and how it stopped: "stopped no_key".
func (w *world) status(want string) *world {
	w.t.Helper()
	got := string(w.snap.Status)
	if w.snap.Stop != nil {
		got += " " + string(w.snap.Stop.Code)
	}
	if got != want {
		w.t.Errorf("status %s (%+v), want %s", got, w.snap.Stop, want)
	}
	return w
}

// called checks the calls that ran.
func (w *world) called(calls ...string) *world {
	w.t.Helper()
	if got, want := strings.Join(w.tools.calls, "\n"), strings.Join(calls, "\n"); got != want {
		w.t.Errorf("calls\n%s\nwant\n%s", got, want)
	}
	return w
}

// events gives the types of the run's events.
func (w *world) events() string {
	w.t.Helper()
	evs, err := w.e.History(context.Background(), "run")
	if err != nil {
		w.t.Fatal(err)
	}
	types := make([]string, len(evs))
	for i, ev := range evs {
		types[i] = string(ev.Data.Type())
	}
	return strings.Join(types, " ")
}

// waitOut lets the human's time run out.
func (w *world) waitOut(d time.Duration) *world {
	w.t.Helper()
	w.now = w.now.Add(d)
	return w.advance()
}

// takeUp takes a stopped run up in a new process.
func (w *world) takeUp() *world {
	w.t.Helper()
	w.restart()
	return w.advance()
}

// findings gives what is wrong with a flow: path, rule and suggestion of each error. The message is given where a handler
// words it.
func findings(t testing.TB, flow string) []string {
	t.Helper()
	_, found := flows.Check([]byte(flow), flows.Place{}, catalog())
	var out []string
	for _, f := range found {
		if f.Severity == flows.SeverityError {
			line := f.Path + " [" + f.Rule + "]"
			if f.Rule == "with-invalid" {
				line = f.Path + ": " + f.Message
			}
			if f.Suggestion != "" {
				line += " -> " + f.Suggestion
			}
			out = append(out, line)
		}
	}
	return out
}

// wrong checks that a flow has exactly these findings.
func wrong(t *testing.T, name, flow string, want ...string) {
	t.Helper()
	got := findings(t, flow)
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s: findings\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEveryHandlerDescribesItself(t *testing.T) {
	for name, h := range Builtin() {
		spec := h.Spec()
		if spec.Doc == "" || spec.With == nil {
			t.Fatalf("handler %s: Spec says %+v", name, spec)
		}
		if h.Spec().With == spec.With {
			t.Errorf("handler %s: two states would share one config", name)
		}
		documented(t, name, reflect.TypeOf(spec.With).Elem())
	}
}

// documented checks that every key of a config has its line in the reference.
func documented(t *testing.T, where string, config reflect.Type) {
	for i := range config.NumField() {
		f := config.Field(i)
		if f.Tag.Get("yaml") == "" || f.Tag.Get("doc") == "" {
			t.Errorf("%s.%s needs the tags yaml and doc", where, f.Name)
		}
		inner := f.Type
		if inner.Kind() == reflect.Slice {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() != config.PkgPath() { // an item of a machine.Ordered
			value, _ := inner.FieldByName("Value")
			inner = value.Type
		}
		if inner.Kind() == reflect.Struct && inner.PkgPath() == config.PkgPath() {
			documented(t, where+"."+f.Name, inner)
		}
	}
}
