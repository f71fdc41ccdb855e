package states

import (
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// answerObject makes the schema of an object that a model answers with. Nothing but these properties may stand in it.
func answerObject(properties machine.Values, required ...string) (machine.Schema, error) {
	data, err := machine.EncodeValue(objectOf(properties, required...))
	if err != nil {
		return nil, err
	}
	s, err := schema.Compile(data)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// objectOf is answerObject as a value.
func objectOf(properties machine.Values, required ...string) machine.Values {
	names := make([]machine.Value, len(required))
	for i, name := range required {
		names[i] = name
	}
	return machine.Values{"type": "object", "properties": properties, "required": names, "additionalProperties": false}
}

// nameOf is the schema of one of several names.
func nameOf(names []string) machine.Values {
	words := make([]machine.Value, len(names))
	for i, name := range names {
		words[i] = name
	}
	return machine.Values{"type": "string", "enum": words}
}

// part gives a variable's schema as part of a larger one, at a place of that (a JSON pointer): references in it lead where
// they led before. Its own default is left out, or it would stand in for what the model does not say.
func part(s machine.Schema, at string) (machine.Value, error) {
	whole, err := machine.DecodeValue(s.JSON())
	if err != nil {
		return nil, err
	}
	if object, ok := whole.(machine.Values); ok && object["$ref"] != nil {
		// What it leads to may have a default, which counts for a property but not for one of several alternatives.
		return machine.Values{"allOf": []machine.Value{moved(object, at+"/allOf/0")}}, nil
	}
	out := moved(whole, at)
	if object, ok := out.(machine.Values); ok {
		delete(object, "default")
	}
	return out, nil
}

// orNull is part for a value that may be left out.
func orNull(s machine.Schema, at string) (machine.Value, error) {
	one, err := part(s, at+"/anyOf/0")
	return machine.Values{"anyOf": []machine.Value{one, machine.Values{"type": "null"}}}, err
}

// moved gives a schema whose top now stands at a place of a larger one.
func moved(v machine.Value, at string) machine.Value {
	switch x := v.(type) {
	case []machine.Value:
		out := make([]machine.Value, len(x))
		for i, one := range x {
			out[i] = moved(one, at)
		}
		return out
	case machine.Values:
		out := make(machine.Values, len(x))
		for name, one := range x {
			out[name] = movedKeyword(name, one, at)
		}
		return out
	}
	return v
}

func movedKeyword(name string, v machine.Value, at string) machine.Value {
	switch name {
	case "$ref":
		if ref, ok := v.(string); ok && strings.HasPrefix(ref, "#") {
			return "#" + at + ref[1:]
		}
		return v
	case "enum", "const", "default", "examples": // values, not schemas
		return v
	case "properties", "$defs": // schemas by names, which are no keywords
		named, ok := v.(machine.Values)
		if !ok {
			return v
		}
		out := make(machine.Values, len(named))
		for key, one := range named {
			out[key] = moved(one, at)
		}
		return out
	}
	return moved(v, at)
}
