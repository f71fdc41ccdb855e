package engine_test

import (
	"context"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// thinking is a handler that lets the model think and act until it answers.
func thinking(task engine.Task, done func(engine.Generation)) func(context.Context, *engine.Step) (machine.Outcome, error) {
	return func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
		for range step.Turns() {
			g, err := step.Generate(task)
			if err != nil {
				return "", err
			}
			if !g.Problem.None() {
				return machine.Fail, g.Problem
			}
			if len(g.Calls) == 0 {
				if done != nil {
					done(g)
				}
				return "next", nil
			}
			if _, err := step.Call(g.Calls...); err != nil {
				return "", err
			}
		}
		return machine.Fail, machine.Problem{Kind: "turns", Message: "no more turns"}
	}
}

// modelRig is a run of one state with a model and the tools look (read) and add (write), and an end.
func modelRig(t testing.TB, m model.Model) *rig {
	f := newFlow().tool("look", machine.EffectRead, nil).tool("add", machine.EffectWrite, nil)
	f.state("start", "next", "end", "fail", "end").state("end")
	f.at("start").Model, f.at("start").ModelName = machine.ModelDeclared, "default"
	f.m.Models = machine.Ordered[machine.ModelSpec]{{Name: "default", Value: machine.ModelSpec{Name: "default", Provider: "openai"}}}
	r := newRig(t, f)
	echo := func(_ context.Context, call tool.Call) (machine.Value, error) { return call.Args["text"], nil }
	r.tools["look"], r.tools["add"] = echo, echo
	r.config = func(cfg *engine.Config) { cfg.Models = models{model: m} }
	return r
}

// calls is a reply with calls.
func calls(text string, made ...modeltest.Call) modeltest.Reply {
	return modeltest.Reply{Text: text, Calls: made}
}

// arg is the text of arguments.
func arg(text string) string { return `{"text":` + quoted(text) + `}` }

func TestAModelThinksActsAndAnswers(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		x.push(
			modeltest.Reply{Text: "I look first.", Calls: []modeltest.Call{{ID: "x", Name: "look", Args: arg("a < b && c > d")}}, Prompt: 10, Output: 5},
			modeltest.Reply{Text: "Done.", Prompt: 20, Output: 7},
		)
		got := x.act(doIt)
		e := x.engine("w")
		snap := x.run(e)
		wantStatus(t, snap, store.Succeeded)
		if got.Text != "Done." {
			t.Errorf("the answer is %+v", got)
		}
		if u := snap.Spent.Usage; u.ModelCalls != 2 || u.PromptTokens != 30 || u.CompletionTokens != 12 || u.ToolCalls != 1 {
			t.Errorf("usage %+v", u)
		}
		made := all[*history.ModelCalled](t, e)
		if made[0].Thought != "I look first." || len(made[0].Calls) != 1 || made[0].Calls[0].ID == "x" || made[0].Name != "default" ||
			made[0].Model != "test-1" || made[0].Turn != 1 || made[1].Turn != 2 {
			t.Errorf("the answers are stored as %+v, %+v", made[0], made[1])
		}
		x.wantSame(e, "run")
		if body := string(x.request(-1).Body); strings.Contains(body, `\u003c`) || !strings.Contains(body, "a < b && c > d") {
			t.Errorf("signs are sent with escapes that only HTML needs:\n%s", body)
		}
	})
}
