package states

import (
	"strings"
	"testing"

	"flowctl/engine/history"
)

// withModel is a world of collectFlow with a model.
func withModel(t *testing.T, answers ...string) *world {
	w := collectWorld(t, "start: details", "models: {default: {provider: fake}}\nstart: details", "turns: 2", "turns: 4", `ask: "How many of {{ order_id }}?"`, `ask: "How many?"`)
	return w.scripted(answers...)
}

// extracted writes the answer of a model that reads.
func extracted(answer string) string { return "{state: details, answer: {" + answer + "}}" }

func TestCollectConsultsAModel(t *testing.T) {
	// Rules that find all need none.
	w := withModel(t, extracted("order_id: A9999, amount: 9")).start(`{"message": "3 of A1001, please"}`).asks("3 of A1001?").asked(0)
	// What they find stands, whatever the model says.
	w = withModel(t, extracted("order_id: A9999, amount: 2")).start(`{"message": "A1001, a couple of them"}`).asks("2 of A1001?").asked(1).offered(0, "")
	if got := w.task(0); !strings.Contains(got, "\n\nWhat the human said is the value of the variable message.") {
		t.Errorf("the task is %q", got)
	}
	for _, msg := range w.snap.Talk.Messages {
		if msg.Role == history.RoleAssistant && strings.Contains(msg.Text, "A9999") {
			t.Errorf("the conversation has %q", msg.Text)
		}
	}
}

func TestCollectAsksWhatTheModelDoesNotRead(t *testing.T) {
	w := withModel(t, extracted("order_id: null, amount: null"), extracted(`amount: "4"`), extracted("order_id: null"), extracted("order_id: A1001"))
	w.start(`{"message": "hello"}`).asks("Please tell me the order number, such as A1001.\nHow many?").asked(1)
	w.say("a handful").asks("Please tell me the order number, such as A1001.").asked(2)
	if got := w.task(1); !strings.HasSuffix(got, "The human was asked for: order_id, amount.\n\nWhat the human said: \"a handful\"") {
		t.Errorf("the task is %q", got)
	}
	// The note of the rules stays where the model reads nothing either, and the same words are not given to it again.
	w.say("B7").asks("B7 is no order number.\nPlease tell me the order number, such as A1001.").asked(3)
	w.say(" B7").asks("B7 is no order number.\nPlease tell me the order number, such as A1001.").asked(3)
	w.say("the one thousand and first of A").asks("4 of A1001?").asked(4)
}

func TestCollectDropsTheNoteOfWhatTheModelReads(t *testing.T) {
	w := withModel(t, extracted(""), extracted("amount: 3"))
	w.start(`{"message": "hello"}`)
	w.say("50, no, three of them, order later").asks("Please tell me the order number, such as A1001.").asked(2)
	// What the rules cannot decide the model may.
	w = withModel(t, extracted("order_id: A1002"))
	w.start(`{"message": "3 of A1001, sorry, of A1002"}`).asks("3 of A1002?").asked(1)
}

func TestCollectWhoseModelGetsItWrong(t *testing.T) {
	wrong := extracted("order_id: B7, amount: 3")
	w := withModel(t, wrong, wrong, wrong).start(`{"message": "hello"}`)
	w.asks("Please tell me the order number, such as A1001.\nHow many?").asked(3)
	if got := w.newest(1); !strings.Contains(got, "order_id: expected text that matches ^A[0-9]{4}$") {
		t.Errorf("the model is told %q", got)
	}
	for _, trouble := range []string{`{state: details, error: blocked}`, `{state: details, text: (cut)}`, `{state: details, text: none}`} {
		w := withModel(t, trouble, trouble, trouble).start(`{"message": "hello"}`).asks("Please tell me the order number, such as A1001.\nHow many?")
		w.say("3 of A1001").asks("3 of A1001?")
	}
	// Out of order is another thing: nobody is asked what a model could have read.
	w = withModel(t, `{state: details, error: server}`).start(`{"message": "hello"}`).status("stopped outage")
	w.scripted(extracted("order_id: A1001, amount: 1"))
	w.takeUp().asks("1 of A1001?")
}

func TestCollectIsEnteredAgainWithAModel(t *testing.T) {
	w := withModel(t, "{state: details, visit: 2, answer: {amount: 6, order_id: null}}",
		"{state: details, visit: 3, answer: {amount: 6, order_id: A1001}}", "{state: details, visit: 3, answer: {order_id: A2002}}",
		"{state: details, visit: 4, answer: {amount: 9}}")
	w.start(`{"message": "3 of A1001"}`).asks("3 of A1001?").asked(0)
	w.no("twice as many").asks("6 of A1001?").asked(1).has("remark", `"twice as many"`)
	if got := w.task(0); !strings.HasSuffix(got, "The fields have values already. Give only what the human wants to change, and null for all that stays.\n\nWhat the human said: \"twice as many\"") {
		t.Errorf("the task is %q", got)
	}
	// What is as it was is no change.
	w.no("hm, not sure").asks("What should change? At the moment: order number: A1001; amount: 6.").asked(2)
	w.say("the first of the second thousand").asks("6 of A2002?").asked(3)
	// What the rules found in the text stands; a change by rules is enough.
	w.no("A1003").asks("6 of A1003?").asked(3)
	// Nothing was said: there is nothing to read.
	w.no("").asks("What should change? At the moment: order number: A1003; amount: 6.").asked(3)
	w.say("nothing").asks("6 of A1003?").asked(3)
}

func TestCollectKeepsAPlainAnswer(t *testing.T) {
	flow := `
version: 1
name: gather
inputs: {message: {type: string}}
vars: {name: {type: string, description: Your name}, city: {type: string, description: Your city}}
models: {default: {provider: fake}}
start: details
states:
  details:
    handler: collect
    with: {fields: [name, city]}
    transitions: {complete: done, incomplete: done}
  done: {handler: end}
`
	// The only one asked for takes the whole answer.
	w := newWorld(t, flow).scripted(extracted("city: Rome")).start(`{"message": "I live in Rome"}`).asks("Please tell me your name.")
	w.say("Ada of Rome").path("details done").has("name", `"Ada of Rome"`).has("city", `"Rome"`).asked(1)
	// Two at once are for the model; without it they are asked for one by one.
	w = newWorld(t, flow).scripted(extracted(""), extracted("name: Ada")).start(`{"message": "hello"}`).asks("Please tell me:\n- your name\n- your city")
	w.say("it is Ada").asks("Please tell me your city.").has("name", "").say("Rome").has("name", `"Ada"`).has("city", `"Rome"`).asked(2)
	w = newWorld(t, flow).scripted(extracted(""), extracted("")).start(`{"message": "hello"}`)
	w.say("guess").asks("I cannot tell apart what you told me, so one at a time.\nPlease tell me your name.")
	w.say("Ada").asks("Please tell me your city.").say("Rome").has("name", `"Ada"`).asked(2)
}

func TestCollectGivesAModelAllThatWasHeard(t *testing.T) {
	flow := `
version: 1
name: gather
inputs: {message: {type: string}}
vars: {order_id: {type: string, pattern: '^A[0-9]{4}$'}, answer: {type: string}}
models: {default: {provider: fake}}
start: first
states:
  first: {handler: ask, with: {question: "Which?", into: answer}, transitions: {answered: details}}
  details: {handler: collect, with: {fields: [order_id]}, transitions: {complete: done, incomplete: done}}
  done: {handler: end}
`
	w := newWorld(t, flow).scripted(extracted("order_id: A1001")).start(`{"message": "the thousandth of A"}`).say("one later").path("first details done").has("order_id", `"A1001"`)
	if got := w.task(0); !strings.HasSuffix(got, "\n\nWhat the human said (1 of 2): \"the thousandth of A\"\nWhat the human said (2 of 2): \"one later\"") {
		t.Errorf("the task is %q", got)
	}
}
