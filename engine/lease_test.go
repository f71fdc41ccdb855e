package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// A worker whose heartbeat is too old loses its run; when it goes on, nothing of it gets into the history and it starts no
// further tool.
func TestStaleWorkerLosesItsRun(t *testing.T) {
	r := newRig(t, newFlow().tool("read", machine.EffectRead, nil).tool("write", machine.EffectWrite, nil).
		state("start", "next", "end").state("end"))
	r.config = func(cfg *engine.Config) { cfg.Beat = time.Hour } // it never beats again
	stands, goOn := make(chan struct{}), make(chan struct{})
	var reads, writes atomic.Int64
	r.tools["read"] = func(context.Context, tool.Call) (machine.Value, error) {
		if reads.Add(1) == 1 { // the first worker freezes here
			close(stands)
			<-goOn
		}
		return "x", nil
	}
	r.tools["write"] = func(context.Context, tool.Call) (machine.Value, error) {
		writes.Add(1)
		return "x", nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for _, name := range []string{"read", "write"} {
			if _, err := call(step, engine.Call{Tool: name, Args: text("x")}); err != nil {
				return "", err
			}
		}
		return "next", nil
	})
	first, second := r.engine("first"), r.engine("second")
	r.start(first)
	lost := make(chan error, 1)
	go func() {
		_, err := first.Advance(context.Background(), "run")
		lost <- err
	}()
	await(t, stands, "the first worker's tool")
	if _, err := second.Advance(context.Background(), "run"); !errors.Is(err, engine.ErrBusy) {
		t.Fatalf("the second worker got %v while the first is alive, want ErrBusy", err)
	}
	r.clock.advance(16 * time.Second)
	snap := advance(t, second)
	wantStatus(t, snap, store.Succeeded)
	before := trace(t, second, "run")
	close(goOn)
	if err := await(t, lost, "the first worker"); !errors.Is(err, engine.ErrLost) {
		t.Fatalf("the first worker got %v, want ErrLost", err)
	}
	if after := trace(t, second, "run"); after != before {
		t.Errorf("the loser wrote:\n%s\nwas\n%s", after, before)
	}
	if !strings.Contains(before, "run_resumed") || writes.Load() != 1 {
		t.Errorf("history %s, %d writes", before, writes.Load())
	}
}

// A heartbeat keeps a run, however long a tool takes.
func TestHeartbeatKeepsTheRun(t *testing.T) {
	r := newRig(t, newFlow().tool("read", machine.EffectRead, nil).state("start", "next", "end").state("end"))
	r.config = func(cfg *engine.Config) { cfg.Beat = time.Millisecond }
	stands, goOn := make(chan struct{}), make(chan struct{})
	r.tools["read"] = func(context.Context, tool.Call) (machine.Value, error) {
		close(stands)
		<-goOn
		return "x", nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := call(step, engine.Call{Tool: "read", Args: text("x")})
		return "next", err
	})
	first, second := r.engine("first"), r.engine("second")
	r.start(first)
	end := make(chan *history.Snapshot, 1)
	go func() { end <- advance(t, first) }()
	await(t, stands, "the tool")
	for range 5 {
		r.clock.advance(10 * time.Second)
		now := r.clock.Now()
		for { // until the heartbeat has seen the new time
			rows, err := r.store.Runs(context.Background(), store.Filter{ID: "run"})
			if err != nil {
				t.Fatal(err)
			}
			if !rows[0].Holder.Beat.Before(now.Truncate(time.Millisecond)) {
				break
			}
		}
		if _, err := second.Advance(context.Background(), "run"); !errors.Is(err, engine.ErrBusy) {
			t.Fatalf("got %v, want ErrBusy", err)
		}
	}
	close(goOn)
	wantStatus(t, await(t, end, "the run"), store.Succeeded)
}

func TestOneProcessAdvancesARunOnceAtATime(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	stands, goOn := make(chan struct{}), make(chan struct{})
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) {
		close(stands)
		<-goOn
		return "next", nil
	})
	e := r.engine("w")
	r.start(e)
	end := make(chan *history.Snapshot, 1)
	go func() { end <- advance(t, e) }()
	await(t, stands, "the handler")
	for name, err := range map[string]error{
		"Advance": func() error { _, err := e.Advance(context.Background(), "run"); return err }(),
		"Answer":  e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0"}),
		"Resume":  e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true}),
	} {
		if !errors.Is(err, engine.ErrBusy) {
			t.Errorf("%s gave %v, want ErrBusy", name, err)
		}
	}
	close(goOn)
	wantStatus(t, await(t, end, "the run"), store.Succeeded)
}

// Two runs that go on by turns in one engine never see each other's words.
func TestInterleavedRunsDoNotMix(t *testing.T) {
	f := newFlow().variable("seen", `{"type":"string"}`).state("start", "again", "start", "next", "end").state("end")
	f.variable("note", `{"type":"string"}`)
	f.at("start").View.Messages.Mode = machine.MessagesAll
	r := newRig(t, f)
	foreign := map[string]string{"a": "beta-9", "b": "alpha-7"}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		v, err := step.View()
		if err != nil {
			return "", err
		}
		note, _ := engine.Get[string](step, "note")
		heard, err := step.Heard()
		if err != nil {
			return "", err
		}
		run := step.RunID()
		if all := fmt.Sprint(v, note, heard); strings.Contains(all, foreign[run]) {
			t.Errorf("run %s sees %s", run, all)
		}
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "And?"})
		if err != nil {
			return "", err
		}
		if err := step.Set("note", ans.Text); err != nil {
			return "", err
		}
		if step.Visit() == 10 {
			return "next", nil
		}
		return "again", nil
	})
	e := r.engine("w")
	ctx := context.Background()
	for run := range foreign {
		if _, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: run}); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Advance(ctx, run); err != nil {
			t.Fatal(err)
		}
	}
	for turn := 1; turn <= 10; turn++ {
		var both sync.WaitGroup
		for run, word := range map[string]string{"a": "alpha-7", "b": "beta-9"} {
			both.Go(func() {
				if err := e.Answer(ctx, run, engine.Reply{Ask: fmt.Sprintf("%d.0", turn), Text: word}); err != nil {
					t.Error(err)
				}
				if _, err := e.Advance(ctx, run); err != nil {
					t.Error(err)
				}
			})
		}
		both.Wait()
	}
	for run := range foreign {
		report, err := e.Report(ctx, run)
		if err != nil || report.Status != store.Succeeded {
			t.Errorf("run %s: %v %v", run, report.Status, err)
		}
	}
}
