package tool

import (
	"context"
	"fmt"
	"time"

	"flowctl/flows/machine"
)

// Kind makes tools from their declarations. One value serves a whole process; it may keep connections between calls.
type Kind interface {
	// Spec says how the kind's part of a declaration is decoded and checked.
	Spec() machine.ToolKind
	// New makes the tool of one declaration. It must be quick: connections are opened by the first call.
	New(spec machine.ToolSpec, env Env) (Tool, error)
	// Close ends what the kind keeps open.
	Close() error
}

// Preparer is a Kind that has something to make before a flow's first state, such as a database from its init file.
// Prepare is called at the start of a run, never on resume; it must be safe to call twice, also from two processes.
type Preparer interface {
	Prepare(ctx context.Context, m *machine.Machine) error
}

// Env is what a tool is made in.
type Env struct {
	Machine *machine.Machine
	Dir     string                      // folder that relative paths start from
	Getenv  func(string) (string, bool) // the environment, for texts that may read it
}

// Tool is one tool as it can be run.
type Tool struct {
	Spec machine.ToolSpec
	Run  func(ctx context.Context, call Call) (machine.Value, error)

	// Batch makes several calls in one request, up to MaxRequest of them, and gives one result for each, in their order. It is
	// asked for reads of one turn only; a call that is alone goes through Run, or through Batch where Run is nil. An error is
	// every call's error, and the tool's timeout counts for all of the request. Nil: each call is made for itself.
	Batch func(ctx context.Context, calls []Call) ([]BatchResult, error)
}

// BatchResult is how one call of a request ended: what Tool.Run would give.
type BatchResult struct {
	Value machine.Value
	Err   error
}

// Call is one call as a tool sees it. Args have been coerced and checked by the tool's parameters; they are the tool's own
// copy.
type Call struct {
	Args machine.Values
	// Key is the call's idempotency key, run/step.ordinal: the same on every attempt.
	Key string
	// RunID and StartedAt are the run's, for texts.
	RunID     string
	StartedAt time.Time
	// Memory is the run's part of the long-term memory; nil where the flow has none.
	Memory *Memory
}

// Status is how a call ended.
type Status string

// The statuses of a result.
const (
	OK          Status = "ok"
	Refused     Status = "refused"     // never ran: unknown here, bad arguments, denied
	Failed      Status = "failed"      // ran, and said no
	Unavailable Status = "unavailable" // out of order
	Unknown     Status = "unknown"     // started, and nobody knows
)

// Result is how a call ended, for a model, a flow or a handler to read.
type Result struct {
	Status  Status          `json:"status"`
	Value   machine.Value   `json:"value,omitempty"`
	Problem machine.Problem `json:"error,omitzero"`
}

// Error is what a tool's Run returns to choose the status of its result. Any other error is Failed.
type Error struct {
	Status Status
	Kind   string        // of the problem; "" stands for the status
	Value  machine.Value // what there was in spite of it, such as the output of a command that failed
	Err    error
}

func (e *Error) Error() string {
	if e.Err == nil {
		return "the tool gave no reason"
	}
	return e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }

// Failf makes a failure of a given kind, such as none_found.
func Failf(kind, format string, args ...any) error {
	return &Error{Status: Failed, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// Unavailablef says that the tool is out of order.
func Unavailablef(format string, args ...any) error {
	return &Error{Status: Unavailable, Err: fmt.Errorf(format, args...)}
}
