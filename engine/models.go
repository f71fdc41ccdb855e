package engine

import (
	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// Models makes the models of flows. It is safe for concurrent use. Package engine/model/catalog has one.
type Models interface {
	// Case says whether a declared model (by its key under models) can be called here and now, and the name by which its
	// endpoint knows it. It is asked when a step is entered, and when a step that stopped for its model is taken up; the
	// answer is recorded, and the step goes by it from then on.
	Case(m *machine.Machine, name string) (ready machine.ModelCase, id string)

	// Open gives a model, ready for use by all runs of the process at once. It is asked before each live call. Errors are
	// *model.Error.
	Open(m *machine.Machine, use model.Use) (model.Opened, error)

	// KeyNames lists the variables of the environment that would make a missing model ready.
	KeyNames(m *machine.Machine, name string) []string
}
