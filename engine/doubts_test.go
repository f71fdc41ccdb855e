package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

var errGone = errors.New("the process is gone")

// gone is the store of a process that dies at a commit: it, and all that follow, never happen.
type gone struct {
	store.Store
	dies func(store.Commit) bool
	dead bool
}

func (s *gone) Commit(ctx context.Context, c store.Commit) error {
	if s.dead = s.dead || s.dies(c); s.dead {
		return errGone
	}
	return s.Store.Commit(ctx, c)
}

func (s *gone) Runs(ctx context.Context, f store.Filter) ([]store.Run, error) {
	if s.dead {
		return nil, errGone
	}
	return s.Store.Runs(ctx, f)
}

// diesAt says that a process dies when it is to store the result of the call with a key.
func diesAt(key string) func(store.Commit) bool {
	return func(c store.Commit) bool {
		for _, ev := range c.Events {
			if ev.Key == key && ev.Type == string(history.TypeToolFinished) {
				return true
			}
		}
		return false
	}
}

// die starts the run in a process that dies when dies says so.
func (r *rig) die(worker string, dies func(store.Commit) bool) {
	r.t.Helper()
	whole := r.store
	defer func() { r.store = whole }()
	r.store = &gone{Store: whole, dies: dies}
	e := r.heir(worker)
	rows, err := whole.Runs(context.Background(), store.Filter{ID: "run"})
	if err != nil {
		r.t.Fatal(err)
	}
	if len(rows) == 0 {
		r.start(e)
	}
	if _, err := e.Advance(context.Background(), "run"); !errors.Is(err, errGone) {
		r.t.Fatalf("the process got %v, it should have died", err)
	}
}

// writing is a rig whose run makes one direct write.
func writing(t *testing.T, change func(*machine.ToolSpec)) (*rig, *ledger) {
	t.Helper()
	f := newFlow().tool("write", machine.EffectWrite, change).state("start", "next", "end", "fail", "end").state("end")
	r := newRig(t, f)
	l := &ledger{}
	r.tools["write"] = func(_ context.Context, c tool.Call) (machine.Value, error) {
		l.add(c.Key)
		return "written", nil
	}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
		if err != nil {
			return "", err
		}
		if res.Status != tool.OK {
			return machine.Fail, res.Problem
		}
		return "next", step.Say(machine.FormatValue(res.Value))
	})
	return r, l
}

func TestAWriteInDoubtIsAskedAbout(t *testing.T) {
	for _, tc := range []struct {
		name    string
		reply   engine.Reply
		runs    string // of the tool, by idempotency key
		outcome machine.Outcome
		said    string
	}{
		{"done", engine.Reply{Verdict: history.Done, HasValue: true, Value: map[string]any{"n": 3}}, "run/1.0", "next", `{"n":3}`},
		{"done without result", engine.Reply{Verdict: history.Done}, "run/1.0", "next", ""},
		{"not done", engine.Reply{Verdict: history.NotDone}, "run/1.0, run/1.0", "next", "written"},
		{"give up", engine.Reply{Verdict: history.GiveUp}, "run/1.0", machine.Fail, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, l := writing(t, nil)
			r.die("first", diesAt("1.0"))
			e := r.heir("second")
			snap := advance(t, e)
			wantStatus(t, snap, store.Waiting)
			if q := snap.Pending; len(q) != 1 || q[0].ID != "1.0/in_doubt" || q[0].Kind != history.KindInDoubt || q[0].Tool != "write" ||
				!strings.HasPrefix(q[0].Question, "write (") || !strings.HasSuffix(q[0].Question, ") was started, and nobody knows whether it happened. Did it?") {
				t.Fatalf("pending %+v", q)
			}
			yes := true
			wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0/in_doubt", Yes: &yes}), "--done", "--give-up")
			wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0/in_doubt", Verdict: "maybe"}), "--not-done")
			wantUsage(t, e.Answer(context.Background(), "run",
				engine.Reply{Ask: "1.0/in_doubt", Verdict: history.NotDone, HasValue: true, Value: 1}), "--done only")
			tc.reply.Ask = "1.0/in_doubt"
			answer(t, e, tc.reply)
			wantStatus(t, advance(t, e), store.Succeeded)
			if l.String() != tc.runs {
				t.Errorf("ran %s, want %s", l, tc.runs)
			}
			if got := all[*history.Transition](t, e)[0]; got.Outcome != tc.outcome {
				t.Errorf("outcome %s, want %s", got.Outcome, tc.outcome)
			} else if tc.outcome == machine.Fail && got.Problem.Kind != "unknown" {
				t.Errorf("problem %+v, want kind unknown", got.Problem)
			}
			if tc.said != "" && all[*history.Said](t, e)[0].Text != tc.said {
				t.Errorf("the result is %q, want %q", all[*history.Said](t, e)[0].Text, tc.said)
			}
		})
	}
}

// The arguments that a human decided about are the ones that were coerced.
func TestDoubtAboutCoercedArguments(t *testing.T) {
	r, l := writing(t, func(spec *machine.ToolSpec) {
		spec.Parameters = mustSchema(`{"type":"object","properties":{"text":{"type":"integer"},"more":{"type":"string","default":"d"}},"required":["text"]}`)
	})
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := call(step, engine.Call{Tool: "write", Args: text("5"), Direct: true})
		return "next", err
	})
	r.die("first", diesAt("1.0"))
	e := r.heir("second")
	advance(t, e)
	answer(t, e, engine.Reply{Ask: "1.0/in_doubt", Verdict: history.Done})
	wantStatus(t, advance(t, e), store.Succeeded)
	want := machine.Values{"text": int64(5), "more": "d"}
	if got := all[*history.ToolFinished](t, e)[0].Args; !machine.EqualValues(got, want) {
		t.Errorf("recorded %v, want %v", got, want)
	}
	if l.String() != "run/1.0" {
		t.Errorf("ran %s", l)
	}
}

func TestChineseDoubt(t *testing.T) {
	r, _ := writing(t, nil)
	r.flow.Language = "zh"
	r.die("first", diesAt("1.0"))
	e := r.heir("second")
	if got, want := advance(t, e).Pending[0].Question, "write（text = x）：已经开始，但无人知道是否完成。完成了吗？"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	answer(t, e, engine.Reply{Ask: "1.0/in_doubt", Verdict: history.GiveUp})
	advance(t, e)
	if got, want := all[*history.ToolFinished](t, e)[0].Result.Problem.Message, "无人知道 write 是否完成"; got != want {
		t.Errorf("the result says %s, want %s", got, want)
	}
}

func TestTwiceInDoubtIsAskedTwice(t *testing.T) {
	r, l := writing(t, nil)
	r.die("first", diesAt("1.0"))
	e := r.heir("second")
	advance(t, e)
	answer(t, e, engine.Reply{Ask: "1.0/in_doubt", Verdict: history.NotDone})
	e.Close()
	r.die("third", diesAt("1.0"))
	e = r.heir("fourth")
	snap := advance(t, e)
	wantStatus(t, snap, store.Waiting)
	if ids(snap) != "1.0/in_doubt2" {
		t.Fatalf("asked %s", ids(snap))
	}
	if err := e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0/in_doubt", Verdict: history.Done}); !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("the first question gave %v, want ErrNotPending", err)
	}
	answer(t, e, engine.Reply{Ask: "1.0/in_doubt2", Verdict: history.Done})
	wantStatus(t, advance(t, e), store.Succeeded)
	if l.String() != "run/1.0, run/1.0" {
		t.Errorf("ran %s", l)
	}
}

func TestInDoubtFail(t *testing.T) {
	r, l := writing(t, func(spec *machine.ToolSpec) { spec.InDoubt = machine.InDoubtFail })
	r.die("first", diesAt("1.0"))
	e := r.heir("second")
	wantStatus(t, advance(t, e), store.Succeeded)
	if got := all[*history.Transition](t, e)[0]; got.Outcome != machine.Fail || got.Problem.Kind != "unknown" {
		t.Errorf("went along %+v, want fail, kind unknown", got)
	}
	if l.String() != "run/1.0" {
		t.Errorf("ran %s", l)
	}
}

func TestInDoubtRetryAndIdempotentCallsRunAgainWithTheirKey(t *testing.T) {
	for name, change := range map[string]func(*machine.ToolSpec){
		"retry":      func(spec *machine.ToolSpec) { spec.InDoubt = machine.InDoubtRetry },
		"idempotent": func(spec *machine.ToolSpec) { spec.Effect = machine.EffectIdempotent },
	} {
		t.Run(name, func(t *testing.T) {
			r, l := writing(t, change)
			r.die("first", diesAt("1.0"))
			e := r.heir("second")
			wantStatus(t, advance(t, e), store.Succeeded)
			if l.String() != "run/1.0, run/1.0" {
				t.Errorf("ran %s", l)
			}
			if got := trace(t, e, "run"); got != "run_started start tool_started run_resumed tool_finished said transition end run_finished" {
				t.Errorf("history %s", got)
			}
		})
	}
}

// A tool that does not come back in time follows its in_doubt at once, when the flow itself has called it.
func TestDirectCallThatTimesOut(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*machine.ToolSpec)
		runs   string
		status store.Status
	}{
		{"ask", nil, "run/1.0", store.Waiting},
		{"fail", func(spec *machine.ToolSpec) { spec.InDoubt = machine.InDoubtFail }, "run/1.0", store.Succeeded},
		{"retry", func(spec *machine.ToolSpec) { spec.InDoubt = machine.InDoubtRetry }, "run/1.0, run/1.0, run/1.0", store.Succeeded},
		{"idempotent", func(spec *machine.ToolSpec) { spec.Effect, spec.Retry = machine.EffectIdempotent, nil }, "run/1.0, run/1.0, run/1.0", store.Succeeded},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, l := writing(t, func(spec *machine.ToolSpec) {
				spec.Timeout = time.Millisecond
				if tc.change != nil {
					tc.change(spec)
				}
			})
			r.tools["write"] = func(ctx context.Context, c tool.Call) (machine.Value, error) {
				l.add(c.Key)
				<-ctx.Done()
				return nil, ctx.Err()
			}
			e := r.engine("w")
			snap := r.run(e)
			wantStatus(t, snap, tc.status)
			if l.String() != tc.runs {
				t.Errorf("ran %s, want %s", l, tc.runs)
			}
			if tc.status == store.Waiting {
				if got := snap.Pending[0].Question; !strings.Contains(got, "write timed out after 1ms, outcome unknown") {
					t.Errorf("the question hides what is known: %q", got)
				}
				if got := all[*history.AttemptFailed](t, e); len(got) != 1 || got[0].Tool != "write" {
					t.Errorf("the attempt is told as %+v", got)
				}
				for i := 1; i <= 2; i++ { // each time that it is not done it runs again, and is asked about anew
					answer(t, e, engine.Reply{Ask: snap.Pending[0].ID, Verdict: history.NotDone})
					snap = advance(t, e)
					wantStatus(t, snap, store.Waiting)
					if want := fmt.Sprintf("1.0/in_doubt%d", i+1); ids(snap) != want {
						t.Fatalf("asked %s, want %s", ids(snap), want)
					}
				}
				if l.String() != "run/1.0, run/1.0, run/1.0" {
					t.Errorf("ran %s", l)
				}
				return
			}
			if got := all[*history.ToolFinished](t, e); len(got) != 1 || got[0].Result.Status != tool.Unknown {
				t.Errorf("recorded %+v, want unknown", got)
			}
		})
	}
}

// A write whose result was given up comes up again when the flow wants it again, also in a later step.
func TestAWriteThatNobodyKnowsOfIsNotRepeatedUnasked(t *testing.T) {
	for _, policy := range []machine.InDoubt{machine.InDoubtAsk, machine.InDoubtFail} {
		f := newFlow().tool("write", machine.EffectWrite, func(spec *machine.ToolSpec) { spec.InDoubt = policy }).
			state("start", "fail", "start", "next", "end").state("end")
		f.at("start").Limits.Visits = 2
		f.at("start").Transitions[machine.Limit] = []machine.Branch{{To: "end"}}
		r := newRig(t, f)
		runs := 0
		r.tools["write"] = func(context.Context, tool.Call) (machine.Value, error) {
			if runs++; runs > 1 {
				return "written", nil
			}
			return nil, &tool.Error{Status: tool.Unknown, Err: errors.New("the line went dead")}
		}
		r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			res, err := call(step, engine.Call{Tool: "write", Args: text("x"), Direct: true})
			if err != nil || res.Status == tool.OK {
				return "next", err
			}
			return machine.Fail, res.Problem
		})
		e := r.engine("w")
		snap := r.run(e)
		if policy == machine.InDoubtFail {
			wantStatus(t, snap, store.Succeeded)
			if runs != 1 || snap.Now.Visits["start"] != 3 {
				t.Errorf("the write ran %d times in %d visits, want once", runs, snap.Now.Visits["start"])
			}
			continue
		}
		answer(t, e, engine.Reply{Ask: "1.0/in_doubt", Verdict: history.GiveUp})
		snap = advance(t, e)
		if wantStatus(t, snap, store.Waiting); ids(snap) != "2.0/in_doubt" || runs != 1 {
			t.Fatalf("asked %s after %d runs, want the doubt again before it runs again", ids(snap), runs)
		}
		answer(t, e, engine.Reply{Ask: "2.0/in_doubt", Verdict: history.NotDone})
		if wantStatus(t, advance(t, e), store.Succeeded); runs != 2 {
			t.Errorf("the write ran %d times, want twice", runs)
		}
	}
}

// In a loop the model reads that a result is unknown; the same call again is not simply run.
func TestSameCallAgainInALoopFollowsThePolicy(t *testing.T) {
	for _, tc := range []struct {
		policy machine.InDoubt
		status store.Status
		runs   string
	}{
		{machine.InDoubtAsk, store.Waiting, "x, y"},
		{machine.InDoubtFail, store.Succeeded, "x, y"},
		{machine.InDoubtRetry, store.Succeeded, "x, y, x"},
	} {
		t.Run(string(tc.policy), func(t *testing.T) {
			f := newFlow().tool("append", machine.EffectWrite, func(spec *machine.ToolSpec) {
				spec.Timeout, spec.InDoubt = time.Millisecond, tc.policy
			}).state("start", "next", "end").state("end")
			r := newRig(t, f)
			l := &ledger{}
			r.tools["append"] = func(ctx context.Context, c tool.Call) (machine.Value, error) {
				l.add(c.Args["text"].(string))
				if c.Args["text"] == "x" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return "ok", nil
			}
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				for i, word := range []string{"x", "y", "x"} {
					res, err := call(step, engine.Call{Tool: "append", Args: text(word)})
					if err != nil {
						return "", err
					}
					if want := map[bool]tool.Status{true: tool.Unknown, false: tool.OK}[word == "x"]; res.Status != want {
						t.Errorf("call %d: %+v, want %s", i, res, want)
					}
				}
				return "next", nil
			})
			e := r.engine("w")
			snap := r.run(e)
			wantStatus(t, snap, tc.status)
			if l.String() != tc.runs {
				t.Errorf("ran %s, want %s", l, tc.runs)
			}
			if tc.status == store.Waiting {
				if ids(snap) != "1.2/in_doubt" {
					t.Errorf("asked %s", ids(snap))
				}
				answer(t, e, engine.Reply{Ask: "1.2/in_doubt", Verdict: history.GiveUp})
				wantStatus(t, advance(t, e), store.Succeeded)
			}
		})
	}
}

// A process that dies in the middle of a batch loses nothing of it and repeats nothing of it.
func TestBatchKilledInTheMiddle(t *testing.T) {
	for _, tc := range []struct {
		name, dies string // key of the call whose result is not stored
		done       string // what had run when the process died
		asks       string
	}{
		{"after the second call's work", "1.0.1", "read a, append x", "1.0.1/in_doubt"},
		{"before the third call", "1.0.2", "read a, append x, append y", "1.0.2/in_doubt"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFlow().tool("read", machine.EffectRead, nil).tool("append", machine.EffectWrite, nil).
				state("start", "next", "end").state("end")
			r := newRig(t, f)
			l := &ledger{}
			r.tools["read"], r.tools["append"] = l.tool("read"), l.tool("append")
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				res, err := step.Call(engine.Call{Tool: "read", Args: text("a")}, engine.Call{Tool: "append", Args: text("x")},
					engine.Call{Tool: "append", Args: text("y")})
				if err == nil && (res[0].Value != "a" || res[1].Value != "x" || res[2].Value != "y") {
					t.Errorf("results %+v", res)
				}
				return "next", err
			})
			r.die("first", diesAt(tc.dies))
			if l.String() != tc.done {
				t.Fatalf("ran %s, want %s", l, tc.done)
			}
			e := r.heir("second")
			snap := advance(t, e)
			wantStatus(t, snap, store.Waiting)
			if ids(snap) != tc.asks {
				t.Fatalf("asked %s, want %s", ids(snap), tc.asks)
			}
			answer(t, e, engine.Reply{Ask: tc.asks, Verdict: history.Done, HasValue: true, Value: snap.Pending[0].Args.(machine.Values)["text"]})
			wantStatus(t, advance(t, e), store.Succeeded)
			if l.String() != "read a, append x, append y" {
				t.Errorf("ran %s", l)
			}
		})
	}
}

// What a human said of a doubt holds for what was in doubt then: after an equal call has ended unknown once more, the next one
// is asked about again.
func TestANewDoubtIsAskedAboutAgain(t *testing.T) {
	r, l := writing(t, func(spec *machine.ToolSpec) { spec.Timeout = time.Millisecond })
	r.tools["write"] = func(ctx context.Context, c tool.Call) (machine.Value, error) {
		l.add(c.Key)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	same := engine.Call{Tool: "write", Args: text("x")}
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		_, err := step.Call(same, same, same)
		return "next", err
	})
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Waiting)
	if ids(snap) != "1.0.1/in_doubt 1.0.2/in_doubt" {
		t.Fatalf("asked %s", ids(snap))
	}
	for _, q := range snap.Pending {
		answer(t, e, engine.Reply{Ask: q.ID, Verdict: history.NotDone})
	}
	snap = advance(t, r.heir("w2")) // also where another process goes on
	wantStatus(t, snap, store.Waiting)
	if ids(snap) != "1.0.2/in_doubt2" || l.String() != "run/1.0.0, run/1.0.1" {
		t.Errorf("asked %s, ran %s", ids(snap), l)
	}
}
