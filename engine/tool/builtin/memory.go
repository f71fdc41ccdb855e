package builtin

import (
	"context"
	"errors"
	"slices"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
	"flowctl/store"
)

const (
	rememberName = "remember"
	recallName   = "recall"
	forgetName   = "forget"

	maxRecalled = 20 // entries that one recall gives
)

// forMemory says whether a function is one of those for the long-term memory.
func forMemory(name string) bool {
	return slices.Contains([]string{rememberName, recallName, forgetName}, name)
}

// NeedsMemory says whether the tool works in the namespace of a run's long-term memory.
func (c *Config) NeedsMemory() bool { return forMemory(c.Name) }

// Shows says where an argument of the tool would be seen by others, and what to do instead; "" where it would not.
func (c *Config) Shows(arg string) string {
	switch {
	case forMemory(c.Name):
		return "in the long-term memory, where it stays and is read in clear; leave it out of the arguments, it is kept in its variable"
	case c.Name == httpGetName && arg == "url":
		return "in a url, which servers and proxies write down; use a tool of the kind http that sends it in headers or json"
	}
	return ""
}

type rememberArgs struct {
	Key     string `json:"key" jsonschema:"description=Name of what is remembered\\, such as address.street,minLength=1,maxLength=200"`
	Value   any    `json:"value" jsonschema:"description=What is remembered: text\\, a number\\, a list or an object"`
	Version *int64 `json:"version,omitempty" jsonschema:"description=The version that you have read; the value is kept only if the key still has it. 0: only if there is no such key yet,minimum=0"`
}

type remembered struct {
	Key string `json:"key"`
}

type recallArgs struct {
	Query string `json:"query,omitempty" jsonschema:"description=Words that it is about"`
	Key   string `json:"key,omitempty" jsonschema:"description=The key\\, or a pattern of keys in which * stands for any text\\, such as address.*"`
	Limit int    `json:"limit,omitempty" jsonschema:"description=Entries at most\\, 20 if left out,minimum=1,maximum=20"`
}

type recalled struct {
	Key     string `json:"key"`
	Value   any    `json:"value"`
	Version int64  `json:"version"`
	Updated string `json:"updated_at"`
}

type forgetArgs struct {
	Key     string `json:"key" jsonschema:"description=The key of what is forgotten,minLength=1,maxLength=200"`
	Version *int64 `json:"version,omitempty" jsonschema:"description=The version that you have read; the key is forgotten only if it still has it,minimum=1"`
}

type forgotten struct {
	Forgotten bool `json:"forgotten"`
}

func memoryFunctions() []tool.Function {
	return []tool.Function{
		tool.Func(rememberName, "Remember something under a key, beyond this conversation. It takes the place of what the key held before.",
			machine.EffectIdempotent, remember),
		tool.Func(recallName, "Recall what was remembered, by what it is about (query), by its key, or by both. The best hits come first.",
			machine.EffectRead, recall),
		tool.Func(forgetName, "Forget what was remembered under a key.", machine.EffectIdempotent, forget),
	}
}

// memoryOf gives the memory of a call.
func memoryOf(call tool.Call) (*tool.Memory, error) {
	switch {
	case call.Memory == nil:
		return nil, tool.Failf("", "there is no long-term memory here: the flow declares none, or its runs are kept where there is none")
	case call.Memory.Namespace == "":
		return nil, tool.Failf("", "it is not known yet whose memory this is: something that its namespace is made of has no value; go on without, or find that out first")
	}
	return call.Memory, nil
}

func remember(ctx context.Context, call tool.Call, args rememberArgs) (remembered, error) {
	m, err := memoryOf(call)
	if err != nil {
		return remembered{}, err
	}
	if args.Value == nil {
		return remembered{}, tool.Failf("", "null cannot be remembered; to take a key out, call the tool that forgets")
	}
	if args.Version != nil { // a version that is wrong already is told at once; the commit looks again
		there, err := entryOf(ctx, m, args.Key)
		if err == nil {
			err = expect(there, args.Version)
		}
		if err != nil {
			return remembered{}, err
		}
	}
	if err := m.Write(args.Key, args.Value, args.Version); err != nil {
		return remembered{}, tool.Failf("", "%w", err)
	}
	return remembered{Key: args.Key}, nil
}

func recall(ctx context.Context, call tool.Call, args recallArgs) ([]recalled, error) {
	m, err := memoryOf(call)
	if err != nil {
		return nil, err
	}
	f := store.MemoryFilter{Namespace: m.Namespace, Keys: args.Key, Query: args.Query, Limit: maxRecalled}
	if args.Limit > 0 {
		f.Limit = min(args.Limit, maxRecalled)
	}
	if strings.TrimSpace(f.Query) == "" {
		f.Query = ""
	}
	if f.Query == "" && f.Keys == "" {
		return nil, tool.Failf("", "say what to recall: give query (words that it is about) or key (a key, or a pattern such as address.*)")
	}
	entries, err := m.Store.Memories(ctx, f)
	if err != nil {
		return nil, memoryTrouble(ctx, err)
	}
	list := make([]recalled, len(entries))
	for i, e := range entries {
		value, err := machine.DecodeValue(e.Value)
		if err != nil {
			return nil, tool.Failf("", "what is remembered under %s cannot be read: %w", show(e.Key), err)
		}
		list[i] = recalled{Key: e.Key, Value: value, Version: e.Version, Updated: e.Updated.UTC().Format("2006-01-02T15:04:05.000Z")}
	}
	return list, nil
}

func forget(ctx context.Context, call tool.Call, args forgetArgs) (forgotten, error) {
	m, err := memoryOf(call)
	if err != nil {
		return forgotten{}, err
	}
	there, err := entryOf(ctx, m, args.Key)
	if err != nil || there.Version == 0 { // what is not there is forgotten already, whatever its version was
		return forgotten{}, err
	}
	if err := expect(there, args.Version); err != nil {
		return forgotten{}, err
	}
	if err := m.Write(args.Key, nil, args.Version); err != nil {
		return forgotten{}, tool.Failf("", "%w", err)
	}
	return forgotten{Forgotten: true}, nil
}

// entryOf reads what is under a key, of version 0 if that is nothing.
func entryOf(ctx context.Context, m *tool.Memory, key string) (store.MemoryEntry, error) {
	e, err := m.Store.Remembered(ctx, m.Namespace, key)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return store.MemoryEntry{Namespace: m.Namespace, Key: key}, nil
	case err != nil:
		return e, memoryTrouble(ctx, err)
	}
	return e, nil
}

// expect is a conflict unless an entry has the expected version.
func expect(e store.MemoryEntry, version *int64) error {
	if version == nil || *version == e.Version {
		return nil
	}
	return tool.Conflict(&store.MemoryConflict{Namespace: e.Namespace, Key: e.Key, Version: e.Version, Value: e.Value})
}

// memoryTrouble is the failure of reading the memory. Nothing was changed by then.
func memoryTrouble(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return tool.Undone(ctx, "looking into the memory")
	}
	return tool.Unavailablef("the long-term memory cannot be read: %w", err)
}
