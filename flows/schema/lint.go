package schema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"sort"
	"strconv"
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// Flaw is one thing wrong in a schema that a person wrote.
type Flaw struct {
	Path       string // JSON pointer to the place, such as /properties/order_id/patern; "" is the schema itself
	Key        bool   // the fault is the last name of Path itself, not the value behind it
	Message    string
	Suggestion string // what was probably meant, "" if unknown
}

// Lint checks a schema that a person wrote: every keyword must be known and make sense, every default, example and enum
// word must fit. The flaws are sorted by path; none means that Compile takes the schema.
func Lint(data []byte) []Flaw {
	doc, err := machine.DecodeValue(data)
	if err != nil {
		return []Flaw{{Message: "the schema cannot be read: " + err.Error()}}
	}
	l := linter{doc: doc}
	l.schema(doc, nil)
	if len(l.flaws) == 0 {
		l.values()
	}
	sort.SliceStable(l.flaws, func(i, j int) bool { return l.flaws[i].Path < l.flaws[j].Path })
	return l.flaws
}

type linter struct {
	doc   machine.Value
	flaws []Flaw
	given []givenValue // defaults and the like, checked last
}

func (l *linter) flaw(path []string, message, suggestion string) {
	l.flaws = append(l.flaws, Flaw{Path: pointerOf(path), Message: message, Suggestion: suggestion})
}

// below gives a path one longer, without disturbing others that share its array.
func below(path []string, names ...string) []string {
	return append(append(make([]string, 0, len(path)+len(names)), path...), names...)
}

func (l *linter) schema(v machine.Value, path []string) {
	if _, ok := v.(bool); ok && len(path) > 0 {
		return
	}
	object, ok := v.(machine.Values)
	if !ok {
		l.flaw(path, "expected a schema such as {type: string}, got "+describe(v), "")
		return
	}
	for _, name := range machine.SortedNames(object) {
		k, known := keywords[name]
		if !known {
			l.unknown(name, path)
			continue
		}
		before := len(l.flaws)
		l.keyword(name, k.shape, object[name], below(path, name))
		if len(l.flaws) == before {
			l.applies(name, k, object, path)
		}
	}
	l.bounds(object, path)
	l.required(object, path)
	l.remember(object, path)
}

func (l *linter) unknown(name string, path []string) {
	suggestion := aliases[name]
	if suggestion == "" {
		suggestion = spell.Nearest(name, machine.SortedNames(keywords))
	}
	l.flaws = append(l.flaws, Flaw{
		Path: pointerOf(below(path, name)), Key: true, Suggestion: suggestion,
		Message: name + " is no keyword of a schema",
	})
}

// keyword checks the value behind one keyword.
func (l *linter) keyword(name string, s shape, v machine.Value, path []string) {
	switch s {
	case shapeSchema:
		if _, old := v.([]machine.Value); old && name == "items" {
			l.flaw(path, "items is one schema for all items; prefixItems is the list", "prefixItems")
			return
		}
		l.schema(v, path)
	case shapeSchemas:
		list, ok := v.([]machine.Value)
		if !ok || len(list) == 0 {
			l.flaw(path, name+" must be a list of schemas, got "+describe(v), "")
			return
		}
		for i, one := range list {
			l.schema(one, below(path, strconv.Itoa(i)))
		}
	case shapeSchemaMap:
		object, ok := v.(machine.Values)
		if !ok {
			l.flaw(path, name+" must be schemas by name, got "+describe(v), "")
			return
		}
		for _, each := range machine.SortedNames(object) {
			l.schema(object[each], below(path, each))
		}
	case shapeType:
		l.types(v, path)
	case shapeRef:
		l.ref(v, path)
	default:
		l.simple(name, s, v, path)
	}
}

// simple checks the keywords that hold no schema.
func (l *linter) simple(name string, s shape, v machine.Value, path []string) {
	want, ok := "", true
	switch s {
	case shapeText:
		_, ok = v.(string)
		want = "text"
	case shapeCount:
		n, whole := v.(int64)
		want, ok = "a whole number from 0", whole && n >= 0
	case shapeNumber:
		want, ok = "a number", isNumber(v)
	case shapePositive:
		want, ok = "a number above 0", isNumber(v) && asFloat(v) > 0
	case shapeFlag:
		_, ok = v.(bool)
		want = "true or false"
	case shapeList:
		list, isList := v.([]machine.Value)
		want, ok = "a list of at least one value", isList && len(list) > 0
		if ok && name == "enum" {
			l.twice(list, path)
		}
	case shapeNames:
		want, ok = "a list of names, beside properties", allStrings(v)
	case shapeRegexp:
		l.regexp(v, path)
	case shapeFormat:
		l.format(v, path)
	}
	if !ok {
		l.flaw(path, name+" must be "+want+", got "+describe(v), "")
	}
}

func isNumber(v machine.Value) bool {
	switch v.(type) {
	case int64, float64:
		return true
	}
	return false
}

func asFloat(v machine.Value) float64 {
	switch x := v.(type) {
	case int64:
		return float64(x)
	case float64:
		return x
	}
	return 0
}

func allStrings(v machine.Value) bool {
	list, ok := v.([]machine.Value)
	for _, one := range list {
		if _, isText := one.(string); !isText {
			return false
		}
	}
	return ok
}

func (l *linter) twice(list []machine.Value, path []string) {
	for i, v := range list {
		for _, earlier := range list[:i] {
			if machine.EqualValues(v, earlier) {
				l.flaw(below(path, strconv.Itoa(i)), show(v)+" stands twice in enum", "")
				break
			}
		}
	}
}

func (l *linter) types(v machine.Value, path []string) {
	list, isList := v.([]machine.Value)
	if !isList {
		l.oneType(v, path)
		return
	}
	if len(list) == 0 {
		l.flaw(path, "type must be a type or a list of types, got an empty list", "")
	}
	for i, one := range list {
		l.oneType(one, below(path, strconv.Itoa(i)))
	}
}

func (l *linter) oneType(v machine.Value, path []string) {
	name, ok := v.(string)
	switch {
	case v == nil:
		l.flaw(path, `null here is YAML's null; the type is written "null"`, `"null"`)
	case !ok:
		l.flaw(path, "type must be one of "+listNames(typeNames)+", got "+describe(v), "")
	case !slices.Contains(typeNames, name):
		suggestion := typeAliases[strings.ToLower(name)]
		if suggestion == "" {
			suggestion = spell.Nearest(name, typeNames)
		}
		l.flaw(path, strconv.Quote(name)+" is no type; there are "+listNames(typeNames), suggestion)
	}
}

func (l *linter) regexp(v machine.Value, path []string) {
	pattern, ok := v.(string)
	if !ok {
		l.flaw(path, "pattern must be a regular expression in quotes, got "+describe(v), "")
		return
	}
	if _, err := regexp.Compile(pattern); err != nil {
		l.flaw(path, "the pattern "+shorten(pattern)+" is no regular expression (RE2): "+regexpReason(err), "")
	}
}

// regexpReason says what a pattern lacks; RE2 has no look-ahead and no back-references, which others know.
func regexpReason(err error) string {
	var bad *syntax.Error
	if !errors.As(err, &bad) {
		return err.Error()
	}
	if bad.Code == syntax.ErrInvalidPerlOp && strings.HasPrefix(bad.Expr, "(?") {
		return "it has no look-ahead or look-behind such as " + bad.Expr
	}
	return bad.Code.String() + " at " + shorten(bad.Expr)
}

func (l *linter) format(v machine.Value, path []string) {
	name, ok := v.(string)
	if _, known := formatWords[name]; ok && known {
		return
	}
	known := machine.SortedNames(formatWords)
	l.flaw(path, "format "+show(v)+" is not known; there are "+strings.Join(known, ", "), spell.Nearest(name, known))
}

func (l *linter) ref(v machine.Value, path []string) {
	ref, ok := v.(string)
	if !ok {
		l.flaw(path, "$ref must be text such as \"#/$defs/name\", got "+describe(v), "")
		return
	}
	if !strings.HasPrefix(ref, "#") {
		l.flaw(path, "$ref must lead to a place in the same schema (#/$defs/name), not to "+shorten(ref), "")
		return
	}
	target, _, found := lookup(l.doc, ref)
	if !found {
		l.flaw(path, "there is no "+shorten(ref)+" in this schema", l.nearRef(ref))
		return
	}
	// What follows a $ref without stopping must end somewhere.
	for range maxDepth {
		object, _ := target.(machine.Values)
		next, more := object["$ref"].(string)
		if !more {
			return
		}
		if target, _, found = lookup(l.doc, next); !found {
			return
		}
	}
	l.flaw(path, "$ref "+shorten(ref)+" leads round in a circle", "")
}

func (l *linter) nearRef(ref string) string {
	defs, _ := at(l.doc, []string{"$defs"})
	object, _ := defs.(machine.Values)
	if near := spell.Nearest(strings.TrimPrefix(ref, "#/$defs/"), machine.SortedNames(object)); near != "" {
		return "#/$defs/" + near
	}
	return ""
}
