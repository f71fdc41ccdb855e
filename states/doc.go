// Package states holds the handlers: Go code that does the work of a flow's states. Each handler is one file, with the
// config that a state's `with` is decoded into, what that config says of the state (Uses), and Handle, which is plain
// straight-line code over an engine.Step.
//
// A handler holds nothing of its own: one value serves all runs, everything that it knows comes from the step, and
// everything that it does to the world goes through the step. So the same record always leads it the same way, and a run
// that stopped goes on from there.
//
// Rules decide first: keywords, patterns and the types of schemas. A state whose rules do not decide needs a model; without
// one, intent fails, collect asks the human, and a plan's step without tool stops the run.
//
// Read confirm.go first, the shortest; then intent.go; then collect.go with collection.go, which keeps what was said apart
// from how it is asked for, and find.go, which looks for values in text.
package states
