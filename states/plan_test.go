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

const planFlow = `
version: 1
name: plan
language: LANGUAGE
inputs: {order: {type: string, default: A1001}}
vars:
  wish: {type: string, default: refund}
  order_id: {type: string}
  todo: {type: object}
  remark: {type: string, default: ""}
  answer: {type: string}
  amount: {type: integer, default: 0}
tools:
  lookup: {description: Look up., effect: read, parameters: {id: {type: string}, limit: {type: integer, minimum: 1, default: 5}}, fake: {}}
  refund: {description: Refund., effect: write, parameters: {id: {type: string}}, fake: {result: {type: object, properties: {affected: {type: integer}}}}}
start: prepare
states:
  prepare: {handler: route, with: {set: {order_id: "{{ order }}"}}, transitions: {next: propose}}
  propose:
    handler: plan
    with:
      into: todo
      for: carry_out
      confirm: true
      comment: remark
      goal: "{{ wish }} for order {{ order_id }}"
      timeout: 1h
      steps:
        - {id: look, description: "Look up {{ order_id }}", tool: lookup, args: {id: "{{ order_id }}"}}
        - {id: pay, when: 'wish == "refund"', tool: refund, args: {id: "{{ order_id }}"}, expect: result.affected == 1}
        - {id: swap, when: 'wish == "exchange"', tool: lookup, args: {id: x, limit: 7}}
    transitions: {confirmed: carry_out, rejected: prepare_again, fail: lost, expired: late}
  prepare_again: {handler: route, transitions: {next: {to: propose, set: {wish: exchange}}}}
  carry_out:
    handler: execute
    tools: [lookup, refund]
    with: {from: todo, into: answer STOP}
    transitions: {success: done, fail: [{when: 'visits("carry_out") < 3', to: propose}, {to: lost}] MORE}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  late: {handler: end, with: {status: failed}}
  done: {handler: end, with: {output: "{{ answer }}"}}
`

func planWorld(t *testing.T, replace ...string) *world {
	flow := planFlow
	for i := 0; i < len(replace); i += 2 {
		flow = strings.ReplaceAll(flow, replace[i], replace[i+1])
	}
	w := newWorld(t, strings.NewReplacer("LANGUAGE", "en", " STOP", "", " MORE", "").Replace(flow))
	w.tools.run["lookup"] = func(args machine.Values) (machine.Value, error) {
		return machine.Values{"id": args["id"], "status": "paid"}, nil
	}
	w.tools.run["refund"] = func(machine.Values) (machine.Value, error) { return machine.Values{"affected": int64(1)}, nil }
	return w
}

const (
	lookPending = `{"args":{"id":"A1001","limit":5},"description":"Look up A1001","id":"look","result":null,"status":"pending","tool":"lookup"}`
	lookDone    = `{"args":{"id":"A1001","limit":5},"description":"Look up A1001","id":"look","result":{"id":"A1001","status":"paid"},"status":"done","tool":"lookup"}`
	payPending  = `{"args":{"id":"A1001"},"description":"","id":"pay","result":null,"status":"pending","tool":"refund"}`
	payDone     = `{"args":{"id":"A1001"},"description":"","id":"pay","result":{"affected":1},"status":"done","tool":"refund"}`
)

func todo(goal string, steps ...string) string {
	return `{"goal":"` + goal + `","steps":[` + strings.Join(steps, ",") + `]}`
}

func TestPlanIsShownConfirmedAndCarriedOut(t *testing.T) {
	w := planWorld(t).start(`{}`).asks("The plan: refund for order A1001\n1. Look up A1001 (lookup: id = A1001, limit = 5)\n2. refund: id = A1001\nShall I go ahead?")
	if kind := w.snap.Pending[0].Kind; kind != "confirm" || !machine.EqualValues(w.snap.Pending[0].Schema, machine.Values{"type": "boolean"}) {
		t.Errorf("the question is of kind %s with schema %v", kind, w.snap.Pending[0].Schema)
	}
	w.has("todo", todo("refund for order A1001", lookPending, payPending)).called()
	w.yes().path("prepare propose carry_out done").has("todo", todo("refund for order A1001", lookDone, payDone))
	w.called(`lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`)
	w.has("answer", `"Look up A1001: {\"id\":\"A1001\",\"status\":\"paid\"}\nrefund: {\"affected\":1}"`)
	if w.snap.Finish.Output != w.snap.Vars["answer"] {
		t.Errorf("output %v", w.snap.Finish.Output)
	}
}

func TestPlanInChinese(t *testing.T) {
	w := planWorld(t, "LANGUAGE", "zh", `"{{ wish }} for order {{ order_id }}"`, `"订单 {{ order_id }} 退款"`, `"Look up {{ order_id }}"`, `"查询 {{ order_id }}"`)
	w.start(`{}`).asks("计划：订单 A1001 退款\n1. 查询 A1001（lookup：id = A1001，limit = 5）\n2. refund：id = A1001\n可以执行吗？")
}

func TestPlanIsRejected(t *testing.T) {
	w := planWorld(t).start(`{}`).no("I want another one").has("remark", `"I want another one"`)
	// Made again: the condition is looked at anew.
	w.asks("The plan: exchange for order A1001\n1. Look up A1001 (lookup: id = A1001, limit = 5)\n2. lookup: id = x, limit = 7\nShall I go ahead?")
	w.no("").has("remark", `""`)
	w.yes().has("remark", `""`).status("succeeded").called(`lookup{"id":"A1001","limit":5}`, `lookup{"id":"x","limit":7}`)
}

func TestPlanExpires(t *testing.T) {
	planWorld(t).start(`{}`).waitOut(2*time.Hour).path("prepare propose late").last("expired").has("todo", "")
	late := ", expired: late"
	state := "  late: {handler: end, with: {status: failed}}\n"
	w := planWorld(t, "timeout: 1h", "timeout: 1h\n      default: confirmed", late, "", state, "")
	w.start(`{}`).waitOut(2 * time.Hour).path("prepare propose carry_out done")
	w = planWorld(t, "timeout: 1h", "timeout: 1h\n      default: fail", late, "", state, "")
	w.start(`{}`).waitOut(2*time.Hour).path("prepare propose lost").last("fail expired").has("todo", "")
}

func TestPlanWithoutConfirm(t *testing.T) {
	w := planWorld(t, "      confirm: true\n      comment: remark\n", "", "      timeout: 1h\n", "", "rejected: prepare_again, ", "", ", expired: late", "",
		"  prepare_again: {handler: route, transitions: {next: {to: propose, set: {wish: exchange}}}}\n", "", "  late: {handler: end, with: {status: failed}}\n", "")
	w.start(`{}`).path("prepare propose carry_out done")
}

func TestPlanWhoseStepsDoNotFit(t *testing.T) {
	w := planWorld(t, `set: {order_id: "{{ order }}"}`, `set: {order_id: null}`).start(`{}`).path("prepare propose lost").last("fail invalid").has("todo", "")
	if out, _ := w.snap.Finish.Output.(string); !strings.HasPrefix(out, "step look cannot be planned: ") {
		t.Errorf("output %q", out)
	}
	planWorld(t, "- {id: look, ", "- {id: look, when: 'wish == \"exchange\"', ", `wish == "refund"`, `wish == "exchange"`).start(`{}`).
		path("prepare propose lost").last("fail none_found")
}

func TestPlanThatFailedGoesOnWhereItFailed(t *testing.T) {
	w := planWorld(t)
	tries := 0
	w.tools.run["refund"] = func(machine.Values) (machine.Value, error) {
		if tries++; tries == 1 {
			return nil, tool.Failf("locked", "the order is locked")
		}
		return machine.Values{"affected": int64(1)}, nil
	}
	w.start(`{}`).yes().path("prepare propose carry_out propose").last("fail locked").has("answer", "")
	if notes := w.snap.Attempts["carry_out"][0].Notes; len(notes) != 1 || notes[0] != "step pay (refund) failed: the order is locked" {
		t.Errorf("notes %q", notes)
	}
	// What is done stays done, with its result; what failed is to be done.
	w.asks("The plan: refund for order A1001\n1. Look up A1001 (lookup: id = A1001, limit = 5) - done already\n2. refund: id = A1001\nShall I go ahead?")
	w.has("todo", todo("refund for order A1001", lookDone, payPending))
	w.yes().status("succeeded").called(`lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`, `refund{"id":"A1001"}`)
	w.has("todo", todo("refund for order A1001", lookDone, payDone))
}

func TestPlanForgetsWhatWasDoneWithOtherArguments(t *testing.T) {
	w := planWorld(t, "to: propose}, {to: lost}", "to: other}, {to: lost}", "  lost: {",
		"  other: {handler: route, with: {set: {order_id: A1002}}, transitions: {next: propose}}\n  lost: {")
	w.tools.run["refund"] = func(machine.Values) (machine.Value, error) { return machine.Values{"affected": int64(0)}, nil }
	w.start(`{}`).yes().path("prepare propose carry_out other propose").
		asks("The plan: refund for order A1002\n1. Look up A1002 (lookup: id = A1002, limit = 5)\n2. refund: id = A1002\nShall I go ahead?")
	if got := w.snap.Attempts["carry_out"][0].Problem; got.Kind != "expect" ||
		got.Message != `the result is not as expected (result.affected == 1): {"affected":0}` {
		t.Errorf("the attempt ended with %+v", got)
	}
}

func TestExecuteStopsOnTheWay(t *testing.T) {
	w := planWorld(t, " STOP", ", stop_after: 1", " MORE", ", more: pause", "  lost: {",
		"  pause: {handler: confirm, with: {question: '{{ answer }} - go on?'}, transitions: {confirmed: carry_out, rejected: lost}}\n  lost: {")
	w.start(`{}`).yes().asks(`Look up A1001: {"id":"A1001","status":"paid"} - go on?`).has("todo", todo("refund for order A1001", lookDone, payPending))
	w.called(`lookup{"id":"A1001","limit":5}`)
	w.yes().status("succeeded").called(`lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`).
		path("prepare propose carry_out pause carry_out done")
}

func TestExecuteSummary(t *testing.T) {
	planWorld(t, " STOP", `, summary: "{{ len(todo.steps) }} steps: {{ todo.steps[1].status }}"`).start(`{}`).yes().has("answer", `"2 steps: done"`)
}

func TestExecuteInTrouble(t *testing.T) {
	w := planWorld(t, "effect: read,", "effect: read, retry: 0,")
	broken := true
	w.tools.run["lookup"] = func(args machine.Values) (machine.Value, error) {
		if broken {
			return nil, tool.Unavailablef("the database is busy")
		}
		return machine.Values{"id": args["id"], "status": "paid"}, nil
	}
	// Out of order is no failure of the business: the run stops and can be taken up.
	w.start(`{}`).yes().status("stopped outage").has("todo", todo("refund for order A1001", lookPending, payPending))
	broken = false
	w.takeUp().status("succeeded").called(`lookup{"id":"A1001","limit":5}`, `lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`)

	w = planWorld(t, "effect: read,", "effect: read, retry: 0,", "success: done, ", "success: done, error: lost, ")
	w.tools.run["lookup"] = func(machine.Values) (machine.Value, error) { return nil, tool.Unavailablef("the database is busy") }
	w.start(`{}`).yes().path("prepare propose carry_out lost").last("error unavailable")

	// A plan that somebody else wrote, and none at all.
	planWorld(t, "next: propose", "next: carry_out").start(`{}`).path("prepare carry_out propose").last("fail invalid")
}

func TestExecuteWhoseWriteIsInDoubt(t *testing.T) {
	lost := func(machine.Values) (machine.Value, error) {
		return nil, &tool.Error{Status: tool.Unknown, Err: errors.New("the line went dead")}
	}
	start := func(replace ...string) *world {
		w := planWorld(t, replace...)
		w.tools.run["refund"] = lost
		return w.start(`{}`).yes()
	}
	w := start()
	if kind := w.snap.Pending[0].Kind; kind != history.KindInDoubt {
		t.Fatalf("asks a question of kind %s", kind)
	}
	w.answer(engine.Reply{Verdict: history.GiveUp}).path("prepare propose carry_out propose").last("fail unknown").
		called(`lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`)

	start().answer(engine.Reply{Verdict: history.Done, HasValue: true, Value: machine.Values{"affected": int64(1)}}).status("succeeded").
		has("todo", todo("refund for order A1001", lookDone, payDone))
	// What a human says came of it is held against what the flow expects as well.
	start().answer(engine.Reply{Verdict: history.Done, HasValue: true, Value: machine.Values{"affected": int64(0)}}).last("fail expect")

	start("effect: write", "effect: write, in_doubt: fail").path("prepare propose carry_out propose").last("fail unknown")
}

func TestExecuteAsksForApproval(t *testing.T) {
	w := planWorld(t, "effect: write", "effect: write, approval: required").start(`{}`).yes()
	if kind := w.snap.Pending[0].Kind; kind != history.KindApproval {
		t.Fatalf("asks a question of kind %s: a confirmed plan is no approval", kind)
	}
	w.no("too much").last("fail denied").called(`lookup{"id":"A1001","limit":5}`)
	planWorld(t, "effect: write", "effect: write, approval: required").start(`{}`).yes().yes().status("succeeded")
}

func TestExecuteStepWithoutToolNeedsAModel(t *testing.T) {
	w := planWorld(t, "start: prepare", "models: {default: {provider: fake}}\nstart: prepare", ", tool: lookup, args: {id: x, limit: 7}}", ", description: Arrange the exchange}",
		`"exchange"'`, `"refund"'`)
	w.start(`{}`).asks("The plan: refund for order A1001\n1. Look up A1001 (lookup: id = A1001, limit = 5)\n2. refund: id = A1001\n3. Arrange the exchange\nShall I go ahead?")
	w.yes().status("stopped no_key").called(`lookup{"id":"A1001","limit":5}`, `refund{"id":"A1001"}`)
}

func TestPlanWithoutStepsNeedsAModel(t *testing.T) {
	start := strings.Index(planFlow, "      steps:")
	end := strings.Index(planFlow, "    transitions: {confirmed")
	w := planWorld(t, planFlow[start:end], "", "start: prepare", "models: {default: {provider: fake}}\nstart: prepare")
	w.start(`{}`).status("stopped no_key")
}

func TestPlanConfig(t *testing.T) {
	start, end := strings.Index(planFlow, "        - {id: look"), strings.Index(planFlow, "    transitions: {confirmed")
	flow := func(steps string, replace ...string) string {
		f := planFlow[:start] + steps + planFlow[end:]
		for i := 0; i < len(replace); i += 2 {
			f = strings.ReplaceAll(f, replace[i], replace[i+1])
		}
		return strings.NewReplacer("LANGUAGE", "en", " STOP", "", " MORE", "").Replace(f)
	}
	wrong(t, "right", flow("        - {id: a, tool: lookup, args: {id: x, limit: 5}}\n"))
	wrong(t, "ids", flow("        - {id: a, tool: lookup, args: {id: x}}\n        - {id: a, tool: lookup, args: {id: z}}\n        - {id: ' ', tool: lookup, args: {id: z}}\n"),
		"states.propose.with.steps[1].id: the steps 1 and 2 are both called a; each has its own id",
		"states.propose.with.steps[2].id: id is empty; give the step a name")
	wrong(t, "a tool that the other state lacks", flow("        - {id: a, tool: refund, args: {id: x}}\n", "tools: [lookup, refund]", "tools: [lookup]"),
		"states.propose.with.steps[0].tool: carry_out cannot call refund: add it to the tools of carry_out, which carries the plan out")
	wrong(t, "arguments", flow("        - {id: a, tool: lookup, args: {idd: x, limit: many}}\n        - {id: b, tool: lookup, args: {id: '{{ order_id }}', limit: '{{ visits(\"propose\") }}'}}\n"),
		"states.propose.with.steps[0].args: lookup needs the argument id, and args does not give it",
		"states.propose.with.steps[0].args.idd: lookup has no parameter idd -> id",
		`states.propose.with.steps[0].args.limit: lookup does not take this: limit: expected an integer, got the string "many"`)
	wrong(t, "no tool", flow("        - {id: a, args: {id: x}}\n        - {id: b}\n        - {id: c, description: Do it, expect: result == 1}\n",
		"start: prepare", "models: {default: {provider: fake}}\nstart: prepare"),
		"states.propose.with.steps[0].args: args belong to a tool, and step a names none; add tool",
		"states.propose.with.steps[1]: step b says neither which tool does it nor, in a description, what is to be done",
		"states.propose.with.steps[2].expect: expect looks at a tool's result, and step c names none; add tool")
	wrong(t, "no tool and no model", flow("        - {id: a, description: Do it}\n"),
		"states.propose.with.steps[0]: step a names no tool, so a model would have to do it, and carry_out has none; add tool, or a model")
	wrong(t, "no steps and no model", flow("", "      steps:\n", ""),
		"states.propose.with.steps: a plan without steps is made by a model, and this state has none; add steps, or a model")
	wrong(t, "the model of the other state counts", flow("        - {id: a, description: Do it}\n",
		"start: prepare", "models: {default: {provider: fake}}\nstart: prepare", "handler: execute", "handler: execute\n    model: none"),
		"states.propose.with.steps[0]: step a names no tool, so a model would have to do it, and carry_out has none; add tool, or a model")
	wrong(t, "what the variables hold", flow("        - {id: a, tool: lookup, args: {id: x}}\n", "into: todo", "into: amount", "comment: remark", "comment: amount"),
		"states.propose.with.into [cannot-hold]",
		"states.propose.with.comment [cannot-hold]")
	wrong(t, "nobody is asked", flow("        - {id: a, tool: lookup, args: {id: x}}\n", "      confirm: true\n", "", "rejected: prepare_again, ", "", ", expired: late", "",
		"  late: {handler: end, with: {status: failed}}\n", "", "  prepare_again: {handler: route, transitions: {next: {to: propose, set: {wish: exchange}}}}\n", ""),
		"states.propose.with.comment: comment is about the human's answer, and nobody is asked; add confirm: true or leave it out",
		"states.propose.with.timeout: timeout is about the human's answer, and nobody is asked; add confirm: true or leave it out")
	wrong(t, "execute", flow("        - {id: a, tool: lookup, args: {id: x}}\n", "{from: todo, into: answer STOP}", "{from: remark, into: amount}"),
		"states.carry_out.with.from [cannot-hold]",
		"states.carry_out.with.into [cannot-hold]")
	wrong(t, "a summary for nothing", flow("        - {id: a, tool: lookup, args: {id: x}}\n", "{from: todo, into: answer STOP}", "{from: todo, summary: done}"),
		"states.carry_out.with.summary: the summary goes nowhere: add into, a variable for it")
}
