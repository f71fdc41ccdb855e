package machine

import (
	"errors"
	"strings"
	"testing"
)

// fake is an expression or text that is a function.
type fake struct {
	source string
	eval   func(Facts) (Value, error)
}

func (f fake) Source() string               { return f.source }
func (f fake) Reads() []string              { return nil }
func (f fake) Eval(x Facts) (Value, error)  { return f.eval(x) }
func (f fake) Value(x Facts) (Value, error) { return f.eval(x) }
func (f fake) Render(x Facts) (string, error) {
	v, err := f.eval(x)
	return FormatValue(v), err
}

func constant(v Value) fake {
	return fake{eval: func(Facts) (Value, error) { return v, nil }}
}

// read gives the value of a variable.
func read(name string) fake {
	return fake{eval: func(f Facts) (Value, error) { return f.Values[name], nil }}
}

type onlyText struct{ Schema }

func (onlyText) Check(v Value) error {
	if _, ok := v.(string); !ok {
		return &SchemaError{Faults: []SchemaFault{{Want: "text", Got: FormatValue(v)}}}
	}
	return nil
}

func testMachine() *Machine {
	m := &Machine{Name: "test", Start: "a",
		Vars:       Ordered[Variable]{{Name: "x", Value: Variable{Schema: onlyText{}}}, {Name: "y", Value: Variable{Schema: onlyText{}}}},
		Interrupts: Ordered[Interrupt]{{Name: "human", Value: Interrupt{Branch: Branch{To: "b"}}}},
		States: Ordered[*State]{
			{Name: "a", Value: &State{Name: "a", Outcomes: []Outcome{Fail, Success}, Falls: map[Outcome]Outcome{"refund": Success},
				Transitions: map[Outcome][]Branch{
					Success: {{To: "b"}},
					Fail: {
						{When: fake{eval: func(f Facts) (Value, error) { return f.Last.Error.Kind == "none_found", nil }}, To: "a",
							Set: Ordered[Tree]{{Name: "x", Value: constant(nil)}, {Name: "y", Value: read("x")}}, Say: read("x")},
						{To: "b", Set: Ordered[Tree]{{Name: "x", Value: constant("new")}, {Name: "y", Value: read("x")}}},
					},
				}}},
			{Name: "b", Value: &State{Name: "b"}},
		}}
	m.Seal()
	return m
}

func TestNextTakesTheFirstBranchThatHolds(t *testing.T) {
	facts := Facts{Values: Values{"x": "old"}}
	mv, err := testMachine().Next("a", Fail, facts)
	if err != nil {
		t.Fatal(err)
	}
	if mv.To != "b" || mv.Branch != 1 || mv.Event() != "fail#1" {
		t.Errorf("%+v", mv)
	}
	if len(mv.Set) != 2 || mv.Set[1].Value != "new" {
		t.Errorf("each line of set must see the ones before: %+v", mv.Set)
	}
	facts.Last.Error.Kind = "none_found"
	mv, err = testMachine().Next("a", Fail, facts)
	if err != nil {
		t.Fatal(err)
	}
	if mv.To != "a" || mv.Branch != 0 || mv.Say != "old" {
		t.Errorf("say must see the values before set: %+v", mv)
	}
	if mv.Set[0].Value != nil || mv.Set[1].Value != nil {
		t.Errorf("null must unset: %+v", mv.Set)
	}
	if facts.Values["x"] != "old" {
		t.Error("Next changed the facts that it was given")
	}
}

func TestNextFollowsFalls(t *testing.T) {
	m := testMachine()
	cases := []struct {
		outcome  Outcome
		facts    Facts
		event    string
		noRoute  bool
		sameName Outcome
	}{
		{outcome: Success, event: "success#0"},
		{outcome: "refund", event: "success#0"},
		{outcome: Limit, event: "fail#1"},
		{outcome: InterruptOutcome("human"), event: "interrupt.human#0"},
		{outcome: Error, noRoute: true},
		{outcome: Timeout, noRoute: true},
		{outcome: "Success", noRoute: true},
		{outcome: "", noRoute: true},
	}
	for _, c := range cases {
		mv, err := m.Next("a", c.outcome, c.facts)
		var none *NoRouteError
		if c.noRoute {
			if !errors.As(err, &none) || none.State != "a" || none.Outcome != c.outcome {
				t.Errorf("%q: got %v, want no route", c.outcome, err)
			}
			continue
		}
		if err != nil || mv.Event() != c.event {
			t.Errorf("%q: got %s (%v), want %s", c.outcome, mv.Event(), err, c.event)
		}
	}
	if _, err := m.Next("nowhere", Success, Facts{}); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an unknown state gave %v", err)
	}
}

func TestNextChecksWhatItSets(t *testing.T) {
	m := testMachine()
	a, _ := m.State("a")
	a.Transitions[Success] = []Branch{{To: "b", Set: Ordered[Tree]{{Name: "x", Value: constant(int64(5))}}}}
	_, err := m.Next("a", Success, Facts{})
	var wrong *AssignError
	if !errors.As(err, &wrong) || wrong.Name != "x" {
		t.Fatalf("got %v, want an error that names x", err)
	}
	a.Transitions[Success] = []Branch{{To: "b", Set: Ordered[Tree]{{Name: "z", Value: constant("v")}}}}
	if _, err = m.Next("a", Success, Facts{}); !errors.As(err, &wrong) || wrong.Name != "z" {
		t.Fatalf("got %v, want an error that names z", err)
	}
	broken := errors.New("broken")
	a.Transitions[Success] = []Branch{{To: "b", When: fake{eval: func(Facts) (Value, error) { return nil, broken }}}}
	if _, err = m.Next("a", Success, Facts{}); !errors.Is(err, broken) {
		t.Fatalf("got %v, want the guard's error", err)
	}
}
