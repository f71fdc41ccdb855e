package model

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func TestAModelThatFailedIsLeftAlone(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		name   string
		err    error
		rest   time.Duration // 0: none
		passes bool
	}{
		{"asked to wait", &Error{Class: Rate, Until: now.Add(300 * time.Second), Err: errors.New("x")}, 300 * time.Second, true},
		{"out of order", &Error{Class: Server, Err: errors.New("x")}, shortRest, true},
		{"wrong key", &Error{Class: Authentication, Err: errors.New("x")}, longRest, true},
		{"bad request", &Error{Class: BadRequest, Err: errors.New("x")}, 0, false},
		{"no answer", &Error{Class: Malformed, Err: errors.New("x")}, 0, false},
		{"blocked", &Error{Class: Blocked, Err: errors.New("x")}, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			at, calls := now, 0
			err := tc.err
			r := &Rest{Clock: Clock{Now: func() time.Time { return at }}, Model: modelFunc(func(context.Context, Request) (Response, error) {
				calls++
				return Response{}, err
			})}
			for range 3 {
				_, got := r.Generate(t.Context(), Request{})
				var failed *Error
				if !errors.As(got, &failed) || failed.Class != tc.err.(*Error).Class || !strings.HasSuffix(got.Error(), "x") {
					t.Fatalf("got %v", got)
				}
			}
			want := 3
			if tc.rest > 0 {
				want = 1
			}
			if calls != want {
				t.Fatalf("%d calls, want %d", calls, want)
			}
			at, err = now.Add(tc.rest-time.Millisecond), nil
			if _, got := r.Generate(t.Context(), Request{}); tc.rest > 0 && got == nil {
				t.Error("it was asked before its time")
			}
			at = now.Add(tc.rest)
			if _, got := r.Generate(t.Context(), Request{}); got != nil {
				t.Errorf("got %v at last", got)
			}
		})
	}
	// The end of the caller is no failure of the model.
	ctx, stop := context.WithCancel(t.Context())
	stop()
	calls := 0
	r := &Rest{Model: modelFunc(func(context.Context, Request) (Response, error) {
		calls++
		return Response{}, &Error{Class: Network, Err: context.Canceled}
	})}
	_, _ = r.Generate(ctx, Request{})
	_, _ = r.Generate(t.Context(), Request{})
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
}

type modelFunc func(context.Context, Request) (Response, error)

func (f modelFunc) Generate(ctx context.Context, req Request) (Response, error) { return f(ctx, req) }
