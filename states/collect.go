package states

import (
	"context"
	"slices"
	"strings"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// collect fills variables from what a human said: by the rules that their schemas give; where those are not enough by a
// model, if one can be called; then by asking. It asks for all that is missing in one question, until everything stands or
// the state's turns are used up. A value that was found and does not fit is told of with the question. A yes or no fills a
// variable that was asked for, or that it is said of by name; a word of an enum that is denied ("not morning") is no value.
type collect struct{}

type collectWith struct {
	From    machine.VarRef   `yaml:"from" flow:"prompt" doc:"Variable that is read on the first visit; what was heard if left out"`
	Fields  []fieldWith      `yaml:"fields" flow:"required" doc:"The variables to fill: a name, or {name, ask}"`
	Timeout machine.Duration `yaml:"timeout" doc:"The human's time for each question; without end if left out"`
	Default string           `yaml:"default" doc:"The outcome when the time runs out; expired if left out"`
}

type fieldWith struct {
	Name machine.VarRef `yaml:"name" flow:"required,scalar,write,secret" doc:"The variable"`
	Ask  machine.Text   `yaml:"ask" flow:"prompt" doc:"How it is asked for, instead of the engine's own words"`
}

func (collect) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Fill variables from what the human said, and ask for what is missing or wrong.", With: &collectWith{},
		Outcomes: "complete; incomplete when `limits.turns` questions were not enough; expired with `timeout`, unless `default` names another"}
}

func (c *collectWith) expiry() expiry { return expiry{c.Timeout, c.Default} }

func (c *collectWith) Uses(s machine.Scope) machine.Uses {
	var names []string
	var uses machine.Uses
	for i, f := range c.Fields {
		if slices.Contains(names, string(f.Name)) {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: fieldPath(i), Message: string(f.Name) + " stands in fields twice"})
			continue
		}
		names = append(names, string(f.Name))
		if decl, ok := s.Machine.Vars.Get(string(f.Name)); ok && hasObjects(decl.Schema.Info()) {
			uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: fieldPath(i), Message: "collect cannot read an object; fill " +
				string(f.Name) + " with ask, which takes a form, or collect a variable for each of its parts"})
		}
	}
	if len(names) == 0 {
		uses.Problems = append(uses.Problems, machine.ConfigProblem{Path: "fields", Message: "fields is empty; name at least one variable"})
	}
	uses.Outcomes = []machine.OutcomeUse{{Name: machine.Complete, Writes: names}, {Name: machine.Incomplete}}
	c.expiry().addTo(&uses)
	return uses
}

// hasObjects says whether a schema wants an object, or a list of objects or lists: no text says such a value.
func hasObjects(info machine.SchemaInfo) bool {
	only := info.OnlyType()
	if only == "array" && info.Items != nil {
		inner := info.Items.OnlyType()
		return inner == "object" || inner == "array"
	}
	return only == "object"
}

func (collect) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*collectWith](step)
	c, err := with.begin(step)
	if err != nil {
		return "", err
	}
	for turn := 0; ; turn++ {
		if err := with.writeSecrets(step, c); err != nil {
			return "", err
		}
		if c.complete() {
			return machine.Complete, with.write(step, c)
		}
		if turn >= step.Turns() {
			return machine.Incomplete, problemf(kindTurns, "%s", c.words.stillMissing(turn, c.missingNames()))
		}
		text, err := with.question(step, c)
		if err != nil {
			return "", err
		}
		answer, err := step.Ask(engine.Question{Kind: history.KindAsk, Text: text, Timeout: time.Duration(with.Timeout), Secret: c.secret})
		if err != nil {
			return "", err
		}
		if answer.Expired {
			return with.expired(step, c)
		}
		c.hear(answer.Text)
		if c.secret {
			continue // no model is shown what may hold a secret
		}
		if err := with.consult(step, c, "", answer.Text); err != nil {
			return "", err
		}
	}
}

// writeSecrets writes at once what was read for a secret variable, however the state ends: from then on the value is hidden
// wherever else it stands, such as in the text that it was read from.
func (c *collectWith) writeSecrets(step *engine.Step, col *collection) error {
	for _, f := range col.fields {
		if !f.secret || f.value == nil || machine.EqualValues(f.value, step.Value(f.name)) {
			continue
		}
		if err := step.Set(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// begin reads what is there before anything is asked.
func (c *collectWith) begin(step *engine.Step) (*collection, error) {
	out := &collection{words: language(step), again: step.Visit() > 1}
	for _, f := range c.Fields {
		decl, _ := step.Machine().Vars.Get(string(f.Name))
		field := newField(string(f.Name), decl.Schema, step.Value(string(f.Name)))
		field.secret = decl.Secret
		out.secret = out.secret || decl.Secret
		out.fields = append(out.fields, field)
	}
	if step.Visit() == 1 && c.From != "" && step.Has(string(c.From)) {
		text := machine.FormatValue(step.Value(string(c.From)))
		out.read(text)
		return out, c.consult(step, out, c.From, text)
	}
	heard, err := step.Heard()
	if err != nil {
		return nil, err
	}
	for _, text := range heard {
		out.read(text)
	}
	return out, c.consult(step, out, "", heard...)
}

// consult has a model read texts of which the rules did not make enough. from is the variable that holds the text, "" where
// it was said. No text is read twice; where the model does not get it right, the human is asked as if there were none. Secret
// fields are no matter for a model, nor are texts in which the rules found one.
func (c *collectWith) consult(step *engine.Step, col *collection, from machine.VarRef, texts ...string) error {
	if step.Model() != machine.ModelReady || !col.puzzled() {
		return nil
	}
	fields := col.open()
	texts = col.unshown(col.withoutSecrets(texts))
	if len(texts) == 0 || len(fields) == 0 {
		return nil
	}
	answer, err := fieldsAnswer(fields)
	if err != nil {
		return err
	}
	task := col.words.extract(col, from, texts...)
	task.Label, task.Answer, task.Aside = labelExtract, answer, true
	got, err := step.Generate(task)
	if err != nil {
		return err
	}
	if values, ok := got.Answer.(machine.Values); ok && got.Problem.None() {
		col.extract(values)
	}
	return nil
}

// fieldsAnswer is the schema of what a model reads: each field's value, or null, which may as well be left out.
func fieldsAnswer(fields []*field) (machine.Schema, error) {
	properties := machine.Values{}
	for _, f := range fields {
		one, err := orNull(f.schema, "/properties/"+f.name)
		if err != nil {
			return nil, err
		}
		properties[f.name] = one
	}
	return answerObject(properties)
}

// question words the question for what is missing, or for what should change.
func (c *collectWith) question(step *engine.Step, col *collection) (string, error) {
	asked := col.ask()
	if len(asked) == 0 {
		return col.changeQuestion(), nil
	}
	var plain []*field
	var own []string
	for _, f := range asked {
		i := slices.IndexFunc(c.Fields, func(w fieldWith) bool { return string(w.Name) == f.name })
		if c.Fields[i].Ask == nil {
			plain = append(plain, f)
			continue
		}
		text, err := step.Render(c.Fields[i].Ask)
		if err != nil {
			return "", err
		}
		own = append(own, text)
	}
	lines := col.noteTexts()
	if len(plain) > 0 {
		lines = append(lines, col.request(plain))
	}
	return strings.Join(append(lines, own...), "\n"), nil
}

// write writes what changed.
func (c *collectWith) write(step *engine.Step, col *collection) error {
	for _, f := range col.fields {
		if f.value == nil || machine.EqualValues(f.value, step.Value(f.name)) {
			continue
		}
		if err := step.Set(f.name, f.value); err != nil {
			return err
		}
	}
	return nil
}

// expired ends the state when the human's time has run out. A default of complete goes on with what there is.
func (c *collectWith) expired(step *engine.Step, col *collection) (machine.Outcome, error) {
	outcome, reason := c.expiry().expired(col.words)
	if outcome == machine.Complete {
		return outcome, c.write(step, col)
	}
	return outcome, reason
}
