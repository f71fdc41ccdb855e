package states

import (
	"strings"
	"testing"

	"flowctl/engine/history"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// supportFlow is a whole flow: from what a customer wrote to a refund that a human has confirmed.
const supportFlow = `
version: 1
name: support
inputs:
  message: {type: string, description: What the customer wrote}
vars:
  wish: {type: string, enum: [refund, exchange, question]}
  order_id: {type: string, pattern: '^A[0-9]{4}$', description: "The order number, such as A1001"}
  todo: {type: object}
  remark: {type: string, default: ""}
  answer: {type: string}
models:
  default: {provider: fake}
tools:
  lookup_order:
    description: Look up one order by its number.
    effect: read
    parameters: {order_id: {type: string}}
    fake: {}
  refund_order:
    description: Refund one paid order in full.
    effect: write
    parameters: {order_id: {type: string}}
    fake: {}
defaults:
  transitions: {fail: colleague}
start: understand
states:
  understand:
    handler: intent
    with:
      from: message
      into: wish
      intents:
        refund: {description: Wants money back, keywords: [refund, money back]}
        exchange: {description: Wants another article, keywords: [exchange, swap]}
        question: {description: Asks about an order, keywords: [where]}
    transitions: {question: reply, success: details}
  details:
    handler: collect
    view: {vars: [message, wish], messages: {last: 6}}
    limits: {turns: 4}
    with: {from: message, fields: [order_id]}
    transitions: {complete: propose, incomplete: colleague}
  propose:
    handler: plan
    with:
      into: todo
      for: carry_out
      confirm: true
      comment: remark
      goal: "{{ wish }} for order {{ order_id }}"
      steps:
        - {id: look, tool: lookup_order, args: {order_id: "{{ order_id }}"}}
        - {id: refund, when: 'wish == "refund"', tool: refund_order, args: {order_id: "{{ order_id }}"}}
        - {id: exchange, when: 'wish == "exchange"', description: Arrange the exchange}
    transitions: {confirmed: carry_out, rejected: details}
  carry_out:
    handler: execute
    tools: [lookup_order, refund_order]
    limits: {visits: 3, turns: 8, time: 2m}
    with: {from: todo, into: answer}
    transitions:
      success: done
      fail:
        - when: 'last.error.kind == "none_found" and visits("details") < 3'
          to: details
          set: {order_id: null}
          say: "I cannot find order {{ order_id }}."
        - {to: colleague, say: I could not finish this myself.}
  reply: {handler: route, transitions: {next: done}}
  colleague: {handler: end, with: {status: failed, output: A colleague will take over.}}
  done: {handler: end, with: {status: succeeded, output: "{{ answer }}"}}
`

func supportWorld(t *testing.T) *world {
	w := newWorld(t, supportFlow)
	w.tools.run["lookup_order"] = func(args machine.Values) (machine.Value, error) {
		if args["order_id"] != machine.Value("A1001") {
			return nil, tool.Failf("none_found", "no row was found")
		}
		return machine.Values{"id": "A1001", "item": "lamp"}, nil
	}
	w.tools.run["refund_order"] = func(machine.Values) (machine.Value, error) { return machine.Values{"affected": int64(1)}, nil }
	return w
}

func TestSupportFlow(t *testing.T) {
	w := supportWorld(t).start(`{"message": "I want a refund for order A1001, it arrived broken"}`).
		asks("The plan: refund for order A1001\n1. lookup_order: order_id = A1001\n2. refund_order: order_id = A1001\nShall I go ahead?")
	w.yes().path("understand details propose carry_out done").status("succeeded").has("wish", `"refund"`)
	if got := w.snap.Finish.Output; got != machine.Value("lookup_order: {\"id\":\"A1001\",\"item\":\"lamp\"}\nrefund_order: {\"affected\":1}") {
		t.Errorf("output %q", got)
	}
	want := "run_started state_entered var_set transition state_entered var_set transition state_entered var_set asked run_waiting " +
		"answered transition state_entered tool_finished var_set tool_started tool_finished var_set var_set transition state_entered run_finished"
	if got := w.events(); got != want {
		t.Errorf("events\n%s, want\n%s", got, want)
	}
}

func TestSupportFlowFindsTheWayBack(t *testing.T) {
	w := supportWorld(t).start(`{"message": "my money back please, order B7"}`).asks("Please tell me the order number, such as A1001.")
	w.say("B7").asks("B7 is no order number.\nPlease tell me the order number, such as A1001.")
	w.say("A9999 then").yes().path("understand details propose carry_out details").last("fail none_found").has("order_id", "")
	w.asks("Please tell me the order number, such as A1001.")
	evs, err := w.e.History(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for _, ev := range evs {
		if d, ok := ev.Data.(*history.Said); ok {
			said += d.Text
		}
	}
	if said != "I cannot find order A9999." {
		t.Errorf("said %q", said)
	}
	w.say("sorry, it is A1001").no("wait, it was A1001").asks("What should change? At the moment: order number: A1001.")
	w.say("nothing").yes().status("succeeded").path("understand details propose carry_out details propose details propose carry_out done")
}

func TestSupportFlowWithoutAnAnswer(t *testing.T) {
	w := supportWorld(t).start(`{"message": "exchange it"}`)
	for range 4 {
		w.say("hm")
	}
	w.path("understand details colleague").last("incomplete turns").status("failed")
	// Nothing but a model could do it, and its key is missing.
	w = supportWorld(t).start(`{"message": "swap A1001"}`).yes().status("stopped no_key").path("understand details propose carry_out")
	if !strings.Contains(w.snap.Stop.Message, "LLM_API_KEY") {
		t.Errorf("stop says %q", w.snap.Stop.Message)
	}
	w.called(`lookup_order{"order_id":"A1001"}`)
	supportWorld(t).start(`{"message": "where is A1001"}`).path("understand reply done")
}
