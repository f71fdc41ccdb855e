package flows

import (
	"slices"

	"github.com/expr-lang/expr/types"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// exprType is what the checker of expressions knows about a value: the part of a JSON Schema that it can use. A nil
// *exprType is any.
type exprType struct {
	kind   string   // JSON type; "" is any, null apart
	types  []string // all JSON types that its schema allows, if it was read from one; empty: any
	fields map[string]*exprType
	open   bool // an object may have more properties than fields
	items  *exprType
	enum   []machine.Value // nil: open
}

var (
	textType    = &exprType{kind: "string"}
	integerType = &exprType{kind: "integer"}
)

// maxTypeDepth bounds what is looked at of a schema; deeper, everything is any.
const maxTypeDepth = 12

// typeOfSchema reads the type of a schema; a nil schema is any.
func typeOfSchema(s machine.Schema) *exprType {
	if s == nil {
		return nil
	}
	doc, err := machine.DecodeValue(s.JSON())
	if err != nil {
		return nil
	}
	return typeReader{root: doc}.read(doc, 0)
}

type typeReader struct{ root machine.Value }

func (r typeReader) read(doc machine.Value, depth int) *exprType {
	object, ok := doc.(machine.Values)
	if !ok || depth > maxTypeDepth {
		return nil
	}
	if ref, ok := object["$ref"].(string); ok {
		return r.read(r.target(ref), depth+1)
	}
	t := &exprType{kind: oneKind(object["type"]), types: schema.Types(object)}
	if values, ok := object["enum"].([]machine.Value); ok {
		t.enum = values
	}
	if v, ok := object["const"]; ok {
		t.enum = []machine.Value{v}
	}
	if t.kind == "" && len(t.enum) > 0 {
		t.kind = kindOfAll(t.enum)
	}
	switch t.kind {
	case "array":
		if object["prefixItems"] == nil {
			t.items = r.read(object["items"], depth+1)
		}
	case "object":
		properties, _ := object["properties"].(machine.Values)
		t.fields = make(map[string]*exprType, len(properties))
		for name, property := range properties {
			t.fields[name] = r.read(property, depth+1)
		}
		// An object whose properties are declared has these: what else is named is nearly always a slip. The author can
		// say additionalProperties: true.
		more, given := object["additionalProperties"]
		t.open = more != false && (given || len(properties) == 0)
		for _, keyword := range []string{"allOf", "anyOf", "oneOf", "if", "patternProperties"} {
			t.open = t.open || object[keyword] != nil
		}
	}
	return t
}

// target finds what a local $ref of the schema points at; nil if it is not one of the plain ones.
func (r typeReader) target(ref string) machine.Value {
	const defs = "#/$defs/"
	if ref == "#" {
		return r.root
	}
	if len(ref) <= len(defs) || ref[:len(defs)] != defs {
		return nil
	}
	root, _ := r.root.(machine.Values)
	all, _ := root["$defs"].(machine.Values)
	return all[ref[len(defs):]]
}

// oneKind gives the type of a `type` that allows one only; null beside it does not count, since every variable can be
// null.
func oneKind(v machine.Value) string {
	if name, ok := v.(string); ok {
		if name == "null" {
			return ""
		}
		return name
	}
	list, _ := v.([]machine.Value)
	kind := ""
	for _, one := range list {
		name, _ := one.(string)
		switch {
		case name == "null" || name == kind:
		case kind == "":
			kind = name
		case kind == "integer" && name == "number" || kind == "number" && name == "integer":
			kind = "number"
		default:
			return ""
		}
	}
	return kind
}

// kindOfAll gives the one type of all values, "" if they differ.
func kindOfAll(values []machine.Value) string {
	list := make([]machine.Value, len(values))
	for i, v := range values {
		list[i] = machine.KindOf(v)
	}
	return oneKind(list)
}

// field gives the type of a property, and whether there can be one of this name.
func (t *exprType) field(name string) (*exprType, bool) {
	if t == nil || t.kind != "object" {
		return nil, true
	}
	f, ok := t.fields[name]
	return f, ok || t.open
}

// allows says whether a value of a JSON type can be of this type. A number may be an integer.
func (t *exprType) allows(kind string) bool {
	return t == nil || len(t.types) == 0 || slices.ContainsFunc(t.types, func(one string) bool {
		return one == kind || one == "number" && kind == "integer" || one == "integer" && kind == "number"
	})
}

// exprType gives the type as the checker of the library has it.
func (t *exprType) exprType() types.Type {
	if t == nil {
		return types.Any
	}
	switch t.kind {
	case "string":
		return types.String
	case "integer":
		return types.Int
	case "number":
		return types.Float64
	case "boolean":
		return types.Bool
	case "array":
		return types.Array(t.items.exprType())
	case "object":
		fields := make(types.Map, len(t.fields)+1)
		for name, f := range t.fields {
			fields[name] = f.exprType()
		}
		if t.open {
			fields[types.Extra] = types.Any
		}
		return fields
	}
	return types.Any
}
