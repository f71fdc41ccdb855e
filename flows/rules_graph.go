package flows

import (
	"fmt"
	"strings"
)

var graphRules = []Rule{
	{
		ID: ruleMissingRoute, Severity: SeverityError, Title: "An outcome leads nowhere",
		Doc: `Every outcome that a state's handler can return needs a line: its own, the state's else, or one in defaults.transitions. An intent without line takes the line of success.`,
		Wrong: exampleHead + `start: ask
states:
  ask: {handler: confirm, with: {question: Go on}, transitions: {confirmed: done}}
  done: {handler: end}
`,
		Right: exampleHead + `start: ask
states:
  ask: {handler: confirm, with: {question: Go on}, transitions: {confirmed: done, rejected: done}}
  done: {handler: end}
`,
	},
	{
		ID: ruleUnknownOutcome, Severity: SeverityError, Title: "A line for an outcome that never comes",
		Doc: `A line is for an outcome that the state's handler can return, for else, or for one of the engine's own: error, timeout, limit. An end state has no lines.`,
		Wrong: exampleHead + `start: ask
states:
  ask: {handler: confirm, with: {question: Go on}, transitions: {else: done, cancelled: done}}
  done: {handler: end}
`,
		Right: exampleHead + `start: ask
states:
  ask: {handler: confirm, with: {question: Go on}, transitions: {else: done, rejected: done}}
  done: {handler: end}
`,
	},
	{
		ID: ruleUnusedDefault, Severity: SeverityError, Lint: true, Title: "A default for an outcome that no state has",
		Doc:   `A line in defaults.transitions is taken by states that have the outcome. If none has it, its name is mostly misspelt.`,
		Wrong: exampleHead + "defaults: {transitions: {failed: done}}\n" + exampleTail,
		Right: exampleHead + "defaults: {transitions: {error: done}}\n" + exampleTail,
	},
	{
		ID: ruleGuardOrder, Severity: SeverityError, Title: "Guarded lines in an order that cannot work",
		Doc: `Lines are tried from above. All but the last need a guard (when), or those below are never reached; the last has none, or nothing says where to go.`,
		Wrong: exampleHead + `vars: {tries: {type: integer, default: 0}}
start: hello
states:
  hello: {handler: route, transitions: {next: {when: 'tries > 1', to: done}}}
  done: {handler: end}
`,
		Right: exampleHead + `vars: {tries: {type: integer, default: 0}}
start: hello
states:
  hello: {handler: route, transitions: {next: [{when: 'tries > 1', to: done}, {to: hello, set: {tries: '{{ tries + 1 }}'}}]}}
  done: {handler: end}
`,
	},
	{
		ID: ruleUnreachable, Severity: SeverityError, Lint: true, Title: "A state that no run comes to",
		Doc:   `No way leads from the start to this state. A line is missing, or the state is left over.`,
		Wrong: exampleHead + exampleTail + "  island: {handler: route, transitions: {next: done}}\n",
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleDeadEnd, Severity: SeverityError, Lint: true, Title: "A state from which no run ends",
		Doc: `From here no way leads to a state with handler end, so a run would go on until a limit stops it.`,
		Wrong: exampleHead + `start: hello
states:
  hello: {handler: confirm, with: {question: Go on}, transitions: {confirmed: loop, rejected: done}}
  loop: {handler: route, transitions: {next: loop}}
  done: {handler: end}
`,
		Right: exampleHead + `start: hello
states:
  hello: {handler: confirm, with: {question: Go on}, transitions: {confirmed: loop, rejected: done}}
  loop: {handler: route, transitions: {next: hello}}
  done: {handler: end}
`,
	},
}

var adviceRules = []Rule{
	{
		ID: ruleOpenObject, Severity: SeverityWarning, Lint: true, Title: "An object whose properties nobody told the model",
		Doc:   `A model fills an object better, and its answer can be checked, when the schema names its properties.`,
		Wrong: agentFlow("models: {default: {provider: openai}}\nvars: {order: {type: object}}", "{goal: Find the order, into: order}"),
		Right: agentFlow("models: {default: {provider: openai}}\nvars: {order: {type: object, properties: {id: {type: string}}}}",
			"{goal: Find the order, into: order}"),
	},
	{
		ID: ruleManyTools, Severity: SeverityWarning, Lint: true, Title: "Many tools in one state",
		Doc:   `A model chooses worse among more than 5 tools. Split the state, give it only what it needs, or let select: {top: 5} give the model those that fit its task best.`,
		Wrong: toolsFlow(6, ""),
		Right: toolsFlow(5, ""),
	},
	{
		ID: ruleTooManyTools, Severity: SeverityError, Lint: true, Title: "Too many tools in one state",
		Doc:   `More than 15 tools in one state are refused: no model chooses well among them. Split the state, or let select: {top: 5} give the model those that fit its task best.`,
		Wrong: toolsFlow(16, ""),
		Right: toolsFlow(16, "5"),
	},
	{
		ID: ruleUnusedVariable, Severity: SeverityWarning, Lint: true, Title: "An input or variable that nothing uses",
		Doc:   `Nothing reads or writes it. Delete it, or use it. The input that is the first human message is always heard.`,
		Wrong: exampleHead + "vars: {spare: {type: string}}\n" + exampleTail,
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleUnusedTool, Severity: SeverityWarning, Lint: true, Title: "A tool that no state uses",
		Doc:   `No state names it in tools or in its own keys. Delete it, or give it to a state.`,
		Wrong: exampleHead + "tools: {add: {builtin: {name: calculator}}}\n" + exampleTail,
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleCommentInText, Severity: SeverityWarning, Lint: true, Title: "A text that may have lost its end to a comment",
		Doc:   `Without quotes YAML ends a text at ' #' and takes the rest for a comment. Quote the text if the rest belongs to it; if it is a comment, write a space after the #.`,
		Wrong: exampleHead + endFlow("This was order #1"),
		Right: exampleHead + endFlow("'This was order #1'"),
	},
	{
		ID: ruleBraceTypo, Severity: SeverityWarning, Lint: true, Title: "A name in braces that inserts nothing",
		Doc:   `Only {{ name }} inserts a value. What stands in other braces is text, and the human sees it as it is.`,
		Wrong: exampleHead + endFlow("'This was {run.id}'"),
		Right: exampleHead + endFlow("'This was {{ run.id }}'"),
	},
	{
		ID: ruleAmbiguous, Severity: SeverityWarning, Lint: true, Title: "A keyword of two",
		Doc:   `Rules decide where exactly one holds. A keyword or pattern that two intents share decides nothing, and of two interrupts the first is always taken.`,
		Wrong: exampleHead + "interrupts: {stop: {keywords: [enough], to: done}, bye: {keywords: [Enough], to: done}}\n" + exampleTail,
		Right: exampleHead + "interrupts: {stop: {keywords: [enough], to: done}, bye: {keywords: [goodbye], to: done}}\n" + exampleTail,
	},
	{
		ID: ruleUnknownKind, Severity: SeverityWarning, Lint: true, Title: "A kind of failure that is probably misspelt",
		Doc:   `Handlers and tools in Go may name kinds of their own, so last.error.kind can be any word. This one is close to a kind that flowctl knows.`,
		Wrong: guardFlow(`last.error.kind == "nonefound" and tries > 1`),
		Right: guardFlow(`last.error.kind == "none_found" and tries > 1`),
	},
	{
		ID: ruleNothingHeard, Severity: SeverityWarning, Lint: true, Title: "A first state that has nothing to read",
		Doc:   `An intent reads what its key from names, else what the human said last. At the start that is the input called message, or the only required input of type string; here there is neither.`,
		Wrong: exampleHead + "inputs: {wish: {type: string}, name: {type: string}}\n" + hearFlow(""),
		Right: exampleHead + "inputs: {wish: {type: string}, name: {type: string}}\n" + hearFlow("from: wish, "),
	},
}

// hearFlow is a small flow that begins with an intent.
func hearFlow(from string) string {
	return `start: understand
states:
  understand:
    handler: intent
    with: {` + from + `intents: {refund: {description: Wants money back, keywords: [refund]}}}
    transitions: {success: done, fail: done}
  done: {handler: end, with: {output: '{{ name }} {{ wish }}'}}
`
}

// agentFlow is a small flow around one agent.
func agentFlow(declared, with string) string {
	return exampleHead + declared + `
start: work
states:
  work: {handler: agent, with: ` + with + `, transitions: {success: done, fail: done}}
  done: {handler: end}
`
}

// toolsFlow is a small flow with a number of tools in one state, of which top are given to a model ("" for all).
func toolsFlow(count int, top string) string {
	var declared, named strings.Builder
	for i := range count {
		fmt.Fprintf(&declared, "  add_%d: {builtin: {name: calculator}}\n", i+1)
		fmt.Fprintf(&named, ", add_%d", i+1)
	}
	tools := "[" + named.String()[2:] + "]"
	if top != "" {
		tools = "{of: " + tools + ", select: {top: " + top + "}}"
	}
	return exampleHead + "models: {default: {provider: openai}}\ntools:\n" + declared.String() + `start: work
states:
  work: {handler: agent, tools: ` + tools + `, with: {goal: Add things up}, transitions: {success: done, fail: done}}
  done: {handler: end}
`
}
