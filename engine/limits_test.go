package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

func raise(t *testing.T, e *engine.Engine, limit string, by float64) {
	t.Helper()
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Raise: map[string]float64{limit: by}}); err != nil {
		t.Fatal(err)
	}
}

func TestLimitOfStepsStopsAndIsRaised(t *testing.T) {
	f := newFlow().state("start", "again", "start", "next", "end").state("end")
	f.m.Limits.Steps = 3
	r := newRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if step.Visit() == 4 {
			return "next", nil
		}
		return "again", nil
	})
	e := r.engine("w")
	snap := r.run(e)
	wantStop(t, snap, history.CodeLimit, "limit of steps: 3", "--raise steps=")
	if snap.Spent.Usage.Steps != 3 {
		t.Errorf("%d steps were taken, want 3", snap.Spent.Usage.Steps)
	}
	wantStop(t, advance(t, e), history.CodeLimit, "steps: 3")
	raise(t, e, "steps", 1)
	wantStop(t, advance(t, e), history.CodeLimit, "steps: 4")
	raise(t, e, "steps", 10)
	wantStatus(t, advance(t, e), store.Succeeded)
}

func TestLimitOfToolCallsIsCheckedBeforeTheyRun(t *testing.T) {
	f := newFlow().tool("write", machine.EffectWrite, nil).state("start", "next", "end").state("end")
	f.m.Limits.ToolCalls = 3
	r := newRig(t, f)
	ran := 0
	r.tools["write"] = func(context.Context, tool.Call) (machine.Value, error) { ran++; return ran, nil }
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		two := []engine.Call{{Tool: "write", Args: text("x")}, {Tool: "write", Args: text("y")}}
		for range 2 {
			if _, err := step.Call(two...); err != nil {
				return "", err
			}
		}
		return "next", nil
	})
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeLimit, "tool_calls: 3")
	if ran != 2 {
		t.Errorf("%d calls ran, want the 2 of the batch that fits", ran)
	}
	raise(t, e, "tool_calls", 1)
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if ran != 4 || snap.Spent.Usage.ToolCalls != 4 {
		t.Errorf("%d calls ran and %d are counted, want 4", ran, snap.Spent.Usage.ToolCalls)
	}
}

func TestRefusedCallsDoNotCount(t *testing.T) {
	f := newFlow().tool("write", machine.EffectWrite, nil).state("start", "next", "end").state("end")
	f.m.Limits.ToolCalls = 1
	r := newRig(t, f)
	r.tools["write"] = func(context.Context, tool.Call) (machine.Value, error) { return "x", nil }
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := step.Call(engine.Call{Tool: "write"}, engine.Call{Tool: "nowhere"}, engine.Call{Tool: "write", Args: text("x")})
		if err == nil && (res[0].Status != tool.Refused || res[1].Status != tool.Refused || res[2].Status != tool.OK) {
			t.Errorf("results %+v", res)
		}
		return "next", err
	})
	snap := r.run(r.engine("w"))
	wantStatus(t, snap, store.Succeeded)
	if snap.Spent.Usage.ToolCalls != 1 {
		t.Errorf("%d calls are counted, want 1", snap.Spent.Usage.ToolCalls)
	}
}

func TestLimitOfVisitsWithoutAnyLineStops(t *testing.T) {
	f := newFlow().state("start", "again", "start").state("end")
	f.at("start").Limits.Visits = 2
	r := newRig(t, f)
	r.on("start", outcome("again"))
	snap := r.run(r.engine("w"))
	wantStop(t, snap, history.CodeLimit, "state start", "more than 2 times")
	if !slices.Equal(snap.Now.Path, []string{"start", "start", "start"}) {
		t.Errorf("path %v, want the entry above the limit in it", snap.Now.Path)
	}
}

func TestLimitOfVisitsGoesByItsOwnLine(t *testing.T) {
	f := newFlow().state("start", "again", "start", "fail", "end").state("rest", "done", "end").state("end").
		route("start", machine.Limit, machine.Branch{To: "rest"})
	f.at("start").Limits.Visits = 1
	r := newRig(t, f)
	r.on("start", outcome("again"))
	r.on("rest", outcome("done"))
	snap := r.run(r.engine("w"))
	wantStatus(t, snap, store.Succeeded)
	if !slices.Equal(snap.Now.Path, []string{"start", "start", "rest", "end"}) {
		t.Errorf("path %v", snap.Now.Path)
	}
}

func TestTimeOfAStateIsAnOutcome(t *testing.T) {
	for _, routed := range []bool{true, false} {
		f := newFlow().variable("late", `{"type":"string"}`).state("start", "next", "end").state("slow", "done", "end").state("end")
		f.variable("seen", `{"type":"string"}`)
		f.at("start").Limits.Time = machine.Duration(time.Minute)
		if routed {
			f.at("start").Transitions[machine.Timeout] = []machine.Branch{{To: "slow"}}
		}
		r := newRig(t, f)
		r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			if err := step.Say("working"); err != nil {
				return "", err
			}
			r.clock.advance(2 * time.Minute)
			_ = step.Set("seen", "done")
			return "next", nil // it did not notice
		})
		r.on("slow", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			if !step.Has("seen") {
				t.Error("what the step knew went with its time: a mark of finished work, and it would be done again")
			}
			if got := step.Last(); got.Outcome != machine.Timeout || got.Error.Kind != "timeout" {
				t.Errorf("last is %+v", got)
			}
			return "done", nil
		})
		e := r.engine("w")
		snap := r.run(e)
		if routed {
			wantStatus(t, snap, store.Succeeded)
			continue
		}
		wantStop(t, snap, history.CodeTimeout, "state start took longer than 1m0s", "--restart-state")
		if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true}); err != nil {
			t.Fatal(err)
		}
		wantStop(t, advance(t, e), history.CodeTimeout)
		if got := all[*history.Said](t, e); len(got) != 2 {
			t.Errorf("the state was begun anew %d times, want 1", len(got)-1)
		}
	}
}

// cutByTime is a run whose state is entered again by timeout, and whose write takes longer than the state's time.
func cutByTime(t *testing.T, policy machine.InDoubt) (*rig, *engine.Engine) {
	f := newFlow().tool("write", machine.EffectWrite, func(spec *machine.ToolSpec) { spec.InDoubt = policy }).
		state("start", "next", "end", "fail", "end").state("slow", "done", "end").state("end")
	f.at("start").Limits.Time = machine.Duration(20 * time.Millisecond)
	f.at("start").Transitions[machine.Timeout] = []machine.Branch{{To: "slow"}}
	r := newRig(t, f)
	r.config = func(cfg *engine.Config) { cfg.Now = time.Now }
	r.tools["write"] = func(ctx context.Context, _ tool.Call) (machine.Value, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
		return "next", err
	})
	r.on("slow", outcome("done"))
	return r, r.engine("w")
}

// A write that a state's time cuts short is asked about before the run moves on: who comes back would do it again.
func TestTimeOfAStateLeavesNoWriteBehindInDoubt(t *testing.T) {
	r, e := cutByTime(t, machine.InDoubtAsk)
	snap := r.run(e)
	wantStatus(t, snap, store.Waiting)
	if len(snap.Pending) != 1 || snap.Pending[0].Kind != history.KindInDoubt {
		t.Fatalf("pending %+v", snap.Pending)
	}
	if err := e.Answer(context.Background(), "run", engine.Reply{Ask: snap.Pending[0].ID, Verdict: history.Done}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Succeeded)
	want := "run_started start tool_started asked run_waiting doubt_resolved tool_finished transition slow transition end run_finished"
	if got := trace(t, e, "run"); got != want {
		t.Errorf("history %s, want %s", got, want)
	}
	if got := all[*history.Transition](t, e)[0].Outcome; got != machine.Timeout {
		t.Errorf("the state ended with %s, want timeout", got)
	}
}

// Where the flow wants nobody asked, the write is recorded as unknown when the run moves on.
func TestTimeOfAStateCutsACall(t *testing.T) {
	r, e := cutByTime(t, machine.InDoubtFail)
	wantStatus(t, r.run(e), store.Succeeded)
	if got := trace(t, e, "run"); got != "run_started start tool_started tool_finished transition slow transition end run_finished" {
		t.Errorf("history %s", got)
	}
	if got := all[*history.ToolFinished](t, e)[0].Result.Status; got != tool.Unknown {
		t.Errorf("the write is recorded as %s", got)
	}
}

// A call that ends just when the time is up is handed out with its result, so that its handler can mark it as done.
func TestTimeOfAStateKeepsWhatWasDone(t *testing.T) {
	f := newFlow().tool("write", machine.EffectWrite, nil).state("start", "next", "end").state("end").variable("seen", `{"type":"string"}`)
	f.at("start").Limits.Time = machine.Duration(time.Minute)
	f.at("start").Transitions[machine.Timeout] = []machine.Branch{{To: "end"}}
	r := newRig(t, f)
	r.tools["write"] = func(context.Context, tool.Call) (machine.Value, error) {
		r.clock.advance(2 * time.Minute)
		return "written", nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
		if err != nil {
			return "", err
		}
		if err := step.Set("seen", string(res.Status)); err != nil {
			return "", err
		}
		return "next", step.Say("never said")
	})
	snap := r.run(r.engine("w"))
	wantStatus(t, snap, store.Succeeded)
	if snap.Vars["seen"] != "ok" || snap.Last.Outcome != machine.Timeout {
		t.Errorf("seen is %v and the outcome %s, want ok and timeout", snap.Vars["seen"], snap.Last.Outcome)
	}
}

func TestTimeOfTheRunStopsAndIsRaised(t *testing.T) {
	f := newFlow().state("start", "next", "end").state("end")
	f.m.Limits.Time = machine.Duration(time.Minute)
	r := newRig(t, f)
	first := true
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if first {
			first = false
			r.clock.advance(2 * time.Minute)
		}
		return "next", step.Say("working")
	})
	e := r.engine("w")
	wantStop(t, r.run(e), history.CodeLimit, "limit of time: 1m0s", "--raise time=")
	wantStop(t, advance(t, e), history.CodeLimit, "time")
	raise(t, e, "time", 120_000)
	wantStatus(t, advance(t, e), store.Succeeded)
}

// A limit of time that is raised while a tool runs lets it run on.
func TestRaisedTimeCountsAtOnce(t *testing.T) {
	f := newFlow().tool("read", machine.EffectRead, nil).state("start", "next", "end").state("end")
	f.m.Limits.Time = machine.Duration(200 * time.Millisecond)
	r := newRig(t, f)
	r.config = func(cfg *engine.Config) { cfg.Now, cfg.Beat = time.Now, time.Millisecond }
	runs, goOn := make(chan struct{}), make(chan struct{})
	r.tools["read"] = func(ctx context.Context, _ tool.Call) (machine.Value, error) {
		close(runs)
		<-goOn
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(300 * time.Millisecond): // longer than the limit was
			return "x", nil
		}
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := call(step, engine.Call{Tool: "read", Args: text("x")})
		return "next", err
	})
	posted := make(chan struct{})
	worker := r.engine("worker")
	r.store = &posting{Store: r.store, posted: func() { close(posted) }}
	other := r.engine("other")
	r.start(worker)
	end := make(chan *history.Snapshot, 1)
	go func() { end <- advance(t, worker) }()
	await(t, runs, "the tool")
	raised := make(chan error, 1)
	go func() { raised <- other.Raise(context.Background(), "run", "time", 60_000) }()
	await(t, posted, "the notice")
	close(goOn)
	wantStatus(t, await(t, end, "the run"), store.Succeeded)
	if err := await(t, raised, "the raise"); err != nil {
		t.Fatal(err)
	}
}

// Time that a run waits, is stopped, or lies with a dead process is not counted.
func TestOnlyActiveTimeCounts(t *testing.T) {
	f := newFlow().state("start", "next", "middle").state("middle", "next", "end").state("end")
	f.m.Limits.Time = machine.Duration(time.Minute)
	r := newRig(t, f)
	stop := true
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if _, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"}); err != nil {
			return "", err
		}
		return "next", nil
	})
	r.on("middle", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if stop {
			stop = false
			return "", nil
		}
		return "next", nil
	})
	dead := r.engine("dead")
	r.start(dead)
	r.clock.advance(time.Hour) // it is dead
	e := r.heir("w")
	if err := e.Raise(context.Background(), "run", "steps", 1); err != nil { // an event in between counts nothing either
		t.Fatal(err)
	}
	r.clock.advance(time.Hour)
	wantStatus(t, advance(t, e), store.Waiting)
	r.clock.advance(time.Hour)
	answer(t, e, engine.Reply{Ask: "1.0", Text: "x"})
	e.Close() // it gives the run back
	r.clock.advance(time.Hour)
	wantStop(t, advance(t, e), history.CodeHandler)
	r.clock.advance(time.Hour)
	snap := advance(t, e)
	wantStatus(t, snap, store.Succeeded)
	if snap.Spent.Active > time.Second {
		t.Errorf("%s of work are counted", snap.Spent.Active)
	}
}
