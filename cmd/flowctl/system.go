package main

import (
	"context"
	"os"
	"os/signal"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"flowctl/engine/tool"
	"flowctl/engine/tool/builtin"
	"flowctl/engine/tool/command"
	"flowctl/engine/tool/http"
	"flowctl/engine/tool/mcp"
	"flowctl/engine/tool/sql"
	"flowctl/states"
)

// systemProgram is flowctl as the operating system starts it.
func systemProgram() program {
	return program{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Terminal: terminals{In: isTerminal(os.Stdin), Out: isTerminal(os.Stdout), Err: isTerminal(os.Stderr)},
		Getenv:   os.LookupEnv,
		Now:      time.Now,
		Version:  buildVersion(),
		Handlers: states.Builtin(),
		Tools:    systemTools,
	}
}

// systemTools makes the kinds of tools, with nothing open yet.
func systemTools(s toolSetup) map[string]tool.Kind {
	return map[string]tool.Kind{
		"builtin": builtin.New(),
		"command": command.New(command.Options{Allow: s.AllowCommands}),
		"http":    http.New(),
		"mcp":     mcp.New(mcp.Options{Allow: s.AllowCommands, Log: s.Log}),
		"sql":     sql.New(),
	}
}

// untilSignal gives a context that the first interrupt or termination ends, so that runs stop in order. A second one ends
// the process at once, as if nobody listened.
func untilSignal() context.Context {
	signal.Ignore(syscall.SIGPIPE) // a reader that leaves must not end a run at work
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop)
	return ctx
}

func isTerminal(f *os.File) bool {
	return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd())
}

// buildVersion is the version that Go stamped into the binary.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
