package engine

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"flowctl/engine/history"
	"flowctl/flows/machine"
	"flowctl/flows/match"
	"flowctl/flows/schema"
	"flowctl/store"
)

// Reply is an answer to a pending question.
type Reply struct {
	Ask      string        // the question's id, see Snapshot.Pending
	Yes      *bool         // of a confirmation or an approval
	Text     string        // as the human wrote it; beside a no, the reason
	Value    machine.Value // given as a value instead of text, if HasValue
	HasValue bool
	Verdict  history.Verdict // of a doubt; Value is the result then
	By       history.By      // "" is a person
}

// Answer records the answer to a pending question; Advance then goes on with the run, which belongs to this engine until
// then. Answers that do not fit are a *UsageError: nothing is recorded and the question stays pending. So is a question
// that never was. ErrNotPending: it was answered, or has expired. ErrBusy, ErrFinished, ErrUnknownRun, ErrStore as usual.
func (e *Engine) Answer(ctx context.Context, run string, r Reply) error {
	s, h, err := e.grab(ctx, run)
	if err != nil {
		return err
	}
	if h != nil {
		e.drop(s)
		return usagef(h.stop.Hint, "%s", h.stop.Message)
	}
	ev, err := s.answer(ctx, r)
	if err != nil {
		e.drop(s)
		return err
	}
	if _, err := e.commitSurely(ctx, s, change{events: []history.Event{ev}}); err != nil {
		e.drop(s)
		return storeError(err)
	}
	s.asleep = s.asleep && s.head.Status != store.Running
	e.park(s)
	return nil
}

// answer makes the event of a reply.
func (s *session) answer(ctx context.Context, r Reply) (history.Event, error) {
	q, ok := s.head.Question(r.Ask)
	if !ok {
		return history.Event{}, s.notPending(ctx, r.Ask)
	}
	if q.Due != nil && !s.eng.now().Before(*q.Due) {
		return history.Event{}, fmt.Errorf("%w: %s at %s; go on with: flowctl resume %s", ErrExpired, q.ID,
			q.Due.Format("2006-01-02T15:04:05Z"), s.id)
	}
	if r.By == "" {
		r.By = history.ByPerson
	}
	if q.Kind == history.KindInDoubt {
		return s.resolveDoubt(q, r)
	}
	if r.Verdict != "" {
		return history.Event{}, usagef("--done, --not-done and --give-up are for questions of kind in_doubt",
			"question %s is of kind %s", q.ID, q.Kind)
	}
	v, err := machine.Normalize(r.Value)
	if err != nil {
		return history.Event{}, usagef("give JSON", "the answer cannot be stored: %v", err)
	}
	r.Value = v
	d, err := s.fit(q, r)
	if err != nil {
		return history.Event{}, err
	}
	d.By = r.By
	d.Secret = q.Secret && (d.Choice == "" || d.Value != nil)
	return history.Event{Key: q.ID, Data: d}, nil
}

// notPending tells a question that was answered from one that never was.
func (s *session) notPending(ctx context.Context, ask string) error {
	rows, err := s.eng.cfg.Store.Events(ctx, s.id, 0, 0)
	if err != nil {
		return readError(ctx, err)
	}
	for _, row := range rows {
		if row.Key == ask && row.Type == string(history.TypeAsked) {
			return fmt.Errorf("%w: %s of run %s", ErrNotPending, ask, s.id)
		}
	}
	hint := "nothing is asked now"
	if len(s.head.Pending) > 0 {
		ids := make([]string, len(s.head.Pending))
		for i, q := range s.head.Pending {
			ids[i] = q.ID
		}
		hint = "asked now: " + strings.Join(ids, ", ")
	}
	return usagef(hint, "run %s has no question %s", s.id, ask)
}

func (s *session) resolveDoubt(q history.Question, r Reply) (history.Event, error) {
	switch r.Verdict {
	case history.Done, history.NotDone, history.GiveUp:
	default:
		return history.Event{}, usagef("say --done (with --json RESULT if it gave one), --not-done or --give-up",
			"question %s asks whether %s happened", q.ID, q.Tool)
	}
	d := &history.DoubtResolved{Verdict: r.Verdict, By: r.By, Secret: q.Secret}
	if r.HasValue {
		if r.Verdict != history.Done {
			return history.Event{}, usagef("give a result with --done only", "a call that was not done has no result")
		}
		v, err := machine.Normalize(r.Value)
		if err != nil {
			return history.Event{}, usagef("give JSON", "the result of %s cannot be stored: %v", q.Tool, err)
		}
		d.Value = v
	}
	return history.Event{Key: q.ID, Data: d}, nil
}

// fit makes a reply into the answer of a question, or says what does not fit.
func (s *session) fit(q history.Question, r Reply) (*history.Answered, error) {
	switch {
	case q.Kind == history.KindConfirm || q.Kind == history.KindApproval:
		return s.fitYesNo(q, r)
	case r.Yes != nil:
		w := s.words()
		return nil, s.refuse(q, w.pick("the question does not ask for yes or no", "这个问题不是问是或否"),
			w.pick("answer with a value", "请回答具体内容"))
	}
	if text, ok := r.words(); ok && q.Free {
		if name := s.interrupt(text); name != "" {
			return &history.Answered{Value: text, Text: text, Interrupt: name}, nil
		}
	}
	if len(q.Choices) > 0 {
		return s.fitChoice(q, r)
	}
	v, err := s.fitSchema(q, q.Schema, r)
	if err != nil {
		return nil, err
	}
	return &history.Answered{Value: v, Text: saidAs(r, v)}, nil
}

// refuse says what is wrong with an answer. Where several questions are asked it says of which.
func (s *session) refuse(q history.Question, what, hint string) error {
	if len(s.head.Pending) > 1 {
		what = s.words().pick("question "+q.ID+": ", "问题 "+q.ID+"：") + what
	}
	return &UsageError{What: s.head.Mask.Text(what), Hint: s.head.Mask.Text(hint)}
}

// wordsOn are the words about an answer to a question.
func (s *session) wordsOn(q history.Question) words {
	w := s.words()
	w.secret = q.Secret
	return w
}

func saidAs(r Reply, v machine.Value) string {
	if r.HasValue {
		return machine.FormatValue(v)
	}
	return r.Text
}

// words gives a reply that is text, however it was given.
func (r Reply) words() (string, bool) {
	if !r.HasValue {
		return r.Text, true
	}
	text, ok := r.Value.(string)
	return text, ok
}

// fitYesNo reads a yes or no: as such, as true or false, or in words. What stands beside a no is its reason. Words that are
// neither may be an interrupt of the flow, in a confirmation.
func (s *session) fitYesNo(q history.Question, r Reply) (*history.Answered, error) {
	w := s.wordsOn(q)
	a := &history.Answered{Text: r.Text}
	switch flag, isBool := r.Value.(bool); {
	case r.Yes != nil:
		a.Value = *r.Yes
		if *r.Yes && r.Text != "" {
			return nil, s.refuse(q, w.pick("a yes takes no value", "回答“是”时不带其他内容"), w.pick("leave it out", "请去掉它"))
		}
	case r.HasValue && isBool:
		a.Value = flag
	default:
		text, _ := r.words()
		yes, ok := match.YesNo(text, s.m.Language)
		if !ok {
			if name := s.interrupt(text); name != "" && q.Kind == history.KindConfirm {
				return &history.Answered{Value: false, Text: text, Interrupt: name}, nil
			}
			what, hint := w.neither(machine.FormatValue(r.said()))
			return nil, s.refuse(q, what, hint)
		}
		a.Value, a.Text = yes, text
	}
	if q.Kind != history.KindConfirm {
		return a, nil
	}
	if a.Text == "" {
		a.Text = w.yesNo(a.Value == true)
	}
	if a.Value != true {
		a.Interrupt = s.interrupt(a.Text)
	}
	return a, nil
}

// said is what was given, for messages.
func (r Reply) said() machine.Value {
	if r.HasValue {
		return r.Value
	}
	return r.Text
}

// interrupt gives the name of the flow's first interrupt that a free answer hits.
func (s *session) interrupt(text string) string {
	for _, in := range s.m.Interrupts {
		for _, rule := range in.Value.Match {
			if len(rule.Find(text)) > 0 {
				return in.Name
			}
		}
	}
	return ""
}

// fitChoice finds the choice that a reply names: by its name, its label, or its number in the list. Behind the name of a
// choice that takes a value the value may follow. Text that names none may be an interrupt of the flow.
func (s *session) fitChoice(q history.Question, r Reply) (*history.Answered, error) {
	text := strings.TrimSpace(machine.FormatValue(r.said()))
	same := []func(i int, c history.Choice) bool{
		func(_ int, c history.Choice) bool { return strings.EqualFold(text, c.Name) },
		func(_ int, c history.Choice) bool { return strings.EqualFold(text, c.Label) },
		func(i int, _ history.Choice) bool { return match.Same(text, strconv.Itoa(i+1)) },
		func(_ int, c history.Choice) bool { return match.Same(text, c.Name) },
		func(_ int, c history.Choice) bool { return match.Same(text, c.Label) },
	}
	for _, names := range same {
		for i, c := range q.Choices {
			if names(i, c) {
				return &history.Answered{Choice: c.Name, Text: c.Label}, nil
			}
		}
	}
	for _, c := range q.Choices {
		if word, rest, ok := strings.Cut(text, " "); ok && c.Schema != nil && strings.EqualFold(word, c.Name) {
			v, err := s.fitSchema(q, c.Schema, Reply{Text: strings.TrimSpace(rest)})
			if err != nil {
				return nil, err
			}
			return &history.Answered{Value: v, Choice: c.Name, Text: text}, nil
		}
	}
	if name := s.interrupt(text); name != "" {
		return &history.Answered{Value: text, Text: text, Interrupt: name}, nil
	}
	what, hint := s.wordsOn(q).noChoice(text, q.Choices)
	return nil, s.refuse(q, what, hint)
}

// fitSchema reads an answer by the schema of its question: text as a human writes a value of that schema, everything else,
// and text that is no such value, as it stands.
func (s *session) fitSchema(q history.Question, of machine.Value, r Reply) (machine.Value, error) {
	data, err := machine.EncodeValue(of)
	if err != nil {
		return nil, err
	}
	compiled, err := schema.Compile(data)
	if err != nil {
		return nil, usagef("", "the schema of question %s cannot be read: %v", q.ID, err)
	}
	v := r.Value
	if text, isText := r.words(); isText {
		said, ok := match.Exact(text, compiled, s.m.Language)
		if ok {
			return said, nil
		}
		v = said
		if said == nil {
			v = plainly(text, r, compiled.Info())
		}
	}
	v = compiled.Coerce(v)
	if err := compiled.Check(v); err != nil {
		what, hint := s.wordsOn(q).unfit(machine.FormatValue(r.said()), compiled.Info(), err)
		return nil, s.refuse(q, what, hint)
	}
	return v, nil
}

// plainly gives an answer that is text as it stands: a value that was given as text stays text; what a person wrote is read
// as JSON where the schema takes no text, and stays text if it is none, so that the schema says what it wants instead.
func plainly(text string, r Reply, info machine.SchemaInfo) machine.Value {
	if r.HasValue {
		return text
	}
	if v, err := ParseText(text, info); err == nil {
		return v
	}
	return text
}

// ParseText reads a text as a value of a schema: a schema that allows a string takes it as it is; objects, lists,
// numbers, true and false are read as JSON.
func ParseText(text string, info machine.SchemaInfo) (machine.Value, error) {
	if info.Allows("string") && len(info.Types) > 0 || len(info.Types) == 0 && len(info.Enum) == 0 {
		return text, nil
	}
	for _, word := range info.Enum {
		if word == machine.Value(text) {
			return text, nil
		}
	}
	v, err := machine.DecodeValue([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("expected %s, got %q", wanted(info), text)
	}
	return v, nil
}

func wanted(info machine.SchemaInfo) string {
	if len(info.Enum) > 0 {
		words := make([]string, len(info.Enum))
		for i, w := range info.Enum {
			words[i] = machine.FormatValue(w)
		}
		return "one of " + strings.Join(words, ", ")
	}
	return strings.Join(info.Types, " or ")
}
