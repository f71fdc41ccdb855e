package engine_test

import (
	"cmp"
	"errors"

	"flowctl/engine/model"
	"flowctl/flows/machine"
)

// models gives every declared model the same one.
type models struct {
	ready     func() machine.ModelCase // nil: ready
	model     model.Model
	id        string // at its endpoint; "": test-1
	keys      []string
	leftovers func(asked []model.Origin) []string
	used      func(model.Use) // is told of each opening
}

func (m models) Case(*machine.Machine, string) (machine.ModelCase, string) {
	if m.ready == nil {
		return machine.ModelReady, cmp.Or(m.id, "test-1")
	}
	return m.ready(), cmp.Or(m.id, "test-1")
}

func (m models) Open(_ *machine.Machine, use model.Use) (model.Opened, error) {
	if m.used != nil {
		m.used(use)
	}
	if m.model == nil {
		return model.Opened{}, &model.Error{Class: model.Authentication, Err: errors.New("there is no key")}
	}
	return model.Opened{Model: m.model, Leftovers: m.leftovers}, nil
}

func (m models) KeyNames(*machine.Machine, string) []string { return m.keys }
