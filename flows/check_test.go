package flows

import (
	"strings"
	"testing"

	"flowctl/flows/machine"
)

// strict is a handler that relies on its names being declared, as those of Go users may.
type strict struct {
	Into machine.VarRef `yaml:"into" flow:"write"`
	Text machine.Text   `yaml:"text"`
	Size int64          `yaml:"size"`
}

func (c *strict) Uses(s machine.Scope) machine.Uses {
	v, _ := s.Machine.Vars.Get(string(c.Into))
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Success}}}
	if c.Text == nil || v.Schema.Info().Enum != nil {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Message: "it does not fit"})
	}
	return uses
}

// TestHandlersAreAskedInSpite: a handler whose texts or names are wrong tells its outcomes all the same where that is safe.
func TestHandlersAreAskedInSpite(t *testing.T) {
	cat := testCatalog()
	cat.Handlers["strict"] = func() machine.HandlerSpec { return machine.HandlerSpec{With: &strict{}} }
	for _, test := range []struct{ name, with, want string }{
		{"nothing wrong", `{into: wish, text: x}`, "unknown-outcome"},
		{"a text that cannot be read", `{into: wish, text: "{{ nope }}"}`, "unknown-name unknown-outcome"},
		{"a text without quotes", `{into: wish, text: {{ nope }}}`, "bare-braces unknown-outcome"},
		{"a problem beside a text", `{into: color, text: "{{ }}"}`, "with-invalid expr-syntax unknown-outcome"},
		{"a name with which it panics", `{into: nope, text: x}`, "unknown-variable"},
		{"a value of the wrong kind", `{into: wish, text: x, size: much}`, "wrong-type"},
	} {
		source := exampleHead + `vars: {wish: {type: string}, color: {type: string, enum: [red]}}
start: hello
states:
  hello:
    handler: strict
    with: ` + test.with + `
    transitions: {sucess: done}
  done: {handler: end}
`
		_, found := Check([]byte(source), Place{}, cat)
		var rules []string
		for _, f := range found {
			rules = append(rules, f.Rule)
		}
		if got := strings.Join(rules, " "); got != test.want {
			t.Errorf("%s: got %s, want %s\n%v", test.name, got, test.want, found)
		}
	}
}

// TestStoredRunsSurviveNewChecks: values and texts that are judged only since later versions strand no run.
func TestStoredRunsSurviveNewChecks(t *testing.T) {
	source := exampleHead + `inputs: {message: {type: string}}
vars: {tries: {type: integer, default: 0}}
tools: {add: {builtin: {name: calculator}}}
interrupts: {stop: {keywords: [stop], to: done}, bye: {keywords: [stop], to: done}}
start: hello
states:
  hello: {handler: route, with: {set: {tries: "{{ message }}"}}, transitions: {next: add}}
  add:
    handler: call
    with: {tool: add, args: {expression: "{{ [tries] }}"}}
    transitions: {success: done, fail: {to: done, say: "{tries} #1"}}
  done: {handler: end}
`
	if m, found := Check([]byte(source), Place{}, testCatalog()); m != nil || len(found) != 4 {
		t.Errorf("a new flow has the findings %v, want four with errors", found)
	}
	m, err := CompileStored([]byte(source), "", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range m.States[:2] {
		if len(s.Value.Outcomes) == 0 || len(s.Value.Transitions) == 0 {
			t.Errorf("the stored state %s has outcomes %v and lines %v", s.Name, s.Value.Outcomes, s.Value.Transitions)
		}
	}
}

// TestPictureKeywords: an emoji is a keyword, a mere sign is none.
func TestPictureKeywords(t *testing.T) {
	for keyword, good := range map[string]bool{"👍": true, "好": true, "5": true, "a!": true, "!": false, "?!": false, "+": false, "。": false, "  ": false} {
		source := exampleHead + "interrupts: {stop: {keywords: ['" + keyword + "'], to: done}}\n" + exampleTail
		if _, found := Check([]byte(source), Place{}, testCatalog()); (len(found) == 0) != good {
			t.Errorf("keyword %q: findings %v, want it to be good: %v", keyword, found, good)
		}
	}
}

// TestNothingHeard: the warning stands only where nothing can have been said.
func TestNothingHeard(t *testing.T) {
	for _, test := range []struct {
		name, inputs, from string
		warned             bool
	}{
		{"no input", "{}", "", true},
		{"no text", "{size: {type: integer}}", "", true},
		{"two texts", "{a: {type: string}, b: {type: string}}", "", true},
		{"one of two named", "{a: {type: string}, b: {type: string}}", "from: a, ", false},
		{"one text", "{a: {type: string}}", "", false},
		{"message", "{message: {type: string}, b: {type: string}}", "", false},
	} {
		source := exampleHead + "inputs: " + test.inputs + "\nvars: {name: {}, wish: {}}\n" + hearFlow(test.from)
		_, found := Check([]byte(source), Place{}, testCatalog())
		warned := false
		for _, f := range found {
			warned = warned || f.Rule == ruleNothingHeard
		}
		if warned != test.warned {
			t.Errorf("%s: warned %v, want %v: %v", test.name, warned, test.warned, found)
		}
	}
}
