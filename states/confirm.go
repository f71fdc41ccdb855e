package states

import (
	"context"
	"regexp"
	"time"

	"flowctl/engine"
	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// confirm asks a human for yes or no.
type confirm struct{}

type confirmWith struct {
	Question machine.Text     `yaml:"question" flow:"required,prompt" doc:"What the human is asked"`
	Comment  machine.VarRef   `yaml:"comment" flow:"write" doc:"Variable for what a no said; a bare no sets it back to its default"`
	Timeout  machine.Duration `yaml:"timeout" doc:"The human's time; without end if left out"`
	Default  string           `yaml:"default" doc:"The outcome when the time runs out; expired if left out"`
}

func (confirm) Spec() machine.HandlerSpec {
	return machine.HandlerSpec{Doc: "Ask a human for yes or no.", With: &confirmWith{},
		Outcomes: "confirmed, rejected; expired with `timeout`, unless `default` names another"}
}

func (c *confirmWith) expiry() expiry { return expiry{c.Timeout, c.Default} }

func (c *confirmWith) Uses(machine.Scope) machine.Uses {
	uses := machine.Uses{Outcomes: []machine.OutcomeUse{
		{Name: machine.Confirmed},
		{Name: machine.Rejected, Writes: written(c.Comment)},
	}}
	uses.Holds = holdComment(c.Comment)
	c.expiry().addTo(&uses)
	return uses
}

// holdComment says that the variable for what a no said must hold text.
func holdComment(name machine.VarRef) []machine.Hold {
	if name == "" {
		return nil
	}
	return []machine.Hold{{Path: "comment", Var: string(name), Type: "string", Named: "what a no said"}}
}

func (confirm) Handle(_ context.Context, step *engine.Step) (machine.Outcome, error) {
	with := engine.With[*confirmWith](step)
	question, err := step.Render(with.Question)
	if err != nil {
		return "", err
	}
	answer, err := askYesNo(step, question, with.Timeout)
	switch {
	case err != nil:
		return "", err
	case answer.Expired:
		return with.expiry().expired(language(step))
	case answer.Yes():
		return machine.Confirmed, nil
	}
	return machine.Rejected, storeComment(step, with.Comment, answer)
}

// askYesNo asks for yes or no.
func askYesNo(step *engine.Step, question string, timeout machine.Duration) (engine.Answer, error) {
	return step.Ask(engine.Question{Kind: history.KindConfirm, Text: question, Timeout: time.Duration(timeout)})
}

// bareNo is a no that gives no reason.
var bareNo = regexp.MustCompile(`^(?i)\s*(no|n|nope|nah|no,? thanks|no,? thank you|否|不|不是|不行|不要|不用|不对|不可以|不好)\s*[.!。！]*\s*$`)

// storeComment writes what a no said. A bare no says nothing: it takes back what an earlier one said, so that the variable
// has its start value again, and none where it has none.
func storeComment(step *engine.Step, name machine.VarRef, answer engine.Answer) error {
	if name != "" && bareNo.MatchString(answer.Text) {
		decl, _ := step.Machine().Variable(string(name))
		return write(step, name, decl.Default)
	}
	return write(step, name, answer.Text)
}
