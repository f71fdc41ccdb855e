package flows

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"flowctl/flows/machine"
)

// support compiles the large flow of testdata.
func support(t *testing.T) *machine.Machine {
	t.Helper()
	source, err := os.ReadFile("testdata/ok/support.yaml")
	if err != nil {
		t.Fatal(err)
	}
	m, found := Check(source, Place{File: "support.yaml", Dir: "testdata/ok"}, testCatalog())
	if m == nil || len(found) > 0 {
		t.Fatalf("Check = %v, %v; want a machine without findings", m, found)
	}
	return m
}

func state(t *testing.T, m *machine.Machine, name string) *machine.State {
	t.Helper()
	s, ok := m.State(name)
	if !ok {
		t.Fatalf("the machine has no state %s", name)
	}
	return s
}

func same[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func TestSupportHead(t *testing.T) {
	m := support(t)
	same(t, "name", m.Name, "support")
	same(t, "language", m.Language, "en")
	same(t, "start", m.Start, "understand")
	same(t, "message", m.Message, "message")
	same(t, "limits", m.Limits, machine.Limits{Steps: 40, ModelCalls: 30, ToolCalls: 40, Tokens: 60000,
		Time: machine.Duration(15 * time.Minute)})
	same(t, "instructions", m.Instructions.Source(), "You work for a small shop. Be brief and exact.")
	same(t, "vars", m.Vars.Names(), []string{"wish", "order_id", "todo", "remark", "answer"})
	remark, _ := m.Vars.Get("remark")
	same(t, "remark", []any{remark.Input, remark.HasDefault, remark.Default}, []any{false, true, ""})
	message, _ := m.Inputs.Get("message")
	same(t, "message", []any{message.Input, message.HasDefault, message.Default}, []any{true, false, nil})
	if !strings.HasPrefix(m.Hash, "sha256:") || len(m.Hash) != len("sha256:")+64 {
		t.Errorf("hash = %q, want sha256: and 64 digits", m.Hash)
	}
	source, err := os.ReadFile("testdata/ok/support.yaml")
	if err != nil || string(m.Source) != string(source) {
		t.Errorf("the machine does not hold the file as it was read (%v)", err)
	}
}

func TestSupportDeclarations(t *testing.T) {
	m := support(t)
	dir, err := filepath.Abs("testdata/ok")
	if err != nil {
		t.Fatal(err)
	}
	same(t, "dir", m.Dir, dir)
	shop, _ := m.Databases.Get("shop")
	same(t, "database", []string{shop.Path, shop.Init}, []string{filepath.Join(dir, "shop.db"), filepath.Join(dir, "shop.sql")})
	model, _ := m.Models.Get("default")
	openai := model.Config.(*openaiConfig)
	same(t, "provider", model.Provider, "openai")
	same(t, "temperature", *openai.Temperature, 0.2)
	same(t, "timeout", openai.Timeout, machine.Duration(time.Minute))

	look, _ := m.Tools.Get("lookup_order")
	same(t, "effect", look.Effect, machine.EffectRead)
	same(t, "timeout", look.Timeout, 5*time.Second)
	same(t, "in doubt", look.InDoubt, machine.InDoubtAsk)
	same(t, "kind", look.Kind, "sql")
	same(t, "rows", look.Config.(*sqlConfig).Rows, "one")
	same(t, "required", look.Parameters.Info().Required, []string{"order_id"})
	if look.Parameters.Check(machine.Values{"order_id": "A1001", "more": "x"}) == nil {
		t.Error("the short form of parameters lets an unknown argument pass")
	}
	refund, _ := m.Tools.Get("refund_order")
	same(t, "approval", refund.Approval, machine.Approval{})
	if refund.Result == nil || look.Result != nil {
		t.Error("the result schema of the tool's kind is not taken over")
	}
}

func TestSupportStates(t *testing.T) {
	m := support(t)
	understand := state(t, m, "understand")
	same(t, "outcomes", understand.Outcomes, []machine.Outcome{"fail", "question", "success"})
	same(t, "writes", understand.Writes, []string{"wish"})
	same(t, "reads", understand.Reads, []string{"message"})
	same(t, "shows", understand.Shows, []string{"message"})
	same(t, "intents", understand.With.(*intentConfig).Intents.Names(), []string{"refund", "exchange", "question"})
	same(t, "line of fail", understand.Transitions["fail"][0].To, "colleague") // from defaults
	same(t, "line of question", understand.Transitions["question"][0].To, "reply")

	details := state(t, m, "details")
	same(t, "view", details.View, machine.View{Vars: []string{"message", "wish"},
		Messages: machine.MessageSelect{Mode: machine.MessagesAll, Last: 6}})
	same(t, "limits", details.Limits, machine.StateLimits{Visits: machine.DefaultVisits, Turns: 4})
	same(t, "field", details.With.(*collectConfig).Fields[0].Name, machine.VarRef("order_id"))
	same(t, "writes", details.Writes, []string{"order_id"})
	if _, ok := details.Transitions["fail"]; ok {
		t.Error("a default line stands at a state that does not have its outcome")
	}

	propose := state(t, m, "propose")
	plan := propose.With.(*planConfig)
	same(t, "steps", len(plan.Steps), 3)
	same(t, "when", plan.Steps[1].When.Source(), `wish == "refund"`)
	args, err := plan.Steps[0].Args.Value(machine.Facts{Values: machine.Values{"order_id": "A1001"}})
	same(t, "args", args, machine.Value(machine.Values{"order_id": "A1001"}))
	same(t, "err", err, nil)
	same(t, "reads", propose.Reads, []string{"order_id", "remark", "wish"})
	same(t, "writes", propose.Writes, []string{"remark", "todo"})

	carry := state(t, m, "carry_out")
	same(t, "limits", carry.Limits, machine.StateLimits{Visits: 3, Turns: 8, Time: machine.Duration(2 * time.Minute)})
	same(t, "tools", carry.Tools, []string{"lookup_order", "refund_order"})
	same(t, "attempts", carry.View.Attempts, true)
	same(t, "model", []any{carry.Model, carry.ModelName}, []any{machine.ModelDeclared, "default"})
	same(t, "branches", len(carry.Transitions["fail"]), 2)
	if first := carry.Transitions["fail"][0]; first.When == nil || first.Set[0].Name != "order_id" || first.Say == nil || first.Pos.Line == 0 {
		t.Errorf("the first branch of fail lacks something: %+v", first)
	}
	same(t, "end", state(t, m, "done").End(), true)
}

// TestSupportRuns follows the flow through Next, with the compiled guards and texts.
func TestSupportRuns(t *testing.T) {
	m := support(t)
	tests := []struct {
		state string
		o     machine.Outcome
		facts machine.Facts
		to    string
		taken machine.Outcome
		say   string
	}{
		{state: "understand", o: "question", to: "reply", taken: "question"},
		{state: "understand", o: "success", to: "details", taken: "success"},
		{state: "understand", o: "fail", to: "colleague", taken: "fail"},
		{state: "understand", o: "limit", to: "colleague", taken: "fail"},
		{state: "propose", o: "rejected", to: "details", taken: "rejected"},
		{
			state: "carry_out", o: "fail", to: "details", taken: "fail", say: "I cannot find order A9.",
			facts: machine.Facts{Values: machine.Values{"order_id": "A9"}, Visits: map[string]int64{"details": 1},
				Last: machine.Last{Outcome: "fail", Error: machine.Problem{Kind: "none_found"}}},
		},
		{
			state: "carry_out", o: "fail", to: "colleague", taken: "fail", say: "I could not finish this myself.",
			facts: machine.Facts{Visits: map[string]int64{"details": 3}, Last: machine.Last{Error: machine.Problem{Kind: "none_found"}}},
		},
	}
	for _, test := range tests {
		move, err := m.Next(test.state, test.o, test.facts)
		if err != nil || move.To != test.to || move.Outcome != test.taken || move.Say != test.say {
			t.Errorf("Next(%s, %s) = %+v, %v; want %s by %s saying %q", test.state, test.o, move, err, test.to, test.taken, test.say)
		}
	}
	var none *machine.NoRouteError
	if _, err := m.Next("carry_out", machine.Error, machine.Facts{}); !errors.As(err, &none) {
		t.Errorf("an outage without a line gives %v, want no route", err)
	}
}

const routesFlow = `version: 1
name: routes
inputs: {message: {type: string}}
vars: {wish: {type: string}}
defaults: {transitions: {fail: lost, error: lost, limit: lost, timeout: lost}}
start: ask
states:
  ask:
    handler: intent
    with:
      into: wish
      intents:
        refund: {description: Wants money back}
        swap: {description: Wants another article}
    transitions: {refund: pay, else: other, error: pay}
  pay: {handler: confirm, with: {question: Pay}, transitions: {else: [{when: 'wish == "x"', to: ask}, other], rejected: lost}}
  other: {handler: agent, model: none, with: {goal: Help}, transitions: {success: lost}}
  lost: {handler: end}
`

func TestWhichLineIsTaken(t *testing.T) {
	cat := testCatalog()
	cat.Handlers["agent"] = cat.Handlers["route"]
	source := strings.Replace(routesFlow, "handler: agent, model: none, with: {goal: Help}, transitions: {success: lost}",
		"handler: route, model: none, transitions: {next: lost}", 1)
	m, err := Compile([]byte(source), ".", cat)
	if err != nil {
		t.Fatal(err)
	}
	ask, pay := state(t, m, "ask"), state(t, m, "pay")
	tests := []struct {
		s    *machine.State
		o    machine.Outcome
		want string
	}{
		{ask, "refund", "pay"},    // its own line
		{ask, "success", "other"}, // else
		{ask, "fail", "other"},    // else comes before defaults
		{ask, "error", "pay"},     // its own line before the default
		{ask, "timeout", "lost"},  // never else
		{ask, "limit", "lost"},    // never else
		{pay, "rejected", "lost"}, // its own line before else
		{pay, "confirmed", "ask"}, // the first branch of else
		{pay, "error", "lost"},    // the default
	}
	for _, test := range tests {
		if lines := test.s.Transitions[test.o]; len(lines) == 0 || lines[0].To != test.want {
			t.Errorf("%s with %s leads to %v, want %s", test.s.Name, test.o, lines, test.want)
		}
	}
	same(t, "outcomes", ask.Outcomes, []machine.Outcome{"fail", "refund", "success"})
	same(t, "transitions of an end", len(state(t, m, "lost").Transitions), 0)
}

// TestFalls: an outcome that a handler declares as falling takes the other's line.
func TestFalls(t *testing.T) {
	m, err := Compile([]byte(`version: 1
name: falls
start: pick
states:
  pick: {handler: choose, transitions: {left: done, success: other, fail: done}}
  other: {handler: route, transitions: {next: done}}
  done: {handler: end}
`), ".", fallingCatalog())
	if err != nil {
		t.Fatal(err)
	}
	pick := state(t, m, "pick")
	same(t, "falls", pick.Falls, map[machine.Outcome]machine.Outcome{"right": "success"})
	for o, want := range map[machine.Outcome]string{"left": "done", "right": "other", "success": "other"} {
		if move, err := m.Next("pick", o, machine.Facts{}); err != nil || move.To != want {
			t.Errorf("Next(pick, %s) = %+v, %v; want %s", o, move, err, want)
		}
	}
}

type fallingConfig struct{}

func (fallingConfig) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{
		{Name: "left", Falls: "success"}, {Name: "right", Falls: "success"}, {Name: "success"}, {Name: "fail"}}}
}

func fallingCatalog() Catalog {
	cat := testCatalog()
	cat.Handlers["choose"] = func() machine.HandlerSpec { return machine.HandlerSpec{With: &fallingConfig{}} }
	return cat
}

func TestDefaultsOfLimits(t *testing.T) {
	m, err := Compile([]byte(exampleHead+exampleTail), ".", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "limits", m.Limits, machine.Limits{Steps: 100, ModelCalls: 100, ToolCalls: 200, Time: machine.Duration(time.Hour)})
	hello := state(t, m, "hello")
	same(t, "state limits", hello.Limits, machine.StateLimits{Visits: 25, Turns: 8})
	same(t, "view", hello.View.Messages.Mode, machine.MessagesOwn)
	same(t, "model", []any{hello.Model, hello.ModelName}, []any{machine.ModelNone, ""})
	same(t, "shows", len(hello.Shows), 0)
}

func TestShorthandsAndOrder(t *testing.T) {
	m, err := Compile([]byte(`version: 1
name: shorthand
vars: {size: {type: string}, city: {type: string}, note: {type: string}}
start: pick
states:
  pick:
    handler: ask
    with:
      question: What do you want?
      choices:
        keep: Keep it
        other: {label: Another size, into: size}
    transitions: {keep: fill, other: fill}
  fill:
    handler: collect
    view: {messages: none}
    with: {fields: [city, {name: note, ask: "What about {{ city }}?"}]}
    transitions: {else: set}
  set:
    handler: route
    view: {messages: {states: [pick], last: 2}}
    with: {set: {note: "{{ city }}", city: null}}
    transitions: {next: done}
  done: {handler: end, with: {output: {city: "{{ city }}", size: "{{ size }}", list: [1, "{{ note }}"]}}}
`), ".", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	choices := state(t, m, "pick").With.(*askConfig).Choices
	same(t, "choices", choices.Names(), []string{"keep", "other"})
	same(t, "label", choices[0].Value.Label.Source(), "Keep it")
	same(t, "into", choices[1].Value.Into, machine.VarRef("size"))
	fill := state(t, m, "fill")
	same(t, "ask", fill.With.(*collectConfig).Fields[1].Ask.Source(), "What about {{ city }}?")
	same(t, "none", fill.View.Messages.Mode, machine.MessagesNone)
	set := state(t, m, "set")
	same(t, "order of set", set.With.(*routeConfig).Set.Names(), []string{"note", "city"})
	same(t, "writes", set.Writes, []string{"city", "note"})
	same(t, "reads", set.Reads, []string{"city"})
	same(t, "messages", set.View.Messages, machine.MessageSelect{Mode: machine.MessagesStates, States: []string{"pick"}, Last: 2})
	out, err := state(t, m, "done").With.(*endConfig).Output.Value(machine.Facts{Values: machine.Values{"city": "Bonn", "size": "L"}})
	same(t, "output", out, machine.Value(machine.Values{"city": "Bonn", "size": "L", "list": []machine.Value{int64(1), nil}}))
	same(t, "err", err, nil)
}

func TestInterruptsAndApproval(t *testing.T) {
	m, err := Compile([]byte(`version: 1
name: interrupts
vars: {gone: {type: boolean, default: false}}
tools: {add: {approval: {when: 'args.expression != "1"'}, builtin: {name: calculator}}, sub: {approval: required, builtin: {name: calculator}}}
interrupts: {stop: {keywords: [stop it, 停止], to: done, set: {gone: true}, say: Bye}}
start: hello
states:
  hello: {handler: call, tools: [add, sub], with: {tool: add, args: {expression: "1"}, expect: 'result > 0'}, transitions: {else: done}}
  done: {handler: end, with: {output: "{{ gone }}"}}
`), ".", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	stop, _ := m.Interrupts.Get("stop")
	same(t, "matchers", len(stop.Match), 2)
	move, err := m.Next("hello", machine.InterruptOutcome("stop"), machine.Facts{})
	same(t, "set", move.Set, []machine.Assignment{{Name: "gone", Value: true}})
	same(t, "move", []any{move.To, move.Say, err}, []any{"done", "Bye", nil})
	add, _ := m.Tools.Get("add")
	need, err := add.Approval.When.Eval(machine.Facts{Args: machine.Values{"expression": "2"}})
	same(t, "approval", []any{need, err, add.Approval.Required}, []any{true, nil, false})
	sub, _ := m.Tools.Get("sub")
	same(t, "required", sub.Approval, machine.Approval{Required: true})
	same(t, "description of the kind", sub.Description, "Compute a sum.")
	if !slices.Contains(state(t, m, "hello").Tools, "sub") {
		t.Error("the state lacks its tool")
	}
}

// TestAnchors: x- keys hold anchors, merge keys bring mappings in, and the own key counts.
func TestAnchors(t *testing.T) {
	m, err := Compile([]byte(`version: 1
name: anchors
x-ends: &lines {confirmed: done, rejected: done}
x-scrap: [~, {1: 2}]
vars: {note: &text {type: string}, other: {<<: *text, default: x}}
start: hello
states:
  hello: {handler: confirm, with: {question: One, comment: note}, transitions: &more {<<: *lines, rejected: again}}
  again: {handler: confirm, with: {question: Two, comment: other}, transitions: {<<: [*more, *lines], rejected: hello}}
  done: {handler: end}
`), ".", testCatalog())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "own key", state(t, m, "hello").Transitions["rejected"][0].To, "again")
	same(t, "merged key", state(t, m, "again").Transitions["confirmed"][0].To, "done")
	other, _ := m.Vars.Get("other")
	same(t, "merged schema", []any{other.Default, other.Schema.Info().Types}, []any{"x", []string{"string"}})
}

func TestErrorHasEveryFinding(t *testing.T) {
	_, err := Compile([]byte("version: 1\nname: x\nvars: {spare: {type: strin}}\nstart: helo\nstates: {hello: {handler: end}}\n"), ".", testCatalog())
	var failed *Error
	if !errors.As(err, &failed) || len(failed.Findings) != 2 {
		t.Fatalf("error = %v, want an *Error with two findings", err)
	}
	if text := err.Error(); strings.Count(text, "\n") != 1 || !strings.HasPrefix(text, "flow.yaml:3:22: ") {
		t.Errorf("Error() = %q, want one line per finding", text)
	}
	first := failed.Findings[0]
	same(t, "place", []any{first.File, first.Line, first.Col, first.Path}, []any{"flow.yaml", 3, 22, "vars.spare.type"})
	if !slices.IsSortedFunc(failed.Findings, func(a, b Finding) int { return a.Line - b.Line }) {
		t.Errorf("findings are not sorted: %v", failed.Findings)
	}
}

// TestProblemPaths: what a handler says of its own keys gets the place of the key, or of the nearest one above.
func TestProblemPaths(t *testing.T) {
	cat := testCatalog()
	problems := []machine.ConfigProblem{
		{Path: "steps[1].args", Message: "one"}, {Path: "steps[7]", Message: "two"}, {Message: "three"},
		{Path: "nowhere.at.all", Message: "four"}, {Path: "into", Rule: ruleCannotHold, Message: "five", Suggestion: "six"},
	}
	cat.Handlers["sayer"] = func() machine.HandlerSpec { return machine.HandlerSpec{With: &sayer{problems: problems}} }
	_, found := Check([]byte(`version: 1
name: paths
vars: {todo: {type: object}}
start: hello
states:
  hello:
    handler: sayer
    with:
      into: todo
      steps:
        - args: 1
        - args: 2
    transitions: {success: done}
  done: {handler: end}
`), Place{}, cat)
	want := []string{
		"flow.yaml:9:7: four [with-invalid]", "flow.yaml:9:7: three [with-invalid]", "flow.yaml:9:13: five; did you mean six? [cannot-hold]",
		"flow.yaml:11:9: two [with-invalid]", "flow.yaml:12:17: one [with-invalid]",
	}
	var got []string
	for _, f := range found {
		got = append(got, f.String())
	}
	same(t, "findings", got, want)
}

type sayer struct {
	Into     machine.VarRef `yaml:"into" flow:"write"`
	Steps    []sayerStep    `yaml:"steps"`
	problems []machine.ConfigProblem
}

type sayerStep struct {
	Args machine.Tree `yaml:"args"`
}

func (s *sayer) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Success}}, Problems: s.problems}
}
