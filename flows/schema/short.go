package schema

import (
	"encoding/json"
	"errors"

	"flowctl/flows/machine"
)

// Short reads the parameters of a tool as flow files write them. Data with `type: object` and an object `properties` is a
// full schema and given back as it is. All else is the short form, name → schema: it becomes an object schema with the
// same order, without additional properties, in which every parameter without a default is required.
//
// short says which of the two it was: a path /properties/name in the result is /name in the short form.
func Short(data []byte) (full []byte, short bool, err error) {
	doc, err := machine.DecodeValue(data)
	if err != nil {
		return nil, false, err
	}
	object, ok := doc.(machine.Values)
	if !ok {
		return nil, false, errors.New("expected parameters such as {order_id: {type: string}}, got " + describe(doc))
	}
	if _, ok := object["properties"].(machine.Values); ok && object["type"] == "object" {
		return data, false, nil
	}
	if object["type"] == "object" {
		return nil, false, errors.New("type: object needs properties; without parameters write {}")
	}
	members, _ := membersOf(data)
	required := []string{}
	properties := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			properties = append(properties, ',')
		}
		name, err := json.Marshal(m.name)
		if err != nil {
			return nil, false, err
		}
		properties = append(append(append(properties, name...), ':'), m.value...)
		if !hasDefault(object[m.name]) {
			required = append(required, m.name)
		}
	}
	properties = append(properties, '}')
	full, err = json.Marshal(struct {
		Type       string          `json:"type"`
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
		Additional bool            `json:"additionalProperties"`
	}{"object", properties, required, false})
	return full, true, err
}

func hasDefault(schema machine.Value) bool {
	object, _ := schema.(machine.Values)
	_, ok := object["default"]
	return ok
}
