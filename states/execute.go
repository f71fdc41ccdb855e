package states

import (
	"context"
	"fmt"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// execute carries out a plan, from the first step that is not done: a step with a tool is called, another is done by a model
// that thinks and calls the state's tools, in at most the state's turns for each step. It writes status and result of each
// step into the plan's variable, so that the plan made again, or this state entered again, goes on from there.
type execute struct{}

type executeWith struct {
	From      machine.VarRef `yaml:"from" flow:"required,write" doc:"Variable with the plan; status and result of its steps are written into it"`
	Into      machine.VarRef `yaml:"into" flow:"write" doc:"Variable for the summary"`
	Summary   machine.Text   `yaml:"summary" doc:"The summary; one line per step if left out"`
	StopAfter int64          `yaml:"stop_after" flow:"min1" doc:"Steps after which the state ends with more; all of them if left out"`
}

func (execute) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Carry out a plan step by step.", With: &executeWith{},
		Outcomes: "success, fail; more with `stop_after`"}
}

// more is the outcome of a plan with steps left.
const more machine.Outcome = "more"

func (c *executeWith) Uses(machine.Scope) machine.Uses {
	uses := machine.Uses{
		Outcomes: []machine.OutcomeUse{
			{Name: machine.Success, Writes: written(c.From, c.Into)},
			{Name: machine.Fail, Writes: written(c.From)},
		},
		Shows: []string{string(c.From)},
		Holds: []machine.Hold{{Path: "from", Var: string(c.From), Type: "object", Named: "a plan"}},
	}
	if c.StopAfter > 0 {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: more, Writes: written(c.From, c.Into)})
	}
	if c.Into != "" {
		uses.Holds = append(uses.Holds, machine.Hold{Path: "into", Var: string(c.Into), Type: "string", Named: "the summary"})
	}
	if c.Summary != nil && c.Into == "" {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "summary",
			Message: "the summary goes nowhere: add into, a variable for it"})
	}
	return uses
}

func (execute) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*executeWith](step)
	object := step.Value(string(with.From))
	steps, ok := readSteps(object)
	if !ok {
		return machine.Fail, problemf(kindInvalid, language(step).pick("%s holds no plan", "%s 中没有计划"), with.From)
	}
	goal, _ := object.(machine.Values)["goal"].(string)
	carried := int64(0)
	for _, s := range steps {
		if s.Status == statusDone {
			continue
		}
		if with.StopAfter > 0 && carried == with.StopAfter {
			return with.close(step, more, steps)
		}
		outcome, reason := with.carryOut(step, goal, s)
		if outcome == "" || outcome == machine.Error {
			return outcome, reason
		}
		carried++
		if err := write(step, with.From, withSteps(object, steps)); err != nil {
			return machine.Fail, err
		}
		if outcome == machine.Fail {
			return outcome, reason
		}
	}
	return with.close(step, machine.Success, steps)
}

// carryOut does one step: success, or fail or error with the reason. An error without outcome ends the handler.
func (c *executeWith) carryOut(step *engine.Step, goal string, s *plannedStep) (machine.Outcome, error) {
	if s.Tool == "" {
		return c.think(step, goal, s)
	}
	results, err := step.Call(engine.Call{Tool: s.Tool, Args: s.Args, Direct: true})
	if err != nil {
		return "", err
	}
	result := results[0]
	if result.Status == tool.Unavailable {
		return machine.Error, result.Problem
	}
	problem, err := judge(step, result, expectOf(step, string(c.From), s), false)
	if err != nil {
		return "", err
	}
	if problem.None() {
		s.end(statusDone, result.Value)
		return machine.Success, nil
	}
	s.end(statusFailed, result.Value)
	return failed(step, fmt.Sprintf("%s (%s)", s.ID, s.Tool), problem)
}

// think has a model do a step that names no tool. What it says in the end is the step's result.
func (c *executeWith) think(step *engine.Step, goal string, s *plannedStep) (machine.Outcome, error) {
	switch step.Model() {
	case machine.ModelReady:
	case machine.ModelNone:
		s.end(statusFailed, nil)
		return machine.Fail, problemf(kindInvalid, language(step).pick("step %s names no tool, and there is no model to do it",
			"步骤 %s 没有工具，也没有模型可以执行"), s.ID)
	default:
		return "", step.NoModel()
	}
	got, err := think(step, engine.Task{Text: language(step).carryOut(goal, s, c.From)})
	if err != nil {
		return "", err
	}
	if got.Problem.None() {
		s.end(statusDone, got.Text)
		return machine.Success, nil
	}
	s.end(statusFailed, nil)
	return failed(step, s.ID, got.Problem)
}

// failed leaves a note of a step that failed.
func failed(step *engine.Step, name string, problem machine.Problem) (machine.Outcome, error) {
	if err := step.Note(fmt.Sprintf("step %s failed: %s", name, problem.Message)); err != nil {
		return "", err
	}
	return machine.Fail, problem
}

// close ends the state with its summary.
func (c *executeWith) close(step *engine.Step, outcome machine.Outcome, steps []*plannedStep) (machine.Outcome, error) {
	text := summary(steps)
	if c.Summary != nil {
		rendered, err := step.Render(c.Summary)
		if err != nil {
			return "", err
		}
		text = rendered
	}
	if err := write(step, c.Into, text); err != nil {
		return machine.Fail, err
	}
	return outcome, nil
}

// expectOf finds what the flow expects of a step's result: that stands where the step is written, in the state that plans
// for this one into the same variable.
func expectOf(step *engine.Step, from string, s *plannedStep) machine.Expr {
	for _, item := range step.Machine().States {
		with, ok := item.Value.With.(*planWith)
		if !ok || string(with.For) != step.State().Name || string(with.Into) != from {
			continue
		}
		for _, one := range with.Steps {
			if one.ID == s.ID && string(one.Tool) == s.Tool {
				return one.Expect
			}
		}
	}
	return nil
}
