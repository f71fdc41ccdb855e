package states

import (
	"strings"
	"testing"

	"flowctl/flows/machine"
	"flowctl/store"
)

const intentFlow = `
version: 1
name: sort
inputs: {message: {type: string}}
vars:
  wish: {type: string, enum: [refund, exchange, question]}
  answer: {type: string}
MODELS
start: understand
states:
  understand:
    handler: intent
    with:
      FROM
      into: wish
      intents:
        refund: {description: Wants money back, keywords: [refund, money back, 退款], patterns: ['R-[0-9]+']}
        exchange: {description: Wants another article, keywords: [exchange, swap, 换货]}
        question: {description: Asks something, keywords: [how]}
    transitions: {question: reply, success: done, fail: lost}
  reply: {handler: ask, with: {question: "Why?", into: answer}, transitions: {answered: understand}}
  lost: {handler: end, with: {status: failed, output: "{{ last.error.message }}"}}
  done: {handler: end, with: {output: "{{ wish }}"}}
`

// intentWorld is a run of intentFlow with or without a model, reading the message or what was heard.
func intentWorld(t *testing.T, model, from bool) *world {
	models, fromLine := "", ""
	if model {
		models = "models: {default: {provider: fake}}"
	}
	if from {
		fromLine = "from: message"
	}
	return newWorld(t, strings.NewReplacer("MODELS", models, "FROM", fromLine).Replace(intentFlow))
}

func TestIntentDecidesByRules(t *testing.T) {
	tests := []struct{ text, path, wish, last string }{
		{"I want a REFUND", "understand done", `"refund"`, "refund"},
		{"give me my money\n back", "understand done", `"refund"`, "refund"},
		{"it is about R-12", "understand done", `"refund"`, "refund"},
		{"我要退款！", "understand done", `"refund"`, "refund"},
		{"我想换货", "understand done", `"exchange"`, "exchange"},
		{"refundable?", "understand lost", "", "fail none_found"},
		{"a refund or a swap", "understand lost", "", "fail several"},
		{"no refund please, an exchange", "understand done", `"exchange"`, "exchange"},
		{"I don't want a refund", "understand lost", "", "fail none_found"},
		{"不要退款，我要换货", "understand done", `"exchange"`, "exchange"},
		{"我不想退款", "understand lost", "", "fail none_found"},
		{"能不能退款", "understand done", `"refund"`, "refund"},
		{"not R-12", "understand done", `"refund"`, "refund"}, // a pattern is not denied
		{"hello", "understand lost", "", "fail none_found"},
		{"", "understand lost", "", "fail none_found"},
	}
	for _, test := range tests {
		for _, from := range []bool{true, false} {
			data, _ := machine.EncodeValue(machine.Values{"message": test.text})
			w := intentWorld(t, false, from).start(string(data)).path(test.path).has("wish", test.wish)
			if got := w.snap.Last.Error.Kind; !strings.HasSuffix(test.last, got) {
				t.Errorf("%q: last.error.kind is %q, want %s", test.text, got, test.last)
			}
		}
	}
}

func TestIntentReadsTheNewestMessage(t *testing.T) {
	w := intentWorld(t, false, false).start(`{"message": "how does it work"}`).asks("Why?").has("wish", `"question"`)
	w.say("I want to swap it").path("understand reply understand done").has("wish", `"exchange"`)
	if w.snap.Finish.Output != machine.Value("exchange") {
		t.Errorf("output %v", w.snap.Finish.Output)
	}
	// With from it is that variable, on every visit.
	intentWorld(t, false, true).start(`{"message": "how does it work"}`).say("I want to swap it").
		path("understand reply understand reply").has("wish", `"question"`)
}

func TestIntentReadsTheMessageAgainWhereNothingNewWasSaid(t *testing.T) {
	newWorld(t, `
version: 1
name: again
inputs: {message: {type: string}}
vars: {round: {type: integer, default: 0}}
start: understand
states:
  understand:
    handler: intent
    with: {intents: {refund: {description: Wants money back, keywords: [refund]}}}
    transitions: {refund: [{when: 'round < 2', to: understand, set: {round: "{{ round + 1 }}"}}, {to: done}], fail: lost}
  lost: {handler: end, with: {status: failed}}
  done: {handler: end}
`).start(`{"message": "refund please"}`).path("understand understand understand done")
}

func TestIntentWithAModelThatCannotBeCalled(t *testing.T) {
	w := intentWorld(t, true, true).start(`{"message": "hello"}`).path("understand").status("stopped no_key").has("wish", "")
	if !strings.Contains(w.snap.Stop.Message, "LLM_API_KEY") {
		t.Errorf("stop says %q", w.snap.Stop.Message)
	}
	// Rules that decide need no key.
	intentWorld(t, true, true).start(`{"message": "refund"}`).path("understand done").status(string(store.Succeeded))
	// Nothing was said, so there is nothing to ask a model about.
	intentWorld(t, true, true).start(`{"message": " "}`).path("understand lost").last("fail none_found")
}

func TestIntentAsksAModel(t *testing.T) {
	tests := []struct {
		text, path, last, wish string
		answers                []string
		requests               int
	}{
		{text: "I want a REFUND", path: "understand done", last: "success", wish: `"refund"`},
		{text: " ", path: "understand lost", last: "fail none_found"},
		{text: "it is broken", path: "understand done", last: "success", wish: `"refund"`, requests: 1,
			answers: []string{`{state: understand, answer: {intent: refund}}`}},
		{text: "a refund or a swap", path: "understand done", last: "success", wish: `"exchange"`, requests: 1,
			answers: []string{`{state: understand, text: 'I think so: {"intent": " Exchange "}'}`}},
		{text: "hello", path: "understand lost", last: "fail none_found", requests: 1,
			answers: []string{`{state: understand, answer: {intent: none}}`}},
		{text: "hello", path: "understand done", last: "success", wish: `"refund"`, requests: 3, answers: []string{
			`{state: understand, text: a refund}`, `{state: understand, answer: {intent: refunds}}`, `{state: understand, answer: {intent: refund}}`}},
		{text: "hello", path: "understand lost", last: "fail invalid", requests: 3, answers: []string{
			`{state: understand, answer: {intent: ""}}`, `{state: understand, answer: {intent: [refund]}}`, `{state: understand, answer: {intent: null}}`}},
		{text: "hello", path: "understand lost", last: "fail invalid", requests: 3, answers: []string{
			`{state: understand, calls: [{tool: look, args: {}}]}`, `{state: understand, calls: [{tool: look, args: {}}]}`, `{state: understand, calls: [{tool: look, args: {}}]}`}},
		{text: "hello", path: "understand lost", last: "fail blocked", requests: 1, answers: []string{`{state: understand, error: blocked}`}},
		{text: "hello", path: "understand lost", last: "fail cut", requests: 3, answers: []string{
			`{state: understand, text: (cut)}`, `{state: understand, text: (cut)}`, `{state: understand, text: (cut)}`}},
	}
	for _, test := range tests {
		for _, from := range []bool{true, false} {
			w := intentWorld(t, true, from)
			w.model = machine.ModelReady
			if len(test.answers) > 0 {
				w.scripted(test.answers...)
			}
			w.start(machine.FormatValue(machine.Values{"message": test.text})).path(test.path).last(test.last).has("wish", test.wish).asked(test.requests)
		}
	}
}

func TestIntentTellsTheModelWhatIsWrong(t *testing.T) {
	w := intentWorld(t, true, true).scripted(`{state: understand, answer: {intent: refunds}}`, `{state: understand, answer: {intent: refund}}`)
	w.start(`{"message": "hello"}`).path("understand done")
	if got := w.newest(1); !strings.Contains(got, `intent: expected`) || !strings.Contains(got, `"refunds"`) {
		t.Errorf("the model is told %q", got)
	}
	if got := w.snap.Attempts["understand"]; len(got) != 1 {
		t.Errorf("attempts %+v", got)
	}
}

// The answer is for the flow: the conversation does not have it. An outage stops the run, which can be taken up.
func TestIntentInTrouble(t *testing.T) {
	w := intentWorld(t, true, false).scripted(`{state: understand, error: server}`)
	w.start(`{"message": "hello"}`).path("understand").status("stopped outage").has("wish", "")
	w.scripted(`{state: understand, answer: {intent: question}}`)
	w.takeUp().path("understand reply").has("wish", `"question"`)
	for _, msg := range w.snap.Talk.Messages {
		if strings.Contains(msg.Text, "intent") {
			t.Errorf("the conversation has %q", msg.Text)
		}
	}
}

func TestIntentConfig(t *testing.T) {
	base := `
version: 1
name: sort
vars: {wish: {type: string, enum: [refund]}, n: {type: integer}}
start: understand
states:
  understand:
    handler: intent
    with: WITH
    transitions: ROUTES
  done: {handler: end}
`
	flow := func(with, routes string) string {
		return strings.NewReplacer("WITH", with, "ROUTES", routes).Replace(base)
	}
	wrong(t, "all routed: no success", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{refund: done, fail: done}"))
	wrong(t, "none routed", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{success: done, fail: done}"))
	wrong(t, "else covers success", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{else: done}"))
	wrong(t, "success is never taken", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{refund: done, success: done, fail: done}"),
		"states.understand.transitions.success [unknown-outcome]")
	wrong(t, "success is missing", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{fail: done}"),
		"states.understand.transitions [missing-route]")
	wrong(t, "a slip in an intent's name", flow("{into: wish, intents: {refund: {description: r, keywords: [r]}}}", "{refnud: done, success: done, fail: done}"),
		"states.understand.transitions.refnud [unknown-outcome] -> refund")
	wrong(t, "a variable that does not take all", flow("{into: wish, intents: {refund: {description: r}, swap: {description: s}}}", "{else: done}"),
		"states.understand.with.into [cannot-hold]")
	wrong(t, "a variable of another type", flow("{into: n, intents: {refund: {description: r}}}", "{else: done}"),
		"states.understand.with.into [cannot-hold]")
	wrong(t, "reserved", flow("{intents: {success: {description: r}}}", "{else: done}"),
		"states.understand.with.intents.success [reserved-name]")
	wrong(t, "none", flow("{intents: {none: {description: r}}}", "{else: done}"),
		"states.understand.with.intents.none [reserved-name]")
	wrong(t, "empty", flow("{intents: {}}", "{else: done}"),
		"states.understand.with.intents: intents is empty; name at least one, such as refund: {description: Wants money back}")
}
