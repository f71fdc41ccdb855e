package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"flowctl/engine"
	"flowctl/flows"
	"flowctl/store"
)

// exitCode is what the process tells its caller.
type exitCode int

// The exit codes.
const (
	exitOK           exitCode = 0
	exitFailed       exitCode = 1 // the run failed
	exitUsage        exitCode = 2 // the request makes no sense; also an unknown run
	exitInvalid      exitCode = 3 // the flow is invalid
	exitWaiting      exitCode = 4
	exitStopped      exitCode = 5
	exitCancelled    exitCode = 6
	exitIncompatible exitCode = 7
	exitBusy         exitCode = 8 // busy, or no longer pending
	exitMachine      exitCode = 9 // database, disk
	exitInterrupted  exitCode = 130
)

// statusCode is the exit code of a run that was worked on.
func statusCode(s store.Status) exitCode {
	switch s {
	case store.Succeeded:
		return exitOK
	case store.Failed:
		return exitFailed
	case store.Waiting:
		return exitWaiting
	case store.Stopped:
		return exitStopped
	case store.Cancelled:
		return exitCancelled
	}
	return exitBusy // somebody else works on it
}

// usagef makes an error of a request that makes no sense. The hint says what to do instead.
func usagef(hint, format string, args ...any) error {
	return &engine.UsageError{What: fmt.Sprintf(format, args...), Hint: hint}
}

// commandLineError gives an error of the command line's parser the class of a wrong request.
func commandLineError(err error) error {
	var usage *engine.UsageError
	if errors.As(err, &usage) {
		return err
	}
	hint := "see: flowctl --help"
	if strings.HasPrefix(err.Error(), "unknown shorthand flag") {
		hint = "a value that begins with a dash stands behind --, such as: flowctl answer RUN -- -3"
	}
	return usagef(hint, "%s", noNumber.ReplaceAllString(err.Error(), `it is no number of the kind that is wanted`))
}

// noNumber is what Go's own parser says of a flag.
var noNumber = regexp.MustCompile(`strconv\.\w+: parsing .*`)

// failure is an error as it is told: its exit code, its word for programs, its text and what to do about it.
type failure struct {
	exit          exitCode
	code          string
	message, hint string
	findings      []flows.Finding
}

// failureOf sorts an error into its class.
func failureOf(ctx context.Context, err error) failure {
	var usage *engine.UsageError
	var redo *engine.RedoError
	var invalid *flows.Error
	var conflict *store.MemoryConflict
	is := func(target error) bool { return errors.Is(err, target) }
	f := failure{exit: exitMachine, code: "machine", message: err.Error()}
	switch {
	case errors.As(err, &usage):
		f = failure{exit: exitUsage, code: "usage", message: usage.What, hint: usage.Hint}
	case errors.As(err, &redo):
		f.exit, f.code = exitUsage, "redo_writes"
	case is(engine.ErrUnknownRun):
		f.exit, f.code, f.hint = exitUsage, "unknown_run", "list the runs with: flowctl ls"
	case errors.As(err, &invalid):
		f.exit, f.code, f.findings = exitInvalid, "invalid_flow", invalid.Findings
		f.message = "the flow is invalid: " + countFindings(invalid.Findings)
		f.hint = "see what a rule means with: flowctl explain RULE"
	case ctx.Err() != nil && (is(context.Canceled) || is(ctx.Err())):
		f.exit, f.code, f.message = exitInterrupted, "interrupted", "interrupted"
	case errors.As(err, &conflict):
		f.exit, f.code = exitBusy, "conflict"
		f.message, f.hint = conflictText(conflict)
	case is(engine.ErrIncompatible):
		f.exit, f.code = exitIncompatible, "incompatible"
	case is(engine.ErrExpired):
		f.exit, f.code = exitBusy, "expired"
	case is(engine.ErrNotPending):
		f.exit, f.code, f.hint = exitBusy, "not_pending", "see what is asked now with: flowctl ls --waiting"
	case is(engine.ErrFinished):
		f.exit, f.code = exitBusy, "finished"
	case is(engine.ErrBusy), is(engine.ErrLost):
		f.exit, f.code, f.hint = exitBusy, "busy", "look again in a moment with: flowctl ls"
	case is(store.ErrNewerSchema):
		f.code = "newer_schema"
	}
	return f
}

// report tells a failure and gives its exit code.
func (a *app) report(ctx context.Context, err error) exitCode {
	f := failureOf(ctx, err)
	for _, finding := range f.findings {
		a.errln(a.clean(finding.String(), a.Terminal.Err))
	}
	a.errln("flowctl: " + a.clean(f.message, a.Terminal.Err))
	if f.hint != "" {
		a.errln("  " + a.clean(a.local(f.hint), a.Terminal.Err))
	}
	if a.json() && !a.printed {
		a.printed = true
		body := errorBody{Code: f.code, Message: f.message, Hint: a.local(f.hint), Findings: f.findings}
		a.printJSON(errorDocument{Error: body})
	}
	return f.exit
}

// errorDocument is what -o json prints where there is no run to print.
type errorDocument struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Code     string          `json:"code"`
	Message  string          `json:"message"`
	Hint     string          `json:"hint"`
	Findings []flows.Finding `json:"findings,omitempty"`
}

// countFindings says how many findings there are, such as "2 errors, 1 warning".
func countFindings(found []flows.Finding) string {
	errs := 0
	for _, f := range found {
		if f.Severity == flows.SeverityError {
			errs++
		}
	}
	var parts []string
	if errs > 0 {
		parts = append(parts, plural(errs, "error"))
	}
	if warnings := len(found) - errs; warnings > 0 {
		parts = append(parts, plural(warnings, "warning"))
	}
	return strings.Join(parts, ", ")
}

// plural is a number with its noun.
func plural[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
