package states

import (
	"context"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// ask asks a human for a value, or to choose.
type ask struct{}

type askWith struct {
	Question machine.Text                `yaml:"question" flow:"required,prompt" doc:"What the human is asked"`
	Into     machine.VarRef              `yaml:"into" flow:"write,secret" doc:"Variable for the answer, whose schema is that of the answer; beside choices, for the chosen name"`
	Choices  machine.Ordered[choiceWith] `yaml:"choices" flow:"outcomes" doc:"Answers to choose from, by the outcome that each leads to"`
	Timeout  machine.Duration            `yaml:"timeout" doc:"The human's time; without end if left out"`
	Default  string                      `yaml:"default" doc:"The outcome when the time runs out; expired if left out"`
}

type choiceWith struct {
	Label machine.Text   `yaml:"label" flow:"required,scalar" doc:"What the human sees"`
	Into  machine.VarRef `yaml:"into" flow:"write,secret" doc:"Variable for a new value that is given with the choice, or asked for"`
}

func (ask) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Ask a human for text, for a form, or to choose. Without choices it needs into.", With: &askWith{},
		Outcomes: "answered, or with `choices` their names; expired with `timeout`, unless `default` names another"}
}

func (c *askWith) expiry() expiry { return expiry{c.Timeout, c.Default} }

func (c *askWith) Uses(machine.Scope) machine.Uses {
	var uses machine.Uses
	if len(c.Choices) == 0 {
		uses.Outcomes = []machine.OutcomeUse{{Name: machine.Answered, Writes: written(c.Into)}}
		if c.Into == "" {
			uses.Problems = []machine.ConfigProblem{{Message: "the answer goes nowhere: add into, a variable for it, or choices"}}
		}
		c.expiry().addTo(&uses)
		return uses
	}
	var names []machine.Value
	for _, choice := range c.Choices {
		names = append(names, choice.Name)
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Outcome(choice.Name),
			Writes: written(c.Into, choice.Value.Into)})
	}
	if c.Into != "" {
		uses.Holds = []machine.Hold{{Path: "into", Var: string(c.Into), Type: "string", Enum: names, Named: "the names of the choices"}}
	}
	c.expiry().addTo(&uses)
	return uses
}

func (ask) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*askWith](step)
	question, err := with.question(step)
	if err != nil {
		return "", err
	}
	answer, err := step.Ask(question)
	if err != nil {
		return "", err
	}
	if answer.Expired {
		return with.expiry().expired(language(step))
	}
	if len(with.Choices) == 0 {
		return machine.Answered, write(step, with.Into, answer.Value)
	}
	return with.chosen(step, answer)
}

// question makes the question.
func (c *askWith) question(step *engine.Step) (engine.Question, error) {
	q := engine.Question{Kind: history.KindAsk, Timeout: time.Duration(c.Timeout)}
	text, err := step.Render(c.Question)
	if err != nil {
		return q, err
	}
	q.Text = text
	if len(c.Choices) == 0 {
		q.Schema, q.Secret = schemaOf(step, c.Into), isSecret(step, c.Into)
		return q, nil
	}
	for _, item := range c.Choices {
		label, err := step.Render(item.Value.Label)
		if err != nil {
			return q, err
		}
		choice := history.Choice{Name: item.Name, Label: label}
		if item.Value.Into != "" {
			q.Secret = q.Secret || isSecret(step, item.Value.Into)
			if choice.Schema, err = machine.DecodeValue(schemaOf(step, item.Value.Into).JSON()); err != nil {
				return q, err
			}
		}
		q.Choices = append(q.Choices, choice)
	}
	return q, nil
}

// chosen writes what a choice brings. A choice that takes a value and came without one asks for it.
func (c *askWith) chosen(step *engine.Step, answer engine.Answer) (machine.Outcome, error) {
	choice, _ := c.Choices.Get(answer.Choice)
	if choice.Into != "" && answer.Value == nil {
		name, schema := string(choice.Into), schemaOf(step, choice.Into)
		w := language(step)
		value, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: w.askFor(name, schema.Info()),
			Schema: schema, Timeout: time.Duration(c.Timeout), Secret: isSecret(step, choice.Into)})
		if err != nil {
			return "", err
		}
		if value.Expired {
			return c.expiry().expired(language(step))
		}
		answer.Value = value.Value
	}
	if err := write(step, c.Into, answer.Choice); err != nil {
		return "", err
	}
	return machine.Outcome(answer.Choice), write(step, choice.Into, answer.Value)
}

// isSecret says whether a variable is shown to nobody.
func isSecret(step *engine.Step, name machine.VarRef) bool {
	decl, _ := step.Machine().Variable(string(name))
	return decl.Secret
}

// schemaOf gives the schema of a variable.
func schemaOf(step *engine.Step, name machine.VarRef) machine.Schema {
	decl, _ := step.Machine().Variable(string(name))
	return decl.Schema
}
