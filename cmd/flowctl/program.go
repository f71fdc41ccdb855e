package main

import (
	"context"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/flows/spell"
	"flowctl/store"
)

// program is what flowctl reads, writes and is told by. All that a command needs of the world comes from here, so that
// tests can run commands in their own process. It is never changed; several calls of Run may go on at once.
type program struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Terminal       terminals
	Getenv         func(string) (string, bool)
	Dir            string           // folder that relative paths start from; "" is the process's own
	Now            func() time.Time // the clock of everything that is stored or shown
	NewID          func() string    // makes run ids; nil: the engine's own
	Version        string
	Handlers       map[string]engine.Handler
	Tools          func(toolSetup) map[string]tool.Kind // fresh ones, with nothing open before their first call
	Around         func(store.Store) store.Store        // puts something around the store that the engine writes to; nil: nothing

	// Sleep waits between two tries of a model or a tool, until ctx ends at the latest. Nil: a timer does.
	Sleep func(ctx context.Context, d time.Duration) error
}

// toolSetup is what kinds of tools are made with.
type toolSetup struct {
	AllowCommands bool           // flows may start programs
	Log           zerolog.Logger // for what the programs of tools have to say
}

// terminals says which of the three streams a person sits at.
type terminals struct{ In, Out, Err bool }

// app is one call of flowctl.
type app struct {
	program
	flags         globalFlags
	dbGiven       bool // --db was given, so hints must repeat it
	begun         bool // the command line was understood
	printed       bool // the one document of -o json is printed
	code          exitCode
	allowCommands bool // flows may start programs
	streams       bool // the text of models is shown as it comes
	lines         *lineReader
	log           *runLog
}

// globalFlags are the flags of every command.
type globalFlags struct {
	DB, Output, Durability, Log string
	Verbose                     bool
}

// The forms of output.
const (
	outputText  = "text"
	outputJSON  = "json"
	outputLines = "jsonl" // of streams of events
)

// Run does what the arguments say and gives the exit code. Cancelling ctx stops runs resumably.
func (p program) Run(ctx context.Context, args []string) int {
	a := &app{program: p}
	out := &keptError{w: p.Stdout}
	a.Stdout = out
	a.lines = newLineReader(p.Stdin)
	root := a.root()
	root.SetArgs(append([]string{}, args...))
	root.SetIn(p.Stdin)
	root.SetOut(a.Stdout)
	root.SetErr(a.Stderr)
	err := root.ExecuteContext(ctx)
	if err != nil && !a.begun {
		a.flags.Output = outputOf(args)
		err = commandLineError(err)
	}
	err = errors.Join(err, a.log.close())
	if err == nil && out.err != nil && !errors.Is(out.err, syscall.EPIPE) {
		err = out.err
	}
	if err != nil {
		a.code = a.report(ctx, err)
	}
	return int(a.code)
}

// keptError keeps the first error of writing, so that a full disk behind a redirected output is not taken for success.
type keptError struct {
	w   io.Writer
	err error
}

func (k *keptError) Write(p []byte) (int, error) {
	n, err := k.w.Write(p)
	if err != nil && k.err == nil {
		k.err = err
	}
	return n, err
}

// outputOf finds the form of output in a command line that could not be parsed.
func outputOf(args []string) string {
	for i, arg := range args {
		switch {
		case arg == "-o" || arg == "--output":
			if i+1 < len(args) {
				return args[i+1]
			}
		case strings.HasPrefix(arg, "--output="):
			return strings.TrimPrefix(arg, "--output=")
		case strings.HasPrefix(arg, "-o"):
			return strings.TrimPrefix(strings.TrimPrefix(arg, "-o"), "=")
		}
	}
	return outputText
}

// root is the whole command line.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "flowctl",
		Short: "Run and inspect flows: explicit state machines for agents",
		Long: `flowctl runs flows: YAML files that declare states and transitions. Every step of a run is stored, so that it goes on
from there after any stop.`,
		Example: `  flowctl init                      write a first flow.yaml
  flowctl validate flow.yaml        check it
  flowctl run flow.yaml             run it
  flowctl ls                        list the runs`,
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.begin(cmd) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.Args = a.unknownCommand(root)
	root.CompletionOptions.DisableDefaultCmd = true
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.DB, "db", "", "`FILE` of the database that keeps the runs (default $FLOWCTL_DB, else flowctl.db)")
	flags.StringVarP(&a.flags.Output, "output", "o", outputText, "`FORM` of the output: text or json (events: also jsonl)")
	flags.StringVar(&a.flags.Durability, "durability", "full",
		"`WHAT` a stored step survives: full, a power loss; normal, a killed process")
	flags.StringVar(&a.flags.Log, "log", "", "`FILE` that the log is appended to, one JSON object per line")
	flags.BoolVarP(&a.flags.Verbose, "verbose", "v", false, "write the log to stderr; beside --log, show progress there")
	root.AddCommand(a.runCommand(), a.answerCommand(), a.resumeCommand(), a.cancelCommand(), a.lsCommand(),
		a.showCommand(), a.eventsCommand(), a.viewCommand(), a.validateCommand(), a.explainCommand(), a.graphCommand(), a.schemaCommand(),
		a.initCommand(), a.memoryCommand(), a.toolsCommand(), a.versionCommand(), a.completionCommand())
	return root
}

// unknownCommand refuses arguments of the root, which are commands that do not exist.
func (a *app) unknownCommand(root *cobra.Command) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		return usagef(suggest(args[0], names, "see: flowctl --help"), "there is no command %s", args[0])
	}
}

// suggest gives the hint that names the nearest known word, or another one where none is near.
func suggest(word string, known []string, otherwise string) string {
	if near := spell.Nearest(word, known); near != "" {
		return "did you mean " + near + "?"
	}
	return otherwise
}

// begin checks what every command takes.
func (a *app) begin(cmd *cobra.Command) error {
	a.begun = true
	a.dbGiven = cmd.Flags().Changed("db")
	if !a.dbGiven {
		a.flags.DB, _ = a.Getenv("FLOWCTL_DB")
	}
	if a.flags.DB == "" {
		a.flags.DB = "flowctl.db"
	}
	switch {
	case a.flags.Output == outputText, a.flags.Output == outputJSON:
	case a.flags.Output == outputLines && cmd.Name() == "events":
	case a.flags.Output == outputLines:
		return usagef("use -o json", "-o jsonl is for flowctl events")
	default:
		return usagef("use -o text or -o json", "there is no output %q", a.flags.Output)
	}
	if a.flags.Durability != "full" && a.flags.Durability != "normal" {
		return usagef("use --durability full or --durability normal", "there is no durability %q", a.flags.Durability)
	}
	return nil
}

// json says whether the output is for programs.
func (a *app) json() bool { return a.flags.Output != outputText }

// path makes a path of the command line one that can be opened.
func (a *app) path(name string) string {
	if a.Dir == "" || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(a.Dir, name)
}

// args says how many arguments a command takes, in its own words.
func args(least, most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		usage := strings.TrimSuffix(cmd.UseLine(), " [flags]")
		switch {
		case len(given) < least:
			return usagef("usage: "+usage, "%s is missing", what)
		case most >= 0 && len(given) > most:
			return usagef("usage: "+usage, "%q is one argument too many", given[most])
		}
		return nil
	}
}
