package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"flowctl/engine"
	"flowctl/engine/tool"
	"flowctl/flows/machine"
)

// lossy is a kind of tool whose first call ends without anybody knowing how.
type lossy struct{ calls *int }

type lossyConfig struct{}

func (*lossyConfig) Uses(machine.ToolScope) machine.ToolUses {
	return machine.ToolUses{Description: "Sends something.", Effect: machine.EffectWrite,
		Parameters: []byte(`{"type":"object","properties":{}}`)}
}

func (lossy) Spec() machine.ToolKind {
	return machine.ToolKind{Doc: "Loses its first answer.", Config: func() machine.ToolConfig { return &lossyConfig{} }}
}

func (l lossy) New(spec machine.ToolSpec, _ tool.Env) (tool.Tool, error) {
	return tool.Tool{Spec: spec, Run: func(context.Context, tool.Call) (machine.Value, error) {
		if *l.calls++; *l.calls == 1 {
			return nil, &tool.Error{Status: tool.Unknown, Err: errors.New("the line went dead")}
		}
		return "sent", nil
	}}, nil
}

func (lossy) Close() error { return nil }

const lossyFlow = `
version: 1
name: lossy
vars: {got: {type: string}}
tools: {send: {lossy: {}}}
start: send
states:
  send:
    handler: call
    tools: [send]
    with: {tool: send, into: got}
    transitions: {success: bye, fail: lost}
  bye: {handler: end, with: {output: "{{ got }}"}}
  lost: {handler: end, with: {status: failed, output: nobody knows}}
`

// A write whose result nobody knows waits for a human's word: it happened, it did not, or nobody will know.
func TestInDoubt(t *testing.T) {
	for _, c := range []struct {
		answer []string
		code   exitCode
		output string
		calls  int
	}{
		{[]string{"--done", "--json", `"by letter"`}, exitOK, "by letter", 1},
		{[]string{"--not-done"}, exitOK, "sent", 2},
		{[]string{"--give-up"}, exitFailed, "nobody knows", 1},
	} {
		t.Run(c.answer[0], func(t *testing.T) {
			dir, calls := t.TempDir(), 0
			writeFile(t, dir, "flow.yaml", lossyFlow)
			p := testProgram(dir)
			p.Tools = func(toolSetup) map[string]tool.Kind { return map[string]tool.Kind{"lossy": lossy{&calls}} }
			code, _, stderr := flowctl(p, "run", "flow.yaml", "--id", "r", "--yes", "--approve-all")
			if code != int(exitWaiting) || !strings.Contains(stderr, "in_doubt: ") || !strings.Contains(stderr, "flowctl answer r --not-done") {
				t.Fatalf("exit code %d, want 4 and how to go on\n%s", code, stderr)
			}
			for _, wrong := range [][]string{{"--yes"}, {"--no"}, {"sent"}, {"--not-done", "--json", "1"}, {"--done", "--give-up"}} {
				if code, _, stderr := flowctl(p, append([]string{"answer", "r"}, wrong...)...); code != int(exitUsage) {
					t.Errorf("answer %v: exit code %d, want 2\n%s", wrong, code, stderr)
				}
			}
			code, stdout, stderr := flowctl(p, append([]string{"answer", "r"}, c.answer...)...)
			if code != int(c.code) || strings.TrimSpace(stdout) != c.output || calls != c.calls {
				t.Errorf("exit code %d, output %q after %d calls, want %d, %q after %d\n%s", code, stdout, calls, c.code, c.output, c.calls, stderr)
			}
		})
	}
}

// At a terminal the same word can be typed.
func TestInDoubtAtTerminal(t *testing.T) {
	dir, calls := t.TempDir(), 0
	writeFile(t, dir, "flow.yaml", lossyFlow)
	p := testProgram(dir)
	p.Tools = func(toolSetup) map[string]tool.Kind { return map[string]tool.Kind{"lossy": lossy{&calls}} }
	p.Terminal, p.Stdin = terminals{In: true, Err: true}, strings.NewReader("perhaps\nnot-done\n")
	code, stdout, stderr := flowctl(p, "run", "flow.yaml")
	if code != int(exitOK) || stdout != "sent\n" || calls != 2 {
		t.Errorf("exit code %d, output %q after %d calls\n%s", code, stdout, calls, stderr)
	}
	if !strings.Contains(stderr, "answer done (it happened), not-done (run it again) or give-up (nobody knows)") {
		t.Errorf("an unfit answer is not explained:\n%s", stderr)
	}
}

// An interrupt while a person is asked leaves the run waiting.
func TestInterruptAtTerminal(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", oneQuestion)
	p := testProgram(dir)
	never, stop := io.Pipe()
	defer stop.Close() //nolint:errcheck // it only ends the reader
	p.Terminal, p.Stdin = terminals{In: true, Err: true}, never
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var out bytes.Buffer
	p.Stdout = &out
	p.Stderr = &writerFunc{do: func(text []byte) {
		if bytes.HasPrefix(text, []byte("> ")) {
			cancel()
		}
	}}
	if code := p.Run(ctx, []string{"run", "flow.yaml", "--id", "r"}); code != int(exitInterrupted) {
		t.Errorf("exit code %d, want 130", code)
	}
	p.Stdin, p.Terminal = strings.NewReader(""), terminals{}
	code, stdout, stderr := flowctl(p, "answer", "r", "Ada")
	if code != int(exitOK) || stdout != "Ada\n" {
		t.Errorf("the run cannot be answered afterwards: exit code %d, %q\n%s", code, stdout, stderr)
	}
}

// A database that a newer flowctl wrote is exit code 9 for every command, and stays as it is.
func TestNewerDatabase(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", oneQuestion)
	p := testProgram(dir)
	if code, _, stderr := flowctl(p, "run", "flow.yaml", "--id", "r"); code != int(exitWaiting) {
		t.Fatal(stderr)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "flowctl.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"ls"}, {"show", "r"}, {"events", "r"}, {"answer", "r", "x"}, {"resume", "r"}, {"resume", "--all"},
		{"cancel", "r"}, {"run", "flow.yaml"}} {
		code, stdout, stderr := flowctl(p, append(args, "-o", "json")...)
		var doc errorDocument
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
			t.Errorf("%v: %v\n%s", args, err, stdout)
		}
		if code != int(exitMachine) || doc.Error.Code != "newer_schema" || !strings.Contains(stderr, "newer flowctl") {
			t.Errorf("%v: exit code %d, %+v, want 9 and newer_schema\n%s", args, code, doc.Error, stderr)
		}
	}
}

// Many at once: one goroutine per program value, for a program is only read.
func TestProgramsAtOnce(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, dir, "flow.yaml", oneQuestion)
	p := testProgram(dir)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if code, _, stderr := flowctl(p, "run", "flow.yaml"); code != int(exitWaiting) {
				t.Errorf("exit code %d\n%s", code, stderr)
			}
		}()
	}
	wg.Wait()
	code, stdout, _ := flowctl(p, "ls", "--waiting", "-o", "json")
	var docs []engine.Report
	if err := json.Unmarshal([]byte(stdout), &docs); code != 0 || err != nil || len(docs) != 8 {
		t.Errorf("%d runs are listed (exit code %d, %v), want 8", len(docs), code, err)
	}
}
