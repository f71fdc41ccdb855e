package engine

import (
	"context"
	"errors"
	"time"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Question is what a handler asks a human.
type Question struct {
	Kind    history.QuestionKind // KindConfirm or KindAsk
	Text    string
	Schema  machine.Schema // of the answer of KindAsk without choices; nil takes any text
	Choices []history.Choice
	Timeout time.Duration // the human's time; 0: for ever

	// Secret says that the answer is for a secret variable: no model is shown it, no later state hears it, and no text of the
	// engine repeats it. A choice without value is no secret.
	Secret bool
}

// Answer is what a human said.
type Answer struct {
	Value   machine.Value // of the question's schema: true or false of a confirmation, the value given with a choice
	Text    string        // as it was said; the reason of a no
	Choice  string        // name of the chosen one
	Expired bool          // nobody answered in time
	By      history.By
}

// Yes says whether a confirmation was given.
func (a Answer) Yes() bool { return a.Value == true }

// Ask gives a human's answer. Where there is none yet the run waits: Ask returns an error, the handler returns with it,
// and is called again when the answer is there. An answer that an interrupt of the flow catches ends the step as well.
func (st *Step) Ask(q Question) (Answer, error) {
	past, key, err := st.begin()
	if err != nil {
		return Answer{}, err
	}
	if len(past) == 0 {
		return Answer{}, st.suspend(st.asked(key, q))
	}
	asked, ok := past[0].Data.(*history.Asked)
	if !ok || asked.Kind != q.Kind {
		return Answer{}, st.diverged(key, "asked a human ("+string(q.Kind)+")", past[0])
	}
	for _, ev := range past[1:] {
		switch d := ev.Data.(type) {
		case *history.Answered:
			if d.Interrupt != "" {
				return Answer{}, st.kill(&halt{kind: haltMoved, outcome: machine.InterruptOutcome(d.Interrupt)})
			}
			return Answer{Value: d.Value, Text: d.Text, Choice: d.Choice, By: d.By}, nil
		case *history.Expired:
			return Answer{Expired: true}, nil
		}
	}
	if asked.Due != nil && !st.s.eng.now().Before(*asked.Due) {
		if err := st.commit(history.Event{Key: key, Data: &history.Expired{}}); err != nil {
			return Answer{}, err
		}
		return Answer{Expired: true}, nil
	}
	return Answer{}, st.suspend()
}

func (st *Step) asked(key string, q Question) history.Event {
	d := &history.Asked{Kind: q.Kind, Question: st.mask().Text(q.Text), Choices: q.Choices, Secret: q.Secret,
		Free: q.Kind == history.KindAsk && len(q.Choices) == 0}
	switch {
	case q.Kind == history.KindConfirm:
		d.Schema = machine.Values{"type": "boolean"}
	case len(q.Choices) > 0:
		names := make([]machine.Value, len(q.Choices))
		for i, c := range q.Choices {
			names[i] = c.Name
		}
		d.Schema = machine.Values{"enum": names}
	case q.Schema != nil:
		d.Schema = schemaValue(q.Schema)
	default:
		d.Schema = machine.Values{"type": "string"}
	}
	if q.Timeout > 0 {
		due := st.s.eng.now().Add(q.Timeout)
		d.Due = &due
	}
	return history.Event{Key: key, Data: d}
}

// schemaValue gives a schema as a value, for an event.
func schemaValue(s machine.Schema) machine.Value {
	v, err := machine.DecodeValue(s.JSON())
	if err != nil {
		return nil
	}
	return v
}

// suspend records new questions, if any, and that the run waits, and gives the run back.
func (st *Step) suspend(questions ...history.Event) error {
	if h := st.goLive(); h != nil {
		return st.kill(h)
	}
	if errors.Is(context.Cause(st.ctx), errCancelled) {
		return st.kill(&halt{kind: haltCancelled})
	}
	if len(questions) == 0 && st.snap.Status == store.Waiting {
		if err := st.s.release(); err != nil {
			return st.failed(err)
		}
		return st.kill(&halt{kind: haltSuspended})
	}
	waiting := &history.RunWaiting{}
	due := st.snap.Due()
	for _, ev := range questions {
		if d := ev.Data.(*history.Asked).Due; d != nil && (due.IsZero() || d.Before(due)) {
			due = *d
		}
	}
	if !due.IsZero() {
		waiting.Due = &due
	}
	if _, err := st.write(change{events: append(questions, history.Event{Data: waiting}), release: true}); err != nil {
		return err
	}
	return st.kill(&halt{kind: haltSuspended})
}
