package engine_test

import (
	"bytes"
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/secret"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

func TestWhatAHandlerDoesWrongStopsTheRun(t *testing.T) {
	boom := &machine.ExprError{Pos: machine.Pos{File: "flow.yaml", Line: 7, Col: 3}, Source: "total > 3", Values: "total = null",
		Err: errors.New("null > int")}
	fails := fn(func(machine.Facts) (machine.Value, error) { return nil, boom })
	for _, tc := range []struct {
		name string
		do   func(context.Context, *engine.Step) (machine.Outcome, error)
		code history.StopCode
		says []string
	}{
		{"panic", func(context.Context, *engine.Step) (machine.Outcome, error) { panic("out of cheese") },
			history.CodePanic, []string{"handler start", "state start", "out of cheese"}},
		{"error without outcome", func(context.Context, *engine.Step) (machine.Outcome, error) { return "", errors.New("no idea") },
			history.CodeHandler, []string{"handler start", "no idea", "resume run"}},
		{"neither outcome nor error", func(context.Context, *engine.Step) (machine.Outcome, error) { return "", nil },
			history.CodeHandler, []string{"no outcome", "no reason"}},
		{"unknown outcome", outcome("sideways"), history.CodeHandler, []string{"sideways", "state start has no transition"}},
		{"outage without a line", func(context.Context, *engine.Step) (machine.Outcome, error) {
			return machine.Error, machine.Problem{Kind: "unavailable", Message: "the shop is closed"}
		}, history.CodeOutage, []string{"the shop is closed", "when that is put right"}},
		{"undeclared read", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			engine.Get[string](step, "foreign")
			return "next", nil
		}, history.CodeHandler, []string{"read variable foreign"}},
		{"undeclared write", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			return "next", step.Set("foreign", "x")
		}, history.CodeHandler, []string{"wrote variable foreign"}},
		{"text that fails", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			_, err := step.Render(fails)
			return "next", err
		}, history.CodeExpression, []string{"state start", "flow.yaml:7:3", "total > 3", "total = null", "resume run --flow"}},
		{"tree that fails", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			_, err := step.Compute(fails)
			return "next", err
		}, history.CodeExpression, []string{"total > 3"}},
		{"condition that is neither", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			_, err := step.Holds(value("maybe"), nil)
			return "next", err
		}, history.CodeExpression, []string{"maybe", "expected true or false"}},
		{"output that is no JSON", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			return "", step.End(store.Succeeded, math.NaN())
		}, history.CodeHandler, []string{"cannot be stored"}},
		{"note that ends in a wrong status", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			return "", step.End(store.Waiting, nil)
		}, history.CodeHandler, []string{"waiting"}},
		{"no model", func(_ context.Context, step *engine.Step) (machine.Outcome, error) { return "", step.NoModel() },
			history.CodeNoKey, []string{"SHOP_KEY", "resume run"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFlow().state("start", "next", "end").state("end")
			f.m.Vars = machine.Ordered[machine.Variable]{{Name: "foreign"}}
			f.at("start").Model = machine.ModelDeclared
			r := newRig(t, f)
			r.config = func(cfg *engine.Config) {
				cfg.Models = models{keys: []string{"SHOP_KEY"}, ready: func() machine.ModelCase { return machine.ModelMissing }}
			}
			r.on("start", tc.do)
			snap := r.run(r.engine("w"))
			wantStop(t, snap, tc.code, tc.says...)
			if snap.Now.State != "start" {
				t.Errorf("stopped in %s", snap.Now.State)
			}
		})
	}
}

func TestAGuardThatFailsStopsTheRunAndIsMendedByAnotherTry(t *testing.T) {
	bad := true
	guard := fn(func(machine.Facts) (machine.Value, error) {
		if bad {
			return nil, errors.New("null > int")
		}
		return true, nil
	})
	r := newRig(t, newFlow().state("start").state("end").route("start", "next", machine.Branch{When: guard, To: "end"}))
	r.on("start", outcome("next"))
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeExpression, "null > int", "state start")
	bad = false
	wantStatus(t, advance(t, e), store.Succeeded)
}

func TestStopsAndGoesOnWhenTheProgramHasWhatTheFlowNeeds(t *testing.T) {
	r := newRig(t, newFlow().tool("look", machine.EffectRead, nil).state("start", "next", "end").state("end"))
	handler := scripted{do: outcome("next")}
	r.handlers["other"] = handler
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeHandler, "tool look") // the test's kind has no such tool
	r.tools["look"] = nil
	wantStop(t, advance(t, e), history.CodeHandler, "no handler start")
	r.handlers["start"] = handler
	wantStatus(t, advance(t, e), store.Succeeded)
}

func TestReasonBesideAnOutcomeIsKept(t *testing.T) {
	f := newFlow().state("start", "fail", "middle").state("middle", "next", "end").state("end")
	f.at("start").View.Attempts = true
	r := newRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if err := step.Note("tried the door"); err != nil {
			return "", err
		}
		return machine.Fail, errors.New("it is locked")
	})
	r.on("middle", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		want := machine.Last{Outcome: machine.Fail, Error: machine.Problem{Kind: "failed", Message: "it is locked"}}
		if got := step.Last(); got != want {
			t.Errorf("last is %+v, want %+v", got, want)
		}
		return "next", nil
	})
	snap := r.run(r.engine("w"))
	wantStatus(t, snap, store.Succeeded)
	got := snap.Attempts["start"]
	if len(got) != 1 || got[0].Problem.Message != "it is locked" || len(got[0].Notes) != 1 || got[0].Notes[0] != "tried the door" {
		t.Errorf("attempts %+v", got)
	}
}

func TestADeadStepIgnoresItsHandler(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, first := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		for name, again := range map[string]error{"Say": step.Say("x"), "Note": step.Note("x"), "Set": step.Set("v", 1), "End": step.End(store.Failed, nil)} {
			if again != first {
				t.Errorf("%s gave %v, want %v", name, again, first)
			}
		}
		_, err := step.Call(engine.Call{Tool: "x"})
		if err != first {
			t.Errorf("Call gave %v", err)
		}
		panic("the handler did not mind the error")
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Waiting)
	if got := trace(t, e, "run"); got != "run_started start asked run_waiting" {
		t.Errorf("history %s", got)
	}
}

func TestLogOfAPanicHoldsNoSecret(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) { panic("key sk-test-AAAA1111 refused") })
	secrets, err := secret.New(map[string]string{"KEY": "sk-test-AAAA1111"})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r.config = func(cfg *engine.Config) { cfg.Log, cfg.Secrets = zerolog.New(&log), secrets }
	snap := r.run(r.engine("w"))
	wantStop(t, snap, history.CodePanic, "key [secret:KEY] refused")
	if !strings.Contains(log.String(), "[secret:KEY]") || strings.Contains(log.String(), "sk-test") {
		t.Errorf("log: %s", log.String())
	}
}

// What a Go handler gives as arguments is one value, live and on re-entry.
func TestArgumentsOfGoTypesAreFoundAgain(t *testing.T) {
	type pair struct {
		N int `json:"n"`
	}
	f := newFlow().tool("look", machine.EffectRead, func(spec *machine.ToolSpec) {
		spec.Parameters = mustSchema(`{"type":"object","additionalProperties":true}`)
	}).
		state("start", "next", "end").state("end")
	r := newRig(t, f)
	r.tools["look"] = func(_ context.Context, call tool.Call) (machine.Value, error) { return call.Args["n"], nil }
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		args := machine.Values{"n": 5, "list": []string{"a"}, "pair": pair{N: 7}}
		results, err := step.Call(engine.Call{Tool: "look", Args: args}, engine.Call{Tool: "nowhere", Args: args},
			engine.Call{Tool: "look", Args: machine.Values{"no": make(chan int)}})
		if err != nil {
			return "", err
		}
		if results[0].Value != int64(5) || results[1].Status != tool.Refused || results[2].Status != tool.Refused {
			t.Errorf("results %+v", results)
		}
		_, err = step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "next", err
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Waiting)
	if err := e.Answer(context.Background(), "run", engine.Reply{Ask: "1.1", Text: "x"}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
}

// A missing model goes by the state's line for error, where it has one.
func TestNoModelGoesByTheLineForError(t *testing.T) {
	f := newFlow().state("start", "next", "end").state("other", "next", "end").state("end")
	f.at("start").Transitions[machine.Error] = []machine.Branch{{To: "other"}}
	r := newRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) { return "", step.NoModel() })
	r.on("other", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if last := step.Last(); last.Outcome != machine.Error || last.Error.Kind != "no_key" {
			t.Errorf("last is %+v", last)
		}
		return "next", nil
	})
	wantStatus(t, r.run(r.engine("w")), store.Succeeded)
}
