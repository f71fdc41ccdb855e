package states

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// plan makes a plan, from the steps of its config or, where there are none, by a model; with confirm it shows the plan and
// waits for a yes. What is confirmed is what runs: conditions and arguments are evaluated when the plan is made.
type plan struct{}

type planWith struct {
	Into    machine.VarRef   `yaml:"into" flow:"required,write" doc:"Variable for the plan: {goal, steps: [{id, description, tool, args, status, result}]}"`
	For     machine.StateRef `yaml:"for" flow:"required" doc:"The state that carries the plan out"`
	Goal    machine.Text     `yaml:"goal" flow:"required,prompt" doc:"What the plan is for"`
	Steps   []stepWith       `yaml:"steps" doc:"The steps; without them a model makes the plan"`
	Confirm bool             `yaml:"confirm" doc:"Whether a human is shown the plan and must say yes"`
	Comment machine.VarRef   `yaml:"comment" flow:"write" doc:"Variable for what a no said; a bare no sets it back to its default"`
	Timeout machine.Duration `yaml:"timeout" doc:"The human's time; without end if left out"`
	Default string           `yaml:"default" doc:"The outcome when the time runs out; expired if left out"`
}

type stepWith struct {
	ID          string                        `yaml:"id" flow:"required" doc:"Name of the step, different from the others'"`
	When        machine.Expr                  `yaml:"when" doc:"Expression: where it is false, the step is left out"`
	Description machine.Text                  `yaml:"description" doc:"What is done, for people; needed without a tool"`
	Tool        machine.ToolRef               `yaml:"tool" doc:"The tool that does it; without one a model does"`
	Args        machine.Ordered[machine.Tree] `yaml:"args" doc:"The tool's arguments by name"`
	Expect      machine.Expr                  `yaml:"expect" flow:"expr:result" doc:"Expression over the tool's result; where it is false, the step fails"`
}

func (plan) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Make a plan, and have a human confirm it.", With: &planWith{},
		Outcomes: "confirmed, fail; with `confirm` rejected too, and expired with `timeout`, unless `default` names another"}
}

func (c *planWith) expiry() expiry { return expiry{c.Timeout, c.Default} }

func (c *planWith) Uses(s machine.Scope) machine.Uses {
	uses := machine.Uses{
		Outcomes: []machine.OutcomeUse{{Name: machine.Confirmed, Writes: written(c.Into)}, {Name: machine.Fail}},
		Holds:    []machine.Hold{{Path: "into", Var: string(c.Into), Type: "object", Named: "the plan"}},
		Problems: c.stepProblems(s),
	}
	uses.Holds = append(uses.Holds, holdComment(c.Comment)...)
	if c.Confirm {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Rejected, Writes: written(c.Into, c.Comment)})
		c.expiry().addTo(&uses)
		return uses
	}
	unasked := func(key string, given bool) {
		if given {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: key,
				Message: key + " is about the human's answer, and nobody is asked; add confirm: true or leave it out"})
		}
	}
	unasked("comment", c.Comment != "")
	unasked("timeout", c.Timeout > 0)
	unasked("default", c.Default != "")
	return uses
}

// stepProblems says what is wrong with the steps.
func (c *planWith) stepProblems(s machine.Scope) []machine.ConfigProblem {
	if len(c.Steps) == 0 && s.Model == machine.ModelNone {
		return []machine.ConfigProblem{{Path: "steps",
			Message: "a plan without steps is made by a model, and this state has none; add steps, or a model"}}
	}
	var found []machine.ConfigProblem
	add := func(path, format string, args ...any) {
		found = append(found, machine.ConfigProblem{Path: path, Message: fmt.Sprintf(format, args...)})
	}
	known, _ := s.ToolsOf(string(c.For))
	carrier, _ := s.Machine.States.Get(string(c.For))
	first := map[string]int{}
	for i, step := range c.Steps {
		path := fmt.Sprintf("steps[%d]", i)
		if strings.TrimSpace(step.ID) == "" {
			add(path+".id", "id is empty; give the step a name")
		} else if other, twice := first[step.ID]; twice {
			add(path+".id", "the steps %d and %d are both called %s; each has its own id", other+1, i+1, step.ID)
		} else {
			first[step.ID] = i
		}
		if step.Tool != "" {
			if !slices.Contains(known, string(step.Tool)) {
				add(path+".tool", "%s cannot call %s: add it to the tools of %s, which carries the plan out", c.For, step.Tool, c.For)
			}
			spec, _ := s.Machine.Tools.Get(string(step.Tool))
			found = append(found, argProblems(s, spec, path+".args", step.Args)...)
			continue
		}
		switch {
		case len(step.Args) > 0:
			add(path+".args", "args belong to a tool, and step %s names none; add tool", step.ID)
		case step.Expect != nil:
			add(path+".expect", "expect looks at a tool's result, and step %s names none; add tool", step.ID)
		case step.Description == nil:
			add(path, "step %s says neither which tool does it nor, in a description, what is to be done", step.ID)
		}
		if carrier != nil && carrier.Model == machine.ModelNone {
			add(path, "step %s names no tool, so a model would have to do it, and %s has none; add tool, or a model", step.ID, c.For)
		}
	}
	return found
}

func (plan) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*planWith](step)
	before := step.Value(string(with.Into))
	goal, steps, problem, err := with.makePlan(step, before)
	if err != nil {
		return "", err
	}
	if !problem.None() {
		return machine.Fail, problem
	}
	// The plan is stored with the question, so that it can be looked at while the run waits, and so that what runs later is
	// what was shown, whatever the flow says by then.
	if err := write(step, with.Into, planValue(goal, steps)); err != nil {
		return machine.Fail, err
	}
	if !with.Confirm {
		return machine.Confirmed, nil
	}
	outcome, reason := with.ask(step, language(step).plan(goal, steps))
	if outcome != machine.Confirmed && outcome != machine.Rejected {
		if err := write(step, with.Into, before); err != nil {
			return "", err
		}
	}
	return outcome, reason
}

// makePlan makes the plan: its goal and its steps, or the problem with them. A step that is done in the plan of before stays
// done.
func (c *planWith) makePlan(step *engine.Step, before machine.Value) (goal string, steps []*plannedStep, problem machine.Problem, err error) {
	if len(c.Steps) == 0 && step.Model() == machine.ModelNone {
		return "", nil, problemf(kindInvalid, "%s", language(step).pick("the plan has no steps, and there is no model to make some",
			"计划没有步骤，也没有模型可以制定")), nil
	}
	if len(c.Steps) == 0 && step.Model() != machine.ModelReady {
		return "", nil, problem, step.NoModel()
	}
	if goal, err = step.Render(c.Goal); err != nil {
		return "", nil, problem, err
	}
	if len(c.Steps) == 0 {
		goal, steps, problem, err = c.draft(step, goal, before)
	} else {
		steps, problem, err = c.evaluate(step)
	}
	old, _ := readSteps(before)
	keepDone(steps, old)
	return goal, steps, problem, err
}

// ask shows the plan and gives what the human says of it.
func (c *planWith) ask(step *engine.Step, text string) (machine.Outcome, error) {
	answer, err := askYesNo(step, text, c.Timeout)
	switch {
	case err != nil:
		return "", err
	case answer.Expired:
		return c.expiry().expired(language(step))
	case answer.Yes():
		return machine.Confirmed, nil
	}
	if len(c.Steps) == 0 && strings.TrimSpace(answer.Text) != "" { // for the model that makes the next one
		if err := step.Note(answer.Text); err != nil {
			return "", err
		}
	}
	return machine.Rejected, storeComment(step, c.Comment, answer)
}

// evaluate evaluates the steps and checks them by the tools of the state that carries them out.
func (c *planWith) evaluate(step *engine.Step) ([]*plannedStep, machine.Problem, error) {
	none := machine.Problem{}
	var steps []*plannedStep
	for i := range c.Steps {
		one := &c.Steps[i]
		if one.When != nil {
			if taken, err := step.Holds(one.When, nil); err != nil {
				return nil, none, err
			} else if !taken {
				continue
			}
		}
		made, problem, err := c.evaluateStep(step, one)
		if err != nil || !problem.None() {
			return nil, problem, err
		}
		steps = append(steps, made)
	}
	if len(steps) == 0 {
		return nil, problemf(kindNoneFound, "%s", language(step).pick("no step of the plan applies", "计划中没有适用的步骤")), nil
	}
	return steps, none, nil
}

// evaluateStep evaluates one step.
func (c *planWith) evaluateStep(step *engine.Step, one *stepWith) (*plannedStep, machine.Problem, error) {
	none := machine.Problem{}
	description := ""
	if one.Description != nil {
		text, err := step.Render(one.Description)
		if err != nil {
			return nil, none, err
		}
		description = text
	}
	if one.Tool == "" {
		return newStep(one.ID, description, "", nil), none, nil
	}
	args, err := computeArgs(step, one.Args)
	if err != nil {
		return nil, none, err
	}
	checked, refusal := step.CheckCall(string(c.For), engine.Call{Tool: string(one.Tool), Args: args})
	if refusal != nil {
		return nil, problemf(kindInvalid, language(step).pick("step %s cannot be planned: %s", "步骤 %s 无法安排：%s"), one.ID, refusal.Problem.Message), nil
	}
	return newStep(one.ID, description, string(one.Tool), checked), none, nil
}
