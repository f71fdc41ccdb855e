package flows_test

import (
	"fmt"

	"flowctl/flows"
	"flowctl/flows/machine"
)

// greet is a handler's config: its keys below `with`, and what they mean.
type greet struct {
	Whom machine.VarRef `yaml:"whom" flow:"required" doc:"Who is greeted"`
}

func (greet) Uses(machine.Scope) machine.Uses {
	return machine.Uses{Outcomes: []machine.OutcomeUse{{Name: machine.Success}}}
}

type stop struct{}

func (stop) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

func ExampleCheck() {
	catalog := flows.Catalog{Handlers: map[string]func() machine.HandlerSpec{
		"greet": func() machine.HandlerSpec { return machine.HandlerSpec{Doc: "Greet somebody.", With: &greet{}} },
		"end":   func() machine.HandlerSpec { return machine.HandlerSpec{Doc: "End the run.", With: &stop{}} },
	}}
	source := `version: 1
name: hello
inputs: {name: {type: string}}
start: hello
states:
  hello: {handler: greet, with: {whom: nmae}, transitions: {sucess: done}}
  done: {handler: end}
`
	_, findings := flows.Check([]byte(source), flows.Place{File: "hello.yaml"}, catalog)
	for _, f := range findings {
		fmt.Println(f)
	}
	// Output:
	// hello.yaml:6:40: the flow has no variable 'nmae'; did you mean name? [unknown-variable]
	// hello.yaml:6:61: hello never ends with sucess (handler greet); did you mean success? [unknown-outcome]
}
