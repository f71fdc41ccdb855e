package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
	"flowctl/store/faulty"
)

// inFlight is a rig whose run stands in the middle of a write.
type inFlight struct {
	*rig
	worker, other *engine.Engine
	stop          context.CancelFunc // what a signal to the process does
	end           chan *history.Snapshot
}

// newInFlight starts the run and waits until its write runs, which then ends as the tool does.
func newInFlight(t *testing.T, write func(ctx context.Context) (machine.Value, error)) *inFlight {
	t.Helper()
	f := newFlow().tool("write", machine.EffectWrite, nil).state("start", "next", "end", "fail", "end").state("end")
	r := newRig(t, f)
	r.config = func(cfg *engine.Config) { cfg.Beat, cfg.Grace = time.Millisecond, 20*time.Millisecond }
	runs := make(chan struct{}, 1)
	r.tools["write"] = func(ctx context.Context, _ tool.Call) (machine.Value, error) {
		runs <- struct{}{}
		return write(ctx)
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
		if err != nil {
			return "", err
		}
		if res.Status != tool.OK {
			return machine.Fail, res.Problem
		}
		return "next", nil
	})
	x := &inFlight{rig: r, worker: r.engine("worker"), other: r.engine("other"), end: make(chan *history.Snapshot, 1)}
	ctx, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	x.stop = stop
	x.start(x.worker)
	go func() {
		snap, err := x.worker.Advance(ctx, "run")
		if err != nil {
			t.Error(err)
		}
		x.end <- snap
	}()
	await(t, runs, "the write")
	return x
}

func TestCancelOfARunAtWorkKeepsTheResultOfItsCall(t *testing.T) {
	x := newInFlight(t, func(ctx context.Context) (machine.Value, error) {
		<-ctx.Done()
		return "written", nil
	})
	if err := x.other.Cancel(context.Background(), "run"); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, await(t, x.end, "the run"), store.Cancelled)
	if got := trace(t, x.other, "run"); got != "run_started start tool_started tool_finished run_finished" {
		t.Errorf("history %s", got)
	}
	if got := all[*history.ToolFinished](t, x.other)[0].Result; got.Status != tool.OK || got.Value != "written" {
		t.Errorf("the result is %+v", got)
	}
	if err := x.other.Cancel(context.Background(), "run"); err != nil {
		t.Errorf("cancelling again gave %v", err)
	}
}

func TestCancelRecordsACallThatIgnoresItAsUnknown(t *testing.T) {
	release := make(chan struct{})
	returned := make(chan struct{})
	x := newInFlight(t, func(context.Context) (machine.Value, error) {
		<-release
		defer close(returned)
		return "late", nil
	})
	if err := x.other.Cancel(context.Background(), "run"); err != nil {
		t.Fatal(err)
	}
	snap := await(t, x.end, "the run")
	wantStatus(t, snap, store.Cancelled)
	before := trace(t, x.other, "run")
	if before != "run_started start tool_started tool_finished run_finished" {
		t.Errorf("history %s", before)
	}
	got := all[*history.ToolFinished](t, x.other)[0]
	if got.Result.Status != tool.Unknown || got.Effect != machine.EffectWrite || got.Args == nil {
		t.Errorf("the call is recorded as %+v", got)
	}
	close(release) // the late result moves nothing
	await(t, returned, "the late tool")
	if after := trace(t, x.other, "run"); after != before {
		t.Errorf("after the end: %s", after)
	}
}

func TestInterruptedProcessKeepsAResultThatComesInTime(t *testing.T) {
	x := newInFlight(t, func(ctx context.Context) (machine.Value, error) {
		<-ctx.Done()
		return "written", nil
	})
	x.stop()
	wantStop(t, await(t, x.end, "the run"), history.CodeInterrupted, "resume run")
	snap := advance(t, x.other)
	wantStatus(t, snap, store.Succeeded)
	if got := all[*history.ToolStarted](t, x.other); len(got) != 1 {
		t.Errorf("the write was started %d times", len(got))
	}
}

func TestInterruptedProcessLeavesACallInDoubt(t *testing.T) {
	x := newInFlight(t, func(ctx context.Context) (machine.Value, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	x.stop()
	wantStop(t, await(t, x.end, "the run"), history.CodeInterrupted)
	snap := advance(t, x.other)
	wantStatus(t, snap, store.Waiting)
	if len(snap.Pending) != 1 || snap.Pending[0].ID != "1.0/in_doubt" || snap.Pending[0].Kind != history.KindInDoubt {
		t.Fatalf("pending %+v", snap.Pending)
	}
}

// rolledBack is a write that is told to stop, the first time, and knows that it has changed nothing.
func rolledBack() func(ctx context.Context) (machine.Value, error) {
	tries := 0
	return func(ctx context.Context) (machine.Value, error) {
		if tries++; tries > 1 {
			return "written", nil
		}
		<-ctx.Done()
		return nil, tool.Undone(ctx, "the write")
	}
}

func TestInterruptedProcessAsksNobodyAboutAWriteThatWasRolledBack(t *testing.T) {
	x := newInFlight(t, rolledBack())
	x.stop()
	wantStop(t, await(t, x.end, "the run"), history.CodeInterrupted)
	if rows, err := x.other.Interrupted(context.Background()); err != nil || len(rows) != 1 || rows[0].ID != "run" {
		t.Errorf("interrupted are %v (%v), want the run", rows, err)
	}
	wantStatus(t, advance(t, x.other), store.Succeeded)
	want := "run_started start tool_started attempt_failed run_stopped run_resumed tool_started tool_finished transition end run_finished"
	if got := trace(t, x.other, "run"); got != want {
		t.Errorf("history %s, want %s", got, want)
	}
}

func TestCancelOfAWriteThatWasRolledBackLeavesNothingUnknown(t *testing.T) {
	x := newInFlight(t, rolledBack())
	if err := x.other.Cancel(context.Background(), "run"); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, await(t, x.end, "the run"), store.Cancelled)
	if got := trace(t, x.other, "run"); got != "run_started start tool_started attempt_failed run_finished" {
		t.Errorf("history %s", got)
	}
}

func TestCancelOfARunThatNobodyWorksOn(t *testing.T) {
	ask := func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
		return "next", err
	}
	for _, tc := range []struct {
		name   string
		handle func(context.Context, *engine.Step) (machine.Outcome, error)
		bring  func(t *testing.T, r *rig, e *engine.Engine)
		want   string
	}{
		{"waiting", ask, func(t *testing.T, r *rig, e *engine.Engine) { r.run(e) },
			"run_started start asked run_waiting run_finished"},
		{"stopped", outcome(""), func(t *testing.T, r *rig, e *engine.Engine) { r.run(e) },
			"run_started start run_stopped run_finished"},
		{"kept by this process", ask, func(t *testing.T, r *rig, e *engine.Engine) { r.start(e) },
			"run_started start run_finished"},
		{"its process is gone", ask, func(t *testing.T, r *rig, e *engine.Engine) { r.start(r.engine("dead")) },
			"run_started start run_resumed run_finished"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRig(t, newFlow().state("start", "next", "end").state("end"))
			r.on("start", tc.handle)
			e := r.heir("w")
			tc.bring(t, r, e)
			r.clock.advance(time.Hour)
			if err := e.Cancel(context.Background(), "run"); err != nil {
				t.Fatal(err)
			}
			if got := trace(t, e, "run"); got != tc.want {
				t.Errorf("history %s, want %s", got, tc.want)
			}
			if err := e.Cancel(context.Background(), "run"); err != nil {
				t.Errorf("again: %v", err)
			}
			for name, err := range map[string]error{
				"Answer":  e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0"}),
				"Signal":  e.Signal(context.Background(), "run", "x", nil),
				"Raise":   e.Raise(context.Background(), "run", "steps", 1),
				"Resume":  e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true}),
				"Advance": func() error { _, err := e.Advance(context.Background(), "run"); return err }(),
			} {
				if !errors.Is(err, engine.ErrFinished) {
					t.Errorf("%s gave %v, want ErrFinished", name, err)
				}
			}
			if got := trace(t, e, "run"); got != tc.want {
				t.Errorf("after the end: %s", got)
			}
		})
	}
}

func TestCancelOfARunThatEndedOtherwise(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	r.on("start", outcome("next"))
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	if err := e.Cancel(context.Background(), "run"); !errors.Is(err, engine.ErrFinished) {
		t.Errorf("got %v, want ErrFinished", err)
	}
	if err := e.Cancel(context.Background(), "nobody"); !errors.Is(err, engine.ErrUnknownRun) {
		t.Errorf("got %v, want ErrUnknownRun", err)
	}
}

func TestSenderThatGivesUpLeavesItsNotice(t *testing.T) {
	x := newInFlight(t, func(ctx context.Context) (machine.Value, error) {
		<-ctx.Done()
		return "x", nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	x.store = &posting{Store: x.store, posted: cancel}
	if err := x.engine("third").Cancel(ctx, "run"); !errors.Is(err, engine.ErrBusy) || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want ErrBusy and the context's error", err)
	}
	wantStatus(t, await(t, x.end, "the run"), store.Cancelled)
}

// A notice whose sender is gone is read by whoever takes the run up next, also where there is only a question to look at.
func TestCancelThatWasLeftBehind(t *testing.T) {
	r := asking(t)
	wantStatus(t, r.run(r.engine("w")), store.Waiting)
	if err := r.store.Post(context.Background(), store.Notice{Run: "run", Kind: store.NoticeCancel, Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, r.engine("w2")), store.Cancelled)
}

// posting is a store that tells when a notice was posted.
type posting struct {
	store.Store
	posted func()
}

func (s *posting) Post(ctx context.Context, n store.Notice) error {
	defer s.posted()
	return s.Store.Post(ctx, n)
}

// Words for a run at work, a waiting and a stopped one get into its history once.
func TestRaiseAndSignalReachARunWhereverItStands(t *testing.T) {
	send := func(t *testing.T, e *engine.Engine) {
		t.Helper()
		if err := e.Raise(context.Background(), "run", "steps", 5); err != nil {
			t.Fatal(err)
		}
		if err := e.Signal(context.Background(), "run", "paid", machine.Values{"cents": int64(9007199254740993)}); err != nil {
			t.Fatal(err)
		}
	}
	check := func(t *testing.T, e *engine.Engine) {
		t.Helper()
		if got := all[*history.LimitRaised](t, e); len(got) != 1 || got[0].Limit != "steps" || got[0].By != 5 {
			t.Errorf("raised %+v", got)
		}
		got := all[*history.Signalled](t, e)
		if len(got) != 1 || got[0].Name != "paid" || !machine.EqualValues(got[0].Value, machine.Values{"cents": int64(9007199254740993)}) {
			t.Errorf("signalled %+v", got)
		}
	}
	t.Run("at work", func(t *testing.T) {
		r := newRig(t, newFlow().state("start", "next", "end").state("end"))
		r.config = func(cfg *engine.Config) { // the test's clock runs away with a handler that never rests
			cfg.Beat, cfg.Stale = time.Millisecond, 1000*time.Hour
		}
		r.flow.Limits.Time = 0
		stands, goOn := make(chan struct{}), make(chan struct{})
		r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			close(stands)
			for { // notices are taken up between effects
				select {
				case <-goOn:
					return "next", nil
				default:
					if err := step.Note("busy"); err != nil {
						return "", err
					}
				}
			}
		})
		e := r.engine("worker")
		r.start(e)
		end := make(chan *history.Snapshot, 1)
		go func() { end <- advance(t, e) }()
		await(t, stands, "the handler")
		other := r.engine("other")
		send(t, other)
		check(t, other)
		close(goOn)
		wantStatus(t, await(t, end, "the run"), store.Succeeded)
		check(t, other)
	})
	for name, handle := range map[string]func(context.Context, *engine.Step) (machine.Outcome, error){
		"waiting": func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "?"})
			return "next", err
		},
		"stopped": outcome(""),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newFlow().state("start", "next", "end").state("end"))
			r.on("start", handle)
			e := r.engine("w")
			status := r.run(e).Status
			send(t, e)
			check(t, e)
			report, err := e.Report(context.Background(), "run")
			if err != nil || report.Status != status {
				t.Errorf("now it is %s (%v), want %s as before", report.Status, err, status)
			}
		})
	}
	t.Run("nonsense", func(t *testing.T) {
		r := newRig(t, newFlow().state("start", "next", "end").state("end"))
		e := r.engine("w")
		r.start(e)
		wantUsage(t, e.Raise(context.Background(), "run", "stepps", 5), "stepps", "tool_calls")
		wantUsage(t, e.Raise(context.Background(), "run", "steps", -1), "positive")
		wantUsage(t, e.Signal(context.Background(), "run", "x", make(chan int)), "signal x")
	})
}

// A notice that arrives just as a commit fails is not lost, and not taken up twice.
func TestNoticeSurvivesAFailedCommit(t *testing.T) {
	for _, name := range []string{"failed", "answer lost"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, newFlow().state("start", "next", "end").state("end"))
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				if err := step.Say("one"); err != nil {
					return "", err
				}
				return "next", step.Say("two")
			})
			r.store = &once{Store: r.store, on: string(history.TypeLimitRaised), write: name != "failed"}
			e := r.engine("w")
			r.start(e)
			if err := e.Raise(context.Background(), "run", "steps", 5); err != nil {
				t.Fatal(err)
			}
			wantStatus(t, advance(t, e), store.Succeeded)
			if got := all[*history.LimitRaised](t, e); len(got) != 1 {
				t.Errorf("raised %d times", len(got))
			}
		})
	}
}

// once is a store whose first commit with an event of a type fails, written or not.
type once struct {
	store.Store
	on    string
	write bool
	done  bool
}

func (s *once) Commit(ctx context.Context, c store.Commit) error {
	for _, ev := range c.Events {
		if ev.Type == s.on && !s.done {
			s.done = true
			if s.write {
				if err := s.Store.Commit(ctx, c); err != nil {
					return err
				}
			}
			return errors.New("no answer")
		}
	}
	return s.Store.Commit(ctx, c)
}

// A cancel that comes while a commit is on its way waits for it.
func TestCancelDuringASlowCommit(t *testing.T) {
	r := newRig(t, newFlow().state("start", "next", "end").state("end"))
	r.config = func(cfg *engine.Config) { cfg.Beat = time.Millisecond }
	reached, release := make(chan struct{}), make(chan struct{})
	plain := r.store
	r.store = faulty.New(plain, faulty.At(2, faulty.Hold(reached, release)))
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) { return "next", step.Say("hello") })
	worker := r.engine("worker")
	r.store = &posting{Store: plain, posted: func() { close(release) }}
	other := r.engine("other")
	r.start(worker)
	end := make(chan *history.Snapshot, 1)
	go func() { end <- advance(t, worker) }()
	await(t, reached, "the commit")
	err := other.Cancel(context.Background(), "run")
	snap := await(t, end, "the run")
	got := trace(t, other, "run")
	switch { // whichever comes first, the cancel or the end, the other one says so
	case err == nil && snap.Status == store.Cancelled && got == "run_started start said run_finished":
	case errors.Is(err, engine.ErrFinished) && snap.Status == store.Succeeded && got == "run_started start said transition end run_finished":
	default:
		t.Errorf("cancel gave %v, the run has %s, history %s", err, snap.Status, got)
	}
}
