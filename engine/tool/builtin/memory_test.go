package builtin

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/flows/schema"
	"flowctl/store"
	"flowctl/store/memory"
)

// namespace is a text of a machine that has a memory.
type namespace string

func (n namespace) Source() string                             { return string(n) }
func (n namespace) Reads() []string                            { return nil }
func (n namespace) Value(machine.Facts) (machine.Value, error) { return string(n), nil }
func (n namespace) Render(machine.Facts) (string, error)       { return string(n), nil }

func withMemory() *machine.Machine { return &machine.Machine{Memory: namespace("shop")} }

// brain is a memory with what calls are made on.
type brain struct {
	t     *testing.T
	store *memory.Store
	space string
}

func newBrain(t *testing.T) brain {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e6, time.UTC)
	return brain{t: t, store: memory.New(memory.Options{Now: func() time.Time { return at }}), space: "shop"}
}

// call makes a call as the engine does: checked, run, and what it wrote stored with its result.
func (b brain) call(name string, args machine.Values) tool.Result {
	b.t.Helper()
	return b.callOn(b.store, name, args)
}

func (b brain) callOn(s store.Memory, name string, args machine.Values) tool.Result {
	b.t.Helper()
	f := New().functions(setting{})[name]
	parameters, err := schema.Compile(f.Parameters)
	if err != nil {
		b.t.Fatal(err)
	}
	spec := machine.ToolSpec{Name: name, Effect: f.Effect, Parameters: parameters}
	set, err := tool.NewSet(map[string]tool.Tool{name: {Spec: spec, Run: f.Run}}, []string{name})
	if err != nil {
		b.t.Fatal(err)
	}
	prepared, refusal := set.PrepareValues(name, args)
	if refusal != nil {
		return *refusal
	}
	own := &tool.Memory{Namespace: b.space, Store: s}
	result := tool.Runner{}.Run(b.t.Context(), prepared, tool.Call{Memory: own}).Result
	if result.Value != nil && result.Status == tool.OK {
		shape, err := schema.Compile(f.Result)
		if err != nil {
			b.t.Fatal(err)
		}
		if err := shape.Check(result.Value); err != nil {
			b.t.Errorf("%s gives %v: %v", name, result.Value, err)
		}
	}
	if err := b.store.Memorize(b.t.Context(), own.Written(result)); err != nil {
		b.t.Fatal(err)
	}
	return result
}

func (b brain) want(name string, args machine.Values, want machine.Value) {
	b.t.Helper()
	if got := b.call(name, args); !reflect.DeepEqual(got, tool.Result{Status: tool.OK, Value: want}) {
		b.t.Errorf("%s %v: %+v, want %v", name, args, got, want)
	}
}

func (b brain) fails(name string, args machine.Values, says string) tool.Result {
	b.t.Helper()
	got := b.call(name, args)
	if got.Status == tool.OK || !strings.Contains(got.Problem.Message, says) {
		b.t.Errorf("%s %v: %+v, want a failure that says %q", name, args, got, says)
	}
	return got
}

// keys gives all keys of all namespaces.
func (b brain) keys() []string {
	entries, err := b.store.Memories(b.t.Context(), store.MemoryFilter{})
	if err != nil {
		b.t.Fatal(err)
	}
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Namespace+" "+e.Key)
	}
	return keys
}

func listed(key string, value machine.Value, version int64) machine.Values {
	return machine.Values{"key": key, "value": value, "version": version, "updated_at": "2026-01-02T03:04:05.006Z"}
}

func TestRememberRecallForget(t *testing.T) {
	b := newBrain(t)
	address := machine.Values{"city": "Köln", "no": int64(9007199254740993), "tags": []machine.Value{"a", true, 0.5}}
	b.want("recall", machine.Values{"key": "*"}, []machine.Value{})
	b.want("remember", machine.Values{"key": "address.home", "value": address}, machine.Values{"key": "address.home"})
	b.want("remember", machine.Values{"key": "猫", "value": "有一只猫"}, machine.Values{"key": "猫"})
	b.want("remember", machine.Values{"key": "猫", "value": false}, machine.Values{"key": "猫"})
	b.want("recall", machine.Values{"key": "address.*"}, []machine.Value{listed("address.home", address, 1)})
	b.want("recall", machine.Values{"key": "address.home"}, []machine.Value{listed("address.home", address, 1)})
	b.want("recall", machine.Values{"key": "address"}, []machine.Value{})
	b.want("recall", machine.Values{"query": "where in KÖLN?"}, []machine.Value{listed("address.home", address, 1)})
	b.want("recall", machine.Values{"query": "猫"}, []machine.Value{listed("猫", false, 2)})
	b.want("recall", machine.Values{"query": "köln", "key": "猫"}, []machine.Value{})
	b.want("recall", machine.Values{"query": "?!"}, []machine.Value{})
	b.want("forget", machine.Values{"key": "猫"}, machine.Values{"forgotten": true})
	b.want("forget", machine.Values{"key": "猫"}, machine.Values{"forgotten": false})
	b.want("forget", machine.Values{"key": "猫", "version": 2}, machine.Values{"forgotten": false})
	if got := b.keys(); !reflect.DeepEqual(got, []string{"shop address.home"}) {
		t.Errorf("left are %q", got)
	}
}

func TestRecallIsBounded(t *testing.T) {
	b := newBrain(t)
	for i := range 25 {
		b.call("remember", machine.Values{"key": "n" + string(rune('a'+i)), "value": int64(i)})
	}
	for limit, want := range map[int64]int{0: 20, 3: 3, 20: 20} {
		args := machine.Values{"key": "n*"}
		if limit > 0 {
			args["limit"] = limit
		}
		list, ok := b.call("recall", args).Value.([]machine.Value)
		if !ok || len(list) != want || !reflect.DeepEqual(list[0], listed("na", int64(0), 1)) {
			t.Errorf("limit %d gives %d entries, want %d", limit, len(list), want)
		}
	}
	b.fails("recall", machine.Values{"key": "n*", "limit": 21}, "limit")
	b.fails("recall", machine.Values{"key": "n*", "limit": 0}, "limit")
	b.fails("recall", machine.Values{}, "give query")
	b.fails("recall", machine.Values{"query": "  "}, "give query")
}

func TestAVersionThatDoesNotHoldIsAConflict(t *testing.T) {
	b := newBrain(t)
	b.call("remember", machine.Values{"key": "n", "value": "one"})
	b.call("remember", machine.Values{"key": "n", "value": "two"})
	for _, args := range []machine.Values{{"key": "n", "value": "x", "version": 1}, {"key": "n", "value": "x", "version": 0}, {"key": "n", "version": 1}} {
		name := "remember"
		if args["value"] == nil {
			name = "forget"
		}
		got := b.fails(name, args, "n was changed by somebody else: its version is 2 now")
		if want := (machine.Values{"key": "n", "version": int64(2), "value": "two"}); got.Status != tool.Failed || got.Problem.Kind != "conflict" ||
			!reflect.DeepEqual(got.Value, want) {
			t.Errorf("%s %v: %+v", name, args, got)
		}
	}
	got := b.fails("remember", machine.Values{"key": "none", "value": "x", "version": 1}, "it is not there any more")
	if want := (machine.Values{"key": "none", "version": int64(0), "value": nil}); !reflect.DeepEqual(got.Value, want) {
		t.Errorf("got %+v", got)
	}
	b.want("recall", machine.Values{"key": "*"}, []machine.Value{listed("n", "two", 2)})
	b.want("remember", machine.Values{"key": "n", "value": "three", "version": 2}, machine.Values{"key": "n"})
	b.want("remember", machine.Values{"key": "new", "value": "x", "version": 0}, machine.Values{"key": "new"})
	b.want("forget", machine.Values{"key": "n", "version": 3}, machine.Values{"forgotten": true})
}

// A version that was right when it was read is looked at again when the result is stored.
func TestTheVersionGoesIntoTheCommit(t *testing.T) {
	b := newBrain(t)
	b.call("remember", machine.Values{"key": "n", "value": "one"})
	for name, args := range map[string]machine.Values{"remember": {"key": "n", "value": "x", "version": int64(1)}, "forget": {"key": "n", "version": int64(1)}} {
		m := &tool.Memory{Namespace: "shop", Store: b.store}
		_, err := New().functions(setting{})[name].Run(t.Context(), tool.Call{Args: args, Memory: m})
		writes := m.Written(tool.Result{Status: tool.OK})
		if err != nil || len(writes) != 1 || writes[0].Expect == nil || *writes[0].Expect != 1 {
			t.Errorf("%s: %v, writes %+v", name, err, writes)
		}
	}
}

func TestWhatTheMemoryDoesNotTake(t *testing.T) {
	b := newBrain(t)
	for _, tc := range []struct {
		key   string
		value machine.Value
		says  string
	}{
		{"", "x", "key"},
		{"   ", "x", "the key is empty"},
		{strings.Repeat("k", 201), "x", "key"},
		{strings.Repeat("猫", 67), "x", "the key is 201 bytes long"},
		{"a\nb", "x", "control character"},
		{"a\u009bb", "x", "control character"},
		{"k", nil, "null cannot be remembered"},
		{"k", strings.Repeat("x", 64<<10), "bytes of JSON long"},
		{"k", []machine.Value{strings.Repeat("\n", 40<<10)}, "bytes of JSON long"},
	} {
		if got := b.fails("remember", machine.Values{"key": tc.key, "value": tc.value}, tc.says); got.Status == tool.Unknown || got.Status == tool.Unavailable {
			t.Errorf("%q: %+v", tc.key, got)
		}
	}
	b.fails("remember", machine.Values{"key": "k"}, "value")
	if got := b.keys(); got != nil {
		t.Errorf("remembered %q", got)
	}
	b.want("remember", machine.Values{"key": strings.Repeat("k", 200), "value": strings.Repeat("x", 64<<10-2)}, machine.Values{"key": strings.Repeat("k", 200)})
}

func TestWithoutAMemory(t *testing.T) {
	b := newBrain(t)
	all := map[string]machine.Values{"remember": {"key": "k", "value": "x"}, "recall": {"key": "*"}, "forget": {"key": "k"}}
	b.space = ""
	for name, args := range all {
		if got := b.fails(name, args, "not known yet whose memory"); got.Status != tool.Failed {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := New().functions(setting{})[name].Run(t.Context(), tool.Call{Args: args}); err == nil || !strings.Contains(err.Error(), "no long-term memory") {
			t.Errorf("%s without a memory: %v", name, err)
		}
		for _, m := range []*machine.Machine{nil, {}} {
			config := Config{Name: name, kind: New()}
			problems := config.Uses(machine.ToolScope{Machine: m}).Problems
			if len(problems) != 1 || problems[0].Rule != "no-memory" || problems[0].Path != "name" || !strings.Contains(problems[0].Message, name+" needs a long-term memory") {
				t.Errorf("%s: %+v", name, problems)
			}
		}
	}
	if got := b.keys(); got != nil {
		t.Errorf("remembered %q", got)
	}
}

// blind is a memory that cannot be read.
type blind struct {
	store.Memory
	err error
}

func (b blind) Remembered(context.Context, string, string) (store.MemoryEntry, error) {
	return store.MemoryEntry{}, b.err
}

func (b blind) Memories(context.Context, store.MemoryFilter) ([]store.MemoryEntry, error) {
	return nil, b.err
}

// A memory that cannot be read is out of order, and what could not be looked at was not changed.
func TestAMemoryThatCannotBeRead(t *testing.T) {
	b := newBrain(t)
	for name, args := range map[string]machine.Values{"remember": {"key": "k", "value": "x", "version": int64(0)}, "recall": {"key": "*"}, "forget": {"key": "k"}} {
		got := b.callOn(blind{b.store, errors.New("disk full")}, name, args)
		if got.Status != tool.Unavailable || !strings.Contains(got.Problem.Message, "cannot be read: disk full") {
			t.Errorf("%s: %+v", name, got)
		}
		ended := endedContext(t)
		_, err := New().functions(setting{})[name].Run(ended, tool.Call{Args: args, Memory: &tool.Memory{Namespace: "shop", Store: blind{b.store, ended.Err()}}})
		var e *tool.Error
		if !errors.As(err, &e) || e.Kind != tool.KindCancelled {
			t.Errorf("%s, stopped: %v", name, err)
		}
	}
}
