package model_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/engine/model"
)

// fake answers from a list of errors; nil, and the end of the list, is an answer.
type fake struct {
	mu     sync.Mutex
	errs   []error
	asked  []model.Request
	answer model.Response
}

func (f *fake) Generate(_ context.Context, req model.Request) (model.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.asked)
	f.asked = append(f.asked, req)
	if n < len(f.errs) && f.errs[n] != nil {
		return model.Response{}, f.errs[n]
	}
	return f.answer, nil
}

func failed(class model.Class, after time.Duration) error {
	return &model.Error{Class: class, RetryAfter: after, Err: errors.New("it is " + string(class))}
}

// still is a clock that notes the waits and does not wait. Its random number is always the middle.
type still struct{ waits []time.Duration }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func (s *still) clock() model.Clock {
	return model.Clock{
		Now:    func() time.Time { return noon },
		Random: func() float64 { return 0.5 },
		Sleep: func(ctx context.Context, d time.Duration) error {
			s.waits = append(s.waits, d)
			return ctx.Err()
		},
	}
}

func TestRetry(t *testing.T) {
	const ms = time.Millisecond
	rate, server, network := failed(model.Rate, 0), failed(model.Server, 0), failed(model.Network, 0)
	for _, test := range []struct {
		name  string
		errs  []error
		tries int
		waits []time.Duration
		want  string // of the error, "" for none
	}{
		{name: "at once", tries: 1},
		{name: "what can pass", errs: []error{rate, server, network}, tries: 4, waits: []time.Duration{500 * ms, 1000 * ms, 2000 * ms}},
		{name: "until nothing is left", errs: []error{server, server, server, server, rate, nil}, tries: 5,
			waits: []time.Duration{500 * ms, 1000 * ms, 2000 * ms, 4000 * ms}, want: "it is rate (tried 5 times)"},
		{name: "the endpoint's time", errs: []error{failed(model.Rate, 2*time.Second), failed(model.Server, time.Millisecond)}, tries: 3,
			waits: []time.Duration{2250 * ms, 1000 * ms}},
		{name: "the longest wait", errs: []error{failed(model.Rate, time.Minute)}, tries: 2, waits: []time.Duration{60250 * ms}},
		{name: "too long", errs: []error{rate, failed(model.Rate, time.Minute+1)}, tries: 2, waits: []time.Duration{500 * ms},
			want: "until 2026-01-02T12:01:00Z"},
		{name: "a hopeless one that names a time", errs: []error{failed(model.Quota, time.Hour)}, tries: 1, want: "it is quota"},
		{name: "given up inside", errs: []error{&model.Error{Class: model.Rate, Attempts: 3, Err: errors.New("inner")}}, tries: 1, want: "inner"},
		{name: "no error of a model", errs: []error{errors.New("odd")}, tries: 1, want: "odd"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var clock still
			f := &fake{errs: test.errs}
			r := &model.Retry{Model: f, Clock: clock.clock()}
			var told []model.Attempt
			_, err := r.Generate(t.Context(), model.Request{Failed: func(a model.Attempt) { told = append(told, a) }})
			if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
			if len(f.asked) != test.tries || !slices.Equal(clock.waits, test.waits) {
				t.Errorf("%d tries with waits %v, want %d with %v", len(f.asked), clock.waits, test.tries, test.waits)
			}
			for i, a := range told {
				if a.Number != int64(i+1) || a.Wait != test.waits[i] || !errors.Is(a.Err, test.errs[i]) {
					t.Errorf("attempt %d was told as %+v", i+1, a)
				}
			}
			if len(told) != len(test.waits) {
				t.Errorf("%d attempts were told, want %d", len(told), len(test.waits))
			}
			for i, req := range f.asked {
				if req.Origin.Attempt != int64(i+1) {
					t.Errorf("try %d said that it was %d", i+1, req.Origin.Attempt)
				}
			}
		})
	}
}

// Each class of errors is tried again or not.
func TestRetryClasses(t *testing.T) {
	again := []model.Class{model.Rate, model.Server, model.Network}
	for _, class := range model.Classes() {
		var clock still
		f := &fake{errs: []error{failed(class, 0)}}
		_, err := (&model.Retry{Model: f, Clock: clock.clock()}).Generate(t.Context(), model.Request{})
		if want := slices.Contains(again, class); (len(f.asked) > 1) != want || (err == nil) != want {
			t.Errorf("%s: %d tries, %v", class, len(f.asked), err)
		}
	}
}

func TestRetryTellsUntilWhen(t *testing.T) {
	var clock still
	_, err := (&model.Retry{Model: &fake{errs: []error{failed(model.Rate, 5*time.Minute)}}, Clock: clock.clock()}).Generate(t.Context(), model.Request{})
	var e *model.Error
	if !errors.As(err, &e) || !e.Until.Equal(noon.Add(5*time.Minute)) || e.Attempts != 1 || e.Class != model.Rate {
		t.Errorf("the error is %+v", e)
	}
	// Where waiting does not help, no time is named.
	_, err = (&model.Retry{Model: &fake{errs: []error{failed(model.Quota, 5*time.Minute)}}, Clock: clock.clock()}).Generate(t.Context(), model.Request{})
	if !errors.As(err, &e) || !e.Until.IsZero() || err.Error() != "it is quota" {
		t.Errorf("the error is %+v", e)
	}
}

// The error that a model gave is not changed: others may hold it.
func TestRetryLeavesTheErrorAlone(t *testing.T) {
	var clock still
	given := &model.Error{Class: model.BadRequest, Err: errors.New("no")}
	_, err := (&model.Retry{Model: &fake{errs: []error{given}}, Clock: clock.clock()}).Generate(t.Context(), model.Request{})
	if given.Attempts != 0 || err == error(given) {
		t.Errorf("the error became %+v", given)
	}
}

func TestRetryEndsWithItsContext(t *testing.T) {
	why := errors.New("the run was cancelled")
	ctx, cancel := context.WithCancelCause(t.Context())
	f := &fake{errs: []error{failed(model.Server, 0), failed(model.Server, 0)}}
	r := &model.Retry{Model: f, Clock: model.Clock{Random: func() float64 { return 0 }}}
	_, err := r.Generate(ctx, model.Request{Failed: func(model.Attempt) { cancel(why) }})
	if err != why || len(f.asked) != 1 {
		t.Errorf("%v after %d tries", err, len(f.asked))
	}
	if _, err = r.Generate(ctx, model.Request{}); err != why || len(f.asked) != 2 {
		t.Errorf("a failure within a cancelled context gave %v after %d tries", err, len(f.asked))
	}
}

// The waits of many requests differ, and none is shorter than the endpoint asks for.
func TestWaitsAreSpread(t *testing.T) {
	seen := map[time.Duration]bool{}
	for i := range 20 {
		random := float64(i) / 20
		var clock still
		c := clock.clock()
		c.Random = func() float64 { return random }
		f := &fake{errs: []error{failed(model.Rate, 3*time.Second), failed(model.Server, 0)}}
		if _, err := (&model.Retry{Model: f, Clock: c}).Generate(t.Context(), model.Request{}); err != nil {
			t.Fatal(err)
		}
		if clock.waits[0] < 3*time.Second || clock.waits[0] > 4*time.Second || clock.waits[1] < 500*time.Millisecond || clock.waits[1] > 1500*time.Millisecond {
			t.Errorf("random %v: waits %v", random, clock.waits)
		}
		seen[clock.waits[0]] = true
	}
	if len(seen) != 20 {
		t.Errorf("20 requests waited for %d different times", len(seen))
	}
}

// Without a clock of its own, Retry waits in real time, and its context ends the wait.
func TestRealClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		f := &fake{errs: []error{failed(model.Server, 0), nil, failed(model.Rate, 30*time.Second)}}
		r := &model.Retry{Model: f}
		if _, err := r.Generate(t.Context(), model.Request{}); err != nil || len(f.asked) != 2 {
			t.Errorf("%v after %d tries", err, len(f.asked))
		}
		if took := time.Since(start); took < 250*time.Millisecond || took > 750*time.Millisecond {
			t.Errorf("it waited for %v", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := r.Generate(ctx, model.Request{}); !errors.Is(err, context.DeadlineExceeded) || len(f.asked) != 3 {
			t.Errorf("%v after %d tries", err, len(f.asked))
		}
	})
}

func TestFallback(t *testing.T) {
	for _, test := range []struct {
		first    error
		goesOn   bool
		problems string
	}{
		{failed(model.Rate, 0), true, ""}, {failed(model.Server, 0), true, ""}, {failed(model.Network, 0), true, ""},
		{failed(model.Quota, 0), true, ""}, {failed(model.Authentication, 0), true, ""}, {failed(model.Malformed, 0), true, ""},
		{failed(model.BadRequest, 0), false, ""}, {failed(model.Blocked, 0), false, ""}, {failed(model.Script, 0), false, ""},
		{errors.New("odd"), false, ""},
	} {
		second := &fake{answer: model.Response{Message: model.Message{Text: "hi"}, Notes: []string{"own"}}}
		f := &model.Fallback{Models: []model.Named{{Name: "big", Model: &fake{errs: []error{test.first}}}, {Name: "small", Model: second}}}
		var told []model.Attempt
		resp, err := f.Generate(t.Context(), model.Request{Failed: func(a model.Attempt) { told = append(told, a) }})
		if !test.goesOn {
			if !errors.Is(err, test.first) || len(second.asked) != 0 || len(told) != 0 {
				t.Errorf("%v: %v, asked %d", test.first, err, len(second.asked))
			}
			continue
		}
		if err != nil || resp.Message.Text != "hi" || len(resp.Notes) != 2 || !strings.Contains(resp.Notes[1], "small did") {
			t.Errorf("%v: %+v, %v", test.first, resp, err)
		}
		if len(told) != 1 || told[0].Next != "small" || !errors.Is(told[0].Err, test.first) {
			t.Errorf("%v: told %+v", test.first, told)
		}
	}
}

func TestFallbackWithoutAnyAnswer(t *testing.T) {
	late := &model.Error{Class: model.Rate, Until: noon.Add(time.Hour), Err: errors.New("later")}
	soon := &model.Error{Class: model.Server, Until: noon.Add(time.Minute), Err: errors.New("soon")}
	f := &model.Fallback{Models: []model.Named{
		{Name: "a", Model: &fake{errs: []error{failed(model.Quota, 0)}}},
		{Name: "b", Model: &fake{errs: []error{late}}},
		{Name: "c", Model: &fake{errs: []error{soon}}},
	}}
	// A Retry around it must not try again.
	var clock still
	_, err := (&model.Retry{Model: f, Clock: clock.clock()}).Generate(t.Context(), model.Request{})
	var e *model.Error
	if !errors.As(err, &e) || e.Class != model.Rate || !e.Until.Equal(noon.Add(time.Minute)) {
		t.Fatalf("the error is %+v", e)
	}
	if err.Error() != "a: it is quota; b: later; c: soon" || len(clock.waits) != 0 {
		t.Errorf("%v after waits %v", err, clock.waits)
	}
}

func TestCost(t *testing.T) {
	cheap := 0.5
	for _, test := range []struct {
		prices model.Prices
		usage  model.Usage
		want   *float64
	}{
		{model.Prices{Prompt: 3, Completion: 15}, model.Usage{PromptTokens: 1000, CompletionTokens: 100}, at(0.0045)},
		{model.Prices{Prompt: 3, Completion: 15}, model.Usage{PromptTokens: 1000, CachedTokens: 400}, at(0.003)},
		{model.Prices{Prompt: 3, Completion: 15, Cached: &cheap}, model.Usage{PromptTokens: 1000, CachedTokens: 400}, at(0.002)},
		{model.Prices{Prompt: 3, Completion: 15, Cached: &cheap}, model.Usage{PromptTokens: 10, CachedTokens: 400}, at(0.000005)},
		{model.Prices{}, model.Usage{PromptTokens: 10}, at(0)},
		{model.Prices{Prompt: 3}, model.Usage{}, nil},
	} {
		f := &fake{answer: model.Response{Usage: test.usage}}
		got, err := (&model.Cost{Model: f, Prices: test.prices}).Generate(t.Context(), model.Request{})
		if err != nil || (got.Cost == nil) != (test.want == nil) || got.Cost != nil && *got.Cost != *test.want {
			t.Errorf("%+v of %+v: %v, %v", test.usage, test.prices, got.Cost, err)
		}
	}
}

func at(v float64) *float64 { return &v }
