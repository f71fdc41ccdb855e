package flows

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"flowctl/flows/machine"
	"flowctl/flows/schema"
)

// TestJSONSchema holds the JSON Schema against the decoder: what compiles fits it, and what has a wrong key or kind of
// value does not.
func TestJSONSchema(t *testing.T) {
	data := JSONSchema(testCatalog())
	if again := JSONSchema(testCatalog()); !bytes.Equal(data, again) {
		t.Error("the schema differs from one call to the next")
	}
	compiled, err := schema.Compile(data)
	if err != nil {
		t.Fatal(err)
	}
	check := func(source []byte) error {
		doc, _ := parse("flow.yaml", source)
		return compiled.Check(nodeValue(doc.root))
	}
	files, _ := filepath.Glob("testdata/ok/*.yaml")
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(source); err != nil {
			t.Errorf("%s compiles and does not fit the schema: %v", file, err)
		}
	}
	for _, r := range Rules() {
		if err := check([]byte(r.Right)); err != nil {
			t.Errorf("the right example of %s does not fit the schema: %v", r.ID, err)
		}
	}
	for _, id := range []string{ruleUnknownKey, ruleMissingKey, ruleNoValue, ruleWrongType, ruleToolKind, ruleUnknownHandler,
		ruleUnknownWord, ruleBadName} {
		for _, r := range Rules() {
			if r.ID == id && check([]byte(r.Wrong)) == nil {
				t.Errorf("the wrong example of %s fits the schema", id)
			}
		}
	}
	for name, source := range map[string]string{
		"a wrong key of a handler":  "start: a\nstates: {a: {handler: end, with: {state: failed}}}\n",
		"a key of another handler":  "start: a\nstates: {a: {handler: end, with: {question: x}}}\n",
		"a missing with":            "start: a\nstates: {a: {handler: ask, transitions: {answered: a}}}\n",
		"a wrong key of a provider": "start: a\nmodels: {default: {provider: script, file: x, model: y}}\nstates: {a: {handler: end}}\n",
		"a bare scalar":             "start: a\nstates: {a: end}\n",
		"an example that is text":   "start: a\nstates: {a: {handler: end, examples: [Hello]}}\n",
		"an example without user":   "start: a\nstates: {a: {handler: end, examples: [{assistant: Hi}]}}\n",
		"a wrong key of an example": "start: a\nstates: {a: {handler: end, examples: [{user: Hello, bot: Hi, assistant: Hi}]}}\n",
		"a retry above 10":          "start: a\ntools: {t: {retry: 11, builtin: {name: calculator}}}\nstates: {a: {handler: end}}\n",
		"a negative retry":          "start: a\ntools: {t: {retry: -1, builtin: {name: calculator}}}\nstates: {a: {handler: end}}\n",
		"a budget of nothing":       "start: a\nstates: {a: {handler: end, view: {budget: {task: 0}}}}\n",
		"a memory without a name":   "start: a\nmemory: {}\nstates: {a: {handler: end}}\n",
		"tools that are one name":   "start: a\nstates: {a: {handler: end, tools: add}}\n",
		"tools without of":          "start: a\nstates: {a: {handler: end, tools: {select: {top: 3}}}}\n",
		"a select without top":      "start: a\nstates: {a: {handler: end, tools: {of: [add], select: {}}}}\n",
		"a guard without tool":      "start: a\nstates: {a: {handler: end, tools: [{when: 'true'}]}}\n",
		"a secret that is text":     "start: a\nvars: {b: {type: string, secret: 'true'}}\nstates: {a: {handler: end}}\n",
		"a wrong key of a server":   "start: a\nmcp: {s: {url: 'https://x', args: [a]}}\nstates: {a: {handler: end}}\n",
		"a cache that is text":      "start: a\nstates: {a: {handler: end, cache: sometimes}}\n",
	} {
		if check([]byte(exampleHead+source)) == nil {
			t.Errorf("%s fits the schema", name)
		}
	}
	for name, head := range map[string]string{"version 2": "version: 2\nname: x\n", "a bad name": "version: 1\nname: My Flow\n"} {
		if check([]byte(head+exampleTail)) == nil {
			t.Errorf("%s fits the schema", name)
		}
	}
	var described machine.SchemaInfo = compiled.Info()
	if !strings.Contains(strings.Join(described.Properties, " "), "transitions") && len(described.Properties) != 17 {
		t.Errorf("the schema has %d top keys, want 17: %v", len(described.Properties), described.Properties)
	}
}

func TestReference(t *testing.T) {
	text := Reference(testCatalog())
	if again := Reference(testCatalog()); text != again {
		t.Error("the reference differs from one call to the next")
	}
	for _, row := range []string{
		"| `version` | whole number | Format of the file: 1 (required) |\n",
		"| `language` | en \\| zh | Language of the engine's own words; en if left out |\n",
		"| `limits.time` | time, such as 90s or 15m | Active time, waiting not counted; 1h if left out |\n",
		"| `view.messages.last` | whole number | At most so many, the newest |\n",
		"### Handler `intent`\n\nClassify a text into one of intents. Outcomes: the intents, else success; fail.\n\n| key | value | |\n",
		"| `name` | name | Name of the flow (required) |\n",
		"### Outcomes and their lines\n",
		"- `visits(\"state\")`: entries of a state",
		"Functions: `abs`, ",
		"`%` `**`",
		"- `none_found`: nothing fits",
		"`run` `last`",
		"`success` `fail`",
		"| `intents.<name>.keywords` | list: word or phrase | Words that decide |\n",
		"| `fields[].ask` | text with {{ expression }} | The question |\n",
		"| `transitions.<name>.to` | name of a state | The next state (required) |\n",
		"| `examples[].user` | text with {{ expression }} | What the human says (required) |\n",
		"| `examples[].calls[].args` | by name: value with {{ expression }} | Its arguments |\n",
		"| `cache` | true or false | ",
		"| `tools.of[].when` | expression | Expression: where it does not hold, the state does not have the tool |\n",
		"| `tools.select.top` | whole number | How many (required) |\n",
		"| `memory.namespace` | text with {{ expression }} | ",
		"| `view.memory.keys` | list: text | ",
		"| `view.budget.system` | whole number | ",
		"| `retry` | whole number from 0 to 10 | ",
		"| `resource` | text with {{ expression }} | Text over args ",
		"| `mcp.<name>.env` | by name: text with {{ expression }} | ",
		"### Secret variables\n",
		"No model is called `none`, and no tool `finish`.",
		"### Tool kind `sql`\n",
		"### Model provider `openai`\n",
	} {
		if !strings.Contains(text, row) {
			t.Errorf("the reference lacks %q", row)
		}
	}
	for _, line := range strings.Split(text, "\n") {
		if strings.HasPrefix(line, "| `") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 4 {
			t.Errorf("a row has the wrong number of cells: %s", line)
		}
		if strings.HasSuffix(line, "|  |") {
			t.Errorf("a key has no explanation: %s", line)
		}
	}
}
