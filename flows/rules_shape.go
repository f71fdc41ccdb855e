package flows

var shapeRules = []Rule{
	{
		ID: ruleUnknownKey, Severity: SeverityError, Title: "A key that is not known",
		Doc:   `A key that means nothing would be a wish that nobody hears, so it is refused. Top keys that start with x- are free.`,
		Wrong: exampleHead + "limits: {step: 5}\n" + exampleTail,
		Right: exampleHead + "limits: {steps: 5}\n" + exampleTail,
	},
	{
		ID: ruleMissingKey, Severity: SeverityError, Title: "A key is needed",
		Doc:   `A flow needs version, name, start and states, a state needs handler, and a handler has keys of its own that it needs.`,
		Wrong: "version: 1\n" + exampleTail,
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleNoValue, Severity: SeverityError, Title: "A key without value",
		Doc:   `A key with nothing behind it is mostly unfinished. Give it a value or leave it out.`,
		Wrong: exampleHead + "limits:\n" + exampleTail,
		Right: exampleHead + "limits: {steps: 5}\n" + exampleTail,
	},
	{
		ID: ruleWrongType, Severity: SeverityError, Title: "A value of the wrong kind",
		Doc:   `Each key takes one kind of value: text, a number, a time such as 90s, a list, a mapping.`,
		Wrong: exampleHead + "limits: {time: 60}\n" + exampleTail,
		Right: exampleHead + "limits: {time: 60s}\n" + exampleTail,
	},
	{
		ID: ruleVersion, Severity: SeverityError, Title: "The version is missing or not supported",
		Doc:   `A flow says which format it is written in. This flowctl reads version 1.`,
		Wrong: "version: 2\nname: example\n" + exampleTail,
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleToolKind, Severity: SeverityError, Title: "A tool has exactly one kind",
		Doc: `The kind of a tool is a key such as sql or builtin, and says how it is run.`,
		Wrong: exampleHead + `tools:
  add: {description: Compute a sum., effect: read}
start: hello
states:
  hello: {handler: call, with: {tool: add, args: {expression: 1 + 1}}, transitions: {success: done, fail: done}}
  done: {handler: end}
`,
		Right: exampleHead + `tools:
  add: {description: Compute a sum., builtin: {name: calculator}}
start: hello
states:
  hello: {handler: call, with: {tool: add, args: {expression: 1 + 1}}, transitions: {success: done, fail: done}}
  done: {handler: end}
`,
	},
	{
		ID: ruleWithInvalid, Severity: SeverityError, Title: "The keys of a handler, a tool or a model do not fit together",
		Doc: `Each key is right by itself, and what they say together cannot work. The message says what to change.`,
		Wrong: exampleHead + `start: hello
states:
  hello: {handler: agent, with: {goal: Greet the human}, transitions: {success: done, fail: done}}
  done: {handler: end}
`,
		Right: exampleHead + `models: {default: {provider: openai}}
start: hello
states:
  hello: {handler: agent, with: {goal: Greet the human}, transitions: {success: done, fail: done}}
  done: {handler: end}
`,
	},
}
