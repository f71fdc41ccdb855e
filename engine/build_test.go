package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
	"flowctl/store"
	"flowctl/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// scripted is a handler that is a function, with a config that says what it may do.
type scripted struct {
	do func(ctx context.Context, step *engine.Step) (machine.Outcome, error)
}

type noConfig struct{}

func (*noConfig) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

func (scripted) Spec() machine.HandlerSpec { return machine.HandlerSpec{With: &noConfig{}} }

func (h scripted) Handle(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
	return h.do(ctx, step)
}

// flow builds a machine by hand, for tests that need no flow file.
type flow struct{ m *machine.Machine }

func newFlow() *flow {
	return &flow{m: &machine.Machine{Name: "test", Language: "en", Hash: "sha256:test", Source: []byte("test"), Start: "start",
		Limits: machine.Limits{Steps: 100, ToolCalls: 200, ModelCalls: 100, Time: machine.Duration(time.Hour)}}}
}

// state adds a state whose handler has the state's name; routes are outcome, target pairs.
func (f *flow) state(name string, routes ...string) *flow {
	s := &machine.State{Name: name, Handler: name, With: &noConfig{}, Transitions: map[machine.Outcome][]machine.Branch{},
		Limits: machine.StateLimits{Visits: machine.DefaultVisits, Turns: machine.DefaultTurns}, Model: machine.ModelNone}
	for i := 0; i < len(routes); i += 2 {
		o := machine.Outcome(routes[i])
		s.Outcomes = append(s.Outcomes, o)
		s.Transitions[o] = []machine.Branch{{To: routes[i+1]}}
	}
	for _, t := range f.m.Tools {
		s.Tools = append(s.Tools, t.Name)
	}
	f.m.States = append(f.m.States, machine.Item[*machine.State]{Name: name, Value: s})
	return f
}

// variable adds a variable that every state so far may read and write.
func (f *flow) variable(name, jsonSchema string) *flow {
	f.m.Vars = append(f.m.Vars, machine.Item[machine.Variable]{Name: name, Value: machine.Variable{Schema: mustSchema(jsonSchema)}})
	for _, s := range f.m.States {
		s.Value.Reads = append(s.Value.Reads, name)
		s.Value.Writes = append(s.Value.Writes, name)
	}
	return f
}

// tool declares a tool of kind go for the states that come after.
func (f *flow) tool(name string, effect machine.Effect, change func(*machine.ToolSpec)) *flow {
	spec := machine.ToolSpec{Name: name, Effect: effect, Kind: "go", InDoubt: machine.InDoubtAsk, Retry: new(int64),
		Parameters: mustSchema(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"],"additionalProperties":false}`)}
	if change != nil {
		change(&spec)
	}
	f.m.Tools = append(f.m.Tools, machine.Item[machine.ToolSpec]{Name: name, Value: spec})
	return f
}

// route sets the branches of an outcome.
func (f *flow) route(state string, o machine.Outcome, branches ...machine.Branch) *flow {
	s := f.at(state)
	if !slices.Contains(s.Outcomes, o) {
		s.Outcomes = append(s.Outcomes, o)
	}
	s.Transitions[o] = branches
	return f
}

// at gives a state to be changed.
func (f *flow) at(name string) *machine.State {
	s, _ := f.m.States.Get(name)
	return s
}

// fn is a function that stands for an expression, a text or a tree.
type fn func(machine.Facts) (machine.Value, error)

func (fn) Source() string                                     { return "a test's expression" }
func (fn) Reads() []string                                    { return nil }
func (f fn) Eval(facts machine.Facts) (machine.Value, error)  { return f(facts) }
func (f fn) Value(facts machine.Facts) (machine.Value, error) { return f(facts) }
func (f fn) Render(facts machine.Facts) (string, error) {
	v, err := f(facts)
	return machine.FormatValue(v), err
}

// value is an expression that gives one value.
func value(v machine.Value) fn { return func(machine.Facts) (machine.Value, error) { return v, nil } }

// word is a matcher that finds itself.
type word string

func (w word) Source() string { return string(w) }
func (w word) Find(text string) []string {
	if strings.Contains(text, string(w)) {
		return []string{string(w)}
	}
	return nil
}

func mustSchema(text string) machine.Schema {
	s, err := schema.Compile([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// goTools is a tool kind whose tools are functions by the name of the tool.
type goTools map[string]func(ctx context.Context, call tool.Call) (machine.Value, error)

func (g goTools) Spec() machine.ToolKind { return machine.ToolKind{} }
func (g goTools) Close() error           { return nil }
func (g goTools) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	run, ok := g[spec.Name]
	if !ok {
		return tool.Tool{}, fmt.Errorf("the test has no tool %s", spec.Name)
	}
	return tool.Tool{Spec: spec, Run: run}, nil
}

// rig is an engine with all that it needs.
type rig struct {
	t        testing.TB
	store    store.Store
	flow     *machine.Machine
	handlers map[string]engine.Handler
	tools    goTools
	clock    *clock
	config   func(*engine.Config)
}

// clock is a clock that moves by a millisecond whenever it is read.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *clock { return &clock{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(time.Millisecond)
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newRig(t testing.TB, f *flow) *rig {
	f.m.Seal()
	r := &rig{t: t, store: memory.New(memory.Options{}), flow: f.m, handlers: map[string]engine.Handler{}, tools: goTools{}, clock: newClock()}
	r.on("end", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		return "", step.End(store.Succeeded, nil)
	})
	return r
}

// on sets the handler of a state.
func (r *rig) on(state string, do func(ctx context.Context, step *engine.Step) (machine.Outcome, error)) {
	r.handlers[state] = scripted{do: do}
}

// engine makes an engine as a process of the given name.
func (r *rig) engine(worker string) *engine.Engine {
	r.t.Helper()
	n := 0
	cfg := engine.Config{Store: r.store, Handlers: r.handlers, Tools: map[string]tool.Kind{"go": r.tools}, Now: r.clock.Now,
		Worker:  store.Worker{ID: worker},
		Compile: func([]byte, string) (*machine.Machine, error) { return r.flow, nil },
		Sleep:   func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
		NewID:   func() string { n++; return fmt.Sprintf("%s-%d", worker, n) }}
	if r.config != nil {
		r.config(&cfg)
	}
	e, err := engine.New(cfg)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(e.Close)
	return e
}

// start starts the run "run".
func (r *rig) start(e *engine.Engine) {
	r.t.Helper()
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run"}); err != nil {
		r.t.Fatal(err)
	}
}

// run starts the run "run" and advances it.
func (r *rig) run(e *engine.Engine) *history.Snapshot {
	r.t.Helper()
	r.start(e)
	return advance(r.t, e)
}

// heir makes an engine as a process that knows every other to be gone.
func (r *rig) heir(worker string) *engine.Engine {
	before := r.config
	defer func() { r.config = before }()
	r.config = func(cfg *engine.Config) {
		if before != nil {
			before(cfg)
		}
		cfg.Gone = func(store.Worker) bool { return true }
	}
	return r.engine(worker)
}

// advance brings the run on and wants no error.
func advance(t testing.TB, e *engine.Engine) *history.Snapshot {
	t.Helper()
	snap, err := e.Advance(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	return snap
}

// answer answers a question of the run and wants no error.
func answer(t testing.TB, e *engine.Engine, r engine.Reply) {
	t.Helper()
	if err := e.Answer(context.Background(), "run", r); err != nil {
		t.Fatal(err)
	}
}

// wantStatus says why a run is not what it should be.
func wantStatus(t testing.TB, snap *history.Snapshot, want store.Status) {
	t.Helper()
	if snap.Status != want {
		t.Fatalf("status %s, want %s (%+v)", snap.Status, want, snap.Stop)
	}
}

// wantStop wants a stop with a code, whose message and hint hold the given texts.
func wantStop(t testing.TB, snap *history.Snapshot, code history.StopCode, texts ...string) {
	t.Helper()
	wantStatus(t, snap, store.Stopped)
	if snap.Stop.Code != code {
		t.Fatalf("stopped for %s (%s), want %s", snap.Stop.Code, snap.Stop.Message, code)
	}
	for _, text := range texts {
		if !strings.Contains(snap.Stop.Message+"\n"+snap.Stop.Hint, text) {
			t.Errorf("the stop says %q and advises %q, want %q in it", snap.Stop.Message, snap.Stop.Hint, text)
		}
	}
}

// wantUsage wants an error of use whose text holds the given texts.
func wantUsage(t testing.TB, err error, texts ...string) {
	t.Helper()
	var usage *engine.UsageError
	if !errors.As(err, &usage) {
		t.Fatalf("got %v, want an error of use", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("the error is %q, want %q in it", err, text)
		}
	}
}

// all gives the data of all events of a type.
func all[T history.Data](t testing.TB, e *engine.Engine) []T {
	t.Helper()
	evs, err := e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	var found []T
	for _, ev := range evs {
		if d, ok := ev.Data.(T); ok {
			found = append(found, d)
		}
	}
	return found
}

// ids gives the ids of the pending questions.
func ids(snap *history.Snapshot) string {
	var names []string
	for _, q := range snap.Pending {
		names = append(names, q.ID)
	}
	return strings.Join(names, " ")
}

// await waits for a channel, not for ever.
func await[T any](t testing.TB, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(20 * time.Second):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// call makes one call and gives its result, or the error with which the handler returns.
func call(step *engine.Step, c engine.Call) (tool.Result, error) {
	results, err := step.Call(c)
	if err != nil {
		return tool.Result{}, err
	}
	return results[0], nil
}

func text(s string) machine.Values { return machine.Values{"text": s} }

// outcome is a handler that does nothing but return an outcome.
func outcome(o machine.Outcome) func(context.Context, *engine.Step) (machine.Outcome, error) {
	return func(context.Context, *engine.Step) (machine.Outcome, error) { return o, nil }
}
