package flows

import (
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"flowctl/flows/machine"
)

// A shape says what may stand at a place of a flow file. Shapes are made from Go types once (shapes.of); the decoder, the
// canonical form, the JSON Schema and the reference are walks over them, so that these four cannot disagree.
type shape struct {
	kind   shapeKind
	enum   []string // of a shapeString: the words that it may be
	elem   *shape   // of a list's items or a map's values
	single bool     // a list that may also be written as its only item
	fields []field  // of a struct, in the order of the Go type
	pick   *variant // of a struct that has further keys
}

type shapeKind int

const (
	shapeString shapeKind = iota
	shapeBool
	shapeInt
	shapeFloat
	shapeDuration
	shapeText
	shapeExpr
	shapeTree
	shapeKeyword
	shapePattern
	shapeVar
	shapeTool
	shapeState
	shapeName // that the flow gives to itself
	shapeSchema
	shapeValue // any JSON value
	shapeList
	shapeMap // names in written order
	shapeStruct
)

// field is one key of a struct.
type field struct {
	name  string
	doc   string
	index []int // of the Go field: in the struct itself, or in the config of its variant
	shape *shape
	flags flags
	in    *variantCase // nil: the struct itself
}

// flags are the words of a flow tag.
type flags struct {
	required bool
	scalar   bool  // the value of the struct when it is written as a bare scalar or list
	prompt   bool  // shown to a model
	write    bool  // a variable that is written
	result   bool  // an expression that sees `result`
	outcomes bool  // names that become outcomes
	short    bool  // a schema that may be written in the short form of tool parameters
	variable bool  // schemas of variables, beside whose keywords `secret` may stand
	secret   bool  // a secret variable may stand here
	min      bool  // a number of at least 1
	upto     int64 // a number from 0 to this one; 0: no such bound
	one      bool  // a list that may be written as its only item
	free     bool  // names of a map that others chose
	env      bool  // texts that may read the environment
}

// inside gives the flags of a field that stands inside another one: what holds for all inside that one is added.
func (f flags) inside(outer flags) flags {
	f.prompt = f.prompt || outer.prompt
	f.env = f.env || outer.env
	f.secret = f.secret || outer.secret
	return f
}

// variant is the part of a struct whose keys depend on the catalog.
type variant struct {
	by     string // key whose value names the case; "": a case is chosen by a key with its name
	under  string // key that holds the case's keys; "": they stand beside the others
	what   string // what a case is called in messages
	rule   string // id of the rule for a case that is not known
	cases  []*variantCase
	name   []int // Go field that receives the name of the case
	config []int // Go field that receives its config
}

type variantCase struct {
	name, doc string
	shape     *shape
	make      func() any // a fresh pointer to a config struct
}

func (v *variant) find(name string) *variantCase {
	for _, c := range v.cases {
		if c.name == name {
			return c
		}
	}
	return nil
}

func (v *variant) names() []string {
	names := make([]string, len(v.cases))
	for i, c := range v.cases {
		names[i] = c.name
	}
	return names
}

// typeOf gives the reflect.Type of an interface type too.
func typeOf[T any]() reflect.Type { return reflect.TypeFor[T]() }

// leafKinds are the types with a meaning of their own.
var leafKinds = map[reflect.Type]shapeKind{
	typeOf[machine.Duration](): shapeDuration,
	typeOf[machine.Text]():     shapeText,
	typeOf[machine.Template](): shapeText,
	typeOf[machine.Expr]():     shapeExpr,
	typeOf[machine.Tree]():     shapeTree,
	typeOf[machine.Keyword]():  shapeKeyword,
	typeOf[machine.Pattern]():  shapePattern,
	typeOf[machine.VarRef]():   shapeVar,
	typeOf[machine.ToolRef]():  shapeTool,
	typeOf[machine.StateRef](): shapeState,
	typeOf[flowName]():         shapeName,
	typeOf[machine.Schema]():   shapeSchema,
	typeOf[machine.Value]():    shapeValue,
}

// shapes makes shapes and keeps them, so that each type has one.
type shapes struct {
	byType map[reflect.Type]*shape
}

// of gives the shape of a type. A type that no flow file can hold is a mistake of the programmer who wrote the config
// struct, and panics with the name of the field.
func (s *shapes) of(t reflect.Type, where string) *shape {
	if kind, ok := leafKinds[t]; ok {
		return &shape{kind: kind}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem(), where)
	case reflect.String:
		return &shape{kind: shapeString}
	case reflect.Bool:
		return &shape{kind: shapeBool}
	case reflect.Int, reflect.Int64:
		return &shape{kind: shapeInt}
	case reflect.Float64:
		return &shape{kind: shapeFloat}
	case reflect.Slice:
		if item, ok := itemOf(t); ok {
			return &shape{kind: shapeMap, elem: s.of(item, where)}
		}
		return &shape{kind: shapeList, elem: s.of(t.Elem(), where)}
	case reflect.Struct:
		return s.structOf(t, where)
	}
	panic(fmt.Sprintf("%s: a flow file cannot hold a %s", where, t))
}

// itemOf gives the value type of a machine.Ordered.
func itemOf(t reflect.Type) (reflect.Type, bool) {
	item := t.Elem()
	if item.Kind() != reflect.Struct || item.PkgPath() != typeOf[machine.Duration]().PkgPath() ||
		!strings.HasPrefix(item.Name(), "Item[") {
		return nil, false
	}
	f, _ := item.FieldByName("Value")
	return f.Type, true
}

func (s *shapes) structOf(t reflect.Type, where string) *shape {
	if done, ok := s.byType[t]; ok {
		if done == nil {
			panic(fmt.Sprintf("%s: %s holds itself", where, t))
		}
		return done
	}
	s.byType[t] = nil
	out := &shape{kind: shapeStruct}
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		fl, enum := parseFlags(f.Tag.Get("flow"), where+"."+f.Name)
		if !f.IsExported() || f.Type == typeOf[spot]() || name == "" || name == "-" && !fl.scalar {
			continue
		}
		shape := s.of(f.Type, where+"."+f.Name)
		shape.setEnum(enum)
		shape.setSingle(fl.one)
		if name == "-" {
			name = ""
		}
		out.fields = append(out.fields, field{name: name, doc: f.Tag.Get("doc"), index: f.Index, shape: shape, flags: fl})
	}
	s.byType[t] = out
	return out
}

// setEnum puts the words on the string itself, or on a list's items.
func (s *shape) setEnum(enum []string) {
	switch {
	case len(enum) == 0:
	case s.kind == shapeList:
		s.elem.setEnum(enum)
	default:
		s.enum = enum
	}
}

// setSingle marks a list, or the lists of a map.
func (s *shape) setSingle(one bool) {
	switch {
	case !one:
	case s.kind == shapeMap:
		s.elem.setSingle(one)
	default:
		s.single = true
	}
}

func parseFlags(tag, where string) (flags, []string) {
	var out flags
	var enum []string
	words := map[string]*bool{"required": &out.required, "scalar": &out.scalar, "prompt": &out.prompt,
		"write": &out.write, "expr:result": &out.result, "outcomes": &out.outcomes, "short": &out.short, "min1": &out.min,
		"one": &out.one, "free": &out.free, "env": &out.env, "variable": &out.variable, "secret": &out.secret}
	for _, word := range strings.Split(tag, ",") {
		if word == "" {
			continue
		}
		if list, ok := strings.CutPrefix(word, "enum:"); ok {
			enum = strings.Split(list, "|")
			continue
		}
		if bound, ok := strings.CutPrefix(word, "upto:"); ok {
			n, err := strconv.ParseInt(bound, 10, 64)
			if err != nil || n < 1 {
				panic(fmt.Sprintf("%s: upto needs a whole number above 0, not %q", where, bound))
			}
			out.upto = n
			continue
		}
		set, ok := words[word]
		if !ok {
			panic(fmt.Sprintf("%s: the flow tag has no word %q", where, word))
		}
		*set = true
	}
	return out, enum
}

// scalar gives the field that takes what stands there bare: a scalar, or a list.
func (s *shape) scalar() (field, bool) {
	for _, f := range s.fields {
		if f.flags.scalar {
			return f, true
		}
	}
	return field{}, false
}

// keys gives the fields that may stand as keys in this mapping: the struct's own, and those that its variant adds. The
// case is nil where none is chosen or known.
func (s *shape) keys(n *node) ([]field, *variantCase) {
	var out []field
	for _, f := range s.fields {
		if f.name != "" {
			out = append(out, f)
		}
	}
	if s.pick == nil {
		return out, nil
	}
	chosen := s.pick.chosen(n)
	switch {
	case s.pick.by == "":
		for _, c := range s.pick.cases {
			out = append(out, field{name: c.name, doc: c.doc, shape: c.shape, in: c})
		}
	case chosen == nil:
	case s.pick.under != "":
		out = append(out, field{name: s.pick.under, shape: chosen.shape, in: chosen})
	default:
		for _, f := range chosen.shape.fields {
			f.in = chosen
			out = append(out, f)
		}
	}
	return out, chosen
}

// chosen finds the case that a mapping chooses.
func (v *variant) chosen(n *node) *variantCase {
	if v.by != "" {
		if _, value := lookup(n, v.by); value != nil && isLeaf(value) {
			return v.find(value.Value)
		}
		return nil
	}
	for _, c := range v.cases {
		if _, value := lookup(n, c.name); value != nil {
			return c
		}
	}
	return nil
}

func fieldNames(fields []field) []string {
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	sort.Strings(names)
	return names
}

func findField(fields []field, name string) (field, bool) {
	for _, f := range fields {
		if f.name == name {
			return f, true
		}
	}
	return field{}, false
}
