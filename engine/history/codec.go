package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"flowctl/flows/machine"
	"flowctl/store"
)

// fresh makes an empty struct of each type that this version knows.
func fresh(t Type) Data {
	switch t {
	case TypeRunStarted:
		return &RunStarted{}
	case TypeStateEntered:
		return &StateEntered{}
	case TypeModelCalled:
		return &ModelCalled{}
	case TypeSummarised:
		return &Summarised{}
	case TypeWarned:
		return &Warned{}
	case TypeAttemptFailed:
		return &AttemptFailed{}
	case TypeToolStarted:
		return &ToolStarted{}
	case TypeToolFinished:
		return &ToolFinished{}
	case TypeAsked:
		return &Asked{}
	case TypeAnswered:
		return &Answered{}
	case TypeDoubtResolved:
		return &DoubtResolved{}
	case TypeExpired:
		return &Expired{}
	case TypeVarSet:
		return &VarSet{}
	case TypeSaid:
		return &Said{}
	case TypeNoteAdded:
		return &NoteAdded{}
	case TypeTransition:
		return &Transition{}
	case TypeSignalled:
		return &Signalled{}
	case TypeLimitRaised:
		return &LimitRaised{}
	case TypeFlowSwitched:
		return &FlowSwitched{}
	case TypeRunWaiting:
		return &RunWaiting{}
	case TypeRunStopped:
		return &RunStopped{}
	case TypeRunResumed:
		return &RunResumed{}
	case TypeRunFinished:
		return &RunFinished{}
	}
	return nil
}

// Encode gives the stored form of an event. redact, if not nil, works on the JSON text of the data: what is stored is
// what everybody reads from then on.
func Encode(ev Event, redact func(json []byte) []byte) (store.Event, error) {
	data, err := encodeData(ev.Data)
	if err != nil {
		return store.Event{}, fmt.Errorf("%s cannot be stored: %w", ev.Data.Type(), err)
	}
	if redact != nil {
		data = redact(data)
	}
	return store.Event{Seq: ev.Seq, At: ev.At, Type: string(ev.Data.Type()), State: ev.State, Visit: ev.Visit,
		Step: ev.Step, Key: ev.Key, Data: data}, nil
}

func encodeData(d Data) ([]byte, error) {
	if u, ok := d.(*Unknown); ok {
		return u.Raw, nil
	}
	return machine.EncodeValue(d)
}

// Decode reads a stored event. An event that cannot be read is a *DamagedError.
func Decode(row store.Event) (Event, error) {
	ev := Event{Seq: row.Seq, At: row.At, State: row.State, Visit: row.Visit, Step: row.Step, Key: row.Key}
	ev.Data = fresh(Type(row.Type))
	if ev.Data == nil {
		ev.Data = &Unknown{Name: Type(row.Type), Raw: row.Data}
		return ev, nil
	}
	if err := decodeObject(row.Data, ev.Data); err != nil {
		return Event{}, &DamagedError{Seq: row.Seq, Type: row.Type, Err: err}
	}
	return ev, nil
}

// DecodeAll reads stored events, which must count on without a gap from after.
func DecodeAll(rows []store.Event, after int64) ([]Event, error) {
	evs := make([]Event, len(rows))
	for i, row := range rows {
		if row.Seq != after+int64(i)+1 {
			return nil, &DamagedError{Seq: after + int64(i) + 1, Err: fmt.Errorf("it is missing; event %d stands in its place", row.Seq)}
		}
		ev, err := Decode(row)
		if err != nil {
			return nil, err
		}
		evs[i] = ev
	}
	return evs, nil
}

// DamagedError is a stored event that cannot be read.
type DamagedError struct {
	Seq  int64
	Type string
	Err  error
}

func (e *DamagedError) Error() string {
	name := ""
	if e.Type != "" {
		name = " (" + e.Type + ")"
	}
	return fmt.Sprintf("event %d%s of the stored history is damaged: %v", e.Seq, name, e.Err)
}

func (e *DamagedError) Unwrap() error { return e.Err }

// decodeObject reads exactly one JSON object. Data without values needs no exact numbers, which are dearer to read; those
// types that keep values in objects see to it in their UnmarshalJSON.
func decodeObject(data []byte, into Data) error {
	if len(data) == 0 || data[0] != '{' {
		return errNoObject
	}
	if _, ok := into.(valued); !ok {
		return json.Unmarshal(data, into)
	}
	if !json.Valid(data) {
		return errNoObject
	}
	return decodeJSON(data, into)
}

var errNoObject = errors.New("it is no JSON object")

// valued is data that holds values: numbers in them were decoded as json.Number and become exact values here.
type valued interface{ values() []*machine.Value }

func decodeJSON(data []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if v, ok := into.(valued); ok {
		return normalizeAll(v.values())
	}
	return nil
}

func normalizeAll(fields []*machine.Value) error {
	for _, field := range fields {
		n, err := machine.Normalize(*field)
		if err != nil {
			return err
		}
		*field = n
	}
	return nil
}

// normalizeMap makes the values of an object exact in place.
func normalizeMap(vs machine.Values) error {
	for name, v := range vs {
		n, err := machine.Normalize(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		vs[name] = n
	}
	return nil
}

// UnmarshalJSON keeps numbers exact.
func (e *RunStarted) UnmarshalJSON(data []byte) error {
	type plain RunStarted
	if err := decodeJSON(data, (*plain)(e)); err != nil {
		return err
	}
	if err := normalizeMap(e.Inputs); err != nil {
		return err
	}
	return normalizeMap(e.Vars)
}

// UnmarshalJSON keeps numbers exact.
func (e *FlowSwitched) UnmarshalJSON(data []byte) error {
	type plain FlowSwitched
	if err := decodeJSON(data, (*plain)(e)); err != nil {
		return err
	}
	if err := normalizeMap(e.Inputs); err != nil {
		return err
	}
	return normalizeMap(e.Vars)
}

// UnmarshalJSON keeps numbers exact.
func (e *ToolStarted) UnmarshalJSON(data []byte) error {
	type plain ToolStarted
	if err := decodeJSON(data, (*plain)(e)); err != nil {
		return err
	}
	return normalizeMap(e.Args)
}

func (e *ToolFinished) values() []*machine.Value {
	return []*machine.Value{&e.Args, &e.Result.Value}
}

func (e *Asked) values() []*machine.Value {
	vs := []*machine.Value{&e.Schema, &e.Args}
	for i := range e.Choices {
		vs = append(vs, &e.Choices[i].Schema)
	}
	return vs
}

func (e *Answered) values() []*machine.Value      { return []*machine.Value{&e.Value} }
func (e *DoubtResolved) values() []*machine.Value { return []*machine.Value{&e.Value} }
func (e *VarSet) values() []*machine.Value        { return []*machine.Value{&e.Value} }
func (e *Signalled) values() []*machine.Value     { return []*machine.Value{&e.Value} }
func (e *RunFinished) values() []*machine.Value   { return []*machine.Value{&e.Output} }
