package engine

import (
	"errors"
	"fmt"
	"strings"

	"flowctl/engine/history"
	"flowctl/flows/machine"
)

// Errors of the engine's calls, for errors.Is. A run that stops, waits or fails is no error: its snapshot says so.
var (
	// ErrUnknownRun is returned for a run that is not in the store.
	ErrUnknownRun = errors.New("no such run")
	// ErrBusy is returned when a live process holds the run.
	ErrBusy = errors.New("the run is at work in another process")
	// ErrLost is returned when another process took the run while this one was at work.
	ErrLost = errors.New("the run was taken over by another process")
	// ErrFinished is returned by calls that need a run that has not ended.
	ErrFinished = errors.New("the run has ended")
	// ErrNotPending is returned by Answer for a question that was answered, has expired or went with its step.
	ErrNotPending = errors.New("the question is no longer pending")
	// ErrExpired is returned by Answer for a question whose time has run out. It is an ErrNotPending.
	ErrExpired = fmt.Errorf("%w: its time has run out", ErrNotPending)
	// ErrStore wraps errors of the store itself.
	ErrStore = errors.New("the store failed")
	// ErrIncompatible is returned by Resume when a run cannot go on with another definition.
	ErrIncompatible = errors.New("the run cannot go on with this flow")
)

// UsageError is a request that makes no sense: an unknown question, an answer that does not fit, other inputs for a run
// that exists. Nothing was recorded.
type UsageError struct {
	What string
	Hint string // what to do instead, "" if there is nothing
}

func (e *UsageError) Error() string {
	if e.Hint == "" {
		return e.What
	}
	return e.What + "; " + e.Hint
}

func usagef(hint, format string, args ...any) error {
	return &UsageError{What: fmt.Sprintf(format, args...), Hint: hint}
}

// RedoError is returned by Resume when starting a state anew would run finished writes again.
type RedoError struct {
	State  string
	Writes []string // tool and arguments of each, in the order they ran
}

func (e *RedoError) Error() string {
	return fmt.Sprintf("starting state %s anew could run again what it already did: %s; add --redo-writes if that is meant",
		e.State, strings.Join(e.Writes, ", "))
}

// haltKind says why a step ended before its handler chose to.
type haltKind string

const (
	haltSuspended   haltKind = "suspended"   // it waits; that is recorded
	haltEnded       haltKind = "ended"       // the run is finished; that is recorded
	haltMoved       haltKind = "moved"       // an outcome of the engine's own ends the step
	haltStopped     haltKind = "stopped"     // the run must stop
	haltCancelled   haltKind = "cancelled"   // somebody cancelled the run
	haltInterrupted haltKind = "interrupted" // this process is asked to stop
	haltLost        haltKind = "lost"        // the run's memory is not to be trusted any more
)

// halt is what kills a step. Every later effect of the step returns it, and the engine ignores what the handler does
// with it.
type halt struct {
	kind    haltKind
	stop    history.RunStopped // of haltStopped
	outcome machine.Outcome    // of haltMoved
	problem machine.Problem    // of haltMoved
	err     error              // of haltLost
}

func (h *halt) Error() string {
	switch h.kind {
	case haltStopped:
		return "the run stops: " + h.stop.Message
	case haltLost:
		return h.err.Error()
	case haltMoved:
		return "the step ended with outcome " + string(h.outcome)
	}
	return "the step is " + string(h.kind)
}

func (h *halt) Unwrap() error { return h.err }

func stopped(code history.StopCode, hint, format string, args ...any) *halt {
	return &halt{kind: haltStopped, stop: history.RunStopped{Code: code, Message: fmt.Sprintf(format, args...), Hint: hint}}
}
