package flows

var nameRules = []Rule{
	{
		ID: ruleUnknownHandler, Severity: SeverityError, Title: "There is no such handler",
		Doc:   `A state names the handler that does its work. The reference lists those that flowctl brings.`,
		Wrong: exampleHead + "start: hello\nstates:\n  hello: {handler: ende}\n",
		Right: exampleHead + "start: hello\nstates:\n  hello: {handler: end}\n",
	},
	{
		ID: ruleUnknownState, Severity: SeverityError, Title: "There is no such state",
		Doc:   `Lines of transitions, start and visits("…") name states that stand in states.`,
		Wrong: exampleHead + "start: helo\nstates:\n  hello: {handler: end}\n",
		Right: exampleHead + "start: hello\nstates:\n  hello: {handler: end}\n",
	},
	{
		ID: ruleUnknownVariable, Severity: SeverityError, Title: "There is no such variable",
		Doc:   `Inputs and variables are declared in inputs and vars before they are used.`,
		Wrong: exampleHead + confirmFlow("vars: {remark: {type: string}}", "{question: Go on, comment: remrk}"),
		Right: exampleHead + confirmFlow("vars: {remark: {type: string}}", "{question: Go on, comment: remark}"),
	},
	{
		ID: ruleUnknownTool, Severity: SeverityError, Title: "There is no such tool",
		Doc: `Tools are declared in tools; a state or a plan names them.`,
		Wrong: exampleHead + `start: hello
states:
  hello: {handler: route, tools: [add], transitions: {next: done}}
  done: {handler: end}
`,
		Right: exampleHead + `tools: {add: {builtin: {name: calculator}}}
start: hello
states:
  hello: {handler: route, tools: [add], transitions: {next: done}}
  done: {handler: end}
`,
	},
	{
		ID: ruleUnknownModel, Severity: SeverityError, Title: "There is no such model or provider",
		Doc:   `A state takes the model that it names, else the one named default, else the only one. A model falls back to others that are declared too.`,
		Wrong: exampleHead + "models: {default: {provider: openapi}}\n" + exampleTail,
		Right: exampleHead + "models: {default: {provider: openai}}\n" + exampleTail,
	},
	{
		ID: ruleUnknownWord, Severity: SeverityError, Title: "A word that cannot stand here",
		Doc:   `Some keys take one of a few words.`,
		Wrong: exampleHead + "language: fr\n" + exampleTail,
		Right: exampleHead + "language: en\n" + exampleTail,
	},
	{
		ID: ruleBadName, Severity: SeverityError, Title: "Not a name",
		Doc:   `Names stand in expressions and tools, so they are lower-case letters, digits and _, and start with a letter.`,
		Wrong: exampleHead + "start: hello\nstates:\n  hello: {handler: route, transitions: {next: the-end}}\n  the-end: {handler: end}\n",
		Right: exampleHead + "start: hello\nstates:\n  hello: {handler: route, transitions: {next: the_end}}\n  the_end: {handler: end}\n",
	},
	{
		ID: ruleReservedName, Severity: SeverityError, Title: "A name that has a meaning already",
		Doc:   `Inputs and variables cannot be called like a word of the expression language (last, run, count, …), and an intent or a choice cannot be called like an outcome that every flow has (success, fail, error, timeout, limit, expired, else). No model is called none, which says that a state has no model, and no tool finish, by which a model gives its answer.`,
		Wrong: exampleHead + confirmFlow("vars: {last: {type: string}}", "{question: Go on, comment: last}"),
		Right: exampleHead + confirmFlow("vars: {last_word: {type: string}}", "{question: Go on, comment: last_word}"),
	},
	{
		ID: ruleNameClash, Severity: SeverityError, Title: "An input and a variable of one name",
		Doc:   `Inputs and variables share their names, as expressions name both in the same way.`,
		Wrong: exampleHead + confirmFlow("inputs: {remark: {type: string}}\nvars: {remark: {type: string}}", "{question: Go on}"),
		Right: exampleHead + confirmFlow("inputs: {message: {type: string}}\nvars: {remark: {type: string}}", "{question: Go on, comment: remark}"),
	},
	{
		ID: ruleReadOnly, Severity: SeverityError, Title: "An input is written",
		Doc:   `What a run was given stays as it was. A variable holds what changes.`,
		Wrong: exampleHead + confirmFlow("inputs: {remark: {type: string}}", "{question: Go on, comment: remark}"),
		Right: exampleHead + confirmFlow("vars: {remark: {type: string}}", "{question: Go on, comment: remark}"),
	},
}

// confirmFlow is a small flow around one question.
func confirmFlow(declared, with string) string {
	return declared + `
start: ask
states:
  ask: {handler: confirm, with: ` + with + `, transitions: {confirmed: done, rejected: done}}
  done: {handler: end}
`
}
