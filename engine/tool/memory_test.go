package tool_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

// remembering runs a function as an idempotent tool that is tried twice, and gives what is stored with its result.
func remembering(t *testing.T, run func(context.Context, tool.Call) (machine.Value, error)) (tool.Outcome, []store.MemoryWrite) {
	t.Helper()
	once := int64(1)
	spec := machine.ToolSpec{Name: "note", Effect: machine.EffectIdempotent, Retry: &once, Timeout: 250 * time.Millisecond}
	own := &tool.Memory{Namespace: "shop"}
	runner := tool.Runner{Sleep: func(context.Context, time.Duration) error { return nil }}
	outs, err := runner.Batch(t.Context(), []tool.Job{{Prepared: tool.Prepared{Tool: tool.Tool{Spec: spec, Run: run}}, Call: tool.Call{Memory: own}}}, tool.Hooks{})
	if err != nil {
		t.Fatal(err)
	}
	return outs[0], own.Written(outs[0].Result)
}

func TestWhatACallWritesGoesWithItsGoodResultOnly(t *testing.T) {
	five := int64(5)
	write := func(call tool.Call) {
		if err := errors.Join(call.Memory.Write("猫 & <b>", machine.Values{"a": "猫 & <b>"}, nil), call.Memory.Write("old", nil, &five)); err != nil {
			t.Error(err)
		}
	}
	for name, end := range map[string]func() (machine.Value, error){
		"ok":          func() (machine.Value, error) { return "done", nil },
		"failed":      func() (machine.Value, error) { return nil, errors.New("no") },
		"refused":     func() (machine.Value, error) { return nil, &tool.Error{Status: tool.Refused} },
		"unavailable": func() (machine.Value, error) { return nil, tool.Unavailablef("closed") },
		"panic":       func() (machine.Value, error) { panic("out of cheese") },
		"no value":    func() (machine.Value, error) { return func() {}, nil },
	} {
		out, writes := remembering(t, func(_ context.Context, call tool.Call) (machine.Value, error) {
			write(call)
			return end()
		})
		var want []store.MemoryWrite
		if name == "ok" {
			want = []store.MemoryWrite{{Namespace: "shop", Key: "猫 & <b>", Value: []byte(`{"a":"猫 & <b>"}`)}, {Namespace: "shop", Key: "old", Expect: &five}}
		}
		if (out.Result.Status == tool.OK) != (name == "ok") || !reflect.DeepEqual(writes, want) {
			t.Errorf("%s: %+v, writes %+v", name, out.Result, writes)
		}
	}
}

// A try that failed, or that was left behind and still writes, leaves nothing in what the next one stores.
func TestEachTryWritesForItself(t *testing.T) {
	var tries atomic.Int64
	release, gone := make(chan struct{}), make(chan struct{})
	out, writes := remembering(t, func(_ context.Context, call tool.Call) (machine.Value, error) {
		if tries.Add(1) > 1 {
			return "done", call.Memory.Write("k", "second", nil)
		}
		defer close(gone)
		err := call.Memory.Write("k", "first", nil)
		<-release // and not when the context ends
		return nil, errors.Join(err, call.Memory.Write("k", "late", nil))
	})
	close(release)
	<-gone
	if out.Result.Status != tool.OK || len(writes) != 1 || string(writes[0].Value) != `"second"` {
		t.Errorf("%+v, writes %+v", out.Result, writes)
	}
}

func TestWhatTheMemoryDoesNotTake(t *testing.T) {
	odd := machine.Values{"f": func() {}}
	for _, tc := range []struct {
		space, key string
		value      machine.Value
		says       string
	}{
		{"", "k", "x", "no value yet"},
		{"shop", "", "x", "the key is empty"},
		{"shop", " \u3000", "x", "the key is empty"},
		{"shop", strings.Repeat("k", 201), "x", "201 bytes"},
		{"shop", "a\x00", "x", "control character"},
		{"shop", "a\xff", "x", "not UTF-8"},
		{"shop", "k", odd, "cannot be written as JSON"},
		{"shop", "k", strings.Repeat("x", 65535), "65537 bytes"},
	} {
		m := &tool.Memory{Namespace: tc.space}
		if err := m.Write(tc.key, tc.value, nil); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%q: %v, want %q", tc.key, err, tc.says)
		}
		if writes := m.Written(tool.Result{Status: tool.OK}); writes != nil {
			t.Errorf("%q: written %+v", tc.key, writes)
		}
	}
	var none *tool.Memory
	if none.Written(tool.Result{Status: tool.OK}) != nil {
		t.Error("no memory was written to")
	}
}
