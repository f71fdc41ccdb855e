package states

import (
	"context"
	"slices"
	"strings"

	"flowctl/engine"
	"flowctl/flows/machine"
)

// intent classifies a text into one of the intents of its state. An intent whose keyword or pattern is found in the text
// holds, unless the text denies the keyword ("no refund"); where exactly one intent holds, it is the answer. Everything else
// is for a model, which names one intent or none.
type intent struct{}

type intentWith struct {
	From    machine.VarRef              `yaml:"from" flow:"prompt" doc:"Variable with the text; the newest human message if left out"`
	Into    machine.VarRef              `yaml:"into" flow:"write" doc:"Variable for the intent's name"`
	Intents machine.Ordered[intentRule] `yaml:"intents" flow:"required,outcomes" doc:"The intents by name"`
}

type intentRule struct {
	Description string            `yaml:"description" flow:"required" doc:"What a text of this intent wants"`
	Keywords    []machine.Keyword `yaml:"keywords" doc:"Words or phrases that decide, whatever their case and width"`
	Patterns    []machine.Pattern `yaml:"patterns" doc:"Regular expressions that decide"`
	Examples    []string          `yaml:"examples" doc:"Texts of this intent, for a model"`
}

func (intent) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Classify a text into one of several intents.", With: &intentWith{}, Hears: "from",
		Outcomes: "each intent that has a line of its own; success for the others; fail where no intent fits (none_found), or several do"}
}

// noIntent is what a model answers when no intent fits.
const noIntent = "none"

func (c *intentWith) Uses(s machine.Scope) machine.Uses {
	var uses machine.Uses
	var names []machine.Value
	routed := true
	for _, in := range c.Intents {
		names = append(names, in.Name)
		routed = routed && slices.Contains(s.Routes, machine.Outcome(in.Name))
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Outcome(in.Name), Falls: machine.Success,
			Writes: written(c.Into)})
		if in.Name == noIntent {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "intents." + noIntent, Rule: "reserved-name",
				Message: "none cannot be an intent: it says that no intent fits; leave it out, such a text leads to fail"})
		}
	}
	if !routed {
		uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Success, Writes: written(c.Into)})
	}
	uses.Outcomes = append(uses.Outcomes, machine.OutcomeUse{Name: machine.Fail})
	if len(c.Intents) == 0 {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "intents",
			Message: "intents is empty; name at least one, such as refund: {description: Wants money back}"})
	}
	if c.Into != "" {
		uses.Holds = []machine.Hold{{Path: "into", Var: string(c.Into), Type: "string", Enum: names, Named: "the intents"}}
	}
	return uses
}

func (intent) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*intentWith](step)
	text, err := with.text(step)
	if err != nil {
		return "", err
	}
	hits := with.decide(text)
	if len(hits) == 1 {
		return with.found(step, hits[0])
	}
	w := language(step)
	if step.Model() != machine.ModelNone && strings.TrimSpace(text) != "" {
		return with.classify(step, text)
	}
	if len(hits) > 1 {
		return machine.Fail, problemf(kindSeveral, w.pick("the text has words of several intents: %s", "内容同时符合多个意图：%s"), strings.Join(hits, w.pick(", ", "、")))
	}
	return machine.Fail, problemf(kindNoneFound, w.pick("the text has words of none of the intents %s", "内容不符合任何意图：%s"), with.names(w))
}

// classify has a model decide.
func (c *intentWith) classify(step *engine.Step, text string) (machine.Outcome, error) {
	if step.Model() != machine.ModelReady {
		return "", step.NoModel()
	}
	w := language(step)
	answer, err := answerObject(machine.Values{"intent": nameOf(append(c.Intents.Names(), noIntent))}, "intent")
	if err != nil {
		return "", err
	}
	task := w.classify(c, text)
	task.Label, task.Answer, task.Aside = labelClassify, answer, true
	got, err := step.Generate(task)
	switch {
	case err != nil:
		return "", err
	case !got.Problem.None():
		return machine.Fail, got.Problem
	}
	object, _ := got.Answer.(machine.Values)
	name, _ := object["intent"].(string)
	if name == noIntent {
		return machine.Fail, problemf(kindNoneFound, w.pick("the model found none of the intents %s in the text", "模型认为内容不符合任何意图：%s"), c.names(w))
	}
	return c.found(step, name)
}

// found ends the state with an intent.
func (c *intentWith) found(step *engine.Step, name string) (machine.Outcome, error) {
	if err := write(step, c.Into, name); err != nil {
		return machine.Fail, err
	}
	return machine.Outcome(name), nil
}

// names lists the intents, for people.
func (c *intentWith) names(w words) string {
	return strings.Join(c.Intents.Names(), w.pick(", ", "、"))
}

// text gives what is classified.
func (c *intentWith) text(step *engine.Step) (string, error) {
	if c.From != "" {
		return machine.FormatValue(step.Value(string(c.From))), nil
	}
	return step.Newest()
}

// decide gives the names of the intents whose rule holds, in written order.
func (c *intentWith) decide(text string) []string {
	var hits []string
	for _, in := range c.Intents {
		if in.Value.holds(text) {
			hits = append(hits, in.Name)
		}
	}
	return hits
}

func (r intentRule) holds(text string) bool {
	for _, k := range r.Keywords {
		if len(k.Meant(text)) > 0 {
			return true
		}
	}
	for _, p := range r.Patterns {
		if len(p.Find(text)) > 0 {
			return true
		}
	}
	return false
}
