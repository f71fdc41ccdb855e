package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"flowctl/engine"
	"flowctl/flows"
	"flowctl/flows/machine"
	"flowctl/states"
	"flowctl/store"
	"flowctl/store/sqlite"
)

var update = flag.Bool("update", false, "write golden files anew")

// TestMain lets the test binary be flowctl itself, for the tests that need real processes.
func TestMain(m *testing.M) {
	if os.Getenv("FLOWCTL_TEST_PROCESS") != "" {
		p := systemProgram()
		p.Around = killer(os.Getenv("FLOWCTL_TEST_KILL"))
		os.Exit(p.Run(untilSignal(), os.Args[1:]))
	}
	os.Exit(m.Run())
}

// TestScripts runs flowctl in this process, with ids and a clock of its own for each script:
//
//	flowctl ARGS…          runs flowctl and expects exit code 0
//	exits CODE ARGS…       runs flowctl and expects that exit code
//	terminal [in out err]  says which streams are terminals from now on
//	typed FILE             is what a person types into the next command
//	clock DURATION         moves the clock on
//	orphan ID FLOW         leaves a run behind whose process is gone
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", UpdateScripts: *update, RequireUniqueNames: true,
		Setup: func(env *testscript.Env) error {
			if err := copyExamples(env.WorkDir); err != nil {
				return err
			}
			env.Values["bench"] = &bench{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"flowctl": func(ts *testscript.TestScript, neg bool, args []string) { expect(ts, neg, "0", args) },
			"exits": func(ts *testscript.TestScript, neg bool, args []string) {
				if len(args) == 0 {
					ts.Fatalf("usage: exits CODE ARGS…")
				}
				expect(ts, neg, args[0], args[1:])
			},
			"terminal": func(ts *testscript.TestScript, _ bool, args []string) { benchOf(ts).terminal(ts, args) },
			"typed":    func(ts *testscript.TestScript, _ bool, args []string) { benchOf(ts).typed = ts.ReadFile(args[0]) },
			"clock":    func(ts *testscript.TestScript, _ bool, args []string) { benchOf(ts).move(ts, args[0]) },
			"orphan":   func(ts *testscript.TestScript, _ bool, args []string) { benchOf(ts).orphan(ts, args[0], args[1]) },
		},
	})
}

// copyExamples copies the examples into a folder as they are in a fresh clone: without the databases that trying them out
// has made.
func copyExamples(dir string) error {
	to := filepath.Join(dir, "examples")
	if err := os.CopyFS(to, os.DirFS("../../examples")); err != nil {
		return err
	}
	made, err := filepath.Glob(filepath.Join(to, "*", "*.db*"))
	if err != nil {
		return err
	}
	for _, file := range made {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	return nil
}

// bench is what one script injects into its calls of flowctl.
type bench struct {
	mu    sync.Mutex
	now   time.Time
	ids   int
	term  terminals
	typed string
}

func benchOf(ts *testscript.TestScript) *bench { return ts.Value("bench").(*bench) }

func expect(ts *testscript.TestScript, neg bool, code string, args []string) {
	if neg {
		ts.Fatalf("use: exits CODE ARGS…")
	}
	want, err := strconv.Atoi(code)
	ts.Check(err)
	got, stdout, stderr := flowctl(benchOf(ts).program(ts), args...)
	work := ts.Getenv("WORK")
	for _, stream := range []struct {
		to   io.Writer
		text string
	}{{ts.Stdout(), stdout}, {ts.Stderr(), stderr}} {
		text := strings.ReplaceAll(flowHash.ReplaceAllString(stream.text, "sha256:HASH"), work, "WORK")
		_, err := io.WriteString(stream.to, shownMS.ReplaceAllString(storedMS.ReplaceAllString(text, "${1}0"), "(0 ms)"))
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("flowctl %s: exit code %d, want %d", strings.Join(args, " "), got, want)
	}
}

// In what scripts compare, a flow's hash is written as sha256:HASH, the working folder as WORK, and the duration of a tool
// call, the one thing that no clock of ours measures, as 0.
var (
	flowHash = regexp.MustCompile(`sha256:[0-9a-f]{64}`)
	storedMS = regexp.MustCompile(`("ms": ?)[0-9]+`)
	shownMS  = regexp.MustCompile(`\([0-9]+ ms\)`)
)

// program is flowctl for the next call: its clock stands still while the call lasts, one second after the last.
func (b *bench) program(ts *testscript.TestScript) program {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(time.Second)
	now := b.now
	p := systemProgram()
	p.Stdin = strings.NewReader(b.typed)
	b.typed = ""
	p.Terminal = b.term
	p.Dir = ts.MkAbs(".")
	p.Getenv = func(name string) (string, bool) { v := ts.Getenv(name); return v, v != "" }
	p.Now = func() time.Time { return now }
	p.NewID = b.newID
	p.Version = "v1.2.3"
	return p
}

func (b *bench) newID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids++
	return fmt.Sprintf("01J%05dTEST", b.ids)
}

func (b *bench) terminal(ts *testscript.TestScript, streams []string) {
	b.term = terminals{}
	for _, s := range streams {
		switch s {
		case "in":
			b.term.In = true
		case "out":
			b.term.Out = true
		case "err":
			b.term.Err = true
		default:
			ts.Fatalf("there is no stream %s", s)
		}
	}
}

func (b *bench) move(ts *testscript.TestScript, by string) {
	d, err := time.ParseDuration(by)
	ts.Check(err)
	b.now = b.now.Add(d)
}

// orphan starts a run as a process that is gone a moment later: nothing is given back.
func (b *bench) orphan(ts *testscript.TestScript, id, flow string) {
	ctx := context.Background()
	app := &app{program: b.program(ts)}
	db, err := sqlite.Open(ctx, ts.MkAbs("flowctl.db"), sqlite.Options{Now: app.Now})
	ts.Check(err)
	m, err := app.readFlow(flow, app.catalog(app.toolKinds()))
	ts.Check(err)
	past := app.Now().Add(-time.Minute)
	eng, err := engine.New(engine.Config{Store: db, Handlers: states.Builtin(), Tools: app.toolKinds(),
		Compile: func(source []byte, dir string) (*machine.Machine, error) {
			return flows.CompileStored(source, dir, app.catalog(app.toolKinds()))
		},
		Now:    func() time.Time { return past },
		Worker: store.Worker{ID: "gone-" + id},
	})
	ts.Check(err)
	_, _, err = eng.Start(ctx, engine.StartRequest{Machine: m, ID: id, Inputs: machine.Values{}})
	ts.Check(err)
	ts.Check(db.Close())
}

// flowctl runs one call in this process and gives its exit code and what it wrote.
func flowctl(p program, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	p.Stdout, p.Stderr = &out, &errs
	code = p.Run(context.Background(), args)
	return code, out.String(), errs.String()
}
