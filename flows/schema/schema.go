package schema

import (
	"errors"
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"flowctl/flows/machine"
)

// location is the name under which the compiler knows a schema. Nothing is ever read from it.
const location = "mem:///schema"

// maxDepth bounds every walk along $ref, which may lead round in circles.
const maxDepth = 64

// Schema is a compiled JSON Schema. It is immutable and safe for concurrent use.
type Schema struct {
	compiled *jsonschema.Schema
	doc      machine.Value // the schema itself: an object, or true or false
	canon    []byte
	info     machine.SchemaInfo
}

var _ machine.Schema = (*Schema)(nil)

// Compile reads one JSON Schema. The order of `properties` in data is the order in Info.
func Compile(data []byte) (*Schema, error) {
	doc, err := machine.DecodeValue(data)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	switch doc.(type) {
	case bool, machine.Values:
	default:
		return nil, fmt.Errorf("expected a schema such as {type: string}, got %s", describe(doc))
	}
	compiler, err := newCompiler(doc)
	if err != nil {
		return nil, err
	}
	compiled, err := compiler.Compile(location)
	if err != nil {
		return nil, compileError(err)
	}
	canon, err := machine.EncodeValue(doc)
	if err != nil {
		return nil, fmt.Errorf("the schema cannot be written as JSON: %w", err)
	}
	return &Schema{compiled: compiled, doc: doc, canon: canon, info: infoOf(doc, data)}, nil
}

func newCompiler(doc machine.Value) (*jsonschema.Compiler, error) {
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(jsonschema.SchemeURLLoader{}) // the default one reads files
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.AssertFormat()
	if err := compiler.AddResource(location, doc); err != nil {
		return nil, fmt.Errorf("the schema cannot be read: %w", err)
	}
	return compiler, nil
}

// compileError says in one line what the library says in a tree.
func compileError(err error) error {
	var bad *jsonschema.SchemaValidationError
	var inner *jsonschema.ValidationError
	if errors.As(err, &bad) && errors.As(bad.Err, &inner) {
		return fmt.Errorf("not a JSON Schema: %w", &machine.SchemaError{Faults: faultsOf(inner, nil, nil)})
	}
	var load *jsonschema.LoadURLError
	if errors.As(err, &load) {
		return fmt.Errorf("a $ref must lead to a place in the same schema (#/$defs/name), not to %s", strings.TrimPrefix(load.URL, "mem:///"))
	}
	return fmt.Errorf("not a JSON Schema: %s", strings.ReplaceAll(err.Error(), location, ""))
}

// Check says how v breaks the schema: a *machine.SchemaError with all that is wrong, sorted by path, or nil.
func (s *Schema) Check(v machine.Value) error {
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("the value cannot be checked: %w", err)
	}
	return &machine.SchemaError{Faults: faultsOf(invalid, v, s.doc)}
}

// Info gives the part of the schema that handlers read. Its slices must not be changed.
func (s *Schema) Info() machine.SchemaInfo { return s.info }

// JSON gives the schema in canonical form: compact, keys sorted. The bytes must not be changed.
func (s *Schema) JSON() []byte { return s.canon }

// infoOf reads the top of a schema, through a $ref that stands there.
func infoOf(doc machine.Value, data []byte) machine.SchemaInfo {
	object, pointer := follow(doc)
	info := infoAt(object)
	if properties, ok := object["properties"].(machine.Values); ok {
		info.Properties = inOrder(properties, data, append(pointer, "properties"))
	}
	if items, ok := itemsOf(doc, object); ok {
		inner := infoAt(items)
		info.Items = &inner
	}
	return info
}

// itemsOf gives the one schema of a list's items, through the $ref that it may be.
func itemsOf(doc machine.Value, object machine.Values) (machine.Values, bool) {
	items, ok := object["items"].(machine.Values)
	for range maxDepth {
		ref, isRef := items["$ref"].(string)
		if !isRef {
			return items, ok
		}
		next, _, _ := lookup(doc, ref)
		items, ok = next.(machine.Values)
	}
	return nil, false
}

// infoAt reads what stands in a schema itself.
func infoAt(object machine.Values) machine.SchemaInfo {
	info := machine.SchemaInfo{Types: Types(object)}
	switch values, constant := object["enum"].([]machine.Value); {
	case constant:
		info.Enum = values
	default:
		if v, ok := object["const"]; ok {
			info.Enum = []machine.Value{v}
		}
	}
	info.Pattern, _ = object["pattern"].(string)
	info.Format, _ = object["format"].(string)
	info.Description, _ = object["description"].(string)
	required, _ := object["required"].([]machine.Value)
	for _, name := range required {
		if name, ok := name.(string); ok {
			info.Required = append(info.Required, name)
		}
	}
	return info
}

// Types gives the JSON types that a schema's top allows, sorted; nil is any. Without `type` those of its enum count.
func Types(object machine.Values) []string {
	var types []string
	switch t := object["type"].(type) {
	case string:
		types = []string{t}
	case []machine.Value:
		for _, one := range t {
			if name, ok := one.(string); ok {
				types = append(types, name)
			}
		}
	default:
		values, _ := object["enum"].([]machine.Value)
		if v, ok := object["const"]; ok {
			values = []machine.Value{v}
		}
		for _, v := range values {
			types = append(types, machine.KindOf(v))
		}
	}
	sort.Strings(types)
	return compact(types)
}

func compact(sorted []string) []string {
	out := sorted[:0]
	for i, s := range sorted {
		if i == 0 || s != sorted[i-1] {
			out = append(out, s)
		}
	}
	return out
}

// follow goes along the $ref at the top of a schema and gives what it leads to, with the pointer of that place.
func follow(doc machine.Value) (machine.Values, []string) {
	object, _ := doc.(machine.Values)
	var pointer []string
	for range maxDepth {
		ref, ok := object["$ref"].(string)
		if !ok {
			break
		}
		next, path, ok := lookup(doc, ref)
		if !ok {
			break
		}
		target, ok := next.(machine.Values)
		if !ok {
			break
		}
		object, pointer = target, path
	}
	return object, pointer
}

// lookup finds what a local $ref such as #/$defs/name points at.
func lookup(doc machine.Value, ref string) (machine.Value, []string, bool) {
	if ref == "#" {
		return doc, nil, true
	}
	rest, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, nil, false
	}
	var path []string
	for _, token := range strings.Split(rest, "/") {
		path = append(path, unescapeToken(token))
	}
	v, ok := at(doc, path)
	return v, path, ok
}
