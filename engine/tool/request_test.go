package tool

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/flows/machine"
)

// desk is a tool that takes calls together, and notes what came.
type desk struct {
	mu    sync.Mutex
	notes []string
}

func (d *desk) note(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.notes = append(d.notes, fmt.Sprintf(format, args...))
}

// tool makes the tool; each may be nil, and then gives the call's argument.
func (d *desk) tool(name string, each func(ctx context.Context, c Call) BatchResult) Tool {
	if each == nil {
		each = func(_ context.Context, c Call) BatchResult { return BatchResult{Value: c.Args["n"]} }
	}
	return Tool{Spec: machine.ToolSpec{Name: name, Effect: machine.EffectRead},
		Run: func(ctx context.Context, c Call) (machine.Value, error) {
			d.note("%s alone %v", name, c.Args["n"])
			one := each(ctx, c)
			return one.Value, one.Err
		},
		Batch: func(ctx context.Context, calls []Call) ([]BatchResult, error) {
			var results []BatchResult
			var names []string
			for _, c := range calls {
				names = append(names, fmt.Sprint(c.Args["n"]))
				results = append(results, each(ctx, c))
			}
			d.note("%s together %s", name, strings.Join(names, " "))
			return results, nil
		}}
}

// asks makes n calls of a tool, numbered on from first.
func asks(t Tool, first, n int) []Job {
	var jobs []Job
	for i := range n {
		jobs = append(jobs, Job{Prepared: Prepared{Tool: t, Values: machine.Values{"n": int64(first + i)}}, Call: Call{Key: fmt.Sprint("k", first+i)},
			Breaker: t.Spec.Name})
	}
	return jobs
}

func values(outcomes []Outcome) string {
	var all []string
	for _, out := range outcomes {
		if out.Result.Status == OK {
			all = append(all, machine.FormatValue(out.Result.Value))
			continue
		}
		all = append(all, string(out.Result.Status)+"/"+out.Result.Problem.Kind)
	}
	return strings.Join(all, " ")
}

func TestReadsOfOneToolGoOutTogether(t *testing.T) {
	for _, tc := range []struct {
		name string
		jobs func(d *desk) []Job
		want []string // notes, sorted
	}{
		{"one", func(d *desk) []Job { return asks(d.tool("a", nil), 0, 1) }, []string{"a alone 0"}},
		{"one where there is no Run", func(d *desk) []Job {
			a := d.tool("a", nil)
			a.Run = nil
			return asks(a, 0, 1)
		}, []string{"a together 0"}},
		{"three", func(d *desk) []Job { return asks(d.tool("a", nil), 0, 3) }, []string{"a together 0 1 2"}},
		{"two tools, mixed", func(d *desk) []Job {
			a, b := asks(d.tool("a", nil), 0, 2), asks(d.tool("b", nil), 2, 2)
			return []Job{a[0], b[0], a[1], b[1]}
		}, []string{"a together 0 1", "b together 2 3"}},
		{"around a write", func(d *desk) []Job {
			a := asks(d.tool("a", nil), 0, 4)
			w := Tool{Spec: machine.ToolSpec{Name: "w", Effect: machine.EffectWrite}, Run: give(nil, nil)}
			return slices.Concat(a[:2], asks(w, 9, 1), a[2:])
		}, []string{"a together 0 1", "a together 2 3"}},
		{"writes never", func(d *desk) []Job {
			a := d.tool("a", nil)
			a.Spec.Effect = machine.EffectWrite
			jobs := asks(a, 0, 2)
			jobs[0].Resource, jobs[1].Resource = "x", "y"
			return jobs
		}, []string{"a alone 0", "a alone 1"}},
		{"more than a request takes", func(d *desk) []Job { return asks(d.tool("a", nil), 0, MaxRequest+1) },
			[]string{fmt.Sprintf("a alone %d", MaxRequest), "a together " + strings.Trim(fmt.Sprint(numbers(MaxRequest)), "[]")}},
		{"a tool that cannot", func(d *desk) []Job {
			a := d.tool("a", nil)
			a.Batch = nil
			return asks(a, 0, 2)
		}, []string{"a alone 0", "a alone 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &desk{}
			var j journal
			jobs := tc.jobs(d)
			outcomes, err := Runner{}.Batch(t.Context(), jobs, j.hooks())
			if err != nil {
				t.Fatal(err)
			}
			for i, out := range outcomes {
				if n := jobs[i].Prepared.Values["n"]; out.Result.Status != OK || out.Result.Value != n && out.Result.Value != nil {
					t.Errorf("call %d (%v) got %+v", i, n, out.Result)
				}
			}
			slices.Sort(d.notes)
			if !slices.Equal(d.notes, tc.want) {
				t.Errorf("got %q, want %q", d.notes, tc.want)
			}
			if len(j.lines) != 2*len(jobs) {
				t.Errorf("hooks %q", j.lines)
			}
		})
	}
}

func numbers(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// A request that breaks down does so for its own calls, and for nobody else's.
func TestTroubleOfARequest(t *testing.T) {
	huge := strings.Repeat("x", MaxOutput+1)
	for _, tc := range []struct {
		name  string
		batch func(ctx context.Context, calls []Call) ([]BatchResult, error)
		want  string
		says  string
	}{
		{"too few", func(context.Context, []Call) ([]BatchResult, error) { return make([]BatchResult, 2), nil }, "failed/failed failed/failed failed/failed",
			"a gave 2 results for 3 calls"},
		{"too many", func(context.Context, []Call) ([]BatchResult, error) { return make([]BatchResult, 4), nil }, "failed/failed failed/failed failed/failed",
			"a gave 4 results for 3 calls"},
		{"none", func(context.Context, []Call) ([]BatchResult, error) { return nil, nil }, "failed/failed failed/failed failed/failed", "a gave 0 results for 3 calls"},
		{"panic", func(context.Context, []Call) ([]BatchResult, error) { panic("boom") }, "failed/failed failed/failed failed/failed", "a broke down: boom"},
		{"error", func(context.Context, []Call) ([]BatchResult, error) { return nil, Failf("none_found", "no shop") }, "failed/none_found failed/none_found failed/none_found", "no shop"},
		{"timeout", func(ctx context.Context, _ []Call) ([]BatchResult, error) { <-ctx.Done(); return nil, ctx.Err() },
			"failed/timeout failed/timeout failed/timeout", "a timed out after 5s"},
		{"deaf", func(context.Context, []Call) ([]BatchResult, error) { time.Sleep(time.Minute); return nil, nil },
			"failed/timeout failed/timeout failed/timeout", "a timed out after 5s"},
		{"one each", func(context.Context, []Call) ([]BatchResult, error) {
			return []BatchResult{{Value: "fine"}, {Err: errors.New("no")}, {Value: brokenJSON{}}}, nil
		}, "fine failed/failed failed/failed", "a broke down: broken writer"},
		{"one too large", func(context.Context, []Call) ([]BatchResult, error) {
			return []BatchResult{{Value: 1}, {Value: make(chan int)}, {Err: &Error{Err: errors.New("no"), Value: huge}}}, nil
		}, "1 failed/failed failed/failed", "no"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := (&desk{}).tool("a", nil)
				a.Batch, a.Spec.Retry = tc.batch, new(int64)
				other := (&desk{}).tool("other", nil)
				jobs := append(asks(a, 0, 3), asks(other, 3, 2)...)
				var j journal
				outcomes, err := Runner{}.Batch(t.Context(), jobs, j.hooks())
				if err != nil || values(outcomes) != tc.want+" 3 4" {
					t.Errorf("got %s, want %s (%v)", values(outcomes), tc.want, err)
				}
				last := outcomes[2]
				if !strings.Contains(last.Result.Problem.Message, tc.says) || len(j.lines) != 10 {
					t.Errorf("said %q, hooks %q", last.Result.Problem.Message, j.lines)
				}
				if text, ok := last.Result.Value.(string); ok && len(text) > MaxOutput+100 {
					t.Errorf("the output of one call has %d bytes", len(text))
				}
				if broke := strings.Contains(tc.says, "broke down"); broke != (last.Stack != "") {
					t.Errorf("stack %q", last.Stack)
				}
				time.Sleep(time.Hour) // of the test's own time, for the deaf one
			})
		})
	}
}

// Of a request only the calls are made again that may go better, and the request is one call to the breaker.
func TestARequestIsTriedAsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &desk{}
		tries := map[machine.Value]int{}
		a := d.tool("a", func(_ context.Context, c Call) BatchResult {
			n := c.Args["n"]
			if tries[n]++; n != int64(0) && tries[n] <= int(n.(int64)) {
				return BatchResult{Err: Unavailablef("busy")}
			}
			return BatchResult{Value: n}
		})
		var told []string
		outcomes, err := Runner{}.Batch(t.Context(), asks(a, 0, 3), Hooks{Again: func(i int, out Outcome, try int, wait time.Duration) error {
			told = append(told, fmt.Sprint(i, " try ", try, " ", out.Result.Status))
			return nil
		}})
		if err != nil || values(outcomes) != "0 1 2" {
			t.Fatalf("got %s, %v", values(outcomes), err)
		}
		if want := []string{"a together 0 1 2", "a together 1 2", "a alone 2"}; !slices.Equal(d.notes, want) {
			t.Errorf("requests %q, want %q", d.notes, want)
		}
		if want := []string{"1 try 1 unavailable", "2 try 1 unavailable", "2 try 2 unavailable"}; !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

func TestARequestIsOneCallToTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, mode := &desk{}, "closed"
		a := d.tool("a", func(_ context.Context, c Call) BatchResult {
			if mode == "closed" || mode == "half" && c.Args["n"] == int64(1) {
				return BatchResult{Err: Unavailablef("closed")}
			}
			return BatchResult{Value: c.Args["n"]}
		})
		a.Spec.Retry = new(int64)
		r := Runner{Breakers: &Breakers{}}
		turn := func() string {
			outcomes, err := r.Batch(t.Context(), asks(a, 0, 3), Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			return values(outcomes)
		}
		const gone = "unavailable/unavailable unavailable/unavailable unavailable/unavailable"
		mode = "half"
		for range 2 * breakAfter { // one answer is enough for a tool to be in order
			if got := turn(); got != "0 unavailable/unavailable 2" {
				t.Fatal(got)
			}
		}
		mode = "closed"
		for range breakAfter {
			turn()
		}
		if got := turn(); got != gone || len(d.notes) != 3*breakAfter {
			t.Errorf("%s after %d requests", got, len(d.notes))
		}
		mode = "open"
		time.Sleep(breakRest + time.Second) // of the test's own time
		if got := turn(); got != "0 1 2" {
			t.Errorf("got %s", got)
		}
	})
}

func TestHooksOfARequest(t *testing.T) {
	broken := errors.New("the store is full")
	t.Run("before", func(t *testing.T) {
		d := &desk{}
		var j journal
		hooks := j.hooks()
		hooks.Before = func(i int, _ Prepared) error {
			if i == 1 {
				return broken
			}
			return nil
		}
		outcomes, err := Runner{}.Batch(t.Context(), asks(d.tool("a", nil), 0, 3), hooks)
		if !errors.Is(err, broken) || len(d.notes) > 0 || len(j.lines) > 0 || outcomes[0].Ran {
			t.Errorf("%v, requests %q, hooks %q", err, d.notes, j.lines)
		}
	})
	t.Run("after", func(t *testing.T) {
		d := &desk{}
		var seen []int
		jobs := append(asks(d.tool("a", nil), 0, 3), asks(Tool{Spec: machine.ToolSpec{Effect: machine.EffectWrite}, Run: give(nil, nil)}, 3, 1)...)
		_, err := Runner{}.Batch(t.Context(), jobs, Hooks{After: func(i int, _ Outcome) error {
			seen = append(seen, i)
			return fmt.Errorf("%w: %d", broken, i)
		}})
		if err == nil || err.Error() != "the store is full: 0" || !slices.Equal(seen, []int{0, 1, 2}) {
			t.Errorf("%v, told of %v: what is known of a request is told of all its calls", err, seen)
		}
	})
	t.Run("again", func(t *testing.T) {
		d := &desk{}
		a := d.tool("a", func(context.Context, Call) BatchResult { return BatchResult{Err: Unavailablef("closed")} })
		_, err := Runner{}.Batch(t.Context(), asks(a, 0, 3), Hooks{Again: func(int, Outcome, int, time.Duration) error { return broken }})
		if !errors.Is(err, broken) || len(d.notes) != 1 {
			t.Errorf("%v, requests %q", err, d.notes)
		}
	})
	t.Run("context", func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		d := &desk{}
		outcomes, err := Runner{}.Batch(ctx, asks(d.tool("a", nil), 0, 3), Hooks{})
		if !errors.Is(err, context.Canceled) || len(d.notes) > 0 || outcomes[2].Ran {
			t.Errorf("%v, requests %q", err, d.notes)
		}
	})
}

// Each call of a request has its own key and its own copy of the arguments.
func TestCallsOfARequestAreTheirOwn(t *testing.T) {
	var keys []string
	a := Tool{Spec: machine.ToolSpec{Name: "a", Effect: machine.EffectRead}, Batch: func(_ context.Context, calls []Call) ([]BatchResult, error) {
		for _, c := range calls {
			keys = append(keys, c.Key)
			c.Args["n"] = "changed"
		}
		return make([]BatchResult, len(calls)), nil
	}}
	jobs := asks(a, 0, 2)
	if _, err := (Runner{}).Batch(t.Context(), jobs, Hooks{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(keys, []string{"k0", "k1"}) || jobs[1].Prepared.Values["n"] != int64(1) {
		t.Errorf("keys %q, arguments %v", keys, jobs[1].Prepared.Values)
	}
}
