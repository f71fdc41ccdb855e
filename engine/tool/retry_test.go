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

// shut is a tool that is out of order for its first calls.
func shut(effect machine.Effect, retry *int64, shut int, err error) (Tool, *int) {
	calls := 0
	return Tool{Spec: machine.ToolSpec{Name: "shop", Effect: effect, Retry: retry, Timeout: time.Second},
		Run: func(ctx context.Context, _ Call) (machine.Value, error) {
			if calls++; calls <= shut {
				if errors.Is(err, context.DeadlineExceeded) {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return nil, err
			}
			return "sold", nil
		}}, &calls
}

func TestCallsAreMadeAgainWhereThatHarmsNobody(t *testing.T) {
	n := func(v int64) *int64 { return &v }
	closed, slow := Unavailablef("closed"), context.DeadlineExceeded
	for _, tc := range []struct {
		name   string
		effect machine.Effect
		retry  *int64
		shut   int
		err    error
		calls  int
		status Status
	}{
		{"read", machine.EffectRead, nil, 2, closed, 3, OK},
		{"read given up", machine.EffectRead, nil, 9, closed, 3, Unavailable},
		{"read once", machine.EffectRead, n(0), 1, closed, 1, Unavailable},
		{"read often", machine.EffectRead, n(5), 5, closed, 6, OK},
		{"read that says no", machine.EffectRead, nil, 1, Failf("none_found", "no"), 1, Failed},
		{"slow read", machine.EffectRead, nil, 1, slow, 2, OK},
		{"idempotent", machine.EffectIdempotent, nil, 2, closed, 3, OK},
		{"slow idempotent", machine.EffectIdempotent, nil, 1, slow, 2, OK},
		{"write", machine.EffectWrite, n(5), 1, closed, 1, Unavailable},
		{"slow write", machine.EffectWrite, n(5), 1, slow, 1, Unknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				shop, calls := shut(tc.effect, tc.retry, tc.shut, tc.err)
				var told []int
				out, err := Runner{}.Batch(t.Context(), []Job{{Prepared: Prepared{Tool: shop}}}, Hooks{
					Again: func(_ int, _ Outcome, try int, wait time.Duration) error {
						if wait < 100*time.Millisecond || wait > 8*time.Second {
							t.Errorf("try %d waits %v", try, wait)
						}
						told = append(told, try)
						return nil
					}})
				if err != nil || out[0].Result.Status != tc.status || *calls != tc.calls {
					t.Fatalf("%d calls, %+v, %v", *calls, out[0].Result, err)
				}
				if len(told) != tc.calls-1 {
					t.Errorf("told of %v", told)
				}
			})
		})
	}
}

// The error of the hook ends the tries, and so does the end of the context in a wait.
func TestTriesEnd(t *testing.T) {
	shop, calls := shut(machine.EffectRead, nil, 9, Unavailablef("closed"))
	lost := errors.New("lost")
	_, err := Runner{}.Batch(t.Context(), []Job{{Prepared: Prepared{Tool: shop}}}, Hooks{
		Again: func(int, Outcome, int, time.Duration) error { return lost }})
	if !errors.Is(err, lost) || *calls != 1 {
		t.Errorf("%d calls, %v", *calls, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	shop, calls = shut(machine.EffectRead, nil, 9, Unavailablef("closed"))
	out, _ := Runner{Sleep: func(context.Context, time.Duration) error { stop(); return ctx.Err() }}.Batch(ctx, []Job{{Prepared: Prepared{Tool: shop}}}, Hooks{})
	if *calls != 1 || out[0].Result.Status != Unavailable {
		t.Errorf("%d calls, %+v", *calls, out[0].Result)
	}
}

func TestAToolThatIsOutOfOrderIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := int64(0)
		shop, calls := shut(machine.EffectRead, &zero, 6, Unavailablef("closed"))
		r := Runner{Breakers: &Breakers{}}
		call := func() Result {
			out, err := r.Batch(t.Context(), []Job{{Prepared: Prepared{Tool: shop}, Breaker: "flow/shop"}}, Hooks{})
			if err != nil {
				t.Fatal(err)
			}
			return out[0].Result
		}
		for range breakAfter {
			call()
		}
		if got := call(); *calls != breakAfter || got.Status != Unavailable ||
			!strings.Contains(got.Problem.Message, "left alone until "+time.Now().Add(breakRest).UTC().Format(time.RFC3339)) {
			t.Errorf("%d calls, %+v", *calls, got)
		}
		time.Sleep(breakRest + time.Second) // of the test's own time: the probe finds it still closed
		if call(); *calls != breakAfter+1 {
			t.Errorf("%d calls", *calls)
		}
		if got := call(); *calls != breakAfter+1 || got.Status != Unavailable {
			t.Errorf("%d calls, %+v", *calls, got)
		}
		time.Sleep(breakRest + time.Second)
		if got := call(); got.Status != OK {
			t.Errorf("%+v", got)
		}
		if got := call(); got.Status != OK {
			t.Errorf("%+v", got)
		}
	})
}

// A probe that is cut off, or panics, frees its slot: the next one may try.
func TestAProbeFreesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		zero := int64(0)
		mode := "closed"
		shop := Tool{Spec: machine.ToolSpec{Name: "shop", Effect: machine.EffectRead, Retry: &zero},
			Run: func(ctx context.Context, _ Call) (machine.Value, error) {
				switch mode {
				case "closed":
					return nil, Unavailablef("closed")
				case "hangs":
					<-ctx.Done()
					return nil, ctx.Err()
				case "panics":
					panic("oh")
				}
				return "sold", nil
			}}
		r := Runner{Breakers: &Breakers{}}
		call := func(ctx context.Context) Result {
			out, _ := r.Batch(ctx, []Job{{Prepared: Prepared{Tool: shop}, Breaker: "k"}}, Hooks{})
			return out[0].Result
		}
		for range breakAfter {
			call(t.Context())
		}
		time.Sleep(breakRest + time.Second)
		mode = "hangs"
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { call(ctx) })
		synctest.Wait()
		if got := call(t.Context()); got.Status != Unavailable || !strings.Contains(got.Problem.Message, "another call is trying") {
			t.Errorf("beside the probe: %+v", got)
		}
		stop()
		wg.Wait()
		mode = "panics"
		if got := call(t.Context()); !strings.Contains(got.Problem.Message, "broke down") {
			t.Errorf("the next probe: %+v", got)
		}
		mode = "open"
		if got := call(t.Context()); got.Status != OK {
			t.Errorf("at last: %+v", got)
		}
	})
}

func TestPlanByResource(t *testing.T) {
	job := func(effect machine.Effect, resource string) Job {
		return Job{Prepared: Prepared{Tool: Tool{Spec: machine.ToolSpec{Effect: effect}}}, Resource: resource}
	}
	w, r := machine.EffectWrite, machine.EffectRead
	for _, tc := range []struct {
		jobs []Job
		want string
	}{
		{[]Job{job(w, "a"), job(w, "b"), job(w, "c")}, "[[0 1 2]]"},
		{[]Job{job(w, "a"), job(w, "b"), job(w, "a")}, "[[0 1] [2]]"},
		{[]Job{job(w, ""), job(w, ""), job(w, "a")}, "[[0] [1] [2]]"},
		{[]Job{job(r, ""), job(w, "a"), job(w, "b"), job(r, ""), job(r, "")}, "[[0] [1 2] [3 4]]"},
	} {
		if got := fmt.Sprint(plan(tc.jobs)); got != tc.want {
			t.Errorf("planned %s, want %s", got, tc.want)
		}
	}
}

// Writes of different resources overlap; those of one run one after another, in their order.
func TestWritesOfDifferentResourcesOverlap(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var seen []string
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen = append(seen, what)
		}
		write := Tool{Spec: machine.ToolSpec{Name: "write", Effect: machine.EffectWrite}, Run: func(_ context.Context, c Call) (machine.Value, error) {
			note("begin " + c.Key)
			time.Sleep(time.Second)
			note("end " + c.Key)
			return "ok", nil
		}}
		var jobs []Job
		for i, resource := range []string{"a", "b", "a"} {
			jobs = append(jobs, Job{Prepared: Prepared{Tool: write}, Call: Call{Key: fmt.Sprint(i)}, Resource: resource})
		}
		if _, err := (Runner{}).Batch(t.Context(), jobs, Hooks{}); err != nil {
			t.Fatal(err)
		}
		slices.Sort(seen[:2])
		if strings.Join(seen[:2], ", ") != "begin 0, begin 1" || strings.Join(seen[4:], ", ") != "begin 2, end 2" {
			t.Errorf("seen %v", seen)
		}
	})
}
