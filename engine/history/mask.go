package history

import (
	"encoding/json"
	"slices"

	"flowctl/engine/model"
	"flowctl/engine/secret"
	"flowctl/flows/machine"
	"flowctl/store"
)

// Mask keeps the values of a run's secret variables out of what is shown of it. The history holds them as they are, marked,
// since a resumed run needs them; whatever leaves it, to a model or to a person, goes through the run's mask:
//
//   - by field: a secret variable, an argument or a result marked as secret, and the answer to a question for one, all of
//     them whatever their length;
//   - from secret.MinMasked characters on, wherever a value that a secret variable has or had appears in text.
//
// A Mask never changes; a nil Mask, of a run without secret variables, gives everything back as it is. It is safe for
// concurrent use.
type Mask struct {
	Names  []string // of the secret variables, sorted
	Values []string // that they have or had, and those of secret arguments, each once

	texts *secret.Redactor
}

// newMask makes a mask that finds values in text.
func newMask(names, values []string) *Mask {
	return &Mask{Names: names, Values: values, texts: secret.NewMask(values)}
}

// UnmarshalJSON reads a mask from a checkpoint.
func (m *Mask) UnmarshalJSON(data []byte) error {
	var stored struct{ Names, Values []string }
	if err := json.Unmarshal(data, &stored); err != nil {
		return err
	}
	*m = *newMask(stored.Names, stored.Values)
	return nil
}

// With gives a mask that hides more: variables by name, and values.
func (m *Mask) With(names []string, values ...machine.Value) *Mask {
	if m == nil {
		m = &Mask{}
	}
	known, texts := m.Names, m.Values
	for _, name := range names {
		if !slices.Contains(known, name) {
			known = append(slices.Clip(known), name)
		}
	}
	for _, text := range leaves(values, nil) {
		if text != "" && !slices.Contains(texts, text) {
			texts = append(slices.Clip(texts), text)
		}
	}
	if len(known) == 0 && len(texts) == 0 {
		return nil
	}
	if len(known) == len(m.Names) && len(texts) == len(m.Values) {
		return m
	}
	known = slices.Clone(known)
	slices.Sort(known)
	return newMask(known, texts)
}

// leaves adds the texts and numbers in a value to out.
func leaves(v machine.Value, out []string) []string {
	switch x := v.(type) {
	case nil, bool:
	case []machine.Value:
		for _, item := range x {
			out = leaves(item, out)
		}
	case machine.Values:
		for _, name := range machine.SortedNames(x) {
			out = leaves(x[name], out)
		}
	default:
		out = append(out, machine.FormatValue(x))
	}
	return out
}

// After gives the mask as it is after an event.
func (m *Mask) After(d Data) *Mask {
	switch d := d.(type) {
	case *RunStarted:
		return m.With(d.Secrets, values(d.Secrets, d.Inputs, d.Vars)...)
	case *FlowSwitched:
		return m.With(d.Secrets, values(d.Secrets, d.Inputs, d.Vars)...)
	case *VarSet:
		if d.Secret {
			return m.With([]string{d.Name}, d.Value)
		}
	case *ToolStarted:
		return m.With(nil, values(d.SecretArgs, d.Args)...)
	case *Asked:
		args, _ := d.Args.(machine.Values)
		return m.With(nil, values(d.SecretArgs, args)...)
	case *ToolFinished:
		args, _ := d.Args.(machine.Values)
		m = m.With(nil, values(d.SecretArgs, args)...)
		if text, ok := d.Result.Value.(string); d.Secret && ok {
			return m.With(nil, text)
		}
	}
	return m
}

// values gives those of some names in maps.
func values(names []string, in ...machine.Values) []machine.Value {
	var out []machine.Value
	for _, name := range names {
		for _, vs := range in {
			out = append(out, vs[name])
		}
	}
	return out
}

// AfterRows gives the mask as it is after stored events. Those that cannot be read are passed over.
func (m *Mask) AfterRows(rows []store.Event) *Mask {
	for _, row := range rows {
		if ev, err := Decode(row); err == nil {
			m = m.After(ev.Data)
		}
	}
	return m
}

// Hides says whether a variable is secret.
func (m *Mask) Hides(name string) bool { return m != nil && slices.Contains(m.Names, name) }

// Text takes values out of a text.
func (m *Mask) Text(text string) string {
	if m == nil {
		return text
	}
	return m.texts.Text(text)
}

// Value takes values out of a value. v is not changed.
func (m *Mask) Value(v machine.Value) machine.Value {
	if m == nil {
		return v
	}
	return m.texts.Value(v)
}

// Stream takes values out of a text that comes in pieces.
func (m *Mask) Stream() *secret.Stream {
	if m == nil {
		return (*secret.Redactor)(nil).Stream()
	}
	return m.texts.Stream()
}

// Vars hides the secret ones of variables, and takes values out of the others. vs is not changed.
func (m *Mask) Vars(vs machine.Values) machine.Values {
	if m == nil {
		return vs
	}
	return m.Args(vs, m.Names)
}

// Args hides those arguments of a call that are named as secret, and takes values out of the others. args is not changed.
func (m *Mask) Args(args machine.Values, secrets []string) machine.Values {
	if args == nil || m == nil && len(secrets) == 0 {
		return args
	}
	out := make(machine.Values, len(args))
	for name, v := range args {
		out[name] = m.Value(v)
	}
	hideAll(out, secrets)
	return out
}

// Question gives a question as it may be shown.
func (m *Mask) Question(q Question) Question {
	if asked, ok := m.Event(Event{Data: &q.Asked}).Data.(*Asked); ok {
		q.Asked = *asked
		return q
	}
	q.Asked = Asked{Kind: q.Kind, Question: secret.Mask, Schema: q.Schema, Due: q.Due}
	return q
}

// Message gives a message as a model may be shown it.
func (m *Mask) Message(msg Message) Message {
	if m == nil {
		return msg
	}
	msg.Text, msg.Reasoning, msg.Remark = m.Text(msg.Text), m.Text(msg.Reasoning), m.Text(msg.Remark)
	msg.Made = slices.Clone(msg.Made)
	for i := range msg.Made {
		msg.Made[i].Args = m.Text(msg.Made[i].Args)
	}
	return msg
}

// Request gives the messages of a request as they may be sent. messages is not changed.
func (m *Mask) Request(messages []model.Message) []model.Message {
	if m == nil {
		return messages
	}
	out := slices.Clone(messages)
	for i := range out {
		msg := &out[i]
		msg.Text, msg.Reasoning, msg.Calls = m.Text(msg.Text), m.Text(msg.Reasoning), slices.Clone(msg.Calls)
		for j := range msg.Calls {
			msg.Calls[j].Args = m.Text(msg.Calls[j].Args)
		}
	}
	return out
}

// Event gives an event as it may be shown; ev is not changed. One that cannot be read when its values are taken out is of
// the type Unknown.
func (m *Mask) Event(ev Event) Event {
	if m == nil {
		return ev
	}
	row, err := Encode(ev, nil)
	if err != nil {
		ev.Data = &Unknown{Name: ev.Data.Type(), Raw: []byte("{}")}
		return ev
	}
	row = m.Row(row)
	shown, err := Decode(row)
	if err != nil {
		ev.Data = &Unknown{Name: ev.Data.Type(), Raw: row.Data}
		return ev
	}
	return shown
}

// Row gives a stored event as it may be shown; that of a run without secret variables as it is.
func (m *Mask) Row(row store.Event) store.Event {
	if m == nil {
		return row
	}
	v, err := machine.DecodeValue(row.Data)
	data, ok := v.(machine.Values)
	if err != nil || !ok { // damaged
		row.Data = []byte(m.Text(string(row.Data)))
		return row
	}
	m.hide(Type(row.Type), data)
	if shown, err := machine.EncodeValue(m.shown(data)); err == nil {
		row.Data = shown
		return row
	}
	row.Data = []byte("{}") // what was read as JSON can be written as JSON
	return row
}

// hide hides the fields of an event's data that are marked as secret, in place.
func (m *Mask) hide(t Type, data machine.Values) {
	marked := data["secret"] == true
	switch t {
	case TypeRunStarted, TypeFlowSwitched:
		hideAll(data["inputs"], m.Names)
		hideAll(data["vars"], m.Names)
	case TypeVarSet:
		if name, _ := data["name"].(string); marked || m.Hides(name) {
			hideAll(data, []string{"value"})
		}
	case TypeAnswered, TypeDoubtResolved:
		if marked {
			hideAll(data, []string{"value", "text"})
		}
	case TypeToolStarted, TypeToolFinished, TypeAsked:
		var names []string
		list, _ := data["secret_args"].([]machine.Value)
		for _, name := range list {
			names = append(names, machine.FormatValue(name))
		}
		hideAll(data["args"], names)
		if marked {
			hideAll(data["result"], []string{"value"})
		}
	}
}

// hideAll hides members of an object, in place. One that has no value has nothing to hide.
func hideAll(object machine.Value, names []string) {
	vs, _ := object.(machine.Values)
	for _, name := range names {
		if vs[name] != nil && vs[name] != "" {
			vs[name] = secret.Mask
		}
	}
}

// anyShape are the members of events that hold values of any shape. In the others only texts may change, since numbers in them
// are read as numbers.
var anyShape = map[string]bool{"args": true, "value": true, "inputs": true, "vars": true, "output": true, "answer": true, "schema": true}

// shown takes values out of an event's data, in place.
func (m *Mask) shown(v machine.Value) machine.Value {
	switch x := v.(type) {
	case string:
		return m.Text(x)
	case []machine.Value:
		for i, item := range x {
			x[i] = m.shown(item)
		}
	case machine.Values:
		for name, item := range x {
			if anyShape[name] {
				x[name] = m.Value(item)
			} else {
				x[name] = m.shown(item)
			}
		}
	}
	return v
}
