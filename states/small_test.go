package states

import (
	"errors"
	"strings"
	"testing"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

const askFlow = `
version: 1
name: question
language: LANGUAGE
vars:
  name: {type: string, default: you}
  form: {type: object, properties: {city: {type: string}, zip: {type: integer}}, required: [city]}
  picked: {type: string, enum: [keep, other]}
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: The order number}
start: ask
states:
  ask: {handler: ask, with: {question: "What do you want, {{ name }}?", WITH}, transitions: ROUTES}
  late: {handler: end, with: {status: failed}}
  done: {handler: end}
`

func askWorld(t *testing.T, with, routes string) *world {
	flow := strings.NewReplacer("LANGUAGE", "en", "WITH", with, "ROUTES", routes).Replace(askFlow)
	return newWorld(t, strings.Replace(flow, "  late: {", "  late: {", 1))
}

func TestAskForText(t *testing.T) {
	askWorld(t, "into: name, timeout: 1h", "{answered: done, expired: late}").start(`{}`).asks("What do you want, you?").say("  peace ").
		has("name", `"  peace "`).path("ask done").last("answered")
	askWorld(t, "into: name, timeout: 1h", "{answered: done, expired: late}").start(`{}`).waitOut(2*time.Hour).
		path("ask late").last("expired").has("name", `"you"`)
	askWorld(t, "into: name, timeout: 1h, default: answered", "{answered: [{when: 'name == \"late\"', to: late}, {to: done}]}").start(`{}`).waitOut(2*time.Hour).
		path("ask done").has("name", `"you"`)
}

func TestAskForAForm(t *testing.T) {
	routes := "{answered: [{when: 'form.city == \"late\"', to: late}, {to: done}]}"
	w := askWorld(t, "into: form", routes).start(`{}`)
	if schema, _ := w.snap.Pending[0].Schema.(machine.Values); schema["type"] != machine.Value("object") {
		t.Errorf("the question's schema is %v, want the variable's", w.snap.Pending[0].Schema)
	}
	if err := w.e.Answer(t.Context(), "run", engine.Reply{Ask: w.snap.Pending[0].ID, HasValue: true, Value: machine.Values{"zip": int64(1)}}); err == nil {
		t.Error("an answer without its city was taken")
	}
	w.answer(engine.Reply{HasValue: true, Value: machine.Values{"city": "Rome", "zip": "123"}}).has("form", `{"city":"Rome","zip":123}`).path("ask done")
}

func TestAskToChoose(t *testing.T) {
	with := `into: picked, choices: {keep: "Keep {{ name }}", other: {label: Another, into: order_id}}, timeout: 1h`
	routes := "{keep: done, other: done, expired: late}"
	w := askWorld(t, with, routes).start(`{}`)
	choices := w.snap.Pending[0].Choices
	if len(choices) != 2 || choices[0].Name != "keep" || choices[0].Label != "Keep you" || choices[0].Schema != nil || choices[1].Schema == nil {
		t.Fatalf("choices %+v", choices)
	}
	w.say("keep").path("ask done").last("keep").has("picked", `"keep"`).has("order_id", "")
	askWorld(t, with, routes).start(`{}`).say("Keep you").last("keep")
	// The value comes with the choice, or is asked for.
	askWorld(t, with, routes).start(`{}`).say("other A1001").last("other").has("order_id", `"A1001"`).has("picked", `"other"`)
	w = askWorld(t, with, routes).start(`{}`).say("other").asks("Please tell me the order number.").has("picked", "")
	w.restart()
	w.advance().say("A1002").last("other").has("order_id", `"A1002"`)
	askWorld(t, with, routes).start(`{}`).say("other").waitOut(2*time.Hour).last("expired").has("picked", "")
	askWorld(t, with, routes).start(`{}`).waitOut(2 * time.Hour).last("expired")
	askWorld(t, with+", default: keep", "{keep: done, other: late}").start(`{}`).waitOut(2 * time.Hour).last("keep")
}

func TestAskConfig(t *testing.T) {
	flow := func(with, routes string) string {
		return strings.NewReplacer("LANGUAGE", "en", "WITH", with, "ROUTES", routes).Replace(askFlow)
	}
	wrong(t, "no into", flow("timeout: 1h", "{answered: done, expired: late}"),
		"states.ask.with: the answer goes nowhere: add into, a variable for it, or choices")
	wrong(t, "an unknown variable", flow("choices: {keep: K, other: {label: O, into: order_ib}}", "{keep: done, other: late}"),
		`states.ask.with.choices.other.into [unknown-variable] -> order_id`)
	wrong(t, "a reserved name", flow("choices: {fail: F, other: O}", "{else: done, other: late}"),
		"states.ask.with.choices.fail [reserved-name]")
	wrong(t, "a choice without line", flow("choices: {keep: K, other: O}", "{keep: late, answered: done}"),
		"states.ask.transitions [missing-route]",
		"states.ask.transitions.answered [unknown-outcome]")
	wrong(t, "a variable that cannot hold the names", flow("into: picked, choices: {keep: K, more: M}", "{keep: done, more: late}"),
		"states.ask.with.into [cannot-hold]")
	wrong(t, "a default that is no choice", flow("choices: {keep: K, other: O}, timeout: 1h, default: answered", "{keep: done, other: late}"),
		"states.ask.with.default: default names the outcome when the time runs out, and the state never ends with answered; it can end with keep, other")
}

func TestConfirm(t *testing.T) {
	flow := `
version: 1
name: confirmation
language: LANGUAGE
vars: {remark: {type: string, maxLength: 20, default: old}}
start: sure
states:
  sure: {handler: confirm, with: {question: "Sure, {{ remark }}?", comment: remark, timeout: 1h DEFAULT}, transitions: {confirmed: done, rejected: done LATE}}
  late: {handler: end}
  done: {handler: end, with: {output: {why: "{{ last.error.kind }}", how: "{{ last.outcome }}"}}}
`
	world := func(lang, def, late string) *world {
		return newWorld(t, strings.NewReplacer("LANGUAGE", lang, " DEFAULT", def, " LATE", late).Replace(flow))
	}
	world("en", "", ", expired: late").start(`{}`).asks("Sure, old?").yes().last("confirmed").has("remark", `"old"`)
	world("en", "", ", expired: late").start(`{}`).no("too dear").last("rejected").has("remark", `"too dear"`)
	world("en", "", ", expired: late").start(`{}`).no("").last("rejected").has("remark", `"old"`)
	world("en", "", ", expired: late").start(`{}`).say("No!").last("rejected").has("remark", `"old"`)
	world("zh", "", ", expired: late").start(`{}`).say("不是").last("rejected").has("remark", `"old"`)
	world("zh", "", ", expired: late").start(`{}`).no("太贵了").has("remark", `"太贵了"`)
	// A bare no takes back what an earlier one said.
	again := strings.NewReplacer("LANGUAGE", "en", " DEFAULT", "", " LATE", ", expired: late", ", default: old", "", "rejected: done", "rejected: sure").Replace(flow)
	newWorld(t, again).start(`{}`).no("too dear").has("remark", `"too dear"`).say("no thanks").has("remark", "").asks("Sure, ?")
	// A no stands, also where the variable does not take what it said.
	world("en", "", ", expired: late").start(`{}`).no("this is far too long to be kept").last("rejected invalid").has("remark", `"old"`)
	world("en", "", ", expired: late").start(`{}`).waitOut(2 * time.Hour).path("sure late").last("expired")
	late := "  late: {handler: end}\n"
	flow = strings.Replace(flow, late, "", 1)
	world("en", ", default: rejected", "").start(`{}`).waitOut(2*time.Hour).path("sure done").last("rejected").has("remark", `"old"`)
}

const callFlow = `
version: 1
name: calling
vars:
  id: {type: string, default: A1001}
  row: {type: [object, 'null'], properties: {status: {type: string}}, required: [status]}
  n: {type: integer, default: 7}
tools:
  lookup: {description: Look up., effect: read, retry: 0, parameters: {id: {type: string}, limit: {type: integer, default: 5}}, fake: {result: {type: object}}}
start: look
states:
  look: {handler: call, with: {tool: lookup, args: ARGS, into: row EXPECT}, transitions: {success: done, fail: lost ERROR}}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.kind }}: {{ last.error.message }}"}}
  done: {handler: end}
`

func TestCall(t *testing.T) {
	ok := func(v machine.Value) func(machine.Values) (machine.Value, error) {
		return func(machine.Values) (machine.Value, error) { return v, nil }
	}
	bad := func(err error) func(machine.Values) (machine.Value, error) {
		return func(machine.Values) (machine.Value, error) { return nil, err }
	}
	paid := machine.Values{"status": "paid"}
	tests := []struct {
		name, args, expect, route, want, row string
		run                                  func(machine.Values) (machine.Value, error)
	}{
		{name: "well", run: ok(paid), want: "success", row: `{"status":"paid"}`},
		{name: "as expected", expect: `, expect: 'result.status == "paid"'`, run: ok(paid), want: "success", row: `{"status":"paid"}`},
		{name: "not as expected", expect: `, expect: 'result.status == "open"'`, run: ok(paid), want: "fail expect", row: `{"status":"paid"}`},
		{name: "expect is looked at only when it went well", expect: `, expect: 'result.status > 3'`, run: bad(tool.Failf("none_found", "no order")), want: "fail none_found"},
		{name: "a failure with its kind", run: bad(tool.Failf("none_found", "no order")), want: "fail none_found"},
		{name: "a failure without", run: bad(tool.Failf("", "no")), want: "fail failed"},
		{name: "a failure that gives something", run: bad(&tool.Error{Status: tool.Failed, Value: paid}), want: "fail failed", row: `{"status":"paid"}`},
		{name: "a failure that gives something else", run: bad(&tool.Error{Status: tool.Failed, Value: "text"}), want: "fail failed"},
		{name: "a result that the variable does not take", run: ok(machine.Values{"state": "paid"}), want: "fail invalid"},
		{name: "no result", run: ok(nil), want: "success"},
		{name: "arguments that do not fit", args: `{id: "{{ n }}", limit: "{{ null }}"}`, run: ok(paid), want: "success", row: `{"status":"paid"}`},
		{name: "an argument without value", args: `{id: "{{ null }}"}`, run: ok(paid), want: "fail refused"},
		{name: "out of order", route: ", error: lost", run: bad(tool.Unavailablef("busy")), want: "error unavailable"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			args := test.args
			if args == "" {
				args = `{id: "{{ id }}"}`
			}
			w := newWorld(t, strings.NewReplacer("ARGS", args, " EXPECT", test.expect, " ERROR", test.route).Replace(callFlow))
			w.tools.run["lookup"] = test.run
			w.start(`{}`).last(test.want).has("row", test.row)
		})
	}
}

func TestCallOutOfOrderStopsTheRun(t *testing.T) {
	w := newWorld(t, strings.NewReplacer("ARGS", "{id: x}", " EXPECT", "", " ERROR", "").Replace(callFlow))
	w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) { return nil, tool.Unavailablef("busy") }
	w.start(`{}`).status("stopped outage")
	w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) { return machine.Values{"status": "paid"}, nil }
	w.takeUp().status("succeeded").has("row", `{"status":"paid"}`)
}

func TestCallUnsetsWhatWasThere(t *testing.T) {
	flow := strings.NewReplacer("ARGS", "{id: x}", " EXPECT", "", " ERROR", "").Replace(callFlow)
	flow = strings.Replace(flow, "success: done,", "success: look,", 1)
	flow = strings.Replace(flow, "  done: {handler: end}\n", "", 1)
	for _, second := range []struct {
		run  func() (machine.Value, error)
		want string
	}{
		{func() (machine.Value, error) { return nil, tool.Failf("none_found", "no order") }, "fail none_found"},
		{func() (machine.Value, error) { return machine.Values{"state": "paid"}, nil }, "fail invalid"},
	} {
		w := newWorld(t, flow)
		n := 0
		w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) {
			if n++; n == 1 {
				return machine.Values{"status": "paid"}, nil
			}
			return second.run()
		}
		w.start(`{}`).path("look look lost").has("row", "").last(second.want)
	}
}

func TestCallWhoseWriteIsInDoubt(t *testing.T) {
	flow := strings.NewReplacer("effect: read, retry: 0", "effect: write", "ARGS", "{id: x}", " EXPECT", "", " ERROR", "").Replace(callFlow)
	start := func() *world {
		w := newWorld(t, flow)
		w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) {
			return nil, &tool.Error{Status: tool.Unknown, Err: errors.New("the line went dead")}
		}
		return w.start(`{}`)
	}
	start().answer(engine.Reply{Verdict: history.GiveUp}).last("fail unknown").has("row", "").called(`lookup{"id":"x","limit":5}`)
	start().answer(engine.Reply{Verdict: history.Done, HasValue: true, Value: machine.Values{"status": "paid"}}).last("success").has("row", `{"status":"paid"}`)
}

func TestCallConfig(t *testing.T) {
	flow := func(args, into string) string {
		return strings.NewReplacer("ARGS", args, "into: row", "into: "+into, " EXPECT", "", " ERROR", "").Replace(callFlow)
	}
	wrong(t, "right", flow(`{id: "{{ id }}"}`, "row"))
	wrong(t, "no arguments", flow(`{}`, "row"), "states.look.with.args: lookup needs the argument id, and args does not give it")
	wrong(t, "wrong arguments", flow(`{id: 5, limits: 5, limit: [1, 2]}`, "row"),
		"states.look.with.args.limits: lookup has no parameter limits -> limit",
		"states.look.with.args.limit: lookup does not take this: limit: expected an integer, got a list of 2 items")
	open := strings.Replace(flow(`{ID: x}`, "row"), "{id: {type: string}, limit: {type: integer, default: 5}}",
		"{type: object, properties: {id: {type: string}}, additionalProperties: true}", 1)
	wrong(t, "a tool that takes more than it names", open)
	wrong(t, "a default stands for what is required", strings.Replace(flow(`{id: x}`, "row"), "{id: {type: string}, limit: {type: integer, default: 5}}",
		"{type: object, properties: {id: {type: string}, limit: {type: integer, default: 5}}, required: [id, limit]}", 1))
	wrong(t, "a variable of another type", flow(`{id: x}`, "n"),
		"states.look.with.into [cannot-hold]")
}

const routeFlow = `
version: 1
name: branching
inputs: {message: {type: string}}
vars: {a: {type: integer, default: 1}, b: {type: integer, maximum: 5}, c: {type: string, default: x}}
start: fork
states:
  fork: {handler: route, with: {set: {a: "{{ a + 1 }}", b: "{{ a * 2 }}", c: null}}, transitions: {next: [{when: 'b == 4', to: done}, {to: lost}]}}
  lost: {handler: end, with: {status: failed, output: "lost: {{ message }}"}}
  done: {handler: end, with: {output: {a: "{{ a }}", text: "a is {{ a }}", list: [1, "{{ c }}"]}}}
`

func TestRouteAndEnd(t *testing.T) {
	w := newWorld(t, routeFlow).start(`{"message": "hi"}`).path("fork done").has("a", "2").has("b", "4").has("c", "").status("succeeded")
	if got, _ := machine.EncodeValue(w.snap.Finish.Output); string(got) != `{"a":2,"list":[1,null],"text":"a is 2"}` {
		t.Errorf("output %s", got)
	}
	w = newWorld(t, strings.Replace(routeFlow, "{{ a * 2 }}", "{{ a + 1 }}", 1)).start(`{"message": "hi"}`).path("fork lost").status("failed").has("b", "3")
	if w.snap.Finish.Output != machine.Value("lost: hi") {
		t.Errorf("output %v", w.snap.Finish.Output)
	}
	// A value that the variable does not take, and an expression that fails, stop the run in the same way.
	w = newWorld(t, strings.Replace(routeFlow, "{{ a * 2 }}", "{{ a * 3 }}", 1)).start(`{"message": "hi"}`).status("stopped expression")
	if !strings.Contains(w.snap.Stop.Message, ":8:") || !strings.Contains(w.snap.Stop.Message, "set b: expected at most 5, got the integer 6") {
		t.Errorf("stop says %q", w.snap.Stop.Message)
	}
	newWorld(t, strings.Replace(routeFlow, "{{ a * 2 }}", "{{ b * 3 }}", 1)).start(`{"message": "hi"}`).status("stopped expression")
	// Nothing to set, and nothing to give.
	plain := strings.Replace(routeFlow, `with: {set: {a: "{{ a + 1 }}", b: "{{ a * 2 }}", c: null}}, transitions: {next: [{when: 'b == 4', to: done}, {to: lost}]}`,
		"transitions: {next: [{when: 'b == nil', to: done}, {to: lost}]}", 1)
	w = newWorld(t, strings.Replace(plain, `with: {output: {a: "{{ a }}", text: "a is {{ a }}", list: [1, "{{ c }}"]}}`, "with: {}", 1)).start(`{"message": "hi"}`).path("fork done")
	if w.snap.Finish.Output != nil {
		t.Errorf("output %v", w.snap.Finish.Output)
	}
}

func TestEndConfig(t *testing.T) {
	wrong(t, "a status that there is not", strings.Replace(routeFlow, "status: failed", "status: succeed", 1),
		`states.lost.with.status [unknown-word] -> succeeded`)
}
