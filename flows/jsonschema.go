package flows

import (
	"bytes"
	"encoding/json"

	"flowctl/flows/machine"
)

// JSONSchema gives the JSON Schema of a flow file, for editors: with the handlers, tool kinds and model providers of the
// catalog. Equal catalogs have equal bytes.
func JSONSchema(cat Catalog) []byte {
	root := structSchema(fileShape(cat))
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "flowctl flow"
	root["properties"].(machine.Values)["version"].(machine.Values)["const"] = int64(flowVersion)
	root["patternProperties"] = machine.Values{"^x-": true}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(root); err != nil { // it is made of maps, lists and texts only
		panic(err)
	}
	return buf.Bytes()
}

// jsonSchema describes what may stand at a place.
func jsonSchema(s *shape, fl flags) machine.Values {
	switch s.kind {
	case shapeBool:
		return machine.Values{"type": "boolean"}
	case shapeInt:
		out := machine.Values{"type": "integer"}
		if fl.min {
			out["minimum"] = int64(1)
		}
		if fl.upto > 0 {
			out["minimum"], out["maximum"] = int64(0), fl.upto
		}
		return out
	case shapeFloat:
		return machine.Values{"type": "number", "minimum": int64(0)}
	case shapeDuration:
		return machine.Values{"type": "string", "pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`}
	case shapeVar, shapeTool, shapeState, shapeName:
		return machine.Values{"type": "string", "pattern": namePattern.String()}
	case shapePattern:
		return machine.Values{"type": "string", "format": "regex"}
	case shapeSchema:
		out := machine.Values{"type": "object"}
		if fl.variable {
			out["properties"] = machine.Values{"secret": machine.Values{"type": "boolean", "description": secretDoc}}
		}
		return out
	case shapeTree, shapeValue:
		return machine.Values{}
	case shapeList:
		return listSchema(s, fl)
	case shapeMap:
		return mapSchema(s, fl)
	case shapeStruct:
		return shorthandSchema(s)
	}
	out := machine.Values{"type": "string"}
	if len(s.enum) > 0 {
		out["enum"] = list(s.enum)
	}
	return out
}

func list(words []string) []machine.Value {
	out := make([]machine.Value, len(words))
	for i, w := range words {
		out[i] = w
	}
	return out
}

func listSchema(s *shape, fl flags) machine.Values {
	item := jsonSchema(s.elem, fl)
	many := machine.Values{"type": "array", "items": item}
	if !s.single {
		return many
	}
	return machine.Values{"anyOf": []machine.Value{item, many}}
}

func mapSchema(s *shape, fl flags) machine.Values {
	out := machine.Values{"type": "object", "additionalProperties": jsonSchema(s.elem, fl)}
	if fl.write || s.elem.kind != shapeTree && !fl.free {
		out["propertyNames"] = machine.Values{"pattern": namePattern.String()}
	}
	return out
}

func shorthandSchema(s *shape) machine.Values {
	full := structSchema(s)
	f, ok := s.scalar()
	if !ok {
		return full
	}
	return machine.Values{"anyOf": []machine.Value{jsonSchema(f.shape, f.flags), full}}
}

// structSchema describes a mapping with fixed keys.
func structSchema(s *shape) machine.Values {
	if s.pick != nil && s.pick.by != "" && s.pick.under == "" {
		return inlineSchema(s)
	}
	out := closed(s.fields)
	if s.pick == nil {
		return out
	}
	properties := out["properties"].(machine.Values)
	if s.pick.by == "" {
		var one []machine.Value
		for _, c := range s.pick.cases {
			properties[c.name] = described(shorthandSchema(c.shape), c.doc)
			one = append(one, machine.Values{"required": []machine.Value{c.name}})
		}
		out["oneOf"] = one
		return out
	}
	properties[s.pick.under] = machine.Values{}
	properties[s.pick.by].(machine.Values)["enum"] = list(s.pick.names())
	var each []machine.Value
	for _, c := range s.pick.cases {
		then := machine.Values{"properties": machine.Values{s.pick.under: described(shorthandSchema(c.shape), c.doc)}}
		if c.needs() {
			then["required"] = []machine.Value{s.pick.under}
		}
		each = append(each, machine.Values{
			"if": machine.Values{
				"properties": machine.Values{s.pick.by: machine.Values{"const": c.name}},
				"required":   []machine.Value{s.pick.by}},
			"then": then,
		})
	}
	if len(each) > 0 {
		out["allOf"] = each
	}
	return out
}

// needs says whether one of the case's keys must be given.
func (c *variantCase) needs() bool {
	for _, f := range c.shape.fields {
		if f.flags.required {
			return true
		}
	}
	return false
}

// inlineSchema describes a mapping whose other keys depend on one of its values.
func inlineSchema(s *shape) machine.Values {
	var each []machine.Value
	for _, c := range s.pick.cases {
		one := closed(append(append([]field(nil), s.fields...), c.shape.fields...))
		one["properties"].(machine.Values)[s.pick.by] = described(machine.Values{"const": c.name}, c.doc)
		each = append(each, one)
	}
	if len(each) == 0 {
		return machine.Values{"type": "object"}
	}
	return machine.Values{"oneOf": each}
}

func closed(fields []field) machine.Values {
	properties := machine.Values{}
	var required []machine.Value
	for _, f := range fields {
		if f.name == "" {
			continue
		}
		properties[f.name] = described(jsonSchema(f.shape, f.flags), f.doc)
		if f.flags.required {
			required = append(required, f.name)
		}
	}
	out := machine.Values{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func described(s machine.Values, doc string) machine.Values {
	if doc != "" {
		s["description"] = doc
	}
	return s
}
