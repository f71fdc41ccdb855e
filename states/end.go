package states

import (
	"context"

	"flowctl/engine"
	"flowctl/flows/machine"
	"flowctl/store"
)

// end ends the run.
type end struct{}

type endWith struct {
	Status string       `yaml:"status" flow:"enum:succeeded|failed" doc:"How the run ends; succeeded if left out"`
	Output machine.Tree `yaml:"output" doc:"What the run gives: a text, or a map of texts"`
}

func (end) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "End the run.", With: &endWith{},
		Outcomes: "none, the run ends here"}
}

func (*endWith) Uses(machine.Scope) machine.Uses { return machine.Uses{} }

func (end) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*endWith](step)
	status := store.Succeeded
	if with.Status == string(store.Failed) {
		status = store.Failed
	}
	var output machine.Value
	if with.Output != nil {
		value, err := step.Compute(with.Output)
		if err != nil {
			return "", err
		}
		output = value
	}
	return "", step.End(status, output)
}
