package tool

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"flowctl/flows/machine"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	read       = machine.EffectRead
	idempotent = machine.EffectIdempotent
	write      = machine.EffectWrite
)

func TestPlan(t *testing.T) {
	tests := []struct {
		effects []machine.Effect
		want    [][]int
	}{
		{nil, nil},
		{[]machine.Effect{read}, [][]int{{0}}},
		{[]machine.Effect{read, read, read}, [][]int{{0, 1, 2}}},
		{[]machine.Effect{write, write}, [][]int{{0}, {1}}},
		{[]machine.Effect{read, write, read, read, idempotent, read}, [][]int{{0}, {1}, {2, 3}, {4}, {5}}},
	}
	for _, test := range tests {
		var jobs []Job
		for _, effect := range test.effects {
			jobs = append(jobs, Job{Prepared: prepared(effect, 0, nil)})
		}
		if got := plan(jobs); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%q: got %v, want %v", test.effects, got, test.want)
		}
	}
}

// journal writes down what happens, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) hooks() Hooks {
	return Hooks{
		Before: func(i int, _ Prepared) error { j.add("before %d", i); return nil },
		After:  func(i int, out Outcome) error { j.add("after %d %s", i, out.Result.Status); return nil },
	}
}

// job makes a call that takes some time and then gives v.
func job(effect machine.Effect, takes time.Duration, v any, err error) Job {
	return Job{Prepared: prepared(effect, time.Minute, func(ctx context.Context, _ Call) (machine.Value, error) {
		select {
		case <-time.After(takes):
			return v, err
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	})}
}

func TestBatchKeepsWritesInOrderAndReadsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j journal
		jobs := []Job{
			job(read, 3*time.Second, "a", nil), job(read, 1*time.Second, "b", nil),
			job(write, 1*time.Second, "c", nil), job(idempotent, 1*time.Second, "d", nil),
			job(read, 2*time.Second, "e", nil), job(read, 1*time.Second, "f", nil),
		}
		start := time.Now()
		outcomes, err := Runner{}.Batch(t.Context(), jobs, j.hooks())
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []string{"a", "b", "c", "d", "e", "f"} {
			if outcomes[i].Result.Value != want || !outcomes[i].Ran {
				t.Errorf("job %d: %+v", i, outcomes[i])
			}
		}
		if took := time.Since(start); took != 7*time.Second { // 3 for the first reads, 1 and 1, 2 for the last
			t.Errorf("took %s", took)
		}
		slices.Sort(j.lines[:2]) // the two reads begin at once
		slices.Sort(j.lines[8:10])
		want := []string{"before 0", "before 1", "after 1 ok", "after 0 ok", "before 2", "after 2 ok", "before 3", "after 3 ok",
			"before 4", "before 5", "after 5 ok", "after 4 ok"}
		if !reflect.DeepEqual(j.lines, want) {
			t.Errorf("got  %q\nwant %q", j.lines, want)
		}
	})
}

// One call's trouble is its own: siblings run, and everything is answered in call order.
func TestBatchAnswersEveryCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := Job{Prepared: prepared(read, 0, func(context.Context, Call) (machine.Value, error) { panic("boom") })}
		jobs := []Job{
			job(read, time.Second, "a", nil), panics, job(read, 0, nil, errors.New("no")),
			job(read, time.Hour, nil, nil), job(write, 0, "x", nil), job(read, 0, "b", nil),
		}
		var j journal
		outcomes, err := Runner{}.Batch(t.Context(), jobs, j.hooks())
		if err != nil {
			t.Fatal(err)
		}
		var got []Status
		for _, out := range outcomes {
			got = append(got, out.Result.Status)
		}
		if want := []Status{OK, Failed, Failed, Failed, OK, OK}; !reflect.DeepEqual(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func TestBatchBoundsReads(t *testing.T) {
	for _, limit := range []int{0, 1, 3} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			now, most := 0, 0
			run := func(context.Context, Call) (machine.Value, error) {
				mu.Lock()
				now++
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now--
				mu.Unlock()
				return nil, nil
			}
			jobs := slices.Repeat([]Job{{Prepared: prepared(read, time.Minute, run)}}, 20)
			if _, err := (Runner{Parallel: limit}).Batch(t.Context(), jobs, Hooks{}); err != nil {
				t.Fatal(err)
			}
			want := limit
			if want == 0 {
				want = 8
			}
			if most != want {
				t.Errorf("limit %d: %d reads at once", limit, most)
			}
		})
	}
}

func TestBatchStopsAtAHooksError(t *testing.T) {
	broken := errors.New("the store is full")
	t.Run("before a write", func(t *testing.T) {
		jobs := []Job{job(read, 0, "a", nil), job(write, 0, "b", nil), job(write, 0, "c", nil), job(read, 0, "d", nil)}
		var j journal
		hooks := j.hooks()
		hooks.Before = func(i int, _ Prepared) error {
			if i == 1 {
				return broken
			}
			return nil
		}
		outcomes, err := Runner{}.Batch(t.Context(), jobs, hooks)
		if !errors.Is(err, broken) || !reflect.DeepEqual(j.lines, []string{"after 0 ok"}) {
			t.Errorf("error %v, journal %q", err, j.lines)
		}
		for i, out := range outcomes {
			if out.Ran != (i == 0) || i > 0 && out.Result.Status != Refused {
				t.Errorf("job %d: %+v", i, out)
			}
		}
	})
	t.Run("after one of several reads", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			jobs := []Job{job(read, 2*time.Second, "a", nil), job(read, time.Second, "b", nil), job(read, 5*time.Second, "c", nil), job(write, 0, "d", nil)}
			hooks := Hooks{After: func(i int, _ Outcome) error { return fmt.Errorf("%w: %d", broken, i) }}
			outcomes, err := Runner{Parallel: 2}.Batch(t.Context(), jobs, hooks)
			if err == nil || err.Error() != "the store is full: 0" {
				t.Errorf("got %v, want the first in the order of the jobs", err)
			}
			if !outcomes[0].Ran || !outcomes[1].Ran || outcomes[2].Ran || outcomes[3].Ran {
				t.Errorf("got %+v", outcomes)
			}
		})
	})
}

func TestBatchStopsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shutdown := errors.New("shutting down")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(shutdown) })
		var j journal
		jobs := []Job{job(write, 0, "a", nil), job(write, time.Hour, "b", nil), job(write, 0, "c", nil)}
		outcomes, err := Runner{}.Batch(ctx, jobs, j.hooks())
		if !errors.Is(err, shutdown) {
			t.Errorf("got %v", err)
		}
		want := []string{"before 0", "after 0 ok", "before 1", "after 1 unknown"}
		if !reflect.DeepEqual(j.lines, want) {
			t.Errorf("got %q", j.lines)
		}
		if outcomes[2].Ran || outcomes[2].Result.Problem.Kind != KindCancelled {
			t.Errorf("got %+v", outcomes[2])
		}
	})
}

// A context that ends while the intent to write is being stored keeps the write from running.
func TestBatchDoesNotRunAWriteWhoseContextEndedInTheHook(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var got []Outcome
	hooks := Hooks{
		Before: func(int, Prepared) error { cancel(); return nil },
		After:  func(_ int, out Outcome) error { got = append(got, out); return nil },
	}
	p := prepared(write, 0, func(context.Context, Call) (machine.Value, error) { t.Error("it ran"); return nil, nil })
	if _, err := (Runner{}).Batch(ctx, []Job{{Prepared: p}}, hooks); err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].Ran || got[0].Result.Status != Refused {
		t.Errorf("got %+v", got)
	}
}

func TestBatchHookPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if p := recover(); p != "hook" {
			t.Errorf("recovered %v", p)
		}
	}()
	hooks := Hooks{Before: func(int, Prepared) error { panic("hook") }}
	_, _ = Runner{}.Batch(t.Context(), []Job{job(write, 0, nil, nil)}, hooks)
	t.Error("no panic")
}

// Whatever the mixture: every job is answered with its own value, at most one write runs at a time and none beside a
// read, and what was asked for later never starts before a write that was asked for earlier has ended.
func TestBatchProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SliceOfN(rapid.SampledFrom(effects), 0, 12).Draw(rt, "effects")
		waits := rapid.SliceOfN(rapid.IntRange(0, 50), len(kinds), len(kinds)).Draw(rt, "milliseconds")
		synctest.Test(t, func(t *testing.T) {
			var j journal
			jobs := make([]Job, len(kinds))
			for i, effect := range kinds {
				jobs[i] = Job{Prepared: prepared(effect, time.Minute, func(context.Context, Call) (machine.Value, error) {
					j.add("start %d", i)
					time.Sleep(time.Duration(waits[i]) * time.Millisecond)
					j.add("end %d", i)
					return i, nil
				})}
			}
			outcomes, err := Runner{Parallel: 3}.Batch(t.Context(), jobs, Hooks{})
			if err != nil || len(outcomes) != len(jobs) {
				rt.Fatalf("%d outcomes, error %v", len(outcomes), err)
			}
			for i, out := range outcomes {
				if out.Result.Value != int64(i) {
					rt.Fatalf("job %d gave %v", i, out.Result.Value)
				}
			}
			checkOrder(rt, kinds, j.lines)
		})
	})
}

func checkOrder(t *rapid.T, kinds []machine.Effect, lines []string) {
	running, ended := map[int]bool{}, map[int]bool{}
	for _, line := range lines {
		var i int
		if _, err := fmt.Sscanf(line, "end %d", &i); err == nil {
			delete(running, i)
			ended[i] = true
			continue
		}
		if _, err := fmt.Sscanf(line, "start %d", &i); err != nil {
			t.Fatal(err)
		}
		for other := range running {
			if kinds[i] != read || kinds[other] != read {
				t.Fatalf("%d and %d ran at once: %s", i, other, strings.Join(lines, ", "))
			}
		}
		for earlier := range i {
			if (kinds[earlier] != read || kinds[i] != read) && !ended[earlier] {
				t.Fatalf("%d started before %d had ended: %s", i, earlier, strings.Join(lines, ", "))
			}
		}
		running[i] = true
	}
}
