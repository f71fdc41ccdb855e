package tool

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"flowctl/flows/machine"
)

type runFunc = func(context.Context, Call) (machine.Value, error)

// prepared makes a call of a tool named after its effect.
func prepared(effect machine.Effect, timeout time.Duration, run runFunc) Prepared {
	return Prepared{
		Tool: Tool{Spec: machine.ToolSpec{Name: "do_" + string(effect), Effect: effect, Timeout: timeout}, Run: run},
		Args: []byte("{}"), Values: machine.Values{},
	}
}

var effects = []machine.Effect{machine.EffectRead, machine.EffectIdempotent, machine.EffectWrite}

func give(v any, err error) runFunc {
	return func(context.Context, Call) (machine.Value, error) { return v, err }
}

// obey ends with its context.
func obey(ctx context.Context, _ Call) (machine.Value, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// ignoreFor takes no notice of its context.
func ignoreFor(d time.Duration) runFunc {
	return func(context.Context, Call) (machine.Value, error) {
		time.Sleep(d) // of the fake clock of synctest
		return "late", nil
	}
}

func TestRunGivesWhatTheToolSays(t *testing.T) {
	var nilError *Error
	tests := []struct {
		name string
		run  runFunc
		want Result
	}{
		{"value", give(map[string]any{"n": 5, "f": 2.0, "s": "a\xffb"}, nil),
			Result{Status: OK, Value: machine.Values{"n": int64(5), "f": int64(2), "s": "a\uFFFDb"}}},
		{"nil", give(nil, nil), Result{Status: OK}},
		{"exact integer", give(int64(9007199254740993), nil), Result{Status: OK, Value: int64(9007199254740993)}},
		{"plain error", give("ignored", errors.New("no such order")), problem(Failed, "failed", "no such order")},
		{"kind", give(nil, Failf("none_found", "no order %s", "A1")), problem(Failed, "none_found", "no order A1")},
		{"unavailable", give(nil, Unavailablef("the shop is closed")), problem(Unavailable, "unavailable", "the shop is closed")},
		{"wrapped", give(nil, fmt.Errorf("shop: %w", Unavailablef("closed"))), problem(Unavailable, "unavailable", "shop: closed")},
		{"unknown", give(nil, &Error{Status: Unknown, Err: errors.New("lost")}), problem(Unknown, "unknown", "lost")},
		{"an error cannot be ok", give(nil, &Error{Status: OK, Err: errors.New("x")}), problem(Failed, "failed", "x")},
		{"no reason", give(nil, &Error{Status: Failed}), problem(Failed, "failed", "the tool gave no reason")},
		{"blank reason", give(nil, errors.New(" ")), problem(Failed, "failed", "the tool gave no reason")},
		{"error that is not UTF-8", give(nil, errors.New("a\xff")), problem(Failed, "failed", "a\uFFFD")},
		{"value in spite of an error", give(nil, &Error{Status: Failed, Kind: "exit", Value: map[string]any{"code": 2}, Err: errors.New("exit 2")}),
			Result{Status: Failed, Value: machine.Values{"code": int64(2)}, Problem: machine.Problem{Kind: "exit", Message: "exit 2"}}},
		{"nil *Error", give(nil, nilError), problem(Unknown, "unknown", "do_write broke down: runtime error: invalid memory address or nil pointer dereference")},
		{"panic", func(context.Context, Call) (machine.Value, error) { panic("oh no") }, problem(Unknown, "unknown", "do_write broke down: oh no")},
		{"runtime panic", func(context.Context, Call) (machine.Value, error) { return []int{}[len(t.Name())-len(t.Name())], nil },
			problem(Unknown, "unknown", "do_write broke down: runtime error: index out of range [0] with length 0")},
		{"goroutine ended", func(context.Context, Call) (machine.Value, error) { runtime.Goexit(); return nil, nil },
			problem(Unknown, "unknown", "do_write ended without an answer")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			out := Runner{}.Run(t.Context(), prepared(machine.EffectWrite, 0, test.run), Call{})
			if !out.Ran || !reflect.DeepEqual(out.Result, test.want) {
				t.Errorf("got  %+v\nwant %+v", out.Result, test.want)
			}
			if broke := strings.Contains(test.want.Problem.Message, "broke down"); broke != (out.Stack != "") {
				t.Errorf("stack %q", out.Stack)
			}
		})
	}
}

func problem(status Status, kind, message string) Result {
	return Result{Status: status, Problem: machine.Problem{Kind: kind, Message: message}}
}

type brokenJSON struct{}

func (brokenJSON) MarshalJSON() ([]byte, error) { panic("broken writer") }

func TestRunRefusesWhatCannotBeStored(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = []any{loop}
	type node struct{ Next *node }
	ring := &node{}
	ring.Next = ring
	for name, v := range map[string]any{
		"function": func() {}, "channel": make(chan int), "NaN": math.NaN(), "infinity": []any{math.Inf(1)}, "too large": uint64(math.MaxUint64),
		"object that holds itself": loop, "struct that holds itself": ring, "writer that panics": brokenJSON{},
	} {
		t.Run(name, func(t *testing.T) {
			out := Runner{}.Run(t.Context(), prepared(machine.EffectRead, 0, give(v, nil)), Call{})
			if out.Result.Status != Failed || out.Result.Value != nil || out.Result.Problem.Message == "" {
				t.Errorf("got %+v", out.Result)
			}
		})
	}
}

func TestRunHandsOutItsOwnCopyOfTheArguments(t *testing.T) {
	p := prepared(machine.EffectRead, 0, func(_ context.Context, call Call) (machine.Value, error) {
		call.Args["list"].([]machine.Value)[0] = "changed"
		return call.Key, nil
	})
	p.Values = machine.Values{"list": []machine.Value{"a"}}
	out := Runner{}.Run(t.Context(), p, Call{Key: "run/4.0", Args: machine.Values{"x": "not these"}})
	if out.Result.Value != "run/4.0" || !reflect.DeepEqual(p.Values, machine.Values{"list": []machine.Value{"a"}}) {
		t.Errorf("result %v, arguments %v", out.Result.Value, p.Values)
	}
}

func TestRunMeasuresWithTheGivenClock(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	r := Runner{Now: func() time.Time { now = now.Add(7 * time.Millisecond); return now }}
	if out := r.Run(t.Context(), prepared(machine.EffectRead, 0, give(nil, nil)), Call{}); out.Duration != 7*time.Millisecond {
		t.Errorf("got %s", out.Duration)
	}
}

// What a tool that breaks down may have done nobody knows, unless it only reads.
func TestRunOfAToolThatBreaksDown(t *testing.T) {
	for name, run := range map[string]runFunc{
		"panics":                func(context.Context, Call) (machine.Value, error) { panic("oh no") },
		"gives what is no JSON": give(make(chan int), nil),
	} {
		for _, effect := range effects {
			want := Unknown
			if effect == machine.EffectRead {
				want = Failed
			}
			if out := (Runner{}).Run(t.Context(), prepared(effect, 0, run), Call{}); out.Result.Status != want {
				t.Errorf("a %s that %s is %s, want %s", effect, name, out.Result.Status, want)
			}
		}
	}
}

func TestTimeoutOf(t *testing.T) {
	for spec, want := range map[*machine.ToolSpec]time.Duration{
		{Effect: machine.EffectRead}: 5 * time.Second, {Effect: machine.EffectWrite}: 10 * time.Second,
		{Effect: machine.EffectIdempotent}: 10 * time.Second, {}: 10 * time.Second,
		{Effect: machine.EffectRead, Timeout: time.Minute}: time.Minute, {Timeout: -1}: 10 * time.Second,
	} {
		if got := TimeoutOf(*spec); got != want {
			t.Errorf("%s %s: got %s, want %s", spec.Effect, spec.Timeout, got, want)
		}
	}
}

// A call that runs out of time ends, whether the tool takes notice or not, and what nobody knows is called unknown.
func TestRunTimesOut(t *testing.T) {
	for _, effect := range effects {
		for name, run := range map[string]runFunc{"obeys": obey, "ignores its context": ignoreFor(300 * time.Millisecond)} {
			t.Run(string(effect)+" that "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					start := time.Now()
					out := Runner{}.Run(t.Context(), prepared(effect, 100*time.Millisecond, run), Call{})
					want := problem(Unknown, "unknown", "do_"+string(effect)+" timed out after 100ms, outcome unknown")
					if effect == machine.EffectRead {
						want = problem(Failed, "timeout", "do_read timed out after 100ms")
					}
					if !out.Ran || !reflect.DeepEqual(out.Result, want) {
						t.Errorf("got %+v, want %+v", out.Result, want)
					}
					if took := time.Since(start); took > 200*time.Millisecond || out.Duration != took {
						t.Errorf("took %s, said %s", took, out.Duration)
					}
					time.Sleep(time.Second) // on the fake clock, for the tool that was left behind
				})
			})
		}
	}
}

func TestRunIsCancelled(t *testing.T) {
	for _, effect := range effects {
		for name, run := range map[string]runFunc{"obeys": obey, "ignores its context": ignoreFor(time.Hour)} {
			t.Run(string(effect)+" that "+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					ctx, cancel := context.WithCancel(t.Context())
					time.AfterFunc(time.Second, cancel)
					start := time.Now()
					out := Runner{}.Run(ctx, prepared(effect, time.Minute, run), Call{})
					want := problem(Unknown, "unknown", "do_"+string(effect)+" was cancelled, outcome unknown")
					if effect == machine.EffectRead {
						want = problem(Failed, "cancelled", "do_read was cancelled")
					}
					if !out.Ran || !reflect.DeepEqual(out.Result, want) {
						t.Errorf("got %+v, want %+v", out.Result, want)
					}
					most := time.Second + settle
					if effect != machine.EffectRead {
						most += defaultGrace
					}
					if took := time.Since(start); took > most {
						t.Errorf("took %s, want at most %s", took, most)
					}
					time.Sleep(2 * time.Hour) // on the fake clock, for the tool that was left behind
				})
			})
		}
	}
}

// The deadline of the caller is not the call's own timeout.
func TestRunUnderTheCallersDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		out := Runner{}.Run(ctx, prepared(machine.EffectRead, time.Minute, obey), Call{})
		if out.Result.Problem.Kind != KindCancelled {
			t.Errorf("got %+v", out.Result)
		}
	})
}

func TestRunBelievesAToolThatIsCertain(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want Result
	}{
		{"done in the end", nil, Result{Status: OK, Value: "done"}},
		{"rolled back", Failf("timeout", "stopped, nothing was changed"), problem(Failed, "timeout", "stopped, nothing was changed")},
		{"guesses", errors.New("broken pipe"), problem(Unknown, "unknown", "do_write was cancelled, outcome unknown")},
		{"wraps the context's error", Unavailablef("post: %w", context.Canceled), problem(Unknown, "unknown", "do_write was cancelled, outcome unknown")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				run := func(ctx context.Context, _ Call) (machine.Value, error) {
					<-ctx.Done()
					time.Sleep(settle / 2) // on the fake clock
					return "done", test.err
				}
				out := Runner{}.Run(ctx, prepared(machine.EffectWrite, time.Minute, run), Call{})
				if !reflect.DeepEqual(out.Result, test.want) {
					t.Errorf("got %+v, want %+v", out.Result, test.want)
				}
			})
		})
	}
}

// A call that changes the world is left alone for the grace; a read, and any call in a hurry, is told to stop at once.
func TestRunGivesGrace(t *testing.T) {
	hurry := errors.New("hurry")
	for _, test := range []struct {
		effect machine.Effect
		cause  error
		ends   time.Duration // by itself, from the start
		want   Status
		took   time.Duration
	}{
		{machine.EffectWrite, nil, 4 * time.Second, OK, 4 * time.Second},
		{machine.EffectIdempotent, nil, 4 * time.Second, OK, 4 * time.Second},
		{machine.EffectWrite, nil, time.Minute, Unknown, time.Second + defaultGrace},
		{machine.EffectWrite, hurry, 4 * time.Second, Unknown, time.Second},
		{machine.EffectRead, nil, 4 * time.Second, Failed, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(test.cause) })
			run := func(ctx context.Context, _ Call) (machine.Value, error) {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(test.ends):
					return "done", nil
				}
			}
			start := time.Now()
			runner := Runner{Hurry: func(cause error) bool { return cause == hurry }}
			out := runner.Run(ctx, prepared(test.effect, time.Hour, run), Call{})
			if took := time.Since(start); out.Result.Status != test.want || took != test.took {
				t.Errorf("%s that ends after %s (%v): %s after %s, want %s after %s", test.effect, test.ends, test.cause,
					out.Result.Status, took, test.want, test.took)
			}
		})
	}
}

func TestUndone(t *testing.T) {
	for _, effect := range effects {
		synctest.Test(t, func(t *testing.T) {
			run := func(ctx context.Context, _ Call) (machine.Value, error) {
				<-ctx.Done()
				return nil, Undone(ctx, "the refund")
			}
			out := Runner{}.Run(t.Context(), prepared(effect, time.Second, run), Call{})
			if want := problem(Failed, "timeout", "the refund timed out, nothing was changed"); !reflect.DeepEqual(out.Result, want) {
				t.Errorf("got %+v", out.Result)
			}
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Millisecond, cancel)
			out = Runner{}.Run(ctx, prepared(effect, time.Hour, run), Call{})
			if want := problem(Failed, "cancelled", "the refund was cancelled, nothing was changed"); !reflect.DeepEqual(out.Result, want) {
				t.Errorf("got %+v", out.Result)
			}
		})
	}
}

func TestRunDoesNotStartUnderAnEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := prepared(machine.EffectWrite, 0, func(context.Context, Call) (machine.Value, error) { t.Error("it ran"); return nil, nil })
	out := Runner{}.Run(ctx, p, Call{})
	if out.Ran || out.Result.Status != Refused || out.Result.Problem.Kind != KindCancelled {
		t.Errorf("got %+v", out)
	}
}

func TestOutputIsCapped(t *testing.T) {
	huge := strings.Repeat("é", MaxOutput)
	run := func(v any) Result {
		return Runner{}.Run(t.Context(), prepared(machine.EffectWrite, 0, give(v, nil)), Call{}).Result
	}
	check := func(name string, text machine.Value) {
		t.Helper()
		s, ok := text.(string)
		if !ok || !utf8.ValidString(s) || !strings.Contains(s, "… [cut: ") || len(s) > MaxOutput+100 {
			t.Errorf("%s: %T of %d bytes", name, text, len(s))
		}
	}
	check("text", run(huge).Value)
	check("list", run([]any{huge, huge}).Value)
	object, ok := run(map[string]any{"exit_code": 1, "stdout": huge, "stderr": "short"}).Value.(machine.Values)
	if !ok || object["exit_code"] != int64(1) || object["stderr"] != "short" {
		t.Fatalf("the object lost its shape: %v", object["exit_code"])
	}
	check("text in an object", object["stdout"])
	check("object with a large list", run(map[string]any{"a": []any{huge, huge}}).Value)
	if v := run(strings.Repeat("x", MaxOutput-2)).Value; len(v.(string)) != MaxOutput-2 {
		t.Error("text that fits was cut")
	}
	long := Runner{}.Run(t.Context(), prepared(machine.EffectRead, 0, give(nil, errors.New(huge))), Call{}).Result.Problem.Message
	check("message", long)
	if len(long) > maxMessage+100 {
		t.Errorf("message of %d bytes", len(long))
	}
}

func ExampleRunner_Run() {
	refund := func(ctx context.Context, _ Call) (machine.Value, error) {
		<-ctx.Done() // a shop that never answers
		return nil, ctx.Err()
	}
	call := Prepared{Tool: Tool{
		Spec: machine.ToolSpec{Name: "refund_order", Effect: machine.EffectWrite, Timeout: 10 * time.Millisecond},
		Run:  refund,
	}}
	out := Runner{}.Run(context.Background(), call, Call{Key: "01JD/4.0"})
	fmt.Println(out.Result.Status)
	fmt.Println(out.Result.Problem.Message)
	// Output:
	// unknown
	// refund_order timed out after 10ms, outcome unknown
}
