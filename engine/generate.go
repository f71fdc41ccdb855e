package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/flows/machine"
)

// Task is what a handler wants of its state's model: one exchange over the state's view.
type Task struct {
	// Label names the exchange in the history, such as extract. A re-entered handler must come with the same label.
	Label string

	// Text says what is to be done. It is followed by the variables and attempts that the state shows. What never changes
	// stands first in it.
	Text string

	// Data is what the text is about, such as what a human wrote. It stands below the text, and is cut inside where it is
	// too long for the room that there is; the text itself never is.
	Data []Datum

	// Answer is the schema of the answer, an object; nil: plain text.
	Answer machine.Schema

	// Check looks at an answer that fits the schema, or at the text where there is none. What it gives is told to the model,
	// which is asked again; "": it is good. It is not asked about recorded answers. Nil: any answer is good.
	Check func(answer machine.Value) (wrong string)

	// Tools offers the state's tools. The exchange may then end with calls instead of an answer.
	Tools bool

	// Aside keeps the exchange out of the messages: its answer is for the handler, and no part of the conversation.
	Aside bool
}

// Datum is one thing that a task is about.
type Datum struct {
	Name  string // what it is, in words for the model
	Value machine.Value
}

// Generation is how an exchange ended: with calls to make, with an answer, or with a problem.
type Generation struct {
	// Calls are to be made with Step.Call, in one batch, before the next exchange. Nil: the model gave its answer.
	Calls []Call

	Text   string        // the answer as text
	Answer machine.Value // the answer by the task's schema, nil where it wants text

	// Thought is why the model does so, in its own words, "" where it did not say.
	Thought string

	// Problem says why there is no answer in spite of asking again: kind invalid (it does not fit), cut (it was too long
	// for the token limit) or blocked (the provider refuses to answer this).
	Problem machine.Problem
}

// maxAgain is how often a model is asked again, in one exchange, for an answer that will not do.
const maxAgain = 2

// Generate makes one exchange with the state's model over its view. An answer that will not do is asked for again, twice at
// most. It returns an error, with which the handler returns, when the model cannot be called: its key is missing, its
// endpoint is out of order, a limit of the run is reached.
func (st *Step) Generate(task Task) (Generation, error) {
	past, key, err := st.begin()
	if err != nil {
		return Generation{}, err
	}
	x := &exchange{st: st, task: task, key: key, ordinal: st.ordinal - 1}
	if err := x.recall(past); err != nil {
		return Generation{}, err
	}
	for x.last() == nil || !x.last().Final() {
		if err := x.ask(); err != nil {
			return Generation{}, err
		}
	}
	return x.generation(), nil
}

// exchange is one Generate effect.
type exchange struct {
	st      *Step
	task    Task
	key     string
	ordinal int64
	answers []*history.ModelCalled // so far
	open    model.Opened

	summarised bool // a summary was made, or tried
}

// recall takes over what is recorded of the exchange.
func (x *exchange) recall(past []history.Event) error {
	for _, ev := range past {
		switch d := ev.Data.(type) {
		case *history.ModelCalled:
			if d.Label != x.task.Label {
				return x.st.diverged(x.key, "asked its model ("+x.task.Label+")", ev)
			}
			x.answers = append(x.answers, d)
		case *history.Summarised:
			x.summarised = true
		case *history.AttemptFailed:
		default:
			return x.st.diverged(x.key, "asked its model ("+x.task.Label+")", ev)
		}
	}
	return nil
}

func (x *exchange) last() *history.ModelCalled {
	if len(x.answers) == 0 {
		return nil
	}
	return x.answers[len(x.answers)-1]
}

// ask makes one call and records its answer.
func (x *exchange) ask() error {
	st := x.st
	if h := st.goLive(); h != nil {
		return st.kill(h)
	}
	if err := st.check(); err != nil {
		return err
	}
	if st.Model() != machine.ModelReady {
		return st.NoModel()
	}
	open, err := st.openModel()
	if err != nil {
		return x.failed(err, prompt{})
	}
	x.open = open
	p, err := x.prompt()
	if err != nil {
		return err
	}
	began := st.s.eng.cfg.Now()
	resp, cached, err := x.call(p)
	if err != nil {
		return x.failed(err, p)
	}
	called := x.called(resp, p)
	called.Cached, called.MS = cached, max(st.s.eng.cfg.Now().Sub(began).Milliseconds(), 0)
	if err := x.record(called, p); err != nil {
		return err
	}
	if good := x.last(); good.Final() && good.Problem.None() && !cached && good.By == "" {
		x.putCached(p, resp)
	}
	return nil
}

// record commits an answer.
func (x *exchange) record(called *history.ModelCalled, p prompt) error {
	key := x.key
	if n := len(x.answers); n > 0 {
		key = fmt.Sprintf("%s/again%d", x.key, n)
	}
	events := []history.Event{{Key: key, Data: called}}
	if w := x.warning(called); w != nil {
		events = append([]history.Event{{Data: w}}, events...)
	}
	evs, err := x.st.write(change{blobs: p.blobs, events: events})
	if err != nil {
		return err
	}
	x.answers = append(x.answers, evs[len(evs)-1].Data.(*history.ModelCalled))
	return nil
}

// warning says, once in a run, that the endpoint seems to have cut what it was sent.
func (x *exchange) warning(called *history.ModelCalled) *history.Warned {
	name := called.Answerer()
	if called.Cached || called.Estimated || !tokens.Short(called.Counted, called.PromptTokens) || slices.Contains(x.st.snap.Warned, history.KindShortPrompt+" "+name) {
		return nil
	}
	return &history.Warned{Kind: history.KindShortPrompt, Model: name, Message: fmt.Sprintf(
		"the request had about %d tokens, and the endpoint reports %d: it seems to have cut the prompt; set the model's window to the server's, or the server's to what the model takes",
		called.Counted, called.PromptTokens)}
}

// called is the event of a response.
func (x *exchange) called(resp model.Response, p prompt) *history.ModelCalled {
	r := readResponse(x.task, resp, x.st.s.words())
	d := x.event(p)
	d.Model, d.Finish, d.Notes = resp.Model, string(resp.Finish), resp.Notes
	d.Text, d.Thought, d.Reasoning, d.Aloud, d.Answer, d.Remark = r.text, r.thought, r.reasoning, r.aloud, r.answer, r.remark
	for i, c := range r.calls {
		d.Calls = append(d.Calls, history.ModelCall{ID: callID(x.st.snap.Now.Step, x.ordinal, i), Tool: c.Name, Args: c.Args})
	}
	d.ModelUsage, d.By = modelUsage(resp), resp.By
	if resp.InText {
		d.Request.Protocol = history.ProtocolJSON
	}
	for _, note := range resp.Notes {
		d.NoSchema = d.NoSchema || note == model.NoteNoSchema
	}
	switch {
	case r.wrong == "":
	case len(x.answers) < maxAgain:
		d.Wrong, d.Text = r.wrong, shownAgain(d.Text, p)
	default:
		d.Problem = machine.Problem{Kind: r.kind, Message: fmt.Sprintf("the model gave no answer that can be used, in %d tries: %s",
			len(x.answers)+1, r.why)}
	}
	return d
}

// againPart is the part of a request, one of so many, that an answer may take which the model is shown again.
const againPart = 8

// shownAgain is an answer that will not do as the model is shown it again: without reasoning, and cut where it is long.
func shownAgain(text string, p prompt) string {
	_, answer := model.SplitReasoning(text)
	short, ok := tokens.Cut(p.room.counter, answer, p.room.total/againPart)
	if !ok {
		return ""
	}
	return short
}

// event is what every answer's event says.
func (x *exchange) event(p prompt) *history.ModelCalled {
	return &history.ModelCalled{Label: x.task.Label, Name: x.st.state.ModelName, Turn: x.st.snap.Turns + 1, Request: p.ref,
		Aside: x.task.Aside, Counted: p.counted}
}

func modelUsage(resp model.Response) history.ModelUsage {
	return history.ModelUsage{PromptTokens: resp.Usage.PromptTokens, CompletionTokens: resp.Usage.CompletionTokens,
		CachedTokens: resp.Usage.CachedTokens, ReasoningTokens: resp.Usage.ReasoningTokens, Cost: resp.Cost, Estimated: resp.Estimated}
}

// generation is what the handler gets of the last answer.
func (x *exchange) generation() Generation {
	d := x.last()
	g := Generation{Text: d.Text, Answer: machine.CloneValue(d.Answer), Thought: d.Thought, Problem: d.Problem}
	for _, c := range d.Calls {
		g.Calls = append(g.Calls, Call{Tool: c.Tool, Args: rawArgs(c.Args), id: c.ID})
	}
	return g
}

// call finds the answer in the cache, which costs nothing, or makes the call if the run may.
func (x *exchange) call(p prompt) (resp model.Response, cached bool, err error) {
	if resp, ok := x.cached(p); ok {
		if watch := x.st.s.eng.cfg.Stream; watch != nil && resp.Message.Text != "" {
			watch(x.st.RunID(), x.st.state.Name, x.st.mask().Text(x.st.s.eng.cfg.Secrets.Text(resp.Message.Text)))
		}
		return resp, true, nil
	}
	if err := x.st.modelCallsLeft(); err != nil {
		return model.Response{}, false, err
	}
	resp, err = x.generate(p.request, true)
	return resp, false, err
}

// generate sends a request. Tries that fail are recorded as they happen.
func (x *exchange) generate(req model.Request, watched bool) (model.Response, error) {
	st := x.st
	ctx, stop := context.WithCancelCause(st.ctx)
	defer stop(nil)
	shown, masked := st.s.eng.cfg.Secrets.Stream(), st.mask().Stream()
	watch := func(text string) {
		if text != "" {
			st.s.eng.cfg.Stream(st.RunID(), st.state.Name, text)
		}
	}
	if watched = watched && st.s.eng.cfg.Stream != nil; watched {
		req.Stream = func(text string) { watch(masked.Add(shown.Add(text))) }
	}
	req.Failed = func(a model.Attempt) {
		shown, masked = st.s.eng.cfg.Secrets.Stream(), st.mask().Stream() // what was held back of this try may be half a secret
		if err := x.attempt(a.Err, a); err != nil {                       // which has killed the step
			stop(err)
		}
	}
	resp, err := x.open.Generate(ctx, req)
	if watched && err == nil {
		watch(masked.Add(shown.End()) + masked.End())
	}
	return resp, err
}

// attempt records a failed try.
func (x *exchange) attempt(err error, a model.Attempt) error {
	return x.st.commit(history.Event{Key: x.key, Data: &history.AttemptFailed{Problem: machine.Problem{Kind: failureKind(err), Message: err.Error()},
		NotDone: true, Model: x.st.state.ModelName, By: a.Model, Turn: x.st.snap.Turns + 1, Attempt: a.Number, WaitMS: a.Wait.Milliseconds()}})
}

// failureKind is the class of an error of a model.
func failureKind(err error) string {
	var e *model.Error
	if errors.As(err, &e) {
		return string(e.Class)
	}
	return kindOutage
}

// failed ends the exchange for a call that gave no answer; p is what was sent. What the provider refuses to
// answer is a result, which the handler gets; anything else ends the step.
func (x *exchange) failed(err error, p prompt) error {
	st := x.st
	var e *model.Error
	switch {
	case st.halt != nil:
		return st.halt
	case !errors.As(err, &e):
		if dead := st.check(); dead != nil {
			return dead
		}
		return st.kill(stopped(history.CodeHandler, "this is a fault of the program that made the model; go on with: flowctl resume "+st.s.id,
			"state %s: model %s: %v", st.state.Name, st.state.ModelName, err))
	case e.Class == model.Blocked:
		d := x.event(p)
		d.Problem = machine.Problem{Kind: kindBlocked, Message: e.Error()}
		d.Model, d.By, d.ModelUsage = e.ID, e.By, modelUsage(model.Response{Usage: e.Usage, Cost: e.Cost})
		if e.InText {
			d.Request.Protocol = history.ProtocolJSON
		}
		return x.record(d, p)
	}
	if err := x.attempt(e, model.Attempt{Model: e.By, Number: max(e.Attempts, 1), Err: e}); err != nil {
		return err
	}
	message := fmt.Sprintf("model %s: %v", st.state.ModelName, e)
	switch {
	case e.Class == model.Script:
		return st.kill(stopped(history.CodeOutage, "mend the script, and go on with: flowctl resume "+st.s.id,
			"state %s: %s", st.state.Name, message))
	case e.Class == model.Authentication && e.Status == 0:
		return st.kill(&halt{kind: haltMoved, outcome: machine.Error, problem: machine.Problem{Kind: kindNoKey, Message: message}})
	}
	return st.kill(&halt{kind: haltMoved, outcome: machine.Error, problem: machine.Problem{Kind: kindOutage, Message: message}})
}

// openModel opens the model that was recorded at the step's entry.
func (st *Step) openModel() (model.Opened, error) {
	env := st.snap.Now.Env
	return st.s.eng.cfg.Models.Open(st.s.m, model.Use{Name: st.state.ModelName, ID: env.ModelID, Script: env.Script})
}

// NoModel ends the step because the state needs a model and has none that can be called: by the state's line for outcome
// error, else the run stops (code no_key).
func (st *Step) NoModel() error {
	if st.halt != nil {
		return st.halt
	}
	message := fmt.Sprintf("state %s needs a model, and the flow has none for it", st.state.Name)
	if st.Model() != machine.ModelNone {
		message = fmt.Sprintf("state %s needs a model, and no key for one is set (%s)", st.state.Name,
			strings.Join(st.s.eng.keyNames(st.s.m, st.state.ModelName), " or "))
	}
	return st.kill(&halt{kind: haltMoved, outcome: machine.Error, problem: machine.Problem{Kind: kindNoKey, Message: message}})
}

// kindNoKey is the kind of last.error where a model's key is missing.
const kindNoKey = "no_key"

func (e *Engine) keyNames(m *machine.Machine, name string) []string {
	if e.cfg.Models == nil {
		return nil
	}
	return e.cfg.Models.KeyNames(m, name)
}
