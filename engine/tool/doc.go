// Package tool is the contract for what a state may do besides thinking, and the executor that keeps it: a call is known
// to the state, its arguments are parsed, coerced and checked, it runs under a timeout, and whatever happens comes back as
// a Result that a model or a flow can read. The journal around a call is the engine's.
//
// A call goes through four places. Set.Prepare refuses it or gives a Prepared call, whose arguments are the one value
// that is approved, recorded and run. Runner.Run runs one prepared call. Runner.Batch runs the calls of one model turn:
// reads beside each other, and those of one tool in one request where it takes them together (Tool.Batch), everything else one
// after another in call order. Func makes a tool of a Go function.
//
// The kinds of tools are in the sub-packages; each gives a Kind. The package imports flows/machine and flows/spell only,
// and nothing of the store. Read tool.go first, then set.go, args.go, batch.go and run.go.
package tool
