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
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

func approval(spec *machine.ToolSpec) { spec.Approval.Required = true }

// paying is a rig whose run makes three payments in one batch, and two reads.
func paying(t *testing.T, change func(*machine.ToolSpec)) (*rig, *ledger) {
	t.Helper()
	f := newFlow().tool("read", machine.EffectRead, nil).tool("pay", machine.EffectWrite, change).state("start", "next", "end").state("end")
	r := newRig(t, f)
	l := &ledger{}
	r.tools["read"] = l.tool("read")
	r.tools["pay"] = l.tool("pay")
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := step.Call(engine.Call{Tool: "read", Args: text("before")}, engine.Call{Tool: "pay", Args: text("a")},
			engine.Call{Tool: "pay", Args: text("b")}, engine.Call{Tool: "read", Args: text("between")}, engine.Call{Tool: "pay", Args: text("c")})
		if err != nil {
			return "", err
		}
		var words []string
		for _, one := range res {
			words = append(words, string(one.Status), one.Problem.Message)
		}
		return "next", step.Say(strings.Join(words, " "))
	})
	return r, l
}

// ledger notes what tools did.
type ledger struct {
	mu    sync.Mutex
	lines []string
}

func (l *ledger) tool(name string) func(context.Context, tool.Call) (machine.Value, error) {
	return func(_ context.Context, c tool.Call) (machine.Value, error) {
		l.add(name + " " + fmt.Sprint(c.Args["text"]))
		return c.Args["text"], nil
	}
}

func (l *ledger) add(line string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
}

func (l *ledger) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, ", ")
}

func TestEachApprovalLandsOnItsCall(t *testing.T) {
	r, l := paying(t, approval)
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Waiting)
	if got, want := ids(snap), "1.0.1/approval 1.0.2/approval 1.0.4/approval"; got != want {
		t.Fatalf("asked %s, want %s", got, want)
	}
	if q := snap.Pending[1]; q.Tool != "pay" || !machine.EqualValues(q.Args, text("b")) || q.Question != "Approve pay (text = b)?" {
		t.Errorf("the second question is %+v", q)
	}
	if l.String() != "read before" {
		t.Errorf("ran %s, want only the read that no write stands before", l)
	}
	no, yes := false, true
	wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0.2/approval", Text: "perhaps"}),
		`question 1.0.2/approval: "perhaps" is neither yes nor no`)
	answer(t, e, engine.Reply{Ask: "1.0.1/approval", Yes: &no, Text: "too much"})
	wantStatus(t, advance(t, e), store.Waiting)
	answer(t, e, engine.Reply{Ask: "1.0.4/approval", Yes: &yes})
	before := trace(t, e, "run")
	wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0.3/approval", Yes: &yes}), "1.0.3/approval", "1.0.2/approval")
	wantUsage(t, e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0.2/approval", Text: "perhaps"}), "neither yes nor no")
	err := e.Answer(context.Background(), "run", engine.Reply{Ask: "1.0.4/approval", Yes: &no})
	if !errors.Is(err, engine.ErrNotPending) {
		t.Errorf("answering again gave %v, want ErrNotPending", err)
	}
	if after := trace(t, e, "run"); after != before {
		t.Errorf("a wrong answer was recorded: %s", after)
	}
	if l.String() != "read before" {
		t.Errorf("ran %s before all was answered", l)
	}
	answer(t, e, engine.Reply{Ask: "1.0.2/approval", Text: "yes"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if l.String() != "read before, pay b, read between, pay c" {
		t.Errorf("ran %s", l)
	}
	said := all[*history.Said](t, e)[0].Text
	if want := "ok  refused a human did not approve pay: too much ok  ok  ok "; said != want {
		t.Errorf("results %q, want %q", said, want)
	}
	if got := all[*history.ToolFinished](t, e); got[1].Result.Problem.Kind != "denied" {
		t.Errorf("the denied call is recorded as %+v", got[1])
	}
}

func TestApproveAllIsRecordedAsSuch(t *testing.T) {
	r, l := paying(t, approval)
	r.config = func(cfg *engine.Config) { cfg.ApproveAll = true }
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Succeeded)
	got := all[*history.Answered](t, e)
	if len(got) != 3 || got[0].By != history.ByFlag || got[0].Value != true {
		t.Errorf("recorded %+v", got)
	}
	if l.String() != "read before, pay a, pay b, read between, pay c" {
		t.Errorf("ran %s", l)
	}
}

// The flag counts as it stood when the step was entered.
func TestApproveAllOfALaterProcessChangesNoStep(t *testing.T) {
	r, _ := paying(t, approval)
	wantStatus(t, r.run(r.engine("first")), store.Waiting)
	r.config = func(cfg *engine.Config) { cfg.ApproveAll = true }
	wantStatus(t, advance(t, r.engine("second")), store.Waiting)
}

func TestApprovalWhereAConditionHolds(t *testing.T) {
	when := fn(func(f machine.Facts) (machine.Value, error) { return f.Args["text"] == "b", nil })
	r, l := paying(t, func(spec *machine.ToolSpec) { spec.Approval.When = when })
	e := r.engine("w")
	snap := r.run(e)
	wantStatus(t, snap, store.Waiting)
	if ids(snap) != "1.0.2/approval" || l.String() != "read before" {
		t.Errorf("asked %s, ran %s", ids(snap), l)
	}
	bad := fn(func(machine.Facts) (machine.Value, error) { return nil, errors.New("null > int") })
	// What cannot be decided, such as of an argument that a model has left out, a human decides: no write slips through, and
	// no model stops a run by it.
	r, l = paying(t, func(spec *machine.ToolSpec) { spec.Approval.When = bad })
	snap = r.run(r.engine("w"))
	wantStatus(t, snap, store.Waiting)
	if len(snap.Pending) < 2 || l.String() != "read before" {
		t.Errorf("asked %s, ran %s", ids(snap), l)
	}
}

// An approval is for one call with its arguments, once.
func TestApprovalIsUsedOnce(t *testing.T) {
	f := newFlow().tool("pay", machine.EffectWrite, approval).state("start", "next", "end").state("end")
	r := newRig(t, f)
	l := &ledger{}
	r.tools["pay"] = l.tool("pay")
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for range 2 {
			if _, err := call(step, engine.Call{Tool: "pay", Args: text("10")}); err != nil {
				return "", err
			}
		}
		return "next", nil
	})
	e := r.engine("w")
	yes := true
	r.run(e)
	answer(t, e, engine.Reply{Ask: "1.0/approval", Yes: &yes})
	snap := advance(t, e)
	wantStatus(t, snap, store.Waiting)
	if ids(snap) != "1.1/approval" || l.String() != "pay 10" {
		t.Errorf("asked %s, ran %s: the second call needs its own approval", ids(snap), l)
	}
}

// A handler that asks for another call than the approved one does not get it.
func TestApprovalIsBoundToToolAndArguments(t *testing.T) {
	for name, other := range map[string]engine.Call{
		"other arguments": {Tool: "pay", Args: text("1000")},
		"other tool":      {Tool: "donate", Args: text("10")},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow().tool("pay", machine.EffectWrite, approval).tool("donate", machine.EffectWrite, approval).
				state("start", "next", "end").state("end")
			r := newRig(t, f)
			l := &ledger{}
			r.tools["pay"], r.tools["donate"] = l.tool("pay"), l.tool("donate")
			wanted := engine.Call{Tool: "pay", Args: text("10")}
			r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
				_, err := call(step, wanted)
				return "next", err
			})
			e := r.engine("w")
			yes := true
			r.run(e)
			answer(t, e, engine.Reply{Ask: "1.0/approval", Yes: &yes})
			wanted = other
			wantStop(t, advance(t, e), history.CodeDiverged, "1.0", "--restart-state")
			if l.String() != "" {
				t.Errorf("ran %s", l)
			}
			if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true}); err != nil {
				t.Fatal(err)
			}
			snap := advance(t, e)
			wantStatus(t, snap, store.Waiting)
			if ids(snap) != "2.0/approval" {
				t.Errorf("asked %s, want a new approval", ids(snap))
			}
		})
	}
}

func TestChineseApproval(t *testing.T) {
	f := newFlow().tool("pay", machine.EffectWrite, approval).state("start", "next", "end").state("end")
	f.m.Language = "zh"
	r := newRig(t, f)
	r.tools["pay"] = (&ledger{}).tool("pay")
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		res, err := call(step, engine.Call{Tool: "pay", Args: text("10\n20")})
		if err != nil {
			return "", err
		}
		return "next", step.Say(res.Problem.Message)
	})
	e := r.engine("w")
	if got, want := r.run(e).Pending[0].Question, `批准 pay（text = "10\n20"）？`; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	answer(t, e, engine.Reply{Ask: "1.0/approval", Text: "不，太贵"})
	wantStatus(t, advance(t, e), store.Succeeded)
	if said, want := all[*history.Said](t, e)[0].Text, "pay 未获批准：不，太贵"; said != want {
		t.Errorf("said %s, want %s", said, want)
	}
}
