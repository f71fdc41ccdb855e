package flows

var valueRules = []Rule{
	{
		ID: ruleBadSchema, Severity: SeverityError, Title: "A schema is wrong",
		Doc:   `Inputs, variables and parameters are declared by JSON Schemas. A keyword that JSON Schema does not know checks nothing, so it is refused; so is a default that its own schema refuses.`,
		Wrong: exampleHead + "inputs: {message: {type: string, patern: '^A'}}\n" + exampleTail,
		Right: exampleHead + "inputs: {message: {type: string, pattern: '^A'}}\n" + exampleTail,
	},
	{
		ID: ruleBadPattern, Severity: SeverityError, Title: "A keyword or pattern is wrong",
		Doc:   `Keywords hold a letter, a digit or a picture (such as an emoji) at least, and patterns are regular expressions (RE2: without look-ahead and back-references).`,
		Wrong: exampleHead + "interrupts: {stop: {patterns: ['(stop'], to: done}}\n" + exampleTail,
		Right: exampleHead + "interrupts: {stop: {patterns: ['(stop)'], to: done}}\n" + exampleTail,
	},
	{
		ID: ruleBadValue, Severity: SeverityError, Lint: true, Title: "A value that its variable or parameter does not take",
		Doc: `What set writes must fit the variable's schema, and an argument its parameter's. A value without expression is checked as it is, one with {{ }} by its type: a text with more than one {{ }} in it is always text. Into a variable nothing is converted; an argument that could be read as a number is.`,
		Wrong: exampleHead + `vars: {tries: {type: integer}}
start: hello
states:
  hello: {handler: route, transitions: {next: {to: done, set: {tries: one}}}}
  done: {handler: end}
`,
		Right: exampleHead + `vars: {tries: {type: integer}}
start: hello
states:
  hello: {handler: route, transitions: {next: {to: done, set: {tries: 1}}}}
  done: {handler: end}
`,
	},
	{
		ID: ruleNoFile, Severity: SeverityError, Lint: true, Title: "A file is not there",
		Doc:   `A database that does not exist yet is made from its init file, which must be there. Paths are relative to the flow file.`,
		Wrong: exampleHead + "databases: {shop: {path: shop.db, init: nowhere.sql}}\n" + exampleTail,
		Right: exampleHead + "databases: {shop: {path: shop.db}}\n" + exampleTail,
	},
	{
		ID: ruleCannotHold, Severity: SeverityError, Lint: true, Title: "A variable cannot hold what is written into it",
		Doc: `A handler makes a value of a certain type: intent a word, plan an object, execute a text. The variable behind into must take it.`,
		Wrong: exampleHead + `inputs: {message: {type: string}}
vars: {wish: {type: string, enum: [refund]}}
start: understand
states:
  understand:
    handler: intent
    with:
      into: wish
      intents: {refund: {description: Wants money back}, exchange: {description: Wants another article}}
    transitions: {success: done, fail: done}
  done: {handler: end}
`,
		Right: exampleHead + `inputs: {message: {type: string}}
vars: {wish: {type: string, enum: [refund, exchange]}}
start: understand
states:
  understand:
    handler: intent
    with:
      into: wish
      intents: {refund: {description: Wants money back}, exchange: {description: Wants another article}}
    transitions: {success: done, fail: done}
  done: {handler: end}
`,
	},
	{
		ID: ruleSecretShown, Severity: SeverityError, Title: "A secret where it would be seen",
		Doc:   `A variable with secret: true holds what a model, a human or a log must not see, such as a typed code. It may stand in the arguments of a call, in guards and expect, in the inputs of a child flow that are secret too, and in what set writes into another secret variable. It is filled by ask, collect, call or set.`,
		Wrong: exampleHead + secretFlow("'Your code is {{ code }}'"),
		Right: exampleHead + secretFlow("'Your code is on its way'"),
	},
	{
		ID: ruleExprSyntax, Severity: SeverityError, Title: "An expression cannot be read",
		Doc:   `Guards and what stands in {{ }} are expressions of the expr language (expr-lang.org).`,
		Wrong: guardFlow(`tries >`),
		Right: guardFlow(`tries > 1`),
	},
	{
		ID: ruleExprType, Severity: SeverityError, Title: "An expression of the wrong type",
		Doc:   `Types come from the schemas. A guard must be true or false, and a number is never equal to a text.`,
		Wrong: guardFlow(`tries`),
		Right: guardFlow(`tries > 1`),
	},
	{
		ID: ruleUnknownName, Severity: SeverityError, Title: "An expression names something unknown",
		Doc:   `Expressions see inputs and variables by name, visits("state"), run.id, run.started_at, last.outcome and last.error; result in expect, and args in a tool. Text stands in quotes, and null is no value.`,
		Wrong: guardFlow(`trys > 1`),
		Right: guardFlow(`tries > 1`),
	},
	{
		ID: ruleEnumWord, Severity: SeverityError, Title: "A comparison with a word that never comes",
		Doc:   `The value that is compared can only be one of a few words, and this is none of them.`,
		Wrong: guardFlow(`last.outcome == "nxt"`),
		Right: guardFlow(`last.outcome == "next" and tries > 1`),
	},
	{
		ID: ruleForbidden, Severity: SeverityError, Title: "An expression does what it may not",
		Doc:   `Expressions decide quickly and always in the same way: no ranges, no nested predicates, no / ** %, no clock, and no great length.`,
		Wrong: guardFlow(`tries in 1..1000000`),
		Right: guardFlow(`tries >= 1`),
	},
	{
		ID: ruleTextSyntax, Severity: SeverityError, Title: "A text with braces that do not close",
		Doc:   `{{ starts an expression in a text and }} ends it. A pair of braces as text is {{ "{{" }}.`,
		Wrong: exampleHead + "start: hello\nstates:\n  hello: {handler: end, with: {output: 'run {{ run.id'}}\n",
		Right: exampleHead + "start: hello\nstates:\n  hello: {handler: end, with: {output: 'run {{ run.id }}'}}\n",
	},
	{
		ID: ruleEnvPlace, Severity: SeverityError, Title: "The environment is read where it may not",
		Doc:   `The environment holds secrets, so env("NAME") stands only in headers (of an http tool, of an MCP server) and in the env of a command, never in texts that a model, a human or the store could see.`,
		Wrong: exampleHead + "start: hello\nstates:\n  hello: {handler: end, with: {output: '{{ env(\"HOME\") }}'}}\n",
		Right: exampleHead + "start: hello\nstates:\n  hello: {handler: end, with: {output: '{{ run.id }}'}}\n",
	},
}

// secretFlow is a small flow that asks for a secret and says something.
func secretFlow(say string) string {
	return `vars: {code: {type: string, secret: true}}
start: get
states:
  get: {handler: ask, with: {question: Your code, into: code}, transitions: {answered: {to: done, say: ` + say + `}}}
  done: {handler: end}
`
}

// guardFlow is a small flow with one guard.
func guardFlow(guard string) string {
	return exampleHead + `vars: {tries: {type: integer, default: 0}}
start: hello
states:
  hello:
    handler: route
    transitions:
      next:
        - {when: ` + quote(guard) + `, to: done}
        - {to: again, set: {tries: '{{ tries + 1 }}'}}
  again: {handler: route, transitions: {next: hello}}
  done: {handler: end}
`
}
