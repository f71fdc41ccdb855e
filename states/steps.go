package states

import (
	"strings"

	"flowctl/flows/machine"
)

// The statuses of a plan's step.
const (
	statusPending = "pending"
	statusDone    = "done"
	statusFailed  = "failed"
)

// plannedStep is one step of a plan, as it stands in the plan's variable.
type plannedStep struct {
	ID          string
	Description string // "" where the tool says it
	Tool        string // "" for a step that a model carries out
	Args        machine.Values
	Status      string
	Result      machine.Value

	object machine.Values // the step in the variable; it may hold more than the fields above
}

// newStep makes a step that is still to be done.
func newStep(id, description, tool string, args machine.Values) *plannedStep {
	s := &plannedStep{ID: id, Description: description, Tool: tool, Args: args, object: machine.Values{
		"id": id, "description": description,
	}}
	if tool != "" {
		s.object["tool"], s.object["args"] = tool, args
	}
	s.end(statusPending, nil)
	return s
}

// rename gives the step another id.
func (s *plannedStep) rename(id string) { s.ID, s.object["id"] = id, id }

// end gives a step its status and result.
func (s *plannedStep) end(status string, result machine.Value) {
	s.Status, s.Result = status, result
	s.object["status"], s.object["result"] = status, result
}

// name is what a person calls the step.
func (s *plannedStep) name() string {
	if s.Description != "" {
		return s.Description
	}
	return s.Tool
}

// same says whether another plan's step is the same piece of work.
func (s *plannedStep) same(other *plannedStep) bool { return s.ID == other.ID && s.does(other) }

// does says whether another step does the same, whatever its id. What a model does is said by the description alone.
func (s *plannedStep) does(other *plannedStep) bool {
	return s.Tool == other.Tool && machine.EqualValues(s.Args, other.Args) && (s.Tool != "" || s.Description == other.Description)
}

// keepDone takes over status and result of the steps that are done in a plan of before.
func keepDone(steps, before []*plannedStep) {
	for _, s := range steps {
		for _, old := range before {
			if old.Status == statusDone && old.same(s) {
				s.end(statusDone, old.Result)
			}
		}
	}
}

// planValue is the form in which a plan stands in a variable.
func planValue(goal string, steps []*plannedStep) machine.Values {
	return machine.Values{"goal": goal, "steps": stepList(steps)}
}

func stepList(steps []*plannedStep) []machine.Value {
	list := make([]machine.Value, len(steps))
	for i, s := range steps {
		list[i] = machine.CloneValues(s.object)
	}
	return list
}

// readSteps reads the steps of a plan from its variable. ok is false where that holds no plan.
func readSteps(plan machine.Value) (steps []*plannedStep, ok bool) {
	object, _ := machine.CloneValue(plan).(machine.Values)
	list, ok := object["steps"].([]machine.Value)
	if !ok {
		return nil, false
	}
	for _, item := range list {
		step, ok := item.(machine.Values)
		if !ok {
			return nil, false
		}
		s := &plannedStep{Status: statusPending, Result: step["result"], object: step}
		s.ID, _ = step["id"].(string)
		s.Description, _ = step["description"].(string)
		s.Tool, _ = step["tool"].(string)
		s.Args, _ = step["args"].(machine.Values)
		if status, _ := step["status"].(string); status != "" {
			s.Status = status
		}
		steps = append(steps, s)
	}
	return steps, true
}

// withSteps gives a plan with the steps as they are now; everything else in it stays.
func withSteps(plan machine.Value, steps []*plannedStep) machine.Values {
	old, _ := plan.(machine.Values)
	out := make(machine.Values, len(old))
	for name, v := range old {
		out[name] = v
	}
	out["steps"] = stepList(steps)
	return out
}

// summary gives one line for each step that is done: what was done, and what came of it.
func summary(steps []*plannedStep) string {
	var lines []string
	for _, s := range steps {
		if s.Status != statusDone {
			continue
		}
		line := s.name()
		if result := machine.FormatValue(s.Result); result != "" {
			line += ": " + result
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
