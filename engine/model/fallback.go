package model

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Fallback asks the first of its models, and the next one when that is out of order for this flow: it failed in a way
// that can pass and did not pass (rate, server, network), its account is empty (quota), its key was refused
// (authentication), or it gave what is no answer (malformed). A request that was refused for what it says (bad request,
// blocked) would be no better elsewhere, so its error is returned at once. Each change is told by Request.Failed and by a
// note of the response.
type Fallback struct {
	Models []Named // at least one
}

// Named is a model with the name that the flow gives it.
type Named struct {
	Name  string
	Model Model
}

// Generate implements Model. When all have failed, the error is of the first model that may pass, or else of the first;
// it says how each of them failed, and its Until is the earliest.
func (f *Fallback) Generate(ctx context.Context, req Request) (Response, error) {
	var failed []*Error
	for i, m := range f.Models {
		resp, err := m.Model.Generate(ctx, named(req, m.Name, i))
		if err == nil {
			if i > 0 {
				resp.By = m.Name
				resp.Notes = append(resp.Notes[:len(resp.Notes):len(resp.Notes)], f.note(failed, i))
			}
			return resp, nil
		}
		if ctx.Err() != nil {
			return Response{}, context.Cause(ctx)
		}
		var e *Error
		switch {
		case !errors.As(err, &e):
			return Response{}, err
		case !goesOn(e.Class) && i > 0:
			out := *e
			out.By = m.Name
			return Response{}, &out
		case !goesOn(e.Class):
			return Response{}, err
		}
		failed = append(failed, e)
		if i+1 < len(f.Models) && req.Failed != nil && !e.Resting {
			named(req, m.Name, i).Failed(Attempt{Number: max(e.Attempts, 1), Err: e, Next: f.Models[i+1].Name})
		}
	}
	return Response{}, f.all(failed)
}

// named tells the failed tries of a model that stands in for another under its own name.
func named(req Request, name string, i int) Request {
	if tell := req.Failed; i > 0 && tell != nil {
		req.Failed = func(a Attempt) {
			a.Model = name
			tell(a)
		}
	}
	return req
}

func goesOn(c Class) bool {
	switch c {
	case Rate, Server, Network, Quota, Authentication, Malformed:
		return true
	}
	return false
}

func (f *Fallback) note(failed []*Error, answered int) string {
	names := make([]string, len(failed))
	for i, e := range failed {
		names[i] = fmt.Sprintf("%s (%s)", f.Models[i].Name, e.Class)
	}
	return fmt.Sprintf("%s did not answer; %s did", strings.Join(names, ", "), f.Models[answered].Name)
}

func (f *Fallback) all(failed []*Error) error {
	if len(failed) == 0 {
		return &Error{Class: BadRequest, Err: errors.New("there is no model to ask")}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	out := *failed[0]
	for _, e := range failed[1:] {
		if e.Passing() && !out.Passing() {
			out = *e
		}
	}
	var all error
	for i, e := range failed {
		one := fmt.Errorf("%s: %w", f.Models[i].Name, e.Err)
		if all == nil {
			all = one
		} else {
			all = fmt.Errorf("%w; %w", all, one)
		}
		if !e.Until.IsZero() && (out.Until.IsZero() || e.Until.Before(out.Until)) {
			out.Until = e.Until
		}
	}
	out.Attempts = max(out.Attempts, 1)
	out.Err = all
	return &out
}
