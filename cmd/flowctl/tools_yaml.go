package main

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// snippet writes the tools that a flow does not have yet as YAML, ready to be pasted into it; "" for none.
func snippet(doc offersDocument) string {
	var b strings.Builder
	for _, o := range doc.Tools {
		if o.Declared {
			continue
		}
		if b.Len() == 0 {
			b.WriteString("tools:\n")
		}
		description := o.Description
		if strings.TrimSpace(description) == "" {
			description = o.Tool + " of the MCP server " + doc.Server
		}
		b.WriteString("  " + o.Name + ":\n")
		b.WriteString("    description: " + yamlText(description) + "\n")
		b.WriteString("    effect: " + string(o.Effect) + "\n")
		parameters, without := parametersOf(o.Parameters)
		for _, path := range without {
			b.WriteString("    # left out: " + oneLine(path) + ", which a flow's schema cannot hold; the server still checks it\n")
		}
		if parameters != nil {
			yamlEntry(&b, 4, "parameters", parameters)
		}
		yamlEntry(&b, 4, "mcp", machine.Values{"server": doc.Server, "tool": o.Tool})
	}
	return b.String()
}

// parametersOf makes parameters of the schema that a server gives, in the short form where that says the same. What a flow's
// schemas do not know is left out, and named in without. nil: nothing is said of the arguments, and the tool takes any.
func parametersOf(data []byte) (parameters machine.Values, without []string) {
	v, err := machine.DecodeValue(data)
	object, _ := v.(machine.Values)
	properties, named := object["properties"].(machine.Values)
	if err != nil || !named || object["type"] != "object" {
		return nil, nil
	}
	delete(object, "$schema")
	for {
		data, err := machine.EncodeValue(object)
		if err != nil {
			return nil, nil
		}
		flaws := schema.Lint(data)
		if len(flaws) == 0 {
			break
		}
		path := flaws[0].Path
		if !dropKeyword(object, path) {
			return nil, []string{"parameters"}
		}
		without = append(without, path)
	}
	if saysShort(object, properties) {
		return properties, without
	}
	return object, without
}

// dropKeyword takes the keyword of a schema away that a JSON pointer leads to, or into whose list it leads. It is false
// where there is none, and where it is what makes the schema one of parameters.
func dropKeyword(object machine.Values, pointer string) bool {
	tokens := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	if pointer == "" || pointer == "/type" || pointer == "/properties" {
		return false
	}
	var owner machine.Values // of the innermost keyword that leads on
	name := ""
	var at machine.Value = object
	for _, token := range tokens {
		token = strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
		switch inner := at.(type) {
		case machine.Values:
			owner, name, at = inner, token, inner[token]
		case []machine.Value:
			i, err := strconv.Atoi(token)
			if err != nil || i < 0 || i >= len(inner) {
				return false
			}
			at = inner[i]
		default:
			return false
		}
	}
	if _, there := owner[name]; !there {
		return false
	}
	if i := len(tokens) - 1; i > 0 && tokens[i-1] == "properties" {
		owner[name] = machine.Values{} // a parameter stays one, of any kind
	} else {
		delete(owner, name)
	}
	return true
}

// saysShort says whether the short form of parameters says the same as a schema: nothing but these properties, all of them
// required that have no default.
func saysShort(object, properties machine.Values) bool {
	if object["additionalProperties"] != false {
		return false
	}
	for _, name := range machine.SortedNames(object) {
		if !slices.Contains([]string{"type", "properties", "required", "additionalProperties"}, name) {
			return false
		}
	}
	required, _ := object["required"].([]machine.Value)
	for name, property := range properties {
		schema, _ := property.(machine.Values)
		_, hasDefault := schema["default"]
		if hasDefault == slices.Contains(required, machine.Value(name)) {
			return false
		}
	}
	// A schema of two properties that are called type and properties would be read as a full one.
	return properties["type"] != "object" || properties["properties"] == nil
}

// yamlColumns is how long a line of YAML may be before a mapping goes over several lines.
const yamlColumns = 120

// yamlEntry writes one entry of a block mapping.
func yamlEntry(b *strings.Builder, indent int, name string, v machine.Value) {
	line := strings.Repeat(" ", indent) + yamlText(name) + ": "
	object, isObject := v.(machine.Values)
	flow := yamlFlow(v)
	if !isObject || len(object) == 0 || utf8.RuneCountInString(line+flow) <= yamlColumns {
		b.WriteString(line + flow + "\n")
		return
	}
	b.WriteString(strings.TrimRight(line, " ") + "\n")
	for _, key := range yamlOrder(object) {
		yamlEntry(b, indent+2, key, object[key])
	}
}

// yamlFlow writes a value on one line.
func yamlFlow(v machine.Value) string {
	switch x := v.(type) {
	case string:
		return yamlText(x)
	case []machine.Value:
		items := make([]string, len(x))
		for i, item := range x {
			items[i] = yamlFlow(item)
		}
		return "[" + strings.Join(items, ", ") + "]"
	case machine.Values:
		var entries []string
		for _, key := range yamlOrder(x) {
			entries = append(entries, yamlText(key)+": "+yamlFlow(x[key]))
		}
		return "{" + strings.Join(entries, ", ") + "}"
	case nil:
		return "null"
	}
	return machine.FormatValue(v)
}

// yamlFirst are the keys of a schema that people read first.
var yamlFirst = []string{"type", "description", "properties", "required"}

// yamlOrder gives the keys of a mapping in the order in which they are written.
func yamlOrder(object machine.Values) []string {
	keys := machine.SortedNames(object)
	slices.SortStableFunc(keys, func(a, b string) int { return yamlRank(a) - yamlRank(b) })
	return keys
}

func yamlRank(key string) int {
	if i := slices.Index(yamlFirst, key); i >= 0 {
		return i
	}
	return len(yamlFirst)
}

// plainYAML is text that means itself without quotes, wherever it stands; yamlWords are words that fit it and do not.
var (
	plainYAML = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9 _./()-]*[A-Za-z0-9_./()])?$`)
	yamlWords = []string{"y", "n", "yes", "no", "on", "off", "true", "false", "null"}
)

// yamlText writes a text, in quotes where it could mean something else without. Go's escapes are also YAML's.
func yamlText(text string) string {
	if plainYAML.MatchString(text) && !slices.Contains(yamlWords, strings.ToLower(text)) {
		return text
	}
	return strconv.Quote(text)
}
