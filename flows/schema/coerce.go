package schema

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"flowctl/flows/machine"
)

// Coerce gives v with simple types turned into the ones that the schema wants: the text "5" into 5 and "true" into true,
// the integer 5 into "5" where only text will do, one value into a list of one. Absent properties with a default get it.
// A change is made only where there is one possible reading; everything else is left for Check to refuse. v is not
// changed.
func (s *Schema) Coerce(v machine.Value) machine.Value { return coerce(s.compiled, v, nil) }

// trail is the way of schemas that led to one and the same value. A schema that comes up twice on it is a $ref that runs
// in a circle.
type trail struct {
	schema *jsonschema.Schema
	before *trail
}

func (t *trail) has(s *jsonschema.Schema) bool {
	for ; t != nil; t = t.before {
		if t.schema == s {
			return true
		}
	}
	return false
}

func coerce(s *jsonschema.Schema, v machine.Value, way *trail) machine.Value {
	if s == nil || s.Bool != nil || way.has(s) {
		return v
	}
	way = &trail{schema: s, before: way}
	if s.Ref != nil {
		v = coerce(s.Ref, v, way)
	}
	for _, part := range s.AllOf {
		v = coerce(part, v, way)
	}
	v = coerceChoice(s.AnyOf, v, way)
	v = coerceChoice(s.OneOf, v, way)
	v = coerceType(s, v, way)
	switch x := v.(type) {
	case machine.Values:
		return coerceObject(s, x, way)
	case []machine.Value:
		return coerceList(s, x)
	}
	return v
}

// coerceChoice takes the alternative that v fits as it is, else the only one that it can be made to fit.
func coerceChoice(choices []*jsonschema.Schema, v machine.Value, way *trail) machine.Value {
	for _, choice := range choices {
		if choice.Validate(v) == nil {
			return coerce(choice, v, way)
		}
	}
	var fits []machine.Value
	for _, choice := range choices {
		if changed := coerce(choice, v, way); choice.Validate(changed) == nil {
			fits = append(fits, changed)
		}
	}
	if len(fits) == 1 {
		return fits[0]
	}
	return v
}

func coerceObject(s *jsonschema.Schema, object machine.Values, way *trail) machine.Value {
	out := make(machine.Values, len(object)+len(s.Properties))
	for name, v := range object {
		if property, ok := s.Properties[name]; ok {
			v = coerce(property, v, nil)
		} else if more, ok := s.AdditionalProperties.(*jsonschema.Schema); ok {
			v = coerce(more, v, nil)
		}
		out[name] = v
	}
	for name, property := range s.Properties {
		if _, given := object[name]; given {
			continue
		}
		if v, ok := defaultOf(property); ok {
			// On the same trail: a default whose own property has the same schema would be filled without end.
			out[name] = coerce(property, machine.CloneValue(v), way)
		}
	}
	return out
}

// defaultOf finds a property's default, also behind a $ref.
func defaultOf(s *jsonschema.Schema) (machine.Value, bool) {
	for i := 0; s != nil && i < maxDepth; i++ {
		if s.Default != nil {
			return *s.Default, true
		}
		s = s.Ref
	}
	return nil, false
}

func coerceList(s *jsonschema.Schema, list []machine.Value) machine.Value {
	out := make([]machine.Value, len(list))
	for i, v := range list {
		out[i] = coerce(itemSchema(s, i), v, nil)
	}
	return out
}

// itemSchema gives the schema of the item with index i, nil if there is none.
func itemSchema(s *jsonschema.Schema, i int) *jsonschema.Schema {
	if i < len(s.PrefixItems) {
		return s.PrefixItems[i]
	}
	if s.Items2020 != nil {
		return s.Items2020
	}
	switch items := s.Items.(type) { // the form of drafts before 2020
	case *jsonschema.Schema:
		return items
	case []*jsonschema.Schema:
		if i < len(items) {
			return items[i]
		}
	}
	return nil
}

// coerceType turns a simple value into the only wanted type that it can be read as.
func coerceType(s *jsonschema.Schema, v machine.Value, way *trail) machine.Value {
	types := wantedTypes(s)
	if len(types) == 0 || types.allow(v) {
		return v
	}
	switch x := v.(type) {
	case string:
		if changed, ok := types.fromText(strings.TrimSpace(x)); ok {
			return changed
		}
	case int64:
		// An identifier that a model writes without quotes. Its digits are exact, so nothing is lost.
		if types["string"] {
			return strconv.FormatInt(x, 10)
		}
	}
	if types["array"] {
		return listOfOne(s, v, way)
	}
	return v
}

// typeSet is the set of JSON types that a schema wants; number covers integer.
type typeSet map[string]bool

func wantedTypes(s *jsonschema.Schema) typeSet {
	set := typeSet{}
	if s.Types != nil {
		for _, t := range s.Types.ToStrings() {
			set[t] = true
		}
	}
	if len(set) == 0 && s.Enum != nil {
		for _, v := range s.Enum.Values {
			set[machine.KindOf(v)] = true
		}
	}
	if len(set) == 0 && s.Const != nil {
		set[machine.KindOf(*s.Const)] = true
	}
	return set
}

func (t typeSet) allow(v machine.Value) bool {
	kind := machine.KindOf(v)
	return t[kind] || kind == "integer" && t["number"]
}

// jsonNumber is how JSON writes numbers. Text such as 007 or 1_000 is no number: its zeros and signs may mean something.
var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

func (t typeSet) fromText(s string) (machine.Value, bool) {
	switch lower := strings.ToLower(s); {
	case t["boolean"] && (lower == "true" || lower == "false"):
		return lower == "true", true
	case t["null"] && lower == "null":
		return nil, true
	}
	if (t["integer"] || t["number"]) && len(s) < 64 && jsonNumber.MatchString(s) {
		v, err := machine.DecodeValue([]byte(s))
		if err == nil && t.allow(v) {
			return v, true
		}
	}
	return nil, false
}

// listOfOne wraps a value that fits as an item. Text that looks like a list is left alone: it was meant as more than one.
func listOfOne(s *jsonschema.Schema, v machine.Value, way *trail) machine.Value {
	if text, ok := v.(string); ok && strings.HasPrefix(strings.TrimSpace(text), "[") {
		return v
	}
	if v == nil {
		return v
	}
	items := itemSchema(s, 0)
	item := coerce(items, v, way)
	if items != nil && items.Validate(item) != nil {
		return v
	}
	return []machine.Value{item}
}
