package flows

import (
	"reflect"
	"strings"
	"testing"

	"flowctl/flows/machine"
)

// textTool is a kind of tool whose config holds texts of every sort.
type textTool struct {
	Address machine.Template                  `yaml:"address" doc:"An address"`
	Labels  machine.Ordered[machine.Template] `yaml:"labels" flow:"free,env" doc:"Labels by name"`
	Inner   textToolInner                     `yaml:"inner" flow:"env" doc:"Settings"`
	Data    machine.Tree                      `yaml:"data" doc:"Any value"`
}

type textToolInner struct {
	Key machine.Text `yaml:"key" flow:"scalar" doc:"A key"`
}

func (c *textTool) Uses(machine.ToolScope) machine.ToolUses {
	return machine.ToolUses{Description: "A test's tool.", Effect: machine.EffectRead}
}

// checkTool checks a flow with one tool of that kind, whose declaration starts in line 6.
func checkTool(t *testing.T, declaration string) (*machine.Machine, []Finding) {
	t.Helper()
	cat := testCatalog()
	cat.ToolKinds["text"] = machine.ToolKind{Doc: "Texts.", Config: func() machine.ToolConfig { return new(textTool) }}
	source := `version: 1
name: shop
vars: {order_id: {type: string}, at: {type: string}}
tools:
  look:
` + declaration + `
start: first
states:
  first: {handler: call, with: {tool: look, into: order_id}, transitions: {success: done, fail: done}}
  done: {handler: end, with: {output: '{{ order_id }}{{ at }}'}}
`
	return Check([]byte(source), Place{}, cat)
}

func TestToolTexts(t *testing.T) {
	m, found := checkTool(t, `    parameters: {id: {type: string}, n: {type: integer}}
    text:
      address: 'http://x/{{ args.id }}/{{ run.id }}'
      labels: {X-Api-Key: 'Bearer {{ env("SHOP_KEY") }}', 'odd name [1]': '{{ args.n + 1 }}'}
      inner: '{{ env("OTHER") }}'
      data: {n: '{{ args.n }}'}`)
	if m == nil {
		t.Fatal(lines(found))
	}
	same(t, "env", m.Env, []string{"OTHER", "SHOP_KEY"})
	spec, _ := m.Tools.Get("look")
	config := spec.Config.(*textTool)
	facts := machine.Facts{
		Args: machine.Values{"id": "A/1", "n": int64(4)}, RunID: "r1",
		Getenv: func(name string) (string, bool) { return "value of " + name, true },
	}
	var parts []string
	for _, part := range config.Address.Parts() {
		if part.Expr == nil {
			parts = append(parts, part.Fixed)
			continue
		}
		v, err := part.Expr.Eval(facts)
		if err != nil {
			t.Error(err)
		}
		parts = append(parts, part.Expr.Source()+" = "+machine.FormatValue(v))
	}
	same(t, "parts", parts, []string{"http://x/", "args.id = A/1", "/", "run.id = r1"})
	same(t, "labels", config.Labels.Names(), []string{"X-Api-Key", "odd name [1]"})
	if got, err := config.Labels[0].Value.Render(facts); err != nil || got != "Bearer value of SHOP_KEY" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := config.Inner.Key.Render(facts); err != nil || got != "value of OTHER" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := config.Data.Value(facts); err != nil || !reflect.DeepEqual(got, machine.Values{"n": int64(4)}) {
		t.Errorf("got %v, %v", got, err)
	}
	if s := support(t); len(s.Env) > 0 {
		t.Errorf("a flow that reads no environment has %v", s.Env)
	}
}

// The texts of a tool see what the tool gets when it is called, and nothing else.
func TestToolTextFindings(t *testing.T) {
	const parameters = "    parameters: {id: {type: string, enum: [A1, A2]}, at: {type: string}}\n    text:\n"
	tests := []struct{ name, declaration, want string }{
		{"an unknown argument", parameters + "      address: 'http://x/{{ args.idd }}'",
			"8:34 unknown-name: args has no property idd; it has at, id; did you mean id?"},
		{"a word that never comes", parameters + "      data: [1, '{{ args.id == \"B\" }}']",
			`8:32 enum-word: args.id is never "B"; it is one of A1, A2`},
		{"a variable", parameters + "      address: '{{ order_id }}'",
			"8:20 unknown-name: a tool's texts see its arguments and run only, not order_id; make it a parameter and write args.NAME"},
		{"a variable with the name of a parameter", parameters + "      address: '{{ at }}'",
			"8:20 unknown-name: arguments are named with args here, not at; did you mean args.at?"},
		{"last", parameters + "      address: '{{ last.outcome }}'",
			"8:20 unknown-name: a tool's texts see its arguments and run only, not last; make it a parameter and write args.NAME"},
		{"visits", parameters + "      address: '{{ visits(\"first\") }}'",
			"8:20 unknown-name: a tool's texts see its arguments and run only, not visits; make it a parameter and write args.NAME"},
		{"env in an address", parameters + "      address: 'http://x/{{ env(\"KEY\") }}'",
			"8:29 env-not-allowed: env"},
		{"env in data", parameters + "      data: {key: '{{ env(\"KEY\") }}'}",
			"8:23 env-not-allowed: env"},
		{"env without a literal", parameters + "      labels: {A: '{{ env(args.id) }}'}",
			`8:23 expr-type: env takes the name of one environment variable in quotes, such as env("SHOP_KEY")`},
		{"args without parameters", "    text:\n      address: 'http://x/{{ args.id }}'",
			"7:34 unknown-name: args has no property id; it has none"},
		{"broken parameters", "    parameters: {id: {type: strng}}\n    text:\n      address: 'http://x/{{ args.anything }}'",
			"6:29 bad-schema"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, found := checkTool(t, test.declaration)
			var errors []Finding
			for _, f := range found {
				if f.Severity == SeverityError {
					errors = append(errors, f)
				}
			}
			if got := lines(errors); !strings.HasPrefix(got, test.want) || len(errors) != 1 {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	// The approval is the flow's own, and sees variables too.
	if m, found := checkTool(t, "    parameters: {id: {type: string}}\n    approval: {when: 'args.id == order_id'}\n    text: {address: http://x}"); m == nil {
		t.Error(lines(found))
	}
}

// Names that others chose are not held to the rule for names, in the JSON Schema for editors neither.
func TestFreeNames(t *testing.T) {
	s := (&shapes{byType: map[reflect.Type]*shape{}}).of(typeOf[textTool](), "textTool")
	labels, _ := findField(s.fields, "labels")
	if got := mapSchema(labels.shape, labels.flags); got["propertyNames"] != nil {
		t.Errorf("names are restricted: %v", got)
	}
	if got := mapSchema(labels.shape, flags{}); got["propertyNames"] == nil {
		t.Error("without the word they are not restricted")
	}
}
