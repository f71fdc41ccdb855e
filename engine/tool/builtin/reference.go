package builtin

import (
	"fmt"
	"slices"
	"strings"

	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// reference lists the functions with their parameters and results as a Markdown table, for the flow reference.
func (k *Kind) reference() string {
	all := k.functions(folder{})
	var b strings.Builder
	b.WriteString("| name | parameters | gives | |\n|---|---|---|---|\n")
	for _, name := range machine.SortedNames(all) {
		f := all[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s (%s) |\n", name, parametersOf(f), typeOf(decoded(f.Result)), f.Description, f.Effect)
	}
	return b.String()
}

// decoded reads a schema of the program's own; nil where there is none.
func decoded(data []byte) machine.Values {
	v, err := machine.DecodeValue(data)
	if err != nil {
		return nil
	}
	object, _ := v.(machine.Values)
	return object
}

// parametersOf lists the parameters, those that may be left out with a question mark.
func parametersOf(f tool.Function) string {
	schema := decoded(f.Parameters)
	properties, _ := schema["properties"].(machine.Values)
	required, _ := schema["required"].([]machine.Value)
	var list []string
	for _, name := range machine.SortedNames(properties) {
		one, _ := properties[name].(machine.Values)
		mark := "?"
		if slices.Contains(required, machine.Value(name)) {
			mark = ""
		}
		list = append(list, fmt.Sprintf("`%s%s`: %s", name, mark, typeOf(one)))
	}
	return strings.Join(list, ", ")
}

// typeOf says in a few words what fits a schema.
func typeOf(schema machine.Values) string {
	switch schema["type"] {
	case "object":
		properties, _ := schema["properties"].(machine.Values)
		if names := machine.SortedNames(properties); len(names) > 0 {
			return "`{" + strings.Join(names, ", ") + "}`"
		}
		return "an object"
	case "array":
		items, _ := schema["items"].(machine.Values)
		return "a list of " + typeOf(items)
	case "string":
		return "text"
	case nil:
		return "anything"
	}
	return fmt.Sprint(schema["type"])
}
