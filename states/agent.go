package states

import (
	"context"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// agent is for work that only a model can do. Without one that can be called it stops the run, which names the key that
// is missing; a flow that has no model at all cannot have such a state.
type agent struct{}

type agentWith struct {
	Goal     machine.Text            `yaml:"goal" flow:"required,prompt" doc:"What is to be reached"`
	Into     []machine.VarRef        `yaml:"into" flow:"write,one" doc:"Variable for the answer, or a list of variables that it is made of; their schemas are the schema of the answer"`
	Outcomes machine.Ordered[string] `yaml:"outcomes" flow:"outcomes" doc:"Outcomes to choose from, with what each means; success if left out"`
}

func (agent) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Let a model think and call tools until the goal is reached.", With: &agentWith{},
		Outcomes: "the names in `outcomes`, else success; fail"}
}

func (c *agentWith) Uses(s machine.Scope) machine.Uses {
	names := c.Outcomes.Names()
	if len(names) == 0 {
		names = []string{string(machine.Success)}
	}
	var uses machine.Uses
	for _, name := range names {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Outcome(name), Writes: written(c.Into...)})
	}
	uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Fail})
	if s.Model == machine.ModelNone {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "goal",
			Message: "an agent needs a model, and this state has none; declare one under models, or use a handler that decides by rules"})
	}
	return uses
}

func (agent) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	return "", step.NoModel()
}
