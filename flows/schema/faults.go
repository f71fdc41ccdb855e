package schema

import (
	"fmt"
	"sort"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// faultsOf turns the library's tree of errors into a sorted list of places. value is what was checked, doc the schema.
func faultsOf(e *jsonschema.ValidationError, value, doc machine.Value) []machine.SchemaFault {
	c := collector{value: value, doc: doc}
	c.collect(e)
	sort.Slice(c.faults, func(i, j int) bool {
		a, b := c.faults[i], c.faults[j]
		if a.Path != b.Path {
			return a.Path < b.Path
		}
		return a.Want < b.Want
	})
	out := c.faults[:0]
	for i, f := range c.faults {
		if i == 0 || f != c.faults[i-1] {
			out = append(out, f)
		}
	}
	return out
}

type collector struct {
	value, doc machine.Value
	faults     []machine.SchemaFault
}

// add reports a fault at the place of e, or at a property below it.
func (c *collector) add(e *jsonschema.ValidationError, want string, below ...string) {
	path := append(append([]string(nil), e.InstanceLocation...), below...)
	got := "nothing"
	if v, ok := at(c.value, path); ok {
		got = describe(v)
	}
	c.faults = append(c.faults, machine.SchemaFault{Path: placeOf(c.value, path), Want: want, Got: got})
}

func (c *collector) collect(e *jsonschema.ValidationError) {
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			c.collect(cause)
		}
	case *kind.AnyOf:
		c.alternatives(e)
	case *kind.OneOf:
		if len(k.Subschemas) > 1 {
			c.add(e, fmt.Sprintf("a value that fits only one alternative of oneOf (this fits number %d and %d)",
				k.Subschemas[0]+1, k.Subschemas[1]+1))
			return
		}
		c.alternatives(e)
	case *kind.Required:
		for _, name := range k.Missing {
			c.add(e, "a value, since it is required", name)
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			c.add(e, c.knownProperties(e, name), name)
		}
	case *kind.DependentRequired:
		for _, name := range k.Missing {
			c.add(e, "a value, since "+k.Prop+" is given", name)
		}
	default:
		c.add(e, wanted(e.ErrorKind))
	}
}

// alternatives reports a value that fits no alternative of anyOf or oneOf. When it has the right type for exactly one of
// them, that one was meant, and only what is wrong below it is told.
func (c *collector) alternatives(e *jsonschema.ValidationError) {
	depth := len(e.InstanceLocation)
	var meant []*jsonschema.ValidationError
	var wants []string
	for _, cause := range e.Causes {
		sub := collector{value: c.value, doc: c.doc}
		sub.collect(cause)
		direct := false
		for _, leaf := range leaves(cause) {
			if _, ok := leaf.ErrorKind.(*kind.Type); ok && len(leaf.InstanceLocation) == depth {
				direct = true
			}
		}
		if !direct {
			meant = append(meant, cause)
		}
		for _, f := range sub.faults {
			want := f.Want
			if place := placeOf(c.value, e.InstanceLocation); f.Path != place {
				want = fmt.Sprintf("%s with %s %s", kindWords["object"], strings.TrimPrefix(f.Path[len(place):], "."), f.Want)
			}
			wants = append(wants, want)
		}
	}
	if len(meant) == 1 {
		c.collect(meant[0])
		return
	}
	sort.Strings(wants)
	c.add(e, orList(compact(wants)))
}

// leaves gives the errors without causes below e.
func leaves(e *jsonschema.ValidationError) []*jsonschema.ValidationError {
	if len(e.Causes) == 0 {
		return []*jsonschema.ValidationError{e}
	}
	var out []*jsonschema.ValidationError
	for _, cause := range e.Causes {
		out = append(out, leaves(cause)...)
	}
	return out
}

// knownProperties says which properties there are where an unknown one came.
func (c *collector) knownProperties(e *jsonschema.ValidationError, name string) string {
	_, ref, _ := strings.Cut(e.SchemaURL, "#")
	here, _, _ := lookup(c.doc, "#"+ref)
	object, _ := here.(machine.Values)
	properties, _ := object["properties"].(machine.Values)
	if len(properties) == 0 {
		return "no property of this name"
	}
	known := machine.SortedNames(properties)
	want := "no property of this name (known: " + listNames(known)
	if near := spell.Nearest(name, known); near != "" {
		want += "; did you mean " + near + "?"
	}
	return want + ")"
}

// wanted says what one broken keyword asks for.
func wanted(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Type:
		words := make([]string, len(k.Want))
		for i, t := range k.Want {
			words[i] = kindWords[t]
		}
		return orList(words)
	case *kind.Enum:
		return listValues(k.Want)
	case *kind.Const:
		return show(k.Want)
	case *kind.Format:
		if words, ok := formatWords[k.Want]; ok {
			return words
		}
		return "text of the format " + k.Want
	case *kind.Pattern:
		return "text that matches " + k.Want
	case *kind.Not:
		return "a value that does not fit the schema under not"
	case *kind.RefCycle:
		return "a schema whose $ref ends somewhere (this one leads round in a circle)"
	case *kind.FalseSchema:
		return "nothing here"
	case *kind.UniqueItems:
		return fmt.Sprintf("items that differ (number %d and %d are equal)", k.Duplicates[0]+1, k.Duplicates[1]+1)
	}
	if words := wantedSize(k); words != "" {
		return words
	}
	return "a value without this fault: " + k.LocalizedString(message.NewPrinter(language.English))
}

// wantedSize says it for the keywords that bound a number or a length.
func wantedSize(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		return "at least " + plural(k.Want, "character", "characters")
	case *kind.MaxLength:
		return "at most " + plural(k.Want, "character", "characters")
	case *kind.MinItems:
		return "at least " + plural(k.Want, "item", "items")
	case *kind.MaxItems:
		return "at most " + plural(k.Want, "item", "items")
	case *kind.MinProperties:
		return "at least " + plural(k.Want, "property", "properties")
	case *kind.MaxProperties:
		return "at most " + plural(k.Want, "property", "properties")
	case *kind.Minimum:
		return "at least " + showNumber(k.Want)
	case *kind.Maximum:
		return "at most " + showNumber(k.Want)
	case *kind.ExclusiveMinimum:
		return "more than " + showNumber(k.Want)
	case *kind.ExclusiveMaximum:
		return "less than " + showNumber(k.Want)
	case *kind.MultipleOf:
		return "a multiple of " + showNumber(k.Want)
	}
	return ""
}
