package engine_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/model/modeltest"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// What was cut at the token limit runs nothing, however whole it looks, and is asked for again, within bounds.
func TestCutCallsRunNothing(t *testing.T) {
	for name, args := range map[string]string{"whole": arg("first half"), "broken": `{"text":"fir`, "none": ""} {
		t.Run(name, func(t *testing.T) {
			cut := modeltest.Reply{Text: "I add.", Calls: []modeltest.Call{{ID: "a", Name: "add", Args: args}}, Finish: "length"}
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				x.push(cut, cut, cut, modeltest.Reply{Text: "never asked for"})
				x.act(doIt)
				e := x.engine("w")
				x.wantFail(e, x.run(e), "cut", "3 tries")
				x.wantRan()
				if n := len(x.server.Requests()); n != 3 {
					t.Errorf("%d requests, want 3", n)
				}
				for n := 1; n < 3; n++ {
					wantTold(t, x.request(n), "user: Do it.", "Your answer was cut off at the token limit, and nothing of it was done.")
				}
				for i, d := range all[*history.ModelCalled](t, e) {
					if d.Finish != "length" || len(d.Calls) > 0 || (d.Wrong == "") != (i == 2) {
						t.Errorf("answer %d is stored as %+v", i+1, d)
					}
				}
				x.wantSame(e, "run")
			})
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				x.push(cut, calls("I add.", modeltest.Call{ID: "a", Name: "add", Args: arg("all of it")}), modeltest.Reply{Text: "Done."})
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan("add all of it")
				x.wantSame(e, "run")
			})
		})
	}
}

// Calls are told apart by their place: what an endpoint calls them may be empty or stand there twice.
func TestCallsWithTheSameIDAllRunOnce(t *testing.T) {
	for _, id := range []string{"c1", ""} {
		t.Run("id "+id, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				add := func(text string) modeltest.Call { return modeltest.Call{ID: id, Name: "add", Args: arg(text)} }
				x.push(calls("", add("x"), add("y")), calls("", add("z")), calls("", add("z"), add("z")), modeltest.Reply{Text: "Done."})
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan("add x", "add y", "add z", "add z", "add z")
				ids := map[string]bool{}
				for _, d := range all[*history.ModelCalled](t, e) {
					for _, c := range d.Calls {
						if len(c.ID) != 9 || strings.ContainsFunc(c.ID, func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') }) {
							t.Errorf("id %q, want nine letters and digits", c.ID)
						}
						ids[c.ID] = true
					}
				}
				if len(ids) != 5 {
					t.Errorf("ids %v, want 5 different ones", ids)
				}
				x.wantSame(e, "run")
			})
		})
	}
}

// A call of a tool that is not there, or is another state's, is answered in its place and keeps the others from nothing.
func TestUnknownCallsAmongGoodOnes(t *testing.T) {
	for _, name := range []string{"no_such_tool", "elsewhere", "", "functions.look", "look up", "查", strings.Repeat("x", 100), "finish"} {
		for _, w := range []wire{native, inText} {
			t.Run(fmt.Sprintf("%s %q", w, name), func(t *testing.T) {
				f := talkFlow().tool("elsewhere", machine.EffectWrite, nil)
				x := newDialog(t, f, modelSetup{wire: w})
				x.push(calls("", modeltest.Call{ID: "a", Name: "look", Args: arg("alpha")}, modeltest.Call{ID: "b", Name: name, Args: arg("n")},
					modeltest.Call{ID: "c", Name: "add", Args: arg("beta")}), modeltest.Reply{Text: "Done."})
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan("look alpha", "add beta")
				wantTold(t, x.request(-1), "look", "alpha", "there is no tool", "look, add", "beta")
				x.wantSame(e, "run")
			})
		}
	}
}

// emptyArgs are the ways in which models write that there are no arguments, in one call each.
func emptyArgs(w wire, name string) []modeltest.Reply {
	if w == inText {
		var out []modeltest.Reply
		for _, args := range []string{``, `, "tool_args": ""`, `, "tool_args": "  "`, `, "tool_args": null`, `, "tool_args": "null"`} {
			object := `{"thought": "why", "action": "use_tool", "tool_name": "` + name + `"` + args + `}`
			out = append(out, whole(`{"role":"assistant","content":`+quoted(object)+`}`, `"stop"`))
		}
		return out
	}
	var out []modeltest.Reply
	for _, args := range []string{"", "  ", "null", "\n", `""`} {
		out = append(out, calls("", modeltest.Call{ID: "a", Name: name, Args: args}))
	}
	for _, function := range []string{`{"name":"` + name + `"}`, `{"name":"` + name + `","arguments":null}`} {
		out = append(out, whole(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":`+function+`}]}`, `"tool_calls"`))
	}
	return out
}

func TestNoArguments(t *testing.T) {
	for _, w := range []wire{native, inText} {
		for _, name := range []string{"now", "look"} {
			t.Run(string(w)+" "+name, func(t *testing.T) {
				f := newFlow().tool("look", machine.EffectRead, nil).tool("now", machine.EffectRead, func(spec *machine.ToolSpec) {
					spec.Parameters = mustSchema(`{"type":"object","properties":{},"additionalProperties":false}`)
				}).state("start", "next", "end", "fail", "end").state("end")
				f.at("start").Limits.Turns = 20
				x := newDialog(t, asks(f, "start"), modelSetup{wire: w})
				replies := emptyArgs(w, name)
				x.push(append(replies, modeltest.Reply{Text: "Done."})...)
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				results := all[*history.ToolFinished](t, e)
				if len(results) != len(replies) {
					t.Fatalf("%d calls have a result, want %d", len(results), len(replies))
				}
				for _, d := range results {
					if name == "now" && d.Result.Status != tool.OK {
						t.Errorf("the call of now gave %+v", d.Result)
					}
					if name == "look" && (d.Result.Status != tool.Refused || !strings.Contains(d.Result.Problem.Message, "text")) {
						t.Errorf("the call without its parameter gave %+v", d.Result)
					}
				}
				x.wantSame(e, "run")
			})
		}
	}
}

// Arguments that cannot be read are a result that the model reads; what it wrote spoils no later request.
func TestMalformedArguments(t *testing.T) {
	for _, test := range []struct{ args, want string }{
		{`{"text":`, "must be one JSON object"},
		{`{'text':'a'}`, "must be one JSON object"},
		{`{"text":"a"} and more`, "must be one JSON object"},
		{`[1]`, "must be a JSON object"},
		{`5`, "must be a JSON object"},
		{`"look"`, "must be a JSON object itself"},
		{`"{\"text\":\"a\"}"`, "must be a JSON object itself"},
		{`{"text":"a","more":1}`, `no parameter "more"`},
		{`{"text":{"a":1}}`, "text"},
		{`{"text":12345678901234567890}`, "too large to stay exact"},
		{"{\"text\":\"\xff\xfe\"", "must be one JSON object"},
	} {
		t.Run(test.args, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				bad := modeltest.Call{ID: "a", Name: "look", Args: test.args}
				x.push(calls("", bad, bad), calls("", modeltest.Call{ID: "b", Name: "look", Args: arg("x")}), modeltest.Reply{Text: "Done."})
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan("look x")
				if d := all[*history.ToolFinished](t, e); len(d) != 3 || d[0].Result.Status != tool.Refused ||
					!strings.Contains(d[0].Result.Problem.Message, test.want) {
					t.Errorf("the first result is %+v, want %q in it", d[0].Result, test.want)
				}
				x.wantSame(e, "run")
			})
		})
	}
}

// Which of two values counts that an object gives for one name is not for us to say.
func TestArgumentsThatSayTwoThingsRunNothing(t *testing.T) {
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		x.push(calls("", modeltest.Call{ID: "a", Name: "add", Args: `{"text":"a","text":"b"}`}),
			calls("", modeltest.Call{ID: "a", Name: "add", Args: arg("b")}), modeltest.Reply{Text: "Done."})
		x.act(doIt)
		e := x.engine("w")
		wantStatus(t, x.run(e), store.Succeeded)
		x.wantRan("add b")
		wantTold(t, x.request(1), `"text" twice`)
		x.wantSame(e, "run")
	})
}

// finishing is a task whose answer is an object, in a state with tools.
var finishing = engine.Task{Label: "act", Text: "Do it.", Tools: true,
	Answer: mustSchema(`{"type":"object","properties":{"answer":{"type":"string"}},"required":["answer"],"additionalProperties":false}`)}

func TestFinish(t *testing.T) {
	finish := func(answer string) modeltest.Call {
		return modeltest.Call{ID: "f", Name: "finish", Args: `{"answer":` + quoted(answer) + `}`}
	}
	look := modeltest.Call{ID: "l", Name: "look", Args: arg("a")}
	for _, test := range []struct {
		name    string
		replies []modeltest.Reply
		ran     []string
		told    []string // in the last request
		notFor  wire
	}{
		{name: "alone", replies: []modeltest.Reply{calls("I know.", finish("yes"))}},
		{name: "twice", replies: []modeltest.Reply{calls("I know.", finish("yes"), finish("no"))}},
		{name: "beside others", replies: []modeltest.Reply{calls("I look.", finish("no"), look), calls("I know.", finish("yes"))},
			ran: []string{"look a"}, told: []string{"look", "a", "Your finish was not taken"}},
		{name: "misfit", replies: []modeltest.Reply{calls("", modeltest.Call{ID: "f", Name: "finish", Args: `{"answr":"yes"}`}), calls("I know.", finish("yes"))},
			told: []string{"does not fit", "answr"}},
		{name: "no arguments", replies: []modeltest.Reply{calls("", modeltest.Call{ID: "f", Name: "finish"}), calls("I know.", finish("yes"))},
			told: []string{"Your answer cannot be used"}, notFor: inText},
		{name: "as text", replies: []modeltest.Reply{{Text: `I know. {"answer":"yes"}`}}, notFor: inText},
		{name: "plain text", replies: []modeltest.Reply{{Text: "yes"}, calls("I know.", finish("yes"))}, told: []string{"call finish"}, notFor: inText},
	} {
		t.Run(test.name, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				if x.setup.wire == test.notFor {
					t.Skip("its protocol has no such answer")
				}
				x.push(test.replies...)
				got := x.act(finishing)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan(test.ran...)
				if answer, _ := got.Answer.(machine.Values); answer["answer"] != "yes" || got.Text != `{"answer":"yes"}` {
					t.Errorf("the answer is %+v", got)
				}
				wantTold(t, x.request(-1), test.told...)
				for _, d := range all[*history.ModelCalled](t, e) {
					for _, c := range d.Calls {
						if c.Tool == "finish" {
							t.Errorf("finish is stored as a call: %+v", d)
						}
					}
				}
				if x.left() > 0 {
					t.Errorf("%d replies are left", x.left())
				}
				x.wantSame(e, "run")
			})
		})
	}
}

// A state without tools behind one with tools: its request is legal for endpoints that refuse calls where no tools are
// offered, and a call that the model makes in spite of that is refused.
func TestAStateWithoutToolsBehindOneWithTools(t *testing.T) {
	for _, w := range []wire{native, inText} {
		for _, stray := range []int{1, 3} {
			t.Run(fmt.Sprint(w, stray), func(t *testing.T) {
				f := newFlow().tool("look", machine.EffectRead, nil).state("start", "next", "sum", "fail", "end").
					state("sum", "next", "end", "fail", "end").state("end")
				f.at("sum").Tools, f.at("sum").View.Messages.Mode = nil, machine.MessagesAll
				x := newDialog(t, asks(f, "start", "sum"), modelSetup{wire: w})
				look := modeltest.Call{ID: "a", Name: "look", Args: arg("a")}
				again := whole(`{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{}"}}]}`, `"tool_calls"`)
				x.push(calls("I look.", look), modeltest.Reply{Text: "It is a."})
				for range stray {
					x.push(again)
				}
				x.push(modeltest.Reply{Text: "The sum."})
				x.act(doIt)
				x.on("sum", thinking(engine.Task{Label: "sum", Text: "Sum it up."}, nil))
				e := x.engine("w")
				snap := x.run(e)
				x.wantRan("look a")
				wantTold(t, x.request(2), "user: Sum it up.", "I look.", "look", "a", "assistant: It is a.")
				for _, m := range x.request(2).Chat.Messages {
					if len(m.ToolCalls) > 0 || m.Role == "tool" {
						t.Errorf("message %+v, want no calls", m)
					}
				}
				if stray == 3 {
					x.wantFail(e, snap, "invalid", "look was not called")
				} else {
					wantStatus(t, snap, store.Succeeded)
					wantTold(t, x.request(3), "You cannot call tools here, and look was not called.")
				}
				x.wantSame(e, "run")
			})
		}
	}
}

// Results are text that is never empty, whatever the tool gave, and whatever the endpoint made of its own content.
func TestEmptyContent(t *testing.T) {
	for want, given := range map[string]machine.Value{"(no output)": nil, "[]": []machine.Value{}, "{}": machine.Values{}, "0": int64(0), "false": false} {
		for _, v := range []machine.Value{given, ""} {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				x.does("look", func(context.Context, tool.Call) (machine.Value, error) { return v, nil })
				x.push(whole(`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"text\":\"a\"}"}}]}`, `"tool_calls"`),
					calls("", modeltest.Call{ID: "a", Name: "look", Args: arg("b")}), modeltest.Reply{Text: "Done."})
				x.act(doIt)
				e := x.engine("w")
				wantStatus(t, x.run(e), store.Succeeded)
				x.wantRan("look a", "look b")
				if v == "" {
					want = "(no output)"
				}
				wantTold(t, x.request(-1), want, want)
				x.wantSame(e, "run")
			})
		}
	}
}

// The presence of calls decides, not what the endpoint says of them.
func TestFinishReasonsThatDoNotFit(t *testing.T) {
	called := `{"role":"assistant","content":"","tool_calls":[{"id":"a","type":"function","function":{"name":"look","arguments":"{\"text\":\"a\"}"}}]}`
	for _, reply := range []modeltest.Reply{whole(called, `"stop"`), whole(called, `null`), whole(called, `"function_call"`), whole(called, `""`),
		whole(`{"role":"assistant","content":null,"function_call":{"name":"look","arguments":"{\"text\":\"a\"}"}}`, `"function_call"`)} {
		t.Run(reply.Body, func(t *testing.T) {
			overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
				x.push(reply, modeltest.Reply{Text: "Done."})
				x.act(doIt)
				wantStatus(t, x.run(x.engine("w")), store.Succeeded)
				x.wantRan("look a")
			})
		})
	}
	none := whole(`{"role":"assistant","content":null,"tool_calls":[]}`, `"tool_calls"`)
	overBoth(t, modelSetup{}, func(t *testing.T, x *dialog) {
		x.push(none, none, none, modeltest.Reply{Text: "never asked for"})
		x.act(doIt)
		e := x.engine("w")
		x.wantFail(e, x.run(e), "invalid", "3 tries", "empty")
		if len(x.server.Requests()) != 3 {
			t.Errorf("%d requests, want 3", len(x.server.Requests()))
		}
		x.wantSame(e, "run")
	})
}
