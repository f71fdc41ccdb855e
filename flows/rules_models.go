package flows

var modelRules = []Rule{
	{
		ID: ruleBadExample, Severity: SeverityError, Lint: true, Title: "An example that shows what the state cannot do",
		Doc:   `A model does what examples show. So their calls are of tools that the state has, with arguments that these take, and neither what the human says nor the answer is empty.`,
		Wrong: exampleFlow("", "{user: Two and two, calls: [{tool: add, args: {expression: 2 + 2}, result: 4}], assistant: Four}"),
		Right: exampleFlow("tools: [add], ", "{user: Two and two, calls: [{tool: add, args: {expression: 2 + 2}, result: 4}], assistant: Four}"),
	},
	{
		ID: ruleFallbackCycle, Severity: SeverityError, Title: "Models that fall back to each other",
		Doc:   `A model that is out of order is replaced by those that its fallback names, in their order. One that leads back to the first replaces nothing.`,
		Wrong: modelsFlow("{default: {provider: openai, fallback: spare}, spare: {provider: openai, fallback: default}}"),
		Right: modelsFlow("{default: {provider: openai, fallback: spare}, spare: {provider: openai}}"),
	},
	{
		ID: ruleNoModel, Severity: SeverityWarning, Lint: true, Title: "A key for a model where none is asked",
		Doc:   `examples, cache, tools.select, view.memory and view.budget are for the model of their state. Where there is none, since the flow declares no models, the state says model: none or ends the run, they do nothing.`,
		Wrong: exampleHead + "start: hello\nstates:\n  hello: {handler: route, cache: true, transitions: {next: done}}\n  done: {handler: end}\n",
		Right: exampleHead + exampleTail,
	},
	{
		ID: ruleNoPrices, Severity: SeverityWarning, Lint: true, Title: "A limit of cost that cannot count a model",
		Doc:   `limits.cost is compared with what the answers cost, and that is known from the model's prices. The calls of a model without prices cost nothing for it.`,
		Wrong: "limits: {cost: 5}\n" + modelsFlow("{default: {provider: openai}}"),
		Right: "limits: {cost: 5}\n" + modelsFlow("{default: {provider: openai, prices: {prompt: 1.5, completion: 6}}}"),
	},
	{
		ID: ruleNoMemory, Severity: SeverityError, Title: "A long-term memory that the flow does not have",
		Doc:   `A flow that remembers says whose memory it is, by the key memory at its top. Without that nothing can be shown in a view, and no tool can remember, recall or forget.`,
		Wrong: viewFlow("", "{memory: {keys: ['*']}}"),
		Right: viewFlow("memory: {namespace: shop}\n", "{memory: {keys: ['*']}}"),
	},
	{
		ID: ruleSmallBudget, Severity: SeverityError, Lint: true, Title: "A budget that the instructions alone exceed",
		Doc:   `The system text is never cut. So its budget (view.budget.system, in tokens) must hold the instructions of the flow and of the state, and what the engine adds. Here they are surely too long: the exact number is known to the model's encoding only, and this one counts 8 bytes of letters and digits as one token.`,
		Wrong: viewFlow("instructions: Be brief and exact, and promise nothing.\n", "{budget: {system: 1}}"),
		Right: viewFlow("instructions: Be brief and exact, and promise nothing.\n", "{budget: {system: 500}}"),
	},
}

// viewFlow is a small flow around one agent with a view.
func viewFlow(declared, view string) string {
	return exampleHead + declared + `models: {default: {provider: openai}}
start: work
states:
  work:
    {handler: agent, view: ` + view + `, with: {goal: Greet the human}, transitions: {success: done, fail: done}}
  done: {handler: end}
`
}

// modelsFlow is a small flow around one agent with the given models.
func modelsFlow(models string) string { return agentFlow("models: "+models, "{goal: Greet the human}") }

// exampleFlow is a small flow around one agent that has an example. A call in another state uses its tool.
func exampleFlow(tools, example string) string {
	return exampleHead + `models: {default: {provider: openai}}
tools: {add: {builtin: {name: calculator}}}
start: work
states:
  work:
    {handler: agent, ` + tools + `examples: [` + example + `], with: {goal: Add things up}, transitions: {success: check, fail: done}}
  check: {handler: call, with: {tool: add, args: {expression: 1 + 1}}, transitions: {success: done, fail: done}}
  done: {handler: end}
`
}
