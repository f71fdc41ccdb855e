package flows

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"flowctl/flows/machine"
)

// examplesFlow compiles the flow of testdata that has examples.
func examplesFlow(t *testing.T) *machine.Machine {
	t.Helper()
	source, err := os.ReadFile("testdata/ok/examples.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, err := Compile(source, "testdata/ok", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestExamples(t *testing.T) {
	m := examplesFlow(t)
	help := state(t, m, "help")
	same(t, "number of examples", len(help.Examples), 2)
	same(t, "cache", []bool{help.Cache, state(t, m, "make").Cache}, []bool{true, false})
	facts := machine.Facts{Values: machine.Values{"order_id": "A7", "shop": "DHL"}}
	value := func(tree machine.Tree) machine.Value {
		t.Helper()
		v, err := tree.Value(facts)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	first, second := help.Examples[0], help.Examples[1]
	same(t, "first", []any{first.User.Source(), len(first.Calls), value(first.Assistant)}, []any{"Hello", 0, "Good day. How can I help you?"})
	same(t, "user", value(second.User), machine.Value("Where is A7?"))
	same(t, "assistant", value(second.Assistant), machine.Value("It has been shipped by DHL."))
	var tools []string
	for _, call := range second.Calls {
		tools = append(tools, call.Tool)
	}
	same(t, "tools in written order", tools, []string{"lookup", "add", "lookup"})
	same(t, "argument", value(second.Calls[0].Args[0].Value), machine.Value("A7"))
	same(t, "result", value(second.Calls[0].Result), machine.Value([]machine.Value{
		machine.Values{"id": "A7", "status": "shipped", "cents": int64(1250), "tags": []machine.Value{"a", nil}}}))
	same(t, "null result", value(second.Calls[2].Result), nil)
	same(t, "answer object", value(state(t, m, "make").Examples[0].Assistant), machine.Value(machine.Values{
		"answer": machine.Values{"steps": []machine.Value{machine.Values{"id": "look", "tool": "lookup"}}}}))
}

// TestExamplesAreShown: what is named in any part of an example is read by its state and shown to the model, and to no other.
func TestExamplesAreShown(t *testing.T) {
	for _, test := range []struct{ example, shown string }{
		{`{user: "{{ note }}", assistant: x}`, "note"},
		{`{user: x, assistant: "{{ note }}"}`, "note"},
		{`{user: x, assistant: {a: [1, "{{ note }}"]}}`, "note"},
		{`{user: x, calls: [{tool: add, args: {expression: "{{ note }}"}, result: 1}], assistant: x}`, "note"},
		{`{user: x, calls: [{tool: add, args: {expression: "1"}, result: {sum: "{{ note }}"}}], assistant: x}`, "note"},
		{`{user: x, assistant: note}`, ""},
	} {
		source := exampleHead + `vars: {note: {type: string}}
models: {default: {provider: openai}}
tools: {add: {builtin: {name: calculator}}}
start: work
states:
  work: {handler: agent, tools: [add], examples: [` + test.example + `], with: {goal: Add}, transitions: {success: other, fail: done}}
  other: {handler: agent, with: {goal: Add}, transitions: {success: done, fail: done}}
  done: {handler: end, with: {output: "{{ note }}"}}
`
		m, err := Compile([]byte(source), "", testCatalog())
		if err != nil {
			t.Errorf("%s: %v", test.example, err)
			continue
		}
		work, other := state(t, m, "work"), state(t, m, "other")
		same(t, test.example+" shows", strings.Join(work.Shows, " "), test.shown)
		same(t, test.example+" reads", strings.Join(work.Reads, " "), test.shown)
		same(t, test.example+" shows elsewhere", len(other.Shows)+len(other.Reads), 0)
	}
}

// TestModelScope: a provider is asked once about each model that is right by itself, with what it may know.
func TestModelScope(t *testing.T) {
	var asked []ModelScope
	cat := testCatalog()
	kind := cat.ModelKinds["openai"]
	kind.Check = func(config any, s ModelScope) []machine.ConfigProblem {
		asked = append(asked, s)
		if s.Name != "b" {
			return nil
		}
		return []machine.ConfigProblem{
			{Path: "extra.one", Message: "deep", Suggestion: "two"}, {Path: "timeout", Rule: ruleNoFile, Message: "above"},
			{Path: "base_url", Rule: ruleNoPrices, Message: "unwise"}, {Path: "model", Rule: "unheard-of", Message: "new"}}
	}
	cat.ModelKinds["openai"] = kind
	_, found := Check([]byte(`version: 1
name: scopes
limits: {cost: 2.5}
models:
  a: {provider: openai, fallback: [c]}
  b:
    provider: openai
    extra: {one: 1}
    base_url: x
    model: y
  c: {provider: openai}
  d: {provider: openai, temperature: hot}
  e: {provider: script, file: x}
start: hello
states:
  hello: {handler: agent, model: a, with: {goal: Work}, transitions: {else: done}}
  done: {handler: end, model: b}
`), Place{Dir: "testdata"}, cat)
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	scope := func(name string, used bool) ModelScope {
		return ModelScope{Name: name, Models: []string{"a", "b", "c", "d", "e"}, Dir: dir, Used: used, CostLimit: 2.5}
	}
	same(t, "scopes", asked, []ModelScope{scope("a", true), scope("b", false), scope("c", true)})
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	same(t, "findings", got, []string{
		"flow.yaml:7:5: above [missing-file]",
		"flow.yaml:8:18: deep; did you mean two? [with-invalid]",
		"flow.yaml:9:15: warning: unwise [no-prices]",
		"flow.yaml:10:12: new [unheard-of]",
		"flow.yaml:12:38: temperature takes a number, not the text 'hot' [wrong-type]",
	})
	same(t, "path", found[1].Path, "models.b.extra.one")
}

// TestModelKindsWithoutHooks: a provider that has nothing to check and no fallbacks needs neither function.
func TestModelKindsWithoutHooks(t *testing.T) {
	cat := testCatalog()
	cat.ModelKinds["openai"] = ModelKind{Config: cat.ModelKinds["openai"].Config}
	source := "limits: {cost: 5}\n" + modelsFlow("{default: {provider: openai, fallback: default}}")
	if m, found := Check([]byte(source), Place{}, cat); m == nil || len(found) > 0 {
		t.Errorf("findings %v, want none", found)
	}
}

// TestFallbackCircles: each circle is told at the fallback that closes it, and what is no circle is none.
func TestFallbackCircles(t *testing.T) {
	for _, test := range []struct{ name, edges, want string }{
		{"a chain", "a:b b:c c:", ""},
		{"two ways to one", "a:b,c b:d c:d d:", ""},
		{"a pair", "a:b b:a", "models.b.fallback: (a → b → a)"},
		{"itself", "a:b b:b", "models.b.fallback: itself"},
		{"from outside", "a:b b:c c:b", "models.c.fallback: (b → c → b)"},
		{"a long one", "a:b b:c c:d d:a", "models.d.fallback: (a → b → c → d → a)"},
		{"two that share a model", "a:b,c b:a c:a", "models.b.fallback: (a → b → a) models.c.fallback: (a → c → a)"},
		{"two apart", "a:b b:a c:d d:c", "models.b.fallback: (a → b → a) models.d.fallback: (c → d → c)"},
		{"in a list", "a:b b:c,a c:", "models.b.fallback[1]: (a → b → a)"},
	} {
		var models []string
		for _, one := range strings.Fields(test.edges) {
			name, to, _ := strings.Cut(one, ":")
			decl := name + ": {provider: openai"
			switch {
			case strings.Contains(to, ","):
				decl += ", fallback: [" + to + "]"
			case to != "":
				decl += ", fallback: " + to
			}
			models = append(models, decl+"}")
		}
		source := exampleHead + "models: {" + strings.Join(models, ", ") + "}\nstart: done\nstates:\n  done: {handler: end}\n"
		_, found := Check([]byte(source), Place{}, testCatalog())
		slices.SortFunc(found, func(a, b Finding) int { return strings.Compare(a.Path, b.Path) })
		var got []string
		for _, f := range found {
			what := "itself"
			if i := strings.Index(f.Message, "("); i >= 0 {
				what = f.Message[i : strings.Index(f.Message, ")")+1]
			}
			if f.Rule != ruleFallbackCycle {
				what = f.String()
			}
			got = append(got, f.Path+": "+what)
		}
		same(t, test.name, strings.Join(got, " "), test.want)
	}
}

// TestFinishIsReserved: no tool takes the name by which a model answers, whatever its kind and even if no model is declared.
func TestFinishIsReserved(t *testing.T) {
	for _, declared := range []string{"finish: {builtin: {name: calculator}}", "finish: {description: x}", "finish: 5"} {
		_, found := Check([]byte(exampleHead+"tools: {"+declared+"}\n"+exampleTail), Place{}, testCatalog())
		if !slices.ContainsFunc(found, func(f Finding) bool { return f.Rule == ruleReservedName && f.Path == "tools.finish" }) {
			t.Errorf("%s gives %v, want it to be reserved", declared, found)
		}
	}
	if _, found := Check([]byte(exampleHead+"tools: {finish_it: {builtin: {name: calculator}}}\n"+exampleTail), Place{}, testCatalog()); hasErrors(found) {
		t.Errorf("finish_it gives %v", found)
	}
}
