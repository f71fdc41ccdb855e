package states

import (
	"strings"
	"testing"

	"flowctl/flows/machine"
)

// An expression that fails says nothing of a secret: neither its value nor, where the library repeats it, the reason.
func TestExpressionsThatFailOnASecret(t *testing.T) {
	const head = `
version: 1
name: hidden
vars: {pin: {type: string, secret: true}}
tools:
  fetch: {description: Fetch it., effect: read, fake: {}}
start: first
states:
`
	for name, tc := range map[string]struct{ states, secret, answer string }{
		"pattern": {`  first: {handler: ask, with: {question: 'Pin?', into: pin}, transitions: {answered: [{when: '"abc" matches pin', to: done}, {to: done}]}}
  done: {handler: end}
`, "[(7", "[(7"},
		"result": {`  first: {handler: call, with: {tool: fetch, into: pin, expect: "fromJSON(result).a == 1"}, transitions: {success: done, fail: done}}
  done: {handler: end}
`, "7351", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, head+tc.states)
			w.tools.run["fetch"] = func(machine.Values) (machine.Value, error) { return tc.secret, nil }
			w.start(`{}`)
			if tc.answer != "" {
				w.say(tc.answer)
			}
			w.status("stopped expression")
			if stop := w.snap.Stop; !strings.Contains(stop.Message, "may hold a secret") || strings.Contains(stop.Message, tc.secret) {
				t.Errorf("the stop says %q", stop.Message)
			}
		})
	}
}

// A secret that collect has read is hidden from then on, also where the state does not come to its end and the value stands in
// what was said before.
func TestASecretThatWasReadIsHiddenThoughFieldsAreMissing(t *testing.T) {
	w := newWorld(t, `
version: 1
name: half
inputs: {message: {type: string}}
vars: {name: {type: string, pattern: '^N[0-9]+$'}, pin: {type: string, pattern: '^[0-9]{6}$', secret: true}, answer: {type: string}}
models: {default: {provider: fake}}
start: first
states:
  first: {handler: collect, limits: {turns: 1}, with: {from: message, fields: [name, pin]}, transitions: {complete: think, incomplete: think}}
  think: {handler: agent, view: {messages: all}, with: {goal: Help., into: answer}, transitions: {success: done, fail: done}}
  done: {handler: end}
`).scripted("{state: think, text: I help.}")
	w.start(`{"message": "my pin is 735199"}`).status("waiting")
	w.say("hm").status("succeeded").asked(1)
	for _, m := range w.models.sent[0].Messages {
		if strings.Contains(m.Text, "735199") {
			t.Errorf("the model is sent %q", m.Text)
		}
	}
}
