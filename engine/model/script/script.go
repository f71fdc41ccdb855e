package script

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"flowctl/engine/model"
	"flowctl/flows/spell"
)

// Config is a model of a flow whose provider is script.
type Config struct {
	File string `yaml:"file" flow:"required" doc:"File with the answers"`
}

// Script answers requests from a file. It does not change after Parse and is safe for concurrent use.
type Script struct {
	file    string
	answers []*answer // in written order
}

var _ model.Model = (*Script)(nil)

// answer is one entry of the file.
type answer struct {
	line, col   int // 1-based
	state       string
	visit, turn int64 // visit 0: any

	text    string
	calls   []model.Call
	failure *failure
}

// failure is an error as a script gives it.
type failure struct {
	class      model.Class
	status     int
	message    string
	retryAfter time.Duration
}

// Generate implements model.Model.
func (s *Script) Generate(ctx context.Context, req model.Request) (model.Response, error) {
	if ctx.Err() != nil {
		return model.Response{}, context.Cause(ctx)
	}
	found := s.find(req.Origin)
	if len(found) == 0 {
		return model.Response{}, &model.Error{Class: model.Script, Err: errors.New(s.miss(req.Origin))}
	}
	a := found[min(max(req.Origin.Attempt, 1), int64(len(found)))-1]
	if f := a.failure; f != nil {
		return model.Response{}, &model.Error{Class: f.class, Status: f.status, RetryAfter: f.retryAfter,
			Err: fmt.Errorf("%s:%d:%d: %s", s.file, a.line, a.col, f.message)}
	}
	if req.Stream != nil && a.text != "" {
		req.Stream(a.text)
	}
	return model.Response{
		Message: model.Message{Role: model.Assistant, Text: a.text, Calls: slices.Clone(a.calls)},
		Finish:  model.Stop, Model: "script",
	}, nil
}

// find gives the answers to a request, one for each attempt.
func (s *Script) find(o model.Origin) []*answer {
	var bound, free []*answer
	for _, a := range s.answers {
		switch {
		case a.state != o.State || a.turn != o.Turn:
		case a.visit == o.Visit:
			bound = append(bound, a)
		case a.visit == 0:
			free = append(free, a)
		}
	}
	if s.binds(o) {
		return bound
	}
	return free
}

// binds says whether some answer is bound to this visit of this state.
func (s *Script) binds(o model.Origin) bool {
	return slices.ContainsFunc(s.answers, func(a *answer) bool {
		return a.state == o.State && a.visit != 0 && a.visit == o.Visit
	})
}

// miss says what was asked, and what there is.
func (s *Script) miss(o model.Origin) string {
	var same, states []string
	for _, a := range s.answers {
		if a.state == o.State {
			same = append(same, fmt.Sprintf("%s (line %d)", a.place(), a.line))
		}
		if !slices.Contains(states, a.state) {
			states = append(states, a.state)
		}
	}
	asked := fmt.Sprintf("the script %s has no answer for state %s, visit %d, turn %d", s.file, o.State, o.Visit, o.Turn)
	switch {
	case len(same) > 0:
		return fmt.Sprintf("%s; for this state it has %s", asked, strings.Join(same, ", "))
	case len(states) > 0:
		return fmt.Sprintf("%s; it has answers for %s", asked, strings.Join(states, ", "))
	}
	return asked + "; it has no answers at all"
}

// place says what an answer is for.
func (a *answer) place() string {
	if a.visit == 0 {
		return fmt.Sprintf("any visit, turn %d", a.turn)
	}
	return fmt.Sprintf("visit %d, turn %d", a.visit, a.turn)
}

// Strangers lists the answers for states that a flow does not have, as *Problem, in written order: nobody will ever ask for
// them.
func (s *Script) Strangers(states []string) []*Problem {
	var out []*Problem
	for _, a := range s.answers {
		if slices.Contains(states, a.state) {
			continue
		}
		message := "the flow has no state " + a.state
		if near := spell.Nearest(a.state, states); near != "" {
			message += ", did you mean " + near + "?"
		}
		out = append(out, &Problem{File: s.file, Line: a.line, Col: a.col, Message: message})
	}
	return out
}

// Leftovers lists the answers that none of a run's requests got, one line for each, in written order. asked are the
// requests that the run has made, over all the processes that it ran in. An answer that an Attempt says was not reached
// is left over; a request with Attempt 0 is taken to have used all answers of its turn.
func (s *Script) Leftovers(asked []model.Origin) []string {
	used := map[*answer]bool{}
	for _, o := range asked {
		found := s.find(o)
		if o.Attempt > 0 {
			found = found[:min(o.Attempt, int64(len(found)))]
		}
		for _, a := range found {
			used[a] = true
		}
	}
	var out []string
	for _, a := range s.answers {
		if !used[a] {
			out = append(out, fmt.Sprintf("%s:%d:%d: nobody asked for this answer: state %s, %s", s.file, a.line, a.col, a.state, a.place()))
		}
	}
	return out
}
