package schema

import (
	"errors"
	"net/url"
	"slices"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// givenValue is a value inside a schema that must fit it.
type givenValue struct {
	what   string // for the message
	value  machine.Value
	path   []string // of the value
	schema []string // path of the schema
}

// applies finds keywords that say nothing about the types that are allowed, such as minLength of an integer.
func (l *linter) applies(name string, k keyword, object machine.Values, path []string) {
	types := Types(object)
	if k.types == nil || len(types) == 0 {
		return
	}
	for _, t := range types {
		if slices.Contains(k.types, t) || t == "number" && slices.Contains(k.types, "integer") {
			return
		}
	}
	l.flaws = append(l.flaws, Flaw{
		Path: pointerOf(below(path, name)), Key: true,
		Message: name + " says something about " + orList(typeWords(k.types)) + " only; the type here is " + orList(types),
	})
}

func typeWords(types []string) []string {
	words := make([]string, len(types))
	for i, t := range types {
		words[i] = kindWords[t]
	}
	return words
}

func (l *linter) bounds(object machine.Values, path []string) {
	for _, pair := range bounds {
		low, high := object[pair[0]], object[pair[1]]
		if !isNumber(low) || !isNumber(high) {
			continue
		}
		exclusive := pair[0] == "exclusiveMinimum" || pair[1] == "exclusiveMaximum"
		if above(low, high) || exclusive && !above(high, low) {
			l.flaw(below(path, pair[0]), pair[0]+" "+show(low)+" and "+pair[1]+" "+show(high)+" leave no value", "")
		}
	}
}

// above compares two numbers, whole ones without loss.
func above(a, b machine.Value) bool {
	x, whole := a.(int64)
	y, both := b.(int64)
	if whole && both {
		return x > y
	}
	return asFloat(a) > asFloat(b)
}

// required finds names in `required` that are no property: the model or person that fills the object would never know.
func (l *linter) required(object machine.Values, path []string) {
	properties, ok := object["properties"].(machine.Values)
	names, _ := object["required"].([]machine.Value)
	if !ok {
		return
	}
	for i, v := range names {
		name, isText := v.(string)
		if _, known := properties[name]; isText && !known {
			l.flaw(below(path, "required", strconv.Itoa(i)), name+" is required but no property",
				spell.Nearest(name, machine.SortedNames(properties)))
		}
	}
}

// remember keeps the values in a schema that must fit it.
func (l *linter) remember(object machine.Values, path []string) {
	if v, ok := object["default"]; ok {
		l.given = append(l.given, givenValue{"the default", v, below(path, "default"), path})
	}
	if v, ok := object["const"]; ok {
		l.given = append(l.given, givenValue{"const", v, below(path, "const"), path})
	}
	for _, name := range []string{"enum", "examples"} {
		list, _ := object[name].([]machine.Value)
		for i, v := range list {
			what := "the example"
			if name == "enum" {
				what = "the enum word"
			}
			l.given = append(l.given, givenValue{what, v, below(path, name, strconv.Itoa(i)), path})
		}
	}
}

// values checks what remember has kept. It runs on schemas that are otherwise in order.
func (l *linter) values() {
	compiler, err := newCompiler(l.doc)
	if err == nil {
		_, err = compiler.Compile(location)
	}
	if err != nil {
		l.flaw(nil, compileError(err).Error(), "")
		return
	}
	for _, g := range l.given {
		compiled, err := compiler.Compile((&url.URL{Scheme: "mem", Path: "/schema", Fragment: pointerOf(g.schema)}).String())
		if err != nil {
			l.flaw(g.schema, compileError(err).Error(), "")
			continue
		}
		err = compiled.Validate(g.value)
		var invalid *jsonschema.ValidationError
		if errors.As(err, &invalid) {
			faults := &machine.SchemaError{Faults: faultsOf(invalid, g.value, l.doc)}
			l.flaw(g.path, g.what+" does not fit its own schema: "+faults.Error(), "")
		}
	}
}
