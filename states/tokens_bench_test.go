package states

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// turnsOf is a scripted model: in each state it calls the tools of its list one after the other, then answers.
type turnsOf map[string][]string

func (m turnsOf) Generate(_ context.Context, req model.Request) (model.Response, error) {
	calls := m[req.Origin.State]
	msg := model.Message{Role: model.Assistant, Text: "I have what I need: everything was found as expected, nothing is missing, and the figures agree."}
	if turn := int(req.Origin.Turn); turn <= len(calls) {
		msg = model.Message{Role: model.Assistant, Text: "I look at the next part, since the answer needs it.",
			Calls: []model.Call{{Name: calls[turn-1], Args: `{"about":"order A1001 of customer 17"}`}}}
	}
	return model.Response{Message: msg, Finish: model.Stop, Model: "scripted"}, nil
}

// taskFlows are two ways to do the same 12 steps: one state that has all tools and sees everything, and four states that see
// what the one before them found, each with its own three tools.
func taskFlows() (whole, split string, tools []string) {
	parts := []string{"order", "payment", "delivery", "reply"}
	var declared strings.Builder
	for _, part := range parts {
		for i := range 3 {
			name := fmt.Sprintf("%s_%c", part, 'a'+i)
			tools = append(tools, name)
			fmt.Fprintf(&declared, "  %s: {description: Look at part %d of the %s. Use it before you say anything about that part., effect: read, parameters: {about: {type: string, description: What to look at}}, fake: {}}\n",
				name, i+1, part)
		}
	}
	head := "version: 1\nname: task\ninputs: {message: {type: string}}\nmodels: {default: {provider: fake}}\ninstructions: You work for a shop. Be brief and exact.\ntools:\n" +
		declared.String() + "limits: {model_calls: 99}\n"
	whole = head + "vars: {answer: {type: string}}\nstart: all\nstates:\n  all: {handler: agent, view: {messages: all}, limits: {turns: 20}, tools: {of: [" + strings.Join(tools, ", ") +
		"], select: {top: 12}}, with: {goal: Clear up the request., into: answer}, transitions: {success: done, fail: done}}\n  done: {handler: end}\n"
	var vars, states strings.Builder
	for i, part := range parts {
		next, shown := "done", "message"
		if i+1 < len(parts) {
			next = parts[i+1]
		}
		if i > 0 {
			shown = parts[i-1] + "_found"
		}
		fmt.Fprintf(&vars, "%s_found: {type: string}, ", part)
		fmt.Fprintf(&states, "  %s: {handler: agent, view: {vars: [%s], messages: none}, tools: [%s], with: {goal: Find out about the %s., into: %s_found}, transitions: {success: %s, fail: done}}\n",
			part, shown, strings.Join(tools[3*i:3*i+3], ", "), part, part, next)
	}
	split = head + "vars: {" + strings.TrimSuffix(vars.String(), ", ") + "}\nstart: order\nstates:\n" + states.String() + "  done: {handler: end}\n"
	return whole, split, tools
}

// tokensOf runs a flow and gives the tokens of all its requests.
func tokensOf(t testing.TB, flow string, m turnsOf, tools []string) (tokens, calls int64) {
	w := newWorld(t, flow)
	w.model = machine.ModelReady
	w.models.model = m
	for _, name := range tools {
		w.tools.run[name] = func(machine.Values) (machine.Value, error) {
			return name + ": " + strings.Repeat("paid on 2026-01-02, 1290 cents, shipped with DHL; ", 12), nil
		}
	}
	if _, _, err := w.e.Start(context.Background(), engine.StartRequest{Machine: w.m, ID: "run", Inputs: machine.Values{
		"message": "My parcel never came, and I was charged twice. Please clear it up."}}); err != nil {
		t.Fatal(err)
	}
	w.advance().status("succeeded")
	evs, err := w.e.History(context.Background(), "run")
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.ModelCalled); ok {
			tokens += d.Counted
			calls++
		}
	}
	return tokens, calls
}

// BenchmarkTokensOfViews compares what the two ways send. The ratio is the figure: views and tool subsets send less than half,
// though they ask more often.
func BenchmarkTokensOfViews(b *testing.B) {
	whole, split, tools := taskFlows()
	for b.Loop() {
		all, allCalls := tokensOf(b, whole, turnsOf{"all": tools}, tools)
		own, ownCalls := tokensOf(b, split, turnsOf{"order": tools[:3], "payment": tools[3:6], "delivery": tools[6:9], "reply": tools[9:]}, tools)
		b.ReportMetric(float64(all), "tokens-whole")
		b.ReportMetric(float64(own), "tokens-views")
		b.ReportMetric(float64(own)/float64(all), "ratio")
		b.ReportMetric(float64(allCalls), "calls-whole")
		b.ReportMetric(float64(ownCalls), "calls-views")
	}
}
