package crash_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/crash"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
	"flowctl/store"
	"flowctl/store/memory"
)

// The flow under test has a state that does everything a handler can do, and one that ends the run.
const effects = "effects"

type noConfig struct{}

func (*noConfig) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

type handler func(ctx context.Context, step *engine.Step) (machine.Outcome, error)

func (handler) Spec() machine.HandlerSpec { return machine.HandlerSpec{With: &noConfig{}} }

func (h handler) Handle(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
	return h(ctx, step)
}

func everything(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	if err := step.Say("hello"); err != nil {
		return "", err
	}
	if err := step.Set("seen", "first"); err != nil {
		return "", err
	}
	results, err := step.Call(engine.Call{Tool: "look", Args: machine.Values{"text": "a"}},
		engine.Call{Tool: "write", Args: machine.Values{"text": "x"}},
		engine.Call{Tool: "nowhere"},
		engine.Call{Tool: "again", Args: machine.Values{"text": "y"}})
	if err != nil {
		return "", err
	}
	if err := step.Note(fmt.Sprint(len(results), results[2].Status)); err != nil {
		return "", err
	}
	ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "What?"})
	if err != nil {
		return "", err
	}
	if err := step.Set("seen", ans.Text); err != nil {
		return "", err
	}
	direct, err := step.Call(engine.Call{Tool: "write", Args: machine.Values{"text": "z"}, Direct: true})
	if err != nil {
		return "", err
	}
	if direct[0].Status != tool.OK {
		return machine.Fail, direct[0].Problem
	}
	return machine.Success, nil
}

// world keeps what the tools did.
type world struct {
	store  *memory.Store
	m      *machine.Machine
	writes map[string]int // by idempotency key
	again  map[string]int
	change func(life int, cfg *engine.Config)
	handle handler
	fail   func(machine.ToolSpec) error // what a tool does instead of its work; nil: nothing
}

func newWorld() *world {
	text := mustSchema(`{"type":"string"}`)
	params := mustSchema(`{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`)
	spec := func(name string, effect machine.Effect) machine.Item[machine.ToolSpec] {
		return machine.Item[machine.ToolSpec]{Name: name, Value: machine.ToolSpec{Name: name, Kind: "go", Effect: effect,
			Parameters: params, InDoubt: machine.InDoubtAsk}}
	}
	pay := spec("pay", machine.EffectWrite)
	pay.Value.Approval.Required = true
	limits := machine.StateLimits{Visits: 25, Turns: 8}
	m := &machine.Machine{Name: "crash", Language: "en", Hash: "sha256:crash", Source: []byte("x"), Start: effects,
		Vars:  machine.Ordered[machine.Variable]{{Name: "seen", Value: machine.Variable{Schema: text}}},
		Tools: machine.Ordered[machine.ToolSpec]{spec("look", machine.EffectRead), spec("write", machine.EffectWrite), spec("again", machine.EffectIdempotent), pay},
		States: machine.Ordered[*machine.State]{
			{Name: effects, Value: &machine.State{Name: effects, Handler: effects, With: &noConfig{}, Limits: limits, Model: machine.ModelDeclared,
				Tools: []string{"look", "write", "again", "pay"}, Reads: []string{"seen"}, Writes: []string{"seen"},
				Outcomes:    []machine.Outcome{machine.Fail, machine.Success},
				Transitions: map[machine.Outcome][]machine.Branch{machine.Success: {{To: "end"}}, machine.Fail: {{To: "end"}}}}},
			{Name: "end", Value: &machine.State{Name: "end", Handler: "end", With: &noConfig{}, Limits: limits, Model: machine.ModelNone}},
		}}
	m.Seal()
	return &world{store: memory.New(memory.Options{}), m: m, writes: map[string]int{}, again: map[string]int{}, handle: everything}
}

func mustSchema(text string) machine.Schema {
	s, err := schema.Compile([]byte(text))
	if err != nil {
		panic(err)
	}
	return s
}

// Spec, New and Close make the world a tool kind.
func (w *world) Spec() machine.ToolKind { return machine.ToolKind{} }
func (w *world) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	return tool.Tool{Spec: spec, Run: func(_ context.Context, call tool.Call) (machine.Value, error) {
		if w.fail != nil {
			if err := w.fail(spec); err != nil {
				return nil, err
			}
		}
		switch spec.Name {
		case "write", "pay":
			w.writes[call.Key]++
		case "again":
			w.again[call.Key]++
		}
		return call.Args["text"], nil
	}}, nil
}

// Close ends both the kind and the world.
func (w *world) Close() error { return nil }

func (w *world) Store() store.Store { return w.store }

func (w *world) Engine(life int, s store.Store, cfg engine.Config) (*engine.Engine, error) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	cfg.Store = s
	cfg.Now = func() time.Time { return now }
	cfg.NewID = func() string { return "run" }
	cfg.Tools = map[string]tool.Kind{"go": w}
	cfg.Compile = func([]byte, string) (*machine.Machine, error) { return w.m, nil }
	cfg.Handlers = map[string]engine.Handler{effects: w.handle,
		"end": handler(func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			return "", step.End(store.Succeeded, "done")
		})}
	if w.change != nil {
		w.change(life, &cfg)
	}
	return engine.New(cfg)
}

func (w *world) Start(ctx context.Context, e *engine.Engine) (string, error) {
	id, _, err := e.Start(ctx, engine.StartRequest{Machine: w.m})
	return id, err
}

// doubts answers a question about a write by looking at what happened.
func doubts(w crash.World, q history.Question) engine.Reply {
	if q.Kind != history.KindInDoubt {
		return engine.Reply{Text: "an answer"}
	}
	key := "run/" + strings.Split(q.ID, "/")[0]
	if w.(*world).writes[key] > 0 {
		return engine.Reply{Verdict: history.Done, HasValue: true, Value: q.Args.(machine.Values)["text"]}
	}
	return engine.Reply{Verdict: history.NotDone}
}

func TestEveryCrashIsSurvivedWithoutRepeatingAWrite(t *testing.T) {
	res, err := crash.Run(context.Background(), crash.Scenario{
		World:  func() (crash.World, error) { return newWorld(), nil },
		Answer: doubts,
		Check: func(cw crash.World) error {
			w := cw.(*world)
			if len(w.writes) != 2 {
				return fmt.Errorf("%d writes, want 2", len(w.writes))
			}
			for key, n := range w.writes {
				if n != 1 {
					return fmt.Errorf("write %s ran %d times", key, n)
				}
			}
			if len(w.again) != 1 {
				return fmt.Errorf("idempotent calls %v, want one key", w.again)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if res.Commits < 10 || res.Crashes != 4*res.Commits {
		t.Errorf("%+v", res)
	}
}

// key is models that are ready when a key is set.
type key struct{ set func() bool }

func (k key) Case(*machine.Machine, string) (machine.ModelCase, string) {
	if k.set() {
		return machine.ModelReady, "m"
	}
	return machine.ModelMissing, "m"
}

func (key) Open(*machine.Machine, model.Use) (model.Opened, error) {
	return model.Opened{}, errors.New("there is no model")
}

func (key) KeyNames(*machine.Machine, string) []string { return nil }

// A step goes by the environment that was recorded at its entry, whatever has become of it since.
func TestAChangedEnvironmentDisturbsNoStep(t *testing.T) {
	res, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			w := newWorld()
			w.handle = func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				for range 3 {
					if err := step.Say("the model is " + string(step.Model())); err != nil {
						return "", err
					}
				}
				return machine.Success, nil
			}
			w.change = func(life int, cfg *engine.Config) {
				cfg.Models = key{set: func() bool { // a key was set after the run had begun
					runs, err := w.store.Runs(context.Background(), store.Filter{})
					return life > 0 && err == nil && len(runs) > 0
				}}
			}
			return w, nil
		},
		Answer: doubts,
	})
	if err != nil || res.Commits < 5 {
		t.Fatal(res, err)
	}
}

func TestAHandlerThatGoesAnotherWayIsFound(t *testing.T) {
	_, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			w := newWorld()
			calls := 0
			w.handle = func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				calls++
				if err := step.Say(fmt.Sprint("hello ", calls)); err != nil {
					return "", err
				}
				if calls == 1 {
					if err := step.Say("only the first time"); err != nil {
						return "", err
					}
				}
				if _, err := step.Call(engine.Call{Tool: "look", Args: machine.Values{"text": "a"}}); err != nil {
					return "", err
				}
				return machine.Success, nil
			}
			return w, nil
		},
		Answer: doubts,
	})
	if err == nil || !strings.Contains(err.Error(), "diverged") && !strings.Contains(err.Error(), "differ") {
		t.Fatalf("got %v, want a divergence", err)
	}
}

func TestARunThatStopsIsReported(t *testing.T) {
	_, err := crash.Run(context.Background(), crash.Scenario{
		World: func() (crash.World, error) {
			w := newWorld()
			w.handle = func(context.Context, *engine.Step) (machine.Outcome, error) { return "", errors.New("no") }
			return w, nil
		},
	})
	if err == nil || !strings.Contains(err.Error(), "unbroken: the run stopped (handler)") {
		t.Fatalf("got %v", err)
	}
}
