package states

import (
	"context"
	"fmt"
	"slices"

	"flowctl/engine"
	"flowctl/flows/machine"
	"flowctl/flows/match"
)

// agent is for work that only a model can do: it thinks and calls the state's tools, in a bounded number of turns, until it
// gives its answer. Where the answer is text it is taken as it stands; with outcomes to choose from, or variables of other
// types, it is an object {outcome, answer}. Without a model that can be called the run stops and names the key that is
// missing; a flow that has no model at all cannot have such a state.
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
	for i, name := range c.Into {
		if slices.Contains(c.Into[:i], name) {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: fmt.Sprintf("into[%d]", i), Message: string(name) + " stands in into twice"})
		}
	}
	if s.Model == machine.ModelNone {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "goal",
			Message: "an agent needs a model, and this state has none; declare one under models, or use a handler that decides by rules"})
	}
	return uses
}

func (agent) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	if step.Model() != machine.ModelReady {
		return "", step.NoModel()
	}
	with := engine.With[*agentWith](step)
	goal, err := step.Render(with.Goal)
	if err != nil {
		return "", err
	}
	task := engine.Task{Text: language(step).reach(goal, with.Outcomes)}
	if with.plain(step) {
		task.Check = with.checkText(step)
	} else if task.Answer, err = with.answer(step); err != nil {
		return "", err
	}
	got, err := think(step, task)
	switch {
	case err != nil:
		return "", err
	case !got.Problem.None():
		return machine.Fail, got.Problem
	case task.Answer == nil:
		return with.finish(step, machine.Success, with.readText(step, got.Text))
	}
	object, _ := got.Answer.(machine.Values)
	outcome := machine.Success
	if len(with.Outcomes) > 0 {
		name, _ := object["outcome"].(string)
		outcome = machine.Outcome(name)
	}
	return with.finish(step, outcome, object["answer"])
}

// plain says whether the answer is text and nothing else.
func (c *agentWith) plain(step *engine.Step) bool {
	if len(c.Outcomes) > 0 || len(c.Into) > 1 {
		return false
	}
	return len(c.Into) == 0 || schemaOf(step, c.Into[0]).Info().OnlyType() == "string"
}

// readText gives an answer in plain text as the variable holds it: a word of its enum may be written in another case, and
// what fits its pattern may stand in a sentence.
func (c *agentWith) readText(step *engine.Step, text string) machine.Value {
	if len(c.Into) == 0 {
		return text
	}
	s := schemaOf(step, c.Into[0])
	if s.Check(text) == nil {
		return text
	}
	if v, ok := match.Exact(text, s, language(step).language()); ok {
		return v
	}
	return text
}

// checkText says what is wrong with an answer in plain text, for the model.
func (c *agentWith) checkText(step *engine.Step) func(machine.Value) string {
	if len(c.Into) == 0 {
		return nil
	}
	return func(answer machine.Value) string {
		text, _ := answer.(string)
		if err := schemaOf(step, c.Into[0]).Check(c.readText(step, text)); err != nil {
			return err.Error()
		}
		return ""
	}
}

// answer makes the schema of the answer object: the outcome where there are several, and what into wants.
func (c *agentWith) answer(step *engine.Step) (machine.Schema, error) {
	properties := machine.Values{}
	var required []string
	if len(c.Outcomes) > 0 {
		properties["outcome"] = nameOf(c.Outcomes.Names())
		required = append(required, "outcome")
	}
	if len(c.Into) > 0 {
		value, err := c.valueSchema(step)
		if err != nil {
			return nil, err
		}
		properties["answer"] = value
		required = append(required, "answer")
	}
	return answerObject(properties, required...)
}

// valueSchema is the schema of the answer itself: that of the one variable, or an object of several.
func (c *agentWith) valueSchema(step *engine.Step) (machine.Value, error) {
	if len(c.Into) == 1 {
		return part(schemaOf(step, c.Into[0]), "/properties/answer")
	}
	inner := machine.Values{}
	var names []string
	for _, name := range c.Into {
		one, err := part(schemaOf(step, name), "/properties/answer/properties/"+string(name))
		if err != nil {
			return nil, err
		}
		inner[string(name)] = one
		names = append(names, string(name))
	}
	return objectOf(inner, names...), nil
}

// finish ends the state with an outcome and writes the answer, all of it or nothing.
func (c *agentWith) finish(step *engine.Step, outcome machine.Outcome, answer machine.Value) (machine.Outcome, error) {
	before := make([]machine.Value, len(c.Into))
	for i, name := range c.Into {
		value := answer
		if len(c.Into) > 1 {
			object, _ := answer.(machine.Values)
			value = object[string(name)]
		}
		before[i] = step.Value(string(name))
		err := write(step, name, value)
		if err == nil {
			continue
		}
		for j, done := range c.Into[:i] {
			if undone := write(step, done, before[j]); undone != nil {
				return "", undone
			}
		}
		return machine.Fail, err
	}
	return outcome, nil
}
