package tool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"

	"flowctl/flows/machine"
	"flowctl/flows/spell"
)

// parseArgs reads the text of an object.
func parseArgs(text json.RawMessage) (machine.Values, error) {
	if strings.TrimSpace(string(text)) == "" {
		return machine.Values{}, nil
	}
	v, err := machine.DecodeValue(text)
	if err != nil {
		return nil, fmt.Errorf("its arguments must be one JSON object: %w", err)
	}
	if name, twice := machine.RepeatedName(string(text)); twice { // readers differ in which of the two counts
		return nil, fmt.Errorf("its arguments give %q twice", name)
	}
	switch x := v.(type) {
	case nil:
		return machine.Values{}, nil
	case machine.Values:
		return x, nil
	case string:
		if strings.TrimSpace(x) == "" {
			return machine.Values{}, nil
		}
		return nil, errors.New("its arguments must be a JSON object itself, not text that holds one")
	}
	return nil, fmt.Errorf("its arguments must be a JSON object such as {\"name\": \"value\"}, not %s", kindWord(v))
}

// fit coerces arguments by a tool's parameters and checks them. All that is wrong is said at once.
func fit(parameters machine.Schema, args machine.Values, open bool) (machine.Values, []string) {
	var names []string
	if parameters != nil {
		names = parameters.Info().Properties
	}
	known, problems := sortOut(args, names, open)
	if parameters == nil {
		return known, problems
	}
	values, err := check(parameters, known)
	if err != nil {
		// Models write null for what they leave out.
		if values, again := check(parameters, withoutNulls(known, parameters.Info().Required)); again == nil {
			return values, problems
		}
		problems = append(problems, err.Error()+hint(err, known))
	}
	return values, problems
}

// hint says what to do where a list or an object was wanted and text came that holds one as JSON. It is not read as such: what
// a human approves, what is stored and what runs shall be what the model wrote.
func hint(err error, args machine.Values) string {
	var wrong *machine.SchemaError
	if !errors.As(err, &wrong) {
		return ""
	}
	for _, name := range machine.SortedNames(args) {
		text, ok := args[name].(string)
		if !ok || !slices.ContainsFunc(wrong.Faults, func(f machine.SchemaFault) bool { return f.Path == name }) {
			continue
		}
		v, err := machine.DecodeValue([]byte(text))
		if kind := machine.KindOf(v); err == nil && (kind == "array" || kind == "object") {
			return fmt.Sprintf("; write %s as JSON itself, without quotes around it", name)
		}
	}
	return ""
}

func check(parameters machine.Schema, args machine.Values) (machine.Values, error) {
	values, ok := parameters.Coerce(args).(machine.Values)
	if !ok {
		return nil, errors.New("its arguments must be a JSON object")
	}
	return values, parameters.Check(values)
}

// withoutNulls leaves out the parameters that are null and not required.
func withoutNulls(args machine.Values, required []string) machine.Values {
	out := make(machine.Values, len(args))
	for name, v := range args {
		if v != nil {
			out[name] = v
		}
	}
	for _, name := range required {
		if v, given := args[name]; given {
			out[name] = v
		}
	}
	return out
}

// sortOut drops arguments that cannot be meant, with a sentence for each: parameters that the tool does not have, and
// names that differ only by case from a parameter or from each other, since some readers of JSON take them for the same.
func sortOut(args machine.Values, names []string, open bool) (machine.Values, []string) {
	declared := make(map[string]bool, len(names))
	folded := map[string]string{} // lower case to the name that was seen
	for _, name := range names {
		declared[name] = true
		folded[strings.ToLower(name)] = name
	}
	known := make(machine.Values, len(args))
	var problems []string
	for _, name := range machine.SortedNames(args) {
		twin, seen := folded[strings.ToLower(name)]
		switch {
		case declared[name]:
			known[name] = args[name]
		case seen && declared[twin]:
			problems = append(problems, fmt.Sprintf("it has no parameter %s, did you mean %s?", quote(name), twin))
		case seen:
			problems = append(problems, fmt.Sprintf("the parameters %s and %s differ only by case", quote(twin), quote(name)))
		case open:
			folded[strings.ToLower(name)] = name
			known[name] = args[name]
		default:
			problems = append(problems, noParameter(name, names))
		}
	}
	return known, problems
}

func noParameter(name string, names []string) string {
	msg := "it has no parameter " + quote(name)
	if near := spell.Nearest(name, names); near != "" {
		return msg + ", did you mean " + near + "?"
	}
	if len(names) == 0 {
		return msg + ", it takes none"
	}
	sorted := append([]string(nil), names...)
	sort.Strings(sorted)
	return msg + ", it takes " + strings.Join(sorted, ", ")
}

// kindWord names a JSON type in a sentence.
func kindWord(v machine.Value) string {
	switch machine.KindOf(v) {
	case "array":
		return "a list"
	case "boolean":
		return "true or false"
	case "string":
		return "text"
	}
	return "a number"
}
