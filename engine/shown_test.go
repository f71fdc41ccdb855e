package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Whatever a run's history, view and budget: what is sent fits the model's window, holds the system text whole and the
// human's last word, and no variable that the state does not show.
func TestWhatAModelIsShown(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := &talker{}
		turns := rapid.IntRange(0, 9).Draw(rt, "turns")
		m.answer = working(turns, func(model.Request) model.Response { return saying("SUMMARY: it went well.") })
		r := modelRig(t, m)
		s := r.flow.States[0].Value
		s.Limits.Turns = 20
		s.Instructions = value("SYSTEM-TEXT stays whole.")
		r.flow.Inputs = machine.Ordered[machine.Variable]{{Name: "message", Value: machine.Variable{Input: true}}}
		r.flow.Message = "message"
		s.View.Messages.Mode = rapid.SampledFrom([]machine.MessageMode{machine.MessagesOwn, machine.MessagesAll, machine.MessagesNone}).Draw(rt, "mode")
		s.View.Messages.Last = rapid.IntRange(0, 3).Draw(rt, "last")
		s.View.Attempts = rapid.Bool().Draw(rt, "attempts")
		for i := range rapid.IntRange(0, 5).Draw(rt, "vars") {
			name := fmt.Sprint("v", i)
			r.flow.Vars = append(r.flow.Vars, machine.Item[machine.Variable]{Name: name, Value: machine.Variable{HasDefault: true,
				Default: "MARK-" + name + "-" + strings.Repeat("filler ", rapid.IntRange(0, 300).Draw(rt, "size"))}})
			s.Reads = append(s.Reads, name)
			if rapid.Bool().Draw(rt, "shown") {
				s.Shows = append(s.Shows, name)
			}
		}
		window := rapid.Int64Range(900, 4000).Draw(rt, "window")
		if rapid.Bool().Draw(rt, "budgets") {
			s.View.Budget = machine.Budget{Task: rapid.Int64Range(60, 800).Draw(rt, "task"), Recent: rapid.Int64Range(200, 900).Draw(rt, "recent")}
		}
		r.config = func(cfg *engine.Config) { cfg.Models = windowed{models: models{model: m}, window: window} }
		size := rapid.IntRange(1, 400).Draw(rt, "result")
		r.tools["look"] = func(context.Context, tool.Call) (machine.Value, error) {
			return strings.Repeat("some words ", size), nil
		}
		r.on("start", thinking(engine.Task{Label: "act", Text: "Look at everything.", Tools: true}, nil))
		e := r.engine("w")
		if _, _, err := e.Start(context.Background(), engine.StartRequest{Machine: r.flow, ID: "run",
			Inputs: machine.Values{"message": "HUMAN-WORD please"}}); err != nil {
			rt.Fatal(err)
		}
		snap := advance(t, e)
		if snap.Status == store.Stopped && snap.Stop.Code == history.CodeLimit && strings.Contains(snap.Stop.Message, "tokens") {
			return // a budget that cannot be met, which says so
		}
		if snap.Status != store.Succeeded {
			rt.Fatalf("the run is %s: %+v", snap.Status, snap.Stop)
		}
		for _, d := range all[*history.ModelCalled](t, e) {
			if d.Counted > window {
				rt.Fatalf("a request of %d tokens for a window of %d", d.Counted, window)
			}
		}
		for _, line := range m.sent {
			summary := strings.Contains(line, "Summarise the conversation")
			if !summary && !strings.Contains(line, "SYSTEM-TEXT stays whole.") {
				rt.Fatal("the system text is cut")
			}
			if !summary && s.View.Messages.Mode != machine.MessagesNone && s.View.Messages.Last == 0 && !strings.Contains(line, "HUMAN-WORD") {
				rt.Fatal("the human's last word is gone")
			}
			for _, v := range r.flow.Vars {
				shown := strings.Contains(strings.Join(s.Shows, " ")+" ", v.Name+" ")
				if strings.Contains(line, "MARK-"+v.Name+"-") && !shown {
					rt.Fatalf("%s is shown", v.Name)
				}
			}
		}
	})
}
