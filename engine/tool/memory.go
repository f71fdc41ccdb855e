package tool

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"flowctl/flows/machine"
	"flowctl/store"
)

// The limits of an entry of the long-term memory, in bytes: of its key, and of its value as JSON.
const (
	MaxMemoryKey   = 200
	MaxMemoryValue = 64 << 10
)

// KindConflict is the kind of the problem of a call whose write to the long-term memory expected another version.
const KindConflict = "conflict"

// Memory is one namespace of the long-term memory, as one call sees it. What a call writes is stored together with its
// result, in one commit: where a version does not hold any more, nothing is written, and the call's result says so. It
// belongs to the goroutine of its call.
type Memory struct {
	Namespace string // "" where what it is made of has no value yet: nothing can be read or written then
	Store     store.Memory
	writes    []store.MemoryWrite
}

// Write puts a value, or with nil takes the key out, when the call's result is stored. expect is the version that the key
// must have then, 0 for none; nil: whatever it has. A key or a value that the memory does not take is an error, and so is
// a memory without namespace.
func (m *Memory) Write(key string, value machine.Value, expect *int64) error {
	if m.Namespace == "" {
		return errors.New("the namespace of the memory has no value yet, so nothing can be written to it")
	}
	if err := CheckMemoryKey(key); err != nil {
		return err
	}
	w := store.MemoryWrite{Namespace: m.Namespace, Key: key, Expect: expect}
	if value != nil {
		data, err := EncodeMemory(value)
		if err != nil {
			return err
		}
		w.Value = data
	}
	m.writes = append(m.writes, w)
	return nil
}

// Written gives what is stored with a result: nothing, unless it is good.
func (m *Memory) Written(r Result) []store.MemoryWrite {
	if m == nil || r.Status != OK {
		return nil
	}
	return m.writes
}

// own gives the same memory for one try of a call, with nothing written. A try that was left behind may go on writing to
// its own, and disturbs nobody.
func (m *Memory) own() *Memory {
	if m == nil {
		return nil
	}
	return &Memory{Namespace: m.Namespace, Store: m.Store}
}

// take makes what a try has written the call's own.
func (m *Memory) take(try *Memory) {
	if m != nil {
		m.writes = try.writes
	}
}

// CheckMemoryKey says why a text cannot be a key of the long-term memory, nil if it can.
func CheckMemoryKey(key string) error {
	switch {
	case strings.TrimSpace(key) == "":
		return errors.New("the key is empty; name what is remembered, such as address.street")
	case len(key) > MaxMemoryKey:
		return fmt.Errorf("the key is %d bytes long, and at most %d are possible; shorten it", len(key), MaxMemoryKey)
	case !utf8.ValidString(key):
		return errors.New("the key is not UTF-8 text")
	case strings.ContainsFunc(key, unicode.IsControl):
		return fmt.Errorf("the key %q holds a control character, such as a line break; leave it out", key)
	}
	return nil
}

// EncodeMemory gives a value as the long-term memory keeps it: compact JSON, whose letters a search finds. null is no
// value: a key without value is one that is not there.
func EncodeMemory(value machine.Value) ([]byte, error) {
	if value == nil {
		return nil, errors.New("null cannot be remembered; to take a key out, forget it")
	}
	data, err := machine.EncodeValue(value)
	if err != nil {
		return nil, errors.New("the value cannot be written as JSON")
	}
	if len(data) > MaxMemoryValue {
		return nil, fmt.Errorf("the value is %d bytes of JSON long, and at most %d are possible; remember less, or in several keys",
			len(data), MaxMemoryValue)
	}
	return data, nil
}

// Conflict is the failure of a call whose write to the long-term memory expects another version than the stored one. What
// is stored now stands beside it, so that the write can be made anew.
func Conflict(c *store.MemoryConflict) *Error {
	value, err := machine.DecodeValue(c.Value)
	now := fmt.Sprintf("its version is %d now", c.Version)
	if c.Version == 0 || err != nil {
		now = "it is not there any more"
	}
	return &Error{Status: Failed, Kind: KindConflict, Value: machine.Values{"key": c.Key, "version": c.Version, "value": value},
		Err: fmt.Errorf("%s was changed by somebody else: %s. Nothing was changed by this call; look at the present value and make the call again with its version",
			c.Key, now)}
}

// Result is the failure as the result of a call.
func (e *Error) Result() Result { return failure(e) }
