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
	all := k.functions(setting{})
	var b strings.Builder
	b.WriteString("| name | parameters | gives | |\n|---|---|---|---|\n")
	for _, name := range machine.SortedNames(all) {
		f := all[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s (%s) |\n", name, parametersOf(f), typeOf(decoded(f.Result)), f.Description, f.Effect)
	}
	b.WriteString("\n" + notes)
	return b.String()
}

// notes say what the table has no room for.
const notes = "The file tools work below `root` only, on plain files of at most 1 MiB in UTF-8; links are followed as far as they stay " +
	"inside, and a file that is itself a link is not written. Hidden files and " +
	"folders, whose names begin with a dot, are left alone and not listed. Without a `root` of its own a tool changes nothing that may belong to " +
	"the flow: `*.yaml`, `*.yml`, `*.sql`, `*.db`, `*-wal`, `*-shm`, `*-journal`. `search_files` takes a regular expression (RE2) that is held against each line; `glob` " +
	"such as `*.md` or `docs/**/*.md` chooses files by name, or by path where it has a slash. It gives at most 200 hits and says with " +
	"`more` that there are others; `skipped` counts files that are too large or no text. A search " +
	"that runs out of time fails with kind too_much and is not tried again.\n\n" +
	"`http_get` asks the `hosts` of its declaration only, and follows redirects to them only. A host without a port stands for the usual " +
	"ports. Addresses of the own machine or network are refused, unless the host is named literally. A text of more than 1 MiB is cut.\n\n" +
	"`remember`, `recall` and `forget` need the key `memory` at the top of the flow and see its namespace only; where something that the " +
	"namespace is made of has no value yet, their calls fail. A key has 1 to 200 bytes and no control characters, a value at most 64 KiB of " +
	"JSON and is not null. What is written is stored together with the result of the call: both, or neither. Every write raises the " +
	"`version` of a key, which begins with 1; a key that was forgotten goes on from there when it is written anew. A call that names " +
	"a `version` counts only while the key still has it (0: there is no such key); otherwise it fails with kind conflict and gives `{key, version, value}` as they are now. In the `key` of `recall`, `*` " +
	"stands for any text. It gives at most 20 entries, and with `query` the best hits first.\n"

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
