package http

import (
	"strings"
	"testing"
)

// An argument is said to be seen where the url or its query may hold it, and nowhere else.
func TestShows(t *testing.T) {
	k := newKind(t)
	for declaration, want := range map[string]string{
		`{method: GET, url: 'http://h/args/{{ args.pin }}'}`:                                      "in its url",
		`{method: GET, url: 'http://h/?p={{ upper(args["pin"]) }}'}`:                              "in its url",
		`{method: GET, url: 'http://h/{{ args?.pin }}'}`:                                          "in its url",
		`{method: GET, url: 'http://h/{{ args[args.id] }}'}`:                                      "in its url",
		`{method: GET, url: 'http://h/', query: {p: '{{ args.pin }}'}}`:                           "in the query of its url",
		`{method: GET, url: 'http://h/', query: {p: ['a', 'x {{ args.id }} {{ args . pin }}']}}`:  "in the query of its url",
		`{method: POST, url: 'http://h/', query: {p: '{{ toJSON(args) }}'}, json: {}}`:            "in the query of its url",
		`{method: POST, url: 'http://h/args', query: {args: 'args {{ args.id }}'}, json: {}}`:     "",
		`{method: POST, url: 'http://h/{{ args.pins }}', json: {pin: '{{ args.pin }}'}}`:          "",
		`{method: POST, url: 'http://h/{{ args["id"] }}', body: 'pin={{ args.pin }}'}`:            "",
		`{method: GET, url: 'http://h/{{ run.id }}', headers: {Authorization: '{{ args.pin }}'}}`: "",
	} {
		m, found := check(k, "    description: A test's tool.\n    effect: read\n    parameters: {pin: {type: string}, pins: {type: string}, id: {type: string}}\n    http: "+declaration)
		if m == nil {
			t.Errorf("%s: %v", declaration, found)
			continue
		}
		spec, _ := m.Tools.Get("t")
		got := spec.Config.(*Config).Shows("pin")
		if place, _, _ := strings.Cut(got, ","); place != want {
			t.Errorf("%s: got %q, want %q", declaration, got, want)
		}
	}
}
