package tool

import (
	"encoding/json"
	"fmt"
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// Set is the tools known to one state. It does not change after NewSet and is safe for concurrent use.
type Set struct {
	tools map[string]Tool
	names []string        // in the state's order
	open  map[string]bool // tools that take arguments beyond their named parameters
}

// NewSet picks the tools that a state knows by name, in the state's order. A name that is not among tools is an error.
func NewSet(tools map[string]Tool, names []string) (*Set, error) {
	s := &Set{tools: make(map[string]Tool, len(names)), open: map[string]bool{}}
	for _, name := range names {
		t, ok := tools[name]
		if !ok {
			return nil, fmt.Errorf("there is no tool %s", name)
		}
		if _, twice := s.tools[name]; twice {
			continue
		}
		s.tools[name] = t
		s.names = append(s.names, name)
		s.open[name] = TakesMore(t.Spec.Parameters)
	}
	return s, nil
}

// Names gives the names of the tools in the state's order. The slice is the caller's.
func (s *Set) Names() []string { return append([]string(nil), s.names...) }

// Tool finds a tool by its name.
func (s *Set) Tool(name string) (Tool, bool) {
	t, ok := s.tools[name]
	return t, ok
}

// Prepared is a call that may run. Its arguments are one value in two forms, and that value is what is approved, recorded
// and run. Neither form may be changed.
type Prepared struct {
	Tool   Tool
	Args   json.RawMessage // canonical JSON of an object
	Values machine.Values  // the same, parsed
}

// Read says whether the call changes nothing, so that it may run beside others and again.
func (p Prepared) Read() bool { return p.Tool.Spec.Effect == machine.EffectRead }

// Prepare reads the arguments of a call as a model wrote them. Nothing, blanks, "" and null stand for no arguments. A
// call that may not run comes back as a Refused result, whose message says what is wrong and what would be right.
func (s *Set) Prepare(name string, args json.RawMessage) (Prepared, *Result) {
	if refused := s.known(name); refused != nil {
		return Prepared{}, refused
	}
	values, err := parseArgs(args)
	if err != nil {
		return Prepared{}, refuse("%s was not run: %v", name, err)
	}
	return s.PrepareValues(name, values)
}

// PrepareValues is Prepare for arguments that are values already. args is not changed.
func (s *Set) PrepareValues(name string, args machine.Values) (Prepared, *Result) {
	if refused := s.known(name); refused != nil {
		return Prepared{}, refused
	}
	t := s.tools[name]
	values, problems := fit(t.Spec.Parameters, args, s.open[name])
	if len(problems) > 0 {
		return Prepared{}, refuse("%s was not run: %s", name, strings.Join(problems, "; "))
	}
	canonical, err := machine.EncodeValue(values)
	if err != nil {
		return Prepared{}, refuse("%s was not run: its arguments are no JSON: %v", name, err)
	}
	return Prepared{Tool: t, Args: canonical, Values: values}, nil
}

// known refuses a tool that the state does not know. What other states know is of no interest here: a model that is told
// of such a tool would call it again.
func (s *Set) known(name string) *Result {
	if _, ok := s.tools[name]; ok {
		return nil
	}
	msg := fmt.Sprintf("there is no tool %s here", quote(name))
	if len(s.names) == 0 {
		return refuse("%s, nor any other tool", msg)
	}
	if near := spell.Nearest(name, s.names); near != "" {
		msg += fmt.Sprintf(" (did you mean %s?)", near)
	}
	return refuse("%s; the tools that can be called are: %s", msg, strings.Join(s.names, ", "))
}

func refuse(format string, args ...any) *Result {
	msg := fmt.Sprintf(format, args...)
	return &Result{Status: Refused, Problem: machine.Problem{Kind: string(Refused), Message: CutText(msg, maxMessage)}}
}

// quote shows a word that a model made up.
func quote(word string) string {
	const longest = 60
	if runes := []rune(word); len(runes) > longest {
		word = string(runes[:longest]) + "…"
	}
	return fmt.Sprintf("%q", word)
}

// TakesMore says whether a schema allows properties that it does not name. JSON Schema allows them wherever it does not
// say otherwise; for a tool, only a schema that asks for more or that is put together of parts does.
func TakesMore(parameters machine.Schema) bool {
	if parameters == nil {
		return false
	}
	v, err := machine.DecodeValue(parameters.JSON())
	if err != nil {
		return false
	}
	object, _ := v.(machine.Values)
	for _, part := range []string{
		"patternProperties", "propertyNames", "unevaluatedProperties", "$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas",
	} {
		if _, ok := object[part]; ok {
			return true
		}
	}
	more, given := object["additionalProperties"]
	return given && more != false
}
