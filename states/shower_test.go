package states

import (
	"strings"
	"testing"

	"flowctl/engine/tool/builtin"
	"flowctl/engine/tool/http"
	"flowctl/flows"
)

const showing = `
version: 1
name: vault
vars:
  pin: {type: string, secret: true}
  door: {type: string, default: front}
memory: {namespace: house}
tools:
  keep: {builtin: {name: remember}}
  find: {builtin: {name: recall}}
  page: {builtin: {name: http_get, hosts: [h.example]}}
  open: {description: Open, effect: write, parameters: {pin: {type: string}, door: {type: string}}, http: {method: POST, HTTP}}
start: ask
states:
  ask: {handler: ask, with: {question: Your pin, into: pin}, transitions: {answered: use}}
  use: {handler: call, with: {tool: TOOL, args: ARGS}, transitions: {success: done, fail: done}}
  done: {handler: end, with: {output: "{{ door }}"}}
`

// A secret in an argument that the tool would keep or show is an error at load; one that only reaches the server is none.
func TestSecretArgumentsThatWouldBeShown(t *testing.T) {
	cat := catalog()
	cat.ToolKinds["builtin"], cat.ToolKinds["http"] = builtin.New().Spec(), http.New().Spec()
	const keyless = "url: 'http://h.example/{{ args.door }}', json: {pin: '{{ args.pin }}'}"
	for _, test := range []struct{ name, tool, http, args, path, words string }{
		{"remembered", "keep", keyless, "{key: pin, value: {is: ['{{ pin }}']}}", "args.value", "pin is secret, and keep would show it in the long-term memory"},
		{"as a key", "keep", keyless, "{key: 'p{{ pin }}', value: 1}", "args.key", "in the long-term memory"},
		{"recalled", "find", keyless, "{query: '{{ pin }}'}", "args.query", "find would show it in the long-term memory"},
		{"a page", "page", keyless, "{url: 'http://h.example/{{ pin }}'}", "args.url", "page would show it in a url"},
		{"in the url", "open", "url: 'http://h.example/{{ args.pin }}'", "{door: '{{ door }}', pin: '{{ pin }}'}", "args.pin", "open would show it in its url, which servers and proxies write down; send it in headers or json"},
		{"in the query", "open", "url: 'http://h.example/', query: {a: '{{ args.pin }}'}", "{door: '{{ door }}', pin: '{{ pin }}'}", "args.pin", "in the query of its url"},
		{"in the body", "open", keyless, "{door: '{{ door }}', pin: '{{ pin }}'}", "", ""},
		{"no secret", "open", keyless, "{door: '{{ door }}', pin: x}", "", ""},
		{"no secret, remembered", "keep", keyless, "{key: door, value: '{{ door }}'}", "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			flow := strings.NewReplacer("HTTP", test.http, "TOOL", test.tool, "ARGS", test.args).Replace(showing)
			_, found := flows.Check([]byte(flow), flows.Place{}, cat)
			var got []flows.Finding
			for _, f := range found {
				if f.Severity == flows.SeverityError {
					got = append(got, f)
				}
			}
			switch {
			case test.path == "" && len(got) == 0:
			case test.path == "" || len(got) != 1 || got[0].Rule != "secret-shown" || !strings.HasSuffix(got[0].Path, test.path) ||
				!strings.Contains(got[0].Message, test.words):
				t.Errorf("got %v", got)
			}
		})
	}
}
