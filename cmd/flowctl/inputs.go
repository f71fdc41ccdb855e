package main

import (
	"bytes"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"flowctl/engine"
	"flowctl/flows/machine"
)

var inputPair = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*=`)

// readInputs makes the inputs of a run from what -i gives: name=value, or a file with a JSON object of inputs. A pair
// counts more than a file. All that is wrong with the inputs is said at once.
func (a *app) readInputs(m *machine.Machine, given []string) (machine.Values, error) {
	inputs := machine.Values{}
	var pairs []string
	for _, arg := range given {
		if inputPair.MatchString(arg) {
			pairs = append(pairs, arg)
		} else if err := a.inputFile(arg, inputs); err != nil {
			return nil, err
		}
	}
	var wrong []string
	seen := map[string]bool{}
	for _, pair := range pairs {
		name, text, _ := strings.Cut(pair, "=")
		if seen[name] {
			return nil, usagef("give it once", "input %s is given twice", name)
		}
		seen[name] = true
		decl, ok := m.Inputs.Get(name)
		if !ok {
			inputs[name] = text // told below, together with those of the file
			continue
		}
		text, err := a.inputText(name, text)
		if err != nil {
			return nil, err
		}
		v, err := engine.ParseText(text, decl.Schema.Info())
		if err != nil {
			wrong = append(wrong, "input "+name+": "+err.Error())
			continue
		}
		inputs[name] = v
	}
	wrong = append(wrong, checkInputs(m, inputs, seen)...)
	if len(wrong) > 0 {
		return nil, usagef("", "%s", strings.Join(wrong, "\n  "))
	}
	return inputs, nil
}

// inputFile reads a JSON object of inputs by name.
func (a *app) inputFile(file string, into machine.Values) error {
	const hint = "write -i name=value, or -i FILE with a JSON object of inputs"
	data, err := os.ReadFile(a.path(file))
	if err != nil {
		return usagef(hint, "the inputs in %s cannot be read: %v", file, reason(err))
	}
	data = bytes.TrimPrefix(data, []byte("\uFEFF"))
	if !utf8.Valid(data) {
		return usagef("save the file as UTF-8", "the inputs in %s are not UTF-8 text", file)
	}
	v, err := machine.DecodeValue(data)
	if err != nil {
		return usagef(hint, "the inputs in %s: %v", file, err)
	}
	inputs, ok := v.(machine.Values)
	if !ok {
		return usagef(hint, "the inputs in %s are of JSON type %s", file, machine.KindOf(v))
	}
	maps.Copy(into, inputs)
	return nil
}

// inputText is the text behind -i name=: as it stands, from a file after @, with @@ for an at sign.
func (a *app) inputText(name, text string) (string, error) {
	const hint = "give UTF-8 text"
	file, at := strings.CutPrefix(text, "@")
	if !at || strings.HasPrefix(file, "@") {
		if !utf8.ValidString(file) {
			return "", usagef(hint, "input %s is not UTF-8 text", name)
		}
		return file, nil
	}
	data, err := os.ReadFile(a.path(file))
	if err != nil {
		return "", usagef("write @@ for an at sign", "input %s: the file %s cannot be read: %v", name, file, reason(err))
	}
	if !utf8.Valid(data) {
		return "", usagef(hint, "input %s: the file %s is not UTF-8 text", name, file)
	}
	return string(data), nil
}

// checkInputs says which inputs are unknown, missing or do not fit. Names in skip were judged before, where they are
// missing from inputs.
func checkInputs(m *machine.Machine, inputs machine.Values, skip map[string]bool) []string {
	var wrong []string
	for _, name := range machine.SortedNames(inputs) {
		decl, ok := m.Inputs.Get(name)
		if !ok {
			hint := suggest(name, m.Inputs.Names(), "it has "+orNone(m.Inputs.Names()))
			wrong = append(wrong, "flow "+m.Name+" has no input "+name+"; "+hint)
			continue
		}
		if err := decl.Check(inputs[name]); err != nil {
			wrong = append(wrong, "input "+name+": "+err.Error())
		}
	}
	for _, in := range m.Inputs {
		if _, ok := inputs[in.Name]; ok || in.Value.HasDefault || skip[in.Name] {
			continue
		}
		line := "input " + in.Name + " is missing; give it with -i " + in.Name + "=VALUE"
		if doc := in.Value.Schema.Info().Description; doc != "" {
			line += "   (" + doc + ")"
		}
		wrong = append(wrong, line)
	}
	return wrong
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(slices.Sorted(slices.Values(names)), ", ")
}
