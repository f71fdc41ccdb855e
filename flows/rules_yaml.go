package flows

// Parts that the examples of rules share.
const (
	exampleHead = `version: 1
name: example
`
	exampleTail = `start: hello
states:
  hello: {handler: route, transitions: {next: done}}
  done: {handler: end}
`
)

var yamlRules = []Rule{
	{
		ID: ruleSyntax, Severity: SeverityError, Title: "The file is not YAML",
		Doc: `YAML has rules of its own: spaces and no tabs for indentation, quotes around a value that holds ': ' or, inside
{ } and [ ], a bracket, a comma or a question mark.`,
		Wrong: exampleHead + "description: Greet: the people\n" + exampleTail,
		Right: exampleHead + "description: 'Greet: the people'\n" + exampleTail,
	},
	{
		ID: ruleEmptyFile, Severity: SeverityError, Title: "The file is empty",
		Doc:   `A file without content, or with comments only, is no flow.`,
		Wrong: "# a flow will stand here\n",
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleSecondDocument, Severity: SeverityError, Title: "A second document in the file",
		Doc:   `A line --- starts a second document, which YAML readers commonly skip in silence. One file holds one flow.`,
		Wrong: exampleHead + exampleTail + "---\nversion: 1\n",
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleDuplicateKey, Severity: SeverityError, Title: "A key or an item stands twice",
		Doc:   `Of two equal keys one would be lost. Delete one, or give it another name.`,
		Wrong: exampleHead + "description: Greet\ndescription: Say hello\n" + exampleTail,
		Right: exampleHead + "description: Greet and say hello\n" + exampleTail,
	},
	{
		ID: ruleNullKey, Severity: SeverityError, Title: "A key is missing",
		Doc:   `A colon without a word before it, ~ and null are keys that YAML readers commonly drop in silence.`,
		Wrong: exampleHead + "limits: {~: 5}\n" + exampleTail,
		Right: exampleHead + "limits: {steps: 5}\n" + exampleTail,
	},
	{
		ID: ruleKeyType, Severity: SeverityError, Title: "A key is no text",
		Doc:   `true, 1 and 1.5 are no text in YAML, and keys are text. Put the key in quotes.`,
		Wrong: exampleHead + endFlow("{1: one, 2: two}"),
		Right: exampleHead + endFlow("{'1': one, '2': two}"),
	},
	{
		ID: ruleAlias, Severity: SeverityError, Title: "An alias or a merge key that cannot work",
		Doc:   `An alias (*name) must not stand inside its own anchor (&name), << takes mappings, and a file stays small when its aliases are written out.`,
		Wrong: exampleHead + "limits: {<<: 5, steps: 5}\n" + exampleTail,
		Right: exampleHead + "x-limits: &few {tool_calls: 5}\nlimits: {<<: *few, steps: 5}\n" + exampleTail,
	},
	{
		ID: ruleNumber, Severity: SeverityError, Title: "A number that readers do not agree on",
		Doc:   `In YAML 010 is 8, 0x10 is 16 and 1_000 is 1000, for some readers. A number is written in plain decimal; what has a leading zero is mostly no number but text and belongs in quotes. Whole numbers fit 64 bits.`,
		Wrong: exampleHead + "limits: {steps: 010}\n" + exampleTail,
		Right: exampleHead + "limits: {steps: 10}\n" + exampleTail,
	},
	{
		ID: ruleYesNo, Severity: SeverityError, Title: "yes, no, on or off without quotes",
		Doc:   `Where any value may stand, these words are text for some YAML readers and true or false for others. Put them in quotes, or write true or false.`,
		Wrong: exampleHead + "inputs: {message: {type: string, enum: [yes, no]}}\n" + exampleTail,
		Right: exampleHead + "inputs: {message: {type: string, enum: ['yes', 'no']}}\n" + exampleTail,
	},
	{
		ID: ruleTag, Severity: SeverityError, Title: "A YAML tag",
		Doc:   `A word that starts with ! is a tag of YAML's and not part of the value. Put the value in quotes.`,
		Wrong: exampleHead + "description: !important\n" + exampleTail,
		Right: exampleHead + "description: '!important'\n" + exampleTail,
	},
	{
		ID: ruleCut, Severity: SeverityError, Title: "A value that YAML cuts short",
		Doc:   `Without quotes YAML ends a value at ' #' and, inside { }, at a comma. So half a guard or half a sentence is left. Put the value in quotes; it is a good habit for every guard.`,
		Wrong: exampleHead + "inputs: {message: {type: string, description: What was said, in full}}\n" + exampleTail,
		Right: exampleHead + "inputs: {message: {type: string, description: 'What was said, in full'}}\n" + exampleTail,
	},
	{
		ID: ruleBareBraces, Severity: SeverityError, Title: "A text with {{ and without quotes",
		Doc:   `For YAML { begins a mapping, so a text that begins with {{ must be in quotes, and inside { } and [ ] every text that holds {{. Quotes around all of them are a good habit.`,
		Wrong: exampleHead + endFlow("{{ run.id }}"),
		Right: exampleHead + endFlow("'{{ run.id }}'"),
	},
}

// endFlow is a small flow with one output.
func endFlow(output string) string {
	return "start: hello\nstates:\n  hello:\n    handler: end\n    with:\n      output: " + output + "\n"
}
