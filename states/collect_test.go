package states

import (
	"strings"
	"testing"
	"time"

	"flowctl/flows/machine"
)

const collectFlow = `
version: 1
name: gather
language: LANGUAGE
inputs: {message: {type: string}}
vars:
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: "The order number, such as A1001"}
  amount: {type: integer, minimum: 1, maximum: 10}
  remark: {type: string, default: ""}
interrupts:
  stop: {keywords: [stop], to: quit}
start: details
states:
  details:
    handler: collect
    limits: {turns: 2}
    with: {from: message, fields: [order_id, {name: amount, ask: "How many of {{ order_id }}?"}], timeout: 1h DEFAULT}
    transitions: {complete: check, incomplete: lost, expired: late}
  check: {handler: confirm, with: {question: "{{ amount }} of {{ order_id }}?", comment: remark}, transitions: {confirmed: done, rejected: details}}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  late: {handler: end, with: {status: failed}}
  quit: {handler: end, with: {status: failed, output: quit}}
  done: {handler: end}
`

func collectWorld(t *testing.T, replace ...string) *world {
	flow := collectFlow
	for i := 0; i < len(replace); i += 2 {
		flow = strings.ReplaceAll(flow, replace[i], replace[i+1])
	}
	return newWorld(t, strings.NewReplacer("LANGUAGE", "en", " DEFAULT", "").Replace(flow))
}

func TestCollectFillsAndAsks(t *testing.T) {
	w := collectWorld(t).start(`{"message": "3 of A1001, please"}`)
	w.path("details check").has("order_id", `"A1001"`).has("amount", "3").asks("3 of A1001?")

	w = collectWorld(t).start(`{"message": "hello"}`)
	w.asks("Please tell me the order number, such as A1001.\nHow many of ?").has("order_id", "")
	w.say("B7").asks("I found none of this in your answer.\nPlease tell me the order number, such as A1001.\nHow many of ?")
	w.say("A1001, 50")
	w.path("details lost").last("incomplete turns").has("order_id", "").has("amount", "")
	if got := w.snap.Finish.Output; got != machine.Value("still missing after 2 questions: amount") {
		t.Errorf("output %v", got)
	}
}

func TestCollectIsEnteredAgain(t *testing.T) {
	// A no that says what is wrong is enough. The first message is not read again.
	w := collectWorld(t).start(`{"message": "3 of A1001"}`).no("A1002, and not the 1001")
	w.path("details check details check").asks("3 of A1002?").has("remark", `"A1002, and not the 1001"`)
	// One that says two things, or none, is asked about.
	w.no("A1003 or A1004").asks("There is more than one order number: A1003 or A1004. Which one is it?\nPlease tell me the order number, such as A1001.")
	w.has("order_id", `"A1002"`).say("A1003").asks("3 of A1003?")
	w.no("").has("remark", `""`).asks("What should change? At the moment: order number: A1003; amount: 3.")
	before := strings.Count(w.events(), "var_set")
	w.say("make it 4").asks("4 of A1003?").has("amount", "4")
	if sets := strings.Count(w.events(), "var_set") - before; sets != 1 {
		t.Errorf("%d variables were written, want the one that changed", sets)
	}
	w.no("").say("nothing").asks("4 of A1003?")
	w.yes().status("succeeded")
}

func TestCollectSurvivesItsProcess(t *testing.T) {
	w := collectWorld(t, "turns: 2", "turns: 8").start(`{"message": "hello"}`)
	for _, answer := range []string{"B7", "A1001", "50"} {
		w.restart()
		w.say(answer)
	}
	w.restart()
	w.advance().asks("50 will not do as amount: it takes at most 10.\nHow many of ?").say("5").asks("5 of A1001?")
}

func TestCollectWithoutAnAnswer(t *testing.T) {
	collectWorld(t).start(`{"message": "hello"}`).waitOut(time.Minute).path("details").waitOut(2 * time.Hour).path("details late").last("expired")

	w := collectWorld(t, " DEFAULT", ", default: complete", ", expired: late", "", "  late: {handler: end, with: {status: failed}}\n", "")
	w.start(`{"message": "A1001"}`).waitOut(2*time.Hour).path("details check").has("order_id", `"A1001"`).has("amount", "")

	w = collectWorld(t, " DEFAULT", ", default: incomplete", ", expired: late", "", "  late: {handler: end, with: {status: failed}}\n", "")
	w.start(`{"message": "A1001"}`).waitOut(2*time.Hour).path("details lost").has("order_id", "").last("incomplete expired")
}

func TestCollectIsInterrupted(t *testing.T) {
	collectWorld(t).start(`{"message": "stop, hello"}`).say("stop, A1001").path("details quit").has("order_id", "")
}

func TestCollectNeverNeedsAModel(t *testing.T) {
	w := collectWorld(t, "start: details", "models: {default: {provider: fake}}\nstart: details")
	w.model = machine.ModelMissing
	w.start(`{"message": "hello"}`).asks("Please tell me the order number, such as A1001.\nHow many of ?").asked(0)
}

func TestCollectInChinese(t *testing.T) {
	flow := `
version: 1
name: gather
language: zh
inputs: {message: {type: string}}
vars:
  order_id: {type: string, pattern: '^[0-9]{4}-[0-9]{3}$', description: 订单号，如2024-001}
  reason: {type: string, enum: [质量问题, 发错货], description: 退货原因}
  amount: {type: integer, description: 件数}
start: details
states:
  details:
    handler: collect
    with: {from: message, fields: [order_id, reason, amount]}
    transitions: {complete: done, incomplete: done}
  done: {handler: end}
`
	newWorld(t, flow).start(`{"message": "我的订单2024-001有质量问题，要退款，共2件"}`).path("details done").
		has("order_id", `"2024-001"`).has("reason", `"质量问题"`).has("amount", "2")
	w := newWorld(t, flow).start(`{"message": "我的订单2024-001有质量问题，要退款"}`).asks("请告诉我件数。")
	w.say("订单2024-001的").asks("订单2024-001的不能作为件数：请单独写出数字。\n请告诉我件数。").say("２件").path("details done").has("amount", "2")
}

func TestCollectWithoutFromReadsWhatWasHeard(t *testing.T) {
	flow := `
version: 1
name: gather
inputs: {message: {type: string}}
vars: {order_id: {type: string, pattern: '^A[0-9]{4}$'}, answer: {type: string}, other: {type: string}}
start: first
states:
  first: {handler: ask, with: {question: "Which?", into: answer}, transitions: {answered: details}}
  details: {handler: collect, with: {FROM fields: [order_id]}, transitions: {complete: done, incomplete: done}}
  done: {handler: end}
`
	newWorld(t, strings.ReplaceAll(flow, "FROM", "")).start(`{"message": "A1001"}`).say("no, A1002").path("first details done").has("order_id", `"A1002"`)
	newWorld(t, strings.ReplaceAll(flow, "FROM", "from: message,")).start(`{"message": "A1001"}`).say("no, A1002").has("order_id", `"A1001"`)
	// A variable without value says nothing.
	newWorld(t, strings.ReplaceAll(flow, "FROM", "from: other,")).start(`{"message": "A1001"}`).say("no, A1002").has("order_id", `"A1002"`)
}

func TestCollectConfig(t *testing.T) {
	base := `
version: 1
name: gather
inputs: {message: {type: string}}
vars: {order_id: {type: string}}
start: details
states:
  details:
    handler: collect
    with: WITH
    transitions: ROUTES
  done: {handler: end}
`
	flow := func(with, routes string) string {
		return strings.NewReplacer("WITH", with, "ROUTES", routes).Replace(base)
	}
	wrong(t, "right", flow("{from: message, fields: [order_id]}", "{complete: done, incomplete: done}"))
	wrong(t, "an input", flow("{fields: [message]}", "{else: done}"),
		"states.details.with.fields[0] [read-only]")
	wrong(t, "a number", strings.Replace(flow("{fields: [order_id]}", "{else: done}"), "order_id: {type: string}", "order_id: {type: integer}", 1))
	for _, schema := range []string{"{type: object, properties: {a: {type: string}}}", "{type: array, items: {type: object, properties: {a: {type: string}}}}"} {
		wrong(t, "an object", strings.Replace(flow("{fields: [order_id]}", "{else: done}"), "order_id: {type: string}", "order_id: "+schema, 1),
			"states.details.with.fields[0]: collect cannot read an object; fill order_id with ask, which takes a form, or collect a variable for each of its parts")
	}
	wrong(t, "twice", flow("{fields: [order_id, {name: order_id, ask: again}]}", "{else: done}"),
		"states.details.with.fields[1]: order_id stands in fields twice")
	wrong(t, "none", flow("{fields: []}", "{else: done}"), "states.details.with.fields: fields is empty; name at least one variable")
	wrong(t, "a timeout leads to expired", flow("{fields: [order_id], timeout: 1h}", "{complete: done, incomplete: done}"),
		"states.details.transitions [missing-route]")
	wrong(t, "or to its default", flow("{fields: [order_id], timeout: 1h, default: incomplete}", "{complete: done, incomplete: done}"))
	wrong(t, "a default without timeout", flow("{fields: [order_id], default: incomplete}", "{complete: done, incomplete: done}"),
		"states.details.with.default: default is the outcome when the time runs out, and there is no timeout; add one, such as timeout: 24h")
	wrong(t, "a default that is no outcome", flow("{fields: [order_id], timeout: 1h, default: success}", "{complete: done, incomplete: done}"),
		"states.details.with.default: default names the outcome when the time runs out, and the state never ends with success; it can end with complete, incomplete")
}
