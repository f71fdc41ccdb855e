package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// The documents are a contract: their shape only grows.
func TestReports(t *testing.T) {
	f := newFlow().state("start", "next", "middle").state("middle", "answered", "end").state("end").variable("wish", `{"type":"string"}`)
	f.m.Vars = append(f.m.Vars, machine.Item[machine.Variable]{Name: "unset", Value: machine.Variable{}})
	f.m.States[0].Value.Transitions["next"][0].Say = value("On we go.")
	r := newRig(t, f)
	r.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		if err := step.Set("wish", "refund"); err != nil {
			return "", err
		}
		return "next", step.Say("Hello.")
	})
	r.on("middle", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		ans, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Sure?", Timeout: time.Hour,
			Choices: []history.Choice{{Name: "yes", Label: "Yes, sure"}, {Name: "stop", Label: "Stop"}}})
		if err == nil && ans.Choice == "stop" {
			return "", errors.New("it was too much")
		}
		return "answered", err
	})
	r.on("end", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		return "", step.End(store.Failed, machine.Values{"why": "sold out"})
	})
	now := r.clock.Now().Truncate(time.Second)
	r.config = func(cfg *engine.Config) { cfg.Now = func() time.Time { return now } }
	e := r.engine("w")
	shows := func(want string) {
		t.Helper()
		report, err := e.Report(context.Background(), "run")
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(report)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("the document is\n%s, want\n%s", got, want)
		}
	}
	const (
		said  = `"vars":{"wish":"refund"},"said":[{"state":"start","text":"Hello."},{"state":"start","text":"On we go."}]`
		usage = `"model_calls":0,"tool_calls":0,"prompt_tokens":0,"completion_tokens":0,"cost":null}`
	)
	wantStatus(t, r.run(e), store.Waiting)
	shows(`{"run":"run","flow":"test","flow_hash":"sha256:test","status":"waiting","state":"middle","seq":9,"path":["start","middle"],` + said +
		`,"output":null,"waiting":[{"id":"2.0","run":"run","state":"middle","kind":"ask","question":"Sure?","schema":{"enum":["yes","stop"]},` +
		`"choices":[{"name":"yes","label":"Yes, sure"},{"name":"stop","label":"Stop"}],"due":"2026-01-02T04:04:05Z"}],` +
		`"usage":{"steps":2,` + usage + `,"error":null}`)
	answer(t, e, engine.Reply{Ask: "2.0", Text: "stop"})
	wantStop(t, advance(t, e), history.CodeHandler)
	shows(`{"run":"run","flow":"test","flow_hash":"sha256:test","status":"stopped","state":"middle","seq":11,"path":["start","middle"],` + said +
		`,"output":null,"waiting":[],"usage":{"steps":2,` + usage + `,"error":{"code":"handler","message":"handler middle of state middle gave no outcome, ` +
		`because: it was too much","state":"middle","step":2,"hint":"go on with: flowctl resume run"}}`)
	r.on("middle", outcome("answered"))
	if err := e.Resume(context.Background(), "run", engine.ResumeRequest{Restart: true}); err != nil {
		t.Fatal(err)
	}
	wantStatus(t, advance(t, e), store.Failed)
	shows(`{"run":"run","flow":"test","flow_hash":"sha256:test","status":"failed","state":"end","seq":16,"path":["start","middle","middle","end"],` + said +
		`,"output":{"why":"sold out"},"waiting":[],"usage":{"steps":4,` + usage + `,"error":{"code":"failed","message":"{\"why\":\"sold out\"}",` +
		`"state":"end","step":4,"hint":""}}`)
	if _, err := e.Report(context.Background(), "nobody"); !errors.Is(err, engine.ErrUnknownRun) {
		t.Errorf("an unknown run gave %v", err)
	}
}

// A run that an end state failed says what led there.
func TestReportOfAFailedRunNamesItsReason(t *testing.T) {
	r := newRig(t, newFlow().state("start", "fail", "end").state("end"))
	r.on("start", func(context.Context, *engine.Step) (machine.Outcome, error) {
		return machine.Fail, machine.Problem{Kind: "none_found", Message: "there is no order A9"}
	})
	r.on("end", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		return "", step.End(store.Failed, nil)
	})
	e := r.engine("w")
	wantStatus(t, r.run(e), store.Failed)
	report, err := e.Report(context.Background(), "run")
	if err != nil || report.Error == nil || report.Error.Message != "the flow ended in state end: there is no order A9" {
		t.Errorf("the error is %+v (%v)", report.Error, err)
	}
}

func TestInterruptedRunsAreListed(t *testing.T) {
	r := asking(t)
	ctx := context.Background()
	for _, id := range []string{"waiting", "lost", "mine"} {
		e := r.engine(id)
		if _, _, err := e.Start(ctx, engine.StartRequest{Machine: r.flow, ID: id}); err != nil {
			t.Fatal(err)
		}
		if id == "waiting" {
			if _, err := e.Advance(ctx, id); err != nil {
				t.Fatal(err)
			}
		}
	}
	list := func(e *engine.Engine) string {
		t.Helper()
		rows, err := e.Interrupted(ctx)
		if err != nil {
			t.Fatal(err)
		}
		ids := ""
		for _, row := range rows {
			ids += row.ID + " "
		}
		return ids
	}
	r.config = func(cfg *engine.Config) { cfg.Gone = func(w store.Worker) bool { return w.ID == "lost" } }
	e := r.engine("looking")
	if got := list(e); got != "lost " {
		t.Errorf("listed %s, want the run whose process is gone", got)
	}
	r.clock.advance(16 * time.Second)
	if got := list(e); got != "mine lost " {
		t.Errorf("listed %s, want also the one whose process is silent", got)
	}
}
