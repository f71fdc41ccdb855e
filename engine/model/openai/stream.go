package openai

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"

	"flowctl/engine/model"
)

// readStream puts the events of a stream together. next gives the data of one event, and io.EOF at the end. The answer is
// whole when a finish reason has come, which whole is told once; what may still follow are figures of usage, and whatever
// ends the stream then, the answer is there.
func readStream(next func() ([]byte, error), watch func(string), whole func()) (model.Response, error) {
	var s streamed
	for {
		data, err := next()
		switch {
		case err == nil:
			ended := s.answer.finish != ""
			if err = s.event(data, watch); !ended && s.answer.finish != "" {
				whole()
			}
		case s.answer.finish != "":
			return s.response()
		case errors.Is(err, io.EOF):
			err = &model.Error{Class: model.Network, Err: errors.New("its stream ended before the answer did: no finish reason came")}
		}
		if err != nil {
			return model.Response{}, err
		}
	}
}

// streamed is an answer of which a part has come.
type streamed struct {
	answer answer
	text   strings.Builder
	reason strings.Builder
	calls  []*partCall
	model  loose
	usage  *usage
}

// partCall is a call of which a part has come.
type partCall struct {
	index    int
	id, name string
	args     strings.Builder
}

func (s *streamed) event(data []byte, watch func(string)) error {
	var r reply
	if err := json.Unmarshal(data, &r); err != nil {
		return malformed("its stream cannot be read (%v) at %s", err, readable(string(data)))
	}
	if r.Model != "" {
		s.model = r.Model
	}
	if r.Usage != nil {
		s.usage = r.Usage
	}
	c, ok := firstChoice(r.Choices)
	if !ok {
		return nil
	}
	if p, ok := problemOf(c.Error); ok {
		return p.failure()
	}
	if c.FinishReason != "" && !sticks(s.answer.finish) {
		s.answer.finish = string(c.FinishReason)
	}
	delta := c.Delta
	if delta == nil {
		delta = c.Message
	}
	if delta == nil {
		return nil
	}
	s.reason.WriteString(delta.reasoning())
	s.answer.refusal += delta.refusal()
	for _, part := range delta.calls() {
		s.call(part)
	}
	if text := delta.Content.text; text != "" {
		s.text.WriteString(text)
		watch(text)
	}
	return nil
}

// firstChoice gives the only choice that was asked for: of several, the first.
func firstChoice(choices []choice) (choice, bool) {
	for _, c := range choices {
		if n, ok := c.Index.number(); !ok || n == 0 {
			return c, true
		}
	}
	return choice{}, false
}

func (s *streamed) response() (model.Response, error) {
	slices.SortStableFunc(s.calls, func(a, b *partCall) int { return a.index - b.index })
	for _, c := range s.calls {
		s.answer.calls = append(s.answer.calls, model.Call{ID: c.id, Name: c.name, Args: c.args.String()})
	}
	s.answer.text, s.answer.reasoning = s.text.String(), s.reason.String()
	return s.answer.response(s.model, s.usage)
}

// call puts a part of a call where it belongs.
func (s *streamed) call(part call) {
	name := string(part.Function.Name)
	to := s.find(part)
	if to == nil {
		index, ok := part.Index.number()
		if !ok {
			index = len(s.calls)
		}
		to = &partCall{index: index, id: string(part.ID)}
		s.calls = append(s.calls, to)
	}
	if to.id == "" {
		to.id = string(part.ID)
	}
	if name != to.name && to.args.Len() == 0 {
		to.name += name // a name may come in parts, but not again and again
	}
	to.args.WriteString(string(part.Function.Arguments))
}

// find gives the call that a part continues, nil if it begins one. The index decides, and where it is missing, the id.
// Some endpoints give every call the same index: then another id, or a name behind arguments that are whole, begins a
// call.
func (s *streamed) find(part call) *partCall {
	index, indexed := part.Index.number()
	id, name := string(part.ID), string(part.Function.Name)
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := s.calls[i]
		switch {
		case indexed && c.index != index:
		case id != "" && c.id == id:
			return c
		case !indexed && (id != "" || name != ""):
			// Without an index only an equal id continues a call.
		case name == "":
			return c // also where an endpoint makes up a new id for every part
		case id != "" && c.id != "", c.full() && part.Function.Arguments != "":
			return nil
		default:
			return c
		}
	}
	return nil
}

// full says whether the arguments of a call are whole.
func (c *partCall) full() bool { return json.Valid([]byte(c.args.String())) }
