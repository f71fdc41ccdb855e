// Package states holds the handlers: Go code that does the work of a flow's states. Each handler is one file, with the
// config that a state's `with` is decoded into, what that config says of the state (Uses), and Handle, which is plain
// straight-line code over an engine.Step.
//
// A handler holds nothing of its own: one value serves all runs, everything that it knows comes from the step, and
// everything that it does to the world goes through the step. So the same record always leads it the same way, and a run
// that stopped goes on from there.
//
// Rules decide first: keywords, patterns and the types of schemas. What they leave open a model decides, if the flow has
// one: intent asks it to classify, collect to read, plan for a plan, and in agent and in the steps of execute it thinks and
// calls tools (think.go). Where a flow has no model, intent fails and collect asks the human; where only its key is missing,
// the run stops, but for collect. What a model answers is checked against a schema that is made of the variables that it is
// for (answers.go). All that models are told stands in prompts.go.
//
// Read confirm.go first, the shortest; then intent.go; then collect.go with collection.go, which keeps what was said apart
// from how it is asked for, and find.go, which looks for values in text.
package states
