package http

import (
	"fmt"
	"strings"
	"testing"

	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

func TestLoad(t *testing.T) {
	k := newKind(t)
	for declaration, want := range map[string]machine.Effect{
		"{method: GET, url: 'https://shop.example'}":                                                      machine.EffectRead,
		"{method: HEAD, url: 'HTTPS://shop.example:8443/a?b={{ args.id }}'}":                              machine.EffectRead,
		"{method: GET, url: 'http://[::1]:80/{{ args.id }}', headers: {X: '{{ env(\"A\") }}'}}":           machine.EffectRead,
		"{method: GET, url: 'http://bücher.example/{{ args.id }}/?a=1&b={{ args.id }}&c=x{{ args.id }}'}": machine.EffectRead,
	} {
		m, found := check(k, "    description: A test's tool.\n    parameters: {id: {type: string}}\n    http: "+declaration)
		if m == nil {
			t.Errorf("%s: %v", declaration, found)
			continue
		}
		spec, _ := m.Tools.Get("t")
		if spec.Effect != want {
			t.Errorf("%s has the effect %s, want %s", declaration, spec.Effect, want)
		}
		want := `{"additionalProperties":false,"properties":{"body":{},"headers":{"type":"object"},"status":{"type":"integer"}},"required":["status","headers","body"],"type":"object"}`
		if got := string(spec.Result.JSON()); got != want {
			t.Errorf("the result is %s", got)
		}
	}
	if _, err := schema.Compile([]byte(result)); err != nil {
		t.Error(err)
	}
}

// Each mistake is one finding with its place.
func TestLoadErrors(t *testing.T) {
	k := newKind(t)
	get := func(rest string) string { return "read\n    http:\n      method: GET\n" + rest }
	url := func(url string) string { return get("      url: '" + url + "'") }
	post := func(rest string) string { return "write\n    http:\n      method: POST\n      url: http://h/\n" + rest }
	tests := []struct{ name, declaration, want string }{
		// The url starts in line 10.
		{"all of it", url("{{ args.id }}"), "10:12 scheme and host must be fixed text, as in https://"},
		{"scheme", url("{{ args.id }}://h/"), "10:12 scheme and host must be fixed text, as in https://"},
		{"part of the scheme", url("http{{ args.id }}://h/"), "10:12 the url must start with https:// or http:// as fixed text"},
		{"host", url("http://{{ args.id }}/x"), "10:12 scheme and host must be fixed text: put a / between"},
		{"end of the host", url("http://h{{ args.id }}/x"), "10:12 scheme and host must be fixed text: put a / between"},
		{"userinfo by value", url("http://h.example{{ args.id }}"), "10:12 scheme and host must be fixed text: put a / between"},
		{"port", url("http://h:{{ args.id }}/x"), "10:12 scheme and host must be fixed text: put a / between"},
		{"other scheme", url("ftp://h/x"), "10:12 the url must start with https:// or http://"},
		{"file", url("file:///etc/passwd"), "10:12 the url must start with https:// or http://"},
		{"no scheme", url("shop.example/x"), "10:12 the url must start with https:// or http://"},
		{"no host", url("http:///x"), "10:12 the url has no host"},
		{"no host but a port", url("http://:80/x"), "10:12 the url has no host"},
		{"password", url("http://me:secret@h/x"), "10:12 a name or password does not stand in the url"},
		{"odd port", url("http://h:99999/x"), "10:12 the url has the port 99999; ports go from 1 to 65535"},
		{"odd host", url("http://h^x/x"), `10:12 the url cannot be read: invalid character "^" in host name`},
		{"space", url("http://h/a b"), "10:12 the url cannot hold a space (write %20) or a #"},
		{"fragment", url("http://h/a#{{ args.id }}"), "10:12 the url cannot hold a space (write %20) or a #"},
		{"half an escape", url("http://h/%2{{ args.id }}"), `10:12 the url cannot be read: invalid URL escape "%2g"`},
		{"name of a parameter", url("http://h/?{{ args.id }}=1"), "10:12 an expression in the query of the url must stand behind name="},
		{"another name", url("http://h/?a=1&b{{ args.id }}=1"), "10:12 an expression in the query of the url must stand behind name="},
		{"name behind a value", url("http://h/?a={{ args.id }}&{{ args.id }}"), "10:12 an expression in the query of the url must stand behind name="},
		{"environment", url("http://h/{{ env(\"KEY\") }}"), "10:25 env"},
		{"unknown argument", url("http://h/{{ args.idd }}"), "10:30 args has no property idd; it has id"},
		{"environment in the query", get("      url: http://h/\n      query: {k: '{{ env(\"KEY\") }}'}"), "11:22 env"},
		{"object in the query", get("      url: http://h/\n      query:\n        ok: [1, x]\n        k: {a: 1}"), "13:12 the parameter k of the query takes a text, a number, true or false, or a list of them"},
		{"body of a GET", get("      url: http://h/\n      json: {a: 1}"), "9:15 a GET has no body; put what it asks for into query"},
		{"no url", "read\n    http: {method: GET}", "8:11 http needs url (http or https address"},
		{"unknown method", "read\n    http: {method: TRACE, url: http://h/}", "8:20 method cannot be 'TRACE'"},
		{"effect of a POST", "\n    http: {method: POST, url: http://h/}", "8:20 POST may change something, so t needs effect: write (or idempotent"},
		{"effect of a DELETE", "read\n    http: {method: DELETE, url: http://h/}", "8:20 DELETE changes something, so the tool's effect cannot be read"},
		// What stands behind the url of a POST starts in line 11.
		{"two bodies", post("      json: {a: 1}\n      body: a"), "12:13 json and body are two ways to give the one body"},
		{"environment in a body", post("      json: {a: '{{ env(\"KEY\") }}'}"), "11:21 env"},
		{"host header", post("      headers: {host: evil}"), "11:23 host cannot be set: the host is that of the url"},
		{"length", post("      headers: {Content-Length: '1'}"), "11:33 Content-Length cannot be set: it follows from the body"},
		{"key", post("      headers: {IDEMPOTENCY-KEY: a}"), "11:34 IDEMPOTENCY-KEY cannot be set: flowctl sends the call's own key"},
		{"encoding", post("      headers: {Accept-Encoding: br}"), "11:34 Accept-Encoding cannot be set: flowctl asks for what it can read"},
		{"hop by hop", post("      headers: {transfer-encoding: chunked}"), "11:36 transfer-encoding cannot be set: it belongs to the connection"},
		{"proxy", post("      headers: {Proxy-Authorization: x}"), "11:38 Proxy-Authorization cannot be set: it belongs to the connection"},
		{"twice", post("      headers: {X-A: a, x-a: b}"), "11:30 x-a stands here twice; upper and lower case are one in headers"},
		{"name of a header", post("      headers: {'X A': a}"), `11:24 "X A" is no name of a header`},
		{"line break", post("      headers: {X-A: \"a\\nX-Evil: 1{{ args.id }}\"}"), "11:22 the value of X-A holds a line break"},
		{"number as a header", post("      headers: {X-A: 1}"), "11:22 X-A takes text, not the number 1; write '1'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			effect := "    effect: "
			if strings.HasPrefix(test.declaration, "\n") {
				effect = "    "
				test.declaration = "timeout: 5s" + test.declaration
			}
			m, found := check(k, "    description: A test's tool.\n    parameters: {id: {type: string}}\n"+effect+test.declaration)
			var got []string
			for _, f := range found {
				if f.Severity == flows.SeverityError {
					text := fmt.Sprintf("%d:%d %s", f.Line, f.Col, f.Message)
					if f.Fix != "" {
						text += "; write " + f.Fix
					}
					got = append(got, text)
				}
			}
			if m != nil || len(got) != 1 || !strings.HasPrefix(got[0], test.want) {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}
