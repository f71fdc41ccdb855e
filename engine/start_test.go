package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/faulty"
)

// order is a flow with inputs.
func order(t *testing.T) *rig {
	t.Helper()
	f := newFlow().state("start", "next", "end").state("end")
	input := func(name, schema string, def machine.Value) machine.Item[machine.Variable] {
		return machine.Item[machine.Variable]{Name: name, Value: machine.Variable{Input: true, Schema: mustSchema(schema), HasDefault: def != nil, Default: def}}
	}
	f.m.Inputs = machine.Ordered[machine.Variable]{input("message", `{"type":"string","description":"What the customer wrote"}`, nil),
		input("id", `{"type":"integer"}`, nil), input("lang", `{"type":"string"}`, "en")}
	f.m.Message = "message"
	r := newRig(t, f)
	r.on("start", outcome("next"))
	return r
}

func TestInputsAreCheckedAllAtOnce(t *testing.T) {
	r := order(t)
	e := r.engine("w")
	_, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"id": "five", "colour": "red"}})
	wantUsage(t, err, "input message is missing (What the customer wrote)", "-i message=VALUE", "input id: expected an integer", "no input colour (it has: message, id, lang)")
	if rows, _ := r.store.Runs(context.Background(), store.Filter{}); len(rows) != 0 {
		t.Errorf("%d runs were made", len(rows))
	}
	_, _, err = e.Start(context.Background(), engine.StartRequest{Machine: newRig(t, newFlow().state("start")).flow, Inputs: machine.Values{"x": 1}})
	wantUsage(t, err, "no input x, it takes none")
	_, _, err = e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "../etc", Inputs: machine.Values{"id": 5, "message": "hi"}})
	wantUsage(t, err, "cannot be a run's id")
}

func TestStartAgainTakesUpWhatIsThere(t *testing.T) {
	r := order(t)
	e := r.engine("w")
	ctx := context.Background()
	inputs := machine.Values{"message": "hi", "id": int64(9007199254740993)}
	for i := range 2 {
		id, exists, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: "run", Inputs: inputs})
		if err != nil || id != "run" || exists != (i == 1) {
			t.Fatalf("start %d gave %s, %v, %v", i, id, exists, err)
		}
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	if _, exists, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: "run", Inputs: inputs}); err != nil || !exists {
		t.Errorf("after the end: %v, %v", exists, err)
	}
	_, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"message": "hi", "id": int64(9007199254740992)}})
	wantUsage(t, err, "run run exists, with other inputs")
	_, _, err = e.Start(ctx, engine.StartRequest{Machine: r.edited(func(*flow) {}), ID: "run", Inputs: inputs})
	wantUsage(t, err, "of another flow or another version")
}

func TestManyStartsOfOneID(t *testing.T) {
	r := order(t)
	var mu sync.Mutex
	made := 0
	var all sync.WaitGroup
	for i := range 8 {
		e := r.engine(fmt.Sprint("w", i%4))
		all.Go(func() {
			_, exists, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"message": "hi", "id": 1}})
			mu.Lock()
			defer mu.Unlock()
			if err != nil && !errors.Is(err, engine.ErrBusy) {
				t.Error(err)
			}
			if err == nil && !exists {
				made++
			}
		})
	}
	all.Wait()
	if made != 1 {
		t.Errorf("%d runs were made", made)
	}
}

func TestStartWithoutIDMakesOne(t *testing.T) {
	r := order(t)
	r.config = func(cfg *engine.Config) { cfg.NewID = nil }
	e := r.engine("w")
	seen := map[string]bool{}
	last := ""
	for range 100 {
		id, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, Inputs: machine.Values{"message": "hi", "id": 1}, Owner: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		if seen[id] || id <= last {
			t.Fatalf("id %s after %s", id, last)
		}
		seen[id], last = true, id
	}
	rows, err := r.store.Runs(context.Background(), store.Filter{Owner: "ann"})
	if err != nil || len(rows) != 100 {
		t.Errorf("%d runs, %v", len(rows), err)
	}
}

// An answer of the store that is lost makes no second run, and a commit that failed is made again.
func TestStartOverAStoreThatFails(t *testing.T) {
	for name, fault := range map[string]faulty.Fault{"failed": faulty.Fail(nil), "answer lost": faulty.Lose(nil)} {
		t.Run(name, func(t *testing.T) {
			r := order(t)
			r.store = faulty.New(r.store, faulty.At(1, fault))
			e := r.engine("w")
			_, exists, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"message": "hi", "id": 1}})
			if err != nil || exists {
				t.Fatalf("%v, %v", exists, err)
			}
			wantStatus(t, advance(t, e), store.Succeeded)
			if got := trace(t, e, "run"); got != "run_started start transition end run_finished" {
				t.Errorf("history %s", got)
			}
		})
	}
	r := order(t)
	r.store = faulty.New(r.store, faulty.From(1, faulty.Fail(nil)))
	_, _, err := r.engine("w").Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"message": "hi", "id": 1}})
	if !errors.Is(err, engine.ErrStore) {
		t.Errorf("a store that is broken gave %v", err)
	}
}

func TestContextThatHasEndedStartsAndTakesNothing(t *testing.T) {
	r := order(t)
	e := r.engine("w")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, Inputs: machine.Values{"message": "hi", "id": 1}}); !errors.Is(err, context.Canceled) || errors.Is(err, engine.ErrStore) {
		t.Errorf("Start gave %v", err)
	}
	if _, err := e.Advance(ctx, "run"); !errors.Is(err, context.Canceled) || errors.Is(err, engine.ErrStore) {
		t.Errorf("Advance gave %v", err)
	}
}

const big = int64(9007199254740993) // 2^53 + 1, which no float64 holds

// Whole numbers are the same at every stop of their way.
func TestWholeNumbersStayExact(t *testing.T) {
	f := newFlow().tool("write", machine.EffectWrite, func(spec *machine.ToolSpec) {
		spec.Parameters = mustSchema(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	}).state("start", "next", "later").state("later", "next", "end").state("end").variable("n", `{"type":"integer"}`)
	f.m.Inputs = machine.Ordered[machine.Variable]{{Name: "id", Value: machine.Variable{Input: true, Schema: mustSchema(`{"type":"integer"}`)}}}
	f.at("start").Reads = append(f.at("start").Reads, "id")
	exact := fn(func(f machine.Facts) (machine.Value, error) { return f.Values["n"] == big, nil })
	f.at("later").Transitions["next"] = []machine.Branch{{When: exact, To: "end", Set: machine.Ordered[machine.Tree]{{Name: "n", Value: value(big + 2)}}}, {To: "later"}}
	r := newRig(t, f)
	r.tools["write"] = func(_ context.Context, c tool.Call) (machine.Value, error) {
		if c.Args["n"] != big {
			t.Errorf("the tool got %v", c.Args["n"])
		}
		return machine.Values{"n": c.Args["n"]}, nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		id, _ := engine.Get[int64](step, "id")
		res, err := call(step, engine.Call{Tool: "write", Args: machine.Values{"n": id}})
		if err != nil {
			return "", err
		}
		if err := step.Set("n", res.Value.(machine.Values)["n"]); err != nil {
			return "", err
		}
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?", Schema: mustSchema(`{"type":"integer"}`)})
		if err == nil && ans.Value != big+1 {
			t.Errorf("the answer is %v", ans.Value)
		}
		return "next", err
	})
	r.on("later", outcome("next"))
	e := r.engine("w")
	if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"id": big}}); err != nil {
		t.Fatal(err)
	}
	advance(t, e)
	e = r.engine("w2")
	answer(t, e, engine.Reply{Ask: "1.1", Text: fmt.Sprint(big + 1)})
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if snap.Vars["n"] != big+2 {
		t.Errorf("n is %v", snap.Vars["n"])
	}
}

// No secret gets into the store, whichever way it comes.
func TestSecretsAreNotStored(t *testing.T) {
	const key = "sk-test-AAAA1111"
	f := newFlow().tool("write", machine.EffectWrite, nil).tool("fail", machine.EffectRead, nil).tool("loud", machine.EffectRead, nil).
		state("start", "next", "later").state("later", "next", "end", "fail", "end").state("end").variable("v", `{"type":"string"}`)
	f.m.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true, Schema: mustSchema(`{"type":"string"}`)}}}
	f.m.Message = "message"
	r := newRig(t, f)
	secrets, err := secret.New(map[string]string{"KEY": key})
	if err != nil {
		t.Fatal(err)
	}
	var observed strings.Builder
	r.config = func(cfg *engine.Config) {
		cfg.Secrets = secrets
		cfg.Observe = func(_ string, ev history.Event) { fmt.Fprintf(&observed, "%+v\n", ev.Data) }
	}
	sees := func(where, text string) {
		if strings.Contains(text, key) || !strings.Contains(text, "[secret:KEY]") {
			t.Errorf("%s holds %q", where, text)
		}
	}
	r.tools["write"] = func(_ context.Context, c tool.Call) (machine.Value, error) {
		sees("the tool", fmt.Sprint(c.Args["text"]))
		return "wrote " + key, nil
	}
	r.tools["fail"] = func(context.Context, tool.Call) (machine.Value, error) { return nil, errors.New("401 for " + key) }
	r.tools["loud"] = func(context.Context, tool.Call) (machine.Value, error) { panic("no " + key) }
	r.on("start", tellSecrets(key, sees))
	r.on("later", func(context.Context, *engine.Step) (machine.Outcome, error) {
		return "", errors.New("broke over " + key)
	})
	e := r.engine("w")
	ctx := context.Background()
	if _, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: "run", Inputs: machine.Values{"message": "my key is " + key}}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Waiting)
	if err := e.Signal(ctx, "run", "told", "it is "+key); err != nil {
		t.Fatal(err)
	}
	answer(t, e, engine.Reply{Ask: "1.3", Text: "yes, " + key})
	wantStop(t, advance(t, e), history.CodeHandler, "[secret:KEY]")
	rows, err := r.store.Events(ctx, "run", 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		if strings.Contains(string(row.Data), key) {
			t.Errorf("event %d (%s): %s", row.Seq, row.Type, row.Data)
		}
	}
	if strings.Contains(observed.String(), key) {
		t.Error("an observer saw the key")
	}
	r.on("later", outcome("fail"))
	wantStatus(t, advance(t, e), store.Succeeded)
}

// tellSecrets is a handler that lets a key slip wherever it can, and looks at what comes back.
func tellSecrets(key string, sees func(where, text string)) func(context.Context, *engine.Step) (machine.Outcome, error) {
	return func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if err := step.Set("v", "mine is "+key); err != nil {
			return "", err
		}
		v, _ := engine.Get[string](step, "v")
		sees("the variable", v)
		res, err := step.Call(engine.Call{Tool: "write", Args: text("use " + key)}, engine.Call{Tool: "fail", Args: text("x")},
			engine.Call{Tool: "loud", Args: text("x")}, engine.Call{Tool: key})
		if err != nil {
			return "", err
		}
		sees("a result", res[0].Value.(string))
		sees("an error", res[1].Problem.Message)
		sees("a panic", res[2].Problem.Message)
		sees("a refusal", res[3].Problem.Message)
		if err := step.Note("noted " + key); err != nil {
			return "", err
		}
		if err := step.Say("said " + key); err != nil {
			return "", err
		}
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "is it " + key + "?"})
		if err != nil {
			return "", err
		}
		sees("the answer", ans.Text)
		heard, err := step.Heard()
		if err != nil {
			return "", err
		}
		sees("the first message", heard[0])
		return "next", nil
	}
}
