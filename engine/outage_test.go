package engine_test

import (
	"context"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// shut is a tool that is out of order as long as closed says so.
func shut(l *ledger, closed *bool) func(context.Context, tool.Call) (machine.Value, error) {
	return func(_ context.Context, c tool.Call) (machine.Value, error) {
		l.add(c.Key)
		if *closed {
			return nil, tool.Unavailablef("the shop is closed")
		}
		return "sold", nil
	}
}

// When a call of the flow's own meets an outage and the run stops for it, a resume tries it anew.
func TestOutageIsTriedAnewOnResume(t *testing.T) {
	for _, effect := range []machine.Effect{machine.EffectRead, machine.EffectIdempotent, machine.EffectWrite} {
		t.Run(string(effect), func(t *testing.T) {
			r, l := writing(t, func(spec *machine.ToolSpec) { spec.Effect = effect })
			closed := true
			r.tools["write"] = shut(l, &closed)
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
				if err != nil {
					return "", err
				}
				if res.Status == tool.Unavailable {
					return machine.Error, res.Problem
				}
				return "next", nil
			})
			e := r.engine("w")
			wantStop(t, r.run(e), history.CodeOutage, "the shop is closed", "resume run")
			wantStop(t, advance(t, e), history.CodeOutage)
			closed = false
			wantStatus(t, advance(t, e), store.Succeeded)
			if l.String() != "run/1.0, run/1.0, run/1.0" {
				t.Errorf("ran %s", l)
			}
			failed := all[*history.AttemptFailed](t, e)
			if len(failed) != 2 || !failed[0].NotDone || failed[0].Problem.Message != "the shop is closed" {
				t.Errorf("the attempts are told as %+v", failed)
			}
		})
	}
}

// A handler that goes on from an outage finds it again when it is called anew.
func TestHandlerThatGoesOnFromAnOutage(t *testing.T) {
	r, l := writing(t, nil)
	closed := true
	r.tools["write"] = shut(l, &closed)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
		if err != nil {
			return "", err
		}
		if res.Status != tool.Unavailable || res.Problem.Message != "the shop is closed" {
			t.Errorf("the call gave %+v", res)
		}
		_, err = step.Ask(engine.Question{Kind: history.KindAsk, Text: "What now?"})
		return "next", err
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Waiting)
	closed = false
	answer(t, e, engine.Reply{Ask: "1.1", Text: "go on"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if l.String() != "run/1.0" {
		t.Errorf("ran %s", l)
	}
}

// In a loop the model reads that a tool is out of order.
func TestOutageInALoopIsAResult(t *testing.T) {
	r, l := writing(t, nil)
	closed := true
	r.tools["write"] = shut(l, &closed)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x")})
		if err == nil && res.Status != tool.Unavailable {
			t.Errorf("the call gave %+v", res)
		}
		return "next", err
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	if got := all[*history.ToolFinished](t, e); len(got) != 1 || got[0].Result.Status != tool.Unavailable {
		t.Errorf("recorded %+v", got)
	}
}
