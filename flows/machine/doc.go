// Package machine is the compiled form of a flow: an immutable state machine, the values that run through it, and the
// pure function Next that decides where an outcome leads.
//
// It stands at the bottom of the project and imports the standard library only. Expressions, texts, schemas and matchers
// are interfaces here; packages flows and flows/schema implement them. A Machine is built by flows.Compile and is safe
// for any number of goroutines, since nothing in it changes after that.
//
// Read machine.go first, then next.go.
package machine
