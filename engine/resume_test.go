package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// shop is a rig whose run writes, then stops in a state until it may go on.
func shop(t *testing.T) (r *rig, l *ledger, open *bool) {
	t.Helper()
	f := newFlow().tool("write", machine.EffectWrite, nil).tool("read", machine.EffectRead, nil).
		state("start", "next", "work").state("work", "next", "end").state("end").variable("wish", `{"type":"string"}`)
	f.m.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true, HasDefault: true, Default: "hi",
		Schema: mustSchema(`{"type":"string"}`)}}}
	for i, s := range f.m.States {
		s.Value.Digest = "d" + string(rune('0'+i))
	}
	r = newRig(t, f)
	l, open = &ledger{}, new(bool)
	r.tools["write"], r.tools["read"] = l.tool("write"), l.tool("read")
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		return "next", step.Set("wish", "refund")
	})
	r.on("work", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for _, c := range []engine.Call{{Tool: "read", Args: text("r")}, {Tool: "write", Args: text("w"), Direct: true}} {
			if _, err := call(step, c); err != nil {
				return "", err
			}
		}
		if !*open {
			return "", errors.New("closed")
		}
		return "next", nil
	})
	return r, l, open
}

// edited gives a copy of a rig's flow with another hash, changed.
func (r *rig) edited(change func(f *flow)) *machine.Machine {
	m := *r.flow
	m.Hash, m.Source = "sha256:edited", []byte("edited")
	m.States = nil
	for _, item := range r.flow.States {
		s := *item.Value
		item.Value = &s
		m.States = append(m.States, item)
	}
	change(&flow{&m})
	m.Seal()
	return &m
}

func TestRestartBeginsTheStateAnew(t *testing.T) {
	r, l, open := shop(t)
	e := r.engine("w")
	ctx := context.Background()
	wantStop(t, r.run(e), history.CodeHandler, "closed")
	before := trace(t, e, "run")
	err := e.Resume(ctx, "run", engine.ResumeRequest{Restart: true, Raise: map[string]float64{"steps": 3}})
	var redo *engine.RedoError
	if !errors.As(err, &redo) || redo.State != "work" || len(redo.Writes) != 1 || redo.Writes[0] != `write {"text":"w"}` {
		t.Fatalf("got %v, want the write that would run again", err)
	}
	if !strings.Contains(err.Error(), "--redo-writes") {
		t.Errorf("the error is %q", err)
	}
	if after := trace(t, e, "run"); after != before {
		t.Fatalf("recorded: %s", after)
	}
	*open = true
	if err := e.Resume(ctx, "run", engine.ResumeRequest{Restart: true, RedoWrites: true, Raise: map[string]float64{"steps": 3}}); err != nil {
		t.Fatal(err)
	}
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if l.String() != "read r, write w, read r, write w" {
		t.Errorf("ran %s", l)
	}
	if got := strings.TrimPrefix(trace(t, e, "run"), before); got != " run_resumed limit_raised work tool_finished tool_started tool_finished transition end run_finished" {
		t.Errorf("went on with %s", got)
	}
	if snap.Now.Visits["work"] != 2 || snap.Spent.Usage.Steps != 4 || snap.Spent.Raised["steps"] != 3 {
		t.Errorf("visits %v, usage %+v, raised %v", snap.Now.Visits, snap.Spent.Usage, snap.Spent.Raised)
	}
}

func TestRestartTellsOfAWriteInDoubt(t *testing.T) {
	r, _ := writing(t, nil)
	r.die("first", diesAt("1.0"))
	e := r.heir("second")
	err := e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true})
	var redo *engine.RedoError
	if !errors.As(err, &redo) || !strings.Contains(err.Error(), "result unknown") {
		t.Fatalf("got %v", err)
	}
}

func TestSwitchOfFlowKeepsTheJournalOfAnEqualState(t *testing.T) {
	r, l, open := shop(t)
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeHandler)
	*open = true
	m := r.edited(func(f *flow) {
		f.m.Vars = append(f.m.Vars, machine.Item[machine.Variable]{Name: "more", Value: machine.Variable{Default: "d", HasDefault: true, Schema: mustSchema(`{"type":"string"}`)}})
		f.m.Inputs = append(f.m.Inputs, machine.Item[machine.Variable]{Name: "lang", Value: machine.Variable{Input: true, Default: "en", HasDefault: true}})
		f.at("start").Digest = "another"
	})
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: m}); err != nil {
		t.Fatal(err)
	}
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if l.String() != "read r, write w" {
		t.Errorf("ran %s", l)
	}
	if snap.Run.FlowHash != m.Hash || snap.Vars["more"] != "d" || snap.Vars["wish"] != "refund" || snap.Inputs["lang"] != "en" || snap.Inputs["message"] != "hi" {
		t.Errorf("%+v, vars %v, inputs %v", snap.Run, snap.Vars, snap.Inputs)
	}
	if got := all[*history.FlowSwitched](t, e); len(got) != 1 || got[0].From != "sha256:test" || got[0].To != m.Hash {
		t.Errorf("switched %+v", got)
	}
}

func TestSwitchOfFlowRestartsAStateThatDiffers(t *testing.T) {
	r, l, open := shop(t)
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeHandler)
	m := r.edited(func(f *flow) { f.at("work").Digest = "another" })
	err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: m})
	var redo *engine.RedoError
	if !errors.As(err, &redo) {
		t.Fatalf("got %v, want the writes that would run again", err)
	}
	*open = true
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: m, RedoWrites: true}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	if l.String() != "read r, write w, read r, write w" {
		t.Errorf("ran %s", l)
	}
}

func TestSwitchToAStateWithANewName(t *testing.T) {
	r, _, open := shop(t)
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeHandler)
	m := r.edited(func(f *flow) {
		f.m.States[1].Name, f.m.States[1].Value.Name = "labour", "labour"
		f.at("start").Transitions["next"] = []machine.Branch{{To: "labour"}}
	})
	err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: m})
	if !errors.Is(err, engine.ErrIncompatible) || !strings.Contains(err.Error(), "no state work") || !strings.Contains(err.Error(), "--map work=") {
		t.Fatalf("got %v", err)
	}
	*open = true
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: m, Map: map[string]string{"work": "labour"}}); err != nil {
		t.Fatal(err)
	}
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if snap.Now.Visits["labour"] != 1 || snap.Now.Visits["work"] != 0 {
		t.Errorf("visits %v", snap.Now.Visits)
	}
}

func TestIncompatibleFlows(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(f *flow)
		says   []string
	}{
		{"removed variable that the state reads", func(f *flow) { f.m.Vars = nil }, []string{"no variable wish", "state work reads"}},
		{"variable of another type", func(f *flow) {
			f.m.Vars = machine.Ordered[machine.Variable]{{Name: "wish", Value: machine.Variable{Schema: mustSchema(`{"type":"integer"}`)}}}
		}, []string{"variable wish", "integer"}},
		{"new input without default", func(f *flow) {
			f.m.Inputs = append(f.m.Inputs, machine.Item[machine.Variable]{Name: "customer", Value: machine.Variable{Input: true}})
		}, []string{"new input customer without default"}},
		{"input of another type", func(f *flow) {
			f.m.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true, Schema: mustSchema(`{"type":"integer"}`)}}}
		}, []string{"input message", "integer"}},
		{"another flow", func(f *flow) { f.m.Name = "other" }, []string{"flow other", "flow test"}},
		{"several at once", func(f *flow) { f.m.Name, f.m.Vars = "other", nil }, []string{"flow other", "no variable wish"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, _, open := shop(t)
			e := r.engine("w")
			wantStop(t, r.run(e), history.CodeHandler)
			before := trace(t, e, "run")
			err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: r.edited(tc.change), RedoWrites: true})
			if !errors.Is(err, engine.ErrIncompatible) {
				t.Fatalf("got %v, want ErrIncompatible", err)
			}
			for _, text := range tc.says {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("the error is %q, want %q in it", err, text)
				}
			}
			if after := trace(t, e, "run"); after != before {
				t.Errorf("recorded: %s", after)
			}
			*open = true
			wantStatus(t, advance(t, e), store.Succeeded) // with its own definition it goes on
		})
	}
}

func TestSwitchWithAPendingQuestion(t *testing.T) {
	r := asking(t)
	r.flow.States[0].Value.Digest = "d"
	e := r.engine("w")
	ctx := context.Background()
	wantStatus(t, r.run(e), store.Waiting)
	err := e.Resume(ctx, "run", engine.ResumeRequest{Flow: r.edited(func(f *flow) { f.at("start").Digest = "another" })})
	if !errors.Is(err, engine.ErrIncompatible) || !strings.Contains(err.Error(), "question 1.0") {
		t.Fatalf("got %v", err)
	}
	m := r.edited(func(f *flow) { f.at("end").Digest = "another" })
	if err := e.Resume(ctx, "run", engine.ResumeRequest{Flow: m}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Waiting)
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
}

func TestResumeWithTheSameFlowChangesNothing(t *testing.T) {
	r, _, open := shop(t)
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeHandler)
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Flow: r.flow}); err != nil {
		t.Fatal(err)
	}
	*open = true
	wantStatus(t, advance(t, e), store.Succeeded)
	if got := all[*history.FlowSwitched](t, e); len(got) != 0 {
		t.Errorf("switched %+v", got)
	}
}

// A flow file that was edited, a state in it renamed, does not touch the runs that were started before.
func TestEditedFileDoesNotDisturbAPausedRun(t *testing.T) {
	r := asking(t)
	wantStatus(t, r.run(r.engine("w")), store.Waiting)
	old := r.flow
	r.config = func(cfg *engine.Config) {
		cfg.Compile = func(source []byte, _ string) (*machine.Machine, error) {
			if string(source) != string(old.Source) {
				t.Errorf("compiled %q, want the stored definition", source)
			}
			return old, nil
		}
	}
	r.flow = r.edited(func(f *flow) { f.m.States[0].Name = "renamed" })
	e := r.engine("w2")
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
}

// A step that stopped for want of a key sees the key when it is taken up; others keep what was recorded.
func TestModelIsRecordedAtTheEntry(t *testing.T) {
	f := newFlow().state("start", "next", "other").state("other", "next", "end").state("end")
	for _, name := range []string{"start", "other"} {
		f.at(name).Model = machine.ModelDeclared
	}
	r := newRig(t, f)
	now := machine.ModelMissing
	r.config = func(cfg *engine.Config) {
		cfg.Models = models{ready: func() machine.ModelCase { return now }}
	}
	var seen []machine.ModelCase
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if seen = append(seen, step.Model()); step.Model() != machine.ModelReady {
			return "", step.NoModel()
		}
		return "next", nil
	})
	r.on("other", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		seen = append(seen, step.Model())
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "next", err
	})
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeNoKey)
	now = machine.ModelReady
	wantStatus(t, advance(t, e), store.Waiting)
	now = machine.ModelMissing
	answer(t, e, engine.Reply{Ask: "2.0", Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
	want := []machine.ModelCase{machine.ModelMissing, machine.ModelReady, machine.ModelReady, machine.ModelReady}
	if !equal(seen, want) {
		t.Errorf("seen %v, want %v", seen, want)
	}
}

func equal[T comparable](a, b []T) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// A step sees the same time and the same random numbers on every re-entry, whatever else gets into the history.
func TestTimeAndChanceAreTheSameOnReEntry(t *testing.T) {
	f := newFlow().tool("read", machine.EffectRead, nil).state("start", "next", "end").state("end")
	r := newRig(t, f)
	r.tools["read"] = func(_ context.Context, c tool.Call) (machine.Value, error) { return "x", nil }
	var passes [][]any
	var e *engine.Engine
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		random := step.Random()
		var seen []any
		note := func() { seen = append(seen, step.Now(), random.Uint64()) }
		defer func() { passes = append(passes, seen) }()
		note()
		if err := step.Say("one"); err != nil {
			return "", err
		}
		note()
		if err := step.Note("two"); err != nil {
			return "", err
		}
		note()
		if _, err := call(step, engine.Call{Tool: "read", Args: text("x")}); err != nil {
			return "", err
		}
		note()
		if len(passes) == 0 {
			return "", errors.New("once more")
		}
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "next", err
	})
	e = r.engine("w")
	r.start(e)
	if err := e.Raise(context.Background(), "run", "steps", 1); err != nil { // an event before the first effect
		t.Fatal(err)
	}
	r.clock.advance(1e9)
	advance(t, e)
	r.clock.advance(1e9)
	advance(t, e)
	answer(t, e, engine.Reply{Ask: "1.3", Text: "x"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if len(passes) != 3 {
		t.Fatalf("%d passes", len(passes))
	}
	for i, pass := range passes[1:] {
		for j := range pass {
			if pass[j] != passes[0][j] {
				t.Errorf("pass %d saw %v as number %d, the first saw %v", i+2, pass[j], j, passes[0][j])
			}
		}
	}
}
