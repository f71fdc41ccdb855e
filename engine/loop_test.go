package engine_test

import (
	"context"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// trace gives a history as one word per event, for comparing.
func trace(t *testing.T, e *engine.Engine, run string) string {
	t.Helper()
	evs, err := e.History(context.Background(), run)
	if err != nil {
		t.Fatal(err)
	}
	words := make([]string, len(evs))
	for i, ev := range evs {
		words[i] = string(ev.Data.Type())
		if _, ok := ev.Data.(*history.StateEntered); ok {
			words[i] = ev.State
		}
	}
	return strings.Join(words, " ")
}

func TestRunGoesFromStateToStateToItsEnd(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "middle").state("middle", "again", "middle", "next", "end").state("end"))
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) { return "next", nil })
	r.on("middle", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if step.Visit() < 3 {
			return "again", nil
		}
		return "next", nil
	})
	e := r.engine("w")
	r.start(e)
	snap := advance(t, e)
	if snap.Status != store.Succeeded {
		t.Fatalf("status %s (%+v)", snap.Status, snap.Stop)
	}
	want := "run_started start transition middle transition middle transition middle transition end run_finished"
	if got := trace(t, e, "run"); got != want {
		t.Errorf("history\n%s, want\n%s", got, want)
	}
	if snap.Spent.Usage.Steps != 5 || snap.Now.Visits["middle"] != 3 {
		t.Errorf("usage %+v, visits %v", snap.Spent.Usage, snap.Now.Visits)
	}
}

func TestQuestionSuspendsAndAnswerGoesOn(t *testing.T) {
	r := newRig(t, newFlow().state("start", "confirmed", "end", "rejected", "start").state("end"))
	asked := 0
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		asked++
		ans, err := step.Ask(engine.Question{Kind: history.KindConfirm, Text: "Go on?", Schema: mustSchema(`{"type":"boolean"}`)})
		if err != nil {
			return "", err
		}
		if ans.Yes() {
			return machine.Confirmed, nil
		}
		return machine.Rejected, nil
	})
	e := r.engine("w")
	r.start(e)
	snap := advance(t, e)
	if snap.Status != store.Waiting || len(snap.Pending) != 1 || snap.Pending[0].ID != "1.0" {
		t.Fatalf("status %s, pending %+v", snap.Status, snap.Pending)
	}
	for i, yes := range []bool{false, true} {
		id := snap.Pending[0].ID
		if err := e.Answer(context.Background(), "run", engine.Reply{Ask: id, Yes: &yes}); err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		snap = advance(t, e)
	}
	if snap.Status != store.Succeeded {
		t.Fatalf("status %s (%+v)", snap.Status, snap.Stop)
	}
	want := "run_started start asked run_waiting answered transition start asked run_waiting answered transition end run_finished"
	if got := trace(t, e, "run"); got != want {
		t.Errorf("history\n%s, want\n%s", got, want)
	}
}
