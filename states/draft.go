package states

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// maxPlanSteps is the most steps that a plan made by a model may have. More is no plan that a human looks through.
const maxPlanSteps = 20

// carrier is the state that carries a plan out, as far as the plan must know it.
type carrier struct {
	tools  []machine.ToolSpec
	thinks bool // it has a model, which carries out steps without tool
}

func (c *planWith) carrier(step *engine.Step) carrier {
	state, _ := step.Machine().State(string(c.For))
	out := carrier{thinks: state.Model != machine.ModelNone}
	for _, name := range state.Tools {
		if spec, ok := step.Machine().Tools.Get(name); ok {
			out.tools = append(out.tools, spec)
		}
	}
	return out
}

// draft has a model make the plan: its goal in the model's words, where it gives some, and its steps. before is what the
// plan's variable holds.
func (c *planWith) draft(step *engine.Step, goal string, before machine.Value) (string, []*plannedStep, machine.Problem, error) {
	none := machine.Problem{}
	old, planned := readSteps(before)
	if !planned {
		before = nil
	}
	schema, err := planSchema()
	if err != nil {
		return "", nil, none, err
	}
	task := language(step).planFor(goal, c.carrier(step), before, refusals(step))
	task.Label, task.Aside, task.Answer = labelPlan, true, schema
	task.Check = func(answer machine.Value) string {
		_, wrong := c.readDraft(step, answer, old)
		return strings.Join(wrong, "; ")
	}
	got, err := step.Generate(task)
	if err != nil || !got.Problem.None() {
		return "", nil, got.Problem, err
	}
	steps, wrong := c.readDraft(step, got.Answer, old)
	if len(wrong) > 0 {
		return "", nil, problemf(kindInvalid, "%s", strings.Join(wrong, "; ")), nil
	}
	object, _ := got.Answer.(machine.Values)
	if own, _ := object["goal"].(string); strings.TrimSpace(own) != "" {
		goal = own
	}
	return goal, steps, none, nil
}

// refusals gives what the human said of the plans that were rejected, the oldest first.
func refusals(step *engine.Step) []string {
	var notes []string
	for _, attempt := range step.Attempts() {
		if attempt.Outcome == machine.Rejected {
			notes = append(notes, attempt.Notes...)
		}
	}
	return notes
}

// planSchema is the schema of a plan that a model makes. Whether a step's tool is known and its args fit is said in words
// that tell the model more than a schema could.
func planSchema() (machine.Schema, error) {
	text := machine.Values{"type": []machine.Value{"string", "null"}}
	one := machine.Values{"type": "object", "properties": machine.Values{
		"id": text, "description": text, "tool": text,
		"args": machine.Values{"type": []machine.Value{"object", "null"}},
	}}
	return answerObject(machine.Values{
		"goal":  machine.Values{"type": "string"},
		"steps": machine.Values{"type": "array", "items": one},
	}, "steps")
}

// readDraft reads the steps of a plan that a model made, and says in words for the model all that is wrong with them.
func (c *planWith) readDraft(step *engine.Step, answer machine.Value, old []*plannedStep) (steps []*plannedStep, wrong []string) {
	w := language(step)
	object, _ := answer.(machine.Values)
	list, _ := object["steps"].([]machine.Value)
	if len(list) == 0 || len(list) > maxPlanSteps {
		return nil, []string{w.stepsWrong(len(list))}
	}
	by := c.carrier(step)
	for i, item := range list {
		one, problem := c.readDraftStep(step, by, item)
		if problem != "" {
			wrong = append(wrong, w.stepWrong(i+1, problem))
			continue
		}
		if one.ID != "" && slices.ContainsFunc(steps, func(s *plannedStep) bool { return s.ID == one.ID }) {
			wrong = append(wrong, w.stepWrong(i+1, w.idTwice(one.ID)))
		}
		steps = append(steps, one)
	}
	if len(wrong) == 0 {
		nameSteps(steps, old)
	}
	return steps, wrong
}

// readDraftStep reads one step, and says what is wrong with it.
func (c *planWith) readDraftStep(step *engine.Step, by carrier, item machine.Value) (one *plannedStep, wrong string) {
	w := language(step)
	object, _ := item.(machine.Values)
	text := func(key string) string {
		s, _ := object[key].(string)
		return strings.TrimSpace(s)
	}
	args, _ := object["args"].(machine.Values)
	switch {
	case text("tool") != "":
		checked, refusal := step.CheckCall(string(c.For), engine.Call{Tool: text("tool"), Args: args})
		if refusal != nil {
			return nil, refusal.Problem.Message
		}
		return newStep(text("id"), text("description"), text("tool"), checked), ""
	case len(args) > 0:
		return nil, w.argsWithoutTool()
	case !by.thinks:
		return nil, w.stepNeedsTool(toolNames(by.tools))
	case text("description") == "":
		return nil, w.stepEmpty()
	}
	return newStep(text("id"), text("description"), "", nil), ""
}

// nameSteps gives the steps without id one. A step that does what a done step of the plan before did is that step, and so
// has its id; others are counted.
func nameSteps(steps, before []*plannedStep) {
	taken := func(id string) bool {
		return slices.ContainsFunc(steps, func(s *plannedStep) bool { return s.ID == id })
	}
	for _, s := range steps {
		for _, old := range before {
			if s.ID == "" && old.Status == statusDone && old.does(s) && !taken(old.ID) {
				s.rename(old.ID)
			}
		}
	}
	for i, s := range steps {
		for n := i + 1; s.ID == ""; n++ {
			if id := fmt.Sprintf("step_%d", n); !taken(id) {
				s.rename(id)
			}
		}
	}
}
