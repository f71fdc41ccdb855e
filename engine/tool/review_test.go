package tool

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"flowctl/flows/machine"
)

// tries is a tool whose calls end one after another as the errors say; nil is an answer.
func tries(effect machine.Effect, errs ...error) Tool {
	n := 0
	retries := int64(len(errs))
	return Tool{Spec: machine.ToolSpec{Name: "shop", Effect: effect, Retry: &retries},
		Run: func(context.Context, Call) (machine.Value, error) {
			err := errs[n]
			n++
			return "sold", err
		}}
}

// rests is a runner whose waits are over at once, all but the last of some.
func rests(stop context.CancelFunc, waits int) Runner {
	return Runner{Sleep: func(ctx context.Context, _ time.Duration) error {
		if waits--; waits == 0 {
			stop()
		}
		return ctx.Err()
	}}
}

// What an earlier try of a call may have done is not undone by a later one that found the tool shut.
func TestAnUnknownTryStaysUnknown(t *testing.T) {
	lost, closed, no := &Error{Status: Unknown, Err: fmt.Errorf("lost")}, Unavailablef("closed"), Failf("none_found", "no")
	for _, tc := range []struct {
		name string
		errs []error
		want Status
	}{
		{"unknown, then shut", []error{lost, closed, closed}, Unknown},
		{"shut, then unknown", []error{closed, lost}, Unknown},
		{"shut between", []error{closed, lost, closed}, Unknown},
		{"only shut", []error{closed, closed}, Unavailable},
		{"good at last", []error{lost, closed, nil}, OK},
		{"a no at last", []error{lost, no}, Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			shop := tries(machine.EffectIdempotent, tc.errs...)
			*shop.Spec.Retry--
			r := Runner{Sleep: func(context.Context, time.Duration) error { return nil }}
			out, err := r.Batch(t.Context(), []Job{{Prepared: Prepared{Tool: shop}}}, Hooks{})
			if err != nil || out[0].Result.Status != tc.want || out[0].CutShort {
				t.Errorf("ended with %+v, %v, want %s", out[0], err, tc.want)
			}
		})
	}
}

// A call that would have been made again, had its caller not come to an end, says so; one that had its last try does not.
func TestACallThatIsCutShortSaysSo(t *testing.T) {
	closed, lost := Unavailablef("closed"), &Error{Status: Unknown, Err: fmt.Errorf("lost")}
	for _, effect := range []machine.Effect{machine.EffectRead, machine.EffectIdempotent} {
		for _, waits := range []int{1, 2} {
			ctx, stop := context.WithCancel(t.Context())
			out, err := rests(stop, waits).Batch(ctx, []Job{{Prepared: Prepared{Tool: tries(effect, closed, closed, closed)}}}, Hooks{})
			if err != nil || !out[0].CutShort || out[0].Result.Status != Unavailable {
				t.Errorf("%s, wait %d: %+v, %v", effect, waits, out[0], err)
			}
		}
		// The end may come while the tool runs.
		ctx, stop := context.WithCancel(t.Context())
		shop := tries(effect, closed)
		run := shop.Run
		shop.Run = func(ctx context.Context, c Call) (machine.Value, error) { stop(); return run(ctx, c) }
		out, err := Runner{}.Batch(ctx, []Job{{Prepared: Prepared{Tool: shop}}}, Hooks{})
		if err != nil || !out[0].CutShort {
			t.Errorf("%s, in its try: %+v, %v", effect, out[0], err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	out, err := rests(stop, 2).Batch(ctx, []Job{{Prepared: Prepared{Tool: tries(machine.EffectIdempotent, lost, closed, closed)}}}, Hooks{})
	if err != nil || !out[0].CutShort || out[0].Result.Status != Unknown {
		t.Errorf("what was unknown is %+v, %v", out[0], err)
	}
	once := tries(machine.EffectRead, closed)
	*once.Spec.Retry = 0
	if out, _ := (Runner{}).Batch(t.Context(), []Job{{Prepared: Prepared{Tool: once}}}, Hooks{}); out[0].CutShort {
		t.Error("a call that had its only try is cut short")
	}
}

// Of several calls in one request those that came to a result keep it; only the others are cut short.
func TestOnlyOpenCallsOfARequestAreCutShort(t *testing.T) {
	retries := int64(2)
	asked := []int{}
	list := Tool{Spec: machine.ToolSpec{Name: "list", Effect: machine.EffectRead, Retry: &retries},
		Batch: func(_ context.Context, calls []Call) ([]BatchResult, error) {
			asked = append(asked, len(calls))
			out := make([]BatchResult, len(calls))
			for i := range out {
				out[i].Value = "found"
				if i%2 == 1 {
					out[i].Err = Unavailablef("closed")
				}
			}
			return out, nil
		}}
	ctx, stop := context.WithCancel(t.Context())
	jobs := make([]Job, 4)
	for i := range jobs {
		jobs[i].Prepared = Prepared{Tool: list}
	}
	out, err := rests(stop, 1).Batch(ctx, jobs, Hooks{})
	if err != nil || !slices.Equal(asked, []int{4}) {
		t.Fatalf("asked for %v calls, %v", asked, err)
	}
	for i, o := range out {
		if open := i%2 == 1; o.CutShort != open || (o.Result.Status == OK) == open {
			t.Errorf("call %d: %+v", i, o)
		}
	}
}
