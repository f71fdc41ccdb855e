// Package engine runs flows: it claims a run, folds its history to the present step, lets the state's handler work
// against a journal, asks the machine where the outcome leads, and commits the move. It is the only writer of run
// histories.
//
// It never imports the handlers, the flow reader, a store driver or the command line: those are given to it in Config.
//
// Read loop.go first; it is the whole cycle on one page. Then step.go (what a handler can do), session.go (the one place
// that commits), fsm.go (the machine that moves), take.go (how a run becomes ours) and reload.go (what becomes of a commit
// that failed).
package engine
