package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"

	"flowctl/engine/history"
	"flowctl/engine/model"
	"flowctl/engine/model/tokens"
	"flowctl/engine/view"
	"flowctl/flows/machine"
)

// room is what the layers of a request may take, in tokens.
type room struct {
	counter   corrected
	total     int64 // of the request: the model's window less the answer
	budget    machine.Budget
	reasoning bool
}

// The part of a model's window, and the most tokens, that are kept free for an answer where nobody says how long one may be.
const (
	replyPart = 4
	replyMost = 4096
)

// room measures the window of the step's model. Everything that it depends on is recorded, or declared in the flow.
func (st *Step) room(open model.Opened) room {
	id := st.snap.Now.Env.ModelID
	window := open.Window
	if window == 0 {
		known, ok := tokens.Window(id)
		if window = known; !ok {
			window = tokens.DefaultWindow
		}
	}
	reply := open.Reply
	if reply == 0 {
		reply = min(window/replyPart, replyMost)
	}
	return room{total: max(window-reply, 0), budget: st.state.View.Budget, reasoning: open.SendsReasoning,
		counter: corrected{st.s.counter(id), st.snap.Corrections[st.state.ModelName]}}
}

// counter gives the counter of a model, which remembers the texts of the run: they come again in every request.
func (s *session) counter(id string) tokens.Counter {
	c, ok := s.counts[id]
	if !ok {
		c = &remembered{inner: tokens.For(id), seen: map[[32]byte]int64{}}
		s.counts[id] = c
	}
	return c
}

// corrected is a counter that has learnt from reports.
type corrected struct {
	tokens.Counter
	by tokens.Correction
}

// Count implements tokens.Counter.
func (c corrected) Count(text string) int64 { return c.by.Apply(c.Counter.Count(text)) }

// remembered is a counter that counts a long text once, and knows it by its hash. It belongs to one goroutine.
type remembered struct {
	inner tokens.Counter
	seen  map[[32]byte]int64
}

// What remembered keeps: texts of some length, and not for ever.
const (
	rememberFrom = 64 // bytes
	rememberMost = 1 << 16
)

// Count implements tokens.Counter.
func (r *remembered) Count(text string) int64 {
	if len(text) < rememberFrom {
		return r.inner.Count(text)
	}
	hash := sha256.Sum256([]byte(text))
	n, ok := r.seen[hash]
	if !ok {
		if len(r.seen) >= rememberMost {
			clear(r.seen)
		}
		n = r.inner.Count(text)
		r.seen[hash] = n
	}
	return n
}

// layers puts the layers of a request together, each within its room.
type layers struct {
	room    room
	system  int64 // tokens taken by the system text and the tools
	task    int64 // by the task text and the examples
	flat    bool
	answers int64 // by what stands behind the messages
}

// setSystem measures what is never cut: a request with nothing else in it.
func (l *layers) setSystem(req model.Request) error {
	l.system = tokens.Request(l.room.counter, req, false)
	if l.system > l.room.total {
		return &view.BudgetError{Layer: "system", Need: l.system, Limit: l.room.total}
	}
	// A budget of its own is measured by the texts alone: what an endpoint reports beyond them must not stop a run that went on.
	need := tokens.Request(l.room.counter.Counter, req, false)
	if b := l.room.budget.System; b > 0 && need > b {
		return &view.BudgetError{Layer: "system", Need: need, Limit: b}
	}
	return nil
}

// fitTask gives the text of the task layer. Without a budget of its own it leaves the messages what they take, up to half of
// what there is.
func (l *layers) fitTask(t view.Task, h view.Headings, examples []model.Message, messages int64) (string, error) {
	c := l.room.counter
	frame := tokens.Message(c, model.Message{Role: model.User}, false)
	for _, m := range examples {
		frame += tokens.Message(c, m, false)
	}
	left := l.room.total - l.system
	limit := left - min(messages, left/2)
	if b := l.room.budget.Task; b > 0 {
		limit = min(left, b)
	}
	text, err := t.Fit(h, c, limit-frame)
	if err != nil {
		var full *view.BudgetError
		if errors.As(err, &full) {
			full.Need, full.Limit = full.Need+frame, limit
		}
		return "", err
	}
	l.task = frame + c.Count(text)
	return text, nil
}

// window gives the room for messages; it is negative where the other layers leave none.
func (l *layers) window() view.Window {
	limit := l.room.total - l.system - l.task - l.answers
	if b := l.room.budget.Recent; b > 0 {
		limit = min(limit, b)
	}
	return view.Window{Counter: l.room.counter, Limit: limit, Flat: l.flat, Reasoning: l.room.reasoning}
}

// overBudget stops the run for a layer that has no room.
func (st *Step) overBudget(err error) error {
	var full *view.BudgetError
	if !errors.As(err, &full) {
		return st.failed(err)
	}
	advice := fmt.Sprintf("give view.budget.%s of the state more, or its model a larger window", full.Layer)
	if full.Limit <= 0 {
		advice = "give its model a larger window, or a smaller max_tokens: the answer has a part of the window"
	}
	return st.kill(stopped(history.CodeLimit, advice+", and go on with: flowctl resume "+st.s.id+" --flow FILE",
		"state %s: %v", st.state.Name, full))
}
