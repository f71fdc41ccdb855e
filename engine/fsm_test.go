package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/faulty"
)

// visits is a guard on how often a state was entered.
func visits(state string, n int64) machine.Expr {
	return fn(func(f machine.Facts) (machine.Value, error) { return f.Visits[state] == n, nil })
}

func TestGuardedBranchesOfOneOutcomeStayApart(t *testing.T) {
	f := newFlow().state("start").state("side", "back", "start").state("end").
		route("start", "go", machine.Branch{When: visits("start", 1), To: "start"},
			machine.Branch{When: visits("start", 2), To: "side"}, machine.Branch{To: "end"})
	r := newRig(t, f)
	r.on("start", outcome("go"))
	r.on("side", outcome("back"))
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	if want := []string{"start", "start", "side", "start", "end"}; !slices.Equal(snap.Now.Path, want) {
		t.Errorf("path %v, want %v", snap.Now.Path, want)
	}
	var branches []int
	for _, tr := range all[*history.Transition](t, e) {
		branches = append(branches, tr.Branch)
	}
	if want := []int{0, 1, 0, 2}; !slices.Equal(branches, want) {
		t.Errorf("branches %v, want %v", branches, want)
	}
}

func TestLimitOfVisitsGoesAlongFail(t *testing.T) {
	byVisits := fn(func(f machine.Facts) (machine.Value, error) { return f.Last.Error.Kind == "visits", nil })
	f := newFlow().state("start", "again", "start").state("other", "done", "end").state("end").
		route("start", machine.Fail, machine.Branch{When: value(false), To: "end"}, machine.Branch{When: byVisits, To: "other"},
			machine.Branch{To: "end"})
	f.at("start").Limits.Visits = 2
	r := newRig(t, f)
	entered := 0
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) { entered++; return "again", nil })
	r.on("other", outcome("done"))
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Succeeded)
	if want := []string{"start", "start", "start", "other", "end"}; !slices.Equal(snap.Now.Path, want) {
		t.Errorf("path %v, want %v", snap.Now.Path, want)
	}
	if entered != 2 {
		t.Errorf("the handler was called %d times, want 2: not for the visit above the limit", entered)
	}
	tr := all[*history.Transition](t, e)[2]
	if tr.Outcome != machine.Fail || tr.Branch != 1 || tr.Problem.Kind != "visits" {
		t.Errorf("the limit's transition is %+v, want branch 1 of fail with kind visits", tr)
	}
}

func TestInterruptLeavesAnyQuestion(t *testing.T) {
	for _, tc := range []struct {
		name  string
		ask   engine.Question
		reply engine.Reply
	}{
		{"free answer", engine.Question{Kind: history.KindAsk, Text: "Name?"}, engine.Reply{Text: "stop it"}},
		{"given as JSON", engine.Question{Kind: history.KindAsk, Text: "Name?"}, engine.Reply{HasValue: true, Value: "stop it"}},
		{"reason of a no", engine.Question{Kind: history.KindConfirm, Text: "Go on?"}, engine.Reply{Yes: new(bool), Text: "stop it"}},
		{"neither yes nor no", engine.Question{Kind: history.KindConfirm, Text: "Go on?"}, engine.Reply{Text: "stop the whole show"}},
		{"none of the choices", engine.Question{Kind: history.KindAsk, Text: "Which?", Choices: []history.Choice{{Name: "red", Label: "Red"}}},
			engine.Reply{Text: "stop it"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFlow().state("start", "answered", "end").state("help", "done", "end").state("end")
			f.m.Interrupts = machine.Ordered[machine.Interrupt]{
				{Name: "leave", Value: machine.Interrupt{Match: []machine.Matcher{word("leave")}, Branch: machine.Branch{To: "end"}}},
				{Name: "halt", Value: machine.Interrupt{Match: []machine.Matcher{word("stop")},
					Branch: machine.Branch{To: "help", Say: value("You are welcome.")}}}}
			r := newRig(t, f)
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				if _, err := step.Ask(tc.ask); err != nil {
					return "", err
				}
				return "answered", nil
			})
			r.on("help", outcome("done"))
			e := r.engine("w")
			r.run(e)
			tc.reply.Ask = "1.0"
			answer(t, e, tc.reply)
			snap := advance(t, e)
			wantStatus(t, snap, store.Succeeded)
			said := tc.reply.Text
			if tc.reply.HasValue {
				said = "stop it"
			}
			if got := all[*history.Transition](t, e)[0]; got.Outcome != "interrupt.halt" || got.To != "help" {
				t.Errorf("the interrupt led along %+v", got)
			}
			if got := all[*history.Answered](t, e); len(got) != 1 || got[0].Interrupt != "halt" || got[0].Text != said {
				t.Errorf("the answer is recorded as %+v", got)
			}
		})
	}
}

// A choice is a choice, whatever an interrupt would make of its name.
func TestChoicesComeBeforeInterrupts(t *testing.T) {
	f := newFlow().state("start", "answered", "end").state("end")
	f.m.Interrupts = machine.Ordered[machine.Interrupt]{{Name: "halt", Value: machine.Interrupt{
		Match: []machine.Matcher{word("stop")}, Branch: machine.Branch{To: "end"}}}}
	r := newRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?", Choices: []history.Choice{{Name: "stop", Label: "Stop"}}})
		if err != nil {
			return "", err
		}
		return "answered", nil
	})
	e := r.engine("w")
	r.run(e)
	answer(t, e, engine.Reply{Ask: "1.0", Text: "stop"})
	advance(t, e)
	if got := all[*history.Transition](t, e)[0].Outcome; got != "answered" {
		t.Errorf("a choice led along %s, want answered", got)
	}
}

func TestFailedCommitLeavesMachineAndRunWhereTheyWere(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	broken := faulty.New(r.store, faulty.From(2, faulty.Fail(nil)))
	r.store = broken
	calls := 0
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) { calls++; return "next", nil })
	e := r.engine("w")
	r.start(e)
	_, err := e.Advance(context.Background(), "run")
	if !errors.Is(err, engine.ErrStore) || !errors.Is(err, faulty.ErrInjected) {
		t.Fatalf("got %v, want ErrStore with its cause", err)
	}
	if calls != 4 {
		t.Errorf("the step was tried %d times, want 4: once, and after each of 3 reloads", calls)
	}
	if got := trace(t, e, "run"); got != "run_started start" {
		t.Errorf("history %s, want nothing new", got)
	}
	broken.SetPlan(nil)
	wantStatus(t, advance(t, e), store.Succeeded) // by the same process, whose lease still stands
	if got := trace(t, e, "run"); got != "run_started start run_resumed transition end run_finished" {
		t.Errorf("history %s", got)
	}
}

func TestContextThatEndsInTheMiddleOfATransitionDoesNotStick(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "middle").state("middle", "next", "end").state("end"))
	ctx, cancel := context.WithCancel(context.Background())
	r.store = faulty.New(r.store, faulty.At(2, faulty.Fault{Before: func(context.Context, store.Commit) error { cancel(); return nil }}))
	r.on("start", outcome("next"))
	r.on("middle", outcome("next"))
	e := r.engine("w")
	r.start(e)
	snap, err := e.Advance(ctx, "run")
	if err != nil {
		t.Fatal(err)
	}
	wantStop(t, snap, history.CodeInterrupted, "resume run")
	if snap.Now.State != "middle" {
		t.Errorf("stopped in %s, want middle: the transition is one commit", snap.Now.State)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
}
