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
