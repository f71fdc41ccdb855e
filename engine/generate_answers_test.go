package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/model/openai"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// choosing is a task that wants one of two outcomes.
func choosing(more string) engine.Task {
	return engine.Task{Label: "choose", Text: "Choose.", Answer: mustSchema(
		`{"type":"object","properties":{"outcome":{"type":"string","enum":["confirm","cancel"]}` + more + `},"required":["outcome"],"additionalProperties":false}`)}
}

// What stands around the one object of an answer is no part of it, and what cannot be told for sure is asked for again.
func TestReasoningAndFencesAroundAnAnswer(t *testing.T) {
	fence := "```"
	for _, test := range []struct {
		name, text string
		want       string // the answer; "": it is asked for again
		reasoning  string
	}{
		{"draft in the reasoning", `<think>maybe {"outcome":"cancel"}</think>{"outcome":"confirm"}`, `{"outcome":"confirm"}`, `maybe {"outcome":"cancel"}`},
		{"unclosed reasoning", `<think>{"outcome":"confirm"}`, `{"outcome":"confirm"}`, `{"outcome":"confirm"}`},
		{"fence in a string", fence + "json\n" + `{"outcome":"confirm","note":"a ` + fence + ` b"}` + "\n" + fence, `{"note":"a ` + fence + ` b","outcome":"confirm"}`, ""},
		{"mark in a string", `{"outcome":"confirm","note":"keep <think>x</think>"}`, `{"note":"keep <think>x</think>","outcome":"confirm"}`, ""},
		{"prose behind", fence + "\n" + `{"outcome":"confirm"}` + "\n" + fence + "\nThat } is it.", `{"outcome":"confirm"}`, ""},
		{"two objects", `{"outcome":"confirm"} or {"outcome":"cancel"}`, "", ""},
		{"a name twice", `{"outcome":"confirm","outcome":"cancel"}`, "", ""},
		{"no object", `confirm`, "", ""},
		{"a list", `[{"outcome":"confirm"}]`, "", ""},
		{"broken", `{"outcome":"confirm"`, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			x := newDialog(t, talkFlow(), modelSetup{})
			x.push(modeltest.Reply{Text: test.text}, modeltest.Reply{Text: `{"outcome":"cancel"}`})
			got := x.act(choosing(`,"note":{"type":"string"}`))
			e := x.engine("w")
			wantStatus(t, x.run(e), store.Succeeded)
			want, requests := test.want, 1
			if want == "" {
				want, requests = `{"outcome":"cancel"}`, 2
				wantTold(t, x.request(-1), "user: Choose.", "user: Your answer cannot be used")
			}
			if got.Text != want || len(x.server.Requests()) != requests {
				t.Errorf("the answer is %s after %d requests, want %s after %d", got.Text, len(x.server.Requests()), want, requests)
			}
			if d := all[*history.ModelCalled](t, e)[0]; d.Reasoning != test.reasoning {
				t.Errorf("the reasoning is stored as %q, want %q", d.Reasoning, test.reasoning)
			}
			x.wantSame(e, "run")
		})
	}
}

// Plain text has its reasoning taken off, and none of it left is no answer.
func TestReasoningAroundPlainText(t *testing.T) {
	x := newDialog(t, talkFlow(), modelSetup{})
	x.push(modeltest.Reply{Text: "<think>hm</think>"}, modeltest.Reply{Text: "<think>hm</think>\n\nIt is <b>blue</b>."})
	got := x.act(engine.Task{Label: "say", Text: "Say."})
	e := x.engine("w")
	wantStatus(t, x.run(e), store.Succeeded)
	if got.Text != "It is <b>blue</b>." {
		t.Errorf("the answer is %q", got.Text)
	}
	wantTold(t, x.request(1), "Your answer is empty")
	x.wantSame(e, "run")
}

// An outcome is taken in other letters and with blanks around it; what the flow does not know is asked for again, with the
// words that it does know, and then is a failure.
func TestOutcomesThatTheFlowDoesNotKnow(t *testing.T) {
	for _, test := range []struct {
		outcome string // JSON
		taken   bool
	}{
		{`"confirm"`, true}, {`"Confirm "`, true}, {`" CONFIRM"`, true},
		{`"confirmed"`, false}, {`"maybe"`, false}, {`""`, false}, {`["confirm"]`, false}, {`null`, false}, {`1`, false}, {`{"confirm":true}`, false},
	} {
		t.Run(test.outcome, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				reply := modeltest.Reply{Text: `{"outcome":` + test.outcome + `}`}
				x.push(reply, reply, reply, modeltest.Reply{Text: "never asked for"})
				got := x.act(choosing(""))
				e := x.engine("w")
				snap := x.run(e)
				if test.taken {
					wantStatus(t, snap, store.Succeeded)
					if answer, _ := got.Answer.(machine.Values); answer["outcome"] != "confirm" || len(x.server.Requests()) != 1 {
						t.Errorf("the answer is %+v after %d requests", got, len(x.server.Requests()))
					}
					return
				}
				x.wantFail(e, snap, "invalid", "3 tries", "outcome: expected")
				if n := len(x.server.Requests()); n != 3 {
					t.Errorf("%d requests, want 3", n)
				}
				wantTold(t, x.request(1), "Choose.", "does not fit: outcome: expected")
				x.wantSame(e, "run")
			})
		})
	}
}

// A reason that a model adds in passing is its thought; anything else that nobody asked for is told back.
func TestAnswersWithMoreInThem(t *testing.T) {
	for _, test := range []struct{ text, want, thought string }{
		{`{"reason":"it is so","outcome":"confirm"}`, `{"outcome":"confirm"}`, "it is so"},
		{`{"thought":"it is so","outcome":"confirm"}`, `{"outcome":"confirm"}`, "it is so"},
		{`{"reason":{"a":1},"outcome":"confirm"}`, "", ""},
		{`{"sure":true,"outcome":"confirm"}`, "", ""},
	} {
		t.Run(test.text, func(t *testing.T) {
			x := newDialog(t, talkFlow(), modelSetup{})
			x.push(modeltest.Reply{Text: test.text}, modeltest.Reply{Text: `{"outcome":"cancel"}`})
			got := x.act(choosing(""))
			wantStatus(t, x.run(x.engine("w")), store.Succeeded)
			if test.want != "" && (got.Text != test.want || got.Thought != test.thought) {
				t.Errorf("the answer is %+v", got)
			}
			if test.want == "" {
				wantTold(t, x.request(-1), "does not fit", "no property of this name")
			}
		})
	}
}

// What a task's own check refuses is asked for again with its words, and is not checked again on replay.
func TestAnswersThatACheckRefuses(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		x.push(modeltest.Reply{Text: `{"outcome":"cancel"}`}, modeltest.Reply{Text: `{"outcome":"confirm"}`})
		task, checked := choosing(""), 0
		task.Check = func(answer machine.Value) string {
			checked++
			if answer.(machine.Values)["outcome"] == "cancel" {
				return "it is too late to cancel"
			}
			return ""
		}
		x.on("start", func(_ context.Context, step *engine.Step) (machine.Outcome, error) {
			if _, err := step.Generate(task); err != nil {
				return "", err
			}
			_, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"})
			return "next", err
		})
		e := x.engine("w")
		snap := x.run(e)
		wantStatus(t, snap, store.Waiting)
		wantTold(t, x.request(1), `"outcome"`, "it is too late to cancel")
		answer(t, e, engine.Reply{Ask: ids(snap), Text: "x"})
		wantStatus(t, advance(t, x.heir("other")), store.Succeeded)
		if checked != 2 || len(x.server.Requests()) != 2 {
			t.Errorf("%d checks and %d requests, want 2 and 2", checked, len(x.server.Requests()))
		}
		x.wantSame(e, "run")
	})
}

// What an answer becomes on its way keeps every digit: an event, a variable, arguments, a result, the next request.
func TestWholeNumbersOfAnAnswerStayExact(t *testing.T) {
	const big = "9007199254740993"
	for _, w := range []wire{native, inText} {
		t.Run(string(w), func(t *testing.T) {
			f := newFlow().tool("book", machine.EffectWrite, func(spec *machine.ToolSpec) {
				spec.Parameters = mustSchema(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"],"additionalProperties":false}`)
			}).state("start", "next", "end", "fail", "end").state("end").variable("id", `{"type":"integer"}`)
			f.at("start").Shows = []string{"id"}
			x := newDialog(t, asks(f, "start"), modelSetup{wire: w})
			x.does("book", func(_ context.Context, call tool.Call) (machine.Value, error) { return call.Args["id"], nil })
			x.push(modeltest.Reply{Text: `{"id":` + big + `}`}, calls("", modeltest.Call{ID: "a", Name: "book", Args: `{"id":` + big + `}`}),
				calls("", modeltest.Call{ID: "a", Name: "book", Args: `{"id":"` + big + `"}`}), modeltest.Reply{Text: "Done."})
			act := thinking(doIt, nil)
			x.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
				g, err := step.Generate(engine.Task{Label: "find", Text: "Find it.", Aside: true,
					Answer: mustSchema(`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`)})
				if err != nil {
					return "", err
				}
				if err := step.Set("id", g.Answer.(machine.Values)["id"]); err != nil {
					return "", err
				}
				return act(ctx, step)
			})
			e := x.engine("w")
			snap := x.run(e)
			wantStatus(t, snap, store.Succeeded)
			if snap.Vars["id"] != int64(9007199254740993) {
				t.Errorf("the variable is %v", snap.Vars["id"])
			}
			for _, d := range all[*history.ToolFinished](t, e) {
				if d.Result.Value != int64(9007199254740993) || machine.FormatValue(d.Args) != `{"id":`+big+`}` {
					t.Errorf("the call is stored as %+v", d)
				}
			}
			wantTold(t, x.request(-1), "- id: "+big, `"id":`+big, big)
			for _, r := range x.server.Requests() {
				if strings.Contains(string(r.Body), "9007199254740992") || strings.Contains(string(r.Body), "9.007") {
					t.Errorf("a digit has changed in %s", r.Body)
				}
			}
			x.wantSame(e, "run")
		})
	}
}

// What a provider refuses to answer is a failure of its own kind: nobody asks again, and nothing of it is an answer.
func TestBlockedAnswers(t *testing.T) {
	for name, reply := range map[string]modeltest.Reply{
		"no content":   whole(`{"role":"assistant","content":null}`, `"content_filter"`),
		"some content": whole(`{"role":"assistant","content":"I cannot help"}`, `"content_filter"`),
		"refusal":      whole(`{"role":"assistant","content":null,"refusal":"I cannot help"}`, `"stop"`),
		"with a call": whole(`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"add","arguments":"{\"text\":\"a\"}"}}]}`,
			`"content_filter"`),
		"status": {Status: 400, Body: `{"error":{"code":"content_filter","message":"the prompt was filtered"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, task := range []engine.Task{doIt, finishing, choosing("")} {
				overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
					x.push(reply, modeltest.Reply{Text: "never asked for"})
					x.act(task)
					e := x.engine("w")
					snap := x.run(e)
					x.wantFail(e, snap, "blocked")
					x.wantRan()
					made := all[*history.ModelCalled](t, e)
					if len(x.server.Requests()) != 1 || len(made) != 1 || made[0].Problem.Kind != "blocked" || made[0].Text != "" {
						t.Errorf("%d requests, stored as %+v", len(x.server.Requests()), made)
					}
					if snap.Spent.Usage.ModelCalls != 1 {
						t.Errorf("%d calls are counted", snap.Spent.Usage.ModelCalls)
					}
					x.wantSame(e, "run") // what was refused can be looked at
				})
			}
		})
	}
}

// Reasoning goes back to endpoints that want it, to the letter, also from another process, and to no others.
func TestReasoningIsSentBackWhereItIsWanted(t *testing.T) {
	const why = "  Because <b> & \u00fc\nis \"so\".\n"
	for _, test := range []struct {
		keep string
		rule modeltest.Reasoning
	}{
		{openai.ReasoningSendBack, modeltest.ReasoningRequired}, {openai.ReasoningKeep, modeltest.ReasoningForbidden},
		{"", modeltest.ReasoningForbidden}, {openai.ReasoningDrop, modeltest.ReasoningForbidden},
	} {
		t.Run(fmt.Sprintf("%s %s", test.keep, test.rule), func(t *testing.T) {
			setup := modelSetup{server: modeltest.Options{Reasoning: test.rule}, change: func(c *openai.Config) { c.Reasoning = test.keep }}
			overBoth(t, setup, func(t *testing.T, x *dialog) {
				act := func(reasoning, text, arg1 string) modeltest.Reply {
					r := calls(text, modeltest.Call{ID: "a", Name: "look", Args: arg(arg1)})
					r.Reasoning = reasoning
					return r
				}
				x.push(act(why, "", "a"), act("", "", "b"), act("", "<think>aloud</think>I look.", "c"), modeltest.Reply{Text: "Done.", Reasoning: "all seen"})
				think := thinking(doIt, nil)
				asked := false
				x.on("start", func(ctx context.Context, step *engine.Step) (machine.Outcome, error) {
					o, err := think(ctx, step)
					if o != "next" || asked {
						return o, err
					}
					_, err = step.Ask(engine.Question{Kind: history.KindAsk, Text: "Well?"})
					return "next", err
				})
				x.dieBefore(3) // the result of the first call
				e := x.heir("other")
				snap := advance(t, e)
				wantStatus(t, snap, store.Waiting)
				made := all[*history.ModelCalled](t, e)
				want := why
				if test.keep == openai.ReasoningDrop {
					want = ""
				}
				if made[0].Reasoning != want || strings.Contains(made[len(made)-1].Text, "seen") {
					t.Errorf("stored as %+v", made[0])
				}
				if made[2].Reasoning != "aloud" || !made[2].Aloud || made[2].Text != "I look." {
					t.Errorf("reasoning in the text is stored as %+v", made[2])
				}
				sent := 0
				for _, m := range x.request(-1).Chat.Messages {
					if m.Reasoning != nil && *m.Reasoning != "" {
						sent++
						if *m.Reasoning != why {
							t.Errorf("sent back %q", *m.Reasoning)
						}
					}
				}
				if (sent == 1) != (test.keep == openai.ReasoningSendBack) {
					t.Errorf("reasoning was sent back %d times", sent)
				}
				x.wantSame(e, "run")
			})
		})
	}
}
